package scenario

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
)

const (
	customers    = 5000
	pieces       = 1000
	flashProduct = 1
)

// Flash returns a sale with five customers for each piece, all at once (document 002). The guards
// keep the stock in a MySQL row or in Redis. Exactly as many customers must get a piece as there
// are pieces. A customer whose request surely sold nothing tries again.
func Flash() Scenario {
	const at = api.Writing
	return Scenario{
		ID: "flash", Replicas: 3, Run: runFlash,
		Title: api.Text{EN: "5000 customers want one of 1000 products", ZH: "五千名顾客抢一千件商品"},
		Guards: []Guard{
			newGuard("none", false, at, at, "no guard: read the stock, and write it back less one", "无防护：读取库存，减一写回"),
			newGuard("mutex", false, at, at, "a mutex in each replica", "每个副本里一把互斥锁"),
			newGuard("redis-watch", true, at, at, "the stock in Redis, with WATCH and MULTI", "库存放在 Redis，用 WATCH 和 MULTI"),
			newGuard("redis-stock", true, at, at, "the stock in Redis, taken by a script", "库存放在 Redis，用脚本扣减"),
		},
	}
}

type flashSale struct {
	ops     []history.Op
	retried int // requests that were sent because an earlier one sold nothing
	took    time.Duration
}

func runFlash(ctx context.Context, service Service, guard Guard) (Result, error) {
	replica := service.Replicas[0]
	if err := replica.SetStock(ctx, flashProduct, pieces); err != nil {
		return Result{}, err
	}
	began := time.Now()
	raced, err := race(ctx, service, api.Key(flashProduct), guard, func(ctx context.Context, to api.Client) history.Op {
		return load.Buy(ctx, to, guard.ID, flashProduct, url.Values{"wait": {"0s"}}, began)
	})
	if err != nil {
		return Result{}, err
	}
	sale := flashSale{ops: raced, retried: history.Count(raced, mayRetry)}
	if err := sale.run(ctx, service, guard.ID, customers-len(raced)+sale.retried); err != nil {
		return Result{}, err
	}
	left, inRow, err := stockLeft(ctx, replica, guard.ID)
	if err != nil {
		return Result{}, err
	}
	return judgeFlash(guard, sale, left, inRow), nil
}

// run sends all requests, and repeats those that surely sold nothing. It sends them to the replicas
// directly: nginx's workers have fewer than the 10,000 sockets that a sale needs.
func (s *flashSale) run(ctx context.Context, service Service, strategy string, requests int) error {
	const wait = 30 * time.Second
	began := time.Now()
	defer func() { s.took = time.Since(began) }()
	for round := 0; requests > 0; round++ {
		if round == attempts {
			return fmt.Errorf("%d requests sold nothing in %d attempts, though pieces may be left", requests, attempts)
		}
		errs := make([]error, len(service.Replicas))
		histories := concurrently(len(errs), func(i int) (h history.History) {
			if clients := (requests + i) / len(errs); clients > 0 {
				h, errs[i] = load.Run(ctx, load.Plan{
					Target: service.Replicas[i].Base, Strategy: strategy, Product: flashProduct, Qty: 1,
					Clients: clients, Loops: 1, Wait: wait, Timeout: 2 * wait,
				}, nil)
			}
			return h
		})
		if err := cmp.Or(errs...); err != nil {
			return err
		}
		requests = 0
		for i := range histories {
			requests += history.Count(histories[i].Ops, mayRetry)
			s.ops = append(s.ops, histories[i].Ops...)
		}
		s.retried += requests
	}
	return nil
}

// mayRetry reports whether the request surely sold nothing, and pieces may be left.
func mayRetry(op *history.Op) bool {
	return op.Outcome == history.Refused && op.Reason != history.SoldOut
}

// stockLeft returns the strategy's count and the row's, after redis-stock has copied its count.
func stockLeft(ctx context.Context, replica api.Client, strategy string) (left, inRow int, err error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left, err = replica.Count(ctx, strategy, flashProduct)
		if err == nil {
			inRow, err = replica.Count(ctx, "none", flashProduct)
		}
		if err != nil || inRow == left || strategy != "redis-stock" || time.Since(began) > 30*time.Second {
			return left, inRow, err
		}
	}
}

func judgeFlash(guard Guard, sale flashSale, left, inRow int) Result {
	r := newResult("flash", guard)
	conflicts := 0
	for i := range sale.ops {
		op := &sale.ops[i]
		outcome := op.Reason
		if op.Outcome == history.Unknown {
			outcome = unknown
		}
		r.Outcomes[outcome]++
		conflicts += op.Retries
	}
	winners, soldOut, lost := r.Outcomes[history.Sold], r.Outcomes[history.SoldOut], r.Outcomes[unknown]
	if winners != pieces {
		r.addBroken("%d customers won one of %d pieces", "%d 位顾客抢到了，但只有 %d 件", winners, pieces)
	}
	if winners != pieces-left {
		r.addBroken("%d pieces were sold, but %d of %d are left", "卖出 %d 件，却还剩 %d 件（共 %d 件）", winners, left, pieces)
	}
	if lost > 0 {
		r.addBroken("%d customers got no answer", "%d 位顾客没有得到应答", lost)
	}
	if guard.ID == "redis-stock" && inRow != left {
		r.addBroken("the count in the row is %d, and %d in Redis", "数据行里的数量是 %d，Redis 里是 %d", inRow, left)
	}
	r.Figures = map[string]float64{
		"winners": float64(winners), "sold_out": float64(soldOut), "try_again": float64(sale.retried),
		"conflicts": float64(conflicts), "took_s": sale.took.Seconds(),
	}
	r.describe("flash, guard %s: %d customers, %d pieces: %d won, %d were answered \"sold out\", %d are left",
		"秒杀，防护方案 %s：%d 名顾客抢 %d 件商品：%d 人抢到，%d 人得到“已售完”，剩 %d 件", r.Guard, customers, pieces, winners, soldOut, left)
	if lost > 0 {
		r.describe(", %d got no answer", "，%d 人没有得到答复", lost)
	}
	r.describe("; %d attempts failed because another request wrote first, and %d requests were sent again; %.1f s.",
		"；写冲突 %d 次，重试请求 %d 次；%.1f 秒。", conflicts, sale.retried, sale.took.Seconds())
	return r
}
