// Package redislock has the locks and primitives that are kept in Redis.
package redislock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Source has the files of this folder, for display.
//
//go:embed *.go *.lua
var Source embed.FS

// Open prepares a client for the Redis at an address:
//
//	redis://[user:password@]host:port/db
//	redis-sentinel://[user:password@]host:port,host:port,…/master   the master that these Sentinels name
//	redis-cluster://[user:password@]host:port,host:port,…           the cluster of these nodes
//
// With rediss in place of redis, the connections use TLS. The parameter ca names the file with the
// certificates to trust, and cert and key the client's own ones, as in rediss://host:port/0?ca=/etc/ca.pem.
// Sentinels that require a user get it from the parameter sentinel=user:password. Open does not connect:
// the first command does. An error does not contain the address, which may have a password.
func Open(address string, conns int) (redis.UniversalClient, error) {
	return OpenWith(address, conns, nil)
}

// OpenWith is Open with another way to connect than over a network. Without dial, it is Open.
func OpenWith(address string, conns int, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (redis.UniversalClient, error) {
	o, err := Options(address)
	if err != nil {
		return nil, fmt.Errorf("redis address: %w", err)
	}
	o.Dialer = dial
	// DANGER: a lock command must not be sent twice. The first SETNX acquires the lock,
	// and the second answers that it is taken (redis/go-redis#2985).
	o.MaxRetries = -1
	// A refused connection is reported at once, not after five attempts.
	o.DialerRetries = 1
	// Without this option, a command would ignore the deadline of its context.
	o.ContextTimeoutEnabled = true
	o.DialTimeout = time.Second
	// An answer that comes after this time counts as lost, so the outcome is unknown.
	o.ReadTimeout, o.WriteTimeout = execTimeout, execTimeout
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.PoolSize = conns
	o.DisableIdentity = true
	o.Protocol = 2 // version 3 costs one more system call before each command
	if !o.IsClusterMode {
		client := redis.NewUniversalClient(o)
		client.AddHook(newCommandHook())
		return client, nil
	}
	of := o.Cluster()
	// The locks need no routing but that by slot. Otherwise, the first command of a client would ask any
	// node for a list of commands, and wait for a node that hangs.
	of.DisableRoutingPolicies = true
	cluster := redis.NewClusterClient(of)
	cluster.AddHook(newCommandHook())
	cluster.AddHook(onceHook{reload: cluster.ReloadState})
	return cluster, nil
}

// bufferSize is for each connection, in bytes. Commands and answers of the locks are short.
const bufferSize = 8192

// ErrPartOfCluster means that some slots of a cluster have no master, or most masters are missing.
var ErrPartOfCluster = errors.New("a part of the cluster is down")

// Ping returns nil if the Redis carries out what a lock needs, a write and a message, and if each master of a
// cluster answers and each slot has one.
func Ping(ctx context.Context, c redis.UniversalClient) error {
	if _, ok := c.(*redis.ClusterClient); ok {
		if err := eachMaster(ctx, c, clusterIsWhole); err != nil {
			return err
		}
	}
	if err := PingMaster(ctx, c); err != nil {
		return err
	}
	_, _, channel := redisNames(probe)
	return c.Publish(ctx, channel, "0").Err()
}

// probe is a key of its own: the name of a lock could be any other, and a probe must not overwrite a held lock.
const probe = "oversell:probe"

// PingMaster returns nil if the Redis carries out a write, and no master may evict a stock or the counter of a fence.
// The key lasts for a second.
func PingMaster(ctx context.Context, c redis.UniversalClient) error {
	if err := c.Set(ctx, probe, "", time.Second).Err(); err != nil {
		return err
	}
	return eachMaster(ctx, c, func(ctx context.Context, master redis.UniversalClient) error {
		return redis.NewScript(evictsLua+"return evicts() or 1").Run(ctx, master, nil).Err()
	})
}

func clusterIsWhole(ctx context.Context, master redis.UniversalClient) error {
	info, err := master.ClusterInfo(ctx).Result()
	if err == nil && !strings.Contains(info, "cluster_state:ok") {
		err = ErrPartOfCluster
	}
	return err
}

// eachMaster calls do for each master of a cluster, or for a single Redis.
func eachMaster(ctx context.Context, c redis.UniversalClient, do func(context.Context, redis.UniversalClient) error) error {
	if cluster, ok := c.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return do(ctx, master) })
	}
	return do(ctx, c)
}

var flushStat = regexp.MustCompile(`cmdstat_flush(?:all|db):calls=(\d+)`)

// Flushes returns how many FLUSHALL and FLUSHDB commands the servers have executed, the masters of a
// cluster too.
func Flushes(ctx context.Context, servers ...redis.UniversalClient) (int64, error) {
	var sum atomic.Int64
	for _, server := range servers {
		err := eachMaster(ctx, server, func(ctx context.Context, master redis.UniversalClient) error {
			stats, err := master.Info(ctx, "commandstats").Result()
			for _, found := range flushStat.FindAllStringSubmatch(stats, -1) {
				n, _ := strconv.ParseInt(found[1], 10, 64) // no error: digits
				sum.Add(n)
			}
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("read how often redis executed FLUSHALL or FLUSHDB: %w", err)
		}
	}
	return sum.Load(), nil
}
