package experiment

import "oversell/api"

// pause freezes the holder's process after its last check of the lock, until its lease has ended.
func pause() Experiment {
	return Experiment{
		Hazard: "pause", Group: holderFails, Basic: true, Applies: always, Fenced: true,
		Title: api.Text{EN: "the holder pauses past the end of its lease, then writes", ZH: "持锁者停顿超过租期后继续写入"},
		Shows: api.Text{EN: "two holders, and the late write wins", ZH: "两个持锁者，迟到的写入覆盖了别人的写入"},
		step:  "writing", contenderParams: wait(grantBound),
		inject: freezeHolders, meanwhile: leasesEnd, lapse: pauseLapse(),
	}
}
