package matrix

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/api"
	"oversell/view/report"
	"oversell/view/terminal"
)

// Databases has what was recorded on several versions of MySQL and MariaDB.
type Databases struct {
	Date    string     `json:"date"`
	Machine string     `json:"machine"`
	Servers []Database `json:"servers"`
}

// Database has the verdicts on one version.
type Database struct {
	Version string `json:"version"` // as the server returns it
	Matrix
}

// Name returns the product and the series, such as "MariaDB 10.11".
func (d Database) Name() string {
	product := "MySQL"
	if strings.Contains(d.Version, "MariaDB") {
		product = "MariaDB"
	}
	numbers := strings.SplitN(d.Version, ".", 3)
	return product + " " + strings.Join(numbers[:min(2, len(numbers))], ".")
}

// Deviation is a verdict on a database that differs from the recorded matrix.
type Deviation struct {
	Row
	Hazard         api.Hazard
	Here, Recorded Summary
}

// Compare returns the number of verdicts that recorded has as well, and the verdicts that differ
// there. If the runs of recorded do not agree with each other, safe is no difference.
func (d Database) Compare(recorded Matrix) (compared int, different []Deviation) {
	d.each(func(r Row, hazard api.Hazard, here Summary) {
		i := slices.IndexFunc(recorded.Rows, func(other Row) bool { return other.Strategy == r.Strategy && other.Fenced == r.Fenced })
		if i < 0 || !recorded.Rows[i].has(hazard) {
			return
		}
		compared++
		before := recorded.Rows[i].Summaries[hazard]
		sometimes := before.Failed > 0 && before.Failed < before.Runs
		if here.Verdict != before.Verdict && (!sometimes || here.Verdict != api.Safe) {
			different = append(different, Deviation{r, hazard, here, before})
		}
	})
	return compared, different
}

// String says what was found here, and what the matrix has.
func (d Deviation) String() string {
	return fmt.Sprintf("%s, %s: %s here, %s in the matrix", d.Hazard, d.name(), d.Here.words("en"), d.Recorded.words("en"))
}

// words returns the verdict, with a number if only some runs failed.
func (s Summary) words(lang string) string { return s.Verdict.In(lang) + s.fraction() }

func (s Summary) fraction() string {
	if s.Verdict.Failed() && s.Failed < s.Runs {
		return fmt.Sprintf(" %d/%d", s.Failed, s.Runs)
	}
	return ""
}

// ClaimedBy compares the summaries with other claims, such as those of newer cards.
func (m Matrix) ClaimedBy(claim func(hazard api.Hazard, strategy string, fenced bool) api.Claim) Matrix {
	m.each(func(r Row, hazard api.Hazard, s Summary) {
		s.Claim = claim(hazard, r.Strategy, r.Fenced)
		s.Agrees = s.Agreement() != api.Contradicts
		r.Summaries[hazard] = s
	})
	return m
}

// Uneven lists the summaries with fewer runs than others: their experiments were interrupted.
func (m Matrix) Uneven() (lines []string) {
	runs := m.runs()
	m.each(func(r Row, hazard api.Hazard, s Summary) {
		if s.Runs < runs {
			lines = append(lines, fmt.Sprintf("%s, %s: %d of %d runs", r.name(), hazard, s.Runs, runs))
		}
	})
	return lines
}

// WriteJSON writes the databases, with the reason and the command of a verdict only if it contradicts a card.
func (all Databases) WriteJSON(w io.Writer) error {
	for _, d := range all.Servers {
		d.each(func(r Row, hazard api.Hazard, s Summary) {
			if s.Seeds = nil; s.Agrees {
				s.Why, s.Command = api.Text{}, ""
			}
			r.Summaries[hazard] = s
		})
	}
	return report.WriteLines(w, all)
}

// WriteMarkdown writes a table with a column for each database, and a line for each difference.
func (all Databases) WriteMarkdown(w io.Writer, recorded Matrix) error {
	out := bufio.NewWriter(w)
	runs := 0
	for _, d := range all.Servers {
		runs = max(runs, d.runs())
	}
	_, _ = fmt.Fprintf(out, "Seeds: %d. %s; %s.\n\n", runs, all.Date, all.Machine)
	rows, lines := [][]string{{""}, {"verdicts"}, {"the same as above"}, {"different"}}, ""
	for _, d := range all.Servers {
		compared, different := d.Compare(recorded)
		for i, cell := range []string{d.Name(), strconv.Itoa(compared), strconv.Itoa(compared - len(different)), strconv.Itoa(len(different))} {
			rows[i] = append(rows[i], cell)
		}
		lines += fmt.Sprintf("- %s: version %s.\n", d.Name(), d.Version)
		for _, deviation := range different {
			lines += fmt.Sprintf("  - %s.\n", deviation)
		}
	}
	_, _ = fmt.Fprintf(out, "%s\n\n%s", terminal.Markdown(text.AlignRight, rows...), lines)
	return out.Flush()
}
