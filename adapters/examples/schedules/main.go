// Command schedules runs every schedule of locks of other Go libraries, as `oversell explore` does:
//
//	oversell explore --go adapters/examples/schedules redsync --pauses 1
//
// For a lock of your own, hand its constructor over in the same way.
package main

import (
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"oversell/adapters/lockers"
	"oversell/cli"
	"oversell/locks"
	"oversell/trial/explore"
)

func main() {
	fixed := redsync.WithRetryDelay(100 * time.Millisecond) // a random pause would differ each time
	os.Exit(cli.Explore(os.Args[1:],
		explore.OnRedis("redsync", func(c redis.UniversalClient) locks.Locker {
			return lockers.Redsync("redis", time.Second, []redis.UniversalClient{c}, fixed)
		}),
		explore.OnRedlock("redsync-3", func(all []redis.UniversalClient) locks.Locker {
			return lockers.Redsync("redlock", time.Second, all, fixed)
		}),
		explore.OnRedis("bsm/redislock", func(c redis.UniversalClient) locks.Locker { return lockers.Redislock(c, time.Second) }),
	))
}
