// Package fault injects faults into the servers of a rig, and heals them:
//
//	heal, err := fault.Stop(replica).Inject(ctx)
//	…
//	err = heal(context.WithoutCancel(ctx))
//
// Inject returns when the fault has its effect, and heal when the server serves again, so an
// experiment needs no fixed sleeps. A fault that is not healed ends with its rig. A server or
// link has one fault at a time.
package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Fault is a fault of one server or link.
type Fault struct {
	Name   string // the kind of fault, such as "stop" or "cut from redis-1"
	Target string // the server that is affected, such as "replica-1"
	// Command returns the name of the command that it holds back, or whose answer it loses, such as DEL, or "" before it
	// has come. Others returns whether the lock has sent another command. Both may be nil.
	Command func() string
	Others  func() bool

	inject func(ctx context.Context) error
	heal   func(ctx context.Context) error
	// landed returns an error unless an observation shows the effect of the fault. nil means that Inject itself has
	// observed it.
	landed func(ctx context.Context) error
}

// Landed returns an error unless the fault has had its effect, which is observed, not concluded from Inject. Call it
// before Heal: a lock that no fault has reached is not safe.
func (f Fault) Landed(ctx context.Context) error {
	if f.landed == nil {
		return nil
	}
	if err := f.landed(ctx); err != nil {
		return fmt.Errorf("%s, %s: %w", f.Name, f.Target, err)
	}
	return nil
}

// unless returns a landed with this error, unless so is true.
func unless(so func() bool, otherwise string) func(context.Context) error {
	return func(context.Context) error {
		if so() {
			return nil
		}
		return errors.New(otherwise)
	}
}

// Heal ends a fault and returns when the server serves again. A second call retries after an error,
// and does nothing after a success. Heal needs a ctx that has not ended, such as
// context.WithoutCancel of the experiment's ctx.
type Heal func(ctx context.Context) error

// Inject returns when the fault has its effect. After an error, Inject has undone the fault as far
// as possible. The end of ctx does not heal the fault.
func (f Fault) Inject(ctx context.Context) (Heal, error) {
	if err := f.inject(ctx); err != nil {
		return nil, err
	}
	var healing sync.Mutex
	healed := false
	return func(ctx context.Context) error {
		healing.Lock()
		defer healing.Unlock()
		if healed {
			return nil
		}
		err := f.heal(ctx)
		healed = err == nil
		return err
	}, nil
}
