package stock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/stock"
)

// TestGalera writes through a proxy to a Galera cluster, while the node that it writes to is cut off from the
// others, and while the next one is killed. The other nodes must have every confirmed write, and no write
// whose error says that nothing was written. A node that comes back gets no writes.
func TestGalera(t *testing.T) {
	rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment, with the hazard galera")
	t.Parallel()
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.GaleraCluster})
	db, err := stock.Open(r.Addresses().MySQL, 16)
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	must(t, db.Exec("CREATE TABLE wrote (id BIGINT PRIMARY KEY, node VARCHAR(10))").Error)

	w := startWriters(t, db)
	w.await(t, "mysql")
	first, err := r.Server("mysql")
	must(t, err)
	isolate(t, first, 1, "Initialized")
	w.await(t, "mysql-2")
	isolate(t, first, 0, "Synced")
	w.await(t, "mysql-2")

	second, err := r.Server("mysql-2")
	must(t, err)
	second.Kill()
	w.await(t, "mysql", "mysql-3")
	must(t, second.Start(t.Context()))
	w.await(t, "mysql", "mysql-3")
	w.check(t, db)
}

// isolate cuts a node off from the others (1), as a split network does, or lets it join them again (0). Clients still
// reach the node. It returns when the node is in this state.
func isolate(t *testing.T, node *rig.Server, on int, state string) {
	t.Helper()
	must(t, backend.ExecuteMySQL(t.Context(), node.AdminDSN(), fmt.Sprintf("SET GLOBAL wsrep_provider_options='gmcast.isolate=%d'", on)))
	rigtest.Eventually(t, node.Name()+" is "+state, func() (bool, string) {
		got, err := backend.MySQLValue(t.Context(), node.AdminDSN(), `SELECT variable_value FROM information_schema.global_status
			WHERE variable_name = 'wsrep_local_state_comment'`)
		return got == state, fmt.Sprint(got, err)
	})
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

// await waits until one of the nodes confirms a write that begins from now on.
func (w *writers) await(t *testing.T, nodes ...string) {
	t.Helper()
	began, since := time.Now(), w.last.Load()
	for {
		w.mu.Lock()
		confirmed := slices.IndexFunc(nodes, func(node string) bool { return w.at[node] > since })
		w.mu.Unlock()
		if confirmed >= 0 {
			t.Logf("%s confirms writes after %v", nodes[confirmed], time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no write is confirmed by %v", nodes)
		}
		time.Sleep(5 * time.Millisecond)
	}
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
