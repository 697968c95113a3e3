package report

import (
	"fmt"
	"strings"
	"unicode"

	"oversell/lab/check"
	"oversell/lab/history"
)

// sentence says what happened so that a student understands it, in both languages.
func sentence(r Result) Sentence {
	en := []string{stockEN(r)}
	zh := []string{stockZH(r)}
	if r.Open != nil && r.Samples > 0 {
		en = append(en, openEN(r))
		zh = append(zh, openZH(r))
	}
	if r.SoldOut > 0 {
		en = append(en, fmt.Sprintf("%s came too late and heard \"sold out\".", count(r.SoldOut, "request", "requests")))
		zh = append(zh, fmt.Sprintf("%d 个请求来晚了，得到“已售完”。", r.SoldOut))
	}
	if r.Errors > 0 {
		en = append(en, failuresEN(r))
		zh = append(zh, failuresZH(r))
	}
	switch {
	case r.Flushes > 0:
		en = append(en, fmt.Sprintf("But Redis executed FLUSHALL or FLUSHDB during the run (%s), which deleted the locks under their holders: "+
			"the result says nothing about %s. Run it again on a Redis that nobody else uses.", count(r.Flushes, "time", "times"), r.Strategy))
		zh = append(zh, fmt.Sprintf("但测试期间 Redis 执行了 %d 次 FLUSHALL 或 FLUSHDB，持有者手中的锁被删掉了：这个结果说明不了 %s 的任何问题。请换一个没有别人使用的 Redis 再测一次。",
			r.Flushes, r.Strategy))
	case r.Verdict == check.Broken && r.Safe:
		en = append(en, "Its card claims that this cannot happen: the claim is broken.")
		zh = append(zh, "它的卡片声称这不会发生：这个承诺被打破了。")
	case r.Verdict == check.Holds && !r.Safe && r.Sold > 1:
		en = append(en, "Its card promises nothing: this time it went well.")
		zh = append(zh, "它的卡片没有作任何承诺：这一次只是运气好。")
	}
	if r.Partial {
		en = append(en, fmt.Sprintf("The run was stopped early, after %d of %s.", r.Samples, count(r.Clients*r.Loops, "request", "requests")))
		zh = append(zh, fmt.Sprintf("测试提前停止：%d 个请求中只发出了 %d 个。", r.Clients*r.Loops, r.Samples))
	}
	return Sentence{EN: r.Strategy + ": " + strings.Join(en, " "), ZH: r.Strategy + "：" + strings.Join(zh, "")}
}

// stockEN tells what became of the stock.
func stockEN(r Result) string {
	if r.Remaining == nil {
		return fmt.Sprintf("%d sold for certain, but the stock could not be read afterwards: whether an update was lost, nobody knows.", r.Sold)
	}
	left := *r.Remaining
	switch r.Verdict {
	case check.Holds:
		s := fmt.Sprintf("%d sold, %d left, no update lost.", r.Sold, left)
		if r.Unknown > 0 {
			s += fmt.Sprintf(" (%s missing, but the shelf shows that these sold too.)", count(r.Unknown, "answer is", "answers are"))
		}
		return s
	case check.Undecided:
		return fmt.Sprintf("%d sold for certain, %d left; %s never came, so up to %s may have been lost, and nobody can tell.",
			r.Sold, left, count(r.Unknown, "answer", "answers"), count(r.LostUpdatesMax, "update", "updates"))
	default:
		return violationEN(r, left)
	}
}

func violationEN(r Result, left int) string {
	lost := count(r.LostUpdates, "update was lost", "updates were lost")
	if r.Unknown > 0 {
		lost = "at least " + lost
	}
	switch {
	case r.Oversold > 0:
		s := fmt.Sprintf("%d sold, though there were only %d: %s will get nothing.", r.Sold, r.Stock, count(r.Oversold, "customer", "customers"))
		switch {
		case left < 0:
			s += fmt.Sprintf(" The count fell to %d.", left)
		case left == 0:
			s += " The shelf says 0, which hides it."
		default:
			s += fmt.Sprintf(" Yet %d %s still on the shelf.", left, verb(left))
		}
		if r.LostUpdates > 0 {
			s += " " + strings.ToUpper(lost[:1]) + lost[1:] + "."
		}
		return s
	case r.LostUpdates > 0:
		s := fmt.Sprintf("%d sold, but %d %s still on the shelf", r.Sold, left, verb(left))
		if r.Sold < r.Stock {
			s = fmt.Sprintf("%d of %d sold, so %d should be left, but %d %s", r.Sold, r.Stock, r.Stock-r.Sold, left, verb(left))
		}
		return fmt.Sprintf("%s: %s, so %s could be sold twice.", s, lost, count(r.LostUpdates, "piece", "pieces"))
	case left < 0:
		return fmt.Sprintf("%d sold for certain, and the count fell to %d: more was taken than there was.", r.Sold, left)
	default:
		return fmt.Sprintf("%d sold of %d, but %d left: %s gone that nobody bought.",
			r.Sold, r.Stock, left, count(-r.LostUpdates, "piece is", "pieces are"))
	}
}

// failuresEN names the three most frequent reasons.
func failuresEN(r Result) string {
	parts := make([]string, 0, len(r.Failures))
	for i, f := range r.Failures {
		if i == 3 {
			parts = append(parts, "and more")
			break
		}
		part := fmt.Sprintf("%d %s", f.Count, reasonEN(f))
		if f.Detail != "" && i == 0 {
			part += " (" + shorten(f.Detail) + ")"
		}
		parts = append(parts, part)
	}
	return count(r.Errors, "request", "requests") + " failed: " + strings.Join(parts, "; ") + "."
}

func reasonEN(f Reason) string {
	switch f.Reason {
	case history.NotAcquired:
		return "did not get the lock in time"
	case history.Unavailable:
		return "found " + blamed(f.Backend, "a backend") + " unavailable"
	case history.Unreachable:
		return "could not reach the shop"
	case history.TimedOut:
		return "got no answer in time"
	case history.Broken:
		return "lost the connection before the answer"
	case history.Interrupted:
		return "were still waiting when the run was stopped"
	case history.NotUnderstood:
		return "got an answer that is not the shop's"
	default:
		return "ended as " + f.Reason
	}
}

func blamed(backend, unnamed string) string {
	if backend == "" {
		return unnamed
	}
	return backend
}

// shorten keeps a foreign message from drowning the sentence, and its control characters
// from reaching the terminal.
func shorten(detail string) string {
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

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
