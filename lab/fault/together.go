package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Together injects faults of the same kind, such as on the links to all servers of a lock, and heals them in reverse
// order. It has landed if one of them has: a lock may use only one server.
func Together(all ...Fault) Fault {
	var heals []Heal
	heal := func(ctx context.Context) error {
		var errs []error
		for _, h := range slices.Backward(heals) {
			errs = append(errs, h(ctx))
		}
		return errors.Join(errs...)
	}
	name, target := nameOf(all)
	return Fault{
		Name: name, Target: target,
		inject: func(ctx context.Context) error {
			for _, f := range all {
				h, err := f.Inject(ctx)
				if err != nil {
					return errors.Join(fmt.Errorf("%s on %s: %w", f.Name, f.Target, err), heal(context.WithoutCancel(ctx)))
				}
				heals = append(heals, h)
			}
			return nil
		},
		heal:   heal,
		landed: func(ctx context.Context) error { return Landed(ctx, all...) },
		Command: func() (name string) {
			for _, f := range all {
				if f.Command != nil {
					name = cmp.Or(name, f.Command())
				}
			}
			return name
		},
		Others: func() bool {
			return slices.ContainsFunc(all, func(f Fault) bool { return f.Others != nil && f.Others() })
		},
	}
}

// nameOf returns one name and the targets of faults at the same time, such as "cut from redis-1, redis-2".
// Of more than three servers, it leaves out the numbers.
func nameOf(faults []Fault) (what, who string) {
	var servers, targets []string
	kind := faults[0].Name[:strings.LastIndex(faults[0].Name, " ")+1]
	for _, one := range faults {
		servers = append(servers, strings.TrimPrefix(one.Name, kind))
		targets = append(targets, one.Target)
	}
	if servers, targets = slices.Compact(servers), slices.Compact(targets); len(servers) > 3 {
		for i, s := range servers {
			servers[i], _, _ = strings.Cut(s, "-")
		}
		servers = slices.Compact(servers)
	}
	return kind + strings.Join(servers, ", "), strings.Join(targets, ", ")
}

// Landed returns nil if one of the faults has had its effect, as far as that can be observed. Inject itself has observed
// the effect of the others.
func Landed(ctx context.Context, all ...Fault) (err error) {
	for _, f := range all {
		if f.landed == nil {
			continue
		}
		missed := f.Landed(ctx)
		if missed == nil {
			return nil
		}
		err = errors.Join(err, missed)
	}
	return err
}
