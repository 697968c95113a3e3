package fault

import (
	"context"

	"oversell/lab/rig"
)

// Stop freezes a server and its children (SIGSTOP), as a long garbage collection or a
// suspended machine does: its connections stay open, nobody answers, and when it goes on
// it does not know that time has passed.
type Stop struct{ Server *rig.Server }

// Name implements [Fault].
func (Stop) Name() string { return "stop" }

// Who implements [Fault].
func (s Stop) Target() string { return s.Server.Name() }

// Inject implements [Fault].
func (s Stop) Inject(context.Context) (Heal, error) {
	if err := s.Server.Pause(); err != nil {
		return nil, err
	}
	return once(func(context.Context) error { return s.Server.Resume() }), nil
}
