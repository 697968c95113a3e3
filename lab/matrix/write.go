package matrix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"oversell/lab/report"
)

// WriteJSON writes the matrix, and the conditions that its verdicts depend on.
func (m Matrix) WriteJSON(w io.Writer, about About) error {
	err := report.WriteLines(w, struct {
		Date     string `json:"date"`
		Machine  string `json:"machine"`
		Versions string `json:"versions"`
		Matrix
	}{about.Date, about.Machine, about.Versions, m})
	if err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// parts groups hazards into tables that fit a page. WriteMarkdown adds hazards without a group.
func parts() []part {
	return []part{
		{"Two requests, and no fault", []string{"race", "replica-race", "early-release", "deadlock", "nesting"}},
		{"What it costs when many wait", []string{"cas-storm", "polling", "herd", "percentiles"}},
		{"The holder's process fails", []string{"crash", "crash-between", "overrun", "foreign-unlock", "late-release", "pause", "pause-at-read"}},
		{"A connection or a waiter fails", []string{"lost-reply", "late-answer", "session-expiry", "cutoff", "partition", "bare-majority", "dead-waiter"}},
		{"What bug reports describe", []string{"operator", "operator-at-write", "starved", "renewal-reply", "waiter-session"}},
		{"The servers of the lock fail", []string{"failover", "minority-loss", "majority-loss", "clock-jump", "restart", "database-down"}},
		{"Redis behind Sentinels, or in a cluster", []string{"failover-sentinel", "failover-cluster", "quorum-loss", "resharding"}},
		{"Sentinel promotes a replica, and the old master goes on", []string{"split-brain", "min-replicas"}},
		{"The same, with a lock that was replicated before", []string{"split-renewal", "min-replicas-renewal"}},
		{"The stock is in several places", []string{"galera", "two-masters", "stale-read", "write-behind"}},
	}
}

type part struct {
	title   string
	hazards []string
}

// WriteMarkdown writes a table per group of hazards, without empty strategies and hazards.
func (m Matrix) WriteMarkdown(w io.Writer, about About) error {
	out := bufio.NewWriter(w)
	runs := 0
	m.each(func(_ Row, _ string, s Summary) { runs = max(runs, s.Runs) })
	_, _ = fmt.Fprintf(out, "Seeds: %d. %s; %s; %s.\n", runs, about.Date, about.Machine, about.Versions)
	left := slices.Clone(m.Hazards)
	for _, p := range parts() {
		left = slices.DeleteFunc(left, func(hazard string) bool { return slices.Contains(p.hazards, hazard) })
		m.writePart(out, p)
	}
	m.writePart(out, part{"Other hazards", left})
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

func (m Matrix) writePart(out io.Writer, p part) {
	hazards := slices.DeleteFunc(slices.Clone(p.hazards), func(hazard string) bool {
		return !slices.ContainsFunc(m.Rows, func(r Row) bool { return r.has(hazard) })
	})
	if len(hazards) == 0 {
		return
	}
	_, _ = fmt.Fprintf(out, "\n### %s\n\n| | %s |\n|---|%s\n", p.title, strings.Join(hazards, " | "), strings.Repeat(":-:|", len(hazards)))
	for _, r := range m.Rows {
		if !slices.ContainsFunc(hazards, r.has) {
			continue
		}
		_, _ = fmt.Fprintf(out, "| `%s` |", r.name())
		for _, hazard := range hazards {
			s, ok := r.Summaries[hazard]
			_, _ = fmt.Fprintf(out, " %s |", s.markdown(ok))
		}
		_, _ = fmt.Fprintln(out)
	}
}

func (r Row) has(hazard string) bool {
	_, ok := r.Summaries[hazard]
	return ok
}

// ReadMatrix reads a matrix that WriteJSON has written.
func ReadMatrix(r io.Reader) (m Matrix, about About, err error) {
	var in struct {
		Date, Machine, Versions string
		Matrix
	}
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return m, about, fmt.Errorf("read the matrix: %w", err)
	}
	return in.Matrix, About{Date: in.Date, Machine: in.Machine, Versions: in.Versions}, nil
}

// markdown returns the verdict, in bold with a claim, and with a number if only some runs failed.
func (s Summary) markdown(ok bool) string {
	if !ok {
		return ""
	}
	text := s.words()
	return map[string]string{"": text, "agrees": "**" + text + "**", "contradicts": "**" + text + " ≠**"}[s.agreement()]
}
