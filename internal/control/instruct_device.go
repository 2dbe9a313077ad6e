package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Devices that instructions call: home batteries, tanks and heat pumps.
//
// A device is planned by half-hours, with the call as a condition. The difference between that
// plan and the one in force is what it contributes, and its cost. Kinds differ in how the plan
// is made (offerBattery, offerHeater) and in what is sent to the device.

// device is a device of a scope, with what an instruction needs to know about it.
type device struct {
	*store.Callable
	id       flex.AssetID
	power    flex.Watts  // its greatest power
	steps    []flex.Step // what it draws by its plan; negative if it gives
	accepted bool        // its client has accepted the last plan
	sentAt   time.Time   // when that plan was made

	// of a heater: when it was last planned
	plannedAt time.Time
}

// callableDevice is a device that may be called, with its plans with and without the call.
type callableDevice struct {
	power      flex.Watts
	restricted []flex.Span // the half-hours in which the call restricts it
	before     []flex.Step // from now on, by the plan in force
	after      []flex.Step
	battery    *callableBattery // nil for a heater
}

// callableKind is one kind of a scope's devices.
type callableKind struct {
	name  string
	all   []device
	limit int // the number that is considered at most
	// computes an offer; false if the device can contribute nothing
	offer     func(context.Context, *store.Tx, *device, instruct.Order) (callableAsset, bool, error)
	capLimits capLimits // where caps limit power
}

// readDevices reads the devices of a scope that have a plan.
func (s *scopeAssets) readDevices(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) error {
	batteries, err := tx.ScopeBatteries(
		ctx,
		in.Scope,
		in.Span,
		s.now.Add(-ChargeFresh),
	)

	if err != nil {
		return fmt.Errorf("read the batteries: %w", err)
	}

	heaters, err := tx.ScopeHeaters(
		ctx,
		in.Scope,
		in.Span,
		s.now.Add(-MeteredLately),
	)

	if err != nil {
		return fmt.Errorf("read the heaters: %w", err)
	}

	for i := range batteries {
		s.batteries = append(s.batteries, deviceOfBattery(&batteries[i]))
	}

	for i := range heaters {
		s.heaters = append(s.heaters, deviceOfHeater(&heaters[i]))
	}

	return nil
}

// deviceOfBattery returns a home battery as a device.
func deviceOfBattery(b *store.ScopeBattery) device {
	return device{
		Callable: &b.Callable,
		id:       b.AssetID,
		power:    flex.Unbounded,
		steps:    b.Steps(),
		accepted: b.Taken,
		sentAt:   b.SentAt,
	}
}

// deviceOfHeater returns a tank or a heat pump as a device.
func deviceOfHeater(h *store.ScopeHeater) device {
	return device{
		Callable:  &h.Callable,
		id:        h.Plan.AssetID,
		power:     h.Plan.Power,
		steps:     h.Draws(),
		accepted:  h.Taken,
		sentAt:    h.Plan.MadeAt,
		plannedAt: h.Plan.PlannedAt,
	}
}

// devices returns all devices of a scope.
func (s *scopeAssets) devices() []device { return slices.Concat(s.batteries, s.heaters) }

// devicesByAsset returns the devices of a scope by asset.
func (s *scopeAssets) devicesByAsset() map[flex.AssetID]*device {
	found := map[flex.AssetID]*device{}
	all := s.devices()
	for i := range all {
		found[all[i].id] = &all[i]
	}

	return found
}

// kinds returns the kinds of a scope's devices. Without an enabled dispatch endpoint no
// battery is considered. A heater is not called to draw more while caps limit power at its
// site, as caps do not bind a heater's plan absolutely.
func (s *Service) kinds(
	ctx context.Context,
	tx *store.Tx,
	sc *scopeAssets,
	up bool,
) ([]callableKind, error) {
	_, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil {
		return nil, err
	}

	batteries := callableKind{
		name:  "batteries",
		all:   sc.batteries,
		offer: s.offerBattery(),
	}

	if listens {
		batteries.limit = instruct.BatteriesMax
	}

	var bound capLimits
	if up && len(sc.heaters) > 0 {
		bound, err = readCapLimits(ctx, tx)
		if err != nil {
			return nil, err
		}
	}

	heaters := callableKind{
		name:      "heaters",
		all:       sc.heaters,
		limit:     instruct.HeatersMax,
		offer:     s.offerHeater,
		capLimits: bound,
	}

	return []callableKind{batteries, heaters}, nil
}

// offerDevices computes the offers of the devices of a scope.
func (s *Service) offerDevices(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scopeAssets,
	order instruct.Order,
) ([]callableAsset, error) {
	kinds, err := s.kinds(
		ctx,
		tx,
		sc,
		order.Up,
	)

	if err != nil {
		return nil, err
	}

	var offers []callableAsset
	for i := range kinds {
		some, err := p.offerKind(
			ctx,
			tx,
			sc,
			&kinds[i],
			order,
		)

		if err != nil {
			return nil, fmt.Errorf("plan the %s: %w", kinds[i].name, err)
		}

		offers = append(offers, some...)
	}

	return offers, nil
}

// considered returns the devices of a kind for which offers are computed: those of the sites
// with the fewest calls.
func (k *callableKind) considered() []device {
	all := slices.Clone(k.all)
	slices.SortStableFunc(all, func(a, b device) int { return a.Calls - b.Calls })

	return all[:min(len(all), k.limit)]
}

// offerKind computes the offers of the devices of one kind.
func (p *Preview) offerKind(
	ctx context.Context,
	tx *store.Tx,
	sc *scopeAssets,
	k *callableKind,
	order instruct.Order,
) ([]callableAsset, error) {
	all := k.considered()

	var offers []callableAsset
	for i := range all {
		d := &all[i]
		if d.Called {
			p.NumBusy++
			continue
		}

		c, ok, err := k.offerOf(
			ctx,
			tx,
			sc,
			d,
			order,
		)

		if err != nil {
			return nil, err
		}

		if !ok {
			p.NumIdle++
		} else if !p.excludeSpent(sc, c.SiteID) {
			offers = append(offers, c)
		}
	}

	return offers, nil
}

// asCallable returns a device in the form of an asset that may be called, with its cost in
// pence.
func (d *device) asCallable(own *callableDevice, pence float64) callableAsset {
	return callableAsset{
		Callable: d.Callable,
		id:       d.id,
		device:   own,
		quality:  instruct.Quality(d.accepted, d.Metered),
		offer:    instruct.Offer{Cost: flex.MicroPounds(pence * 1e4)},
	}
}

// change returns what a device contributes in a slot, in the requested direction.
func (d *callableDevice) change(
	slot flex.Span,
	up bool,
) charge.Joules {
	less := instruct.Moved(d.before, d.power, slot) -
		instruct.Moved(d.after, d.power, slot)
	if up {
		return -less
	}

	return less
}

// moves sets what a device contributes in each slot, and returns the sum and the smallest of
// these values.
func (c *callableAsset) moves(order instruct.Order) (sum, least charge.Joules) {
	for _, slot := range instruct.Slots(order.Window) {
		change := c.device.change(slot, order.Up)
		c.offer.Change = append(c.offer.Change, change)
		sum += change
		least = min(least, change)
	}

	return sum, least
}

// deviceRecord returns the record of a called device, with its plan before the call and the
// expected one.
func (c *callableAsset) deviceRecord() store.Called {
	d := c.device

	return store.Called{
		AssetID:  c.id,
		SiteID:   c.SiteID,
		Power:    d.power,
		Cost:     c.offer.Cost,
		Closed:   d.restricted,
		Baseline: d.before,
		Expected: d.after,
		Battery:  d.battery != nil,
		Heater:   d.battery == nil,
	}
}

// isBattery and isHeater report the kind of a called asset.
func (c *callableAsset) isBattery() bool { return c.device != nil && c.device.battery != nil }
func (c *callableAsset) isHeater() bool  { return c.device != nil && c.device.battery == nil }

// awaitsPlan reports whether a heater was not planned since it was called. Until then it
// counts as one whose client has not accepted.
func (d *device) awaitsPlan(c *store.Called) bool {
	return c.Heater && d.sentAt.Before(c.CalledAt) && d.plannedAt.Before(c.CalledAt)
}

// addDevice counts a called device with the plan that it was sent since its call, if there is
// one. A device that is no longer planned contributes nothing.
func (l *remainingWindow) addDevice(
	c *store.Called,
	at *device,
	slots []flex.Span,
	planned []charge.Joules,
	shares map[flex.AssetID]instruct.Percent,
) {
	change := make([]charge.Joules, len(slots))
	quality := instruct.Percent(0)
	if at != nil {
		steps := at.steps
		waits := at.awaitsPlan(c)
		if waits {
			steps = c.Expected
		}

		for t, slot := range slots {
			drawn := drawnOf(c, steps, slot)
			change[t] = drawnOf(c, c.Baseline, slot) - drawn
			if waits { // its plan is still the one from before the call
				planned[t] += drawn - drawnOf(c, at.steps, slot)
			}
		}

		share, metered := shares[c.AssetID]
		asBefore := c.Battery && at.sentAt.Before(c.CalledAt) // nothing had to be sent
		quality = instruct.Followed{
			Since:    l.At.Sub(flex.Later(c.CalledAt, at.sentAt)),
			Accepted: at.accepted && !waits || asBefore,
			Metered:  metered,
			Share:    share,
		}.Counts()
	}

	l.addCandidate(
		c,
		change,
		quality,
		planned,
	)
}
