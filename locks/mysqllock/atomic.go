package mysqllock

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/locks"
	"oversell/stock"
)

// Atomic is the lock that you did not need: one UPDATE that looks and writes at once. The
// database holds the row's lock for as long as that takes, and no round trip longer.
func Atomic(db *gorm.DB) locks.Strategy { return &atomic{db, stock.NewLedger(db)} }

type atomic struct {
	db     *gorm.DB
	ledger *stock.Ledger
}

func (s *atomic) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key := locks.Key(o.Product)
	locks.Trace(ctx, locks.Asked, key, o.Owner, 0)
	// Nothing is held meanwhile, and nothing is known yet: there may be no piece left
	// for what was prepared here.
	if err := locks.Work(ctx, o.Work); err != nil {
		return r, err
	}
	locks.Trace(ctx, locks.Writing, key, o.Owner, 0)
	began, patience := time.Now(), newBackoff(o.Wait)
	for {
		r.Waited = time.Since(began) - r.Pooled
		r.Remaining, err = s.write(ctx, o, &r, patience.left())
		// Somebody else's transaction has the row, longer than InnoDB waits.
		if !stock.IsContention(err) {
			break
		}
		r.Retries++
		if !patience.pause(ctx) {
			return r, fmt.Errorf("%w: %w", locks.NotAcquired(ctx, key, o.Wait), err)
		}
	}
	if err == nil {
		locks.Trace(ctx, locks.Written, key, o.Owner, 0)
	}
	return r, err
}

// write returns what it left. To read that afterwards would be a lie: by then others have
// bought. LAST_INSERT_ID(x) is x, and has the server send it along with its "OK", which is
// the only way MySQL knows, having no UPDATE … RETURNING. It means nothing where no row was
// found; and an INSERT that follows on this connection finds it in LAST_INSERT_ID() still.
func (s *atomic) write(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) (remaining int, err error) {
	done, err := statement(ctx, s.db, r, wait,
		"UPDATE db_stock SET count = LAST_INSERT_ID(count - ?) WHERE id = ? AND count >= ?", o.Qty, o.Product, o.Qty)
	if err != nil {
		return 0, err
	}
	if found, _ := done.RowsAffected(); found == 1 { // the driver has both at hand, and no error
		left, _ := done.LastInsertId()
		return int(left), nil
	}
	// Too few, or no such product? Whatever is there by now, it was too few just then.
	if _, err := s.ledger.Read(ctx, o.Product); err != nil {
		return 0, err
	}
	return 0, stock.ErrSoldOut
}

func (*atomic) Card() locks.Card {
	return locks.Card{
		ID: "atomic", Family: "mysql", Source: "beyond", Scope: locks.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, CriticalStep: locks.Writing,
		Title: locks.Text{EN: "One conditional UPDATE", ZH: "一条条件 UPDATE"},
		Summary: locks.Text{
			EN: "UPDATE … SET count = count - 1 WHERE count >= 1: look and write in one statement, the lock you did not need. It holds nothing, so extra work comes before it.",
			ZH: "UPDATE … SET count = count - 1 WHERE count >= 1：一条语句里既判断又写入，根本不用锁。它什么也不占着，额外的工作放在写入之前。",
		},
		Protects: []locks.Hazard{locks.Race, locks.ReplicaRace, locks.Crash, locks.Pause},
		Breaks:   []locks.Break{},
	}
}
