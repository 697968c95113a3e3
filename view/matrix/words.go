package matrix

import (
	"oversell/api"
	"oversell/lab/experiment"
	"oversell/view/ladder"
)

// verdictWords has formats for the strategy's name and the invariant in both languages, so ordered.
type verdictWords struct {
	verdict      api.Verdict
	meaning      api.Text // for the legend
	sentence, zh string
}

func allVerdicts() []verdictWords {
	return []verdictWords{
		{api.Safe, api.Text{EN: "every invariant held", ZH: "所有不变量都成立"}, "%[1]s is safe: every invariant held.", "%[1]s 安全：所有不变量都成立。"},
		{api.Broken, api.Text{EN: "an invariant does not hold: in most cases, more was sold than taken from the stock", ZH: "有不变量不成立：多数情况下，卖出的比库存减少的多"}, "%[1]s is broken: %[2]s.", "%[1]s 被破坏：%[3]s。"},
		{api.Stalled, api.Text{EN: "no request acquired the lock within the time limit", ZH: "在限定时间内没有请求拿到锁"}, "%[1]s stalled: no request acquired the lock within the time limit.", "%[1]s 停滞：在限定时间内没有请求拿到锁。"},
		{api.Aborted, api.Text{EN: "the lease expired before the work finished, and the request was rejected; no update was lost", ZH: "工作完成之前租期已过，请求被拒绝；没有丢失更新"}, "%[1]s aborted: the lease expired before the work finished, and the request was rejected. No update was lost.", "%[1]s 中断：工作完成之前租期已过，请求被拒绝；没有丢失更新。"},
		{api.Wasteful, api.Text{EN: "correct, but the cost grows with the number of waiters", ZH: "正确，但代价随等待者的数量增长"}, "%[1]s was correct, but its cost grows with the number of waiters.", "%[1]s 正确，但代价随等待者的数量增长。"},
		{api.NotShown, api.Text{EN: "the card claims a flaw, and no run showed it", ZH: "卡片声明的缺陷没有显现"}, "No run showed the flaw that the card of %[1]s claims.", "%[1]s 的卡片所声明的缺陷没有显现。"},
		{api.Inconclusive, api.Text{EN: "requests got no answer, events of the recording were lost, the machine was too busy for renewals, or the experiment itself failed", ZH: "有请求没有应答，有记录丢失，机器太忙，或实验本身失败"}, "The run of %[1]s is inconclusive: it neither shows nor rules out a failure.", "%[1]s 无法判定：这次运行既没有证实、也没有排除故障。"},
	}
}

func wordsOf(v api.Verdict) verdictWords {
	for _, words := range allVerdicts() {
		if words.verdict == v {
			return words
		}
	}
	return verdictWords{verdict: v, sentence: "%[1]s: " + string(v), zh: "%[1]s：" + string(v)}
}

// Sentence describes the verdict of a run, and says whether the strategy's card agrees.
func Sentence(r experiment.Result) api.Text {
	words, broken := wordsOf(r.Verdict), invariant(r.Invariant)
	s := api.Textf(words.sentence, words.zh, r.Name(), broken.EN, broken.ZH)
	more := map[string]api.Text{
		"agrees": {EN: "The card claims the same.", ZH: "与卡片一致。"}, "contradicts": {EN: "The card claims otherwise.", ZH: "与卡片不符。"},
	}[r.Agreement()]
	if r.Claim == api.Silent {
		more = api.Text{EN: "The card claims nothing about this hazard.", ZH: "卡片没有提到这种故障。"}
	}
	return api.Joined(s, more)
}

func invariant(name string) api.Text {
	if words, ok := map[string]api.Text{
		experiment.Conservation:      {EN: "the pieces sold differ from the pieces taken from the stock (conservation, I1)", ZH: "卖出的数量与库存减少的数量不符（守恒，I1）"},
		experiment.MutualExclusion:   {EN: "two requests held the lock at the same time (mutual exclusion, I2)", ZH: "两个请求同时持有锁（互斥，I2）"},
		experiment.FenceMonotonicity: {EN: "a write with an older fencing token came after one with a newer token (fence monotonicity, I3)", ZH: "栅栏号较旧的写入发生在较新的之后（栅栏号单调，I3）"},
		experiment.Progress:          {EN: "no request acquired the lock in time (progress, I4)", ZH: "没有请求及时拿到锁（进展，I4）"},
		experiment.Reconciliation:    {EN: "the stock in Redis does not agree with the row in MySQL (reconciliation, I5)", ZH: "Redis 里的库存与 MySQL 的数据行不符（对账，I5）"},
		experiment.Linearizability:   {EN: "no order of the sales explains the answers (linearizability)", ZH: "没有一种销售顺序能解释这些应答（线性一致性）"},
	}[name]; ok {
		return words
	}
	return api.Text{EN: "an invariant does not hold", ZH: "有不变量不成立"}
}

// Cause explains a run. A timeline shows the cause of a lost update, or what prevented it.
func Cause(r experiment.Result, lang string) string {
	if e, _ := experiment.Of(r.Hazard); e.Unseen {
		return r.Why.In(lang)
	}
	line := ladder.OfRecording(r.Recording).In(lang)
	if cause := line.Cause(); cause != "" && (r.Verdict == api.Safe || r.Verdict == api.Broken && line.Shows()) {
		return cause
	}
	if difference := ladder.Difference(r.Sold, r.Taken).In(lang); r.Verdict == api.Safe && difference != "" {
		return difference
	}
	return r.Why.In(lang)
}
