package experiment

import "oversell/api"

func crash() Experiment {
	late := stalled(api.Textf(
		"No request acquired the lock within %v after the holder was killed.",
		"持锁者被杀死后 %v 内没有请求拿到锁。", grantBound))
	return Experiment{
		Hazard: "crash", Group: holderFails, Basic: true, Applies: always,
		Title: api.Text{EN: "the holder's process is killed", ZH: "持锁者的进程被杀死"},
		Shows: api.Text{EN: "how long the others wait for the lock of a dead holder", ZH: "其他请求要等多久才能拿到锁"},
		step:  "granted", contenderParams: wait(grantBound), inject: killReplica(holder),
		judge: func(p *participant) *finding {
			if p.stopped[holder] == "" { // it had sold before, and its process died with nothing to lose
				return neverStopped()
			}
			return mustSellInTime(late)(p)
		},
	}
}
