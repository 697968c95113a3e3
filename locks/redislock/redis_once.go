package redislock

import (
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/locks"
)

// RedisOnce is Redis for any number of keys that are used once, such as one for each order.
// Redis drops their fence counters a minute after the last grant: guard no row by them.
func RedisOnce(c redis.UniversalClient, lease time.Duration) locks.Locker {
	l := newRedisLock(c, lease)
	l.counterLife = max(time.Minute, 2*lease)
	return locks.Reentrant(locks.Queue(l))
}
