// Package zklock has the locks and primitives that are kept in ZooKeeper.
package zklock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Source has the files of this folder, for display on the web page.
//
//go:embed *.go
var Source embed.FS

// Session is the one session of this replica with a ZooKeeper server or ensemble. It reconnects in
// the background, and opens a new session when the old one has expired.
type Session struct {
	conn     *zk.Conn
	timeout  time.Duration
	ensemble bool // more than one server
	closed   chan struct{}
	chroot   string // before each path in a request; empty means none
	login    login
	failed   lastError

	mu    sync.Mutex
	alive context.Context
	end   context.CancelCauseFunc
}

// OpenWith is Open with another way to connect than over a network, and more options of the driver.
func OpenWith(servers []string, timeout time.Duration, dial zk.Dialer, options ...func(*zk.Conn)) (*Session, error) {
	servers, chroot, err := splitChroot(servers)
	if err != nil {
		return nil, fmt.Errorf("zookeeper address: %w", err)
	}
	s := &Session{timeout: timeout, ensemble: len(servers) > 1, closed: make(chan struct{}), chroot: chroot}
	s.alive, s.end = context.WithCancelCause(context.Background())
	s.end(errors.New("not connected yet"))
	// Use a callback: the driver's channel keeps at most six events and drops the others.
	all := func(c *zk.Conn) {
		for _, option := range options {
			option(c)
		}
	}
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dial), zk.WithEventCallback(s.event), zk.WithLogger(&s.failed), zk.WithLogInfo(true), zk.WithHostProvider(&hosts{}), all)
	if err != nil {
		return nil, fmt.Errorf("zookeeper address: %w", err)
	}
	s.conn = conn
	return s, nil
}

// Timeout returns the time without a request after which the server ends the session. It is the time that the
// server has granted, if that is less than what was asked for. Otherwise a holder would trust its lock for too long.
func (s *Session) Timeout() time.Duration {
	if granted := time.Duration(s.failed.granted.Load()) * time.Millisecond; granted > 0 {
		return min(s.timeout, granted)
	}
	return s.timeout
}

// Close ends the session. The server then deletes all nodes of the session.
func (s *Session) Close() {
	close(s.closed)
	s.conn.Close()
}

// SessionID returns the id of the present session. A new session has another id.
func (s *Session) SessionID() int64 { return s.conn.SessionID() }

// event updates alive when the connection changes. After Disconnected, the server may end the
// session at any moment. Expired comes only with the next connection, too late to stop a holder.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.State {
	case zk.StateHasSession:
		s.failed.clear()
		s.alive, s.end = context.WithCancelCause(context.Background())
	case zk.StateDisconnected, zk.StateExpired, zk.StateAuthFailed:
		s.end(fmt.Errorf("zookeeper session: %v", e.State))
	}
}

// Alive returns a context that ends when the present connection breaks.
func (s *Session) Alive() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

func (s *Session) watchOver(ctx, alive context.Context, g locks.Grant) *locks.Lock {
	lock := locks.NewLock(ctx, g)
	stop := context.AfterFunc(alive, func() { lock.MarkLost(context.Cause(alive)) })
	lock.OnRelease(func() { stop() })
	return lock
}

// errSessionEnded says that the server has deleted all nodes of a session.
var errSessionEnded = fmt.Errorf("%w: its ZooKeeper session has ended", locks.ErrNotHeld)

// Ping returns an error if the server does not answer a request, or does not let this user write the folder of the
// locks. A server accepts any user and password, and rejects the user at a node.
func (s *Session) Ping(ctx context.Context) error {
	folder := path.Dir(path.Dir(root))
	err := s.writable(ctx, folder+"/ping")
	if isNoNode(err) { // no lock has been used yet
		if err = s.writable(ctx, folder); isNoNode(err) {
			return fmt.Errorf("%w: %s", ErrNoChroot, s.chroot)
		}
	}
	if cause := s.failed.get(); err != nil && cause != nil && !isAny(err, zk.ErrNoAuth, zk.ErrAuthFailed) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// writable sends a transaction that would create a node, and that never applies: a new node has version 0.
func (s *Session) writable(ctx context.Context, node string) error {
	_, err := do(ctx, s, func() ([]zk.MultiResponse, error) {
		return s.multi(ctx, &zk.CreateRequest{Path: node, Acl: s.acl()}, &zk.CheckVersionRequest{Path: node, Version: 1})
	})
	if isAny(err, zk.ErrBadVersion, zk.ErrNodeExists) { // a lock may have created the folder meanwhile
		return nil
	}
	return err
}

// ErrNoChroot means that the server has no node at the path behind the addresses.
var ErrNoChroot = errors.New("the chroot does not exist")

// do sends a request once the session is authenticated. It returns when call returns or ctx ends. The driver
// takes no context, so call may outlast ctx. If ctx has already ended, do does not begin the call: select would
// choose one of two ready cases.
func do[T any](ctx context.Context, s *Session, call func() (T, error)) (none T, err error) {
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: s.authenticated()}
		if a.err == nil {
			a.value, a.err = call()
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// sent records a request in the form of ZooKeeper's zkCli, see stock.Commands.
func sent(ctx context.Context, command, node string) {
	stock.Sent(ctx, func() string { return command + " " + node })
}

// create creates a node that only the session's user may use, and returns its path. Without a user,
// everybody may use the node.
func (s *Session) create(ctx context.Context, node string, data []byte, flags int32) (string, error) {
	stock.Sent(ctx, func() string {
		options := ""
		if flags&zk.FlagEphemeral != 0 {
			options += "-e "
		}
		if flags&zk.FlagSequence != 0 {
			options += "-s "
		}
		return fmt.Sprintf("create %s%s %q", options, node, data)
	})
	return s.Create(node, data, flags, s.acl())
}

// multi sends several requests in one transaction.
func (s *Session) multi(ctx context.Context, requests ...any) ([]zk.MultiResponse, error) {
	stock.Sent(ctx, func() string {
		var all []string
		for _, r := range requests {
			switch r := r.(type) {
			case *zk.CreateRequest:
				all = append(all, "create "+r.Path)
			case *zk.CheckVersionRequest:
				all = append(all, "check "+r.Path)
			case *zk.SetDataRequest:
				all = append(all, fmt.Sprintf("set %s %q", r.Path, r.Data))
			case *zk.DeleteRequest:
				all = append(all, "delete "+r.Path)
			}
		}
		return "multi: " + strings.Join(all, "; ")
	})
	return s.Multi(requests...)
}

// stat returns the state of a node, or zk.ErrNoNode if the node does not exist.
func (s *Session) stat(ctx context.Context, node string) (*zk.Stat, error) {
	return do(ctx, s, func() (*zk.Stat, error) {
		sent(ctx, "stat", node)
		exists, stat, err := s.Exists(node)
		if err == nil && !exists {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

func (s *Session) list(ctx context.Context, dir string) ([]string, error) {
	return do(ctx, s, func() ([]string, error) {
		sent(ctx, "ls", dir)
		names, _, err := s.Children(dir)
		return names, err
	})
}

// remove deletes a node. It returns ErrNotHeld if the node does not exist.
func (s *Session) remove(ctx context.Context, node string) error {
	_, err := do(ctx, s, func() (bool, error) {
		sent(ctx, "delete", node)
		return true, s.Delete(node, -1)
	})
	if isNoNode(err) {
		return fmt.Errorf("%w: node %s does not exist", locks.ErrNotHeld, node)
	}
	return err
}

// primitives is the folder of the primitives, or the begin of its name. All folders below it are containers: ZooKeeper (from 3.5 on) removes a
// container some time after its last child was deleted.
const primitives = "/oversell/primitives"

// mkdir creates a folder with its parents.
func (s *Session) mkdir(ctx context.Context, dir string) error {
	flags := int32(zk.FlagPersistent)
	if strings.HasPrefix(dir, primitives) {
		flags = zk.FlagContainer
	}
	for {
		_, err := do(ctx, s, func() (string, error) { return s.create(ctx, dir, nil, flags) })
		switch parent := path.Dir(dir); {
		case errors.Is(err, zk.ErrNodeExists):
			return nil
		case !isNoNode(err) || parent == "/":
			return err
		default:
			if err := s.mkdir(ctx, parent); err != nil {
				return err
			}
		}
	}
}

// withFolder makes the folder if create finds that it does not exist. The server may remove an empty one at any moment.
func withFolder[T any](ctx context.Context, s *Session, dir string, create func() (T, error)) (T, error) {
	for {
		value, err := create()
		if isNoNode(err) {
			if err = s.mkdir(ctx, dir); err == nil {
				continue
			}
		}
		return value, err
	}
}

// empty deletes every node in dir whose name begins with prefix, with all nodes below it.
func (s *Session) empty(ctx context.Context, dir, prefix string) error {
	names, err := s.list(ctx, dir)
	if isNoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if err := s.clear(ctx, dir+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes a node and all nodes below it. It tries again if a client adds a node meanwhile.
func (s *Session) clear(ctx context.Context, node string) error {
	for {
		err := s.remove(ctx, node)
		if err == nil || errors.Is(err, locks.ErrNotHeld) {
			return nil
		}
		if errors.Is(err, zk.ErrNotEmpty) {
			err = s.empty(ctx, node, "")
		}
		if err != nil {
			return err
		}
	}
}

// card completes c and adds the flaws. Its lease is the session, which the driver renews. Each
// answer that is lost ends the connection, and a holder does not trust its lock without it.
func card(c api.Card, flaws ...api.Hazard) api.Card {
	c.Family, c.Scope, c.Safe, c.Locker = "zookeeper", api.ScopeShared, true, true
	c.Backends, c.Lease, c.Renews = []string{"mysql", "zookeeper"}, true, true
	pause := api.Text{
		EN: "A holder that is paused beyond its session still writes when it goes on.",
		ZH: "持有者停顿超过会话时限，醒来后照样写入。",
	}
	if c.Fenced {
		pause = api.Text{
			EN: "A holder that is paused beyond its session still writes when it goes on, unless the write is fenced.",
			ZH: "持有者停顿超过会话时限，醒来后照样写入，除非写入带栅栏号。",
		}
	}
	usual := map[api.Hazard]api.Text{
		api.Pause: pause,
		api.RenewalReply: {
			EN: "The connection breaks with the lost answer, and the holder gives up its lock, although its session goes on.",
			ZH: "应答丢失，连接随之断开；会话其实还在，持有者却放弃了锁。",
		},
		api.Polling: {
			EN: "Every waiter reads the whole queue again and again: the reads grow with the square of its length.",
			ZH: "每个等待者反复读取整个队列：读取量按队列长度的平方增长。",
		},
		api.Nesting: {EN: "An owner that acquires again queues behind itself.", ZH: "持有者再次加锁，就排在自己后面。"},
	}
	for _, flaw := range append(flaws, api.RenewalReply) {
		c.Breaks = append(c.Breaks, api.Break{Hazard: flaw, Why: usual[flaw]})
	}
	return c
}
