package handlers

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"oversell/api"
	"oversell/stock"
)

// maxQuery limits the length of a statement in a span, in characters.
const maxQuery = 200

// spans makes the server span of a request, except of those that a probe or a scraper sends again and again, and
// of the endless stream. The caller's span is in the header traceparent.
//
// DANGER: neither the query nor another header may be in a span: they have the lab's token and names.
func (s *Service) spans() gin.HandlerFunc {
	return otelgin.Middleware("oversell",
		otelgin.WithTracerProvider(s.Traces), otelgin.WithPropagators(propagation.TraceContext{}),
		otelgin.WithGinFilter(func(c *gin.Context) bool {
			return !slices.Contains([]string{"/healthz", "/readyz", "/metrics", "/events"}, c.FullPath())
		}))
}

// describeSale adds the result of a sale to the request's span, if there is one.
func describeSale(ctx context.Context, strategy string, outcome api.Outcome, r stock.Receipt) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("oversell.strategy", strategy), attribute.String("oversell.outcome", string(outcome)),
		attribute.Int64("oversell.fence", r.Fence), attribute.Int("oversell.retries", r.Retries),
	)
}

// addSpans adds the spans of the request's lock and statements, if the request's span is recorded. end ends those
// that are still open.
func addSpans(ctx context.Context, strategy string, watch *stock.Watch) (end func()) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return func() {}
	}
	spans := &lockSpans{
		tracer: span.TracerProvider().Tracer("oversell"), strategy: attribute.String("oversell.strategy", strategy), request: ctx, next: *watch,
	}
	watch.Step, watch.Statement, watch.Lock = spans.step, spans.statement, spans.happened
	return spans.end
}

// lockSpans turns the steps of one request into spans: acquire, then hold, then release. Other steps
// are events of the span in which they happen. A statement is a child of this span.
type lockSpans struct {
	tracer   trace.Tracer
	strategy attribute.KeyValue
	request  context.Context
	next     stock.Watch // what else looks at the request

	// mu is needed because a watchdog, or the leader of a group, works for the request as well.
	mu    sync.Mutex
	ended bool
	phase trace.Span      // acquire, hold or release; or nil
	in    context.Context // of the phase
	name  string
}

// begin ends the phase and begins the next one. The caller holds mu.
func (l *lockSpans) begin(name string, attributes ...attribute.KeyValue) {
	l.finish()
	l.name = name
	l.in, l.phase = l.tracer.Start(l.request, name, trace.WithAttributes(append(attributes, l.strategy)...))
}

// finish ends the phase. The caller holds mu.
func (l *lockSpans) finish() {
	if l.phase != nil {
		l.phase.End()
	}
	l.phase, l.in, l.name = nil, nil, ""
}

func (l *lockSpans) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish()
	l.ended = true
}

func (l *lockSpans) step(ctx context.Context, e api.Event) {
	l.reach(e)
	if l.next.Step != nil {
		l.next.Step(ctx, e)
	}
}

func (l *lockSpans) reach(e api.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	switch e.Step {
	case api.Asked:
		l.begin("acquire", attribute.String("oversell.key", e.Key))
	case api.Granted:
		l.begin("hold", attribute.String("oversell.key", e.Key), attribute.Int64("oversell.fence", e.Fence))
	case api.Released:
		l.finish()
	default:
		l.event(string(e.Step))
	}
}

// event adds an event to the phase, or to the request's span outside of one. The caller holds mu.
func (l *lockSpans) event(name string, attributes ...attribute.KeyValue) {
	span := l.phase
	if span == nil {
		span = trace.SpanFromContext(l.request)
	}
	span.AddEvent(name, trace.WithAttributes(attributes...))
}

// happened adds an event, or begins the span of the release. A lock that is made of several locks reports
// its release again.
func (l *lockSpans) happened(what stock.LockEvent, err error) {
	if l.next.Lock != nil {
		l.next.Lock(what, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
	case what == stock.LockRenewed:
		l.event("renewal", attribute.Bool("oversell.renewed", err == nil))
	case what == stock.LockLost:
		l.event("lost", attribute.String("oversell.reason", err.Error()))
	case what == stock.LockReleasing && l.name == "hold":
		l.begin("release")
	}
}

func (l *lockSpans) statement(_ context.Context, query string) func(error) {
	l.mu.Lock()
	parent := l.in
	l.mu.Unlock()
	if parent == nil {
		parent = l.request
	}
	query = stock.Shorten(strings.Join(strings.Fields(query), " "), maxQuery)
	operation, _, _ := strings.Cut(query, " ")
	// DANGER: the text has ? in place of the arguments, which may be secret.
	_, span := l.tracer.Start(parent, operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "mysql"), attribute.String("db.operation.name", operation), attribute.String("db.query.text", query),
	))
	return func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "the statement failed")
		}
		span.End()
	}
}
