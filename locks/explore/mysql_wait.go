package explore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// executed is a statement that was delivered, and the number of writes before it.
type executed struct {
	place  string
	tables []string
	before int
}

// execute waits until the schedule delivers a statement, and executes it. do returns whether rows have
// changed.
func (c *mysqlClient) execute(conn *gatedConn, s *statement, do func() (changes bool, err error)) error {
	c.mu.Lock()
	if !c.running {
		c.mu.Unlock()
		_, err := do()
		return err
	}
	if c.now != nil {
		c.mu.Unlock()
		return fmt.Errorf("explore: a client sends %q before the answer to %q", s.query, c.now.query)
	}
	c.sent[s.query]++
	s.n, s.conn, s.inTx, s.gate = c.sent[s.query], conn.id, conn.tx != nil, make(chan struct{})
	c.now = s
	c.change()
	c.mu.Unlock()
	<-s.gate
	changes, err := do()
	changes = changes || err != nil && !rejected(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.tx != nil {
		conn.tx.tables = append(conn.tx.tables, s.tables...)
	}
	switch {
	case s.kind != anything:
	case s.inTx: // it may have taken locks, and after an error the server may have ended the transaction
		c.writes = append(c.writes, conn.tx.tables)
	case changes:
		c.writes = append(c.writes, s.tables)
	}
	c.affect(s.accesses(changes))
	if c.effect.sender != c.index {
		c.effect.clients[c.index] = true
	}
	c.now = nil
	c.change()
	return err
}

// affect adds to the effect of the move. The caller must hold mu.
func (s *mysqlSchedule) affect(all []access) {
	for _, a := range all {
		s.touch(a.to, a.writes)
		s.effect.all = s.effect.all || a.to == everything
	}
}

// rejected reports whether the server has answered with an error. Outside of a transaction, such a
// statement has changed nothing.
func rejected(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer)
}

// polls reports whether a client would repeat a try that can only fail again. The caller must hold mu.
//
// A client that tries again and again would make the number of schedules infinite. But such a client
// comes back to the same place in its code, with the same arguments, outside of a transaction. If no
// write has changed the tables that it has used since it was there, the server gives the same answers,
// and the client will be here once more. So the state after this try is the state before it, and no
// outcome is lost if the client waits until a write has changed one of these tables.
//
// This holds for code that keeps nothing from one try to the next that decides what it does later,
// except for what is in the arguments.
func (c *mysqlClient) polls() bool {
	if c.now.inTx {
		return false
	}
	var tables []string
	for i := len(c.history) - 1; i >= 0; i-- {
		tables = append(tables, c.history[i].tables...)
		if c.history[i].place == c.now.place {
			written := func(w []string) bool { return overlap(w, tables) }
			return !slices.ContainsFunc(c.writes[c.history[i].before:], written)
		}
	}
	return false
}

// settle returns the moves of a state in which no client can go on by itself: each waits for the
// delivery of a statement, waits for a lock in the server, or has ended. There is no move if all have
// ended.
func (s *mysqlSchedule) settle() ([]move, error) {
	for {
		if err := s.rest(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		moves := s.moves()
		var waiting []*mysqlClient
		ended := true
		for _, c := range s.clients {
			ended = ended && c.done
			if !c.done && !c.now.delivered {
				waiting = append(waiting, c)
			}
		}
		s.mu.Unlock()
		switch {
		case len(moves) > 0 || ended:
			return moves, nil
		case len(waiting) == 0:
			return nil, fmt.Errorf("explore %s: all clients wait in the server", s.Strategy)
		}
		// All these clients would try for ever.
		for _, c := range waiting {
			c.giveUp()
			if err := c.deliver(); err != nil {
				return nil, err
			}
		}
	}
}

// rest waits until the code of all clients has sent a statement, or has ended. A client that pauses
// between two tries sleeps in real time. The pause has no effect on the server, so no order of
// statements is lost.
func (s *mysqlSchedule) rest() error {
	deadline := time.After(hangs)
	for {
		s.mu.Lock()
		changed := s.changed
		busy := slices.ContainsFunc(s.clients, func(c *mysqlClient) bool { return !c.done && c.now == nil })
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return fmt.Errorf("explore %s: a client has sent nothing for %v", s.Strategy, hangs)
		}
	}
}

// The server is asked whether a statement waits for a lock, after firstQuestion without an answer, and
// then after pauses that grow to lastQuestion.
const (
	firstQuestion = time.Millisecond
	lastQuestion  = 50 * time.Millisecond
	// detection is the time in which a server finds a deadlock of some clients while another client can
	// go on. (If none can, there is no limit.) MySQL looks for deadlocks in a thread of its own. If it
	// takes longer, the schedule is still one that the server allows, but the search may end with the
	// error that it cannot repeat it.
	detection = 20 * time.Millisecond
)

// answered waits until each delivered statement has its answer, or waits for a lock in the server. At
// least one client can go on then, because the server ends deadlocks.
func (s *mysqlSchedule) answered() error {
	deadline, pause := time.Now().Add(hangs), firstQuestion
	for time.Now().Before(deadline) {
		s.mu.Lock()
		changed, waiting := s.changed, []*statement(nil)
		canGoOn := false
		for _, c := range s.clients {
			switch {
			case c.now != nil && c.now.delivered:
				waiting = append(waiting, c.now)
			case !c.done:
				canGoOn = true
			}
		}
		s.mu.Unlock()
		if len(waiting) == 0 {
			return nil
		}
		if len(waiting) > 1 {
			pause = max(pause, detection)
		}
		select {
		case <-changed:
			pause = firstQuestion
			continue
		case <-time.After(pause):
			pause = min(2*pause, lastQuestion)
		}
		blocked, err := s.blocked(waiting)
		if err != nil {
			return err
		}
		select {
		case <-changed: // a lock was granted after the question
		default:
			if blocked && canGoOn {
				return nil
			}
		}
	}
	return fmt.Errorf("explore %s: a statement has no answer after %v, and waits for no lock", s.Strategy, hangs)
}

// blocked reports whether each of these statements waits for a lock in the server.
func (x *mysqlExecutor) blocked(waiting []*statement) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	defer cancel()
	rows, err := x.waitForRows(ctx)
	if err != nil {
		return false, err
	}
	reported := len(rows)
	inReport := func(s *statement) bool { return slices.Contains(rows, s.conn) }
	if slices.ContainsFunc(waiting, func(s *statement) bool { return !inReport(s) && s.named == nil }) {
		readers, err := x.readersThatWait(ctx)
		if err != nil {
			return false, err
		}
		rows = append(rows, readers...)
	}
	for _, s := range waiting {
		is := inReport(s)
		if s.named != nil {
			is, err = x.waitsForName(ctx, s)
		}
		if err != nil || !is {
			return false, err
		}
	}
	return x.suspended(ctx, reported)
}

// suspended reports whether the threads of so many transactions that wait for a row are suspended.
//
// DANGER: the report has a transaction a moment earlier. Of two that have done the same work, a deadlock ends the one that
// was suspended last, which is that of the last move only if the others are suspended before it. (MySQL's lock0wait.cc:
// lock_wait_table_reserve_slot, lock_wait_choose_victim.)
func (x *mysqlExecutor) suspended(ctx context.Context, reported int) (bool, error) {
	var name string
	var now int
	if err := x.admin.WithContext(ctx).Raw("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Row().Scan(&name, &now); err != nil {
		return false, fmt.Errorf("explore: ask MySQL how many threads wait for a lock: %w", err)
	}
	return now >= reported, nil
}

var connectionOf = regexp.MustCompile(`(?m)^(?:MySQL|MariaDB) thread id (\d+)`)

// waitForRows returns the connections that wait for a row. A COMMIT grants the locks before its answer,
// so a connection that has been granted its lock is not in the report. Each report of SHOW ENGINE is new.
// (MariaDB has no performance_schema.data_lock_waits, and the lab has no performance schema at all.)
func (x *mysqlExecutor) waitForRows(ctx context.Context) (connections []uint64, err error) {
	var kind, name, report string
	if err := x.admin.WithContext(ctx).Raw("SHOW ENGINE INNODB STATUS").Row().Scan(&kind, &name, &report); err != nil {
		return nil, fmt.Errorf("explore: ask MySQL which statements wait for a lock, which needs the privilege PROCESS: %w", err)
	}
	return parseWaits(report)
}

// old is how long InnoDB may show old rows in information_schema: it fills the tables again only if
// nobody has read them for 0.1 s.
const old = 120 * time.Millisecond

// readersThatWait returns the connections whose transaction has written nothing and waits for a shared
// lock: the report of MySQL leaves them out. It returns none if it would only see old rows. Then the
// caller asks again later.
func (x *mysqlExecutor) readersThatWait(ctx context.Context) (connections []uint64, err error) {
	if time.Since(x.asked) < old {
		return nil, nil
	}
	defer func() { x.asked = time.Now() }()
	const query = "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
	if err := x.admin.WithContext(ctx).Raw(query).Scan(&connections).Error; err != nil {
		return nil, fmt.Errorf("explore: ask MySQL which transactions wait for a lock: %w", err)
	}
	return connections, nil
}

func parseWaits(report string) (connections []uint64, err error) {
	_, list, found := strings.Cut(report, "LIST OF TRANSACTIONS FOR EACH SESSION:")
	if !found {
		return nil, errors.New("explore: the report of InnoDB has no list of transactions")
	}
	list, _, _ = strings.Cut(list, "\nFILE I/O\n")
	for t := range strings.SplitSeq(list, "---TRANSACTION ") {
		of := connectionOf.FindStringSubmatch(t)
		if of == nil || !strings.Contains(t, "\nLOCK WAIT ") {
			continue
		}
		id, _ := strconv.ParseUint(of[1], 10, 64) // no error: digits
		connections = append(connections, id)
	}
	return connections, nil
}

// namedLock is the name in a GET_LOCK: an expression with one argument.
type namedLock struct {
	name string
	arg  any
}

// waitsForName asks for the state of the connection, and who has the lock: a connection that was granted
// the lock keeps its state for a moment.
func (x *mysqlExecutor) waitsForName(ctx context.Context, s *statement) (waits bool, err error) {
	err = x.admin.WithContext(ctx).Raw("SELECT COALESCE(IS_USED_LOCK("+s.named.name+") <> ?, FALSE) AND EXISTS ("+
		"SELECT 1 FROM information_schema.processlist WHERE id = ? AND state = 'User lock')", s.named.arg, s.conn, s.conn).Row().Scan(&waits)
	if err != nil {
		err = fmt.Errorf("explore: ask MySQL who waits for a named lock: %w", err)
	}
	return waits, err
}
