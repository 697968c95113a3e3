package zklock

import (
	"oversell/api"
	"oversell/locks"
)

// Mutex locks as Curator's InterProcessSemaphoreMutex does (tutorial 4.6.2): the lock of
// zk.go, without re-entry. (Curator makes it of a semaphore with one permit; here it is the
// same queue of nodes.)
func Mutex(s *Session) locks.Locker { return &mutex{zkLock{session: s, root: mutexRoot}} }

// DANGER: nothing here checks whether r.Owner holds the key already. An owner that acquires
// again queues behind its own node and waits for itself until its wait is over. ZK prevents
// that by locks.Reentrant.
type mutex struct{ zkLock }

const mutexRoot = "/oversell/zk-mutex/"

func (*mutex) Card() api.Card {
	return api.Card{
		ID: "zk-mutex", Family: "zookeeper", Source: "4.6.2", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql", "zookeeper"}, Locker: true,
		Lease: true, Renews: true, Fenced: true, Fair: true,
		Title: api.Text{EN: "ZooKeeper, not re-entrant", ZH: "ZooKeeper 不可重入锁"},
		Summary: api.Text{
			EN: "The same queue of nodes as zk, listed again after a wake-up, but the owner may not acquire again.",
			ZH: "与 zk 相同的一排节点，也会再看一次，但同一持有者不能再次加锁。",
		},
		Protects: []api.Hazard{
			api.Race, api.ReplicaRace, api.Crash, api.Overrun, api.Failover, api.MinorityLoss,
			api.ClockJump, api.DeadWaiter, api.SessionExpiry, api.Cutoff, api.LostReply, api.Herd,
		},
		Breaks: []api.Break{
			{Hazard: api.Nesting, Why: api.Text{
				EN: "An owner that acquires again queues behind itself.",
				ZH: "持有者再次加锁，就排在自己后面。",
			}},
			{Hazard: api.Pause, Why: api.Text{
				EN: "A holder that sleeps past its session still writes when it wakes up, unless the write is fenced.",
				ZH: "持有者停顿超过会话时限，醒来后照样写入，除非写入带栅栏号。",
			}},
		},
	}
}
