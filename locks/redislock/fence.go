package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed mint.lua
var mintLua string

// fences makes fencing tokens on independent masters, because Redlock has none. mint reads a
// majority's highest fence, and stores the next one on a majority. Any two majorities share a
// master, which accepts a fence only once. So each later holder gets a higher fence.
type fences struct {
	nodes    []redis.UniversalClient
	take     *redis.Script
	patience time.Duration
}

func newFences(nodes []redis.UniversalClient, lease time.Duration) fences {
	return fences{nodes: nodes, take: redis.NewScript(mintLua), patience: nodeTimeout(lease)}
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

// onMajority returns the answers of a majority. It waits for the other masters for at most f.patience,
// because a lease is running, and a master that hangs must not use it up.
func (f fences) onMajority(ask func(redis.UniversalClient) (int64, error)) (got []int64, err error) {
	type answer struct {
		n   int64
		err error
	}
	answers := make(chan answer, len(f.nodes))
	for _, node := range f.nodes {
		go func() {
			n, err := ask(node)
			answers <- answer{n, err}
		}()
	}
	patience := time.After(f.patience)
	var errs []error
	for range f.nodes {
		var enough <-chan time.Time
		if len(got) > len(f.nodes)/2 {
			enough = patience
		}
		select {
		case a := <-answers:
			if a.err == nil {
				got = append(got, a.n)
			}
			errs = append(errs, a.err)
		case <-enough:
			return got, nil
		}
	}
	if len(got) <= len(f.nodes)/2 {
		return nil, fmt.Errorf("no majority of the %d masters answered: %w", len(f.nodes), errors.Join(errs...))
	}
	return got, nil
}
