// Package redislock has the locks and primitives that are kept in Redis.
package redislock

import (
	"context"
	"embed"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Source has the files of this folder, for display.
//
//go:embed *.go *.lua
var Source embed.FS

// Open prepares a client for one Redis at redis://[user:password@]host:port/db
// (rediss:// for TLS). It does not connect: the first command does.
func Open(url string, conns int) (redis.UniversalClient, error) {
	return OpenWith(url, conns, nil)
}

// OpenWith is Open with another way to connect than over a network. Without dial, it is Open.
func OpenWith(url string, conns int, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (redis.UniversalClient, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("redis address: %w", err)
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Dialer: dial,
		Addrs:  []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		// DANGER: a lock command must not be sent twice. The first SETNX acquires the lock,
		// and the second answers that it is taken (redis/go-redis#2985).
		MaxRetries: -1,
		// A refused connection is reported at once, not after five attempts.
		DialerRetries: 1,
		// Without this option, a command would ignore the deadline of its context.
		ContextTimeoutEnabled: true,
		DialTimeout:           time.Second,
		// An answer that comes after this time counts as lost, so the outcome is unknown.
		ReadTimeout:     execTimeout,
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,
		WriteTimeout:    execTimeout,
		PoolSize:        conns,
		DisableIdentity: true,
		Protocol:        2, // version 3 costs one more system call before each command
	})
	client.AddHook(newCommandHook())
	return client, nil
}

// bufferSize is for each connection, in bytes. Commands and answers of the locks are short.
const bufferSize = 8192

var flushStat = regexp.MustCompile(`cmdstat_flush(?:all|db):calls=(\d+)`)

// Flushes returns how many FLUSHALL and FLUSHDB commands the servers have executed.
func Flushes(ctx context.Context, servers ...redis.UniversalClient) (sum int64, err error) {
	for _, server := range servers {
		stats, err := server.Info(ctx, "commandstats").Result()
		if err != nil {
			return 0, fmt.Errorf("read how often redis executed FLUSHALL or FLUSHDB: %w", err)
		}
		for _, found := range flushStat.FindAllStringSubmatch(stats, -1) {
			n, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", found[0], err)
			}
			sum += n
		}
	}
	return sum, nil
}
