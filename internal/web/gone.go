package web

import (
	"context"
	"errors"
	"net/http"
)

// ClientGone is the status in the log and the metrics of a request whose client hung up before it had
// the whole answer: nothing failed here. The number is the one that web servers use.
const ClientGone = 499

// ClientHungUp reports whether an error says only that the client hung up, or did not read its answer in time: ctx is the request's.
func ClientHungUp(ctx context.Context, err error) bool {
	_, lost := errors.AsType[unsent](err)
	return lost || ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// unsent is why what was written did not reach the client. It may come before the request is cancelled.
type unsent struct{ error }

// Unwrap returns the failure.
func (u unsent) Unwrap() error { return u.error }

// asUnsent marks a failure to write, but for those that only the handler can be the cause of.
func asUnsent(err error) error {
	for _, own := range []error{
		http.ErrBodyNotAllowed,
		http.ErrContentLength,
		http.ErrHijacked,
	} {
		if errors.Is(err, own) {
			return err
		}
	}

	return unsent{err}
}
