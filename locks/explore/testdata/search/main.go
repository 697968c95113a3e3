// Command search runs one search, and writes its result to stdout. Its argument is a Scope in JSON.
// TestMutations builds it with a wrong strategy. It is much smaller than oversell, so each of these
// builds takes less time.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"runtime/debug"

	"github.com/redis/go-redis/v9/logging"

	"oversell/locks/explore"
)

func main() {
	debug.SetGCPercent(1000) // a schedule leaves a lot, and keeps little
	logging.Disable()        // the client also returns the errors
	var t explore.Scope
	if err := json.Unmarshal([]byte(os.Args[1]), &t); err != nil {
		log.Fatal(err)
	}
	t.MySQL = os.Getenv("OVERSELL_SEARCH_MYSQL")
	r, err := explore.Search(context.Background(), t, nil)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		log.Fatal(err)
	}
}
