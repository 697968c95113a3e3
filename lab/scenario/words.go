package scenario

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
)

// Answers returns the numbers of the answers to customers, sorted by name.
func (r Result) Answers() api.Text { return listed(r.Outcomes) }

// Numbers returns the figures, sorted by name.
func (r Result) Numbers() api.Text { return listed(r.Figures) }

func listed[N int | float64](numbers map[string]N) api.Text {
	var en, zh []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		value := strconv.FormatFloat(math.Round(10*float64(numbers[name]))/10, 'f', -1, 64)
		word := Word(name)
		en, zh = append(en, word.EN+": "+value), append(zh, word.ZH+"："+value)
	}
	return api.Text{EN: strings.Join(en, "; "), ZH: strings.Join(zh, "；")}
}

// Word returns an outcome of an answer, or the name of a figure, in words.
func Word(name string) api.Text {
	if text, known := words[name]; known {
		return text
	}
	return api.Text{EN: name, ZH: name}
}

var words = map[string]api.Text{ //nolint:gochecknoglobals // a dictionary, never written
	"ordered": {EN: "got a coupon", ZH: "领到"}, "already_taken": {EN: "rejected: has one already", ZH: "被拒绝：已经领过"},
	"running": {EN: "rejected: an earlier request of the user runs", ZH: "被拒绝：上一个请求还在处理"}, "sold_out": {EN: "sold out", ZH: "已售完"},
	"sold": {EN: "sold", ZH: "售出"}, "conflict": {EN: "conflict, not written", ZH: "冲突，未写入"}, "not_acquired": {EN: "did not get the lock", ZH: "没有拿到锁"},
	"credited": {EN: "credited", ZH: "已到账"}, "credited_before": {EN: "was credited before", ZH: "此前已到账"}, "unknown": {EN: "no answer", ZH: "没有应答"},

	"orders": {EN: "orders", ZH: "订单"}, "users_with_two": {EN: "users with more than one", ZH: "领了不止一张的用户"}, "left": {EN: "left", ZH: "剩余"},
	"twice": {EN: "numbers sold twice", ZH: "重复售出的号"}, "never": {EN: "numbers never sold", ZH: "没有售出的号"}, "next": {EN: "next number", ZH: "下一个号"},
	"winners": {EN: "winners", ZH: "抢到的顾客"}, "try_again": {EN: "requests sent again", ZH: "重试的请求"}, "conflicts": {EN: "conflicts", ZH: "写冲突"},
	"took_s": {EN: "seconds", ZH: "用时（秒）"}, "credits": {EN: "credits", ZH: "入账次数"}, "most_for_one": {EN: "most credits of one order", ZH: "同一订单最多入账次数"},
	"lost": {EN: "lost updates", ZH: "丢失的更新"}, "per_s": {EN: "sales/s", ZH: "每秒售出"}, "all_per_s": {EN: "sales/s with one lock for all", ZH: "共用一把锁时的每秒售出"},
	"factor": {EN: "times as fast as one lock for all", ZH: "与共用一把锁相比的倍数"},
}
