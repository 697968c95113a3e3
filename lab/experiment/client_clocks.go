package experiment

import (
	"context"
	"errors"
	"time"

	"oversell/api"
	"oversell/lab/fault"
	"oversell/lab/rig"
)

// clientClocks lets the contender's program run with a clock that is ten seconds ahead. A lock whose end is a time of
// its holder's clock has ended for the contender, and fences that are times fall when the holder's program has the lock
// again. Our own strategies are in a Go program, whose clock cannot be set.
func clientClocks() Experiment {
	return Experiment{
		Hazard: "client-clocks", Group: holderFails, Applies: func(c Card) bool { return c.onTrial() && (c.Lease || c.Fenced) },
		Title: api.Text{EN: "the clocks of two clients are ten seconds apart", ZH: "两个客户端的时钟相差十秒"},
		Shows: api.Text{EN: "a lock that ends by its client's clock ends too early, and such a fence falls", ZH: "按客户端时钟计算到期的锁提前到期，这样的栅栏号会变小"},
		step:  "read", contenderParams: wait(Lease / 3), perform: withClockAhead,
		judge: func(p *participant) *finding {
			if p.ops[contender].Reason != string(api.Unavailable) {
				return nil
			}
			return &finding{api.Inconclusive, "", api.Text{
				EN: "The program with the other clock did not serve, so nothing shows that the lock kept it out.",
				ZH: "换了时钟的程序没有服务，所以看不出是不是锁挡住了它。",
			}}
		},
	}
}

func withClockAhead(ctx context.Context, r *round) ([]Result, error) {
	const ahead = 10 * time.Second
	next := r.with(r.subjects...)
	next.perform = nil
	var server *rig.Server
	next.prepare = func(ctx context.Context, r *round) (err error) {
		if server, err = r.bed.Rig.Server(name(r.on[contender])); err != nil {
			return err
		}
		if r.bed.idle {
			return nil
		}
		if err := server.SetProgramClock(ahead); err != nil {
			return err
		}
		return r.bed.restart(ctx, server.Name())
	}
	next.inject = func(context.Context, *round) (fault.Heal, error) {
		next.missed = server.FollowsProgramClock()
		next.span.What, next.span.Who = "clock jumps by 10s", server.Name()
		return noHeal, nil
	}
	next.after = func(ctx context.Context, r *round) error {
		r.on[observer], r.on[successor] = r.on[contender], r.on[holder]
		r.sendAndAwait(ctx, observer, wait(grantBound))
		r.sendAndAwait(ctx, successor, wait(grantBound))
		return nil
	}
	results, err := next.once(ctx)
	if server != nil {
		err = errors.Join(err, server.SetProgramClock(0), r.bed.restart(context.WithoutCancel(ctx), server.Name()))
	}
	return results, err
}
