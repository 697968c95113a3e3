package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"oversell/lab/rig/rigtest"
)

// scopeEnv is the environment variable that makes the test binary run one search, and write its result to stdout.
// Its value is a Scope in JSON. TestMutations builds the binary with a wrong strategy.
const scopeEnv = "OVERSELL_EXPLORE_SCOPE"

func TestMain(m *testing.M) {
	logging.Disable()        // the client also returns the errors
	debug.SetGCPercent(1000) // as the command does: a schedule leaves a lot, and keeps little
	if scope := os.Getenv(scopeEnv); scope != "" {
		if err := searchAlone(scope); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	rigtest.Main(m)
}

func searchAlone(scope string) error {
	var t Scope
	if err := json.Unmarshal([]byte(scope), &t); err != nil {
		return err
	}
	r, err := Search(context.Background(), t, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
