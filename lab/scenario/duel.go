package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/api"
)

// duel sends two requests that want the same, on two replicas, so that they surely cross: the
// first is held up at the step guard.first and the second at guard.second, or has its answer
// before it gets there; only then both go on. key is what both trace their steps under.
func duel[A any](ctx context.Context, shop Shop, key string, guard Guard, send func(context.Context, api.Client) A) ([]A, error) {
	if len(shop.Replicas) < 2 {
		return nil, errors.New("a duel needs two replicas")
	}
	var told []chan A
	for i, step := range []string{guard.first, guard.second} {
		at := shop.Replicas[i]
		if err := at.Arm(ctx, api.Failpoint{Key: key, Step: api.Step(step)}); err != nil {
			return nil, err
		}
		// Whatever happens: nobody stays behind at a step.
		defer func() { _ = at.ResumeAll(context.WithoutCancel(ctx)) }()
		answer := make(chan A, 1)
		go func() { answer <- send(ctx, at) }()
		told = append(told, answer)
		if err := reached(ctx, at, key, answer); err != nil {
			return nil, fmt.Errorf("%s at %q: %w", key, step, err)
		}
	}
	for _, at := range shop.Replicas[:2] {
		if err := at.ResumeAll(ctx); err != nil {
			return nil, err
		}
	}
	return []A{<-told[0], <-told[1]}, nil
}

// reached waits until somebody is held up at the key's failpoint, or has the answer.
func reached[A any](ctx context.Context, at api.Client, key string, answer chan A) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case a := <-answer:
			answer <- a // for who reads it at the end
			return nil
		case <-ctx.Done():
			return fmt.Errorf("nobody came: %w", context.Cause(ctx))
		case <-look.C:
		}
		stopped, err := at.Paused(ctx)
		if err != nil {
			return err
		}
		for _, s := range stopped {
			if s.Key == key {
				return nil
			}
		}
	}
}
