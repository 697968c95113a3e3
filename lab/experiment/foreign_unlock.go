package experiment

import (
	"context"

	"oversell/api"
	"oversell/lab/history"
)

func foreignUnlock() Experiment {
	return Experiment{
		Hazard: "foreign-unlock", Group: holderFails, Applies: func(c Card) bool { return c.Lease },
		Title: api.Text{EN: "a late release", ZH: "迟到的释放"},
		Shows: api.Text{EN: "the release of a lock that another request holds by then", ZH: "释放了已属于别人的锁"},
		step:  "written", contenderStops: "read", probe: true, contenderParams: wait(grantBound), inject: freezeHolders,
		judge: freedForeignLock,
		prepare: func(ctx context.Context, r *round) error { // new replicas give the same thread numbers
			return r.bed.restart(ctx, name(r.on[holder]), name(r.on[contender]))
		},
	}
}

// freedForeignLock finds a third request that acquired the lock while the contender held it.
func freedForeignLock(p *participant) *finding {
	if p.ops[observer].Outcome == history.OK && p.ops[contender].Reason == "lost" {
		return &finding{api.Broken, MutualExclusion, api.Text{
			EN: "A third request acquired the lock while the contender held it.",
			ZH: "竞争者持锁时，第三个请求也拿到了锁。",
		}}
	}
	return nil
}
