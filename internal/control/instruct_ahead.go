package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// precomputedOffers has the offers of devices for an order, computed on a snapshot before the
// transaction that sends the instruction. An offer takes some milliseconds, during which the
// transaction would keep everybody else from writing. In the transaction it is used for each
// device whose plan is still the same.
type precomputedOffers struct {
	window flex.Span
	up     bool
	at     flex.Period
	found  map[flex.AssetID]deviceOffer
}

// deviceOffer is the offer of one device, with the state of the device that it was computed
// for.
type deviceOffer struct {
	device
	offer       callableAsset
	contributes bool
}

// computeOffers computes the offers of the devices in an instruction's scope. It fails as
// PreviewInstruction does.
func (s *Service) computeOffers(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*precomputedOffers, error) {
	ahead := &precomputedOffers{}
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		ahead.found = map[flex.AssetID]deviceOffer{}
		if err := checkInstruction(&in, tx.Now()); err != nil {
			return err
		}

		if err := in.Scope.CheckGSPGroup(); err != nil {
			return err
		}

		if err := tx.CheckScope(ctx, in.Scope); err != nil {
			return err
		}

		sc := scopeAssets{now: tx.Now(), precomputed: ahead}
		order := orderFrom(&in, sc.now)
		ahead.at = flex.PeriodAt(sc.now)
		ahead.window, ahead.up = order.Window, order.Up

		err := sc.readDevices(ctx, tx, &in)
		if err == nil {
			_, err = s.offerDevices(
				ctx,
				tx,
				&Preview{},
				&sc,
				order,
			)
		}

		return err
	})

	return ahead, err
}

// offerOf returns the offer of a device, computed before or now. There is none if caps limit
// the power at its site in the window.
func (k *callableKind) offerOf(
	ctx context.Context,
	tx *store.Tx,
	sc *scopeAssets,
	d *device,
	order instruct.Order,
) (callableAsset, bool, error) {
	bound, err := k.capLimits.bindsAt(
		ctx,
		tx,
		d.SiteID,
		order.Window,
	)

	if err != nil || bound {
		return callableAsset{}, false, err
	}

	known, found := sc.precomputed.of(d, order, sc.now)
	if found {
		return known.offer.refreshed(d), known.contributes, nil
	}

	c, ok, err := k.offer(
		ctx,
		tx,
		d,
		order,
	)

	if sc.precomputed != nil && err == nil {
		sc.precomputed.found[d.id] = deviceOffer{
			device:      *d,
			offer:       c,
			contributes: ok,
		}
	}

	return c, ok, err
}

// of returns the offer that was computed for a device and an order; false if there is none, or
// the device's plan has changed.
func (l *precomputedOffers) of(
	d *device,
	order instruct.Order,
	now time.Time,
) (deviceOffer, bool) {
	if l == nil || l.at != flex.PeriodAt(now) {
		return deviceOffer{}, false
	}

	if l.window != order.Window || l.up != order.Up {
		return deviceOffer{}, false
	}

	offer, found := l.found[d.id]
	found = found && offer.hasSamePlan(d)

	return offer, found
}

// hasSamePlan reports whether a device has the same plan, followed in the same way.
func (d *device) hasSamePlan(now *device) bool {
	planned := d.plannedAt.Equal(now.plannedAt) && slices.Equal(d.steps, now.steps)
	followed := d.accepted == now.accepted && d.sentAt.Equal(now.sentAt)

	return planned && followed
}

// refreshed returns an offer with the present number of calls and quality of its device.
func (c callableAsset) refreshed(now *device) callableAsset {
	if c.device == nil {
		return c
	}

	c.Callable = now.Callable
	c.quality = instruct.Quality(now.accepted, now.Metered)
	if b := c.device.battery; b != nil && b.stopOnly != nil {
		stopOnly := b.stopOnly.refreshed(now)
		own := *c.device
		own.battery = &callableBattery{modes: b.modes, stopOnly: &stopOnly}
		c.device = &own
	}

	return c
}
