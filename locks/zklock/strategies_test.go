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

	"oversell/locks"
)

// testedLock is a strategy, with the folder of its nodes.
type testedLock struct {
	name, root string
	open       func(*Session) locks.Locker
}

func singleNodeLocks() []testedLock {
	return []testedLock{
		{"zk-ephemeral", "/oversell/zk-ephemeral/", Ephemeral},
		{"zk-ephemeral-watch", "/oversell/zk-ephemeral-watch/", EphemeralWatch},
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

// TestReleaseWithoutServer releases a lock while the server cannot be reached. The lock must be
// free when the server is back.
func TestReleaseWithoutServer(t *testing.T) {
	for _, g := range append(singleNodeLocks(), testedLock{"zk", root, ZK}) {
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
