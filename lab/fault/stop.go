package fault

import (
	"context"

	"oversell/lab/rig"
)

// Stop pauses a server and its children (SIGSTOP), as a long garbage collection or a suspended
// machine does: its connections stay open, requests get no answer, and after it resumes the
// server does not notice the pause.
type Stop struct{ Server *rig.Server }

// Name implements [Fault].
func (Stop) Name() string { return "stop" }

// Target implements [Fault].
func (s Stop) Target() string { return s.Server.Name() }

// Inject implements [Fault].
func (s Stop) Inject(context.Context) (Heal, error) {
	if err := s.Server.Pause(); err != nil {
		return nil, err
	}
	return once(func(context.Context) error { return s.Server.Resume() }), nil
}
