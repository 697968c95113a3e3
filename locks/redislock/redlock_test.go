package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/stock"
	"oversell/trial/lockstest"
)

// TestMajority checks when a lock counts as not held. A master without an answer neither grants nor
// rejects the lock.
func TestMajority(t *testing.T) {
	silent, no := error(&redsync.RedisError{Err: errors.New("refused")}), error(&redsync.ErrNodeTaken{})
	tests := []struct {
		name            string
		yes, no, silent int
		want            error // nil means held, ErrNotHeld not held, silent unknown
	}{
		{"all", 5, 0, 0, nil},
		{"a majority", 3, 2, 0, nil},
		{"a majority of those that answer", 3, 0, 2, nil},
		{"a minority", 2, 3, 0, locks.ErrNotHeld},
		{"none", 0, 5, 0, locks.ErrNotHeld},
		{"too few answer", 2, 0, 3, silent},
		{"one is silent that could make a majority", 2, 2, 1, silent},
		{"one is silent that could not", 1, 3, 1, locks.ErrNotHeld},
		{"two are silent that could", 1, 2, 2, silent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var err error
			for range test.no {
				err = errors.Join(err, no)
			}
			if test.no >= 3 {
				err = &redsync.ErrTaken{Nodes: make([]int, test.no)} // as redsync reports it
			}
			for range test.silent {
				if test.no < 3 {
					err = errors.Join(err, silent)
				}
			}
			got := majority(test.yes >= 3, err, 5)
			if !errors.Is(got, test.want) || errors.Is(got, locks.ErrNotHeld) != errors.Is(test.want, locks.ErrNotHeld) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestNodeTimeout(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 20 * time.Millisecond,
		2 * time.Second:        100 * time.Millisecond,
		time.Minute:            200 * time.Millisecond,
	} {
		if got := nodeTimeout(lease); got != want {
			t.Errorf("of a lease of %v a node gets %v, want %v", lease, got, want)
		}
	}
}

// TestMintContention checks that two tasks never get the same fence, and that the fences of each
// task rise.
func TestMintContention(t *testing.T) {
	f := newFences(masters(t, servers), time.Minute)
	key := newKey()
	minted := make(chan int64, 200)
	var minters sync.WaitGroup
	for range 4 {
		minters.Go(func() {
			for last := int64(0); len(minted) < 150; {
				fence, err := f.mint(t.Context(), key, 0)
				if err != nil {
					continue // too many conflicts: rejected, which is safe
				}
				if fence <= last {
					t.Errorf("fence %d after %d", fence, last)
				}
				last = fence
				minted <- fence
			}
		})
	}
	minters.Wait()
	close(minted)
	seen := map[int64]bool{}
	for fence := range minted {
		if seen[fence] {
			t.Errorf("fence %d was minted twice", fence)
		}
		seen[fence] = true
	}
}

// TestMintOutages stops masters. If a minority is down, the fences still rise. If a majority is
// down, mint fails. If all masters have lost their data, mint must return a fence above its
// parameter floor, which the caller takes from the MySQL row.
func TestMintOutages(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{Redis: 5})
	nodes := masters(t, r)
	f := newFences(nodes, time.Minute)
	key := newKey()
	last := int64(0)
	rises := func(what string, floor int64) {
		t.Helper()
		fence, err := f.mint(t.Context(), key, floor)
		if err != nil || fence <= max(last, floor) {
			t.Fatalf("%s: fence %d after %d, above %d: %v", what, fence, last, floor, err)
		}
		last = fence
	}
	for i := range 3 {
		rises(fmt.Sprintf("mint %d", i), 0)
	}
	stop(t, r, 1, 2)
	rises("a minority is away", 0)
	stop(t, r, 3)
	if fence, err := f.mint(t.Context(), key, 0); err == nil {
		t.Fatalf("minted %d with a majority away", fence)
	}
	begin(t, r, 1, 2, 3) // these masters have no data, because they persist nothing
	stop(t, r, 3)        // 1 and 2 have no fence, 4 and 5 have one
	rises("a minority has lost its data", 0)
	begin(t, r, 3)
	for _, node := range nodes {
		node.FlushAll(t.Context())
	}
	if fence, err := f.mint(t.Context(), key, 0); err != nil || fence != 1 {
		t.Fatalf("all masters lost their data: fence %d, %v", fence, err)
	}
	rises("all masters lost their data, the row did not", last)
}

func stop(t *testing.T, r *rig.Rig, numbers ...int) {
	t.Helper()
	each(t, r, numbers, func(s *rig.Server) error { s.Kill(); return nil })
}

func begin(t *testing.T, r *rig.Rig, numbers ...int) {
	t.Helper()
	each(t, r, numbers, func(s *rig.Server) error { return s.Start(t.Context()) })
}

func each(t *testing.T, r *rig.Rig, numbers []int, do func(*rig.Server) error) {
	t.Helper()
	for _, n := range numbers {
		s, err := r.Server(fmt.Sprintf("redis-%d", n))
		if err == nil {
			err = do(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMinorityHangs pauses a minority of the masters: they accept requests and never answer. An
// acquisition then takes longer, but a release does not. The holder does not lose the lock. A fence is
// minted before the lease has ended.
func TestMinorityHangs(t *testing.T) {
	t.Parallel()
	r := rigtest.Start(t, rig.Config{Redis: 5})
	l := Redlock(masters(t, r), 2*time.Second)
	key := newKey()
	h := acquire(t, l, request(key, "owner", 20*time.Second, 0))
	hung := func(s *rig.Server) error { return syscall.Kill(s.PID(), syscall.SIGSTOP) }
	each(t, r, []int{1, 5}, hung)
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		if err := h.Verify(); err != nil {
			t.Fatalf("with a minority that hangs, after %v: %v", time.Since(began), err)
		}
	}
	began := time.Now()
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took >= 3*time.Second { // the time of one release
		t.Errorf("the release waited %v for masters that hang", took)
	}
	fenced := request(key, "next", 20*time.Second, 0)
	fenced.Fenced = true
	h = acquire(t, l, fenced)
	if err := h.Verify(); err != nil || h.Fence() == 0 {
		t.Errorf("the next lock has the fence %d: %v", h.Fence(), err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLateRedlock delays the SET for one of five masters until the request is cancelled. The late
// SET may leave a key on that master. One key is no majority, so the next request is granted.
func TestLateRedlock(t *testing.T) {
	nodes := masters(t, servers)
	link := linkTo(t, servers.Addresses().Redis[0])
	nodes[0] = client(t, servers.RedisURL(link.Addr()))
	key := newKey()
	ctx, cancel := context.WithCancel(t.Context())
	// Cancelled while the first master delays the grant. A master has 200 ms: then four of five grant it.
	late(ctx, t, link, "redlock:"+key, Redlock(nodes, time.Minute), request(key, "late", time.Minute, time.Minute), cancel)
	acquire(t, Redlock(masters(t, servers), time.Minute), request(key, "next", 20*time.Second, 0))
}

// TestSlowMajority delays the SET on three of five masters once. A request that may wait tries
// again, and gets the lock. A request with a wait of 0 returns ErrUnavailable.
func TestSlowMajority(t *testing.T) {
	nodes, links := lined(t, 3)
	l := Redlock(nodes, time.Minute)
	slow := func(key string) (free func()) {
		var frees []func()
		for _, link := range links {
			_, free := link.HoldNext("redlock:" + key)
			frees = append(frees, free)
		}
		return func() {
			for _, free := range frees {
				free()
			}
		}
	}
	key := newKey()
	free := slow(key)
	if _, err := l.Acquire(t.Context(), request(key, "one look", 0, 0)); !errors.Is(err, stock.ErrUnavailable) {
		t.Errorf("one try, which is not answered in time: %v", err)
	}
	free()
	key = newKey()
	free = slow(key)
	h, err := l.Acquire(t.Context(), request(key, "patient", 20*time.Second, 0))
	if err != nil {
		t.Fatalf("with time for another try: %v", err)
	}
	free() // the first try's SET comes now
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLateUndoing delays the DEL of a slow try until the next try is granted. The late DEL must not
// delete the keys of the next try.
func TestLateUndoing(t *testing.T) {
	nodes, links := lined(t, 3)
	l := Redlock(nodes, time.Minute)
	if err := acquire(t, l, request(newKey(), "first", 20*time.Second, 0)).Release(t.Context()); err != nil { // this loads the scripts
		t.Fatal(err)
	}
	key := newKey()
	var undoings sync.WaitGroup
	granted := make(chan struct{})
	for _, link := range links {
		setting, set := link.HoldNext("redlock:" + key)
		undoings.Go(func() {
			<-setting
			undoing, undo := link.HoldNext("redlock:" + key)
			<-undoing
			set()
			<-granted
			undo()
		})
	}
	// The first try's keys on three masters must expire (after 2 s) before the second try can succeed.
	h := acquire(t, l, request(key, "patient", 20*time.Second, 2*time.Second))
	close(granted)
	undoings.Wait()
	time.Sleep(4 * time.Second) // two leases: a lock without renewal is lost
	if err := h.Verify(); err != nil {
		t.Errorf("after the undoing of the try before: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// lined returns a client for each master. The first n clients use network links that the test can
// delay or cut. lined also returns these n links.
func lined(t *testing.T, n int) ([]redis.UniversalClient, []*lockstest.Link) {
	t.Helper()
	nodes := masters(t, servers)
	var links []*lockstest.Link
	for i := range n {
		link := linkTo(t, servers.Addresses().Redis[i])
		nodes[i] = client(t, servers.RedisURL(link.Addr()))
		links = append(links, link)
	}
	return nodes, links
}

// TestStaleHolderGetsNoFence deletes the lock of a holder, and grants it again. The first holder, whose lease has
// not ended, must not get a fence above its successor's.
func TestStaleHolderGetsNoFence(t *testing.T) {
	l := Redlock(masters(t, servers), time.Minute)
	key := newKey()
	fenced := request(key, "first", 0, 0)
	fenced.Fenced = true
	stale := acquire(t, l, fenced)
	if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	fenced.Owner = "second"
	next := acquire(t, Redlock(masters(t, servers), time.Minute), fenced) // of another replica
	if err := stale.AdvanceFence(t.Context(), next.Fence()); !errors.Is(err, locks.ErrNotHeld) || stale.Fence() >= next.Fence() {
		t.Errorf("the stale holder has fence %d, the next one %d: %v", stale.Fence(), next.Fence(), err)
	}
}
