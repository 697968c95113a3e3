package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// page returns the text that a server answers.
func page(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", address, answer.Status, err, text)
	}
	return string(text)
}

// query sends a query to a Prometheus, and returns the values of its answer by one label.
func query(t *testing.T, prometheus, text, label string) map[string]string {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(page(t, prometheus+"/api/v1/query?query="+url.QueryEscape(text))), &answer); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, r := range answer.Data.Result {
		values[r.Metric[label]], _ = r.Value[1].(string)
	}
	return values
}

// panel is a panel of the dashboard, or of the page in Prometheus.
type panel struct {
	Title   string
	Queries []struct{ Expr, Legend string }
	Targets []struct{ Expr, LegendFormat string }
}

// variables are what a query of the dashboard has for Grafana.
var variables = strings.NewReplacer(`strategy=~"$strategy",instance=~"$replica",`, "", `{strategy=~"$strategy",instance=~"$replica"}`, "", "$__rate_interval", "10s")

// checkConsole compares the panels of the page with those of the dashboard, and sends their queries.
func checkConsole(t *testing.T, lab rig.Addresses) {
	t.Helper()
	list := regexp.MustCompile(`(?s)id="panels">(.*?)</script>`).FindStringSubmatch(page(t, lab.Console()))
	if list == nil {
		t.Fatal("the page has no panels")
	}
	var shown []panel
	if err := json.Unmarshal([]byte(list[1]), &shown); err != nil {
		t.Fatal(err)
	}
	wanted := dashboard(t)
	if len(shown) != len(wanted) {
		t.Fatalf("the page has %d panels, and the dashboard %d", len(shown), len(wanted))
	}
	label := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for i, want := range wanted {
		got := shown[i]
		if got.Title != want.Title || len(got.Queries) != len(want.Targets) {
			t.Errorf("panel %d is %q with %d queries, want %q with %d", i, got.Title, len(got.Queries), want.Title, len(want.Targets))
			continue
		}
		for j, target := range want.Targets {
			expr, legend := variables.Replace(target.Expr), label.ReplaceAllString(target.LegendFormat, "[$1]")
			if q := got.Queries[j]; q.Expr != expr || q.Legend != legend {
				t.Errorf("the panel %q has the query\n%s (%s), want\n%s (%s)", got.Title, q.Expr, q.Legend, expr, legend)
			}
			query(t, lab.Prometheus, expr, "strategy") // fails if Prometheus rejects the query
		}
	}
}

// TestPrometheus sells once in a lab with Prometheus, and waits until it has the sale.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	lab := rigtest.Start(t, rigtest.Guest(rig.Config{MySQL: true, Redis: 1, Replicas: 2, Nginx: true, Prometheus: true, Token: token, Binary: built()}))
	addrs := lab.Addresses()
	rigtest.Eventually(t, "Prometheus reads both replicas", func() (bool, string) {
		up := query(t, addrs.Prometheus, "up", "instance")
		text, _ := json.Marshal(up)
		return up["replica-1"] == "1" && up["replica-2"] == "1", string(text)
	})
	fill(t, lab)
	sell(t, addrs.Target+"/check/lock?strategy=redis", "")
	rigtest.Eventually(t, "Prometheus has the sale", func() (bool, string) {
		sold := query(t, addrs.Prometheus, `sum by (strategy) (oversell_requests_total{outcome="sold"}) > 0`, "strategy")
		text, _ := json.Marshal(sold)
		return sold["redis"] == "1", string(text)
	})
	checkConsole(t, addrs)
}

// span is a line of the file of traces.
type span struct {
	Name                string
	SpanContext, Parent struct{ TraceID, SpanID string }
	StartTime, EndTime  time.Time
	Attributes          []attribute
	Resource            []attribute
	Events              []struct {
		Name string
		Time time.Time
	}
}

type attribute struct {
	Key   string
	Value struct{ Value any }
}

// valueOf returns the value of an attribute, or "".
func valueOf(all []attribute, key string) string {
	for _, a := range all {
		if a.Key == key {
			return fmt.Sprint(a.Value.Value)
		}
	}
	return ""
}

// readSpans returns the spans of a file, by their trace, in the order of their start. The last line may not be
// complete yet.
func readSpans(t *testing.T, path string) map[string][]span {
	t.Helper()
	traces := map[string][]span{}
	for line := range strings.Lines(read(t, path)) {
		var s span
		if err := json.Unmarshal([]byte(line), &s); err != nil && strings.HasSuffix(line, "\n") {
			t.Fatalf("%v in %s", err, line)
		}
		traces[s.SpanContext.TraceID] = append(traces[s.SpanContext.TraceID], s)
	}
	for _, trace := range traces {
		slices.SortFunc(trace, func(a, b span) int { return a.StartTime.Compare(b.StartTime) })
	}
	return traces
}

// tree returns the spans below a span as docs/observe.md shows them: each in a line, with its events.
func tree(all []span, parent, indent string) string {
	var text strings.Builder
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, s := range all {
		if s.Parent.SpanID != parent {
			continue
		}
		_, _ = fmt.Fprintf(&text, "%-16s %6.2f ms", indent+s.Name, ms(s.EndTime.Sub(s.StartTime)))
		for i, e := range s.Events {
			_, _ = fmt.Fprintf(&text, "%s%s at %.2f ms", map[bool]string{true: "   ", false: ", "}[i == 0], e.Name, ms(e.Time.Sub(s.StartTime)))
		}
		text.WriteString("\n" + tree(all, s.SpanContext.SpanID, indent+"  "))
	}
	return text.String()
}

// checkTraces compares the trace of a sale in the file with the one in docs/observe.md.
func checkTraces(t *testing.T, path string) {
	t.Helper()
	traces := readSpans(t, path)
	for _, sale := range traces {
		if !strings.HasSuffix(sale[0].Name, " /check/lock") {
			continue
		}
		outcome, replica := valueOf(sale[0].Attributes, "oversell.outcome"), valueOf(sale[0].Resource, "service.instance.id")
		if outcome != "sold" || !strings.HasPrefix(replica, "replica-") {
			t.Errorf("the sale is %+v", sale[0])
		}
		number := regexp.MustCompile(` *\d+\.\d+ ms`)
		text := tree(sale, strings.Repeat("0", 16), "")
		if !strings.Contains(number.ReplaceAllString(read(t, "../docs/observe.md"), ""), number.ReplaceAllString(text, "")) {
			t.Errorf("docs/observe.md does not have this trace:\n%s", text)
		}
		return
	}
	t.Errorf("no sale in %d traces", len(traces))
}
