// Command redislock is an adapter for github.com/bsm/redislock.
package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/adapters/library"
	"oversell/adapters/lockers"
)

func main() {
	client := redis.NewClient(library.Must(redis.ParseURL(library.Servers("REDIS_URL", "redis://127.0.0.1:6379/0")[0])))
	hello := library.Hello("bsm/redislock", "0.9.4", "https://pkg.go.dev/github.com/bsm/redislock@v0.9.4", "redis")
	hello.Capabilities.Lease, hello.Capabilities.LeasePerRequest = true, true // it renews only by Refresh
	library.Serve(hello, lockers.Redislock(client, library.Milliseconds("LEASE_MS", 10*time.Second)))
}
