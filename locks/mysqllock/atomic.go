package mysqllock

import (
	"context"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Atomic needs no explicit lock, because one UPDATE checks and writes the count. The database locks
// the row for this statement only, not for a round trip.
func Atomic(db *gorm.DB) locks.Strategy { return &atomic{db, stock.NewLedger(db)} }

type atomic struct {
	db     *gorm.DB
	ledger *stock.Ledger
}

func (s *atomic) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	err = workThenWrite(ctx, o, &r, func(wait time.Duration) (err error) {
		r.Remaining, err = s.write(ctx, o, &r, wait)
		return err
	})
	return r, err
}

// write returns the remaining count. A read after the UPDATE would include later sales.
// LAST_INSERT_ID(x) makes the server send x with its answer; MySQL has no UPDATE … RETURNING.
func (s *atomic) write(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) (remaining int, err error) {
	left, found, err := lastInsertID(statement(ctx, s.db, r, wait,
		"UPDATE db_stock SET count = LAST_INSERT_ID(count - ?) WHERE id = ? AND count >= ?", o.Qty, o.Product, o.Qty))
	if err != nil || found {
		return int(left), err
	}
	// There are too few pieces, or there is no such product.
	if _, err := s.ledger.Read(ctx, o.Product); err != nil {
		return 0, err
	}
	return 0, stock.ErrSoldOut
}

func (*atomic) Card() api.Card {
	return api.Card{
		ID: "atomic", Family: "mysql", Source: "beyond", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: api.Writing,
		Title: api.Text{EN: "One conditional UPDATE", ZH: "一条条件 UPDATE"},
		Summary: api.Text{
			EN: "UPDATE … SET count = count - 1 WHERE count >= 1: one statement checks and writes, and no lock is needed. Extra work is done before the statement, while nothing is locked.",
			ZH: "UPDATE … SET count = count - 1 WHERE count >= 1：一条语句里既判断又写入，不需要额外加锁。额外的工作在这条语句之前完成，期间不占用任何锁。",
		},
		When: api.Text{
			EN: "Choose it first: if one UPDATE can check and write, you need no lock. If several rows must change together, use `for-update`.",
			ZH: "首选：一条 UPDATE 就能判断并写入，不需要锁。要一起改好几行，就用 `for-update`。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks:   []api.Break{},
	}
}
