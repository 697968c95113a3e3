// Command go-zookeeper-229 shows https://github.com/samuel/go-zookeeper/issues/229 on ZK_SERVERS.
//
// The connection of a client breaks in Lock, after ZooKeeper created its node. Lock returns an error
// and the client connects again with the same session. The command exits with 1 if no other client
// can acquire the lock for 10 s, because this node is still in the queue.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/adapters/library"
)

const sessionTimeout = 30 * time.Second

func main() {
	const returned = "go-zookeeper 1.0.4: Lock returned an error after its connection broke, and "
	library.Incident(reproduce, returned+"another client acquired the lock.", returned+"no other client acquired the lock within 10 s.")
}

func reproduce(context.Context) bool {
	var breaks atomic.Bool
	first := open(&breaks)
	defer first.Close()
	path := fmt.Sprintf("/incident-go-zookeeper-229-%d", time.Now().UnixNano()) // a lock that nobody holds
	library.Check(retry(func() error { _, err := first.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); return err }))
	breaks.Store(true)
	if zk.NewLock(first, path, zk.WorldACL(zk.PermAll)).Lock() == nil {
		library.Check(errors.New("the first Lock returned no error, although its connection broke"))
	}
	library.Check(retry(func() error { _, _, err := first.Exists(path); return err }))

	second := open(new(atomic.Bool))
	defer second.Close()
	granted := make(chan error, 1)
	go func() { granted <- retry(zk.NewLock(second, path, zk.WorldACL(zk.PermAll)).Lock) }()
	select {
	case err := <-granted:
		library.Check(err)
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

func open(breaks *atomic.Bool) *zk.Conn {
	servers := library.Servers("ZK_SERVERS", "127.0.0.1:2181")
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(dialer(breaks)))
	library.Check(err)
	return conn
}

// retry repeats a request until the client is connected.
func retry(request func() error) error {
	end := time.Now().Add(sessionTimeout)
	for {
		err := request()
		if !errors.Is(err, zk.ErrNoServer) && !errors.Is(err, zk.ErrConnectionClosed) || time.Now().After(end) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// dialer opens connections that break at the next request for a node's children, once. Lock sends
// this request after it created its node.
func dialer(breaks *atomic.Bool) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, timeout)
		return &connection{Conn: conn, breaks: breaks}, err
	}
}

type connection struct {
	net.Conn
	breaks *atomic.Bool
}

// getChildren is the type of the request getChildren2 in ZooKeeper's protocol.
const getChildren = 12

// Write sends a request: its length, its number and its type, of 4 bytes each, then the rest.
func (c *connection) Write(request []byte) (int, error) {
	if len(request) >= 12 && binary.BigEndian.Uint32(request[8:]) == getChildren && c.breaks.CompareAndSwap(true, false) {
		_ = c.Close() // the error is the point of it
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(request)
}

type silent struct{}

func (silent) Printf(string, ...any) {}
