package fault

import (
	"context"

	"oversell/lab/rig"
)

// Cut drops all messages on the link from a replica to a backend, without a notice to either.
// The replica still reaches its other backends, and other replicas still reach this one.
type Cut struct{ Link *rig.Link }

// Name implements [Fault].
func (c Cut) Name() string { return "cut from " + c.Link.To() }

// Target implements [Fault].
func (c Cut) Target() string { return c.Link.From() }

// Inject implements [Fault]. Heal ends the connections that were cut.
func (c Cut) Inject(context.Context) (Heal, error) { return inject(c.Link, c.Link.Cut) }

// inject does harm to a link. Heal restores it.
func inject(l *rig.Link, harm func() error) (Heal, error) {
	if err := harm(); err != nil {
		_ = l.Restore()
		return nil, err
	}
	return once(func(context.Context) error { return l.Restore() }), nil
}
