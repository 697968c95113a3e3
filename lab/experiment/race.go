package experiment

import (
	"time"

	"oversell/api"
)

func race() Experiment {
	return Experiment{
		Hazard: "race", Group: faultless, Basic: true, Applies: always,
		Title: api.Text{EN: "two requests in one process", ZH: "同一进程里的两个请求"},
		Shows: api.Text{EN: "a lost update: 2 sold, 1 taken from stock", ZH: "卖出两件，库存只减少一件"},
		step:  "read", sameReplica: true, contenderParams: wait(500 * time.Millisecond),
	}
}

func replicaRace() Experiment {
	return Experiment{
		Hazard: "replica-race", Group: faultless, Basic: true, Applies: always,
		Title: api.Text{EN: "two requests on two replicas", ZH: "两个副本上的两个请求"},
		Shows: api.Text{EN: "correct on one replica, broken on two", ZH: "一个副本时正确，两个副本时出错"},
		step:  "read", contenderParams: wait(500 * time.Millisecond),
	}
}
