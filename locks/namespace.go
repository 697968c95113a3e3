package locks

import (
	"context"
	"slices"
	"strings"

	"oversell/api"
	"oversell/stock"
)

// Within decorates a Locker whose server other deployments use, too: its keys begin with the namespace. Steps keep
// the key of the caller. Without a namespace, it returns l.
func Within(namespace string, l Locker) Locker {
	if namespace == "" {
		return l
	}
	return &within{decorated{l}, namespace + ":"}
}

type within struct {
	decorated
	prefix string
}

func (w *within) Acquire(ctx context.Context, r Request) (*Lock, error) {
	r.Key, r.Also = w.prefix+r.Key, slices.Clone(r.Also)
	for i := range r.Also {
		r.Also[i] = w.prefix + r.Also[i]
	}
	if step := stock.WatchOf(ctx).Step; step != nil {
		ctx = WithTracer(ctx, func(ctx context.Context, e api.Event) {
			e.Key = strings.TrimPrefix(e.Key, w.prefix)
			step(ctx, e)
		})
	}
	return w.Locker.Acquire(ctx, r)
}

func (w *within) Clear(ctx context.Context, key string) error {
	return w.decorated.Clear(ctx, w.prefix+key)
}
