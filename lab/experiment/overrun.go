package experiment

import (
	"net/url"

	"oversell/api"
)

func overrun() Experiment {
	expired := &finding{api.Aborted, "", api.Text{
		EN: "The lease expired before the work finished, and the holder did not write.",
		ZH: "工作完成之前租期已过，持锁者没有写入。",
	}}
	return Experiment{
		Hazard: "overrun", Group: holderFails, Basic: true, Applies: lockers,
		Title: api.Text{EN: "work longer than the lease", ZH: "工作时间比租期长"},
		Shows: api.Text{EN: "the lease expires while the holder works", ZH: "持锁者还在工作，租期已到"},
		step:  "read", holderParams: url.Values{"hold": {(2 * Lease).String()}}, contenderParams: wait(grantBound),
		lapse:  api.Text{EN: "The holder's lease expired during its work, and it wrote anyway.", ZH: "工作期间租期已过，持锁者仍然写入。"},
		inject: resumeHolders, judge: mustSell(expired, holder),
	}
}
