// Package redislock holds the locks that live in Redis.
package redislock

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Open prepares a client for one Redis at redis://[user:password@]host:port/db
// (rediss:// for TLS). It does not connect: the first command does.
func Open(url string, conns int) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis address: %w", err)
	}
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: clone(o.TLSConfig),
		// A lock command that the driver sends twice lies: the first SETNX took
		// the lock, the second says that it is taken (redis/go-redis#2985).
		MaxRetries: -1,
		// A refused connection should say so now, not after five dials.
		DialerRetries: 1,
		// Off by default, and then a context of 100 ms waits for the 3 s below.
		ContextTimeoutEnabled: true,
		DialTimeout:           time.Second,
		// An answer that comes later counts as lost, and nobody knows what was sold.
		ReadTimeout:     execTimeout,
		WriteTimeout:    execTimeout,
		PoolSize:        conns,
		DisableIdentity: true,
		Protocol:        2, // with 3, every command first looks for pushed messages: one more system call
	}), nil
}

func clone(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	return c.Clone()
}
