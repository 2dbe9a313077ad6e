package store

import (
	"context"
	"slices"

	"flexd/internal/flex"
)

// withinKey finds in a context for which organisations' records it is.
type withinKey struct{}

// Within returns a context in which the store has no other organisations than these: not in
// lists, not in a search, not by an id. It bounds what is asked for in somebody's name; what
// lists records without the organisation's own transaction or Orgs has to ask for it.
func Within(ctx context.Context, orgs []flex.OrgID) context.Context {
	return context.WithValue(ctx, withinKey{}, orgs)
}

// Everywhere returns a context without that bound, for what is made once for everybody.
func Everywhere(ctx context.Context) context.Context {
	if _, bounded := WithinOf(ctx); !bounded {
		return ctx
	}
	return context.WithValue(ctx, withinKey{}, nil)
}

// WithinOf returns the organisations that a context is for, and whether it is bounded at all.
func WithinOf(ctx context.Context) (orgs []flex.OrgID, bounded bool) {
	orgs, bounded = ctx.Value(withinKey{}).([]flex.OrgID)
	return orgs, bounded
}

// Reaches reports whether the store has the organisation in the context.
func Reaches(ctx context.Context, org flex.OrgID) bool {
	orgs, bounded := WithinOf(ctx)
	return !bounded || slices.Contains(orgs, org)
}

// within adds the condition that the column is one of the context's organisations.
func (w *where) within(ctx context.Context, column string) {
	orgs, bounded := WithinOf(ctx)
	if !bounded {
		return
	}

	if len(orgs) == 0 {
		w.text.WriteString(" AND 1 = 0")
		return
	}

	values := make([]any, len(orgs))
	for i, id := range orgs {
		values[i] = id.Bytes()
	}

	w.inValues(column, values)
}
