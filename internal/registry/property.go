package registry

import (
	"context"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteAtAddress returns the organisation's site at the address, or nil. If several could be
// meant it returns nil, since a wrong choice would get the metering point of another home.
func siteAtAddress(
	ctx context.Context,
	tx *store.Tx,
	n normal,
) (*flex.Site, error) {
	found, err := sitesAtAddress(ctx, tx, n)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	if len(found) > 1 {
		return nil, flex.Fail(
			flex.Conflict,
			"more than one site with this address exists already, among them %s and %s: send the MPAN that one of them has",
			found[0].ID,
			found[1].ID,
		)
	}

	return &found[0], nil
}

// sitesAtAddress returns the organisation's sites that may be at the address, the oldest
// first. Two premises with the same spelling and different property numbers are not the same.
func sitesAtAddress(
	ctx context.Context,
	tx *store.Tx,
	n normal,
) ([]flex.Site, error) {
	if n.key == "" {
		return nil, nil
	}

	alike, err := tx.SitesByAddress(ctx, n.key)
	if err != nil || len(alike) == 0 {
		return nil, err
	}

	mine, err := uprnOf(ctx, tx, n.MPAN)
	if err != nil {
		return nil, err
	}

	var found []flex.Site
	for _, s := range alike {
		other, err := uprnOf(ctx, tx, s.MPAN.Reveal())
		if err != nil {
			return nil, err
		}

		if mine != "" && mine == other {
			return []flex.Site{s}, nil
		}
		if mine == "" || other == "" {
			found = append(found, s)
		}
	}

	return found, nil
}

// otherAtAddress returns another site that may be at the address of this one, or nil. An
// address that the site had before is not checked, so that a site that was registered beside
// one of the same address can still be changed.
func otherAtAddress(
	ctx context.Context,
	tx *store.Tx,
	s, before flex.Site,
) (*flex.Site, error) {
	var n normal
	n.MPAN = s.MPAN.Reveal()
	n.key = addressKey(s.Address.Reveal(), s.Postcode.Reveal())

	if n.key == addressKey(before.Address.Reveal(), before.Postcode.Reveal()) {
		return nil, nil
	}

	found, err := sitesAtAddress(ctx, tx, n)
	for i := range found {
		if found[i].ID != s.ID {
			return &found[i], nil
		}
	}

	return nil, err
}

// siteAtProperty returns the organisation's site whose metering point has the same property
// number as this one's, or nil.
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

// uprnOf returns the property number of a metering point, or nothing if it is unknown.
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
