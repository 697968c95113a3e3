package fault

import (
	"context"

	"oversell/lab/rig"
)

// Cut cuts the line from a replica to a backend: what either says is swallowed, and
// neither is told. The replica may reach its other backends, and everybody else this one.
type Cut struct{ Link *rig.Link }

// Name implements [Fault].
func (c Cut) Name() string { return "cut from " + c.Link.To() }

// Who implements [Fault].
func (c Cut) Target() string { return c.Link.From() }

// Inject implements [Fault]. When it is healed, the connections of before end.
func (c Cut) Inject(context.Context) (Heal, error) { return inject(c.Link, c.Link.Cut) }

// inject does harm to a line, which is healed by restoring it.
func inject(l *rig.Link, harm func() error) (Heal, error) {
	if err := harm(); err != nil {
		_ = l.Restore()
		return nil, err
	}
	return once(func(context.Context) error { return l.Restore() }), nil
}
