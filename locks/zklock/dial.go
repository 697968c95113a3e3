package zklock

import (
	"context"
	"net"
	"time"
)

// dialFor is how the driver connects. Once connected it gives the server ten times its
// usual patience to grant a session: more than a minute, in which it tries no other
// server, though the session ends in seconds. So no answer may take longer than that.
func dialFor(session time.Duration) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return impatient{conn, session}, nil
	}
}

// impatient is a connection whose deadlines are never further away than most.
type impatient struct {
	net.Conn
	most time.Duration
}

func (c impatient) SetReadDeadline(t time.Time) error  { return c.Conn.SetReadDeadline(c.bound(t)) }
func (c impatient) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(c.bound(t)) }

// bound leaves no deadline as it is.
func (c impatient) bound(t time.Time) time.Time {
	if latest := time.Now().Add(c.most); t.After(latest) {
		return latest
	}
	return t
}
