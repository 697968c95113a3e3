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
}

func (t tracing) on() bool {
	return !t.Disabled && (t.Exporter == "otlp" || t.Exporter == "" && (t.Endpoint != "" || t.ForTraces != ""))
}

func (t tracing) check() error {
	if !slices.Contains([]string{"", "otlp", "none"}, t.Exporter) {
		return fmt.Errorf("OTEL_TRACES_EXPORTER %s: must be otlp or none", t.Exporter)
	}
	if t.on() && !slices.Contains([]string{"", "http/protobuf"}, t.Protocol) {
		return fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %s: must be http/protobuf, which a collector receives at port 4318", t.Protocol)
	}
	return nil
}

// start returns the tracer of the replica, or nil if traces are off. stop sends the last spans.
func (t tracing) start(ctx context.Context, replica string, log *slog.Logger) (tracer trace.Tracer, stop func(), err error) {
	if !t.on() {
		return nil, func() {}, nil
	}
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: time.Second, MaxInterval: 3 * time.Second, MaxElapsedTime: 5 * time.Second,
	}))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	described, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "oversell"), attribute.String("service.instance.id", replica), attribute.String("service.version", version),
	), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// A full queue drops spans: a sale never waits for the collector.
	options := []sdktrace.TracerProviderOption{sdktrace.WithBatcher(&loggedExporter{SpanExporter: client, log: log}), sdktrace.WithResource(described)}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(sampledShare))))
	}
	provider := sdktrace.NewTracerProvider(options...)
	log.Info("sending traces", "collector", cmp.Or(t.ForTraces, t.Endpoint, "http://localhost:4318"))
	return provider.Tracer("oversell"), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporter has logged why
	}, nil
}

// loggedExporter logs when spans cannot be sent any more, and when they can again: not each failure.
type loggedExporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	down atomic.Bool
}

// ExportSpans returns no error, because the library would log each one.
func (e *loggedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch was := e.down.Swap(err != nil); {
	case err != nil && !was:
		e.log.Warn("the collector of traces cannot be used: spans are lost, and sales go on. Check OTEL_EXPORTER_OTLP_ENDPOINT", "error", err)
	case err == nil && was:
		e.log.Info("the collector of traces receives spans again")
	}
	return nil
}
