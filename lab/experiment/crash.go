package experiment

import (
	"context"
	"time"

	"oversell/api"
	"oversell/lab/fault"
)

func crash() Experiment {
	late := stalled(api.Textf(
		"No request acquired the lock within %v after the holder was killed.",
		"持锁者被杀死后 %v 内没有请求拿到锁。", grantBound))
	return Experiment{
		Hazard: "crash", Group: holderFails, Basic: true, Applies: always,
		Title: api.Text{EN: "the holder's process is killed", ZH: "持锁者的进程被杀死"},
		Shows: api.Text{EN: "how long the others wait for the lock of a dead holder", ZH: "其他请求要等多久才能拿到锁"},
		step:  "granted", contenderParams: wait(grantBound), vary: renewedBefore, group: renewals,
		judge: func(p *participant) *finding {
			if p.stopped[holder] == "" { // it had sold before, and its process died with nothing to lose
				return neverStopped()
			}
			return mustSellInTime(late)(p)
		},
	}
}

// renewedBefore kills the holder after some leases, at once, or after one: a renewal may give a longer lease than the
// grant, or add one to the rest. A lock without renewals would have expired, so its holder is killed at once.
func renewedBefore(e Experiment, seed int64) Experiment {
	leases := by(seed, 0, 3, 1)
	e.inject = func(ctx context.Context, r *round) (fault.Heal, error) {
		if r.participants[0].Card.Renews {
			if err := sleep(ctx, time.Duration(leases)*Lease+Lease/2); err != nil { // between two renewals, not before the first
				return nil, err
			}
		}
		return killReplica(holder)(ctx, r)
	}
	return e
}

func renewals(s Subject) string {
	if s.Card.Renews {
		return "renewed"
	}
	return "not renewed"
}
