package registry

import (
	"context"
	"fmt"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// askMeter asks the directory for a metering point, and stores nothing. It returns nil for a
// number that is not an MPAN or is on no list, and if the directory's lists are in the store
// already. It fails if the directory fails, since a guess could enrol or refuse a site
// wrongly.
func (s *Service) askMeter(ctx context.Context, mpan string) (*flex.Meter, error) {
	if s.Meters == nil {
		return nil, nil
	}

	number, err := directory.ParseMPAN(mpan)
	if err != nil {
		return nil, nil
	}

	m, err := s.Meters.ByMPAN(ctx, number)
	if flex.KindOf(err) == flex.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up a meter: %w", err)
	}

	return &m, nil
}

// lookUpMeter is askMeter, and stores the answer for the transaction that follows.
func (s *Service) lookUpMeter(ctx context.Context, mpan string) error {
	m, err := s.askMeter(ctx, mpan)
	if err != nil || m == nil {
		return err
	}
	if stored, err := s.DB.MeterByMPAN(ctx, m.MPAN); err == nil && stored == *m {
		return nil
	}

	ctx = store.Uncounted(ctx) // when the request is repeated it is known, and nothing is written
	return s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.PutMeters(ctx, []flex.Meter{*m})
	})
}

// lookUpMeterOf is lookUpMeter for the MPAN of a registered site.
func (s *Service) lookUpMeterOf(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) error {
	if s.Meters == nil {
		return nil
	}

	site, err := read(ctx, s, org, func(tx *store.Tx) (flex.Site, error) {
		return tx.Site(ctx, id)
	})
	if err != nil {
		return err
	}

	return s.lookUpMeter(ctx, site.MPAN.Reveal())
}

// lookUpChanged is lookUpMeter for the new MPAN of a registered site; nil if it does not
// change.
func (s *Service) lookUpChanged(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	mpan *string,
) error {
	if s.Meters == nil || mpan == nil {
		return nil
	}

	site, err := read(ctx, s, org, func(tx *store.Tx) (flex.Site, error) {
		return tx.Site(ctx, id)
	})
	if err != nil {
		return err
	}

	core, _ := normalMPAN(*mpan)
	if core == site.MPAN.Reveal() {
		return nil
	}

	return s.lookUpMeter(ctx, core)
}
