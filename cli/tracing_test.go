package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// notSampled is the header traceparent of a caller that does not sample its request. Without one, a replica traces
// one request in a hundred.
const notSampled = "00-11111111111111111111111111111111-b7ad6b7169203331-00"

// unsampled sends requests with this header.
type unsampled struct{}

func (unsampled) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", notSampled)
	return http.DefaultTransport.RoundTrip(r)
}

// fill waits until the replica has made the tables, and creates the product, without a trace.
func fill(t *testing.T, lab *rig.Rig) {
	t.Helper()
	client := api.Client{Base: lab.Addresses().Replicas[0], Token: lab.Addresses().Token, HTTP: &http.Client{Transport: unsampled{}}}
	rigtest.Eventually(t, "the replica has tables", func() (bool, string) {
		err := client.Call(t.Context(), http.MethodPut, "/stock/1?count=5000&new=true", nil, nil)
		return err == nil, fmt.Sprint(err)
	})
}

func sell(t *testing.T, url, parent string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if parent != "" {
		request.Header.Set("Traceparent", parent)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", url, answer.StatusCode, text)
	}
}

// dashboard returns the panels of the dashboard for Grafana.
func dashboard(t *testing.T) []panel {
	t.Helper()
	var all struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "../deploy/dashboard.json")), &all); err != nil || len(all.Panels) < 8 {
		t.Fatalf("the dashboard has %d panels: %v", len(all.Panels), err)
	}
	return all.Panels
}

// checkDashboard checks that the replica has every metric in the queries of the dashboard.
func checkDashboard(t *testing.T, replica string) {
	t.Helper()
	metrics := page(t, replica+"/metrics")
	name := regexp.MustCompile(`oversell_[a-z_]+`)
	for _, panel := range dashboard(t) {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %q has no query", panel.Title)
		}
		for _, target := range panel.Targets {
			names := name.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("the panel %q queries no metric of a replica: %s", panel.Title, target.Expr)
			}
			for _, metric := range names {
				if !strings.Contains(metrics, "\n"+metric+"{") {
					t.Errorf("the panel %q queries %s, which /metrics does not have", panel.Title, metric)
				}
			}
		}
	}
	if !strings.Contains(metrics, `oversell_lock_renewals_total{outcome="renewed",strategy="redis"} `) ||
		strings.Contains(metrics, `oversell_lock_renewals_total{outcome="renewed",strategy="redis"} 0`) {
		t.Error("the renewals of the sale were not counted")
	}
}

// TestTraces sends a sampled sale through nginx to a replica, and checks the spans of its trace, in a file and as a
// collector receives them. An unsampled sale makes no span. The metrics count the renewal of the lease.
func TestTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var received strings.Builder // the spans of a request may come in several batches
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		received.WriteString(r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body))
	}))
	collected := func() string {
		mu.Lock()
		defer mu.Unlock()
		return received.String()
	}
	defer server.Close()
	file := filepath.Join(t.TempDir(), "traces.jsonl")
	lab := rigtest.Start(t, rigtest.Guest(rig.Config{
		MySQL: true, Redis: 1, Replicas: 1, Nginx: true, Token: "secret-token",
		ReplicaArgs: []string{"--lease", "300ms"},
		ReplicaEnv: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "TRACES_TO=" + file, "OTEL_BSP_SCHEDULE_DELAY=100",
		},
	}))
	fill(t, lab)
	const id, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	sale := lab.Addresses().Target + "/check/lock?fenced=true&strategy=redis"
	sell(t, sale, notSampled)
	sell(t, sale+"&hold=250ms", "00-"+id+"-"+caller+"-01")
	var traces map[string][]span
	rigtest.Eventually(t, "the span of the request arrives", func() (bool, string) {
		traces = readSpans(t, file)
		arrived := slices.ContainsFunc(traces[id], func(s span) bool { return s.Name == "POST /check/lock" })
		return arrived && strings.Contains(collected(), "POST /check/lock"), fmt.Sprint(traces)
	})
	names, children := map[string]string{caller: "the caller"}, map[string][]string{}
	for _, s := range traces[id] {
		names[s.SpanContext.SpanID] = s.Name
	}
	events := ""
	for _, s := range traces[id] {
		children[names[s.Parent.SpanID]] = append(children[names[s.Parent.SpanID]], s.Name)
		for _, e := range s.Events {
			events += e.Name + " "
		}
	}
	for parent, want := range map[string]string{
		"the caller": "POST /check/lock", "POST /check/lock": "acquire hold release", "hold": "UPDATE SELECT UPDATE",
	} {
		if got := strings.Join(children[parent], " "); got != want {
			t.Errorf("the children of %q are %q, want %q", parent, got, want)
		}
	}
	for _, want := range []string{"renewal", "read", "writing", "written"} {
		if !strings.Contains(events, want+" ") {
			t.Errorf("no event %s in %s", want, events)
		}
	}
	if len(traces) != 1 {
		t.Errorf("%d traces, want that of the sampled sale", len(traces))
	}
	text := collected()
	if !strings.HasPrefix(text, "/v1/traces application/x-protobuf ") {
		t.Errorf("the collector received %q", text)
	}
	if strings.Contains(read(t, file)+text, "secret-token") {
		t.Error("the token is in a span")
	}
	checkDashboard(t, lab.Addresses().Replicas[0])
}

// TestTracesWithoutCollector sells while no collector answers. The log says so once.
func TestTracesWithoutCollector(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	lab := rigtest.Start(t, rigtest.Guest(rig.Config{
		MySQL: true, Replicas: 1, Token: "traces",
		ReplicaEnv: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + closed.URL, "OTEL_TRACES_SAMPLER=always_on", "OTEL_BSP_SCHEDULE_DELAY=10"},
	}))
	fill(t, lab)
	const warning = "the collector of traces cannot be used"
	logged := 0
	rigtest.Eventually(t, "the log has the warning", func() (bool, string) {
		sell(t, lab.Addresses().Target+"/check/lock?strategy=mutex", "")
		log := read(t, filepath.Join(lab.Dir(), "replica-1.log"))
		logged = strings.Count(log, warning)
		return logged > 0, log
	})
	if logged != 1 {
		t.Errorf("the log has the warning %d times, want once", logged)
	}
}
