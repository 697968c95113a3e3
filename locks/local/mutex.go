package local

import (
	"context"
	"time"

	"oversell/api"
	"oversell/locks"
)

// Mutex is a lock in this process's memory (tutorial 1.4, 1.5). So three replicas have three locks.
func Mutex() locks.Locker { return &mutex{} }

type mutex struct{ turns locks.FIFOMutex }

func (m *mutex) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	leave, err := m.turns.Take(ctx, r.Key, r.Wait)
	if err != nil {
		return nil, err
	}
	return locks.NewLock(ctx, locks.Grant{
		Key: r.Key, Owner: r.Owner, Asked: time.Now(),
		Release: func(context.Context) error {
			leave()
			return nil
		},
	}), nil
}

func (*mutex) Card() api.Card {
	return api.Card{
		ID: "mutex", Family: "local", Source: "1.4, 1.5", Scope: api.ScopeProcess,
		Core: true, Backends: []string{"mysql"}, Locker: true,
		Title: api.Text{EN: "A mutex in each process", ZH: "进程内互斥锁"},
		Summary: api.Text{
			EN: "One request at a time in each replica. With three replicas, three requests at a time.",
			ZH: "每个进程内一次只放行一个请求；三个副本就同时放行三个。",
		},
		When: api.Text{
			EN: "Choose it only if a single process writes the stock. With several replicas it oversells: use `for-update` or `redis` instead.",
			ZH: "只有一个进程写库存时才用。有多个副本就会超卖，请改用 `for-update` 或 `redis`。",
		},
		Protects: []api.Hazard{api.Race},
		Breaks: []api.Break{{Hazard: api.ReplicaRace, Why: api.Text{
			EN: "The lock is in the memory of one process. Each other replica has a lock of its own.",
			ZH: "锁只存在于一个进程的内存里，其他副本各有自己的锁。",
		}}},
		Tutorial: []api.Figure{
			{Note: api.Text{EN: "one server", ZH: "一台服务器"}, Throughput: 82.2, MedianMS: 1144, Remaining: 0},
			{Note: api.Text{EN: "three servers", ZH: "三台服务器"}, Throughput: 85.5, MedianMS: 1082, Remaining: 1425},
		},
	}
}
