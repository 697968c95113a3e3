package experiment

import (
	"time"

	"oversell/api"
)

// earlyRelease pauses the holder between the release of its lock and its commit, until the
// contender (the second request) has read the stock.
func earlyRelease() Experiment {
	return Experiment{
		Hazard: "early-release", Group: faultless, Applies: always,
		Title: api.Text{EN: "unlock before commit", ZH: "先解锁，后提交"},
		Shows: api.Text{EN: "a lost update in spite of the lock", ZH: "加了锁，仍然超卖"},
		step:  "released", sameReplica: true, contenderAt: "writing", contenderParams: wait(5 * time.Second),
	}
}
