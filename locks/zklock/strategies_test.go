package zklock

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// testedLock is a strategy, with the folder of its nodes.
type testedLock struct {
	name, root string
	open       func(*Session) locks.Locker
}

func queueLocks() []testedLock {
	return []testedLock{
		{"zk", root, ZK},
		{"zk-mutex", mutexRoot, Mutex},
		{"zk-sequential", sequentialRoot, Sequential},
		{"zk-watch-naive", watchNaiveRoot, WatchNaive},
		{"zk-timeout-grant", timeoutGrantRoot, TimeoutGrant},
	}
}

func singleNodeLocks() []testedLock {
	return []testedLock{
		{"zk-ephemeral", "/oversell/zk-ephemeral/", Ephemeral},
		{"zk-ephemeral-watch", "/oversell/zk-ephemeral-watch/", EphemeralWatch},
	}
}

// pending is a request that waits in a queue.
type pending struct {
	giveUp context.CancelFunc
	got    chan *locks.Lock // receives the granted lock, or nil
}

// joins sends a request of owner for the key, and returns when the key's queue has n nodes.
func (g testedLock) joins(t *testing.T, s *Session, key, owner string, n int) pending {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	w, l := pending{cancel, make(chan *locks.Lock, 1)}, g.open(s)
	go func() {
		h, err := l.Acquire(ctx, request(key, owner, time.Minute))
		if err != nil && !errors.Is(err, locks.ErrNotAcquired) {
			t.Errorf("%s: %v", owner, err)
		}
		w.got <- h
	}()
	g.hasNodes(t, s, key, n)
	return w
}

func (g testedLock) hasNodes(t *testing.T, s *Session, key string, n int) {
	t.Helper()
	soon(t, strconv.Itoa(n)+" nodes", func() bool {
		names, err := s.list(t.Context(), g.root+key)
		if err != nil {
			t.Fatal(err)
		}
		return len(names) == n
	})
}

// TestDeadWaiter lets the second of three requests give up. The third must still wait for the
// first, except in zk-watch-naive, which does not list the queue again.
func TestDeadWaiter(t *testing.T) {
	for _, g := range queueLocks() {
		t.Run(g.name, func(t *testing.T) {
			s, key := session(t, server(), 20*time.Second), newKey()
			holder := acquire(t, g.open(s), request(key, "holder", 0))
			second := g.joins(t, s, key, "second", 2)
			third := g.joins(t, s, key, "third", 3)
			settle(t, s) // until the third request watches a node
			second.giveUp()
			if h := <-second.got; h != nil {
				t.Fatal("the second was granted beside the holder")
			}
			g.hasNodes(t, s, key, 2)
			if g.name == "zk-watch-naive" {
				early := <-third.got
				if early == nil || early.Verify() != nil || holder.Verify() != nil {
					t.Fatal("two must hold it")
				}
				_ = early.Release(t.Context())
				return
			}
			settle(t, s)
			select {
			case <-third.got:
				t.Fatal("the third was granted beside the holder")
			default:
			}
			if err := holder.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if h := <-third.got; h == nil || h.Release(t.Context()) != nil {
				t.Error("the third gets it after the holder")
			}
		})
	}
}

// settle sends pings, to give other goroutines of the session time to react. The server answers
// earlier requests of the session first. settle cannot prove that the goroutines have reacted.
func settle(t *testing.T, s *Session) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 5*sequentialPause; {
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOrder checks that requests of two sessions are granted in the order of arrival.
func TestOrder(t *testing.T) {
	const waiters = 6
	for _, g := range queueLocks() {
		t.Run(g.name, func(t *testing.T) {
			here, there, key := session(t, server(), 20*time.Second), session(t, server(), 20*time.Second), newKey()
			h := acquire(t, g.open(here), request(key, "holder", 0))
			var link []pending
			for i := range waiters {
				link = append(link, g.joins(t, []*Session{there, here}[i%2], key, strconv.Itoa(i), i+2))
			}
			for i, w := range link {
				if err := h.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if h = <-w.got; h == nil || h.Owner() != strconv.Itoa(i) {
					t.Fatalf("waiter %d was not granted", i)
				}
				for j, later := range link[i+1:] {
					if len(later.got) > 0 {
						t.Fatalf("waiter %d was granted with waiter %d", i+1+j, i)
					}
				}
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			g.hasNodes(t, here, key, 0)
		})
	}
}

// TestHerd counts the server's writes after a release, even the failed ones. If each waiter watches
// the node before its own, the release is the only write. If all waiters watch one node, each of
// them also tries to create the node.
func TestHerd(t *testing.T) {
	const waiters = 5
	for _, g := range []testedLock{queueLocks()[0], singleNodeLocks()[1]} {
		t.Run(g.name, func(t *testing.T) {
			s, other, key := session(t, server(), 60*time.Second), session(t, server(), 60*time.Second), newKey()
			first := acquire(t, g.open(s), request(key, "first", 0))
			got := make(chan *locks.Lock, waiters)
			for i := range waiters {
				// Each waiter has its own session, so that the server counts one watch for each waiter.
				l, r := g.open(session(t, server(), 60*time.Second)), request(key, strconv.Itoa(i), time.Minute)
				go func() {
					h, err := l.Acquire(context.WithoutCancel(t.Context()), r)
					if err != nil {
						t.Error(err)
					}
					got <- h
				}()
			}
			watched := func(n int) {
				t.Helper()
				soon(t, strconv.Itoa(n)+" watches", func() bool { return ask(t, "wchs", `Total watches:(\d+)`) == int64(n) })
			}
			watched(waiters)
			before := mark(t, other)
			if err := first.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			h := <-got
			watched(waiters - 1) // all other waiters watch again, or still
			// Expected are one write for the release and one for each try. Sessions of other tests that end
			// meanwhile add writes.
			writes, herd := mark(t, other)-before-1, g.name == "zk-ephemeral-watch"
			if (writes >= 1+waiters) != herd {
				t.Errorf("%d writes for a release with %d waiters; a herd: %v", writes, waiters, herd)
			}
			for left := waiters - 1; ; left-- {
				if h == nil || h.Release(t.Context()) != nil {
					t.Fatal("not granted, or not released")
				}
				if left == 0 {
					break
				}
				h = <-got
			}
		})
	}
}

// mark creates a node, and returns the server's number of this write.
func mark(t *testing.T, s *Session) int64 {
	t.Helper()
	name, err := s.Create("/mark-", nil, zk.FlagSequence|zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	_, stat, err := s.Exists(name)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Czxid
}

// watchesOf counts the server's watches on the nodes in a folder.
func watchesOf(t *testing.T, dir string) int { return strings.Count(say(t, "wchp"), dir+"/") }

// ask sends a four-letter command of ZooKeeper to the server. It returns the number that the
// pattern finds in the answer.
func ask(t *testing.T, question, number string) int64 {
	t.Helper()
	answer := say(t, question)
	found := regexp.MustCompile(number).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("%s: %s", question, answer)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// say sends a four-letter command of ZooKeeper to the server, and returns the whole answer.
func say(t *testing.T, question string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, question); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// TestSingleNode checks that the node belongs to the session of the holder. A holder that has lost
// its node must not delete the node of the next holder.
func TestSingleNode(t *testing.T) {
	for _, g := range singleNodeLocks() {
		t.Run(g.name, func(t *testing.T) {
			s, other, key := session(t, server(), 20*time.Second), session(t, server(), 20*time.Second), newKey()
			l := g.open(s)
			h := acquire(t, l, request(key, "owner", 0))
			_, stat, err := s.Get(g.root + key)
			if err != nil || stat.EphemeralOwner != s.SessionID() {
				t.Fatalf("the node of session %d, want %d: %v", stat.EphemeralOwner, s.SessionID(), err)
			}
			if err := l.(locks.Cleaner).Clear(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			next := acquire(t, g.open(other), request(key, "next", 0))
			if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("the release of the lost lock: %v, want %v", err, locks.ErrNotHeld)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Errorf("the successor's: %v", err)
			}
		})
	}
}

// TestLateSingleNode cancels a request while its node is being created. The node must be found by
// its data and deleted.
func TestLateSingleNode(t *testing.T) {
	for _, g := range singleNodeLocks() {
		t.Run(g.name, func(t *testing.T) {
			link := linkTo(t)
			s, other, key := session(t, link.Addr(), 20*time.Second), session(t, server(), 20*time.Second), newKey()
			l := g.open(s)
			if err := acquire(t, l, request(key, "first", 0)).Release(t.Context()); err != nil { // creates the folder
				t.Fatal(err)
			}
			before := changes(t, other, g.root)
			held, free := link.HoldNext("late:")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := l.Acquire(ctx, request(key, "late", time.Minute))
				done <- err
			}()
			<-held
			cancel()
			if err := <-done; !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, locks.ErrNotAcquired)
			}
			free()
			soon(t, "the late node has come and gone", func() bool { return changes(t, other, g.root) == before+2 })
			acquire(t, g.open(other), request(key, "next", 0))
		})
	}
}

// changes returns how many nodes were created in a folder or deleted from it.
func changes(t *testing.T, s *Session, root string) int32 {
	t.Helper()
	_, stat, err := s.Get(root[:len(root)-1])
	if err != nil {
		t.Fatal(err)
	}
	return stat.Cversion
}

// TestSingleNodeWithoutServer releases a lock while the server cannot be reached. The lock must be
// free when the server is back.
func TestSingleNodeWithoutServer(t *testing.T) {
	for _, g := range singleNodeLocks() {
		t.Run(g.name, func(t *testing.T) {
			link := linkTo(t)
			s, other, key := session(t, link.Addr(), 60*time.Second), session(t, server(), 20*time.Second), newKey()
			h := acquire(t, g.open(s), request(key, "owner", 0))
			link.Cut(true)
			<-h.Context().Done()
			if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
				t.Errorf("cut off: %v, want %v", err, locks.ErrLost)
			}
			if err := h.Release(t.Context()); err == nil || errors.Is(err, locks.ErrNotHeld) {
				t.Errorf("released with the server out of reach: %v", err)
			}
			link.Cut(false)
			acquire(t, g.open(other), request(key, "next", 30*time.Second))
		})
	}
}
