package market

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// failureMax is how many bytes of a source's failure are shown: a service's answer may be long.
const failureMax = 300

// failure is how a source failed when FetchPrices last asked it.
type failure struct {
	at   time.Time
	text string
}

// noteFailure logs and records how a source failed, or deletes the record if err is nil. A
// failure after the context has ended is not recorded: flexd stopped the request itself.
func (s *Service) noteFailure(
	ctx context.Context,
	source string,
	at time.Time,
	err error,
) {
	if err != nil {
		s.log().ErrorContext(
			ctx,
			"a source of prices failed; the last good prices stand",
			"source",
			source,
			"error",
			err,
		)
	}

	if ctx.Err() != nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if err == nil {
		delete(s.failed, source)
		return
	}

	if s.failed == nil {
		s.failed = map[string]failure{}
	}

	s.failed[source] = failure{at: at, text: oneLine(err.Error())}
}

// oneLine returns a text in one line, cut to failureMax bytes.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) <= failureMax {
		return text
	}

	return strings.ToValidUTF8(text[:failureMax], "") + "…"
}

// failureOf returns how a source failed when this process last asked it; zero if it did not fail.
func (s *Service) failureOf(source string) failure {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.failed[source]
}

// LastFailure says when and how the source failed when it was last asked; empty if it did not.
func (f Freshness) LastFailure() string {
	if f.Failure == "" {
		return ""
	}

	return fmt.Sprintf(
		"asked at %s, it failed: %s",
		f.FailedAt.UTC().Format(time.RFC3339),
		f.Failure,
	)
}
