package zklock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/singleflight"
)

// Access is how a session connects. Digest is user:password of the scheme digest: nodes that the
// session creates belong to this user. Both may be empty.
type Access struct {
	Digest string
	TLS    *tls.Config
}

// Open prepares a session, and does not wait for a connection. The server ends the session after
// timeout without a request. The server may limit timeout: by default to 20 of its ticks, 40 s (see Timeout). A
// path behind the last server, as in host:port/path, is the chroot: all nodes are below it.
func Open(servers []string, timeout time.Duration, as Access) (*Session, error) {
	s, err := OpenWith(servers, timeout, dialFor(timeout, as.TLS))
	if err == nil && as.Digest != "" {
		s.login.digest = []byte(as.Digest)
	}
	return s, err
}

// login is the state of a session's authentication.
type login struct {
	digest []byte // user:password; empty means no authentication
	done   atomic.Bool
	calls  singleflight.Group // so that requests that begin together authenticate once
}

// authenticated returns when the session is authenticated. The first request authenticates. The
// driver repeats that on each new connection, before it sends any other request. After an error, no
// request may be sent: the server would reject it.
func (s *Session) authenticated() error {
	if len(s.login.digest) == 0 || s.login.done.Load() {
		return nil
	}
	_, err, _ := s.login.calls.Do("", func() (any, error) {
		for !s.login.done.Load() {
			alive := s.Alive()
			if err := s.conn.AddAuth("digest", s.login.digest); err != nil {
				return nil, err
			}
			// DANGER: the driver repeats an authentication only once it has the answer. If the connection
			// broke just then, the new connection is not authenticated.
			s.login.done.Store(alive.Err() == nil)
		}
		return nil, nil //nolint:nilnil // only the error counts
	})
	if err == nil || isAny(err, zk.ErrClosing, zk.ErrNoServer) {
		return err
	}
	// Callers take ErrNoServer for a request that was never sent, and that is true here.
	return fmt.Errorf("%w: authentication: %w", zk.ErrNoServer, err)
}

// acl returns the rights on a new node. The ACL names the user, and not the scheme auth: for that, the
// server would also enter the name in the client's certificate, which many clients may share.
func (s *Session) acl() []zk.ACL {
	if len(s.login.digest) == 0 {
		return zk.WorldACL(zk.PermAll)
	}
	user, password, _ := strings.Cut(string(s.login.digest), ":")
	return zk.DigestACL(zk.PermAll, user, password)
}

// splitChroot cuts the path off the last server's address, as ZooKeeper's own clients do.
func splitChroot(servers []string) (hosts []string, chroot string, err error) {
	for i, server := range servers {
		host, dir, found := strings.Cut(server, "/")
		dir = "/" + dir
		switch {
		case found && i < len(servers)-1:
			return nil, "", fmt.Errorf("%s: the path must stand behind the last server, for all of them: host1:2181,host2:2181%s", server, dir)
		case found && dir != path.Clean(dir):
			return nil, "", fmt.Errorf("%s: the path must have the form /name/name", server)
		case found && dir != "/":
			chroot = dir
		}
		hosts = append(hosts, host)
	}
	return hosts, chroot, nil
}

// hosts is the list of servers. Unlike the driver's own list, it keeps the names: a certificate is
// for a name, and a name may get another address, or none at all at the start of a replica.
// The driver calls it from one goroutine.
type hosts struct {
	servers   []string
	at, began int
}

// Init checks the form of the addresses.
func (h *hosts) Init(servers []string) error {
	for _, server := range servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return err
		}
	}
	h.servers, h.at, h.began = servers, -1, -1
	return nil
}

// Len returns the number of servers.
func (h *hosts) Len() int { return len(h.servers) }

// Next returns the next server. again means that all of them have been tried without success.
func (h *hosts) Next() (server string, again bool) {
	h.at = (h.at + 1) % len(h.servers)
	again = h.at == h.began
	if h.began < 0 {
		h.began = 0
	}
	return h.servers[h.at], again
}

// Connected notes that the present server has accepted the connection.
func (h *hosts) Connected() { h.began = h.at }

// lastError is a logger for the driver. It keeps the last error, because the driver only logs why
// it cannot connect. A request then fails with ErrNoServer. It also keeps the session time-out that the server
// has granted, which the driver logs before it sends the first request of a session.
type lastError struct {
	err     atomic.Pointer[error]
	granted atomic.Int32 // ms
}

// Printf keeps the error among the values, except the usual end of a connection that was used. It formats nothing.
func (l *lastError) Printf(format string, values ...any) {
	used := strings.HasPrefix(format, "recv loop terminated")
	for _, v := range values {
		if err, ok := v.(error); ok && (!used || !errors.Is(err, io.EOF)) {
			l.err.Store(&err)
		}
	}
	if strings.HasPrefix(format, "authenticated: id=%d, timeout=%d") {
		if granted, ok := values[1].(int32); ok {
			l.granted.Store(granted)
		}
	}
}

func (l *lastError) clear() { l.err.Store(nil) }

func (l *lastError) get() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// dialFor returns a function that connects the driver. On a new connection, the driver waits for the answer to its
// login for almost seven times the session time-out. Meanwhile it tries no other server, and the session ends. A
// ZooKeeper that has just started leaves some connections without an answer, so the wait must be short enough
// for another try.
func dialFor(session time.Duration, config *tls.Config) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		wait := max(timeout, session/3)
		if config != nil {
			if conn, err = handshake(conn, address, config, wait); err != nil {
				return nil, err
			}
		}
		return &loginConn{Conn: conn, wait: wait}, nil
	}
}

// handshake begins TLS. It may take longer than timeout of a connection: the first handshakes of a
// Java server are slow.
func handshake(conn net.Conn, address string, config *tls.Config, timeout time.Duration) (net.Conn, error) {
	config = config.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil {
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// loginConn limits the wait for the answer to the first request. The driver calls it from one goroutine after the
// other.
type loginConn struct {
	net.Conn
	wait     time.Duration
	answered bool
}

// SetReadDeadline sets t, or an earlier deadline for the first answer. The driver removes the deadline after it.
func (c *loginConn) SetReadDeadline(t time.Time) error {
	c.answered = c.answered || t.IsZero()
	if latest := time.Now().Add(c.wait); !c.answered && t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}
