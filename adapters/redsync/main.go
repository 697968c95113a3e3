// Command redsync is an adapter for github.com/go-redsync/redsync on one Redis, or on the servers of
// REDLOCK_URLS with the argument 5.
package main

import (
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/adapters/library"
	"oversell/adapters/lockers"
)

func main() {
	backend, clients := "redis", []redis.UniversalClient{library.Redis()}
	if len(os.Args) > 1 && os.Args[1] == "5" {
		backend, clients = "redlock", nil
		for _, url := range library.Servers("REDLOCK_URLS", "redis://127.0.0.1:6379/0") {
			clients = append(clients, redis.NewClient(library.Must(redis.ParseURL(url))))
		}
	}
	hello := library.Hello("redsync", "4.18.0", "https://pkg.go.dev/github.com/go-redsync/redsync/v4", backend)
	hello.Capabilities.Lease, hello.Capabilities.LeasePerRequest = true, true // it renews only by Extend
	lease := library.Milliseconds("LEASE_MS", 8*time.Second)                  // redsync's default
	library.Serve(hello, lockers.Redsync(backend, lease, clients))
}
