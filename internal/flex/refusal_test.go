package flex_test

import (
	"errors"
	"testing"

	"flexd/internal/flex"
)

// TestRefusal: an order or a product is refused for good by what is wrong with it, and not by a database that
// does not answer.
func TestRefusal(t *testing.T) {
	for name, x := range map[string]struct {
		err  error
		want bool
	}{
		"done":                {nil, false},
		"wrong":               {flex.Fail(flex.Invalid, "a target of 0"), true},
		"no database":         {flex.Fail(flex.Unavailable, "the database does not answer"), false},
		"of another's making": {errors.New("broken"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := flex.Refusal(x.err); got != x.want {
				t.Errorf("refused: %v", got)
			}
		})
	}
}
