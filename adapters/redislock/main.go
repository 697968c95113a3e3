// Command redislock is an adapter for github.com/bsm/redislock.
package main

import (
	"time"

	"oversell/adapters/library"
	"oversell/adapters/lockers"
)

func main() {
	hello := library.Hello("bsm/redislock", "0.9.4", "https://pkg.go.dev/github.com/bsm/redislock@v0.9.4", "redis")
	hello.Capabilities.Lease, hello.Capabilities.LeasePerRequest = true, true // it renews only by Refresh
	library.Serve(hello, lockers.Redislock(library.Redis(), library.Milliseconds("LEASE_MS", 10*time.Second)))
}
