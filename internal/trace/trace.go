package trace

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// tracer makes spans; nil while nothing is recorded.
var tracer atomic.Pointer[api.Tracer]

// To has spans recorded and sent to a collector, whose URL is that of OTLP over HTTP, such as
// http://127.0.0.1:4318/v1/traces. Of the requests that come without a traceparent field a share
// between 0 and 1 is recorded. stop sends what waits, and ends the recording.
func To(
	ctx context.Context,
	collector, version string,
	share float64,
) (stop func(context.Context) error, err error) {
	u, err := url.Parse(collector)
	if err != nil || u.Host == "" ||
		!slices.Contains([]string{"http", "https"}, u.Scheme) {
		return nil, fmt.Errorf(
			"%q is not the URL of a collector, such as http://127.0.0.1:4318/v1/traces",
			collector,
		)
	}

	exporter, err := otlptracehttp.New(
		ctx,
		otlptracehttp.WithEndpointURL(collector),
	)
	if err != nil {
		return nil, err
	}

	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "flexd"),
			attribute.String("service.version", version),
		)),
	)

	made := provider.Tracer("flexd")
	tracer.Store(&made)

	return func(ctx context.Context) error {
		tracer.CompareAndSwap(&made, nil)
		return provider.Shutdown(ctx)
	}, nil
}

// Span is a step under way. The zero value records nothing.
type Span struct{ span api.Span }

// Start begins a span. Without a collector it returns the context as it is.
func Start(ctx context.Context, name string) (context.Context, Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, Span{}
	}

	ctx, span := (*t).Start(ctx, name)

	return ctx, Span{span}
}

// Within begins a span that is part of one under way. Where none is, it records nothing.
func Within(ctx context.Context, name string) (context.Context, Span) {
	if tracer.Load() == nil || !api.SpanFromContext(ctx).IsRecording() {
		return ctx, Span{}
	}
	return Start(ctx, name)
}

// After records a span of what is over already.
func After(
	ctx context.Context,
	name string,
	began time.Time,
	did int,
	err error,
) {
	t := tracer.Load()
	if t == nil {
		return
	}

	_, span := (*t).Start(ctx, name, api.WithTimestamp(began))
	s := Span{span}
	s.Int("flexd.did", did)
	s.End(err)
}

// Name renames the span, once it is known what it is.
func (s Span) Name(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Int adds a number to the span.
func (s Span) Int(key string, n int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(key, n))
	}
}

// Text adds a text to the span, which must be of no person.
func (s Span) Text(key, text string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(key, text))
	}
}

// End ends the span. It says that it failed, and not why: an error's text may be of a person.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Current is the span that a context is of.
func Current(ctx context.Context) Span {
	if tracer.Load() == nil {
		return Span{}
	}
	return Span{api.SpanFromContext(ctx)}
}

// Carrier is the header fields of a request.
type Carrier interface {
	Get(key string) string
	Set(key, value string)
	Keys() []string
}

// Continued returns the context with the trace that a request's fields name.
func Continued(ctx context.Context, fields Carrier) context.Context {
	if tracer.Load() == nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, fields)
}

// rememberedMax is how many queued pushes are remembered with the request that they are of.
const rememberedMax = 10_000

// pushes remembers the spans that queued pushes, by event id, the latest rememberedMax of them.
var pushes struct {
	sync.Mutex
	spans map[[16]byte]api.SpanContext
	order [][16]byte
	next  int
}

// Queued notes that the span of the context queued a push.
func Queued(ctx context.Context, event [16]byte) {
	if tracer.Load() == nil {
		return
	}

	of := api.SpanContextFromContext(ctx)
	if !of.IsSampled() {
		return
	}

	pushes.Lock()
	defer pushes.Unlock()

	if pushes.spans == nil {
		pushes.spans = map[[16]byte]api.SpanContext{}
	}

	if len(pushes.order) < rememberedMax {
		pushes.order = append(pushes.order, event)
	} else {
		delete(pushes.spans, pushes.order[pushes.next])
		pushes.order[pushes.next] = event
		pushes.next = (pushes.next + 1) % rememberedMax
	}

	pushes.spans[event] = of
}

// Push begins the span of an attempt at a push: of the trace that queued it, if that is known.
func Push(ctx context.Context, event [16]byte) (context.Context, Span) {
	if tracer.Load() == nil {
		return ctx, Span{}
	}

	pushes.Lock()
	of, known := pushes.spans[event]
	pushes.Unlock()

	if known {
		ctx = api.ContextWithRemoteSpanContext(ctx, of)
	}

	return Start(ctx, "push")
}
