package directory

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"flexd/internal/flex"
)

// The bounds of asking a source that is not our own.
const (
	LookupTimeout = 8 * time.Second // for one question
	DetailsLife   = 24 * time.Hour  // of what is known of a meter
	SearchLife    = 5 * time.Minute // of a postcode's list
	MaxRemembered = 10_000          // answers of each kind
	MaxFailures   = 5               // in a row, after which nothing is asked
	PauseAfter    = 30 * time.Second
)

// Distant is a source across a network. It remembers answers, never failures; turns a
// failure into flex.Unavailable and a late answer into flex.TimedOut; and after several
// failures in a row leaves the source in peace for a while, then tries it with one
// question.
type Distant struct {
	source   Source
	now      func() time.Time
	log      *slog.Logger
	details  memory[flex.Meter]
	searches memory[[]flex.Meter]
	rest     breaker
}

// NewDistant returns the source so bounded. The clock is the store's.
func NewDistant(
	source Source,
	now func() time.Time,
	log *slog.Logger,
) *Distant {
	return &Distant{
		source:   source,
		now:      now,
		log:      log,
		details:  memory[flex.Meter]{life: DetailsLife},
		searches: memory[[]flex.Meter]{life: SearchLife},
	}
}

// ByPostcode asks for the points of a postcode.
func (d *Distant) ByPostcode(
	ctx context.Context,
	p Postcode,
) ([]flex.Meter, error) {
	return ask(
		ctx,
		d,
		&d.searches,
		string(p),
		func(ctx context.Context) ([]flex.Meter, error) {
			return d.source.ByPostcode(ctx, p)
		},
	)
}

// ByMPAN asks for one point.
func (d *Distant) ByMPAN(ctx context.Context, m MPAN) (flex.Meter, error) {
	return ask(
		ctx,
		d,
		&d.details,
		m.Core(),
		func(ctx context.Context) (flex.Meter, error) {
			return d.source.ByMPAN(ctx, m)
		},
	)
}

// ask returns the answer to a question about the key, from memory if it is known. A source
// that has failed often is not asked.
func ask[T any](
	ctx context.Context,
	d *Distant,
	known *memory[T],
	key string,
	question func(context.Context) (T, error),
) (T, error) {
	if v, ok := known.get(key, d.now()); ok {
		return v, nil
	}

	var none T
	if !d.rest.allow(d.now()) {
		return none, flex.Fail(
			flex.Unavailable,
			"the meter directory has failed %d times in a row and is not asked for %v; try again later",
			MaxFailures,
			PauseAfter,
		)
	}

	defer d.rest.forget() // after a panic too: else nothing would be asked again

	bounded, cancel := context.WithTimeout(ctx, LookupTimeout)
	defer cancel()

	v, err := question(bounded)
	if err != nil {
		return none, d.failed(ctx, err)
	}

	d.rest.note(true, d.now())
	known.put(key, v, d.now())

	return v, nil
}

// failed notes what an error says of the source's health, and returns what the client is
// answered.
func (d *Distant) failed(ctx context.Context, err error) error {
	kind := flex.KindOf(err)
	if kind == flex.NotFound { // an answer too, but not one to remember: it may come to be
		d.rest.note(true, d.now())
		return err
	}

	if ctx.Err() != nil { // the client went away: that says nothing of the source
		return ctx.Err()
	}

	d.rest.note(false, d.now())
	if kind == flex.TimedOut || errors.Is(err, context.DeadlineExceeded) {
		d.log.Warn("meter directory timed out", "error", err)
		return flex.Fail(
			flex.TimedOut,
			"the meter directory did not answer within %v; try again later",
			LookupTimeout,
		)
	}

	d.log.Warn("meter directory failed", "error", err)

	return flex.Fail(
		flex.Unavailable,
		"the meter directory failed; try again later",
	)
}

// memory keeps answers for a while. It may forget any of them at any time.
type memory[T any] struct {
	life time.Duration
	mu   sync.Mutex
	kept map[string]kept[T]
}

type kept[T any] struct {
	value   T
	expires time.Time
}

func (m *memory[T]) get(key string, now time.Time) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[key]
	return k.value, ok && now.Before(k.expires) &&
		!k.expires.After(now.Add(m.life)) // a clock set back makes nothing live longer
}

func (m *memory[T]) put(key string, v T, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || len(m.kept) >= MaxRemembered {
		// rare and cheap: asking again costs one question each
		m.kept = map[string]kept[T]{}
	}
	m.kept[key] = kept[T]{v, now.Add(m.life)}
}

// breaker counts failures in a row.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time // when the source may be tried again
	trying   bool      // one question is out to see whether it is back
}

// allow reports whether a question may be asked. After a rest it lets one through.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.failures < MaxFailures {
		return true
	}
	if b.trying || now.Before(b.until) && !now.Before(b.until.Add(-PauseAfter)) {
		return false
	}

	b.trying = true

	return true
}

// note takes in how a question that was allowed went.
func (b *breaker) note(ok bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false

	if ok {
		b.failures = 0
		return
	}

	b.failures++
	b.until = now.Add(PauseAfter)
}

// forget ends a question, also one that came to nothing.
func (b *breaker) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}
