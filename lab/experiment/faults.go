package experiment

import (
	"context"
	"errors"

	"oversell/lab/fault"
	"oversell/lab/rig"
)

// This file has what the loads use to inject their faults.

// injectAll ends the earlier faults if one of them fails. heal ends all faults in reverse order.
func (r *round) injectAll(ctx context.Context, faults ...fault.Fault) (heal fault.Heal, err error) {
	r.faults = append(r.faults, faults...)
	if r.bed.Idle || len(faults) == 0 {
		return func(context.Context) error { return nil }, nil
	}
	all := fault.Together(faults...)
	if heal, err = all.Inject(ctx); err == nil {
		r.span.What, r.span.Who = all.Name, all.Target
	}
	return heal, err
}

// observe says why no fault has landed. With several faults, such as cuts from all servers, one of them is enough: a
// lock may use only one server.
func (r *round) observe(ctx context.Context) {
	r.missed = errors.Join(r.missed, fault.Landed(ctx, r.faults...))
}

func (r *round) injectInto(ctx context.Context, of func(*rig.Server) fault.Fault, servers ...string) (fault.Heal, error) {
	var faults []fault.Fault
	for _, name := range servers {
		server, err := r.bed.Rig.Server(name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, of(server))
	}
	return r.injectAll(ctx, faults...)
}
