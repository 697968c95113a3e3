package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// sampledShare is the share of the requests that a replica traces if neither the caller of a request
// nor OTEL_TRACES_SAMPLER decides.
const sampledShare = 0.01

// tracing says whether the standard variables of OpenTelemetry turn traces on. The library reads the
// others by itself, such as OTEL_EXPORTER_OTLP_HEADERS and OTEL_TRACES_SAMPLER.
type tracing struct {
	Exporter  string `env:"OTEL_TRACES_EXPORTER"`
	Disabled  bool   `env:"OTEL_SDK_DISABLED"`
	Endpoint  string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	ForTraces string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"`
	Protocol  string `env:"OTEL_EXPORTER_OTLP_PROTOCOL"`
	File      string `env:"TRACES_TO"` // of all replicas: each appends its spans
}

// allTraces returns the variables with which a replica appends the spans of all requests to the file
// at path. With the default queue, a replica under load would drop spans.
func allTraces(path string) []string {
	return []string{
		"TRACES_TO=" + path, "OTEL_TRACES_SAMPLER=parentbased_always_on",
		"OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_BSP_MAX_QUEUE_SIZE=65536",
	}
}

func (t tracing) sends() bool {
	return !t.Disabled && (t.Exporter == "otlp" || t.Exporter == "" && (t.Endpoint != "" || t.ForTraces != ""))
}

func (t tracing) check() error {
	if !slices.Contains([]string{"", "otlp", "none"}, t.Exporter) {
		return fmt.Errorf("OTEL_TRACES_EXPORTER %s: must be otlp or none", t.Exporter)
	}
	if t.sends() && !slices.Contains([]string{"", "http/protobuf"}, t.Protocol) {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %s: must be http/protobuf, which a collector receives at port 4318", t.Protocol)
	}
	return nil
}

// start returns what makes the spans of the replica, or nil if traces are off. stop exports the last spans.
func (t tracing) start(ctx context.Context, replica string, log *slog.Logger) (traces trace.TracerProvider, stop func(), err error) {
	exporters, err := t.exporters(ctx, log)
	if err != nil || len(exporters) == 0 {
		return nil, func() {}, err
	}
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "oversell"), attribute.String("service.instance.id", replica), attribute.String("service.version", version),
	), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(described)}
	for _, e := range exporters {
		options = append(options, sdktrace.WithBatcher(e)) // a full queue drops spans: a sale never waits for an exporter
	}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(sampledShare))))
	}
	provider := sdktrace.NewTracerProvider(options...)
	return provider, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporters have logged why
	}, nil
}

// exporters returns the exporters that the variables turn on: to a collector, to a file, or to both.
func (t tracing) exporters(ctx context.Context, log *slog.Logger) (all []sdktrace.SpanExporter, err error) {
	if t.sends() {
		client, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 3 * time.Second, MaxElapsedTime: 5 * time.Second,
		}))
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
		}
		log.Info("sending traces", "collector", cmp.Or(t.ForTraces, t.Endpoint, "http://localhost:4318"))
		all = append(all, &loggedExporter{SpanExporter: client, log: log, to: "the collector of traces", setting: "OTEL_EXPORTER_OTLP_ENDPOINT"})
	}
	if t.File != "" && !t.Disabled {
		// The exporter writes each span with one call, so the lines of several replicas do not mix. The file stays
		// open until the process ends.
		file, err := os.OpenFile(t.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("TRACES_TO: %w", err)
		}
		writer, err := stdouttrace.New(stdouttrace.WithWriter(file))
		if err != nil {
			return nil, fmt.Errorf("TRACES_TO: %w", err)
		}
		all = append(all, &loggedExporter{SpanExporter: writer, log: log, to: "the file of the traces", setting: "TRACES_TO"})
	}
	return all, nil
}

// loggedExporter logs when spans cannot be sent any more, and when they can again: not each failure.
type loggedExporter struct {
	sdktrace.SpanExporter
	log         *slog.Logger
	to, setting string
	down        atomic.Bool
}

// ExportSpans returns no error, because the library would log each one.
func (e *loggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch was := e.down.Swap(err != nil); {
	case err != nil && !was:
		e.log.Warn(e.to+" cannot be used: spans are lost, and sales go on. Check "+e.setting, "error", err)
	case err == nil && was:
		e.log.Info(e.to + " receives spans again")
	}
	return nil
}
