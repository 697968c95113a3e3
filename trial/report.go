package trial

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/measure"
	"oversell/trial/adapter"
	"oversell/view/matrix"
	"oversell/view/report"
)

// Report has all that a trial found about one lock.
type Report struct {
	matrix.About
	Hello    adapter.Hello    `json:"hello"`
	Totals   Totals           `json:"totals"`
	Contract Contract         `json:"contract"`
	Load     []measure.Result `json:"load,omitempty"` // of the lock, and of the strategy redis beside it
	matrix.Matrix

	// Runs are those behind the verdicts, with their recordings: all, or one for each hazard that did harm.
	Runs []experiment.Result `json:"-"`
}

// Totals counts the hazards of a matrix, and the checks of a contract.
type Totals struct {
	Hazards      int `json:"hazards"`
	Survived     int `json:"survived"`
	Harmed       int `json:"harmed"`
	AsClaimed    int `json:"as_claimed"`
	Contradicted int `json:"contradicted"`
	Unclaimed    int `json:"unclaimed"`
	Inconclusive int `json:"inconclusive"` // hazards with an inconclusive run
	ChecksFailed int `json:"checks_failed"`
	ChecksOpen   int `json:"checks_inconclusive,omitempty"`
	Checks       int `json:"checks"`
}

func totalsOf(m matrix.Matrix, c Contract) (t Totals) {
	t.ChecksFailed, _ = c.Failed()
	t.Checks, t.ChecksOpen = len(c), c.Open()
	for _, row := range m.Rows {
		for _, s := range row.Summaries {
			t.add(s)
		}
	}
	return t
}

func (t *Totals) add(s matrix.Summary) {
	t.Hazards++
	switch {
	case s.Failed > 0:
		t.Harmed++
	case s.Inconclusive == 0:
		t.Survived++
	}
	switch s.Agreement() {
	case api.Agrees:
		t.AsClaimed++
	case api.Contradicts:
		t.Contradicted++
	default:
		if s.Claim == api.Silent {
			t.Unclaimed++
		}
	}
	if s.Inconclusive > 0 {
		t.Inconclusive++
	}
}

// Agrees reports whether the lock does what it claims, in each run.
func (v Report) Agrees() bool {
	open := len(v.Load) > 0 && v.Load[0].Safe && v.Load[0].Verdict != api.Holds
	return !v.Contradicts() && v.Totals.ChecksOpen+v.Totals.Inconclusive == 0 && !open
}

// Contradicts reports whether a check, a hazard or the load shows the contrary of a claim.
func (v Report) Contradicts() bool {
	lostUpdates := len(v.Load) > 0 && v.Load[0].Safe && v.Load[0].Verdict == api.Broken
	return v.Totals.ChecksFailed+v.Totals.Contradicted > 0 || lostUpdates
}

// String counts the checks that failed and the verdicts of the hazards.
func (v Report) String() string {
	words, t := v.Contract.String(), v.Totals
	if _, basic := v.Contract.Failed(); basic {
		return words + " No hazard was injected: the other checks and the hazards need a lock that passes this check."
	}
	if t.Hazards == 0 {
		return words
	}
	words += fmt.Sprintf(" Hazards: %d survived, %d did harm; %d as claimed, %d contradict a claim, %d without a claim",
		t.Survived, t.Harmed, t.AsClaimed, t.Contradicted, t.Unclaimed)
	if t.Inconclusive > 0 {
		words += fmt.Sprintf("; %d inconclusive", t.Inconclusive)
	}
	return words + "."
}

// LoadSentence describes the load, with a ratio to the yardstick. It is empty without a load.
func (v Report) LoadSentence() string {
	if len(v.Load) == 0 {
		return ""
	}
	lock := v.Load[0]
	words := fmt.Sprintf("%d clients: %s", lock.Clients, report.Headline(lock).EN)
	if lock.ErrorsOnly() {
		return words
	}
	words += fmt.Sprintf("; %.0f requests a second, 99%% within %.0f ms", lock.ThroughputPerS, lock.P99MS)
	if len(v.Load) > 1 && v.Load[1].Rate() > 0 {
		ratio := lock.ThroughputPerS / v.Load[1].Rate()
		words += fmt.Sprintf("; %.2f of the requests of %s in the same lab", ratio, yardstick)
	}
	return words
}

// Repetitions returns the command that repeats each run that contradicts a claim or is inconclusive.
func (v Report) Repetitions() (lines []string) {
	for _, r := range v.Runs {
		if r.Agreement() == api.Contradicts || r.Verdict == api.Inconclusive {
			lines = append(lines, "Repeat "+string(r.Hazard)+": "+r.Repeat())
		}
	}
	return lines
}

// WriteJSON writes the verdict as one JSON object.
func (v Report) WriteJSON(w io.Writer) error { return report.WriteLines(w, v) }

// WritePage writes a page in a language, en or zh, with the timelines of the runs.
func (v Report) WritePage(w io.Writer, lang string) error {
	contract := v.Contract.String()
	for _, o := range v.Contract {
		if o.Failed != "" {
			contract += fmt.Sprintf(" %s: %s", o.Check, o.Failed)
		}
	}
	about := v.About
	about.Contract, about.Load = contract, v.LoadSentence()
	return matrix.WritePage(w, matrix.Summarise(v.Runs), v.Runs, about, lang)
}

// WriteMarkdown writes the verdicts as a document.
func (v Report) WriteMarkdown(w io.Writer) error {
	out, h := bufio.NewWriter(w), v.Hello
	_, _ = fmt.Fprintf(out, "# %s %s\n\n%s. %s; %s; %s. `%s`\n\n%s\n\n", plain(h.Library), plain(h.Version), plain(h.Language),
		v.Date, v.Machine, v.Versions, v.Command, v)
	if words := v.LoadSentence(); words != "" {
		_, _ = fmt.Fprintf(out, "The load: %s.\n\n", words)
	}
	v.WriteFindings(out)
	return out.Flush()
}

// WriteFindings writes a Markdown list: the checks that failed, the hazards that did harm, and those that were survived.
func (v Report) WriteFindings(w io.Writer) {
	for _, o := range v.Contract {
		if found := cmp.Or(o.Failed, o.Inconclusive); found != "" {
			_, _ = fmt.Fprintf(w, "- contract, `%s`: expected: %s. Found: %s.\n", o.Check, o.Claimed, strings.TrimSuffix(plain(found), "."))
		}
	}
	var survived []string
	for _, row := range v.Rows {
		for _, hazard := range v.Hazards {
			s, ok := row.Summaries[hazard]
			name := "`" + string(hazard) + "`"
			if row.Fenced {
				name += " with the fence"
			}
			name += map[string]string{api.Agrees: " (as the lock claims)", api.Contradicts: " (the lock claims otherwise)"}[s.Agreement()]
			switch {
			case ok && s.Failed+s.Inconclusive > 0:
				_, _ = fmt.Fprintf(w, "- %s %s: %s\n", s.Verdict.Sign(), name, v.sentence(row, hazard, s))
			case ok:
				survived = append(survived, name)
			}
		}
	}
	if len(survived) > 0 {
		_, _ = fmt.Fprintf(w, "- %s %s: %s in each run.\n", api.Safe.Sign(), strings.Join(survived, ", "), api.Safe)
	}
	_, lock, _ := strings.Cut(v.Command, " -- ")
	if v.Totals.Hazards > 0 {
		_, _ = fmt.Fprintf(w, "\nTo repeat a hazard: `%soversell judge --hazard HAZARD -- %s`.\n", v.folder(), lock)
	} else {
		_, _ = fmt.Fprintf(w, "\n%s Repeat it: `%soversell contract -- %s`.\n", v, v.folder(), lock)
	}
}

// folder returns the folder of the program that put the lock on trial, as its command names it.
func (v Report) folder() string {
	folder, _, _ := strings.Cut(v.Command, "oversell ")
	return folder
}

// sentence describes the verdict on a hazard, and has the command that repeats it.
func (v Report) sentence(row matrix.Row, hazard api.Hazard, s matrix.Summary) string {
	why, command := s.Why.EN, s.Command
	for _, r := range v.Typical(v.Runs) {
		if r.Hazard == hazard && r.Fenced == row.Fenced {
			why, command = matrix.Cause(r, "en"), r.Repeat()
		}
	}
	times := fmt.Sprintf("in %d of %d runs", cmp.Or(s.Failed, s.Inconclusive), s.Runs)
	if s.Failed > 0 && s.Inconclusive > 0 {
		times += fmt.Sprintf(", inconclusive in %d", s.Inconclusive)
	}
	return fmt.Sprintf("%s %s. %s `%s%s`", s.Verdict, times, plain(why), v.folder(), command)
}

// plain keeps a text of the program on trial a text: one line without markup.
func plain(words string) string {
	words = strings.ReplaceAll(words, "\n", " ")
	return regexp.MustCompile("[\\\\`<*_[#]").ReplaceAllString(words, `\$0`)
}
