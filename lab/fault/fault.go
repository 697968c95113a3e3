// Package fault breaks the servers of a rig, one way in one file.
//
// A fault is injected and healed:
//
//	heal, err := fault.Stop{Server: replica}.Inject(ctx)
//	…
//	err = heal(context.WithoutCancel(ctx))
//
// Inject returns when the fault bites and heal when the server is of use again, so an
// experiment never sleeps and hopes. A fault that nobody heals ends with its rig. One
// server, or one line, has one fault at a time.
package fault

import (
	"context"
	"sync"
)

// Fault is one thing that goes wrong on one server.
type Fault interface {
	// Name says what goes wrong, such as "stop" or "cut from redis-1".
	Name() string
	// Who is the server that it strikes, such as "replica-1".
	Target() string
	// Inject returns when the fault bites. With an error it has undone what it did, as
	// far as it could. That ctx ends later does not heal.
	Inject(ctx context.Context) (Heal, error)
}

// Heal ends a fault and returns when the server is of use again. It may be called again:
// after a success that does nothing, after an error it tries once more. It needs a ctx
// that has not ended, such as context.WithoutCancel of the experiment's.
type Heal func(ctx context.Context) error

// once makes heal do nothing after its first success.
func once(heal Heal) Heal {
	var healing sync.Mutex
	healed := false
	return func(ctx context.Context) error {
		healing.Lock()
		defer healing.Unlock()
		if healed {
			return nil
		}
		err := heal(ctx)
		healed = err == nil
		return err
	}
}
