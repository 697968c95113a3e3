package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/api"
)

// race makes two requests overlap, each on a replica of its own. Failpoints pause the first request
// with this key, such as "order:7", at guard.first, and the second at guard.second. When each
// request is paused or answered, race lets both continue, and returns their answers.
func race[A any](ctx context.Context, service Service, key string, guard Guard, send func(context.Context, api.Client) A) ([]A, error) {
	if len(service.Replicas) < 2 {
		return nil, errors.New("a scenario needs two replicas to make two requests overlap")
	}
	var answers []chan A
	for i, step := range []api.Step{guard.first, guard.second} {
		replica := service.Replicas[i]
		if err := replica.Arm(ctx, api.Failpoint{Key: key, Step: step}); err != nil {
			return nil, err
		}
		// No request may stay paused, also not after an error.
		defer func() { _ = replica.ResumeAll(context.WithoutCancel(ctx)) }()
		answer := make(chan A, 1)
		go func() { answer <- send(ctx, replica) }()
		answers = append(answers, answer)
		if err := awaitPause(ctx, replica, key, answer); err != nil {
			return nil, fmt.Errorf("%s at step %q: %w", key, step, err)
		}
	}
	for _, replica := range service.Replicas[:2] {
		if err := replica.ResumeAll(ctx); err != nil {
			return nil, err
		}
	}
	return []A{<-answers[0], <-answers[1]}, nil
}

// awaitPause waits until a request with the key is paused at the replica, or is answered.
func awaitPause[A any](ctx context.Context, replica api.Client, key string, answer <-chan A) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no request was paused within a minute"))
	defer cancel()
	for ; len(answer) == 0; time.Sleep(2 * time.Millisecond) {
		paused, err := replica.Paused(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || slices.ContainsFunc(paused, func(p api.Paused) bool { return p.Key == key }) {
			return err
		}
	}
	return nil
}
