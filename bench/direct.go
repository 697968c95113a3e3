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

// processes is the number of processes that share the load. A lab has as many replicas.
const processes = 3

// job is the input of one process. Each client sells Loops times, or, with a Length, for that time.
type job struct {
	Lab     lab
	Clients int
	Loops   int
	Length  time.Duration
}

// sale is one sale by a process.
type sale struct {
	Sold int64         // in nanoseconds of the machine's clock, which all processes share
	Took time.Duration // since the client's previous sale
}

// deduct sells one item.
type deduct func(context.Context) error

// loop connects to the servers. It returns a deduct and a function that closes the connections.
type loop func(context.Context, lab) (d deduct, end func(), err error)

// loops returns all loops that a process can run, by name.
func loops() map[string]loop {
	all := map[string]loop{"direct for-update": forUpdate, "direct redis": redisLock, "direct zk": zkLock}
	maps.Copy(all, ours())
	maps.Copy(all, peers())
	return all
}

// direct runs a loop in as many processes as there are replicas. Each process gets as many cores
// and clients as a replica.
func (b bench) direct(ctx context.Context, strategy string) (figures, error) {
	return sellInProcesses(ctx, "direct "+strategy, processes, job{Lab: b.lab, Clients: b.load.clients, Loops: b.load.loops})
}

// fullStock is more than the number of items that one measurement can sell.
const fullStock = 1_000_000

// sellInProcesses runs a loop in n processes at the same time. If the job has Loops, its clients
// are divided among the processes. If it has a Length, each process has all the clients.
func sellInProcesses(ctx context.Context, name string, n int, j job) (figures, error) {
	db, err := open(j.Lab.MySQL)
	if err != nil {
		return figures{}, err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ?, version = 0, fence = 0 WHERE id = 1", fullStock); err != nil {
		return figures{}, err
	}
	workers, sales := make([]*worker, n), make([][]sale, n)
	for i := range workers {
		part := j
		if j.Loops > 0 {
			part.Clients = (j.Clients + n - 1 - i) / n
		}
		if workers[i], err = startWorker(ctx, name, n, part); err != nil {
			return figures{}, err
		}
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return figures{}, err
		}
	}
	for i, w := range workers {
		if sales[i], err = w.finish(); err != nil {
			return figures{}, err
		}
	}
	f := figuresOf(sales, j.Length)
	var left int
	err = db.QueryRowContext(ctx, "SELECT count FROM db_stock WHERE id = 1").Scan(&left)
	f.lost = f.sold - (fullStock - left)
	return f, err
}

// worker is another process, which runs a loop.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

// startWorker starts a process, and returns when the process is connected and ready to start.
func startWorker(ctx context.Context, name string, n int, j job) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "-worker", name)
	c.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/n)))
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
	if err := json.NewEncoder(in).Encode(j); err != nil {
		return nil, err
	}
	var ready string
	return w, w.out.Decode(&ready)
}

func (w *worker) finish() ([]sale, error) {
	var sales []sale
	if err := w.out.Decode(&sales); err != nil {
		return nil, fmt.Errorf("a process ended without a result: %w", err)
	}
	_ = w.in.Close()
	return sales, w.process.Wait()
}

// work is the main function of a worker process. It connects, reports that it is ready, waits for
// the start, sells, and writes its sales.
func work(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	var j job
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	if err := from.Decode(&j); err != nil {
		return err
	}
	setUp, ok := loops()[name]
	if !ok {
		return fmt.Errorf("loop %q does not exist", name)
	}
	sellOne, end, err := setUp(ctx, j.Lab)
	if err != nil {
		return err
	}
	defer end()
	if err := to.Encode("ready"); err != nil {
		return err
	}
	if _, err := from.Buffered().Read(make([]byte, 1)); err != nil { // the newline after the job
		return err
	}
	if _, err := io.ReadFull(in, make([]byte, len("go\n"))); err != nil {
		return err
	}
	began := time.Now()
	sales, errs := make([][]sale, j.Clients), make([]error, j.Clients)
	var clients sync.WaitGroup
	for i := range j.Clients {
		clients.Go(func() {
			for asked := began; len(sales[i]) < j.Loops || asked.Sub(began) < j.Length; {
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

// open connects with the settings of the service: one round trip for each statement, and the same
// number of connections.
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

// querier is a connection pool or a transaction of database/sql.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const (
	plainRead   = "SELECT count FROM db_stock WHERE id = ?"
	lockingRead = plainRead + " FOR UPDATE"
)

// sell is the critical section of every lock. If check is nil, sell does not check the lock.
func sell(ctx context.Context, db querier, read string, check func() error) error {
	var count int
	if err := db.QueryRowContext(ctx, read, 1).Scan(&count); err != nil {
		return err
	}
	if count < 1 {
		return fmt.Errorf("sold out at %d", count)
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	_, err := db.ExecContext(ctx, "UPDATE db_stock SET count = ? WHERE id = ?", count-1, 1)
	return err
}

// forUpdate sells in one transaction with SELECT ... FOR UPDATE, on database/sql.
func forUpdate(_ context.Context, l lab) (deduct, func(), error) {
	return with(l, func(ctx context.Context, db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := sell(ctx, tx, lockingRead, nil); err != nil {
			return err
		}
		return tx.Commit()
	}, func() {})
}
