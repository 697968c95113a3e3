package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkLock is a simple lock on go-zookeeper: create an ephemeral sequential node, wait for the end of
// the node before it, list again. Clients first lock a mutex of the process.
func zkLock(_ context.Context, l lab) (deduct, func(), error) {
	conn, _, err := zk.Connect(l.ZooKeeper, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	if _, err := conn.Create("/bench", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, nil, err
	}
	p := &zkProcess{conn: conn}
	return with(l, func(ctx context.Context, db *sql.DB) error {
		return p.locked(func() error { return sell(ctx, db, plainRead, nil) })
	}, conn.Close)
}

type zkProcess struct {
	mutex sync.Mutex
	conn  *zk.Conn
}

func (p *zkProcess) locked(work func() error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	node, err := p.conn.Create("/bench/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	for {
		names, _, err := p.conn.Children("/bench")
		if err != nil {
			return err
		}
		slices.Sort(names) // all names have the same prefix
		i := slices.Index(names, strings.TrimPrefix(node, "/bench/"))
		if i == 0 {
			break
		}
		_, _, gone, err := p.conn.GetW("/bench/" + names[i-1])
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		<-gone
	}
	if err := work(); err != nil {
		return err
	}
	return p.conn.Delete(node, -1)
}
