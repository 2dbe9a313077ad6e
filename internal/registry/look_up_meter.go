package registry

import (
	"context"
	"fmt"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// askMeter asks the directory for a metering point, and keeps nothing. There is none for a number that is no MPAN,
// or on no list, and where the directory's lists are in the store already.
// A directory that fails is a failure: to guess would enrol or refuse wrongly.
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

// lookUpMeter is askMeter, and keeps the answer, so that the transaction that follows finds it in the store.
func (s *Service) lookUpMeter(ctx context.Context, mpan string) error {
	m, err := s.askMeter(ctx, mpan)
	if err != nil || m == nil {
		return err
	}
	if kept, err := s.DB.MeterByMPAN(ctx, m.MPAN); err == nil && kept == *m {
		return nil
	}

	ctx = store.Uncounted(ctx) // a repeat of the request finds it known, and writes nothing
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

// lookUpChanged is lookUpMeter for an MPAN that a registered site is to have in place of another; nil is none.
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
