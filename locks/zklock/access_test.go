package zklock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// TestUser checks that the nodes below a chroot belong to the session's user, also after the
// connection broke and after the session expired, and that another user is rejected at once.
func TestUser(t *testing.T) {
	chroot := "/user-" + newKey()
	if _, err := session(t, server(), 10*time.Second).Create(chroot, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	link := linkTo(t)
	open := func(addr, digest string) *Session {
		s, err := Open([]string{addr + chroot}, 2*time.Second, Access{Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	ours, theirs := open(link.Addr(), "ours:secret"), open(server(), "ours:wrong")
	key := newKey()
	hold := func() {
		t.Helper()
		lock := acquire(t, ZK(ours), request(key, "owner", 20*time.Second))
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	hold()
	if err := ours.Ping(t.Context()); err != nil {
		t.Errorf("the user: %v", err)
	}

	if err := theirs.Ping(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a wrong password: %v, want %v", err, zk.ErrNoAuth)
	}
	// Whoever may only read the folder cannot lock.
	readable := append(zk.DigestACL(zk.PermAll, "ours", "secret"), zk.WorldACL(zk.PermRead)...)
	if _, err := ours.conn.SetACL(chroot+"/oversell", readable, -1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := theirs.Get("/oversell"); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Ping(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a user who may only read: %v, want %v", err, zk.ErrNoAuth)
	}
	if err := ours.Ping(t.Context()); err != nil {
		t.Errorf("the user, again: %v", err)
	}
	if exists, _, err := ours.conn.Exists(chroot + "/oversell/ping"); err != nil || exists {
		t.Errorf("Ping has left a node: %v, %v", exists, err)
	}
	began := time.Now()
	_, err := ZK(theirs).Acquire(t.Context(), request(key, "another", 10*time.Second))
	if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, locks.ErrNotAcquired) || time.Since(began) > 5*time.Second {
		t.Errorf("a lock with a wrong password: %v after %v, want %v at once", err, time.Since(began), zk.ErrNoAuth)
	}

	// A new connection of the same session, and a new session. The driver must authenticate both.
	for _, outage := range []time.Duration{0, 5 * time.Second} {
		id, alive := ours.SessionID(), ours.Alive()
		link.Cut(true)
		soon(t, "the connection breaks", func() bool { return alive.Err() != nil })
		time.Sleep(outage) // beyond the session's time-out, which is the condition of this test
		link.Cut(false)
		soon(t, "a new connection", func() bool { return ours.Alive().Err() == nil })
		hold()
		if expired := ours.SessionID() != id; expired != (outage > 0) {
			t.Errorf("after an outage of %v: a new session: %v", outage, expired)
		}
	}
	acl, _, err := ours.conn.GetACL(chroot + root + key)
	if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" || !strings.HasPrefix(acl[0].ID, "ours:") {
		t.Errorf("the folder of the key: %v, %v, want a node of the user ours only", acl, err)
	}
}

// TestChroot checks where the path may stand, and that the primitives use it, too.
func TestChroot(t *testing.T) {
	for _, test := range []struct {
		servers []string
		chroot  string
		says    string
	}{
		{[]string{"a:1", "b:2"}, "", ""},
		{[]string{"a:1", "b:2/"}, "", ""},
		{[]string{"a:1", "b:2/x/y"}, "/x/y", ""},
		{[]string{"a:1/x", "b:2"}, "", "the path must stand behind the last server"},
		{[]string{"a:1/x/"}, "", "must have the form /name/name"},
		{[]string{"a:1//x"}, "", "must have the form /name/name"},
	} {
		hosts, chroot, err := splitChroot(test.servers)
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v: %v, want %q", test.servers, err, test.says)
			}
			continue
		}
		if err != nil || chroot != test.chroot || strings.Contains(strings.Join(hosts, ""), "/") {
			t.Errorf("%v: %v, %q, %v, want %q", test.servers, hosts, chroot, err, test.chroot)
		}
	}

	s, err := Open([]string{server() + "/missing"}, 2*time.Second, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); !errors.Is(err, ErrNoChroot) {
		t.Errorf("a chroot that does not exist: %v, want %v", err, ErrNoChroot)
	}
}
