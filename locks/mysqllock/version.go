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

// Version locks nothing. A sale writes only if the row still has the version that the sale has read
// (tutorial 1.6.2). After a conflict the sale reads again, in a new snapshot. One REPEATABLE READ
// transaction would read the old version for ever.
func Version(db *gorm.DB) locks.Strategy { return &version{db, stock.NewLedger(db)} }

type version struct {
	db     *gorm.DB
	ledger *stock.Ledger
}

func (s *version) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	began, pauses := time.Now(), newBackoff(o.Wait)
	locks.Trace(ctx, api.Asked, api.Key(o.Product), o.Owner, 0)
	for {
		err = s.try(ctx, o, began, &r)
		if !errors.Is(err, stock.ErrConflict) {
			return r, err
		}
		r.Retries++
		if !pauses.pause(ctx) {
			return r, fmt.Errorf("every attempt failed (%d in %v): %w", r.Retries, o.Wait, err)
		}
	}
}

// try does one compare-and-set. It returns ErrConflict if the row has changed since the read.
func (s *version) try(ctx context.Context, o stock.Order, began time.Time, r *stock.Receipt) error {
	key, tried := api.Key(o.Product), time.Now()
	r.Waited = tried.Sub(began)
	defer func() { r.Held = time.Since(tried) }()
	item, err := s.ledger.Read(ctx, o.Product)
	if err != nil {
		return err
	}
	locks.Trace(ctx, api.Read, key, o.Owner, 0)
	if item.Count < o.Qty {
		return stock.ErrSoldOut
	}
	if err := locks.Work(ctx, o.Work); err != nil {
		return err
	}
	locks.Trace(ctx, api.Writing, key, o.Owner, 0)
	tx := s.db.WithContext(ctx).Exec(
		"UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ? AND count >= ?",
		item.Count-o.Qty, o.Product, item.Version, o.Qty)
	switch {
	case tx.Error != nil:
		return stock.Indeterminate(tx.Error)
	case tx.RowsAffected == 0:
		return fmt.Errorf("%w: the version of the row is no longer %d", stock.ErrConflict, item.Version)
	}
	locks.Trace(ctx, api.Written, key, o.Owner, 0)
	r.Remaining = item.Count - o.Qty
	return nil
}

func (*version) Card() api.Card {
	return api.Card{
		ID: "version", Family: "mysql", Source: "1.6.2", Scope: api.ScopeShared, Safe: true,
		Core: true, Backends: []string{"mysql"}, CriticalStep: api.Read,
		Title: api.Text{EN: "Version, compare and set", ZH: "乐观锁 version"},
		Summary: api.Text{
			EN: "Read count and version. Write only if the version has not changed, otherwise start again.",
			ZH: "读出库存和版本号，版本没变才写入，变了就重来。",
		},
		When: api.Text{
			EN: "Choose it if conflicts are rare, or if a user works between the read and the write. If conflicts are frequent, use `for-update`.",
			ZH: "冲突很少，或者读和写之间要等用户操作时选它。冲突频繁就用 `for-update`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks: []api.Break{{Hazard: api.CASStorm, Why: api.Text{
			EN: "Of all requests that read the same version, one succeeds. The work of the others is wasted, and they retry together with new requests.",
			ZH: "读到同一版本的请求只有一个成功，其余请求的工作全部作废，还要和新请求一起重试。",
		}}},
		Tutorial: []api.Figure{}, // the tutorial measured version-naive, which does not pause
	}
}
