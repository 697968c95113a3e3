package explore

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"gorm.io/gorm/logger"

	"oversell/stock"
)

// statement is a statement of a client. It is executed when the schedule delivers it.
type statement struct {
	query  string
	text   string // for people
	place  string // the code that sends it, and the arguments
	n      int    // among the statements of the client with this query
	kind   kind
	tables []string // whose data or locks it uses
	inTx   bool     // in a transaction of several statements; also COMMIT and ROLLBACK
	conn   uint64   // CONNECTION_ID()
	named  *namedLock

	delivered bool
	gate      chan struct{}
}

// kind says what a statement does to the data and the locks that all clients share.
type kind int

const (
	// anything is a write, a statement that locks, or one that is not known.
	anything kind = iota
	// consistentRead is a SELECT without locks. It returns committed rows, and no other statement
	// notices it.
	consistentRead
	// connectionOnly affects its own connection only. START TRANSACTION takes no lock, and no snapshot
	// either: the first consistent read takes the snapshot.
	connectionOnly
)

// These stand beside the names of tables.
const (
	everything = "everything" // a statement that names no table may use any
	namedLocks = "named locks"
	commits    = "commits"
)

var (
	tableName  = regexp.MustCompile(`\bdb_\w+`)
	takesLocks = regexp.MustCompile(`(?i)\bFOR (UPDATE|SHARE)\b|\bLOCK IN SHARE MODE\b|_LOCKS?\(|\bINTO\b|\bSLEEP\(`)
	getLock    = regexp.MustCompile(`\bGET_LOCK\((.+), \?\)$`)
)

func newStatement(query string, args []driver.NamedValue, product int64) *statement {
	s := &statement{query: query, text: query, tables: tableName.FindAllString(query, -1)}
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a.Value
	}
	s.place = fmt.Sprint(query, values, sender())
	if strings.HasPrefix(query, "SELECT ") && !takesLocks.MatchString(query) {
		s.kind = consistentRead
	}
	switch {
	case len(s.tables) > 0:
	case strings.Contains(query, "_LOCK("):
		s.tables = []string{namedLocks}
	default:
		s.tables = []string{everything}
	}
	if found := getLock.FindStringSubmatch(query); found != nil && len(args) > 0 {
		s.named = &namedLock{found[1], args[0].Value}
	}
	// The other tables have ids and tokens, which differ in each schedule.
	if slices.Contains(s.tables, "db_stock") {
		s.text = shown(query, values, product)
	}
	return s
}

// shown puts the values into a query. Each product is shown as 1, as in memory.
func shown(query string, values []any, product int64) string {
	parts := strings.Split(query, "?")
	for i := range min(len(values), len(parts)-1) {
		if strings.HasSuffix(strings.ReplaceAll(parts[i], "`", ""), "id = ") && values[i] == product {
			values[i] = int64(1)
		}
	}
	return stock.WithoutTokens(logger.ExplainSQL(query, nil, "'", values...))
}

// accesses returns what a statement has used when it was executed. changes is false if it has changed no
// row, and true also for a statement that waits for a lock. Two statements of different clients are
// independent, which means that they have the same effect in both orders, unless they access the same
// data and one of them writes. These are the reasons, for each kind:
//
//   - START TRANSACTION accesses nothing (see connectionOnly).
//   - Outside of a transaction, a consistent read reads its tables. A statement that changes rows is
//     committed when it has been executed. It writes its tables. Statements on different tables do not
//     wait for each other, and neither reads what the other one writes.
//   - Outside of a transaction, a statement that finds no row, or that is rejected, as by a unique key,
//     has not changed anything. What it has found are its tables, so it reads them.
//   - In a transaction, a consistent read takes a snapshot of all tables. So it depends on each commit,
//     of any table. Every statement that changes rows outside of a transaction reads "commits", and
//     the consistent read in a transaction writes it: so it depends on them all, and they do not depend
//     on each other.
//   - Every other statement of a transaction takes or releases locks, which others may wait for. The
//     same holds for a deadlock. So it writes its tables, and "commits", too.
//
// A statement that waited for a lock is executed by the move that releases the lock. It belongs to the
// effect of that move, which also affects the client.
func (s *statement) accesses(changes bool) (all []access) {
	if s.kind == connectionOnly {
		return nil
	}
	locks := s.kind == anything
	for _, table := range s.tables {
		all = append(all, access{to: table, writes: locks && (s.inTx || changes)})
	}
	if s.inTx || locks && changes {
		all = append(all, access{to: commits, writes: s.inTx})
	}
	return all
}

func overlap(a, b []string) bool {
	return slices.Contains(a, everything) || slices.Contains(b, everything) ||
		slices.ContainsFunc(a, func(table string) bool { return slices.Contains(b, table) })
}

// sender returns the lines of this program that send a statement, without those of the libraries: how a
// pool finds a connection may differ from schedule to schedule.
func sender() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var lines strings.Builder
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "oversell/") && !strings.HasPrefix(f.Function, "oversell/locks/explore") {
			_, _ = fmt.Fprintf(&lines, " %s:%d", f.Function, f.Line)
		}
		if !more {
			return lines.String()
		}
	}
}
