package experiment

import "oversell/api"

// crashBetween kills the holder's process before each command of its acquisition but the first.
func crashBetween() Experiment {
	return Experiment{
		Hazard: "crash-between", Group: holderFails, Applies: claimedOrOnTrial("crash-between", anyServer...),
		Title: api.Text{EN: "the process is killed between two commands of an acquisition", ZH: "进程在加锁的两条命令之间被杀死"},
		Shows: api.Text{EN: "a key that was created without its expiry is never deleted", ZH: "键已创建而没有过期时间，永远不会删除"},
		step:  "asked", thenAt: "granted", contenderParams: wait(grantBound),
		perform: eachCommand(2, api.Verdict.Failed, func(e *Experiment, held *heldCommands) {
			e.inject = held.kill
			e.judge = func(p *participant) *finding {
				return mustSellInTime(stalled(api.Textf("The process was killed before its command %[1]s, number %[2]d of the acquisition. No request acquired the lock within %[3]v.",
					"进程在加锁的第 %[2]d 条命令 %[1]s 之前被杀死，此后 %[3]v 内没有请求拿到锁。", held.name(), held.nth, grantBound)))(p)
			}
		}),
	}
}
