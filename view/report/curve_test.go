package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/report"
	"oversell/view/terminal"
)

// swept returns the results of a sweep of one strategy. figures has the number of clients and the
// throughput of each run in turn.
func swept(strategy string, figures ...float64) []measure.Result {
	var all []measure.Result
	left := 0
	for i := 0; i < len(figures); i += 2 {
		all = append(all, measure.Result{
			Strategy: strategy, Safe: true, Verdict: api.Holds, Clients: int(figures[i]), ThroughputPerS: figures[i+1],
			Samples: 1000, Sold: 1000, SoldOut: 100, Errors: 100, Retries: int(figures[i]) * 200, Remaining: &left,
			P50MS: figures[i], P99MS: 3 * figures[i], LengthMS: 5000, WaitMS: 10_000, Stock: 20_000, Seed: 42,
			Target: "http://127.0.0.1:8080", StartedAt: time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC),
		})
	}
	return all
}

func TestKnee(t *testing.T) {
	for _, tt := range []struct {
		name    string
		figures []float64
		want    int // number of clients at the knee; 0 means no knee
	}{
		{"one point has no knee", []float64{1, 500}, 0},
		{"as fast as the clients", []float64{1, 100, 2, 200, 5, 500, 10, 1000}, 0},
		{"half as much is enough", []float64{1, 100, 2, 150, 5, 262.5}, 0},
		{"a little less is not", []float64{1, 100, 2, 149, 5, 500}, 1},
		{"flat from 5 on", []float64{1, 100, 2, 190, 5, 400, 10, 420, 20, 410}, 5},
		{"it falls at once", []float64{1, 100, 2, 90, 5, 80}, 1},
		{"the first bend counts, not a later rise", []float64{1, 100, 2, 110, 5, 900}, 1},
		{"a sweep that begins late", []float64{50, 900, 100, 1700, 200, 1800}, 100},
		{"nothing was answered", []float64{1, 0, 2, 0}, 1},
	} {
		curves := measure.Curves(swept("redis", tt.figures...))
		got := 0
		if curves[0].Knee != nil {
			got = curves[0].Knee.Clients
		}
		if len(curves) != 1 || got != tt.want {
			t.Errorf("%s: the knee is at %d, want %d", tt.name, got, tt.want)
		}
	}
}

func sweep() []measure.Result {
	all := append(swept("version", 1, 700, 2, 1100, 5, 1200, 10, 900), swept("none", 1, 900, 2, 1900)...)
	all[5].Verdict, all[5].LostUpdates = api.Broken, 400
	all[3].Partial = true
	return all
}

func TestGoldenCurves(t *testing.T) {
	curves := measure.Curves(sweep())
	var out bytes.Buffer
	narrow := terminal.Screen{Width: 50}
	report.Sweep(&out, curves, terminal.Screen{}, "en")
	report.Sweep(&out, curves, narrow, "zh")
	report.Conditions(&out, sweep(), narrow)
	golden(t, "curves.txt", out.Bytes())
	out.Reset()
	if err := report.CurveHTML(&out, curves); err != nil {
		t.Fatal(err)
	}
	golden(t, "curves.html", out.Bytes())
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "ZgotmplZ") {
		t.Error("a figure that is no number, or a value the template refused")
	}
	out.Reset()
	if err := report.JSON(&out, curves); err != nil {
		t.Fatal(err)
	}
	var back []struct {
		Strategy string
		Knee     *struct{ Clients int }
		Points   []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != 2 || len(back[0].Points) != 4 || back[0].Knee.Clients != 2 || back[1].Knee != nil {
		t.Fatalf("%+v, %v", back, err)
	}
	for _, key := range strings.Fields("clients throughput_per_s p50_ms p99_ms retries_per_sale lost_updates") {
		if _, ok := back[0].Points[0][key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}

// TestCurvesOfNearlyNothing checks sweeps that were stopped at or before their first point.
func TestCurvesOfNearlyNothing(t *testing.T) {
	for _, results := range [][]measure.Result{nil, swept("redis", 1, 500), swept("redis", 1, 0)} {
		var out bytes.Buffer
		curves := measure.Curves(results)
		report.Sweep(&out, curves, terminal.Screen{}, "en")
		if err := errors.Join(report.CurveHTML(&out, curves), report.JSON(&out, curves)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Error("a figure that is no number")
		}
	}
}
