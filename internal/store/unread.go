package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flexd/internal/flex"
)

// ErrUnreadable marks the error of a stored value that cannot be parsed. The transaction
// itself is intact and can continue without that record.
var ErrUnreadable = errors.New("what is stored cannot be read")

// unreadable returns the error marked as ErrUnreadable; nil stays nil.
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

// log logs how many assets were left out, and the first with its error. Without any it logs
// nothing.
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

// allRead fails if the schedule of one of the assets cannot be read.
func allRead(out []ScheduledAsset, err error) ([]ScheduledAsset, error) {
	for i := 0; i < len(out) && err == nil; i++ {
		if out[i].Unread != nil {
			err = fmt.Errorf("asset %v: %w", out[i].Current.AssetID, out[i].Unread)
		}
	}

	return out, err
}

// withoutUnread separates the assets whose schedules cannot be read from the others, and logs them.
func (tx *Tx) withoutUnread(
	ctx context.Context,
	all []ScheduledAsset,
) ([]ScheduledAsset, []flex.AssetID) {
	var left leftOut
	var unread []flex.AssetID

	read := slices.DeleteFunc(all, func(p ScheduledAsset) bool {
		if p.Unread != nil {
			unread = append(unread, p.Current.AssetID)
			left.add(p.Current.AssetID, p.Unread)
		}
		return p.Unread != nil
	})

	left.log(ctx, tx.conn)

	return read, unread
}
