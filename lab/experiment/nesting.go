package experiment

import (
	"net/url"

	"oversell/api"
)

func nesting() Experiment {
	waited := stalled(api.Text{EN: "The holder waited for its own lock.", ZH: "持锁者在等待自己的锁。"})
	return Experiment{
		Hazard: "nesting", Group: faultless, Applies: lockers,
		Title: api.Text{EN: "the holder acquires its lock again", ZH: "持锁者再次加锁"},
		Shows: api.Text{EN: "a holder that waits for itself", ZH: "自己等待自己"},
		step:  "asked", holderParams: url.Values{"nested": {"true"}, "wait": {(Lease / 2).String()}}, contenderParams: wait(grantBound),
		inject: resumeHolders, judge: mustSell(waited, holder),
	}
}
