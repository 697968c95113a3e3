package report

import (
	"fmt"
	"strings"

	"oversell/lab/check"
	"oversell/lab/history"
)

// stockZH is stockEN in Chinese.
func stockZH(r Result) string {
	if r.Remaining == nil {
		return fmt.Sprintf("确定售出 %d 件，但之后无法读取库存：有没有丢失更新，无人知晓。", r.Sold)
	}
	left := *r.Remaining
	switch r.Verdict {
	case check.Holds:
		s := fmt.Sprintf("售出 %d 件，剩余 %d 件，没有丢失更新。", r.Sold, left)
		if r.Unknown > 0 {
			s += fmt.Sprintf("（有 %d 个请求没有收到应答，但从库存看它们也都售出了。）", r.Unknown)
		}
		return s
	case check.Undecided:
		return fmt.Sprintf("确定售出 %d 件，剩余 %d 件；有 %d 个应答没有收到，因此最多可能丢失了 %d 次更新，无法判定。",
			r.Sold, left, r.Unknown, r.LostUpdatesMax)
	default:
		return violationZH(r, left)
	}
}

func violationZH(r Result, left int) string {
	lost := fmt.Sprintf("丢失了 %d 次更新", r.LostUpdates)
	if r.Unknown > 0 {
		lost = fmt.Sprintf("至少丢失了 %d 次更新", r.LostUpdates)
	}
	switch {
	case r.Oversold > 0:
		s := fmt.Sprintf("售出 %d 件，可库存只有 %d 件：有 %d 件发不了货。", r.Sold, r.Stock, r.Oversold)
		switch {
		case left < 0:
			s += fmt.Sprintf("库存变成了 %d。", left)
		case left == 0:
			s += "库存显示为 0，掩盖了超卖。"
		default:
			s += fmt.Sprintf("而货架上竟还剩 %d 件。", left)
		}
		if r.LostUpdates > 0 {
			s += lost + "。"
		}
		return s
	case r.LostUpdates > 0:
		s := fmt.Sprintf("售出 %d 件，货架上却还剩 %d 件", r.Sold, left)
		if r.Sold < r.Stock {
			s = fmt.Sprintf("%d 件中售出 %d 件，应剩 %d 件，实际却剩 %d 件", r.Stock, r.Sold, r.Stock-r.Sold, left)
		}
		return fmt.Sprintf("%s：%s，这 %d 件会被再卖一次。", s, lost, r.LostUpdates)
	case left < 0:
		return fmt.Sprintf("确定售出 %d 件，库存却变成了 %d：取走的比原有的还多。", r.Sold, left)
	default:
		return fmt.Sprintf("%d 件中售出 %d 件，却只剩 %d 件：有 %d 件没有卖出就不见了。", r.Stock, r.Sold, left, -r.LostUpdates)
	}
}

func failuresZH(r Result) string {
	parts := make([]string, 0, len(r.Failures))
	for i, f := range r.Failures {
		if i == 3 {
			parts = append(parts, "等等")
			break
		}
		part := fmt.Sprintf("%d 个%s", f.Count, reasonZH(f))
		if f.Detail != "" && i == 0 {
			part += "（" + shorten(f.Detail) + "）"
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%d 个请求失败：", r.Errors) + strings.Join(parts, "；") + "。"
}

func reasonZH(f Reason) string {
	switch f.Reason {
	case history.NotAcquired:
		return "没有及时拿到锁"
	case history.Unavailable:
		return "遇到 " + blamed(f.Backend, "后端") + " 不可用"
	case history.Unreachable:
		return "连不上服务"
	case history.TimedOut:
		return "等不到应答而超时"
	case history.Broken:
		return "在应答之前断开了连接"
	case history.Interrupted:
		return "在测试停止时仍在等待"
	case history.NotUnderstood:
		return "得到了不是本服务的应答"
	default:
		return "结果为 " + f.Reason
	}
}
