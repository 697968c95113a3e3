package lockstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/api"
	"oversell/lab/stall"
)

// CheckResult is the result of one check of a contract.
type CheckResult struct {
	Check string `json:"check"`
	// Claimed is the claim in words, or its opposite if the card denies it.
	Claimed string `json:"claimed"`
	// Failed is what the check found instead. It is empty if the lock does as its card claims.
	Failed string `json:"failed,omitempty"`
	// Inconclusive says why the check has found nothing: the machine was too busy.
	Inconclusive string `json:"inconclusive,omitempty"`
	// Basic means that no other check makes sense after a failure of this one.
	Basic bool          `json:"basic,omitempty"`
	Took  time.Duration `json:"took_ns"`
}

// atOnce is the number of checks that run at the same time. Most of them wait for a lease.
const atOnce = 4

// Contract runs all checks that apply to the card, without a test: first the basic checks, one by
// one, then the others, and last the busy ones, one by one. It ends at the first basic check that fails. Each check may take limit.
// Contract leaves out the checks for which skip returns true. It calls report after each check, from
// one goroutine at a time.
func Contract(ctx context.Context, cfg *Config, limit time.Duration, skip func(Check) bool, report func(CheckResult)) error {
	chosen := slices.DeleteFunc(Checks(), func(c Check) bool { return c.Claim(cfg.Card) == Silent || skip(c) })
	slices.SortStableFunc(chosen, func(a, b Check) int { return rank(a) - rank(b) })
	var reporting sync.Mutex
	run := func(c Check) CheckResult {
		o := c.outcome(ctx, cfg, limit)
		reporting.Lock()
		defer reporting.Unlock()
		if ctx.Err() == nil {
			report(o)
		}
		return o
	}
	var others errgroup.Group
	others.SetLimit(atOnce)
	for _, c := range chosen {
		switch {
		case c.basic < 0:
			if o := run(c); o.Failed+o.Inconclusive != "" || ctx.Err() != nil {
				return context.Cause(ctx)
			}
		case c.Busy:
			_ = others.Wait()
			run(c)
		default:
			others.Go(func() error { run(c); return nil })
		}
	}
	_ = others.Wait()
	return context.Cause(ctx)
}

// rank orders the basic checks before the others, and the busy ones last.
func rank(c Check) int {
	if c.Busy {
		return 1
	}
	return c.basic
}

func (c Check) outcome(ctx context.Context, cfg *Config, limit time.Duration) CheckResult {
	began := time.Now()
	late := fmt.Errorf("the check had no result within %v", limit)
	limited, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	o := CheckResult{Check: c.Name, Claimed: c.Claimed(cfg.Card), Basic: c.basic < 0}
	stalled := stall.Slowest(ctx)
	err := c.Run(limited, cfg)
	longest := stalled()
	switch {
	case err == nil:
	case errors.Is(err, ErrBusy):
		o.Inconclusive = err.Error()
	case errors.Is(err, late) && longest > cfg.Lease/5:
		o.Inconclusive = fmt.Sprintf("%v: a process got no processor for %v; is the machine overloaded?", late, longest.Round(time.Millisecond))
	case errors.Is(err, late):
		o.Failed = fmt.Sprintf("%v: a request got no answer, or waited for a lock that did not become free", late)
	default:
		o.Failed = err.Error()
	}
	o.Took = time.Since(began)
	return o
}

// Claimed returns the claim of the check in words, or its opposite if the card denies it.
func (c Check) Claimed(card api.Card) string {
	if c.Claim(card) == No {
		return c.Denies
	}
	return c.Says
}
