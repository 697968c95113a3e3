package matrix

import (
	"fmt"
	"io"
	"slices"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// WriteFinding writes what a random plan has found: the verdict, the steps, and the command that repeats it.
func WriteFinding(w io.Writer, f experiment.Finding, screen terminal.Screen, lang string) {
	say := func(indent int, text string) { fmt.Fprintln(w, screen.Wrap(text, indent)) }
	sign := f.Verdict.Sign()
	fmt.Fprintln(w, screen.Paint(sign, fmt.Sprintf("%s %s: %s, %s", sign, f.Name(), f.Verdict.In(lang), f.Invariant)))
	say(2, "  "+f.Why.In(lang))
	for i, m := range f.Moves {
		say(6, fmt.Sprintf("  %2d. %s", i+1, m.Words().In(lang)))
	}
	say(2, "  "+api.Joined(f.About(), f.Repeated(), api.Text{EN: "Repeat it:", ZH: "重复："}).In(lang))
	fmt.Fprintf(w, "  %s\n\n", f.Repeat())
}

// SurveyTable has a row for each fault that applies to a strategy: how often it was injected, how often it had its
// effect, and in which phase of a request.
func SurveyTable(s *experiment.Survey, lang string) terminal.Table {
	t := terminal.Texts("", "fault", "injected", "landed", "in wait", "critical section", "write", "release", "renewal")
	if lang == "zh" {
		t = terminal.Texts("", "故障", "注入", "生效", "等待中", "临界区内", "写入中", "释放中", "续期中")
	}
	for i := range t.Columns[1:] {
		t.Columns[i+1].Right = true
	}
	for _, verb := range chaos.Faults() {
		c, injected := s.Coverage[verb]
		if !injected && !slices.Contains(s.Missing, verb) {
			continue
		}
		row := []string{string(verb), fmt.Sprint(c.Injected), fmt.Sprint(c.Landed)}
		for _, phase := range chaos.Phases() {
			row = append(row, fmt.Sprint(c.In[phase]))
		}
		t.Add(append(row, fmt.Sprint(c.Renewal))...)
	}
	return t
}

// SurveySentence says what the plans have shown about a strategy.
func SurveySentence(s *experiment.Survey) api.Text {
	news, known := 0, 0
	for _, f := range s.Findings {
		if f.Claim == api.Protects {
			news++
		} else {
			known++
		}
	}
	text := api.Textf("%[1]s: %[5]s. Findings that contradict the card: %[3]d; others: %[4]d.", "%[1]s：%[2]d 个计划。与卡片矛盾的发现 %[3]d 个，其他 %[4]d 个。",
		s.Subject.Name(), s.Plans, news, known, measure.Count(s.Plans, "plan", "plans"))
	if s.Again > 0 {
		text = api.Joined(text, api.Textf("%[2]s showed the others again.", "另有 %[1]d 个计划再次显示。", s.Again, measure.Count(s.Again, "more plan", "more plans")))
	}
	if s.Busy > 0 {
		text = api.Joined(text, api.Textf("%d more failed while this machine was too busy for renewals, and do not count.",
			"另有 %d 个计划失败时这台机器太忙，续期可能来不及，因此不算。", s.Busy))
	}
	return api.Joined(text, s.NeverLanded())
}
