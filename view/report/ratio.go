package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"oversell/api"
	"oversell/lab/ratio"
	"oversell/view/terminal"
)

// plotWidth is the number of characters from the lowest to the highest rate in the plot of a ratio.
const plotWidth = 60

// RatioProgress returns a line about the pairs that have finished. A pair is a round of each of the two sides.
func RatioProgress(r ratio.Result) string {
	last := r.Pairs[len(r.Pairs)-1]
	line := fmt.Sprintf("pair %d: %.0f/s and %.0f/s", len(r.Pairs), last.A.Rate, last.B.Rate)
	if len(r.Pairs) >= ratio.Fewest {
		line += "; ratio until now " + r.Ratio.Text(2)
	}
	return line
}

// Ratio writes the sentence, the table and the plot of a comparison.
func Ratio(w io.Writer, r ratio.Result, screen terminal.Screen, lang string) {
	fmt.Fprintln(w, screen.Wrap(ratioSentence(r).In(lang), 0)+"\n")
	table := terminal.Texts("", "", "sold/s", "interval", "rounds")
	table.Columns[1].Right, table.Columns[3].Right = true, true
	var rates [2][]float64
	for _, pair := range r.Pairs {
		rates[0], rates[1] = append(rates[0], pair.A.Rate), append(rates[1], pair.B.Rate)
	}
	names, sides := []string{r.A, r.B}, []ratio.Interval{r.RateA, r.RateB}
	for i, side := range sides {
		table.Add(names[i], fmt.Sprintf("%.0f", side.Median), side.Bounds(0), fmt.Sprint(side.Values))
	}
	table.Write(w, screen)
	if len(r.Pairs) == 0 {
		return
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, rate := range append(rates[0], rates[1]...) {
		low, high = min(low, rate), max(high, rate)
	}
	width := max(len(names[0]), len(names[1]))
	fmt.Fprintf(w, "\n%-*s  %s\n%-*s  %s\n%-*s  %-*.0f%.0f\n\n%s\n", width, names[0], plot(rates[0], low, high),
		width, names[1], plot(rates[1], low, high), width, "", plotWidth-len(fmt.Sprintf("%.0f", high)), low, high, screen.Wrap(ratioConditions(r).In(lang), 0))
}

func ratioSentence(r ratio.Result) api.Text {
	text := api.Textf("%s and %s: no difference is shown. The ratio is %.2f (%s; p = %.3f).", "%s 与 %s：没有显示出差别。比值 %.2f（%s；p = %.3f）。",
		r.A, r.B, r.Ratio.Median, r.Ratio.Bounds(2), r.P)
	if r.Differs() {
		text = api.Textf("%s sells %.2f times as fast as %s (%s; p = %.3f).", "%[1]s 的售出速率是 %[3]s 的 %[2].2f 倍（%[4]s；p = %[5].3f）。",
			r.A, r.Ratio.Median, r.B, r.Ratio.Bounds(2), r.P)
	}
	switch {
	case len(r.Pairs) == 0:
		return api.Joined(text, api.Text{EN: "The rounds were not measured in pairs.", ZH: "这些轮次不是成对测量的。"})
	case !r.Narrow():
		return api.Joined(text, api.Textf("The interval is still wider than %.1f %%.", "区间仍然比 %.1f%% 宽。", 100*r.Within))
	}
	return text
}

func ratioConditions(r ratio.Result) api.Text {
	discarded := 0
	for _, pair := range r.Pairs {
		discarded += pair.Discarded
	}
	return api.Textf("In brackets, exact 95 %% intervals of the medians. The load took %.0f %% of the cores, other processes %.0f %%; %d rounds were repeated for that. Seed %d.",
		"括号内是中位数的精确 95%% 区间。负载占用处理器的 %.0f%%，其他进程 %.0f%%；因此重测了 %d 轮。种子 %d。", 100*r.Load(), 100*r.Others(), discarded, r.Seed)
}

// plot shows where the values lie between low and high: · for one, : for two, and ∎ for more.
func plot(values []float64, low, high float64) string {
	counts := make([]int, plotWidth)
	for _, v := range values {
		if high > low {
			counts[int((v-low)/(high-low)*(plotWidth-1)+0.5)]++
		}
	}
	var line strings.Builder
	for _, n := range counts {
		line.WriteRune([]rune(" ·:∎")[min(n, 3)])
	}
	return strings.TrimRight(line.String(), " ")
}
