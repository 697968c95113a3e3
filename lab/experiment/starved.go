package experiment

import (
	"net/url"

	"oversell/api"
)

// starved freezes the holder while it works, until another request has sold (samcook/RedLock.net#48,
// redis/rueidis#923: a renewal that runs late). Its renewal then finds no lock, and must not acquire
// it again. Unlike in pause, the holder can still check its lock before it writes.
func starved() Experiment {
	return Experiment{
		Hazard: "starved", Group: reported, Applies: func(c Card) bool { return c.Locker && c.Lease }, Fenced: true,
		Title: api.Text{
			EN: "the holder's process gets no processor until its lease has ended, then works on",
			ZH: "持锁者的进程一直分不到 CPU，租期结束后才继续工作",
		},
		Shows: api.Text{EN: "does a late renewal, or the clock, stop its write?", ZH: "迟到的续期或时钟能阻止它写入吗？"},
		step:  "read", holderParams: url.Values{"hold": {(Lease / 2).String()}}, contenderParams: wait(grantBound),
		inject: freezeHolders, lapse: pauseLapse(),
	}
}
