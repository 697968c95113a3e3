package zklock

import (
	"oversell/api"
	"oversell/locks"
)

// Mutex is the lock of ZK without re-entry, like Curator's InterProcessSemaphoreMutex (tutorial
// 4.6.2). Curator uses a semaphore with one permit, and Mutex uses the queue of nodes of ZK.
func Mutex(s *Session) locks.Locker { return &mutex{zkLock{session: s, root: "/oversell/zk-mutex/"}} }

// DANGER: mutex does not check whether r.Owner holds the key already. An owner that acquires again
// queues behind its own node and waits for itself until its wait is over. ZK prevents this with
// locks.Reentrant.
type mutex struct{ zkLock }

func (*mutex) Card() api.Card {
	return card(api.Card{
		ID: "zk-mutex", Aside: true, Source: "4.6.2", Fenced: true, Fair: true,
		Title: api.Text{EN: "ZooKeeper, not re-entrant", ZH: "ZooKeeper 不可重入锁"},
		Summary: api.Text{
			EN: "The same queue of nodes as zk, listed again after a wake-up, but the owner may not acquire again.",
			ZH: "与 zk 相同的一排节点，也会再看一次，但同一持有者不能再次加锁。",
		},
		When: api.Text{
			EN: "Choose it instead of `zk` if an owner must never hold the lock twice. If methods with the lock call each other, use `zk`.",
			ZH: "不允许同一持有者重复加锁时，用它代替 `zk`。持锁的方法会互相调用，就用可重入的 `zk`。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Herd,
			api.Operator, api.Starved, api.WaiterSession,
		},
	}, api.Nesting, api.Pause)
}
