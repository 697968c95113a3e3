package zklock

import (
	"oversell/api"
	"oversell/locks"
)

// Multi locks a product and its warehouse together, both or none. Each of the two is a lock of
// ZK (tutorial 4.6.4, Curator's InterProcessMultiLock).
func Multi(s *Session) locks.Locker {
	return locks.Multi(multiCard(), ZK(s), productAndWarehouse)
}

// productAndWarehouse returns both keys, which the strategy zk does not use for its sales.
func productAndWarehouse(key string) []string {
	product := "zk-multi:" + key
	return []string{product, product + ":warehouse"}
}

func multiCard() api.Card {
	return card(api.Card{
		ID: "zk-multi", Source: "4.6.4", SeveralLocks: true,
		// Fair stays false: the first waiter for the product may be the second for the warehouse.
		Reentrant: true, Fenced: true,
		Title: api.Text{EN: "ZooKeeper, several paths together", ZH: "ZooKeeper 联锁（MultiLock）"},
		Summary: api.Text{
			EN: "A sale locks its product and the warehouse, both or none, always in the same order, and loses both when one is lost.",
			ZH: "一次销售同时锁住商品和仓库，要么全锁要么全不锁，顺序固定；丢了一把就算全丢。",
		},
		When: api.Text{
			EN: "Choose it if one operation must lock several things together, such as a product and its warehouse, and the locks must survive a dead server.",
			ZH: "一次操作要同时锁住几样东西（例如商品和仓库），而且节点宕机也不能丢锁时选它。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss, api.ClockJump,
			api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Nesting, api.Herd, api.Deadlock,
			api.Operator, api.Starved, api.WaiterSession,
		},
	}, api.Pause)
}
