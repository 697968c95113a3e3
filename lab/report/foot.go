package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// fact is one condition that the figures depend on.
type fact struct{ Name, Value string }

// facts are of the first result: one comparison has one set of them.
func facts(results []Result) []fact {
	if len(results) == 0 {
		return nil
	}
	return conditions(results[0], load(results[0]))
}

// sweepFacts are facts of all runs of a sweep.
func sweepFacts(results []Result) []fact {
	if len(results) == 0 {
		return nil
	}
	r, last := results[0], results[len(results)-1]
	s := fmt.Sprintf("%d to %d clients, for %s each, hold %s, wait %s, fresh stock of %d or more",
		r.Clients, last.Clients, duration(r.LengthMS), duration(r.HoldMS), duration(r.WaitMS), r.Stock)
	return conditions(r, s)
}

func conditions(r Result, load string) []fact {
	all := []fact{
		{"date", r.StartedAt.UTC().Format(time.RFC3339)},
		{"load", load},
		{"seed", strconv.FormatInt(r.Seed, 10)},
		{"target", r.Target},
		{"machine", r.Machine.String()},
	}
	names := make([]string, 0, len(r.Versions))
	for name := range r.Versions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, fact{name, r.Versions[name]})
	}
	return all
}

func load(r Result) string {
	s := fmt.Sprintf("%d clients x %d requests, ramp-up %s", r.Clients, r.Loops, duration(r.RampUpMS))
	if r.Open != nil {
		s = fmt.Sprintf("%d requests at %.6g/s over %s", r.Clients*r.Loops, r.Open.DuePerS, count(r.Clients, "connection", "connections"))
	}
	s += fmt.Sprintf(", hold %s, wait %s, stock %d", duration(r.HoldMS), duration(r.WaitMS), r.Stock)
	if r.Qty > 1 {
		s += fmt.Sprintf(", %d pieces each", r.Qty)
	}
	return s
}

// Conditions writes what the figures depend on: without it they mean nothing.
func Conditions(w io.Writer, results []Result) error { return list(w, facts(results)) }

// CurveConditions is Conditions for sweeps.
func CurveConditions(w io.Writer, results []Result) error { return list(w, sweepFacts(results)) }

func list(w io.Writer, all []fact) error {
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range all {
		_, _ = fmt.Fprintf(lines, "%s\t%s\n", f.Name, shorten(f.Value)) // told by Flush
	}
	if err := lines.Flush(); err != nil {
		return fmt.Errorf("write conditions: %w", err)
	}
	return nil
}

func duration(ms float64) string { return time.Duration(ms * float64(time.Millisecond)).String() }
