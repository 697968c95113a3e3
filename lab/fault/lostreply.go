package fault

import (
	"context"

	"oversell/lab/rig"
)

// LostReply loses one reply of a backend: the backend has executed the request, the connection
// ends, and the replica does not know the outcome. [LostReply.Inject] only arms it: the next
// reply that contains Text is lost, also to a request that was sent before. An empty Text means
// any reply, also to a heartbeat.
type LostReply struct {
	Link *rig.Link
	Text string
	Lost func() // is called when the reply is lost; may be nil
}

// Name implements [Fault].
func (r LostReply) Name() string { return "lost reply of " + r.Link.To() }

// Target implements [Fault].
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
