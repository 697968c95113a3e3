package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed mint.lua
var mintLua string

// fences makes fencing tokens on independent masters, because Redlock has none. mint reads a
// majority's highest fence, and stores the next one on a majority. Any two majorities share a
// master, which accepts a fence only once. So each later holder gets a higher fence.
type fences struct {
	nodes []redis.UniversalClient
	take  *redis.Script
}

func newFences(nodes []redis.UniversalClient) fences {
	return fences{nodes: nodes, take: redis.NewScript(mintLua)}
}

func fenceKey(key string) string { return "{redlock:" + key + "}:fence" }

// attempts limits the tries of mint. A try fails if a holder with an expired lock was faster.
const attempts = 5

// mint returns a fence above floor and above every fence minted before.
func (f fences) mint(ctx context.Context, key string, floor int64) (int64, error) {
	for range attempts {
		highest, err := f.highest(ctx, key)
		if err != nil {
			return 0, err
		}
		fence := max(highest, floor) + 1
		taken, err := f.onMajority(func(node redis.UniversalClient) (int64, error) {
			return f.take.Run(ctx, node, []string{fenceKey(key)}, fence).Int64()
		})
		if err != nil {
			return 0, err
		}
		rejected := func(vote int64) bool { return vote == 0 }
		if len(slices.DeleteFunc(taken, rejected)) > len(f.nodes)/2 {
			return fence, nil
		}
	}
	return 0, fmt.Errorf("mint a fence for %s: another request was faster %d times", key, attempts)
}

func (f fences) highest(ctx context.Context, key string) (int64, error) {
	seen, err := f.onMajority(func(node redis.UniversalClient) (int64, error) {
		n, err := node.Get(ctx, fenceKey(key)).Int64()
		if errors.Is(err, redis.Nil) {
			return 0, nil
		}
		return n, err
	})
	return slices.Max(append(seen, 0)), err
}

func (f fences) onMajority(ask func(redis.UniversalClient) (int64, error)) (got []int64, err error) {
	var answered sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, node := range f.nodes {
		answered.Go(func() {
			n, err := ask(node)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got = append(got, n)
			}
			errs = append(errs, err)
		})
	}
	answered.Wait()
	if len(got) <= len(f.nodes)/2 {
		return nil, fmt.Errorf("no majority of the %d masters answered: %w", len(f.nodes), errors.Join(errs...))
	}
	return got, nil
}
