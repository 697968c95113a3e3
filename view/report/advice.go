// Package report shows what package measure has computed: as a table, sentences, JSON, JMeter's JTL and an HTML page.
package report

import (
	"strings"

	"oversell/api"
	"oversell/lab/measure"
)

// Advice recommends a strategy: of those that lost nothing, and claim to, the one with the highest
// throughput. The recommendation follows from these runs only.
func Advice(results []measure.Result) api.Text {
	var best *measure.Result
	held, complete, open := 0, 0, []string{}
	for i, r := range results {
		if r.Partial {
			continue
		}
		complete++
		if r.Verdict == api.Inconclusive {
			open = append(open, r.Strategy)
		}
		if r.Verdict != api.Holds || !r.Safe {
			continue
		}
		held++
		if best == nil || r.Rate() > best.Rate() {
			best = &results[i]
		}
	}
	limits := api.Text{
		EN: "This is true for this machine and this load. The fault matrix shows what each lock survives when something fails.",
		ZH: "这只适用于这台机器和这种负载。出现故障时每把锁能经受什么，请看故障矩阵。",
	}
	var text, unproved api.Text
	if len(open) > 0 {
		unproved = api.Textf("The run of %[1]s is inconclusive.", "%[2]s 的运行无法判定。", strings.Join(open, ", "), strings.Join(open, "、"))
	}
	switch {
	case complete < 2:
		return api.Text{EN: "Compare at least two strategies for a recommendation.", ZH: "至少比较两种策略，才能给出建议。"}
	case held == 0 && len(open) > 0:
		return api.Joined(unproved, api.Text{EN: "So these runs recommend no strategy.", ZH: "因此这些运行不能给出建议。"})
	case held == 0:
		return api.Text{
			EN: "None of these strategies is safe in such a run: choose one whose card claims that it loses no update.",
			ZH: "这些策略在这样的运行中都不安全：请选择卡片声明不丢失更新的策略。",
		}
	case held == 1 && len(open) > 0:
		text = api.Textf("%s lost nothing here, as its card claims.", "%s 没有丢失更新，与它的卡片一致。", best.Strategy)
	case held == 1:
		text = api.Textf("Only %s lost nothing here, as its card claims.", "只有 %s 没有丢失更新，与它的卡片一致。", best.Strategy)
	default:
		text = api.Textf("Of the %[1]d strategies that lost nothing here, as their cards claim, %[2]s was the fastest: %[3]s requests/s.",
			"有 %[1]d 种策略没有丢失更新，与它们的卡片一致，其中 %[2]s 最快：每秒 %[3]s 个请求。", held, best.Strategy, measured(*best, best.ThroughputPerS))
	}
	return api.Joined(text, unproved, limits)
}
