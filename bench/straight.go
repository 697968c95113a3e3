package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// processes is how many share the load, as the three replicas do.
const processes = 3

// task is what one process of the straight loop is told, latencies (in
// nanoseconds) what it answers.
type task struct {
	Lab     lab
	Clients int
	Loops   int
}

// loops are the straight loops. Each returns a function that deducts once, and
// one that closes what it opened.
var loops = map[string]func(context.Context, lab) (deduct func(context.Context) error, end func(), err error){
	"for-update": forUpdate,
	"redis":      redisLock,
	"zk":         zkLock,
}

// straight runs the loop in as many processes as there are replicas, each with
// a replica's share of the cores and of the clients.
func straight(ctx context.Context, l lab, strategy string, load load) (result, error) {
	db, err := open(l.MySQL)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = 1", load.clients*load.loops); err != nil {
		return result{}, err
	}
	workers := make([]*worker, processes)
	for i := range workers {
		clients := load.clients / processes
		if i < load.clients%processes {
			clients++
		}
		if workers[i], err = startWorker(ctx, strategy, task{l, clients, load.loops}); err != nil {
			return result{}, err
		}
	}
	began := time.Now()
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return result{}, err
		}
	}
	var latencies []time.Duration
	for _, w := range workers {
		part, err := w.finish()
		if err != nil {
			return result{}, err
		}
		latencies = append(latencies, part...)
	}
	took := time.Since(began)
	var left int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = 1").Scan(&left); err != nil {
		return result{}, err
	}
	slices.Sort(latencies)
	n := len(latencies)
	return result{float64(n) / took.Seconds(), float64(latencies[n*99/100].Microseconds()) / 1000, left}, nil
}

// worker is one process of the straight loop.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// startWorker returns when the process has connected and waits for its go.
func startWorker(ctx context.Context, strategy string, t task) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "-worker", strategy)
	c.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/processes)))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	w := &worker{c, in, json.NewDecoder(out)}
	if err := json.NewEncoder(in).Encode(t); err != nil {
		return nil, err
	}
	var ready string
	return w, w.out.Decode(&ready)
}

func (w *worker) finish() ([]time.Duration, error) {
	var latencies []time.Duration
	if err := w.out.Decode(&latencies); err != nil {
		return nil, fmt.Errorf("a process of the straight loop: %w", err)
	}
	_ = w.in.Close()
	return latencies, w.process.Wait()
}

// work is one process: connect, say so, wait for the go, deduct, answer.
func work(ctx context.Context, strategy string, in io.Reader, out io.Writer) error {
	var t task
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	if err := from.Decode(&t); err != nil {
		return err
	}
	setUp, ok := loops[strategy]
	if !ok {
		return fmt.Errorf("no straight loop for %q", strategy)
	}
	deduct, end, err := setUp(ctx, t.Lab)
	if err != nil {
		return err
	}
	defer end()
	if err := to.Encode("ready"); err != nil {
		return err
	}
	if _, err := from.Buffered().Read(make([]byte, 1)); err != nil { // the newline after the task
		return err
	}
	if _, err := io.ReadFull(in, make([]byte, len("go\n"))); err != nil {
		return err
	}
	latencies, errs := make([]time.Duration, t.Clients*t.Loops), make([]error, t.Clients)
	var clients sync.WaitGroup
	for i := range t.Clients {
		clients.Go(func() {
			for n := range t.Loops {
				asked := time.Now()
				if errs[i] = deduct(ctx); errs[i] != nil {
					return
				}
				latencies[i*t.Loops+n] = time.Since(asked)
			}
		})
	}
	clients.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return to.Encode(latencies)
}

// open has the settings of the service: one round trip for each statement, and
// as many connections.
func open(dsn string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.InterpolateParams = true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	return db, nil
}

// sell is the critical section of every lock.
func sell(ctx context.Context, db *sql.DB) error {
	var count int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", 1).Scan(&count); err != nil {
		return err
	}
	if count < 1 {
		return fmt.Errorf("sold out at %d", count)
	}
	_, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1)
	return err
}

// forUpdate is one transaction on database/sql.
func forUpdate(_ context.Context, l lab) (func(context.Context) error, func(), error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, nil, err
	}
	deduct := func(ctx context.Context) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		var count int
		if err := tx.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ? FOR UPDATE", 1).Scan(&count); err != nil {
			return err
		}
		if count < 1 {
			return fmt.Errorf("sold out at %d", count)
		}
		if _, err := tx.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1); err != nil {
			return err
		}
		return tx.Commit()
	}
	return deduct, func() { _ = db.Close() }, nil
}
