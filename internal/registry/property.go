package registry

import (
	"context"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteAtAddress returns the organisation's site at the address, or nil. Two premises that are
// written alike and have different property numbers are not the same.
func siteAtAddress(
	ctx context.Context,
	tx *store.Tx,
	n normal,
) (*flex.Site, error) {
	if n.key == "" {
		return nil, nil
	}

	s, err := tx.SiteByAddress(ctx, n.key)
	if err != nil || s == nil {
		return nil, err
	}

	mine, err := uprnOf(ctx, tx, n.MPAN)
	if err != nil {
		return nil, err
	}

	other, err := uprnOf(ctx, tx, s.MPAN.Reveal())
	if err != nil {
		return nil, err
	}
	if mine != "" && other != "" && mine != other {
		return nil, nil
	}

	return s, nil
}

// siteAtProperty returns the organisation's site whose metering point has the property number
// of this one's, or nil.
func siteAtProperty(
	ctx context.Context,
	tx *store.Tx,
	mpan string,
) (*flex.Site, error) {
	uprn, err := uprnOf(ctx, tx, mpan)
	if err != nil || uprn == "" {
		return nil, err
	}

	return tx.SiteByUPRN(ctx, uprn)
}

// uprnOf returns the property number of a metering point, or nothing if it is not known.
func uprnOf(ctx context.Context, tx *store.Tx, mpan string) (string, error) {
	if mpan == "" {
		return "", nil
	}

	m, err := tx.Meter(ctx, mpan)
	if err != nil || m == nil {
		return "", err
	}

	return directory.NormalUPRN(m.UPRN), nil
}
