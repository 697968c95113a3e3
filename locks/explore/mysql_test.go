package explore

import (
	"database/sql/driver"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"oversell/lab/rig/rigtest"
)

// completeOnMySQL searches on the real server, within a minute.
func completeOnMySQL(t *testing.T, strategy string, clients int, full bool) Result {
	t.Helper()
	began := time.Now()
	r, err := Search(t.Context(), Scope{Strategy: strategy, Bounds: Bounds{Clients: clients}, Full: full, MySQL: migrated(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %d clients, full %v: %d schedules in %.1f s, %d redundant, %d oversold: %v",
		strategy, clients, full, r.Schedules, time.Since(began).Seconds(), r.Redundant, r.Oversold, r.Outcomes)
	if !r.Complete || r.Schedules == 0 || r.Stalled > 0 || r.Aborted > 0 {
		t.Errorf("%s: %+v", strategy, r)
	}
	return r
}

// TestMySQL searches all schedules of two clients. The strategies whose card says unsafe must lose an
// update, and no other. The reduced search must find the same outcomes as the full search. A search must
// find the same again. Outside of make nightly, each strategy is searched once, reduced.
func TestMySQL(t *testing.T) {
	for _, strategy := range []string{
		"none", "mutex", "mutex-in-tx", "for-update", "share-mode", "version", "version-naive", "version-admitted",
		"db-row-naive", "db-row-cleaned", "db-row", "db-row-fair", "get-lock", "atomic", "reservation", "combining",
	} {
		t.Run(strategy, func(t *testing.T) {
			lock, _ := Scope{Strategy: strategy}.find()
			card := lock.Card
			r := completeOnMySQL(t, strategy, 2, false)
			if r.Oversold > 0 == card.Safe {
				t.Errorf("%d of %d schedules lose an update; the card says safe: %v", r.Oversold, r.Schedules, card.Safe)
			}
			if !rigtest.IsNightly() {
				return
			}
			if again := completeOnMySQL(t, strategy, 2, false); !reflect.DeepEqual(withoutAddress(r), withoutAddress(again)) {
				t.Errorf("%+v, and again %+v", r, again)
			}
			full := completeOnMySQL(t, strategy, 2, true)
			if !slices.Equal(slices.Sorted(maps.Keys(full.Outcomes)), slices.Sorted(maps.Keys(r.Outcomes))) {
				t.Errorf("the full search finds %v, the reduced one %v", full.Outcomes, r.Outcomes)
			}
			if r.Schedules > full.Schedules {
				t.Errorf("the reduced search runs %d schedules, the full one %d", r.Schedules, full.Schedules)
			}
			if r.Shortest == nil {
				return
			}
			steps, o, err := Replay(r.Scope, tokens(r.Shortest))
			if err != nil || !does(o, r.Harm) || !slices.Equal(steps, r.Shortest) {
				t.Errorf("%v again: %v, %v, %v", r.Shortest, steps, o, err)
			}
		})
	}
}

// withoutAddress also leaves out the number of redundant schedules, which depends on the workers.
func withoutAddress(r Result) Result {
	r.MySQL, r.Redundant = "", 0
	return r
}

// TestMySQLCount compares the number of schedules with formulas. A sale of none, or of a mutex for each
// process, is a read and a write. n sales have (2n)!/2^n orders. An update is lost in all but the n!
// orders in which one sale follows the other.
//
// In for-update, let A be the first to lock the row: its four statements are BEGIN, SELECT, UPDATE and
// COMMIT. Then the UPDATE and the COMMIT of B follow A's COMMIT. B's BEGIN and SELECT are anywhere, if
// B's SELECT follows A's SELECT. Of the 15 orders, it does in 12. B can be the first as well: 24.
func TestMySQLCount(t *testing.T) {
	for clients := 1; clients <= 3; clients++ {
		orders, serial := 1, 1
		for n := 1; n <= clients; n++ {
			orders *= n * (2*n - 1) // the two statements of the nth sale among the others
			serial *= n
		}
		for _, strategy := range []string{"none", "mutex"} {
			r := completeOnMySQL(t, strategy, clients, true)
			if r.Schedules != orders || r.Oversold != orders-serial || r.Redundant != 0 {
				t.Errorf("%s, %d clients: %d of %d schedules lose an update; want %d of %d", strategy, clients, r.Oversold, r.Schedules, orders-serial, orders)
			}
		}
	}
	if r := completeOnMySQL(t, "for-update", 2, true); r.Schedules != 24 {
		t.Errorf("for-update has %d schedules, want 24", r.Schedules)
	}
}

// TestMySQLThree has statements of two clients that wait for a lock, while the third can go on.
func TestMySQLThree(t *testing.T) {
	rigtest.Nightly(t, "TestMySQL and TestMySQLCount of ./locks/explore")
	for _, strategy := range []string{"for-update", "version-naive", "db-row-naive", "atomic"} {
		if r := completeOnMySQL(t, strategy, 3, false); r.Oversold > 0 {
			t.Errorf("%s: %+v", strategy, r)
		}
	}
}

func TestMySQLRefuses(t *testing.T) {
	for _, scope := range []Scope{
		{Strategy: "redis", MySQL: "oversell@tcp(127.0.0.1:1)/oversell"},
		{Strategy: "for-update"},
		{Strategy: "for-update", Bounds: Bounds{Crashes: 1}, MySQL: "oversell@tcp(127.0.0.1:1)/oversell"},
		{Strategy: "for-update", MySQL: "oversell@tcp(127.0.0.1:1)/oversell"},
		{Strategy: "buckets", MySQL: "oversell@tcp(127.0.0.1:1)/oversell"},
		{Strategy: "none", MySQL: "nonsense"},
	} {
		scope.Bounds.Clients = 2
		if r, err := Search(t.Context(), scope, nil); err == nil || r.Complete {
			t.Errorf("%+v: %+v", scope, r)
		}
	}
}

// TestStatement checks what is known about a statement before it is executed, and which statements of
// two clients are independent.
func TestStatement(t *testing.T) {
	statements := map[string]*statement{}
	for name, query := range map[string]string{
		"read stock": "SELECT * FROM `db_stock` WHERE `db_stock`.`id` = ? LIMIT ?", "lock stock": "SELECT * FROM `db_stock` WHERE id = ? FOR UPDATE",
		"share stock": "SELECT * FROM db_stock WHERE id = ? LOCK IN SHARE MODE", "write stock": "UPDATE db_stock SET count = ? WHERE id = ?",
		"insert": "INSERT INTO db_lock_naive (lock_name) VALUES (?)", "get lock": "SELECT GET_LOCK(CONCAT('a', ?), ?)", "ping": "DO 1",
	} {
		statements[name] = newStatement(query, []driver.NamedValue{{Value: int64(77)}, {Value: int64(9)}}, 77)
	}
	statements["begin"] = &statement{kind: connectionOnly}
	inTx := *statements["read stock"]
	inTx.inTx = true
	statements["read stock in a transaction"] = &inTx
	for name, want := range map[string]kind{"read stock": consistentRead, "lock stock": anything, "share stock": anything, "get lock": anything, "insert": anything} {
		if got := statements[name].kind; got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
	if got, want := statements["read stock"].text, "SELECT * FROM `db_stock` WHERE `db_stock`.`id` = 1 LIMIT 9"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
	if named := statements["get lock"].named; named == nil || named.name != "CONCAT('a', ?)" {
		t.Errorf("the named lock is %+v", named)
	}
	effectOf := func(client int, name string, changes bool) effect {
		s := &mysqlSchedule{effect: effect{sender: client}}
		s.affect(statements[name].accesses(changes))
		return s.effect
	}
	for _, tt := range []struct {
		a, b        string
		aChanges    bool
		independent bool
	}{
		{"begin", "write stock", true, true},
		{"read stock", "read stock", false, true},
		{"write stock", "read stock", true, false},
		{"write stock", "write stock", true, false},
		{"write stock", "read stock", false, true}, // it has found no row
		{"insert", "write stock", true, true},
		{"insert", "get lock", true, true},
		{"insert", "read stock in a transaction", true, false}, // the snapshot is of all tables
		{"insert", "read stock in a transaction", false, true},
		{"ping", "read stock", true, false},
	} {
		a, b := effectOf(0, tt.a, tt.aChanges), effectOf(1, tt.b, true)
		if a.independent(b) != tt.independent || b.independent(a) != tt.independent {
			t.Errorf("%s (changes %v) and %s: independent is %v", tt.a, tt.aChanges, tt.b, !tt.independent)
		}
	}
}

// TestParseWaits reads reports of both servers. The section about the last deadlock also has
// transactions, which no longer wait.
func TestParseWaits(t *testing.T) {
	const report = `LATEST DETECTED DEADLOCK
*** (1) TRANSACTION:
TRANSACTION 39, ACTIVE 0 sec starting index read
LOCK WAIT 4 lock struct(s), heap size 1128, 2 row lock(s)
MariaDB thread id 5, OS thread handle 139, query id 88 127.0.0.1 oversell Updating
------------
LIST OF TRANSACTIONS FOR EACH SESSION:
---TRANSACTION 40, ACTIVE 3 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)
MySQL thread id 11, OS thread handle 140, query id 35 127.0.0.1 oversell statistics
SELECT * FROM db_stock WHERE id = 1 FOR UPDATE
------- TRX HAS BEEN WAITING 3 SEC FOR THIS LOCK TO BE GRANTED:
---TRANSACTION 41, ACTIVE 4 sec
2 lock struct(s), heap size 1128, 1 row lock(s)
MariaDB thread id 12, OS thread handle 141, query id 34 127.0.0.1 oversell
---TRANSACTION (0x7f), not started
0 lock struct(s), heap size 1128, 0 row lock(s)
---TRANSACTION 42, ACTIVE 1 sec updating or deleting
LOCK WAIT 4 lock struct(s), heap size 1128, 2 row lock(s), undo log entries 1
MariaDB thread id 13, OS thread handle 142, query id 36 127.0.0.1 oversell Updating
--------
FILE I/O
--------
`
	if got, err := parseWaits(report); err != nil || !slices.Equal(got, []uint64{11, 13}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseWaits("nothing"); err == nil {
		t.Error("a report without transactions is accepted")
	}
}
