package main

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// redisLock is a simple lock on go-redis. It uses SET NX PX, and waits for a published release. A
// script compares the owner, deletes and publishes. Clients first lock a mutex of the process, so
// that a release does not wake a hundred goroutines.
func redisLock(ctx context.Context, l lab) (deduct, func(), error) {
	options, err := redis.ParseURL(l.Redis[0])
	if err != nil {
		return nil, nil, err
	}
	client := redis.NewClient(options)
	subscription := client.Subscribe(ctx, "bench:released")
	if _, err := subscription.Receive(ctx); err != nil {
		return nil, nil, err
	}
	p := &redisProcess{client: client, released: subscription.Channel(), script: redis.NewScript(compareAndDelete)}
	return with(l, func(ctx context.Context, db *sql.DB) error {
		return p.locked(ctx, func() error { return sell(ctx, db, plainRead, nil) })
	}, func() { _, _ = subscription.Close(), client.Close() })
}

const compareAndDelete = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`

type redisProcess struct {
	mutex    sync.Mutex
	client   *redis.Client
	released <-chan *redis.Message
	script   *redis.Script
}

func (p *redisProcess) locked(ctx context.Context, work func() error) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	token := uuid.NewString()
	for {
		drain(p.released)
		ok, err := p.client.SetNX(ctx, "bench:lock", token, 10*time.Second).Result()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		select {
		case <-p.released:
		case <-time.After(10 * time.Second):
		}
	}
	if err := work(); err != nil {
		return err
	}
	return p.script.Run(ctx, p.client, []string{"bench:lock", "bench:released"}, token).Err()
}

// drain drops the messages of earlier releases from the channel.
func drain(released <-chan *redis.Message) {
	for {
		select {
		case <-released:
		default:
			return
		}
	}
}
