package operations

import (
	"context"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFinder_Panics: a finder that panics returns an error, so that those after it are run.
func TestFinder_Panics(t *testing.T) {
	broken := finder(func(context.Context, *store.All, *Fleet, flex.OrgID) ([]Exception, error) {
		panic("broken")
	})

	found, err := broken.run(t.Context(), nil, nil, flex.OrgID{})
	if len(found) != 0 || err == nil {
		t.Errorf("%v, %v", found, err)
	}
}
