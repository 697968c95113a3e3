package zklock

import (
	"oversell/api"
	"oversell/locks"
)

// Multi locks a product and its warehouse together, both or none, each as ZK
// locks one path (tutorial 4.6.4, Curator's InterProcessMultiLock).
func Multi(s *Session) locks.Locker {
	return locks.Multi(multiCard(), ZK(s), productAndWarehouse)
}

// productAndWarehouse has names of its own, for the inner lock's would be those
// of a sale that only locks the product.
func productAndWarehouse(key string) []string {
	product := "zk-multi:" + key
	return []string{product, product + ":warehouse"}
}

func multiCard() api.Card {
	return api.Card{
		ID: "zk-multi", Family: "zookeeper", Source: "4.6.4", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		// Not Fair: who is first at the product may still be second at the warehouse.
		Lease: true, Renews: true, Reentrant: true, Fenced: true,
		Title: api.Text{EN: "ZooKeeper, several paths together", ZH: "ZooKeeper 联锁（MultiLock）"},
		Summary: api.Text{
			EN: "A sale locks its product and the warehouse, both or none, always in the same order, and loses both when one is lost.",
			ZH: "一次销售同时锁住商品和仓库，要么全锁要么全不锁，顺序固定；丢了一把就算全丢。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss, api.ClockJump,
			api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Nesting, api.Herd, api.Deadlock,
		},
		Breaks: []api.Break{{Hazard: api.Pause, Why: api.Text{
			EN: "A holder that sleeps past its session still writes when it wakes up, unless the write is fenced.",
			ZH: "持有者停顿超过会话时限，醒来后照样写入，除非写入带栅栏号。",
		}}},
	}
}
