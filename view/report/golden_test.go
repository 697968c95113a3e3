package report_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/lab/measure"
	"oversell/view/report"
	"oversell/view/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata. After an intended change, run
// go test ./view/report -update, and check the difference.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s differs in line %d\n got: %s\nwant: %s", path, i+1, gotLines[i], wantLines[i])
		}
	}
	t.Fatalf("%s has %d lines, got %d", path, len(wantLines), len(gotLines))
}

func TestGoldenTable(t *testing.T) {
	type write = func(io.Writer, []measure.Result, terminal.Screen)
	for name, c := range map[string]struct {
		write  write
		screen terminal.Screen
	}{
		"jmeter.txt":    {report.JMeterTable, terminal.Screen{}},
		"jmeter-80.txt": {report.JMeterTable, terminal.Screen{Width: 80}}, "jmeter-140.txt": {report.JMeterTable, terminal.Screen{Width: 140}},
		"jmeter-color.txt": {report.JMeterTable, terminal.Screen{Color: true}},
		"table.txt":        {report.Table, terminal.Screen{}},
		"table-40.txt":     {report.Table, terminal.Screen{Width: 40}}, "table-80.txt": {report.Table, terminal.Screen{Width: 80}},
		"table-color.txt": {report.Table, terminal.Screen{Color: true}},
	} {
		var out bytes.Buffer
		screen := c.screen
		c.write(&out, results()[:3], screen)
		golden(t, name, out.Bytes())
		for line := range strings.Lines(out.String()) {
			if wide := text.StringWidth(strings.TrimRight(line, "\n")); screen.Width > 0 && wide > screen.Width {
				t.Errorf("%s: a line of %d characters", name, wide)
			}
		}
		if colored := strings.Contains(out.String(), "\x1b["); colored != screen.Color {
			t.Errorf("%s: escape sequences: %v", name, colored)
		}
	}
}

func TestTableHasJMetersColumnsInOrder(t *testing.T) {
	var out bytes.Buffer
	report.JMeterTable(&out, results()[:1], terminal.Screen{})
	head := strings.Split(out.String(), "\n")[1]
	var got []string
	for _, h := range strings.Split(strings.Trim(head, "│"), "│") {
		got = append(got, strings.TrimSpace(h))
	}
	want := "Label,# Samples,Average,Median,90% Line,95% Line,99% Line,Min,Maximum,Error %,Throughput," +
		"Received KB/sec,Sent KB/sec,Sold,Remaining,Lost updates,Retries,Fairness"
	if strings.Join(got, ",") != want {
		t.Errorf("columns %q", got)
	}
}

func TestGoldenVerdicts(t *testing.T) {
	for name, lesson := range map[string]report.Lesson{
		"verdicts.txt": {Names: 5}, "verdicts-zh.txt": {Names: 5, Lang: "zh"},
		"verdicts-80.txt": {Names: 5, Screen: terminal.Screen{Width: 80}}, "verdicts-color.txt": {Names: 5, Screen: terminal.Screen{Color: true}},
	} {
		var out bytes.Buffer
		for _, r := range results() {
			lesson.Write(&out, r)
		}
		golden(t, name, out.Bytes())
		if strings.ContainsRune(out.String(), '\x1b') != lesson.Screen.Color || strings.Contains(out.String(), "\x1b[31mline") {
			t.Errorf("%s: escape sequences without colours, or of a server", name)
		}
		for line := range strings.Lines(out.String()) {
			if wide := text.StringWidth(strings.TrimRight(line, "\n")); lesson.Screen.Width > 0 && wide > lesson.Screen.Width {
				t.Errorf("%s: a line of %d characters", name, wide)
			}
		}
	}
}

func TestGoldenConditions(t *testing.T) {
	var out bytes.Buffer
	report.Conditions(&out, results(), terminal.Screen{})
	golden(t, "conditions.txt", out.Bytes())
	report.Conditions(&out, nil, terminal.Screen{})
}

func TestGoldenJSON(t *testing.T) {
	var out bytes.Buffer
	if err := report.JSON(&out, results()); err != nil {
		t.Fatal(err)
	}
	golden(t, "results.json", out.Bytes())
	var back []map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back) != 4 {
		t.Fatalf("%d objects, %v", len(back), err)
	}
	if bytes.Contains(out.Bytes(), []byte(`"warnings": null`)) {
		t.Error("a result without warnings must have an empty list")
	}
	for _, key := range strings.Fields("strategy samples errors sold remaining lost_updates retries throughput_per_s " +
		"mean_ms p50_ms p90_ms p95_ms p99_ms min_ms max_ms error_pct received_kb_per_s sent_kb_per_s unknown sold_out " +
		"not_acquired fairness clients loops stock safe verdict seed started_at machine versions replicas series") {
		if _, ok := back[0][key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
}

func TestJSONOfNothingIsAnArray(t *testing.T) {
	var results, curves bytes.Buffer
	if err := report.JSON[measure.Result](&results, nil); err != nil || strings.TrimSpace(results.String()) != "[]" {
		t.Errorf("%q, %v", results.String(), err)
	}
	if err := report.JSON[measure.Curve](&curves, nil); err != nil || strings.TrimSpace(curves.String()) != "[]" {
		t.Errorf("%q, %v", curves.String(), err)
	}
}

func TestGoldenJTL(t *testing.T) {
	var out bytes.Buffer
	if err := report.JTL(&out, histories()); err != nil {
		t.Fatal(err)
	}
	golden(t, "samples.csv", out.Bytes())
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	head := "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage," +
		"bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect"
	if got := strings.Join(rows[0], ","); got != head {
		t.Errorf("header %s", got)
	}
	if len(rows) != 1+40+40+40+4 {
		t.Errorf("%d rows", len(rows))
	}
	failures := map[string]int{}
	for _, row := range rows[1:] {
		if row[7] == "false" {
			failures[strings.TrimSuffix(row[2], ": sold out")]++
		}
	}
	for _, r := range results() {
		if failures[r.Strategy] != r.Errors {
			t.Errorf("%s: %d failures in the samples, %d in the result", r.Strategy, failures[r.Strategy], r.Errors)
		}
	}
}

func TestGoldenHTML(t *testing.T) {
	var out bytes.Buffer
	if err := report.HTML(&out, results()); err != nil {
		t.Fatal(err)
	}
	golden(t, "page.html", out.Bytes())
	html := out.String()
	if regexp.MustCompile(`(?i)<(script|img|link|iframe|a)[ >]|onerror=alert\(1\)>[^&]|javascript:alert\(1\)">|@import|url\(`).MatchString(html) {
		t.Error("something from outside got through, or something is loaded from elsewhere")
	}
	if strings.Contains(html, "ZgotmplZ") || strings.Contains(html, "NaN") || strings.Contains(html, "%!") {
		t.Error("a value the template refused, or that is no number")
	}
}

func TestHTMLOfNothingAndOfNoSamples(t *testing.T) {
	empty := written("redis", 3, 3, allSold)
	empty.Ops = nil
	r := measure.Summarise(empty, measure.Setup{Stock: 10})
	for _, rs := range [][]measure.Result{nil, {r}} {
		var out bytes.Buffer
		if err := report.HTML(&out, rs); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
			t.Error("a figure that is no number")
		}
		out.Reset()
		report.Table(&out, rs, terminal.Screen{Width: 80})
		report.JMeterTable(&out, rs, terminal.Screen{Width: 80})
	}
}
