package fault

import (
	"context"

	"oversell/lab/rig"
)

// LostReply has one reply of a backend lost: the backend has done what it was asked, the
// connection ends, and the replica can't know which. It strikes when the next reply comes
// that contains Text, whose request was perhaps sent before; [LostReply.Inject] only arms
// it. An empty Text stands for any reply, also to a heartbeat.
type LostReply struct {
	Link *rig.Link
	Text string
	Lost func() // told when the reply is lost; may be nil
}

// Name implements [Fault].
func (r LostReply) Name() string { return "lost reply of " + r.Link.To() }

// Who implements [Fault].
func (r LostReply) Target() string { return r.Link.From() }

// Inject implements [Fault].
func (r LostReply) Inject(context.Context) (Heal, error) {
	lost, err := r.Link.LoseReply(r.Text)
	if err != nil {
		return nil, err
	}
	healed := make(chan struct{})
	go func() {
		select {
		case <-lost:
			if r.Lost != nil {
				r.Lost()
			}
		case <-healed:
		}
	}()
	return once(func(context.Context) error {
		if err := r.Link.Restore(); err != nil {
			return err
		}
		close(healed)
		return nil
	}), nil
}
