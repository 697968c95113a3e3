package lockstest_test

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Desk is a lock service in the memory of the test's own process, with a shelf
// to sell from. Its clients are the suite's workers, so what is a lock between
// processes for Redis or MySQL is one here, in a few lines that can be broken.
type Desk struct {
	mu     sync.Mutex
	down   bool
	asked  int64
	grants map[string]grant
	line   map[string][]string
	fences map[string]int64
	shelf  map[int64]item
}

type grant struct {
	token string
	until time.Time
}

type item struct {
	count int
	fence int64
}

// Ask is one question to the desk.
type Ask struct {
	Key, Token string
	Lease      time.Duration
	Product    int64
	Count      int
	Fence      int64 // of a fenced write
	Anyway     bool  // do it, whoever holds the key
	Forget     bool  // and the fences too
	InLine     bool  // take the key in order of arrival
}

// Answer is the desk's.
type Answer struct {
	OK    bool
	Fence int64
	Count int
}

var errDown = errors.New("the desk is closed")

// Take grants a key that is free or whose lease is over.
func (d *Desk) Take(a Ask, got *Answer) error {
	return d.do(func() {
		if g := d.grants[a.Key]; g.token != "" && time.Now().Before(g.until) && !a.Anyway {
			d.queue(a)
			return
		}
		if a.InLine && d.queue(a) > 0 {
			return
		}
		d.leave(a)
		d.fences[a.Key]++
		d.grants[a.Key] = grant{a.Token, time.Now().Add(a.Lease)}
		*got = Answer{OK: true, Fence: d.fences[a.Key]}
	})
}

// queue returns the number of those who came before.
func (d *Desk) queue(a Ask) int {
	if !a.InLine {
		return 0
	}
	if !slices.Contains(d.line[a.Key], a.Token) {
		d.line[a.Key] = append(d.line[a.Key], a.Token)
	}
	return slices.Index(d.line[a.Key], a.Token)
}

func (d *Desk) leave(a Ask) {
	d.line[a.Key] = slices.DeleteFunc(d.line[a.Key], func(token string) bool { return token == a.Token })
}

// Renew lets a grant last its lease from now.
func (d *Desk) Renew(a Ask, got *Answer) error {
	return d.do(func() {
		g := d.grants[a.Key]
		if got.OK = g.token == a.Token && time.Now().Before(g.until); got.OK {
			d.grants[a.Key] = grant{a.Token, time.Now().Add(a.Lease)}
		}
	})
}

// Release ends a grant.
func (d *Desk) Release(a Ask, got *Answer) error {
	return d.do(func() {
		d.leave(a)
		g := d.grants[a.Key]
		if got.OK = g.token != "" && (a.Anyway || g.token == a.Token && time.Now().Before(g.until)); got.OK {
			delete(d.grants, a.Key)
		}
		if a.Forget {
			delete(d.fences, a.Key)
		}
	})
}

// Read tells the count of a product.
func (d *Desk) Read(a Ask, got *Answer) error {
	return d.do(func() {
		i, ok := d.shelf[a.Product]
		*got = Answer{OK: ok, Count: i.count, Fence: i.fence}
	})
}

// Write sets the count, unless a later fence has written.
func (d *Desk) Write(a Ask, got *Answer) error {
	return d.do(func() {
		i := d.shelf[a.Product]
		if got.OK = a.Fence == 0 || i.fence <= a.Fence; got.OK {
			d.shelf[a.Product] = item{a.Count, max(i.fence, a.Fence)}
		}
	})
}

func (d *Desk) do(f func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.down {
		return errDown
	}
	f()
	return nil
}

func (d *Desk) close(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *Desk) operations(context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked, nil
}

func (d *Desk) newProduct(_ context.Context, count int) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	product := int64(len(d.shelf) + 1)
	d.shelf[product] = item{count: count}
	return product, nil
}

func (d *Desk) count(_ context.Context, product int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shelf[product].count, nil
}

// openDesk serves a desk until the test ends, and returns its address.
func openDesk(t *testing.T) (*Desk, string) {
	t.Helper()
	d := &Desk{grants: map[string]grant{}, line: map[string][]string{}, fences: map[string]int64{}, shelf: map[int64]item{}}
	server := rpc.NewServer()
	if err := server.Register(d); err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(t.TempDir(), "desk")
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return d, address
}
