package store

import (
	"context"
	"errors"
	"fmt"

	"flexd/internal/flex"
)

// ErrUnreadable is in the error of what is stored and cannot be read. Nothing is wrong with the transaction, which
// can go on without it.
var ErrUnreadable = errors.New("what is stored cannot be read")

// unreadable is an error as one of what is stored.
func unreadable(err error) error {
	if err == nil || errors.Is(err, ErrUnreadable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreadable, err)
}

// leftOut counts the assets that a read leaves out because they cannot be read.
type leftOut struct {
	n     int
	first flex.AssetID
	err   error
}

func (l *leftOut) add(asset flex.AssetID, err error) {
	if l.n == 0 {
		l.first, l.err = asset, err
	}
	l.n++
}

// log says how many there were, and which was the first.
func (l *leftOut) log(ctx context.Context, c conn) {
	if l.n > 0 {
		c.db.log.WarnContext(
			ctx,
			"assets whose schedule cannot be read are left out",
			"assets",
			l.n,
			"first",
			l.first,
			"error",
			l.err,
		)
	}
}
