package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// zkLock is the plain loop on go-zookeeper: an ephemeral sequential node, wait
// for the one before it to go, look again. A process mutex stands before it.
func zkLock(_ context.Context, l lab) (deduct, func(), error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, nil, err
	}
	conn, _, err := zk.Connect(l.ZooKeeper, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	if _, err := conn.Create("/bench", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, nil, err
	}
	p := &zkProcess{conn: conn}
	sellOne := func(ctx context.Context) error {
		return p.locked(func() error { return sell(ctx, db) })
	}
	return sellOne, func() { conn.Close(); _ = db.Close() }, nil
}

type zkProcess struct {
	turn sync.Mutex
	conn *zk.Conn
}

func (p *zkProcess) locked(work func() error) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	node, err := p.conn.Create("/bench/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	for {
		names, _, err := p.conn.Children("/bench")
		if err != nil {
			return err
		}
		slices.Sort(names) // all have the same prefix
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
