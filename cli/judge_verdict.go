package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/matrix"
	"oversell/lab/report"
	"oversell/lab/terminal"
	"oversell/locks/adapter"
	"oversell/locks/lockstest"
)

func (v *judgement) introduce(out io.Writer) {
	h := v.flags.hello
	_, _ = fmt.Fprintf(out, "%s %s, %s, on %s\n", h.Library, h.Version, h.Language, strings.Join(h.Backends, ", "))
}

// printVerdict prints the line of one run.
func printVerdict(out io.Writer, r experiment.Result, width int) {
	screen, lang := terminal.Of(out), language()
	name := strings.Replace(r.Name(), r.Strategy, r.Hazard, 1)
	agreement := map[string]api.Text{
		"agrees":      {EN: ", as the lock claims", ZH: "，与声明一致"},
		"contradicts": {EN: ", but the lock claims otherwise", ZH: "，与声明不符"},
	}[matrix.Agreement(r)].In(lang)
	line := fmt.Sprintf("%s %-*s  %s%s", matrix.Sign(r.Verdict), width, name, matrix.Word(r.Verdict).In(lang), agreement)
	if cause := matrix.Cause(r, lang); cause != "" {
		line += api.Text{EN: ": ", ZH: "："}.In(lang) + cause
	}
	_, _ = fmt.Fprintln(out, screen.Paint(matrix.Sign(r.Verdict), screen.Wrap(line, width+4)))
}

// totals counts the hazards of a matrix.
type totals struct {
	Hazards      int  `json:"hazards"`
	Survived     int  `json:"survived"`
	Harmed       int  `json:"harmed"`
	AsClaimed    int  `json:"as_claimed"`
	Contradicted int  `json:"contradicted"`
	Unclaimed    int  `json:"unclaimed"`
	Inconclusive int  `json:"inconclusive"` // hazards with an inconclusive run
	ChecksFailed int  `json:"checks_failed"`
	Checks       int  `json:"checks"`
	basic        bool // a basic check failed
}

func totalsOf(m matrix.Matrix, outcomes []lockstest.Outcome) totals {
	var t totals
	t.ChecksFailed, t.basic = failedChecks(outcomes)
	t.Checks = len(outcomes)
	for _, row := range m.Rows {
		for _, s := range row.Summaries {
			t.Hazards++
			switch {
			case s.Failed > 0:
				t.Harmed++
			case s.Inconclusive == 0:
				t.Survived++
			}
			switch {
			case s.Claim == experiment.Silent:
				t.Unclaimed++
			case s.Agrees && s.Inconclusive == 0:
				t.AsClaimed++
			case !s.Agrees:
				t.Contradicted++
			}
			if s.Inconclusive > 0 {
				t.Inconclusive++
			}
		}
	}
	return t
}

func (t totals) String() string {
	text := fmt.Sprintf("%d of %d checks of the contract failed. ", t.ChecksFailed, t.Checks)
	if t.basic {
		return text + "No hazard was injected: the other checks and the hazards need a lock that passes this check."
	}
	if t.Hazards == 0 {
		return strings.TrimSpace(text)
	}
	text += fmt.Sprintf("Hazards: %d survived, %d did harm; %d as claimed, %d contradict a claim, %d without a claim",
		t.Survived, t.Harmed, t.AsClaimed, t.Contradicted, t.Unclaimed)
	if t.Inconclusive > 0 {
		text += fmt.Sprintf("; %d inconclusive", t.Inconclusive)
	}
	return text + "."
}

// conclude prints the totals and writes the files. The error has the exit status.
func (v *judgement) conclude(ctx context.Context, store *experiment.ResultStore, text, out, errOut io.Writer) error {
	results, err := store.WithRecordings()
	if err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	m := matrix.Summarise(results)
	t := totalsOf(m, v.contract)
	_, _ = fmt.Fprintln(text)
	for _, r := range results { // the command only where it is needed
		if !r.Agrees() {
			_, _ = fmt.Fprintln(text, "Repeat "+r.Hazard+": "+r.Repeat())
		}
	}
	verdict := t.String()
	if text := loadSentence(v.load); text != "" {
		verdict += " Load: " + text + "."
	}
	_, _ = fmt.Fprintln(text, terminal.Of(text).Wrap(verdict, 0))
	about := v.about(ctx)
	page := judgedPage{
		Date: about.Date, Machine: about.Machine, Versions: about.Versions, Command: about.Command,
		Hello: v.flags.hello, Totals: t, Contract: v.contract, Load: v.load, Matrix: m,
	}
	failed := v.flags.files.write(map[string]func(io.Writer) error{
		"json":     page.writeJSON,
		"markdown": page.writeMarkdown,
		"html":     func(w io.Writer) error { return matrix.WritePage(w, m, results, about) },
	}, out, errOut)
	if failed == nil && (t.ChecksFailed+t.Contradicted+t.Inconclusive > 0 || v.loadFailed()) {
		return &exit{1, nil}
	}
	return failed
}

func (v *judgement) about(ctx context.Context) matrix.About {
	about := matrix.Now(ctx, v.versions, v.flags.typed)
	failed, _ := failedChecks(v.contract)
	about.Contract, about.Load = fmt.Sprintf("%d of %d checks failed", failed, len(v.contract)), loadSentence(v.load)
	for _, o := range v.contract {
		if o.Failed != "" {
			about.Contract += fmt.Sprintf("; %s: %s", o.Check, o.Failed)
		}
	}
	return about
}

// judgedPage has all verdicts on one lock.
type judgedPage struct {
	Date     string              `json:"date"`
	Machine  string              `json:"machine"`
	Versions string              `json:"versions"`
	Command  string              `json:"command"`
	Hello    adapter.Hello       `json:"hello"`
	Totals   totals              `json:"totals"`
	Contract []lockstest.Outcome `json:"contract"`
	Load     []report.Result     `json:"load,omitempty"` // of the lock, and of the strategy redis beside it
	matrix.Matrix
}

func (p judgedPage) writeJSON(w io.Writer) error { return report.WriteLines(w, p) }

func (p judgedPage) writeMarkdown(w io.Writer) error {
	// Texts of the program on trial stay texts: one line, no markup, no column.
	plain := strings.NewReplacer("\n", " ", `\`, `\\`, "|", `\|`, "`", "\\`", "<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`, "#", `\#`).Replace
	_, _ = fmt.Fprintf(w, "# %s %s\n\n%s. %s; %s; %s. `%s`\n\n%s\n", plain(p.Hello.Library), plain(p.Hello.Version), plain(p.Hello.Language), p.Date, p.Machine, p.Versions, p.Command, p.Totals)
	_, _ = fmt.Fprint(w, "\n| check | result | claim, and what was found instead |\n|---|---|---|\n")
	for _, o := range p.Contract {
		result, found := "passed", ""
		if o.Failed != "" {
			result, found = "**failed**", ". Found: "+plain(o.Failed)
		}
		_, _ = fmt.Fprintf(w, "| %s | %s | %s%s |\n", o.Check, result, o.Claimed, found)
	}
	if text := loadSentence(p.Load); text != "" {
		_, _ = fmt.Fprintf(w, "\nThe load: %s.\n", text)
	}
	if len(p.Rows) == 0 {
		return nil
	}
	_, _ = fmt.Fprint(w, "\n| hazard | verdict | claim | runs that failed | why | command |\n|---|---|---|--:|---|---|\n")
	for _, row := range p.Rows {
		for _, hazard := range p.Hazards {
			s, ok := row.Summaries[hazard]
			if !ok {
				continue
			}
			name := hazard
			if row.Fenced {
				name += " --fenced"
			}
			_, err := fmt.Fprintf(w, "| %s | %s | %s | %d of %d | %s | `%s` |\n", name, s.Verdict, s.Claim, s.Failed, s.Runs, plain(s.Why.EN), strings.ReplaceAll(s.Command, "|", `\|`))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
