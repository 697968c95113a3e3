package experiment

import "oversell/api"

// releaseReply loses the answer to each command of a release in turn. A holder that cannot know whether it has released
// the lock must not renew it any more, and must not leave it without an end.
func releaseReply() Experiment {
	return Experiment{
		Hazard: "release-reply", Group: linkFails, Applies: claimedOrOnTrial("release-reply", anyServer...),
		Title: api.Text{EN: "the answer to a command of the release is lost", ZH: "释放锁的一条命令已执行，应答却丢失"},
		Shows: api.Text{EN: "a lock that nobody holds is renewed for ever, or never expires", ZH: "没有人持有的锁被一直续期，或者永不过期"},
		step:  "written", contenderParams: wait(grantBound),
		perform: eachCommand(1, api.Verdict.Failed, func(e *Experiment, held *heldCommands) {
			e.inject = afterRenewal(held.loseReply)
			e.judge = func(p *participant) *finding {
				return mustSellInTime(stalled(api.Textf("The answer to the command %[1]s, number %[2]d of the release, was lost. No request acquired the lock within %[3]v.",
					"释放锁的第 %[2]d 条命令 %[1]s 的应答丢失，此后 %[3]v 内没有请求拿到锁。", held.name(), held.nth, grantBound)))(p)
			}
		}),
	}
}
