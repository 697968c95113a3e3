package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"oversell/api"
)

const (
	rechargeOrders  = 10
	rechargeRetries = 10  // the requests for each order, at once; two for the first order
	rechargeAmount  = 500 // cents
)

// Recharge must credit each order once, however often its request is sent (document 003).
func Recharge() Scenario {
	return Scenario{
		ID: "recharge", Replicas: 3, Run: runRecharge,
		Title: api.Text{EN: "A recharge, credited once", ZH: "充值，只到账一次"},
		Guards: []Guard{
			newGuard("none", false, api.Read, api.Read, "no guard: look whether the order is credited, then credit it", "无防护：先查订单是否已到账，再入账"),
			// The second request reads the order after the first request has released the lock, and before
			// the first request commits.
			newGuard("redis-early", false, api.Released, api.Read, "a Redis lock per order, released before the transaction commits", "每个订单一把 Redis 锁，但在事务提交之前释放"),
			// The second request pauses when it asks for the lock, because it cannot read the order while
			// the first request holds the lock.
			newGuard("redis", true, api.Read, api.Asked, "a Redis lock per order, held until the commit", "每个订单一把 Redis 锁，提交之后才释放"),
			newGuard("version", true, api.Read, api.Read, "a version column: the update fails if another one came first", "版本列：如果别人先更新，这次更新就失败"),
			// An idempotency key protects only against retries that carry the same key.
			newGuard("key", true, api.Read, api.Read, "an idempotency key, which all retries carry", "幂等键：每次重试都带同一个键"),
		},
	}
}

func runRecharge(ctx context.Context, service Service, guard Guard) (Result, error) {
	r := newResult("recharge", guard)
	for order := 1; order <= rechargeOrders; order++ {
		if err := service.Target.Call(ctx, http.MethodPut, fmt.Sprintf("/orders/%d?amount=%d", order, rechargeAmount), nil, nil); err != nil {
			return r, err
		}
	}
	recharge := func(ctx context.Context, to api.Client, order int) Answer {
		path := fmt.Sprintf("/orders/%d/recharge?guard=%s&amount=%d", order, guard.ID, rechargeAmount)
		var header http.Header
		if guard.ID == "key" {
			header = http.Header{"Idempotency-Key": {fmt.Sprintf("retry-%d", order)}}
		}
		return insist(ctx, func() Answer { return postWith(ctx, to, path, header) })
	}
	answers := make([][]Answer, rechargeOrders+1) // by order
	raced, err := race(ctx, service, "order:1", guard,
		func(ctx context.Context, to api.Client) Answer { return recharge(ctx, to, 1) })
	if err != nil {
		return r, err
	}
	answers[1] = raced
	for order := 2; order <= rechargeOrders; order++ {
		answers[order] = concurrently(rechargeRetries, func(i int) Answer {
			return recharge(ctx, service.Replicas[i%len(service.Replicas)], order)
		})
	}
	for _, a := range slices.Concat(answers...) {
		r.Outcomes[a.Outcome]++
		if a.failed() {
			return r, fmt.Errorf("a request failed: %d %s: %s", a.Status, a.Outcome, a.Detail)
		}
	}
	err = judgeRecharge(ctx, &r, service.Target, answers)
	return r, err
}

func judgeRecharge(ctx context.Context, r *Result, from api.Client, answers [][]Answer) error {
	var credits, most int64
	for order := 1; order < len(answers); order++ {
		var account struct {
			Paid    bool  `json:"paid"`
			Balance int64 `json:"balance"`
		}
		if err := from.Call(ctx, http.MethodGet, fmt.Sprintf("/orders/%d", order), nil, &account); err != nil {
			return err
		}
		if account.Balance != rechargeAmount || !account.Paid {
			r.addBroken("order %d of %d cents: the balance is %d, paid %t", "订单 %d（%d 分）：余额是 %d，已支付：%t",
				order, rechargeAmount, account.Balance, account.Paid)
		}
		outcomes := map[string]int{}
		for _, a := range answers[order] {
			outcomes[a.Outcome]++
		}
		credited, before := outcomes[string(api.Credited)], outcomes[string(api.CreditedBefore)]
		if credited != 1 || credited+before != len(answers[order]) {
			r.addBroken("order %d: %d requests, of which %d were answered \"credited\" and %d \"credited before\"",
				"订单 %d：%d 个请求，其中 %d 个应答“到账”，%d 个应答“早已到账”",
				order, len(answers[order]), credited, before)
		}
		n := account.Balance / rechargeAmount
		credits, most = credits+n, max(most, n)
	}
	orders := int64(len(answers) - 1)
	r.Figures = map[string]float64{"orders": float64(orders), "credits": float64(credits), "most_for_one": float64(most)}
	r.describe("recharge, guard %s: %d orders, each sent up to %d times at once, were credited %d times",
		"充值，防护方案 %s：%d 个订单，每个最多同时发 %d 次，共到账 %d 次", r.Guard, orders, rechargeRetries, credits)
	if credits > orders {
		r.describe(": %d credits were not paid for, and one order was credited %d times.", "：商家白送 %d 次，最多的一单到账 %d 次。", credits-orders, most)
	} else {
		r.describe("; every other request was answered \"credited before\".", "；其余请求都得知已经到账。")
	}
	return nil
}
