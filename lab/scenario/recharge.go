package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/lab/report"
)

// The orders, each of which the client sends ten times at once (003).
const (
	rechargeOrders  = 10
	rechargeRetries = 10
	rechargeAmount  = 500 // cents
)

// Recharge is document 003: an order that credits an account once, however often it is sent.
func Recharge() Scenario {
	return Scenario{
		ID: "recharge", Replicas: 3, Run: runRecharge,
		Title: report.Sentence{EN: "A recharge, credited once", ZH: "充值，只到账一次"},
		Guards: []Guard{
			{ID: "none", first: "read", second: "read"},
			// The second checks while the first has released, and not committed yet.
			{ID: "redis-early", first: "released", second: "read"},
			// The second queues for the lock, and never checks before the first is done.
			{ID: "redis", Safe: true, first: "read", second: "asked"},
			{ID: "version", Safe: true, first: "read", second: "read"},
			// A key guards an order against the retries that carry the same one.
			{ID: "key", Safe: true, first: "read", second: "read"},
		},
	}
}

func runRecharge(ctx context.Context, shop Shop, guard Guard) (Result, error) {
	r := newResult("recharge", guard)
	for order := 1; order <= rechargeOrders; order++ {
		if err := shop.Target.Call(ctx, http.MethodPut, fmt.Sprintf("/orders/%d?amount=%d", order, rechargeAmount), nil, nil); err != nil {
			return r, err
		}
	}
	recharge := func(ctx context.Context, at api.Client, order int) Answer {
		path := fmt.Sprintf("/orders/%d/recharge?guard=%s&amount=%d", order, guard.ID, rechargeAmount)
		if guard.ID == "key" {
			return post(ctx, at, path, "Idempotency-Key", fmt.Sprintf("retry-%d", order))
		}
		return post(ctx, at, path)
	}
	// The first order's two requests cross for sure; the others' as it comes.
	told := make([][]Answer, rechargeOrders+1)
	crossed, err := duel(ctx, shop, "order:1", guard,
		func(ctx context.Context, at api.Client) Answer { return recharge(ctx, at, 1) })
	if err != nil {
		return r, err
	}
	told[1] = crossed
	for order := 2; order <= rechargeOrders; order++ {
		told[order] = storm(rechargeRetries, func(i int) Answer {
			return recharge(ctx, shop.Replicas[i%len(shop.Replicas)], order)
		})
	}
	for _, a := range slices.Concat(told...) {
		r.Told[a.Outcome]++
		if a.failed() {
			return r, fmt.Errorf("a client was told %d %s: %s", a.Status, a.Outcome, a.Detail)
		}
	}
	err = judgeRecharge(ctx, &r, shop.Target, told)
	return r, err
}

// judgeRecharge compares what each order's client was told with what its account holds.
func judgeRecharge(ctx context.Context, r *Result, at api.Client, told [][]Answer) error {
	var credits, most int64
	for order := 1; order < len(told); order++ {
		var row struct {
			Paid    bool  `json:"paid"`
			Balance int64 `json:"balance"`
		}
		if err := at.Call(ctx, http.MethodGet, fmt.Sprintf("/orders/%d", order), nil, &row); err != nil {
			return err
		}
		if row.Balance != rechargeAmount || !row.Paid {
			r.broke("order %d of %d cents: the balance is %d, paid %t", order, rechargeAmount, row.Balance, row.Paid)
		}
		heard := map[string]int{}
		for _, a := range told[order] {
			heard[a.Outcome]++
		}
		if heard["credited"] != 1 || heard["credited"]+heard["credited_before"] != len(told[order]) {
			r.broke("order %d: of %d requests %d were told that they credited it, and %d that it was done before",
				order, len(told[order]), heard["credited"], heard["credited_before"])
		}
		n := row.Balance / rechargeAmount
		credits, most = credits+n, max(most, n)
	}
	orders := int64(len(told) - 1)
	r.Figures = map[string]float64{"orders": float64(orders), "credits": float64(credits), "most_for_one": float64(most)}
	r.Sentence = report.Sentence{
		EN: fmt.Sprintf("recharge, guard %s: %d orders, each sent up to %d times at once, were credited %d times", r.Guard, orders, rechargeRetries, credits),
		ZH: fmt.Sprintf("充值，守护 %s：%d 个订单，每个最多同时发 %d 次，共到账 %d 次", r.Guard, orders, rechargeRetries, credits),
	}
	if credits > orders {
		r.Sentence.EN += fmt.Sprintf(": the shop gave away %d, one order %d times.", credits-orders, most)
		r.Sentence.ZH += fmt.Sprintf("：商家白送 %d 次，最多的一单到账 %d 次。", credits-orders, most)
	} else {
		r.Sentence.EN += "; every other request learned that it was done."
		r.Sentence.ZH += "；其余请求都得知已经到账。"
	}
	return nil
}
