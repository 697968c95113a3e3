package experiment

import (
	"context"
	"errors"
	"net/url"
	"time"

	"oversell/api"
	"oversell/lab/history"
)

// deadlock lets two requests want what the other has. Two transactions have read the row in share mode, and both write.
// Or each request names the same two locks, in the opposite order.
func deadlock() Experiment {
	return Experiment{
		Hazard: "deadlock", Group: faultless, Applies: claimed("deadlock"),
		Title: api.Text{EN: "two requests want what the other one has", ZH: "两个请求各占一份，又都要对方的那份"},
		Shows: api.Text{
			EN: "both wait: MySQL rolls one of them back (error 1213), locks outside it wait until a time-out",
			ZH: "互相等待：MySQL 回滚其中一个（错误 1213），数据库之外的锁一直等到超时",
		},
		step: "read", contenderAt: "writing", contenderParams: wait(time.Second), judge: rolledBack,
		perform: func(ctx context.Context, r *round) (results []Result, err error) {
			var several, others []Subject
			for _, s := range r.subjects {
				if s.Card.SeveralLocks {
					several = append(several, s)
				} else {
					others = append(others, s)
				}
			}
			opposite := r.with(several...)
			opposite.step, opposite.contenderAt, opposite.judge = string(api.Part), "asked", waitForEachOther
			opposite.holderParams, opposite.contenderParams = named("a,b"), named("b,a")
			opposite.meanwhile = letContenderLock
			for _, next := range []*round{r.with(others...), opposite} {
				if len(next.subjects) > 0 {
					some, failed := next.once(ctx)
					results, err = append(results, some...), errors.Join(err, failed)
				}
			}
			return results, err
		},
	}
}

func rolledBack(p *participant) *finding {
	n := p.ops[holder].Retries + p.ops[contender].Retries
	if n == 0 {
		return nil
	}
	return &finding{api.Wasteful, "", api.Textf(
		"The two requests waited for each other, and MySQL rolled one of them back. Retries: %d.",
		"两个请求互相等待，MySQL 回滚了其中一个。重试 %d 次。", n)}
}

func named(locks string) url.Values {
	return url.Values{"also": {locks}, "wait": {Lease.String()}}
}

// letContenderLock gives the contender the time to acquire a lock, while the holder has one. If both want them in the
// same order, the contender gets none.
func letContenderLock(ctx context.Context, r *round) error {
	limited, cancel := context.WithTimeout(ctx, Lease/3)
	defer cancel()
	_ = r.awaitStep(limited, contender, func(Card) string { return string(api.Part) })
	return ctx.Err()
}

func waitForEachOther(p *participant) *finding {
	if p.stopped[holder] == "" {
		return &finding{api.Inconclusive, "", api.Text{EN: "The holder never had one lock of several.", ZH: "持锁者没有停在只拿到一把锁的时候。"}}
	}
	if p.ops[holder].Outcome == history.OK && p.ops[contender].Outcome == history.OK {
		return nil
	}
	return stalled(api.Textf("Each request had one lock and waited for the other one, until %v had passed.",
		"两个请求各占一把锁，又等对方的那把，直到 %v 之后超时。", Lease))
}
