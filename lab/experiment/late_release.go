package experiment

import "oversell/api"

// lateRelease delays each command of a release until the lease has ended and the contender has the
// lock. The command arrives late, as on a slow network. A release of two commands, such as GET and
// DEL, has compared too early, and frees the contender's lock.
func lateRelease() Experiment {
	return Experiment{
		Hazard: "late-release", Group: holderFails, Applies: claimedOrOnTrial("late-release", anyServer...),
		Title: api.Text{
			EN: "a command of the release arrives late, when another request holds the lock",
			ZH: "释放锁的一条命令迟到，锁已被另一个请求持有",
		},
		Shows: api.Text{
			EN: "a release that compares and deletes in two commands frees the lock of another request",
			ZH: "分两条命令比较和删除，会解除别人的锁",
		},
		step: "written", contenderStops: "read", probe: true, contenderParams: wait(grantBound), judge: freedForeignLock,
		perform: eachCommand(1, api.Verdict.Failed, func(e *Experiment, held *heldCommands) {
			e.inject = afterRenewal(held.delay)
			e.explain = held.arrivedLate(api.Text{EN: "release", ZH: "释放锁"})
		}),
	}
}
