package main

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// redisLock is the plain loop on go-redis: SET NX PX, else sleep until a
// release is published; compare, delete and publish in one script. A process
// mutex stands before it, or a hundred goroutines would wake at each release.
func redisLock(ctx context.Context, l lab) (deduct, func(), error) {
	db, err := open(l.MySQL)
	if err != nil {
		return nil, nil, err
	}
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
	sellOne := func(ctx context.Context) error {
		return p.locked(ctx, func() error { return sell(ctx, db) })
	}
	return sellOne, func() { _, _, _ = subscription.Close(), client.Close(), db.Close() }, nil
}

const compareAndDelete = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`

type redisProcess struct {
	turn     sync.Mutex
	client   *redis.Client
	released <-chan *redis.Message
	script   *redis.Script
}

func (p *redisProcess) locked(ctx context.Context, work func() error) error {
	p.turn.Lock()
	defer p.turn.Unlock()
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

// drain forgets releases from before the try.
func drain(released <-chan *redis.Message) {
	for {
		select {
		case <-released:
		default:
			return
		}
	}
}
