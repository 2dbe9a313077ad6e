package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// lookedAhead is what devices would do for an order, as it was worked out on a snapshot. Each takes some milliseconds. In the transaction
// that sends an instruction nobody else could write meanwhile: there it counts of each device whose plan is still the same.
type lookedAhead struct {
	window flex.Span
	up     bool
	at     flex.Period
	found  map[flex.AssetID]lookedDevice
}

// lookedDevice is what one device would do.
type lookedDevice struct {
	device
	would  called
	brings bool
}

// lookAhead works out what the devices of an instruction's scope would do. It fails as PreviewInstruction does.
func (s *Service) lookAhead(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*lookedAhead, error) {
	ahead := &lookedAhead{}
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		ahead.found = map[flex.AssetID]lookedDevice{}
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

// offerOf is what a device would do, as it is known, or as it is worked out: nothing where its power is bound, whatever was known.
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
		sc.ahead.found[d.id] = lookedDevice{
			device: *d,
			would:  c,
			brings: ok,
		}
	}

	return c, ok, err
}

// of is what is known of a device for an order; false if it is not, or its plan is another.
func (l *lookedAhead) of(
	d *device,
	order instruct.Order,
	now time.Time,
) (lookedDevice, bool) {
	if l == nil || l.at != flex.PeriodAt(now) {
		return lookedDevice{}, false
	}

	if l.window != order.Window || l.up != order.Up {
		return lookedDevice{}, false
	}

	was, found := l.found[d.id]
	found = found && was.alike(d)

	return was, found
}

// alike reports whether a device is planned and followed as it was.
func (d *device) alike(now *device) bool {
	planned := d.plannedAt.Equal(now.plannedAt) && slices.Equal(d.steps, now.steps)
	followed := d.taken == now.taken && d.sentAt.Equal(now.sentAt)

	return planned && followed
}

// again is what a device would do of which now is known anew how often it was called, and how well it is read.
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
