package matrix

import (
	"fmt"

	"oversell/lab/experiment"
)

// Text is a sentence in both languages of the pages.
type Text struct{ EN, ZH string }

// Word returns the verdict's word.
func Word(v experiment.Verdict) Text {
	return Text{string(v), map[experiment.Verdict]string{
		experiment.Safe: "安全", experiment.Broken: "被破坏", experiment.Stalled: "停滞", experiment.Aborted: "中断",
		experiment.Wasteful: "浪费", experiment.NotShown: "未显现", experiment.Unknown: "未知",
	}[v]}
}

// Class returns the style of a verdict: harm, cost, safe or doubt.
func Class(v experiment.Verdict) string {
	switch {
	case v == experiment.Broken || v == experiment.Stalled:
		return "harm"
	case v.Failed():
		return "cost"
	case v == experiment.Safe:
		return "safe"
	default:
		return "doubt"
	}
}

// Sign returns a sign for the class, for readers who cannot tell the colours apart.
func Sign(v experiment.Verdict) string {
	return map[string]string{"harm": "✗", "cost": "▲", "safe": "✓", "doubt": "?"}[Class(v)]
}

// Agreement compares a run with the strategy's card: agrees or contradicts. It is empty
// where the card claims nothing or the verdict is unknown.
func Agreement(r experiment.Result) string {
	switch {
	case r.Claim == experiment.Silent || r.Verdict == experiment.Unknown:
		return ""
	case r.Agrees():
		return "agrees"
	default:
		return "contradicts"
	}
}

// Sentence returns the verdict of a run as a sentence, and whether the card agrees.
func Sentence(r experiment.Result) Text {
	name := r.Name()
	words := map[experiment.Verdict]Text{
		experiment.Safe:     {name + " is safe: every invariant held.", name + " 安全：所有不变量都成立。"},
		experiment.Broken:   {name + " is broken: " + invariant(r.Invariant).EN + ".", name + " 被破坏：" + invariant(r.Invariant).ZH + "。"},
		experiment.Stalled:  {name + " stalled: no request acquired the lock within the time limit.", name + " 停滞：在限定时间内没有请求拿到锁。"},
		experiment.Aborted:  {name + " aborted: the lease expired before the work finished, and the request was rejected. No update was lost.", name + " 中断：工作还没完，锁已失去；只损失了这次工作。"},
		experiment.Wasteful: {name + " was correct, but its cost grows with the number of waiters.", name + " 正确，但代价随等待者的数量增长。"},
		experiment.NotShown: {"No run showed the flaw that the card of " + name + " claims.", name + " 的缺陷没有显现。"},
		experiment.Unknown:  {"The verdict on " + name + " is unknown: this run neither shows nor rules out a failure.", "这次运行不能说明 " + name + "。"},
	}[r.Verdict]
	more := map[string]Text{
		"agrees": {" The card claims the same.", "与它的卡片一致。"}, "contradicts": {" The card claims otherwise.", "它的卡片说的不是这样。"},
	}[Agreement(r)]
	if r.Claim == experiment.Silent {
		more = Text{" The card claims nothing about this hazard.", "它的卡片没有提到这个危险。"}
	}
	return Text{words.EN + more.EN, words.ZH + more.ZH}
}

// invariant says what does not hold.
func invariant(name string) Text {
	if words, ok := map[string]Text{
		experiment.Conservation:      {"the pieces sold differ from the pieces taken from the stock (conservation, I1)", "卖出的数量与库存减少的数量不符（守恒，I1）"},
		experiment.MutualExclusion:   {"two requests held the lock at the same time (mutual exclusion, I2)", "两个请求同时持有锁（互斥，I2）"},
		experiment.FenceMonotonicity: {"a write with an older fencing token came after one with a newer token (fence monotonicity, I3)", "旧的栅栏令牌在新的之后写入（令牌单调，I3）"},
		experiment.Progress:          {"no request acquired the lock in time (progress, I4)", "没有请求及时拿到锁（进展，I4）"},
		experiment.Reconciliation:    {"the stock in Redis does not agree with the row in MySQL (reconciliation, I5)", "Redis 里的库存与 MySQL 的数据行不符（对账，I5）"},
		experiment.Linearizability:   {"no order of the sales explains the answers (linearizability)", "没有一种销售顺序能解释这些应答（线性一致性）"},
	}[name]; ok {
		return words
	}
	return Text{"an invariant does not hold", "有不变量不成立"}
}

// difference compares the pieces sold with the pieces taken from the row.
func difference(r experiment.Result) string {
	counts := fmt.Sprintf("%d sold, %d taken from stock", r.Sold, r.Taken)
	switch lost := r.Sold - r.Taken; {
	case r.Sold == 0 && r.Taken == 0:
		return ""
	case lost > 0:
		return "Lost update: " + counts + "."
	case lost < 0:
		return fmt.Sprintf("Lost sale: %s. %d pieces are gone that no answer confirmed.", counts, -lost)
	default:
		return counts + ": no update was lost."
	}
}

// meanings explains each verdict, for the legend of the page.
func meanings() (all []meaning) {
	for _, m := range []struct {
		verdict experiment.Verdict
		means   string
	}{
		{experiment.Safe, "every invariant held"},
		{experiment.Broken, "an invariant does not hold: in most cases, more was sold than taken from the stock"},
		{experiment.Stalled, "no request acquired the lock within the time limit"},
		{experiment.Aborted, "the lease expired before the work finished, and the request was rejected; no update was lost"},
		{experiment.Wasteful, "correct, but the cost grows with the number of waiters"},
		{experiment.NotShown, "the card claims a flaw, and no run showed it"},
		{experiment.Unknown, "requests ended with an unknown outcome, events of the recording were lost, or the experiment itself failed"},
	} {
		all = append(all, meaning{Sign(m.verdict) + " " + string(m.verdict), m.means})
	}
	return all
}
