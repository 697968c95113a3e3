package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"oversell/api"
)

const (
	couponID      = 1
	couponCount   = 100
	couponUsers   = 2000
	couponHasty   = 20 // the first users: each sends couponClicks requests at once, user 1 two
	couponClicks  = 5
	couponOrdered = string(api.Ordered)
)

// Coupon returns the scenario in which each user may get one coupon (document 001).
func Coupon() Scenario {
	return Scenario{
		ID: "coupon", Replicas: 3, Run: runCoupon,
		Title: api.Text{EN: "A coupon, once per user", ZH: "优惠券，一人一张"},
		Guards: []Guard{
			newGuard("none", false, api.Read, api.Read, "no guard: look for an order of this user, then insert one", "无防护：先查这个用户有没有订单，再插入一个"),
			// The second request reads the orders after the first request has released the lock, and before
			// the first request commits.
			newGuard("redis-early", false, api.Released, api.Read, "a Redis lock per user, released before the transaction commits", "每个用户一把 Redis 锁，但在事务提交之前释放"),
			newGuard("redis", true, api.Read, api.Read, "a Redis lock per user, held until the commit", "每个用户一把 Redis 锁，提交之后才释放"),
			newGuard("unique", true, api.Read, api.Read, "a unique index on user and coupon", "用户和优惠券上的唯一索引"),
			newGuard("redis-unique", true, api.Read, api.Read, "the Redis lock and the unique index", "Redis 锁加唯一索引"),
		},
	}
}

type click struct {
	Answer
	user             int64
	called, answered time.Time
}

func runCoupon(ctx context.Context, service Service, guard Guard) (Result, error) {
	r := newResult("coupon", guard)
	path := fmt.Sprintf("/coupons/%d", couponID)
	if err := service.Target.Call(ctx, http.MethodPut, fmt.Sprintf("%s?count=%d", path, couponCount), nil, nil); err != nil {
		return r, err
	}
	order := func(ctx context.Context, to api.Client, user int64) click {
		c := click{user: user, called: time.Now()}
		c.Answer = insist(ctx, func() Answer { return post(ctx, to, fmt.Sprintf("%s/orders?guard=%s&user=%d", path, guard.ID, user)) })
		c.answered = time.Now()
		return c
	}
	raced, err := race(ctx, service, fmt.Sprintf("coupon:%d:user:%d", couponID, 1), guard,
		func(ctx context.Context, to api.Client) click { return order(ctx, to, 1) })
	if err != nil {
		return r, err
	}
	// Users with several requests start first, so that these overlap while coupons are left.
	hasty := concurrently((couponHasty-1)*couponClicks, func(i int) click { return order(ctx, service.Target, int64(2+i/couponClicks)) })
	others := concurrently(couponUsers-couponHasty, func(i int) click { return order(ctx, service.Target, int64(couponHasty+1+i)) })
	clicks := slices.Concat(raced, hasty, others)
	for _, c := range clicks {
		r.Outcomes[c.Outcome]++
		if c.failed() {
			return r, fmt.Errorf("the request of user %d failed: %d %s: %s", c.user, c.Status, c.Outcome, c.Detail)
		}
	}
	tables, err := readCoupon(ctx, service.Target, path)
	if err != nil {
		return r, err
	}
	judgeCoupon(&r, clicks, tables)
	return r, nil
}

type couponTables struct {
	Initial int `json:"initial"`
	Left    int `json:"count"`
	orders  []struct{ Order, User int64 }
}

func readCoupon(ctx context.Context, from api.Client, path string) (tables couponTables, err error) {
	if err = from.Call(ctx, http.MethodGet, path, nil, &tables); err == nil {
		err = from.Call(ctx, http.MethodGet, path+"/orders", nil, &tables.orders)
	}
	return tables, err
}

func judgeCoupon(r *Result, clicks []click, tables couponTables) {
	ordersOf, userOf := map[int64]int{}, map[int64]int64{}
	for _, o := range tables.orders {
		ordersOf[o.User]++
		userOf[o.Order] = o.User
	}
	orders, twice, confirmed := len(tables.orders), 0, 0
	for _, n := range ordersOf {
		if n > 1 {
			twice++
		}
	}
	if twice > 0 {
		r.addBroken("%d users have more than one order", "%d 位用户有不止一个订单", twice)
	}
	if taken := tables.Initial - tables.Left; taken != orders {
		r.addBroken("%d coupons were taken from the stock, but there are %d orders", "库存减少了 %d 张，订单却有 %d 个", taken, orders)
	}
	if orders != tables.Initial { // there are more users than coupons
		r.addBroken("there are %d orders for %d coupons", "%d 个订单，却只有 %d 张优惠券", orders, tables.Initial)
	}
	for _, c := range clicks {
		if c.Outcome != couponOrdered {
			continue
		}
		confirmed++
		if userOf[c.Order] != c.user {
			r.addBroken("order %d was confirmed to user %d, but is not in the table", "订单 %d 已向用户 %d 确认，但表里没有", c.Order, c.user)
		}
	}
	if confirmed != orders {
		r.addBroken("%d orders were confirmed, but there are %d", "确认了 %d 个订单，实际有 %d 个", confirmed, orders)
	}
	if late := falling(clicks); late > 0 {
		r.addBroken("%d order ids are lower than that of an earlier order", "%d 个订单号小于更早订单的号码", late)
	}
	r.Figures = map[string]float64{"orders": float64(orders), "users_with_two": float64(twice), "left": float64(tables.Left)}
	r.describe("coupon, guard %s: %d users wanted %d coupons, and there are %d orders; ", "优惠券，防护方案 %s：%d 人抢 %d 张，%d 个订单；",
		r.Guard, couponUsers, tables.Initial, orders)
	r.describe("they sent %d requests, as %d users pressed several times; ", "一共发出 %d 个请求，因为有 %d 人按了好几次；", len(clicks), couponHasty)
	if twice == 0 {
		r.describe("no user has two.", "没有人重复领取。")
	} else {
		r.describe("users with more than one: %d, so others got none.", "%d 人领了不止一张，别人因此没有领到。", twice)
	}
}

// falling counts orders whose id is not above that of an order answered before their request.
func falling(clicks []click) (late int) {
	byCall := slices.DeleteFunc(slices.Clone(clicks), func(c click) bool { return c.Outcome != couponOrdered })
	byAnswer := slices.Clone(byCall)
	slices.SortFunc(byCall, func(a, b click) int { return a.called.Compare(b.called) })
	slices.SortFunc(byAnswer, func(a, b click) int { return a.answered.Compare(b.answered) })
	highest, i := int64(0), 0
	for _, c := range byCall {
		for ; i < len(byAnswer) && byAnswer[i].answered.Before(c.called); i++ {
			highest = max(highest, byAnswer[i].Order)
		}
		if c.Order <= highest {
			late++
		}
	}
	return late
}
