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
	id     flex.AssetID
	power  flex.Watts  // its greatest power
	steps  []flex.Step // what it draws by its plan; negative if it gives
	taken  bool        // its client has accepted what it was sent last
	sentAt time.Time   // when that was made

	// of a heater: when it was planned last
	plannedAt time.Time
}

// calledDevice is a device that may be called, with what it does by its plan with the call and
// without.
type calledDevice struct {
	power   flex.Watts
	kept    []flex.Span // the half-hours in which the call restricts it
	before  []flex.Step // from now on, by the plan in force
	after   []flex.Step
	battery *calledBattery // nil of a heater
}

// calledKind is one kind of a scope's devices.
type calledKind struct {
	name string
	all  []device
	most int // how many of them are considered
	// what a device would do; false if it can contribute nothing
	offer func(context.Context, *store.Tx, *device, instruct.Order) (called, bool, error)
	bound boundPower // where and when none may draw more
}

// readDevices reads the devices of a scope that have a plan.
func (s *scoped) readDevices(
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
		taken:    b.Taken,
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
		taken:     h.Taken,
		sentAt:    h.Plan.MadeAt,
		plannedAt: h.Plan.PlannedAt,
	}
}

// devices returns all devices of a scope.
func (s *scoped) devices() []device { return slices.Concat(s.batteries, s.heaters) }

// devicesByAsset returns the devices of a scope by asset.
func (s *scoped) devicesByAsset() map[flex.AssetID]*device {
	found := map[flex.AssetID]*device{}
	all := s.devices()
	for i := range all {
		found[all[i].id] = &all[i]
	}

	return found
}

// kinds returns the kinds of a scope's devices. Without an enabled dispatch endpoint no
// battery is considered. No heater is called to draw more where caps or limits restrict power
// at its site in that time, as they do not limit a heater's plan.
func (s *Service) kinds(
	ctx context.Context,
	tx *store.Tx,
	sc *scoped,
	up bool,
) ([]calledKind, error) {
	_, listens, err := tx.EnabledEndpoint(ctx, flex.DispatchEndpoint)
	if err != nil {
		return nil, err
	}

	batteries := calledKind{
		name:  "batteries",
		all:   sc.batteries,
		offer: s.offerBattery(),
	}

	if listens {
		batteries.most = instruct.BatteriesMax
	}

	var bound boundPower
	if up && len(sc.heaters) > 0 {
		bound, err = readBoundPower(ctx, tx)
		if err != nil {
			return nil, err
		}
	}

	heaters := calledKind{
		name:  "heaters",
		all:   sc.heaters,
		most:  instruct.HeatersMax,
		offer: s.offerHeater,
		bound: bound,
	}

	return []calledKind{batteries, heaters}, nil
}

// offerDevices computes what the devices of a scope would do.
func (s *Service) offerDevices(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scoped,
	order instruct.Order,
) ([]called, error) {
	kinds, err := s.kinds(
		ctx,
		tx,
		sc,
		order.Up,
	)

	if err != nil {
		return nil, err
	}

	var offers []called
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

// considered returns the devices of a kind that are considered: those of the sites that were
// called least often.
func (k *calledKind) considered() []device {
	all := slices.Clone(k.all)
	slices.SortStableFunc(all, func(a, b device) int { return a.Calls - b.Calls })

	return all[:min(len(all), k.most)]
}

// offerKind computes what the devices of one kind would do.
func (p *Preview) offerKind(
	ctx context.Context,
	tx *store.Tx,
	sc *scoped,
	k *calledKind,
	order instruct.Order,
) ([]called, error) {
	all := k.considered()

	var offers []called
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
		} else if !p.leaveOut(sc, c.SiteID) {
			offers = append(offers, c)
		}
	}

	return offers, nil
}

// calledAs returns a device that may be called.
func (d *device) calledAs(own *calledDevice, pence float64) called {
	return called{
		Callable: d.Callable,
		id:       d.id,
		device:   own,
		quality:  instruct.Quality(d.taken, d.Metered),
		offer:    instruct.Offer{Cost: flex.MicroPounds(pence * 1e4)},
	}
}

// change returns what a device contributes in a slot, in the requested direction.
func (d *calledDevice) change(
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

// moves sets what a device contributes in each slot, and returns the sum and the least of
// them.
func (c *called) moves(order instruct.Order) (sum, least charge.Joules) {
	for _, slot := range instruct.Slots(order.Window) {
		change := c.device.change(slot, order.Up)
		c.offer.Change = append(c.offer.Change, change)
		sum += change
		least = min(least, change)
	}

	return sum, least
}

// deviceRecord returns the record of a called device, with its plan before and the one that is
// expected of it.
func (c *called) deviceRecord() store.Called {
	d := c.device

	return store.Called{
		AssetID:  c.id,
		SiteID:   c.SiteID,
		Power:    d.power,
		Cost:     c.offer.Cost,
		Closed:   d.kept,
		Baseline: d.before,
		Expected: d.after,
		Battery:  d.battery != nil,
		Heater:   d.battery == nil,
	}
}

// isBattery and isHeater report the kind of a called asset.
func (c *called) isBattery() bool { return c.device != nil && c.device.battery != nil }
func (c *called) isHeater() bool  { return c.device != nil && c.device.battery == nil }

// waits reports whether a heater was not planned yet since it was called. Until then it counts
// as one whose client has not accepted.
func (d *device) waits(c *store.Called) bool {
	return c.Heater && d.sentAt.Before(c.CalledAt) && d.plannedAt.Before(c.CalledAt)
}

// addDevice is add for a device, which follows what it was sent since its call, if anything
// was. A device that is no longer planned contributes nothing.
func (l *remainder) addDevice(
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
		waits := at.waits(c)
		if waits {
			steps = c.Expected
		}

		for t, slot := range slots {
			draws := drawnOf(c, steps, slot)
			change[t] = drawnOf(c, c.Baseline, slot) - draws
			if waits { // its plan is still the one before the call
				planned[t] += draws - drawnOf(c, at.steps, slot)
			}
		}

		share, metered := shares[c.AssetID]
		asBefore := c.Battery && at.sentAt.Before(c.CalledAt) // nothing had to be sent
		quality = instruct.Followed{
			Since:    l.At.Sub(flex.Later(c.CalledAt, at.sentAt)),
			Accepted: at.taken && !waits || asBefore,
			Metered:  metered,
			Share:    share,
		}.Counts()
	}

	l.bring(
		c,
		change,
		quality,
		planned,
	)
}
