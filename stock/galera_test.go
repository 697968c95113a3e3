package stock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/stock"
)

// TestGalera also checks that a read at one node has the last write at another one. It writes to a Galera cluster while the node that it writes to is cut off from the others, and
// then killed. After each of them, other nodes must have every confirmed write, and no write whose error
// says that nothing was written. In the end, the pool is back at the first node.
func TestGalera(t *testing.T) {
	rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment, with the hazard galera")
	t.Parallel()
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.GaleraCluster})
	db, err := stock.Open(r.Addresses().MySQLNodes, 16)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	must(t, db.Exec("CREATE TABLE wrote (id BIGINT PRIMARY KEY, node VARCHAR(10))").Error)

	readOwnWrites(t, db, r)
	w := startWriters(t, db)
	w.await(t, "mysql")
	rejoin, err := r.Isolate(t.Context(), "mysql")
	must(t, err)
	w.await(t, "mysql-2")
	must(t, rejoin(t.Context()))
	w.await(t, "mysql")

	first, err := r.Server("mysql")
	must(t, err)
	first.Kill()
	w.await(t, "mysql-2")
	must(t, first.Start(t.Context()))
	w.await(t, "mysql")
	w.check(t, db)
}

// readOwnWrites writes at the first node, and reads each write at another node at once.
func readOwnWrites(t *testing.T, db *gorm.DB, r *rig.Rig) {
	t.Helper()
	all, err := mysql.ParseDSN(r.Addresses().MySQL)
	must(t, err)
	for _, name := range []string{"mysql-3", "mysql-2"} {
		s, err := r.Server(name)
		must(t, err)
		all.Addr = s.Addr() + "," + all.Addr
	}
	other, err := stock.Open(all.FormatDSN(), 2)
	must(t, err)
	pool, err := other.DB()
	must(t, err)
	defer func() { _ = pool.Close() }()
	must(t, db.Exec("CREATE TABLE last (n INT PRIMARY KEY)").Error)
	must(t, db.Exec("INSERT INTO last VALUES (0)").Error)
	stale := 0
	for i := 1; i <= 200; i++ {
		must(t, db.Exec("UPDATE last SET n = ?", i).Error)
		var got struct {
			N    int
			Node string
		}
		must(t, other.Raw("SELECT n, @@wsrep_node_name AS node FROM last").Scan(&got).Error)
		if got.Node != "mysql-2" {
			t.Fatalf("the read is at %s", got.Node)
		}
		if got.N != i {
			stale++
		}
	}
	if stale > 0 {
		t.Errorf("%d of 200 reads at another node lack the last write", stale)
	}
}

// writers insert rows, half of them in transactions with a row that all change.
type writers struct {
	end     context.CancelFunc
	running sync.WaitGroup
	last    atomic.Int64

	mu       sync.Mutex
	outcomes map[int64]error  // nil: confirmed; else what Indeterminate returned
	at       map[string]int64 // the last confirmed id of each node
}

func startWriters(t *testing.T, db *gorm.DB) *writers {
	t.Helper()
	must(t, db.Exec("CREATE TABLE shared (id INT PRIMARY KEY, n BIGINT)").Error)
	must(t, db.Exec("INSERT INTO shared VALUES (1, 0)").Error)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &writers{end: cancel, outcomes: map[int64]error{}, at: map[string]int64{}}
	t.Cleanup(func() { cancel(); w.running.Wait() })
	for i := range 8 {
		w.running.Go(func() {
			for ctx.Err() == nil {
				w.write(db, i%2 == 0)
				time.Sleep(20 * time.Millisecond) // the test needs changes of the node, not load
			}
		})
	}
	return w
}

func (w *writers) write(db *gorm.DB, alone bool) {
	id, node := w.last.Add(1), ""
	insert := func(db *gorm.DB) error {
		return db.Exec("INSERT INTO wrote SELECT ?, @@wsrep_node_name", id).Error
	}
	var err error
	if alone {
		err = stock.Indeterminate(insert(db))
	} else {
		committing := false
		err = db.Transaction(func(tx *gorm.DB) error {
			err := errors.Join(insert(tx), tx.Exec("UPDATE shared SET n = n + 1 WHERE id = 1").Error, tx.Raw("SELECT @@wsrep_node_name").Scan(&node).Error)
			committing = err == nil
			return err
		})
		if committing {
			err = stock.Indeterminate(err)
		} else {
			err = stock.NothingWritten(context.Background(), err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[id] = err
	if err == nil && !alone {
		w.at[node] = max(w.at[node], id)
	}
}

// await waits until a write that begins from now on is confirmed by the node.
func (w *writers) await(t *testing.T, node string) {
	t.Helper()
	began, since := time.Now(), w.last.Load()
	confirmed := func() int64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.at[node]
	}
	for confirmed() <= since {
		if time.Since(began) > time.Minute {
			t.Fatalf("no write is confirmed by %s", node)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("%s confirms writes after %v", node, time.Since(began).Round(time.Millisecond))
}

func (w *writers) check(t *testing.T, db *gorm.DB) {
	t.Helper()
	w.end()
	w.running.Wait()
	var ids []int64
	must(t, db.Raw("SELECT id FROM wrote").Scan(&ids).Error)
	present := map[int64]bool{}
	for _, id := range ids {
		present[id] = true
	}
	count := map[string]int{}
	for id, err := range w.outcomes {
		kind := "unknown"
		switch {
		case err == nil:
			kind = "confirmed"
		case errors.Is(err, stock.ErrConflict) || errors.Is(err, stock.ErrUnavailable):
			kind = "rejected"
		}
		count[fmt.Sprintf("%s, present: %t", kind, present[id])]++
		if kind == "confirmed" && !present[id] || kind == "rejected" && present[id] {
			t.Errorf("write %d was %s, and its row is present: %t: %v", id, kind, present[id], err)
		}
	}
	t.Log(count)
}
