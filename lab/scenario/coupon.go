package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/report"
)

// The sale: more users than coupons, and some who click again and again.
const (
	couponID      = 1
	couponCount   = 100
	couponUsers   = 2000
	couponHasty   = 20 // of them: the first, who duels with himself, and others who click
	couponClicks  = 5  // times at once
	couponOrdered = "ordered"
)

// Coupon is document 001: a coupon that each user gets once.
func Coupon() Scenario {
	return Scenario{
		ID: "coupon", Replicas: 3, Run: runCoupon,
		Title: report.Sentence{EN: "A coupon, once per user", ZH: "优惠券，一人一张"},
		Guards: []Guard{
			{ID: "none", first: "read", second: "read"},
			// The second checks while the first has released, and not committed yet.
			{ID: "redis-early", first: "released", second: "read"},
			{ID: "redis", Safe: true, first: "read", second: "read"},
			{ID: "unique", Safe: true, first: "read", second: "read"},
			{ID: "redis-unique", Safe: true, first: "read", second: "read"},
		},
	}
}

// click is one request of a user, and when it was under way.
type click struct {
	Answer
	user       int64
	call, back time.Time
}

func runCoupon(ctx context.Context, shop Shop, guard Guard) (Result, error) {
	r := newResult("coupon", guard)
	path := fmt.Sprintf("/coupons/%d", couponID)
	if err := shop.Target.Call(ctx, http.MethodPut, fmt.Sprintf("%s?count=%d", path, couponCount), nil, nil); err != nil {
		return r, err
	}
	order := func(ctx context.Context, at api.Client, user int64) click {
		c := click{user: user, call: time.Now()}
		c.Answer = post(ctx, at, fmt.Sprintf("%s/orders?guard=%s&user=%d", path, guard.ID, user))
		c.back = time.Now()
		return c
	}
	// The first user's two requests cross for sure; the others' as it comes.
	crossed, err := duel(ctx, shop, fmt.Sprintf("coupon:%d:user:%d", couponID, 1), guard,
		func(ctx context.Context, at api.Client) click { return order(ctx, at, 1) })
	if err != nil {
		return r, err
	}
	// The hasty ones come first: they meet themselves before all is gone.
	hasty := storm((couponHasty-1)*couponClicks, func(i int) click { return order(ctx, shop.Target, int64(2+i/couponClicks)) })
	others := storm(couponUsers-couponHasty, func(i int) click { return order(ctx, shop.Target, int64(couponHasty+1+i)) })
	clicks := slices.Concat(crossed, hasty, others)
	for _, c := range clicks {
		r.Told[c.Outcome]++
		if c.failed() {
			return r, fmt.Errorf("user %d was told %d %s: %s", c.user, c.Status, c.Outcome, c.Detail)
		}
	}
	table, err := couponTable(ctx, shop.Target, path)
	if err != nil {
		return r, err
	}
	judgeCoupon(&r, clicks, table)
	return r, nil
}

// couponRows is what the tables hold.
type couponRows struct {
	initial, left int
	orders        []couponRow
}

type couponRow struct {
	Order int64 `json:"order"`
	User  int64 `json:"user"`
}

func couponTable(ctx context.Context, at api.Client, path string) (couponRows, error) {
	var coupon struct {
		Initial int `json:"initial"`
		Count   int `json:"count"`
	}
	if err := at.Call(ctx, http.MethodGet, path, nil, &coupon); err != nil {
		return couponRows{}, err
	}
	rows := couponRows{initial: coupon.Initial, left: coupon.Count}
	return rows, at.Call(ctx, http.MethodGet, path+"/orders", nil, &rows.orders)
}

// judgeCoupon compares what the users were told with what the tables hold.
func judgeCoupon(r *Result, clicks []click, table couponRows) {
	orders, owner := map[int64]int{}, map[int64]int64{}
	for _, row := range table.orders {
		orders[row.User]++
		owner[row.Order] = row.User
	}
	twice := 0
	for _, n := range orders {
		if n > 1 {
			twice++
		}
	}
	if twice > 0 {
		r.broke("%d users have more than one order", twice)
	}
	if gone := table.initial - table.left; gone != len(table.orders) {
		r.broke("%d coupons left the shelf, and there are %d orders", gone, len(table.orders))
	}
	if len(table.orders) != table.initial { // there are users enough
		r.broke("%d orders for %d coupons", len(table.orders), table.initial)
	}
	told := 0
	for _, c := range clicks {
		if c.Outcome != couponOrdered {
			continue
		}
		told++
		if owner[c.Order] != c.user {
			r.broke("user %d was told of order %d, which is not in the table", c.user, c.Order)
		}
	}
	if told != len(table.orders) {
		r.broke("%d users were told that they have an order, and there are %d", told, len(table.orders))
	}
	if late := falling(clicks); late > 0 {
		r.broke("%d order ids are lower than one that was given out before", late)
	}
	r.Figures = map[string]float64{"orders": float64(len(table.orders)), "users_with_two": float64(twice), "left": float64(table.left)}
	kept := report.Sentence{EN: "nobody has two.", ZH: "没有人重复领取。"}
	if twice > 0 {
		kept = report.Sentence{
			EN: fmt.Sprintf("%d have more than one, which others go without.", twice),
			ZH: fmt.Sprintf("%d 人领了不止一张，别人就少了。", twice),
		}
	}
	r.Sentence = report.Sentence{
		EN: fmt.Sprintf("coupon, guard %s: %d users wanted %d coupons, %d orders; %s", r.Guard, couponUsers, table.initial, len(table.orders), kept.EN),
		ZH: fmt.Sprintf("优惠券，守护 %s：%d 人抢 %d 张，%d 个订单；%s", r.Guard, couponUsers, table.initial, len(table.orders), kept.ZH),
	}
}

// falling counts the orders whose id is lower than one that was answered before they were
// asked for.
func falling(clicks []click) (late int) {
	called := slices.DeleteFunc(slices.Clone(clicks), func(c click) bool { return c.Outcome != couponOrdered })
	back := slices.Clone(called)
	slices.SortFunc(called, func(a, b click) int { return a.call.Compare(b.call) })
	slices.SortFunc(back, func(a, b click) int { return a.back.Compare(b.back) })
	highest, i := int64(0), 0
	for _, c := range called {
		for ; i < len(back) && back[i].back.Before(c.call); i++ {
			highest = max(highest, back[i].Order)
		}
		if c.Order <= highest {
			late++
		}
	}
	return late
}
