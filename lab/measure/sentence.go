package measure

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"oversell/api"
	"oversell/lab/history"
)

func sentence(r Result) api.Text {
	s := api.Text{EN: r.Strategy + ":", ZH: r.Strategy + "："}
	for _, part := range append([]api.Text{stockSentence(r)}, Notes(r)...) {
		s.EN += " " + part.EN
		s.ZH += part.ZH
	}
	return s
}

// Notes returns what a reader must know besides the verdict.
func Notes(r Result) (all []api.Text) {
	say := func(en, zh string, values ...any) { all = append(all, api.Textf(en, zh, values...)) }
	if r.Open != nil && r.Samples > 0 {
		say("Open loop at %.6g/s: 99%% of the requests took at most %.1f ms from when they were due, and %.1f ms from when they were sent.",
			"开环，每秒 %.6g 个请求：99%% 的请求从应当发出时算起不超过 %.1f ms，从实际发出时算起不超过 %.1f ms。",
			r.Open.DuePerS, r.P99MS, r.Open.FromSent.P99)
		if !r.Open.Reached {
			say("The rate was not reached: with %[2]s only %.1[3]f/s could be sent, and the other requests waited for a free connection.",
				"没有达到要求的速率：%[1]d 个连接每秒只能发出 %.1[3]f 个请求，其余的在等待空闲连接。",
				r.Clients, Count(r.Clients, "connection", "connections"), r.Open.SentPerS)
		}
	}
	if r.SoldOut > 0 {
		say(`%[2]s answered "sold out".`, "%[1]d 个请求得到“已售完”。", r.SoldOut, Count(r.SoldOut, "request was", "requests were"))
	}
	if r.Errors > 0 {
		all = append(all, failuresSentence(r))
	}
	switch {
	case r.Flushes > 0:
		say("But Redis executed FLUSHALL or FLUSHDB during the run (%[2]s), which deleted the locks under their holders: "+
			"the result is inconclusive for %[3]s. Run it again on a Redis that nobody else uses.",
			"但测试期间 Redis 执行了 %[1]d 次 FLUSHALL 或 FLUSHDB，持有者手中的锁被删掉了：无法判定 %[3]s 是否正确。请换一个没有别人使用的 Redis 再测一次。",
			r.Flushes, Count(r.Flushes, "time", "times"), r.Strategy)
	case r.Verdict == api.Broken && r.Overrun:
		say("The work took longer than the lease: its card says that this breaks it (overrun).", "业务时间超过了租期：它的卡片说过会被这样打破（overrun）。")
	case r.Verdict == api.Broken && r.Safe:
		say("Its card claims that it loses no update: this run contradicts the card.", "它的卡片声明不会丢失更新：这次运行与卡片不符。")
	case r.Verdict == api.Holds && !r.Safe && r.Clients == 1:
		say("Its card does not claim that it is safe, but a single client has no contender.", "它的卡片没有声明它是安全的，但只有一个客户端，没有竞争者。")
	case r.Verdict == api.Holds && !r.Safe && r.Sold > 1:
		say("Its card does not claim that it is safe: this run was lucky.", "它的卡片没有声明它是安全的：这一次只是运气好。")
	}
	if r.Partial {
		say("The run was stopped early, after %[2]d of %[3]s.", "测试提前停止：%[1]d 个请求中只发出了 %[2]d 个。",
			r.Clients*r.Loops, r.Samples, Count(r.Clients*r.Loops, "request", "requests"))
	}
	return all
}

func stockSentence(r Result) api.Text {
	if r.Remaining == nil {
		return api.Textf("%d sold for certain, but the stock could not be read afterwards: inconclusive.",
			"确定售出 %d 件，但之后无法读取库存：无法判定。", r.Sold)
	}
	switch {
	case r.Verdict == api.Inconclusive && r.Cause.EN != "":
		return api.Textf("%[1]d sold, %[2]d left: inconclusive, because too little was sold. %[3]s.", "售出 %[1]d 件，剩余 %[2]d 件：卖得太少，无法判定。%[4]s。",
			r.Sold, *r.Remaining, upper(r.Cause.EN), r.Cause.ZH)
	case r.Verdict == api.Holds:
		s := api.Textf("%d sold, %d left, no update lost.", "售出 %d 件，剩余 %d 件，没有丢失更新。", r.Sold, *r.Remaining)
		if r.Alone {
			s = api.Textf("%d sold, %d left, no update lost, as its card says for one replica.",
				"售出 %d 件，剩余 %d 件，没有丢失更新，与它的卡片一致：只有一个副本。", r.Sold, *r.Remaining)
		}
		if r.Unknown == 0 {
			return s
		}
		more := api.Textf("(%[2]s missing, but the stock shows that these requests sold, too.)", "（有 %[1]d 个请求没有收到应答，但从库存看它们也都售出了。）",
			r.Unknown, Count(r.Unknown, "answer is", "answers are"))
		return api.Joined(s, more)
	case r.Verdict == api.Inconclusive:
		return api.Textf("%[1]d sold for certain, %[2]d left; %[5]s never came, so up to %[6]s may have been lost: inconclusive.",
			"确定售出 %[1]d 件，剩余 %[2]d 件；有 %[3]d 个应答没有收到，因此最多可能丢失了 %[4]d 次更新，无法判定。",
			r.Sold, *r.Remaining, r.Unknown, r.LostUpdatesMax, Count(r.Unknown, "answer", "answers"), Count(r.LostUpdatesMax, "update", "updates"))
	}
	return brokenSentence(r)
}

func brokenSentence(r Result) api.Text {
	left := *r.Remaining
	lost := api.Text{EN: Count(r.LostUpdates, "update was lost", "updates were lost"), ZH: fmt.Sprintf("丢失了 %d 次更新", r.LostUpdates)}
	if r.Unknown > 0 {
		lost = api.Text{EN: "at least " + lost.EN, ZH: "至少" + lost.ZH}
	}
	fell := api.Textf("the stock fell by %d, from %d to %d", "库存减少了 %d 件（从 %d 到 %d）", r.Stock-left, r.Stock, left)
	switch {
	case r.Oversold > 0:
		hides := api.Text{}
		if left == 0 {
			hides = api.Text{EN: ", which hides the oversell", ZH: "，掩盖了超卖"}
		}
		if r.LostUpdates > 0 {
			lost = api.Text{EN: " " + upper(lost.EN) + ".", ZH: lost.ZH + "。"}
		} else {
			lost = api.Text{}
		}
		return api.Textf("%[1]d sold, but there were only %[2]d: %[4]s will get nothing. The stock is now %[5]d%[6]s.%[8]s",
			"售出 %[1]d 件，可库存只有 %[2]d 件：有 %[3]d 件发不了货。现在库存为 %[5]d%[7]s。%[9]s",
			r.Sold, r.Stock, r.Oversold, Count(r.Oversold, "customer", "customers"), left, hides.EN, hides.ZH, lost.EN, lost.ZH)
	case r.LostUpdates > 0:
		return api.Textf("%[1]d sold, but %[2]s: %[4]s, so %[6]s could be sold twice.", "售出 %[1]d 件，但%[3]s：%[5]s，这 %[7]d 件会被再卖一次。",
			r.Sold, fell.EN, fell.ZH, lost.EN, lost.ZH, Count(r.LostUpdates, "piece", "pieces"), r.LostUpdates)
	case left < 0:
		return api.Textf("%d sold for certain, and the stock fell to %d: more was taken than there was.", "确定售出 %d 件，库存却变成了 %d：取走的比原有的还多。", r.Sold, left)
	default:
		return api.Textf("%[1]d sold, but %[2]s: %[4]s gone without a sale.", "售出 %[1]d 件，但%[3]s：有 %[5]d 件没有卖出就不见了。",
			r.Sold, fell.EN, fell.ZH, Count(-r.LostUpdates, "piece is", "pieces are"), -r.LostUpdates)
	}
}

func upper(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }

func failuresSentence(r Result) api.Text {
	var en, zh []string
	for i, f := range r.Failures {
		if i == 3 {
			en, zh = append(en, "and more"), append(zh, "等等")
			break
		}
		why := reason(f)
		part := api.Text{EN: fmt.Sprintf("%d %s", f.Count, why.EN), ZH: fmt.Sprintf("%d 个%s", f.Count, why.ZH)}
		detail := Shorten(f.Detail)
		if f.Reason == history.NotAcquired { // the detail would say the same again
			detail = "wait " + Duration(r.WaitMS)
		}
		if detail != "" && i == 0 {
			part.EN += " (" + detail + ")"
			part.ZH += "（" + detail + "）"
		}
		en, zh = append(en, part.EN), append(zh, part.ZH)
	}
	return api.Textf("%[1]s failed: %[3]s.", "%[2]d 个请求失败：%[4]s。",
		Count(r.Errors, "request", "requests"), r.Errors, strings.Join(en, "; "), strings.Join(zh, "；"))
}

func reason(f Reason) api.Text {
	backend := api.Text{EN: cmp.Or(f.Backend, "a backend"), ZH: cmp.Or(f.Backend, "后端")}
	switch f.Reason {
	case history.NotAcquired:
		return api.Text{EN: "did not acquire the lock in time", ZH: "没有及时拿到锁"}
	case history.Unavailable:
		return api.Text{EN: "failed because " + backend.EN + " was unavailable", ZH: "遇到 " + backend.ZH + " 不可用"}
	case history.Unreachable:
		return api.Text{EN: "could not reach the service", ZH: "连不上服务"}
	case history.TimedOut:
		return api.Text{EN: "got no answer in time", ZH: "等不到应答而超时"}
	case history.Broken:
		return api.Text{EN: "lost the connection before the answer", ZH: "在应答之前断开了连接"}
	case history.Interrupted:
		return api.Text{EN: "were still waiting when the run was stopped", ZH: "在测试停止时仍在等待"}
	case history.NotUnderstood:
		return api.Text{EN: "got an answer that is not of this service", ZH: "得到了不是本服务的应答"}
	default:
		return api.Text{EN: "ended as " + f.Reason, ZH: "结果为 " + f.Reason}
	}
}

// Shorten makes one line of 160 characters, without control characters that affect the terminal.
func Shorten(detail string) string {
	const most = 160
	blank := func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}
	line := []rune(strings.Join(strings.Fields(strings.Map(blank, detail)), " "))
	if len(line) > most {
		return string(line[:most]) + "..."
	}
	return string(line)
}

// Count returns a number with its noun, such as "1 request".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Duration writes a time in milliseconds, such as "1.5s".
func Duration(ms float64) string { return time.Duration(ms * float64(time.Millisecond)).String() }
