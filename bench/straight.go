package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// task is what one process is told: how many clients, and how many times each of them
// sells, or for how long all of them do.
type task struct {
	Lab     lab
	Clients int
	Loops   int
	Length  time.Duration
}

// sale is one that a process has made.
type sale struct {
	Sold int64         // in nanoseconds of the machine's clock, which all processes share
	Took time.Duration // since the client wanted it
}

// deduct sells one piece.
type deduct func(context.Context) error

// loop makes a deduct, and what closes all that it opened.
type loop func(context.Context, lab) (d deduct, end func(), err error)

// loops are all that can be asked of a process, by name.
func loops() map[string]loop {
	all := map[string]loop{"straight for-update": forUpdate, "straight redis": redisLock, "straight zk": zkLock}
	maps.Copy(all, ours())
	maps.Copy(all, peers())
	return all
}

// straight runs the loop in as many processes as there are replicas, each with
// a replica's share of the cores and of the clients.
func straight(ctx context.Context, l lab, strategy string, load volume) (result, error) {
	crews, lost, err := sellOut(ctx, l, "straight "+strategy, processes, task{Lab: l, Clients: load.clients, Loops: load.loops})
	if err != nil {
		return result{}, err
	}
	h := judge(crews, 0)
	return result{h.perSecond, h.p99, lost}, nil
}

// shelf is more than anybody sells in a round.
const shelf = 1_000_000

// sellOut has the processes sell, all at once, and says what each has sold, and what was
// lost of it. The clients of a task with loops are shared out among the processes; with
// a length, each has all of them.
func sellOut(ctx context.Context, l lab, name string, crews int, t task) (sales [][]sale, lost int, err error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = 1", shelf); err != nil {
		return nil, 0, err
	}
	workers := make([]*worker, crews)
	for i := range workers {
		mine := t
		if t.Loops > 0 {
			mine.Clients = (t.Clients + crews - 1 - i) / crews
		}
		if workers[i], err = startWorker(ctx, name, crews, mine); err != nil {
			return nil, 0, err
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return nil, 0, err
		}
	}
	sold := 0
	for _, w := range workers {
		part, err := w.finish()
		if err != nil {
			return nil, 0, err
		}
		sales, sold = append(sales, part), sold+len(part)
	}
	var left int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = 1").Scan(&left); err != nil {
		return nil, 0, err
	}
	return sales, sold - (shelf - left), nil
}

// worker is one process of the straight loop.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// startWorker returns when the process has connected and waits for its go.
func startWorker(ctx context.Context, name string, crews int, t task) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "-worker", name)
	c.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/crews)))
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

func (w *worker) finish() ([]sale, error) {
	var sales []sale
	if err := w.out.Decode(&sales); err != nil {
		return nil, fmt.Errorf("a process: %w", err)
	}
	_ = w.in.Close()
	return sales, w.process.Wait()
}

// work is one process: connect, say so, wait for the go, sell, answer.
func work(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	var t task
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	if err := from.Decode(&t); err != nil {
		return err
	}
	setUp, ok := loops()[name]
	if !ok {
		return fmt.Errorf("no loop %q", name)
	}
	sellOne, end, err := setUp(ctx, t.Lab)
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
	began := time.Now()
	sales, errs := make([][]sale, t.Clients), make([]error, t.Clients)
	var clients sync.WaitGroup
	for i := range t.Clients {
		clients.Go(func() {
			for asked := began; len(sales[i]) < t.Loops || asked.Sub(began) < t.Length; {
				if errs[i] = sellOne(ctx); errs[i] != nil {
					return
				}
				now := time.Now()
				sales[i] = append(sales[i], sale{now.UnixNano(), now.Sub(asked)})
				asked = now
			}
		})
	}
	clients.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return to.Encode(slices.Concat(sales...))
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
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// sell is the critical section of every lock.
func sell(ctx context.Context, db *sql.DB) error {
	return sellIf(ctx, db, func() error { return nil })
}

// sellIf looks once more before it writes.
func sellIf(ctx context.Context, db *sql.DB, sound func() error) error {
	var count int
	if err := db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = ?", 1).Scan(&count); err != nil {
		return err
	}
	if count < 1 {
		return fmt.Errorf("sold out at %d", count)
	}
	if err := sound(); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1)
	return err
}

// forUpdate is one transaction on database/sql.
func forUpdate(_ context.Context, l lab) (deduct, func(), error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, nil, err
	}
	sellOne := func(ctx context.Context) error {
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
	return sellOne, func() { _ = db.Close() }, nil
}
