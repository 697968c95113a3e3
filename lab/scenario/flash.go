package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

// Document 002's flash sale.
const (
	customers  = 5000
	pieces     = 1000
	flashGoods = 1
)

// Flash is a sale with five customers for each piece, all at once (document 002). The
// guards are strategies: the stock in a row, and in Redis. Exactly as many win as there are
// pieces; sold out and "try again" are two answers, and who is told to try again does.
func Flash() Scenario {
	guard := func(id string, safe bool) Guard {
		return Guard{ID: id, Safe: safe, first: "writing", second: "writing"}
	}
	return Scenario{
		ID: "flash", Replicas: 3, Run: sellFlash,
		Title: report.Sentence{EN: "5000 customers want one of 1000 products", ZH: "五千名顾客抢一千件商品"},
		Guards: []Guard{
			guard("none", false), guard("mutex", false),
			guard("redis-watch", true), guard("redis-stock", true),
		},
	}
}

// rush is what became of the customers.
type rush struct {
	ops   []history.Op
	again int // were told to try again, and did
	took  time.Duration
}

func sellFlash(ctx context.Context, shop Shop, guard Guard) (Result, error) {
	at := shop.Replicas[0]
	if err := at.SetStock(ctx, flashGoods, pieces); err != nil {
		return Result{}, err
	}
	var rushed rush
	told, err := duel(ctx, shop, api.Key(flashGoods), guard, func(ctx context.Context, to api.Client) Answer {
		return post(ctx, to, fmt.Sprintf("/check/lock?strategy=%s&product=%d&wait=0s", guard.ID, flashGoods))
	})
	if err != nil {
		return Result{}, err
	}
	for _, a := range told {
		rushed.ops = append(rushed.ops, a.op())
	}
	rushed.again = history.Count(rushed.ops, tryAgain)
	if err := rushed.come(ctx, shop, guard.ID, customers-len(told)+rushed.again); err != nil {
		return Result{}, err
	}
	left, row, err := flashLeft(ctx, at, guard.ID)
	if err != nil {
		return Result{}, err
	}
	return judgeFlash(guard, rushed, left, row), nil
}

// come sends the customers to all replicas at once, each on a connection of its own and
// past the balancer, whose workers have no 10000 sockets between them. Those who are told to
// try again come again.
func (r *rush) come(ctx context.Context, shop Shop, strategy string, customers int) error {
	const patience, rounds = 30 * time.Second, 20
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	for round := 0; customers > 0; round++ {
		if round == rounds {
			return fmt.Errorf("%d customers were told %d times to try again", customers, rounds)
		}
		doors := len(shop.Replicas)
		came := make([]history.History, doors)
		failed := make([]error, doors)
		var all sync.WaitGroup
		for i, door := range shop.Replicas {
			here := (customers + i) / doors
			if here == 0 {
				continue
			}
			all.Go(func() {
				came[i], failed[i] = load.Run(ctx, load.Plan{
					Target: door.Base, Strategy: strategy, Product: flashGoods, Qty: 1,
					Clients: here, Loops: 1, Wait: patience, Timeout: 2 * patience,
				}, nil)
			})
		}
		all.Wait()
		customers = 0
		for i := range came {
			if failed[i] != nil {
				return failed[i]
			}
			customers += history.Count(came[i].Ops, tryAgain)
			r.ops = append(r.ops, came[i].Ops...)
		}
		r.again += customers
	}
	return nil
}

// tryAgain reports whether the customer knows for sure that nothing was sold to it, and
// that there may be something left.
func tryAgain(op *history.Op) bool {
	return op.Outcome == history.Refused && op.Reason != history.SoldOut
}

// flashLeft is what is left where the strategy sells from, and in the row. Who sells in
// Redis and carries it to the row afterwards is given the time for it.
func flashLeft(ctx context.Context, at api.Client, strategy string) (left, row int, err error) {
	const patience = 30 * time.Second
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if left, err = at.Count(ctx, strategy, flashGoods); err != nil {
			return 0, 0, err
		}
		if row, err = at.Count(ctx, "none", flashGoods); err != nil {
			return 0, 0, err
		}
		if row == left || strategy != "redis-stock" {
			return left, row, nil
		}
		select {
		case <-waiting.Done():
			return left, row, ctx.Err()
		case <-look.C:
		}
	}
}

// judgeFlash counts the winners.
func judgeFlash(guard Guard, rushed rush, left, row int) Result {
	r := newResult("flash", guard)
	conflicts := 0
	for i := range rushed.ops {
		op := &rushed.ops[i]
		word := op.Reason
		if op.Outcome == history.Unknown {
			word = unknown
		}
		r.Told[word]++
		conflicts += op.Retries
	}
	winners := r.Told[history.Sold]
	if winners != pieces {
		r.broke("%d customers won one of %d pieces", winners, pieces)
	}
	if winners != pieces-left {
		r.broke("%d pieces were sold, and %d of %d are left", winners, left, pieces)
	}
	if lost := r.Told[unknown]; lost > 0 {
		r.broke("%d customers don't know whether they won", lost)
	}
	if guard.ID == "redis-stock" && row != left {
		r.broke("the row says %d, Redis %d", row, left)
	}
	r.Figures = map[string]float64{
		"winners": float64(winners), "sold_out": float64(r.Told[history.SoldOut]), "try_again": float64(rushed.again),
		"conflicts": float64(conflicts), "took_s": rushed.took.Seconds(),
	}
	r.Sentence = flashSentence(r, left)
	return r
}

func flashSentence(r Result, left int) report.Sentence {
	f, lost := r.Figures, report.Sentence{}
	if n := r.Told[unknown]; n > 0 {
		lost = report.Sentence{EN: fmt.Sprintf(", %d were told nothing clear", n), ZH: fmt.Sprintf("，%d 人没有得到明确答复", n)}
	}
	return report.Sentence{
		EN: fmt.Sprintf("flash, guard %s: %d customers, %d pieces: %.0f won, %.0f were told \"sold out\"%s, %d are left; %.0f attempts met a rival's, %.0f were told to try again; %.1f s.",
			r.Guard, customers, pieces, f["winners"], f["sold_out"], lost.EN, left, f["conflicts"], f["try_again"], f["took_s"]),
		ZH: fmt.Sprintf("秒杀，守护 %s：%d 名顾客抢 %d 件商品：%.0f 人抢到，%.0f 人得到“已售完”%s，剩 %d 件；冲突 %.0f 次，%.0f 次被告知“请重试”；%.1f 秒。",
			r.Guard, customers, pieces, f["winners"], f["sold_out"], lost.ZH, left, f["conflicts"], f["try_again"], f["took_s"]),
	}
}
