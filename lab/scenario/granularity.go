package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

const (
	firstProduct = 101
	products     = 10
	perProduct   = 20                    // pieces
	buyers       = 6                     // of each product, at the same time
	extraWork    = 10 * time.Millisecond // inside the lock, so that one lock for all is slow
)

// Granularity returns the scenario that sells ten products without a lock, under a useless lock per
// order, under one lock for all, and under a lock per product (document 003).
func Granularity() Scenario {
	const at = api.Writing
	return Scenario{
		ID: "grain", Replicas: 3,
		Title: api.Text{EN: "Ten products under one lock and under a lock each", ZH: "十种商品：一把锁，还是一种一把锁"},
		Guards: []Guard{
			newGuard("none", false, at, at, "no guard", "无防护"),
			newGuard("order", false, at, at, "a lock per order: no two requests share it", "每个订单一把锁：没有两个请求共用它"),
			newGuard("all", true, at, at, "one lock for all products", "所有商品共用一把锁"),
			newGuard("each", true, at, at, "a lock per product", "每种商品一把锁"),
		},
		Run: runGranularity,
	}
}

// sale is the result of one sale of all products with one guard.
type sale struct {
	ops  [products][]history.Op
	left [products]int
	took time.Duration
}

func (s *sale) sold() (sum int) {
	for _, ops := range s.ops {
		sum += history.Taken(ops, history.OK)
	}
	return sum
}

func (s *sale) perSecond() float64 { return float64(s.sold()) / s.took.Seconds() }

func runGranularity(ctx context.Context, service Service, guard Guard) (Result, error) {
	s, err := sell(ctx, service, guard)
	if err != nil {
		return Result{}, err
	}
	r := judgeGranularity(guard, s)
	if guard.ID != "each" {
		return r, nil
	}
	// The sale under one lock for all runs now, so that both sales have the same conditions.
	coarse, err := sell(ctx, service, Guard{ID: "all", first: guard.first, second: guard.second})
	if err != nil {
		return Result{}, err
	}
	r.compare(coarse)
	return r, nil
}

func sell(ctx context.Context, service Service, guard Guard) (*sale, error) {
	replica := service.Replicas[0]
	for i := range products {
		if err := replica.SetStock(ctx, firstProduct+int64(i), perProduct); err != nil {
			return nil, err
		}
	}
	buy := func(product int64, wait string, work time.Duration) func(context.Context, api.Client) Answer {
		return func(ctx context.Context, to api.Client) Answer {
			return post(ctx, to, fmt.Sprintf("/goods/%d/orders?grain=%s&wait=%s&hold=%s", product, guard.ID, wait, work))
		}
	}
	s := &sale{}
	raced, err := race(ctx, service, api.Key(firstProduct), guard, buy(firstProduct, "0s", 0))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	bought := concurrently(products*buyers, func(i int) []Answer {
		send := buy(firstProduct+int64(i%products), "60s", extraWork)
		return untilSoldOut(ctx, perProduct, func() Answer { return send(ctx, service.Replicas[i%len(service.Replicas)]) })
	})
	s.took = time.Since(began)
	if err := unavailable(slices.Concat(append(bought, raced)...)); err != nil {
		return nil, err
	}
	for _, a := range raced {
		s.ops[0] = append(s.ops[0], a.op())
	}
	for i, answers := range bought {
		for _, a := range answers {
			s.ops[i%products] = append(s.ops[i%products], a.op())
		}
	}
	for i := range products {
		if s.left[i], err = replica.Count(ctx, "none", firstProduct+int64(i)); err != nil {
			return nil, err
		}
	}
	return s, ctx.Err()
}

func judgeGranularity(guard Guard, s *sale) Result {
	r := newResult("grain", guard)
	lost := 0
	for i, ops := range s.ops {
		for _, op := range ops {
			r.Outcomes[op.Reason]++
		}
		if c := check.Stock(ops, perProduct, s.left[i]); c.Verdict != api.Holds {
			r.addBroken("product %d: %d of %d were sold, but %d are left", "商品 %d：卖出 %d 件（共 %d 件），却还剩 %d 件",
				firstProduct+i, c.Sold, perProduct, s.left[i])
			lost += c.LostMin
		}
	}
	r.Figures = map[string]float64{"sold": float64(s.sold()), "lost": float64(lost), "per_s": s.perSecond()}
	r.describe("grain, guard %s: %d products, %d pieces: %d were sold, %d of these more than once; %.0f sales/s.",
		"锁的粒度，防护方案 %s：%d 种商品，共 %d 件：卖出 %d 件，其中 %d 件重复卖出；每秒 %.0f 件。",
		guard.ID, products, products*perProduct, s.sold(), lost, s.perSecond())
	return r
}

// compare adds the ratio of r's throughput to that of coarse, a sale under one lock for all.
func (r *Result) compare(coarse *sale) {
	all := coarse.perSecond()
	factor := r.Figures["per_s"] / all
	if factor <= 1 {
		r.addBroken("a lock for each product is no faster than one for all: %.0f sales/s against %.0f",
			"一种商品一把锁并不更快：每秒 %.0f 件，所有商品共用一把锁则是 %.0f 件", r.Figures["per_s"], all)
	}
	r.Figures["all_per_s"], r.Figures["factor"] = all, factor
	r.describe(" One lock for all products: %.0f sales/s. A lock for each is %.1f times as fast.",
		"所有商品共用一把锁：每秒 %.0f 件。一种商品一把锁，快 %.1f 倍。", all, factor)
}
