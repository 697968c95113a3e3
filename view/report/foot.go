package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/lab/measure"
	"oversell/view/terminal"
)

// fact is one condition that the figures depend on.
type fact struct{ Name, Value string }

// facts returns the conditions of the first result, which are the same for all results, except for a sweep the clients.
func facts(results []measure.Result) []fact {
	if len(results) == 0 {
		return nil
	}
	r, last := results[0], results[len(results)-1]
	if r.LengthMS > 0 { // a sweep
		return conditions(r, fmt.Sprintf("%d to %d clients, for %s each, hold %s, wait %s, fresh stock of %d or more",
			r.Clients, last.Clients, measure.Duration(r.LengthMS), measure.Duration(r.HoldMS), measure.Duration(r.WaitMS), r.Stock)+chosen(results), highestShare(results))
	}
	atLeast := ""
	if slices.ContainsFunc(results, func(r measure.Result) bool { return r.Samples > r.Clients*r.Loops }) {
		atLeast = "at least " // with load.Plan.Until
	}
	load := fmt.Sprintf("%d clients x %s%d requests, ramp-up %s", r.Clients, atLeast, r.Loops, measure.Duration(r.RampUpMS))
	if r.Open != nil {
		load = fmt.Sprintf("%d requests at %.6g/s over %s", r.Clients*r.Loops, r.Open.DuePerS, measure.Count(r.Clients, "connection", "connections"))
	}
	load += fmt.Sprintf(", hold %s, wait %s, stock %d", measure.Duration(r.HoldMS), measure.Duration(r.WaitMS), r.Stock)
	if r.OutsideMS > 0 {
		load += fmt.Sprintf(", %s outside the lock", measure.Duration(r.OutsideMS))
	}
	load += chosen(results)
	if r.Qty > 1 {
		load += fmt.Sprintf(", %d pieces each", r.Qty)
	}
	return conditions(r, load, shares(results))
}

// chosen returns the chosen pause and lease, if any. Only some of the strategies have them.
func chosen(results []measure.Result) (text string) {
	pause, lease := 0.0, 0.0
	for _, r := range results {
		pause, lease = max(pause, r.PauseMS), max(lease, r.LeaseMS)
	}
	if pause > 0 {
		text += ", pause " + measure.Duration(pause)
	}
	if lease > 0 {
		text += ", lease " + measure.Duration(lease)
	}
	return text
}

// shares returns the share of the cores that the load took in each run, or "".
func shares(results []measure.Result) string {
	var all []string
	for _, r := range results {
		if r.Load > 0 {
			all = append(all, fmt.Sprintf("%.0f %% (%s)", 100*r.Load, r.Strategy))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + " of the cores"
}

func highestShare(results []measure.Result) string {
	highest := slices.MaxFunc(results, func(a, b measure.Result) int { return cmp.Compare(a.Load, b.Load) })
	return strings.Replace(shares([]measure.Result{highest}), "(", fmt.Sprintf("or less (%d clients of ", highest.Clients), 1)
}

func conditions(r measure.Result, load, share string) []fact {
	all := slices.DeleteFunc([]fact{
		{"date", r.StartedAt.UTC().Format(time.RFC3339)},
		{"load", load},
		{"load took", share},
		{"lab", lab(r)},
		{"seed", strconv.FormatInt(r.Seed, 10)},
		{"target", r.Target},
		{"machine", r.Machine.String()},
	}, func(f fact) bool { return f.Value == "" })
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		all = append(all, fact{name, r.Versions[name]})
	}
	return all
}

// lab returns the conditions that a command added to its lab, or "".
func lab(r measure.Result) string {
	var all []string
	if r.DelayMS > 0 {
		all = append(all, "each answer of a server to a replica takes "+measure.Duration(r.DelayMS)+" longer")
	}
	if r.Fsync {
		all = append(all, "each write is synced to the disk")
	}
	if r.DiskMS > 0 {
		all = append(all, "which takes "+measure.Duration(r.DiskMS)+" longer each time")
	}
	return strings.Join(all, ", ")
}

// Conditions writes the conditions that the figures of a comparison or a sweep depend on.
func Conditions(w io.Writer, results []measure.Result, screen terminal.Screen) {
	all, longest := facts(results), 0
	for _, f := range all {
		longest = max(longest, len(f.Name))
	}
	for _, f := range all {
		line := fmt.Sprintf("%-*s  %s", longest, f.Name, measure.Shorten(f.Value))
		fmt.Fprintln(w, screen.Wrap(line, longest+2))
	}
}
