// Package zklock holds the locks that live in ZooKeeper.
package zklock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks"
)

// Session is this replica's one session with an ensemble. It connects in the
// background, again and again, and gets a new session when the old one expired.
type Session struct {
	*zk.Conn
	timeout  time.Duration
	ensemble bool // more than one server
	closed   chan struct{}

	mu    sync.Mutex
	alive context.Context // ends when the server can no longer be heard
	end   context.CancelCauseFunc
}

// Open prepares a session that the server forgets after timeout without a sign
// of life (within the server's own bounds). It does not wait for a connection.
func Open(servers []string, timeout time.Duration) (*Session, error) {
	s := &Session{timeout: timeout, ensemble: len(servers) > 1, closed: make(chan struct{})}
	s.alive, s.end = context.WithCancelCause(context.Background())
	s.end(errors.New("not connected yet"))
	// Only the callback sees every event: the channel holds six and drops.
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(dialFor(timeout)), zk.WithEventCallback(s.event), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("zookeeper address: %w", err)
	}
	s.Conn = conn
	return s, nil
}

// Close ends the session, and with it every node that it made.
func (s *Session) Close() {
	close(s.closed)
	s.Conn.Close()
}

// silent drops the driver's log: what it says comes back as errors as well.
type silent struct{}

func (silent) Printf(string, ...any) {}

// event follows the connection. A session that is cut off may expire on the
// server at any moment, so trust ends with Disconnected, not with Expired.
func (s *Session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.State {
	case zk.StateHasSession:
		s.alive, s.end = context.WithCancelCause(context.Background())
	case zk.StateDisconnected, zk.StateExpired, zk.StateAuthFailed:
		s.end(fmt.Errorf("zookeeper session: %v", e.State))
	}
}

// Alive ends when this session's connection does.
func (s *Session) Alive() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

// Ping asks the server for something, to see that it answers.
func (s *Session) Ping(ctx context.Context) error {
	_, err := do(ctx, func() (bool, error) {
		_, _, err := s.Exists("/")
		return true, err
	})
	return err
}

// do makes a driver's call give up with ctx: it takes none, and may block for
// as long as the server is gone. The call itself goes on in the background.
func do[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// list returns the children of dir.
func (s *Session) list(ctx context.Context, dir string) ([]string, error) {
	return do(ctx, func() ([]string, error) {
		names, _, err := s.Children(dir)
		return names, err
	})
}

// remove deletes a node; ErrNotHeld when there was none.
func (s *Session) remove(ctx context.Context, node string) error {
	_, err := do(ctx, func() (bool, error) { return true, s.Delete(node, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("%w: %s is gone", locks.ErrNotHeld, node)
	}
	return err
}

// mkdir makes a persistent node and its parents.
func (s *Session) mkdir(ctx context.Context, dir string) error {
	if dir == "/" || dir == "." {
		return nil
	}
	if err := s.mkdir(ctx, path.Dir(dir)); err != nil {
		return err
	}
	_, err := do(ctx, func() (string, error) { return s.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// empty deletes every node in dir that begins with prefix, with all that is in it.
func (s *Session) empty(ctx context.Context, dir, prefix string) error {
	names, err := s.list(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		err := s.remove(ctx, dir+"/"+name)
		if errors.Is(err, zk.ErrNotEmpty) { // no lock's node
			if err = s.empty(ctx, dir+"/"+name, ""); err == nil {
				err = s.remove(ctx, dir+"/"+name)
			}
		}
		if err != nil && !errors.Is(err, locks.ErrNotHeld) {
			return err
		}
	}
	return nil
}
