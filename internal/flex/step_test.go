package flex_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestAppendStep: alike steps that follow each other are one, and an empty one is none.
func TestAppendStep(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 15, hour, 0, 0, 0, time.UTC) }
	span := func(from, to int) flex.Span { return flex.Span{From: at(from), To: at(to)} }

	var got []flex.Step
	got = flex.AppendStep(got, span(1, 1), 1000)
	got = flex.AppendStep(got, span(1, 2), 1000)
	got = flex.AppendStep(got, span(2, 4), 1000)
	got = flex.AppendStep(got, span(4, 5), 0)
	got = flex.AppendStep(got, span(5, 5), 1000)
	got = flex.AppendStep(got, span(5, 6), 0)

	want := []flex.Step{
		{Span: span(1, 4), Limit: 1000},
		{Span: span(4, 6)},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
