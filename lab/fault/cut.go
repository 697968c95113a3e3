package fault

import (
	"context"

	"oversell/lab/rig"
)

// Cut cuts the line from a replica to a backend: what either says is swallowed, and
// neither is told. The replica may reach its other backends, and everybody else this one.
type Cut struct{ Line *rig.Line }

// Name implements [Fault].
func (c Cut) Name() string { return "cut from " + c.Line.To() }

// Who implements [Fault].
func (c Cut) Who() string { return c.Line.From() }

// Inject implements [Fault]. When it is healed, the connections of before end.
func (c Cut) Inject(context.Context) (Heal, error) { return inject(c.Line, c.Line.Cut) }

// Reset ends the connections from a replica to a backend and refuses new ones: unlike
// with [Cut], both know at once.
type Reset struct{ Line *rig.Line }

// Name implements [Fault].
func (r Reset) Name() string { return "reset from " + r.Line.To() }

// Who implements [Fault].
func (r Reset) Who() string { return r.Line.From() }

// Inject implements [Fault].
func (r Reset) Inject(context.Context) (Heal, error) { return inject(r.Line, r.Line.Reset) }

// inject does harm to a line, which is healed by restoring it.
func inject(l *rig.Line, harm func() error) (Heal, error) {
	if err := harm(); err != nil {
		_ = l.Restore()
		return nil, err
	}
	return once(func(context.Context) error { return l.Restore() }), nil
}
