package report

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"oversell/api"
	"oversell/lab/check"
)

// Headline returns the verdict on a run in a few words, such as "4,901 of 5,000 updates lost".
func Headline(r Result) Sentence {
	say := func(en, zh string, values ...any) Sentence {
		numbers := message.NewPrinter(language.English) // writes 5000 as 5,000
		return api.Text{EN: numbers.Sprintf(en, values...), ZH: numbers.Sprintf(zh, values...)}
	}
	switch {
	case r.Verdict == check.Holds:
		return say("no update lost", "没有丢失更新")
	case r.Verdict != check.Broken:
		return say("inconclusive", "无法判定")
	case r.Oversold > 0:
		return say("%d sold, but there were only %d", "售出 %d 件，库存只有 %d 件", r.Sold, r.Stock)
	case r.LostUpdates > 0:
		return say("%d of %d updates lost", "%[2]d 次更新丢失了 %[1]d 次", r.LostUpdates, r.Sold)
	default:
		return say("%d pieces gone without a sale", "有 %d 件没有卖出就不见了", -r.LostUpdates)
	}
}
