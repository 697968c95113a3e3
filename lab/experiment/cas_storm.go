package experiment

import (
	"context"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/player"
)

func casStorm() Experiment {
	return Experiment{
		Hazard: "cas-storm", Group: costly, Applies: claimed("cas-storm"),
		Title: api.Text{EN: "60 requests at once", ZH: "60 个请求同时到达"},
		Shows: api.Text{EN: "failed attempts for each sale", ZH: "每卖出一件，有多少次尝试因冲突而失败"},
		perform: func(ctx context.Context, r *round) ([]Result, error) {
			return r.each(ctx, waiters, func(s player.Subject) (Result, error) { return r.buyAtOnce(ctx, s) })
		},
	}
}

func (r *round) buyAtOnce(ctx context.Context, s player.Subject) (Result, error) {
	ops := make([]history.Op, waiters)
	var all sync.WaitGroup
	for i := range ops {
		all.Go(func() { ops[i] = r.bed.Buy(ctx, i%3, s, player.Wait(30*time.Second)) })
	}
	all.Wait()
	retries := 0
	for _, op := range ops {
		retries += op.Retries
	}
	result := r.safe(s, r.recording(s, waiters, ops))
	if _, err := r.count(ctx, 0, s, &result); err != nil {
		return result, err
	}
	result.Why = api.Joined(result.Counts(), api.Textf(
		"The %d requests came at the same time, and made %d failed attempts.",
		"%d 个请求同时到达，失败的尝试共 %d 次。", waiters, retries))
	// At this limit, a third of all attempts failed: one failed attempt for two sales.
	if retries > result.Sold/2 {
		result.Verdict = api.Wasteful
	}
	return result, nil
}
