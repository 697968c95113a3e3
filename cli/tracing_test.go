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

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// receiver is a collector of traces. It keeps the spans that it receives.
type receiver struct {
	mu    sync.Mutex
	spans []*spans.Span
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var batch collector.ExportTraceServiceRequest
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range batch.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

// children returns the names of the children of each span, by the name of the span.
func (r *receiver) children() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, children := map[string]string{}, map[string][]string{}
	for _, s := range r.spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	for _, s := range r.spans {
		parent := names[string(s.GetParentSpanId())]
		children[parent] = append(children[parent], s.GetName())
	}
	return children
}

// fill waits until the replica has made the tables, and creates the product.
func fill(t *testing.T, lab *rig.Rig) {
	t.Helper()
	client := api.Client{Base: lab.Addresses().Replicas[0], Token: lab.Addresses().Token, HTTP: http.DefaultClient}
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
	if err := json.Unmarshal([]byte(read(t, "../deploy/kubernetes/monitoring/dashboard.json")), &all); err != nil || len(all.Panels) < 8 {
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

// TestTraces sends a sampled sale through nginx to a replica, and checks the spans of its trace. An
// unsampled sale makes no span. The metrics count the renewal of the lease.
func TestTraces(t *testing.T) {
	t.Parallel()
	received := &receiver{}
	server := httptest.NewServer(received)
	defer server.Close()
	lab := rigtest.Start(t, rigtest.Guest(rig.Config{
		MySQL: true, Redis: 1, Replicas: 1, Nginx: true, Token: "traces",
		ReplicaArgs: []string{"--lease", "300ms"},
		ReplicaEnv:  []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_BSP_SCHEDULE_DELAY=100"},
	}))
	fill(t, lab)
	const id = "0af7651916cd43dd8448eb211c80319c"
	sale := lab.Addresses().Target + "/check/lock?fenced=true&strategy=redis"
	sell(t, sale, "00-11111111111111111111111111111111-b7ad6b7169203331-00") // its caller does not sample it
	sell(t, sale+"&hold=250ms", "00-"+id+"-b7ad6b7169203331-01")
	var children map[string][]string
	rigtest.Eventually(t, "the span of the request arrives", func() (bool, string) {
		children = received.children()
		return slices.Contains(children[""], "POST /check/lock"), fmt.Sprint(children)
	})
	for parent, want := range map[string]string{"": "POST /check/lock", "POST /check/lock": "acquire hold release", "hold": "UPDATE SELECT UPDATE"} {
		if got := strings.Join(children[parent], " "); got != want {
			t.Errorf("the children of %q are %q, want %q", parent, got, want)
		}
	}
	checkDashboard(t, lab.Addresses().Replicas[0])
	received.mu.Lock()
	defer received.mu.Unlock()
	var attributes, events strings.Builder
	for _, s := range received.spans {
		if s.TraceId = s.GetTraceId(); len(s.TraceId) != 16 || string(s.TraceId) == strings.Repeat("\x11", 16) {
			t.Errorf("span %s belongs to trace %x", s.GetName(), s.TraceId)
		}
		attributes.WriteString(s.String())
		for _, e := range s.GetEvents() {
			events.WriteString(e.GetName() + " ")
		}
	}
	for _, want := range []string{"renewal", "read", "writing", "written"} {
		if !strings.Contains(events.String(), want+" ") {
			t.Errorf("no event %s in %s", want, events.String())
		}
	}
	if strings.Contains(attributes.String(), "traces") {
		t.Errorf("the token is in a span: %s", attributes.String())
	}
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
