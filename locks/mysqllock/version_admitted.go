package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// VersionAdmitted adds admission control to the compare-and-set of Version. In each process, one
// request per product tries at a time, in order of arrival, until its sale has an outcome. (Of two
// attempts at once, one always fails.) Each replica also limits its share of time for attempts,
// without messages. A sale adds a constant to the share, and a conflict multiplies the share by a
// factor below 1. This is AIMD, with which TCP senders reach fair shares of a link (Chiu, Jain,
// 1989).
func VersionAdmitted(db *gorm.DB) locks.Strategy {
	return &versionAdmitted{cas: version{db, stock.NewLedger(db)}, paces: map[int64]*pace{}}
}

type versionAdmitted struct {
	cas   version
	turns locks.FIFOMutex
	mu    sync.Mutex
	paces map[int64]*pace // of the products that have requests
}

func (s *versionAdmitted) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began, key := time.Now(), api.Key(o.Product)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	p := s.enter(o.Product)
	defer s.leave(o.Product, p)
	done, err := s.turns.Take(ctx, key, o.Wait)
	r.Waited = time.Since(began)
	if err != nil {
		return r, err
	}
	defer done()
	for {
		if err := p.pause(ctx, o.Wait-time.Since(began)); err != nil {
			return r, err
		}
		err = s.cas.try(ctx, o, began, &r)
		p.adjust(r.Held, err)
		if !errors.Is(err, stock.ErrConflict) {
			return r, err
		}
		r.Retries++
		if time.Since(began) >= o.Wait {
			return r, fmt.Errorf("every attempt failed (%d in %v): %w", r.Retries, o.Wait, err)
		}
	}
}

// pace limits this process's attempts for a product. Only the admitted request uses share and took.
type pace struct {
	requests int           // of this process for the product; guarded by versionAdmitted.mu
	share    float64       // the part of the time during which this process tries
	took     time.Duration // mean time of an attempt
}

// A sale adds raise to the share of time for attempts, and a conflict multiplies the share by cut.
// Raise and cut balance if two of three attempts fail. With fewer failures (three replicas), the
// share rises: a pause costs more than it saves. With ten replicas, retries are halved.
const (
	smallestShare = 1.0 / 16
	raise         = 1.0 / 2
	cut           = 3.0 / 4
)

// pause waits a random time before an attempt, so that two replicas do not collide repeatedly.
func (p *pace) pause(ctx context.Context, left time.Duration) error {
	mean := time.Duration(float64(p.took) * (1/p.share - 1))
	if mean <= 0 || left <= 0 {
		return nil
	}
	return locks.Work(ctx, min(locks.Jitter(ctx, 2*mean), left))
}

// adjust changes the share only after a sale or a conflict. Other outcomes show no contention.
func (p *pace) adjust(took time.Duration, err error) {
	switch {
	case err == nil:
		p.share = min(1, p.share+raise)
	case errors.Is(err, stock.ErrConflict):
		p.share = max(smallestShare, p.share*cut)
	}
	p.took += (took - p.took) / 8
}

// enter and leave keep the pace of a product in the map while the product has requests.
func (s *versionAdmitted) enter(product int64) *pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.paces[product]
	if p == nil {
		p = &pace{share: 1}
		s.paces[product] = p
	}
	p.requests++
	return p
}

func (s *versionAdmitted) leave(product int64, p *pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.requests--; p.requests == 0 {
		delete(s.paces, product)
	}
}

func (*versionAdmitted) Card() api.Card {
	return api.Card{
		ID: "version-admitted", Family: "mysql", Source: "Chiu, Jain 1989", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Read,
		Title: api.Text{EN: "Version, one at a time in each replica", ZH: "乐观锁加准入控制"},
		Summary: api.Text{
			EN: "The compare-and-set of version, but in each replica one request at a time tries. After conflicts, replicas try less often.",
			ZH: "同样比较 version 再写入，但每个副本一次只放一个请求去试；冲突多了，副本就自动放慢。",
		},
		When: api.Text{
			EN: "Choose it if conflicts are frequent and you must keep the version column. If you may lock the row, `for-update` is simpler.",
			ZH: "冲突频繁、又必须保留版本号时选它。如果可以锁行，`for-update` 更简单。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
