package operations

import (
	"context"
	"slices"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFinder_Panics: a finder that panics returns an error, so that those after it are run.
func TestFinder_Panics(t *testing.T) {
	broken := finder{find: func(context.Context, *store.All, *Fleet, flex.OrgID) ([]Exception, error) {
		panic("broken")
	}}

	found, err := broken.run(t.Context(), nil, nil, flex.OrgID{})
	if len(found) != 0 || err == nil {
		t.Errorf("%v, %v", found, err)
	}
}

// TestFinders_EveryKind: each kind has one finder, or is found without one, so that none that fails goes unnamed.
func TestFinders_EveryKind(t *testing.T) {
	found := []Kind{DatabaseFailing, JobFailed, PriceStale}
	found = append(found, haltFinder.kinds...)
	for _, f := range finders {
		found = append(found, f.kinds...)
	}

	slices.Sort(found)
	if want := slices.Sorted(slices.Values(Kinds)); !slices.Equal(found, want) {
		t.Errorf("finders find %v, of %v", found, want)
	}
}
