package lockstest_test

import (
	"context"
	"net"
	"net/rpc"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Server is a lock service with a stock, in the memory of the test's process. Its clients are the
// suite's workers. It replaces Redis or MySQL in these tests.
type Server struct {
	mu      sync.Mutex
	grants  map[string]grant
	fences  map[string]int64
	stocked map[int64]item
}

type grant struct {
	token string
	until time.Time
}

type item struct {
	count int
	fence int64
}

// Args are the arguments of a call of the server.
type Args struct {
	Key, Token string
	Lease      time.Duration
	Product    int64
	Count      int
	Fence      int64 // of a fenced write
	Force      bool  // ignore another holder of the key
	Forget     bool  // delete the fence of the key as well
	Grow       bool  // add the lease to what is left of it
}

// Result is the server's answer.
type Result struct {
	OK    bool
	Fence int64
	Count int
}

// Take grants a key that is free or whose lease has expired.
func (s *Server) Take(a Args, got *Result) error {
	return s.do(func() {
		if g := s.grants[a.Key]; g.token != "" && time.Now().Before(g.until) && !a.Force {
			return
		}
		s.fences[a.Key]++
		s.grants[a.Key] = grant{a.Token, time.Now().Add(a.Lease)}
		*got = Result{OK: true, Fence: s.fences[a.Key]}
	})
}

// Renew makes a grant last for a.Lease from now.
func (s *Server) Renew(a Args, got *Result) error {
	return s.do(func() {
		g := s.grants[a.Key]
		if got.OK = g.token == a.Token && time.Now().Before(g.until); got.OK {
			from := time.Now()
			if a.Grow {
				from = g.until
			}
			s.grants[a.Key] = grant{a.Token, from.Add(a.Lease)}
		}
	})
}

// Release ends a grant.
func (s *Server) Release(a Args, got *Result) error {
	return s.do(func() {
		g := s.grants[a.Key]
		if got.OK = g.token != "" && (a.Force || g.token == a.Token && time.Now().Before(g.until)); got.OK {
			delete(s.grants, a.Key)
		}
		if a.Forget {
			delete(s.fences, a.Key)
		}
	})
}

// Read returns the count of a product.
func (s *Server) Read(a Args, got *Result) error {
	return s.do(func() {
		i, ok := s.stocked[a.Product]
		*got = Result{OK: ok, Count: i.count, Fence: i.fence}
	})
}

// Write sets the count, unless a request with a higher fence has written before.
func (s *Server) Write(a Args, got *Result) error {
	return s.do(func() {
		i := s.stocked[a.Product]
		if got.OK = a.Fence == 0 || i.fence <= a.Fence; got.OK {
			s.stocked[a.Product] = item{a.Count, max(i.fence, a.Fence)}
		}
	})
}

func (s *Server) do(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	return nil
}

func (s *Server) newProduct(_ context.Context, count int) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	product := int64(len(s.stocked) + 1)
	s.stocked[product] = item{count: count}
	return product, nil
}

func (s *Server) count(_ context.Context, product int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stocked[product].count, nil
}

// startServer runs a server until the test ends, and returns its address.
func startServer(t *testing.T) (*Server, string) {
	t.Helper()
	s := &Server{grants: map[string]grant{}, fences: map[string]int64{}, stocked: map[int64]item{}}
	served := rpc.NewServer()
	if err := served.Register(s); err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(t.TempDir(), "server")
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
			go served.ServeConn(conn)
		}
	}()
	return s, address
}
