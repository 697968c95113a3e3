package scenario

import (
	"context"
	"fmt"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/report"
)

// The goods that are sold side by side, and what there is to sell.
const (
	firstGoods = 101
	goods      = 10
	shelf      = 20                    // pieces of each product
	buyers     = 6                     // of each product, at the same time
	working    = 10 * time.Millisecond // inside the lock: time in which others could work as well
)

// Grain sells ten products under one lock, and under a lock each (document 003: as fine as
// the goods). A lock for each order is finer still, and guards nothing.
func Grain() Scenario {
	guard := func(id string, safe bool) Guard {
		return Guard{ID: id, Safe: safe, first: "writing", second: "writing"}
	}
	return Scenario{
		ID: "grain", Replicas: 3,
		Title:  report.Sentence{EN: "Ten products under one lock and under a lock each", ZH: "十种商品：一把锁，还是一种一把锁"},
		Guards: []Guard{guard("none", false), guard("order", false), guard("all", true), guard("each", true)},
		Run:    sellGrain,
	}
}

// market is one sale of all the goods in one grain.
type market struct {
	ops  [goods][]history.Op
	left [goods]int
	took time.Duration
}

// perSecond is the market's throughput.
func (m *market) perSecond() float64 {
	sold := 0
	for _, ops := range m.ops {
		sold += history.Taken(ops, history.OK)
	}
	return float64(sold) / m.took.Seconds()
}

func sellGrain(ctx context.Context, shop Shop, guard Guard) (Result, error) {
	m, err := openMarket(ctx, shop, guard)
	if err != nil {
		return Result{}, err
	}
	r := judgeGrain(guard, m)
	if guard.ID != "each" {
		return r, nil
	}
	// The same once more under one lock: on this machine, at this hour.
	coarse, err := openMarket(ctx, shop, Guard{ID: "all", first: guard.first, second: guard.second})
	if err != nil {
		return Result{}, err
	}
	r.compare(coarse)
	return r, nil
}

// openMarket puts the goods on the shelf and lets all of it be bought.
func openMarket(ctx context.Context, shop Shop, guard Guard) (*market, error) {
	for i := range goods {
		if err := shop.Replicas[0].SetStock(ctx, firstGoods+int64(i), shelf); err != nil {
			return nil, err
		}
	}
	buy := func(product int64, wait string, work time.Duration) func(context.Context, api.Client) Answer {
		return func(ctx context.Context, to api.Client) Answer {
			return post(ctx, to, fmt.Sprintf("/goods/%d/orders?grain=%s&wait=%s&hold=%s", product, guard.ID, wait, work))
		}
	}
	m := &market{}
	told, err := duel(ctx, shop, api.Key(firstGoods), guard, buy(firstGoods, "0s", 0))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	bought := storm(goods*buyers, func(i int) []history.Op {
		door := shop.Replicas[i%len(shop.Replicas)]
		return spend(ctx, door, buy(firstGoods+int64(i%goods), "60s", working))
	})
	m.took = time.Since(began)
	for i, ops := range bought {
		m.ops[i%goods] = append(m.ops[i%goods], ops...)
	}
	for _, a := range told {
		m.ops[0] = append(m.ops[0], a.op())
	}
	for i := range goods {
		if m.left[i], err = shop.Replicas[0].Count(ctx, "none", firstGoods+int64(i)); err != nil {
			return nil, err
		}
	}
	return m, ctx.Err()
}

// spend buys piece after piece until they are sold out. Under a guard that loses count
// they might never be: nobody buys more than all.
func spend(ctx context.Context, door api.Client, buy func(context.Context, api.Client) Answer) (ops []history.Op) {
	for range shelf {
		op := buy(ctx, door).op()
		ops = append(ops, op)
		if op.Reason == history.SoldOut || ctx.Err() != nil {
			break
		}
	}
	return ops
}

// judgeGrain looks at each product by itself.
func judgeGrain(guard Guard, m *market) Result {
	r := newResult("grain", guard)
	sold, lost := 0, 0
	for i, ops := range m.ops {
		for _, op := range ops {
			r.Told[op.Reason]++
		}
		sold += history.Taken(ops, history.OK)
		if c := check.Stock(ops, shelf, m.left[i]); c.Verdict != check.Holds {
			r.broke("product %d: %d sold of %d, and %d are left", firstGoods+i, c.Sold, shelf, m.left[i])
			lost += c.LostMin
		}
	}
	r.Figures = map[string]float64{"sold": float64(sold), "lost": float64(lost), "per_s": m.perSecond()}
	r.Sentence = report.Sentence{
		EN: fmt.Sprintf("grain, guard %s: %d products, %d sold of %d, %d of them twice; %.0f sales a second.", guard.ID, goods, sold, goods*shelf, lost, m.perSecond()),
		ZH: fmt.Sprintf("锁的粒度，守护 %s：%d 种商品，%d 件卖出 %d 件，其中 %d 件卖了两次；每秒 %.0f 件。", guard.ID, goods, goods*shelf, sold, lost, m.perSecond()),
	}
	return r
}

// compare says what a lock for each product is worth.
func (r *Result) compare(coarse *market) {
	all := coarse.perSecond()
	factor := r.Figures["per_s"] / all
	if factor <= 1 {
		r.broke("a lock for each is no faster than one for all: %.0f sales a second against %.0f", r.Figures["per_s"], all)
	}
	r.Figures["all_per_s"], r.Figures["factor"] = all, factor
	r.Sentence.EN += fmt.Sprintf(" Under one lock for all: %.0f. A lock for each is %.1f times as fast.", all, factor)
	r.Sentence.ZH += fmt.Sprintf("所有商品共用一把锁：每秒 %.0f 件。一种商品一把锁，快 %.1f 倍。", all, factor)
}
