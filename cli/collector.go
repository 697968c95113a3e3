package cli

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"oversell/api"
)

// maxBatch limits the size of one request with spans, in bytes.
const maxBatch = 64 << 20

// collector receives the spans of the replicas, as a collector of OpenTelemetry does, and appends
// them to a file.
type collector struct {
	path, token string
	errOut      io.Writer
	server      *http.Server
	address     string

	mu     sync.Mutex
	file   *os.File
	failed bool
}

// startCollector starts a collector on loopback that writes to a new file at path.
func startCollector(ctx context.Context, path, token string, errOut io.Writer) (*collector, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	file, err := os.Create(path) //nolint:gosec // the user's choice
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	c := &collector{path: path, token: token, errOut: errOut, file: file, address: listener.Addr().String()}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// env returns the variables with which a replica sends the spans of all requests. With the default
// queue, a replica under load would drop spans.
func (c *collector) env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + c.address + "/v1/traces",
		"OTEL_EXPORTER_OTLP_HEADERS=" + api.TokenHeader + "=" + url.PathEscape(c.token),
		"OTEL_TRACES_SAMPLER=parentbased_always_on", "OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_BSP_MAX_QUEUE_SIZE=65536",
	}
}

// close ends the collector. The replicas, which send their last spans when they stop, must have ended.
func (c *collector) close() error {
	_ = c.server.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file.Close()
}

// ServeHTTP receives a batch of spans. Other users of this machine reach the port, but lack the token.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(api.TokenHeader)), []byte(c.token)) != 1 {
		http.Error(w, "this needs the lab's token", http.StatusForbidden)
		return
	}
	var batch collect.ExportTraceServiceRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBatch))
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := c.write(&batch); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// write appends one line for each span. It prints the first error only.
func (c *collector) write(batch *collect.ExportTraceServiceRequest) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false) // a statement may have <=
	for _, resource := range batch.GetResourceSpans() {
		replica, _ := values(resource.GetResource().GetAttributes())["service.instance.id"].(string)
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if err := lines.Encode(newSpanLine(replica, span)); err != nil {
					return err
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.file.Write(text.Bytes())
	if err != nil && !c.failed {
		c.failed = true
		_, _ = fmt.Fprintf(c.errOut, "spans are lost, because --traces %s cannot be written: %v\n", c.path, err)
	}
	return err
}

// spanLine is one line of the file. Times are those of the replica.
type spanLine struct {
	Trace      string         `json:"trace"`
	Span       string         `json:"span"`
	Parent     string         `json:"parent,omitempty"`
	Replica    string         `json:"replica"`
	Name       string         `json:"name"`
	Start      time.Time      `json:"start"`
	MS         float64        `json:"ms"`
	Failed     bool           `json:"failed,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
	Events     []spanEvent    `json:"events,omitempty"`
}

// spanEvent is an event of a span. AtMS is the time since the start of the span.
type spanEvent struct {
	Name       string         `json:"name"`
	AtMS       float64        `json:"at_ms"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

func newSpanLine(replica string, span *spans.Span) spanLine {
	since := func(nanoseconds uint64) float64 {
		return float64(int64(nanoseconds-span.GetStartTimeUnixNano())) / 1e6 //nolint:gosec // both are times of this century
	}
	line := spanLine{
		Trace: hex.EncodeToString(span.GetTraceId()), Span: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		Replica: replica, Name: span.GetName(), Start: time.Unix(0, int64(span.GetStartTimeUnixNano())).UTC(), MS: since(span.GetEndTimeUnixNano()), //nolint:gosec // as above
		Failed: span.GetStatus().GetCode() == spans.Status_STATUS_CODE_ERROR, Attributes: values(span.GetAttributes()),
	}
	for _, e := range span.GetEvents() {
		line.Events = append(line.Events, spanEvent{e.GetName(), since(e.GetTimeUnixNano()), values(e.GetAttributes())})
	}
	return line
}

// values returns attributes as JSON has them. A replica sets only texts, integers and booleans.
func values(attributes []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = v.IntValue
		case *common.AnyValue_BoolValue:
			all[a.GetKey()] = v.BoolValue
		}
	}
	return all
}
