package experiment

import (
	"context"
	"errors"

	"oversell/lab/fault"
)

// lateAnswer delays the answer to the holder's acquisition, and holds back all later commands of its
// lock, until the contender has the lock. A holder that counts its lease from the answer still
// believes in its lock then.
func lateAnswer() Experiment {
	const delay = 2 * Lease / 3
	return Experiment{
		Hazard: "late-answer", Title: "the answer to an acquisition is late, and the renewals do not arrive",
		Shows: "a holder that counts its lease from the answer writes after the end of the lease", Applies: claimedOrOnTrial("late-answer", "redis", "redlock"),
		perform: procedure{
			step: "asked", thenAt: "read", holderParams: wait(2 * Lease), contenderParams: wait(grantBound), lapse: pauseLapse(),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				p := r.participants[0]
				links := r.bed.links(name(r.on[holder]), "redis")
				for _, link := range links {
					if err := link.Delay(delay); err != nil {
						return nil, err
					}
					if _, err := link.HoldCommand(p.key(), 2); err != nil {
						return nil, err
					}
				}
				r.span.What, r.span.Who = "answer delayed", name(r.on[holder])
				heal := func(context.Context) (err error) { // before the holder goes on, which must not wait for its release
					for _, link := range links {
						err = errors.Join(err, link.Restore())
					}
					return err
				}
				return heal, r.resumeToNext(ctx, func() bool { return false })
			},
		}.inGroups(Subject.Name),
	}
}

// partition lets the holder reach two of five Redis, and the contender the other three. Only the
// contender has a majority.
func partition() Experiment {
	return Experiment{
		Hazard: "partition", Title: "one replica reaches two of five Redis, another one the other three", Shows: "two holders, if two of five are enough",
		Applies: claimedOrOnTrial("partition", "redlock"),
		perform: procedure{
			step: "asked", thenAt: "writing", holderParams: wait(0), contenderParams: wait(grantBound),
			inject: func(ctx context.Context, r *round) (fault.Heal, error) {
				var faults []fault.Fault
				for part, servers := range map[int][]string{holder: {"redis-3", "redis-4", "redis-5"}, contender: {"redis-1", "redis-2"}} {
					for _, server := range servers {
						link, err := r.bed.Rig.Link(name(r.on[part]), server)
						if err != nil {
							return nil, err
						}
						faults = append(faults, fault.Cut(link))
					}
				}
				heal, err := r.injectAll(ctx, faults...)
				if err != nil {
					return nil, err
				}
				r.span.What, r.span.Who = "partition", name(r.on[holder])
				return heal, r.resumeToNext(ctx, func() bool { return false })
			},
		}.inGroups(Subject.Name),
	}
}
