package mysqllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Reservation reserves the pieces, does the work, and then confirms the sale, as a shop does
// between the basket and the payment. During the work, no transaction is open and no other request
// waits. A reservation that is not confirmed expires with its lease, and its pieces are for sale
// again. Each piece is for sale, reserved, or sold (O'Neil's escrow method, 1986).
func Reservation(db *gorm.DB, lease time.Duration) locks.Strategy {
	return &reservation{db, lease}
}

type reservation struct {
	db    *gorm.DB
	lease time.Duration
}

// reserved is a step: the sale has made its reservation, and has not started its work.
const reserved api.Step = "reserved"

type booking struct{ ID, Product, Qty int64 }

func (s *reservation) Deduct(ctx context.Context, o stock.Order) (r stock.Receipt, err error) {
	key := api.Key(o.Product)
	r.Remaining = stock.Uncounted // unknown, because reserved pieces may be sold or returned
	o.Lease = cmp.Or(o.Lease, s.lease)
	locks.Trace(ctx, api.Asked, key, o.Owner, 0)
	pieces, err := s.reserve(ctx, o, &r)
	if err != nil {
		return r, err
	}
	began := time.Now()
	defer func() { r.Held = time.Since(began) }()
	locks.Trace(ctx, reserved, key, o.Owner, 0)
	err = locks.Work(ctx, o.Work)
	if err == nil {
		locks.Trace(ctx, api.Writing, key, o.Owner, 0)
		err = s.confirm(ctx, pieces, o.Lease)
	}
	if err == nil {
		locks.Trace(ctx, api.Written, key, o.Owner, 0)
		return r, nil
	}
	if locks.NothingTaken(err) {
		s.giveUp(ctx, pieces, o.Lease)
	}
	return r, err
}

// giveUp returns the pieces to the stock now, instead of when the reservation expires.
func (s *reservation) giveUp(ctx context.Context, pieces booking, lease time.Duration) {
	_ = locks.GiveBack(ctx, time.Now().Add(lease), func(ctx context.Context) error { return s.putBack(ctx, pieces, true) })
}

// reserve makes the reservation. If reserve returns an error, no piece was sold.
func (s *reservation) reserve(ctx context.Context, o stock.Order, r *stock.Receipt) (pieces booking, err error) {
	pauses := newBackoff(o.Wait)
	err = pauses.retry(ctx, o, r, func(time.Duration) (err error) {
		for {
			asked, pooled := time.Now(), r.Pooled
			pieces, err = s.setAside(ctx, o, r, pauses.left())
			r.Waited += time.Since(asked) - (r.Pooled - pooled)
			if errors.Is(err, stock.ErrSoldOut) {
				err = s.returnExpired(ctx, o)
			}
			if !errors.Is(err, errReturned) {
				return err
			}
		}
	})
	if err != nil && !locks.NothingTaken(err) {
		// After a lost answer, giveUp returns the pieces. After a failed COMMIT, giveUp finds no row.
		s.giveUp(ctx, pieces, o.Lease)
		err = stock.NothingWritten(ctx, err)
	}
	return pieces, err
}

// setAside changes the stock row last, because all requests wait for that row until the COMMIT.
func (s *reservation) setAside(ctx context.Context, o stock.Order, r *stock.Receipt, wait time.Duration) (pieces booking, err error) {
	err = locks.InTransaction(ctx, s.db, o, r, wait, func(tx *gorm.DB) error {
		conn := tx.Statement.ConnPool
		inserted, err := conn.ExecContext(ctx,
			"INSERT INTO db_reservations (product, qty, expires_at) VALUES (?, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)",
			o.Product, o.Qty, o.Lease.Microseconds())
		if err != nil {
			return err
		}
		taken, err := conn.ExecContext(ctx,
			"UPDATE db_stock SET count = count - ? WHERE id = ? AND count >= ?", o.Qty, o.Product, o.Qty)
		if err != nil {
			return err
		}
		if found, _ := taken.RowsAffected(); found == 0 { // the driver never returns an error
			return stock.ErrSoldOut
		}
		id, _ := inserted.LastInsertId()
		pieces = booking{id, o.Product, int64(o.Qty)}
		return nil
	})
	return pieces, err
}

// confirm sells the pieces: it deletes the reservation, unless the reservation has expired by the
// database's clock. DANGER: a check of the process's clock is not enough, because the process may
// be paused past its lease after the check.
func (s *reservation) confirm(ctx context.Context, pieces booking, wait time.Duration) error {
	var r stock.Receipt // not the caller's receipt: this wait for a connection is part of Held
	done, err := statement(ctx, s.db, &r, wait,
		"DELETE FROM db_reservations WHERE id = ? AND expires_at > UTC_TIMESTAMP(6)", pieces.ID)
	if err != nil {
		return err
	}
	if found, _ := done.RowsAffected(); found == 0 {
		return fmt.Errorf("%w: the reservation expired before it was confirmed", locks.ErrLost)
	}
	return nil
}

// errReturned means that pieces of expired reservations are for sale again, so there may be enough.
var errReturned = fmt.Errorf("%w: reservations have expired", stock.ErrConflict)

// returnExpired moves expired reservations to db_stock and returns errReturned, or ErrSoldOut if
// even those pieces are too few. Sales call returnExpired, so no background process is needed.
func (s *reservation) returnExpired(ctx context.Context, o stock.Order) error {
	total, err := s.Count(ctx, o.Product)
	if err != nil {
		return err
	}
	if total < o.Qty {
		return stock.ErrSoldOut
	}
	var expired []booking
	err = s.db.WithContext(ctx).Raw(
		"SELECT id, product, qty FROM db_reservations WHERE product = ? AND expires_at <= UTC_TIMESTAMP(6)", o.Product).Scan(&expired).Error
	for _, pieces := range expired {
		err = errors.Join(err, s.putBack(ctx, pieces, false))
	}
	if err != nil {
		return stock.NothingWritten(ctx, err)
	}
	return errReturned
}

// putBack returns the pieces of a reservation to db_stock, if own is true or the reservation has
// expired. Only the transaction that deletes a reservation's row sells or returns its pieces.
func (s *reservation) putBack(ctx context.Context, pieces booking, own bool) error {
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		gone := tx.Exec("DELETE FROM db_reservations WHERE id = ? AND (? OR expires_at <= UTC_TIMESTAMP(6))", pieces.ID, own)
		if gone.Error != nil || gone.RowsAffected == 0 {
			return gone.Error
		}
		return tx.Exec("UPDATE db_stock SET count = count + ? WHERE id = ?", pieces.Qty, pieces.Product).Error
	})
}

// Count returns the number of pieces for sale, in db_stock and in expired reservations.
func (s *reservation) Count(ctx context.Context, product int64) (count int, err error) {
	row := s.db.WithContext(ctx).Raw(`SELECT count + (
		SELECT COALESCE(SUM(qty), 0) FROM db_reservations WHERE product = s.id AND expires_at <= UTC_TIMESTAMP(6)
	) FROM db_stock s WHERE id = ?`, product).Row()
	err = row.Scan(&count)
	return count, stock.NothingWritten(ctx, stock.Found(product, err))
}

// Holds returns false for reservations of requests that run: they sell or return their pieces.
func (s *reservation) Holds(ctx context.Context, product int64) (expired bool, err error) {
	err = s.db.WithContext(ctx).Raw("SELECT EXISTS (SELECT 1 FROM db_reservations "+
		"WHERE product = ? AND expires_at <= UTC_TIMESTAMP(6))", product).Row().Scan(&expired)
	return expired, err
}

func (*reservation) Restock(tx *gorm.DB, product int64) error {
	return tx.Exec("DELETE FROM db_reservations WHERE product = ?", product).Error
}

func (*reservation) Card() api.Card {
	return api.Card{
		ID: "reservation", Family: "mysql", Source: "O'Neil 1986", Scope: api.ScopeShared, Safe: true,
		Backends: []string{"mysql"}, Lease: true, LeasePerRequest: true, CriticalStep: reserved,
		Title: api.Text{EN: "Reserve, then confirm", ZH: "先预留，再确认"},
		Summary: api.Text{
			EN: "Pieces are reserved until a deadline, and a confirmation before it sells them. A late confirmation is rejected, and expired reservations return to the stock. To other requests, reserved pieces are sold out.",
			ZH: "先把商品预留到截止时间，按时确认才算卖出；迟到的确认会被拒绝，过期的预留退回库存。预留期间，其他请求看到的是售罄。",
		},
		When: api.Text{
			EN: "Choose it if a sale takes seconds or minutes, such as a payment by the customer. The reservation must last longer than that.",
			ZH: "一次销售要几秒到几分钟（例如等顾客付款）时选它。预留的期限必须比这更长。",
		},
		Protects: []api.Hazard{api.Race, api.ReplicaRace, api.Crash, api.Pause},
		Breaks: []api.Break{{Hazard: api.Overrun, Why: api.Text{
			EN: "If the work takes longer than the reservation, it is wasted: the confirmation is rejected.",
			ZH: "工作时间超过预留期限，确认被拒绝，工作作废。",
		}}},
	}
}
