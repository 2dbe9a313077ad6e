package web

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestClientHungUp: an error says that the client hung up only where the request itself was cancelled.
func TestClientHungUp(t *testing.T) {
	open := t.Context()
	closed, hangUp := context.WithCancel(open)
	hangUp()
	cancelled := fmt.Errorf("read sites: %w", context.Canceled)

	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{closed, cancelled, true},
		{closed, errors.New("disk full"), false},
		{closed, nil, false},
		{open, cancelled, false},
	} {
		if got := ClientHungUp(c.ctx, c.err); got != c.want {
			t.Errorf("%v, %v: %v", c.ctx.Err(), c.err, got)
		}
	}
}
