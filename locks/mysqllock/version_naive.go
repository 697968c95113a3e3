package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// VersionNaive repeats the compare-and-set of Version at once after a conflict (tutorial 1.6.2).
// Only the order's wait limits the attempts. The tutorial's recursion overflows the stack.
func VersionNaive(db *gorm.DB) locks.Strategy {
	return &versionNaive{version{db, stock.NewLedger(db)}}
}

type versionNaive struct{ cas version }

func (s *versionNaive) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began := time.Now()
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	for {
		err = s.cas.try(ctx, o, began, &r)
		if !errors.Is(err, stock.ErrConflict) {
			return r, err
		}
		r.Retries++
		// DANGER: there is no pause. Of a hundred concurrent attempts, one succeeds. The failed
		// attempts keep the database busy: the more clients, the fewer sales.
		if time.Since(began) >= o.Wait {
			return r, fmt.Errorf("every attempt failed (%d in %v): %w", r.Retries, o.Wait, err)
		}
	}
}

func (*versionNaive) Card() api.Card {
	return api.Card{
		ID: "version-naive", Family: "mysql", Source: "1.6.2", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Slow: true, CriticalStep: api.Read,
		Title: api.Text{EN: "Version, retried at once", ZH: "乐观锁，失败立即重试"},
		Summary: api.Text{
			EN: "The compare-and-set of version. After a conflict, a request starts again without a pause, until its wait is over.",
			ZH: "同样比较 version 再写入；失败的不停顿，立即重来，直到等待时间用完。",
		},
		When: api.Text{
			EN: "Not for production: under load, most attempts fail and keep the database busy. Use `version` if conflicts are rare, otherwise `for-update`.",
			ZH: "不要用于生产环境：请求一多，绝大多数尝试都失败，白白占用数据库。冲突少用 `version`，否则用 `for-update`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks: []api.Break{{Hazard: api.CASStorm, Why: api.Text{
			EN: "All requests with a conflict try again at once: dozens of attempts for each sale, and some requests give up although there is stock.",
			ZH: "失败的请求立即重试：卖出一件要尝试几十次，有的请求等到放弃时，其实还有库存。",
		}}},
		Tutorial: []api.Figure{
			{Note: api.Text{EN: "100 clients", ZH: "100 个客户端"}, Throughput: 70.0, MedianMS: 42, Remaining: 0},
			{Note: api.Text{EN: "few clients", ZH: "客户端较少"}, Throughput: 190.0, MedianMS: 47, Remaining: 0},
		},
	}
}
