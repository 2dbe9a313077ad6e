package web

import (
	"context"
	"errors"
)

// ClientGone is the status in the log and the metrics of a request whose client hung up before the
// answer: nothing was sent, and nothing failed. The number is the one that web servers use.
const ClientGone = 499

// ClientHungUp reports whether an error says only that the client hung up: ctx is the request's.
func ClientHungUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}
