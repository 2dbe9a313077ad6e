package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// offersAhead is what devices would do for an order, computed on a snapshot before the
// transaction that sends the instruction. Each takes some milliseconds, during which nobody
// else could write. In the transaction it is used for each device whose plan is still the
// same.
type offersAhead struct {
	window flex.Span
	up     bool
	at     flex.Period
	found  map[flex.AssetID]deviceAhead
}

// deviceAhead is what one device would do.
type deviceAhead struct {
	device
	would  called
	brings bool
}

// lookAhead computes what the devices of an instruction's scope would do. It fails as
// PreviewInstruction does.
func (s *Service) lookAhead(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*offersAhead, error) {
	ahead := &offersAhead{}
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		ahead.found = map[flex.AssetID]deviceAhead{}
		if err := checkInstruction(&in, tx.Now()); err != nil {
			return err
		}

		if err := in.Scope.CheckGSPGroup(); err != nil {
			return err
		}

		if err := tx.CheckScope(ctx, in.Scope); err != nil {
			return err
		}

		sc := scoped{now: tx.Now(), ahead: ahead}
		order := orderOf(&in, sc.now)
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

// offerOf returns what a device would do: from sc.ahead, or computed now. It is nothing if the
// power at its site is restricted in the window.
func (k *calledKind) offerOf(
	ctx context.Context,
	tx *store.Tx,
	sc *scoped,
	d *device,
	order instruct.Order,
) (called, bool, error) {
	bound, err := k.bound.bindsAt(
		ctx,
		tx,
		d.SiteID,
		order.Window,
	)

	if err != nil || bound {
		return called{}, false, err
	}

	known, found := sc.ahead.of(d, order, sc.now)
	if found {
		return known.would.again(d), known.brings, nil
	}

	c, ok, err := k.offer(
		ctx,
		tx,
		d,
		order,
	)

	if sc.ahead != nil && err == nil {
		sc.ahead.found[d.id] = deviceAhead{
			device: *d,
			would:  c,
			brings: ok,
		}
	}

	return c, ok, err
}

// of returns what was computed for a device and an order; false if nothing was, or the
// device's plan has changed.
func (l *offersAhead) of(
	d *device,
	order instruct.Order,
	now time.Time,
) (deviceAhead, bool) {
	if l == nil || l.at != flex.PeriodAt(now) {
		return deviceAhead{}, false
	}

	if l.window != order.Window || l.up != order.Up {
		return deviceAhead{}, false
	}

	was, found := l.found[d.id]
	found = found && was.alike(d)

	return was, found
}

// alike reports whether a device has the same plan, followed in the same way.
func (d *device) alike(now *device) bool {
	planned := d.plannedAt.Equal(now.plannedAt) && slices.Equal(d.steps, now.steps)
	followed := d.taken == now.taken && d.sentAt.Equal(now.sentAt)

	return planned && followed
}

// again updates what a device would do by the present number of calls and quality.
func (c called) again(now *device) called {
	if c.device == nil {
		return c
	}

	c.Callable = now.Callable
	c.quality = instruct.Quality(now.taken, now.Metered)
	if b := c.device.battery; b != nil && b.stopOnly != nil {
		stopOnly := b.stopOnly.again(now)
		own := *c.device
		own.battery = &calledBattery{modes: b.modes, stopOnly: &stopOnly}
		c.device = &own
	}

	return c
}
