package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// HeatRead is how long a heater must have been metered for the time before its first reading,
// with its heat, to be left out.
const HeatRead = 7 * 24 * time.Hour

// readAccount reads what was metered of a site in the days before one. Of the boundary, only
// readings from times of the user's consent are used. Without any steady readings there is
// nothing in it.
func readAccount(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	before flex.Day,
) (*siteAccount, error) {
	a := &siteAccount{before: before}
	if err := a.readAssets(ctx, tx, site); err != nil || len(a.assets) == 0 {
		return a, err
	}

	by, err := a.readings(ctx, tx)
	if err != nil {
		return nil, err
	}

	consent, err := tx.ConsentSpans(ctx, []flex.SiteID{site}, time.Time{})
	if err != nil {
		return nil, err
	}

	a.net, a.read = boundaryOf(by, a.meters(), consent[site])

	err = a.addDevices(ctx, tx, by)

	return a, err
}

// siteAccount is what the past energy at a site's boundary is made of.
type siteAccount struct {
	before  flex.Day
	assets  []pastAsset
	steered map[flex.AssetID]bool // the assets that are planned
	net     forecast.Series       // at the boundary
	read    store.PlanRead        // which readings of the boundary were used
	devices []siteDevice
	// what batteries take is reported by another asset, such as a roof's inverter
	hybrid bool
}

// pastAsset is an asset of a site, or one that was until it was taken away.
type pastAsset struct {
	id    flex.AssetID
	typ   flex.AssetType
	until time.Time // zero: it is still there
	meter bool      // it has sent steady readings
}

// days are the days that are looked at, newest first.
func (a *siteAccount) days() []flex.Day {
	days := make([]flex.Day, forecast.Days)
	for k := range days {
		days[k] = a.before.Add(-k - 1)
	}

	return days
}

// span is the time of those days.
func (a *siteAccount) span() flex.Span {
	return flex.Span{
		From: a.before.Add(-forecast.Days).Start(),
		To:   a.before.Start(),
	}
}

// readAssets finds the assets that may have readings: those of the site in its order, then
// those that were taken away. It finds none where no asset that is still there sent steady
// readings.
func (a *siteAccount) readAssets(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	steady, err := tx.Steady(ctx, site)
	if err != nil || len(steady) == 0 {
		return err
	}

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return err
	}

	a.steered, err = tx.Steered(ctx, site)
	if err != nil {
		return fmt.Errorf("read what of the site is planned: %w", err)
	}

	for i := range assets {
		own := pastAsset{
			id:    assets[i].ID,
			typ:   assets[i].Type,
			meter: steady[assets[i].ID],
		}
		if own.meter || own.typ.Charges() || a.steered[own.id] {
			a.assets = append(a.assets, own)
		}
	}

	gone, err := tx.FormerAssets(ctx, site, a.before.Add(-forecast.Days).Start())
	if err != nil {
		return fmt.Errorf("read which assets the site had: %w", err)
	}

	for _, g := range gone {
		a.assets = append(a.assets, pastAsset{
			id:    g.ID,
			typ:   g.Type,
			until: g.GoneAt,
			meter: true,
		})
	}

	return nil
}

// meters are the assets that may have reported what passed the boundary.
func (a *siteAccount) meters() []flex.AssetID {
	var ids []flex.AssetID
	for _, own := range a.assets {
		if own.meter {
			ids = append(ids, own.id)
		}
	}

	return ids
}

// readings are those of each asset.
func (a *siteAccount) readings(
	ctx context.Context,
	tx *store.Tx,
) (map[flex.AssetID][]flex.Reading, error) {
	labels := slices.Concat(
		settle.Labels(settle.Boundary),
		settle.Labels(settle.Asset),
		[]flex.Label{flex.SolarPower, flex.HeatPower},
	)

	q := store.ReadingQuery{
		Days:   a.days(),
		Labels: labels,
	}

	for _, own := range a.assets {
		q.Assets = append(q.Assets, own.id)
	}

	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read what the site's assets measured: %w", err)
	}

	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range rs {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	return by, nil
}

// addDevices works out what each device took or gave.
func (a *siteAccount) addDevices(
	ctx context.Context,
	tx *store.Tx,
	by map[flex.AssetID][]flex.Reading,
) error {
	a.findHybrid(by)

	for i := range a.assets {
		own := &a.assets[i]
		rs := by[own.id]

		if own.typ.Charges() {
			if err := a.addCharger(ctx, tx, own, rs); err != nil {
				return err
			}
		} else if took := energies(rs, flex.BatteryInverterPower); len(took) > 0 {
			a.addBattery(own, took)
		}

		if gave := energies(rs, flex.SolarPower); len(gave) > 0 {
			a.add(
				own,
				roofDevice,
				gave,
			)
		}

		if err := a.addSent(ctx, tx, own, rs); err != nil {
			return err
		}

		heats := own.typ.Heats() && (a.steered[own.id] || !own.until.IsZero())
		if took := energies(rs, flex.HeatPower); heats && len(took) > 0 {
			a.add(
				own,
				heaterDevice,
				took,
			)
		}
	}

	return nil
}

// findHybrid notes whether an asset other than a battery reports what batteries take.
func (a *siteAccount) findHybrid(by map[flex.AssetID][]flex.Reading) {
	a.hybrid = slices.ContainsFunc(a.assets, func(own pastAsset) bool {
		other := own.typ != flex.Battery && !own.typ.Charges()
		return other && own.until.IsZero() && reports(by[own.id], flex.BatteryInverterPower)
	})
}

// addCharger adds what a charger took, and when something was plugged in at it.
func (a *siteAccount) addCharger(
	ctx context.Context,
	tx *store.Tx,
	own *pastAsset,
	rs []flex.Reading,
) error {
	plugged, err := tx.SessionSpans(
		ctx,
		[]flex.AssetID{own.id},
		a.span(),
	)
	if err != nil {
		return err
	}

	d := a.add(own, chargerDevice, seriesOf(settle.HalfHours(settle.Asset, rs)))
	d.plugged = plugged[own.id]

	return nil
}

// addBattery adds what a battery took. What an unplanned battery charged counts as the home's
// own use: no plan makes room for it.
func (a *siteAccount) addBattery(own *pastAsset, took forecast.Series) {
	planned := a.steered[own.id] || !own.until.IsZero()
	if own.typ != flex.Battery { // another asset reports it
		planned = a.plansBattery()
	}

	for p, e := range took {
		if !planned {
			took[p] = min(0, e)
		}
	}

	a.add(
		own,
		batteryDevice,
		took,
	)
}

// plansBattery reports whether a battery of the site is planned.
func (a *siteAccount) plansBattery() bool {
	return slices.ContainsFunc(a.assets, func(own pastAsset) bool {
		return own.typ == flex.Battery && a.steered[own.id]
	})
}

func (a *siteAccount) add(
	own *pastAsset,
	kind deviceKind,
	took forecast.Series,
) *siteDevice {
	d := siteDevice{
		kind:  kind,
		took:  took,
		until: own.until,
		lit:   map[time.Duration]bool{},
	}

	for p, e := range took {
		if at := p.Start(); d.from.IsZero() || at.Before(d.from) {
			d.from = at
		}
		if e > 0 {
			d.lit[timeOfDay(p)] = true
		}
	}

	longAgo := a.before.Start().Add(-HeatRead)
	d.longMetered = !d.from.After(longAgo)
	a.devices = append(a.devices, d)

	return &a.devices[len(a.devices)-1]
}

// timeOfDay is when in the day a half-hour begins, by the sun.
func timeOfDay(p flex.Period) time.Duration {
	at := p.Start().UTC()
	return at.Sub(at.Truncate(24 * time.Hour))
}

// drawn is what the home drew without some kinds of devices: what passed the boundary less
// what they took. A half-hour is left out if one of them is not known in it, or if the home
// has batteries and none of them reports anything.
func (a *siteAccount) drawn(kinds ...deviceKind) forecast.Series {
	load := forecast.Series{}
	for p, e := range a.net {
		took, known := a.taken(p, kinds)
		if known && a.batteryHeard(p) {
			load[p] = max(0, e-took)
		}
	}

	return load
}

// load is what the home drew: the boundary meter's import, less what its batteries and cars
// took, plus what the roof gave; its heaters are included.
func (a *siteAccount) load() forecast.Series {
	return a.drawn(chargerDevice, batteryDevice, roofDevice)
}

// taken is what all devices of some kinds took in a half-hour, and whether that is known.
func (a *siteAccount) taken(
	p flex.Period,
	kinds []deviceKind,
) (flex.WattHours, bool) {
	var sum flex.WattHours
	for i := range a.devices {
		d := &a.devices[i]
		if !slices.Contains(kinds, d.kind) {
			continue
		}

		took, known := d.energyIn(p)
		if !known {
			return 0, false
		}
		if d.kind == roofDevice {
			took = -took
		}

		sum += took
	}

	return sum, true
}

// batteryHeard reports whether any battery reports a half-hour, or the home then has no
// battery that ever reported.
func (a *siteAccount) batteryHeard(p flex.Period) bool {
	found := false
	for i := range a.devices {
		d := &a.devices[i]
		if d.kind != batteryDevice || d.goneAt(p) {
			continue
		}

		found = true
		if _, heard := d.took[p]; heard {
			return true
		}
	}

	return !found
}

// addSent is for a planned heater or battery that reports nothing: it adds what the device was
// sent to take. What such a battery was to discharge is not counted: a forecast made from it
// would grow by itself.
func (a *siteAccount) addSent(
	ctx context.Context,
	tx *store.Tx,
	own *pastAsset,
	rs []flex.Reading,
) error {
	if !a.steered[own.id] {
		return nil
	}

	took, guessed := forecast.Series{}, map[flex.Period]bool{}
	span := a.span()
	silent := !a.hybrid && !reports(rs, flex.BatteryInverterPower)
	if own.typ == flex.Battery && silent {
		powers, err := tx.BatteryHalfHours(
			ctx,
			own.id,
			span,
		)
		if err != nil {
			return fmt.Errorf("read what a battery was planned with: %w", err)
		}

		for p, w := range powers {
			took[p] = flex.WattHours(max(0, w) / 2)
			guessed[p] = w > 0
		}
	}

	if own.typ.Heats() && !reports(rs, flex.HeatPower) {
		halves, err := tx.HeatHalfHours(
			ctx,
			own.id,
			span,
		)
		if err != nil {
			return fmt.Errorf("read what a heater was planned with: %w", err)
		}

		for p, h := range halves {
			took[p] = h.Expected
			guessed[p] = h.Most > 0
		}
	}

	if len(took) > 0 {
		a.add(own, sentDevice, took).guessed = guessed
	}

	return nil
}

// reports is true if any of an asset's readings has a label.
func reports(rs []flex.Reading, label flex.Label) bool {
	return slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return r.Label == label
	})
}

// guessed reports whether what a device took in a half-hour is known only by what it was sent.
func (a *siteAccount) guessed(p flex.Period) bool {
	return slices.ContainsFunc(a.devices, func(d siteDevice) bool {
		return d.guessed[p]
	})
}

// roof is what all roofs gave, in the half-hours of which each is known. There is none where
// all were taken away: they give nothing more.
func (a *siteAccount) roof() forecast.Series {
	return a.roofOf(func(*siteDevice) bool { return true })
}

// roofAhead is what the roofs gave by which it is guessed at an instant what the site's roofs
// will give.
func (a *siteAccount) roofAhead(at time.Time) forecast.Series {
	return a.roofOf(func(d *siteDevice) bool { return a.goesOn(d, at) })
}

// goesOn reports whether a roof was there at an instant, or another one came in its place, as
// where an inverter was replaced: one that is still there and began to report about when the
// other one ended. A roof that was taken away from beside others gives nothing more.
func (a *siteAccount) goesOn(
	roof *siteDevice,
	at time.Time,
) bool {
	if roof.until.IsZero() || roof.until.After(at) {
		return true
	}

	var ended time.Time
	for p := range roof.took {
		ended = flex.Later(ended, p.End())
	}

	return slices.ContainsFunc(a.devices, func(d siteDevice) bool {
		there := d.kind == roofDevice && d.until.IsZero()
		return there && d.from.After(roof.from) && d.from.After(ended.Add(-24*time.Hour))
	})
}

// roofOf is roof of the roofs that count.
func (a *siteAccount) roofOf(counts func(*siteDevice) bool) forecast.Series {
	sum := forecast.Series{}
	there := func(d siteDevice) bool { return d.kind == roofDevice && d.until.IsZero() }
	if !slices.ContainsFunc(a.devices, there) {
		return sum
	}

	var roofs []*siteDevice
	for i := range a.devices {
		d := &a.devices[i]
		if d.kind == roofDevice && counts(d) {
			roofs = append(roofs, d)
			addTo(sum, d.took)
		}
	}

	for _, d := range roofs {
		for p := range sum {
			if _, known := d.energyIn(p); !known {
				delete(sum, p)
			}
		}
	}

	return sum
}

// deviceKind is what a device is.
type deviceKind int

const (
	chargerDevice deviceKind = iota
	batteryDevice
	roofDevice
	heaterDevice
	sentDevice // one that reports nothing, of which it is known what it was sent
)

// siteDevice is what took or gave energy behind a site's boundary that is not the home's own.
type siteDevice struct {
	kind    deviceKind
	took    forecast.Series // what it took, below zero where it gave; of a roof what it gave
	from    time.Time       // start of the first known half-hour
	until   time.Time       // zero: it is still there
	plugged []flex.Span     // of a charger: when a car was there; the end of one that still is is zero
	// of a roof, at which times of the day it ever gave something
	lit map[time.Duration]bool
	// it was metered for HeatRead or more
	longMetered bool
	// half-hours whose energy is known only by what it was sent to take
	guessed map[flex.Period]bool
}

// energyIn is what the device took in a half-hour, and whether that is known.
//
//   - A charger took nothing where nothing was plugged in.
//   - A battery is not there before its first reading.
//   - A roof gave nothing at a time of the day at which it never did: inverters sleep by night.
//   - A heater that was metered for HeatRead is taken to have drawn before, too, an unknown amount; so is a device that was sent plans for so long.
func (d *siteDevice) energyIn(p flex.Period) (flex.WattHours, bool) {
	if e, known := d.took[p]; known {
		return e, true
	}

	if d.goneAt(p) {
		return 0, true
	}

	before := p.Start().Before(d.from)

	switch d.kind {
	case chargerDevice:
		return 0, !pluggedInAt(d.plugged, p)
	case batteryDevice:
		return 0, before
	case roofDevice:
		return 0, before || !d.lit[timeOfDay(p)]
	}

	return 0, before && !d.longMetered
}

// goneAt reports whether the device had been taken away before a half-hour.
func (d *siteDevice) goneAt(p flex.Period) bool {
	return !d.until.IsZero() && !p.Start().Before(d.until)
}

// pluggedInAt reports whether a car was plugged in at any time of a half-hour.
func pluggedInAt(plugged []flex.Span, p flex.Period) bool {
	return slices.ContainsFunc(plugged, func(s flex.Span) bool {
		out := s.To
		if out.IsZero() {
			out = p.End()
		}
		return s.From.Before(p.End()) && out.After(p.Start())
	})
}

// energies are the half-hours that a device's readings of a power give in full.
func energies(rs []flex.Reading, power flex.Label) forecast.Series {
	var own []flex.Reading
	for _, r := range rs {
		if r.Label == power {
			// powers make energies alike, whatever they are of
			r.Label = flex.BoundaryImportPower
			own = append(own, r)
		}
	}

	return seriesOf(settle.HalfHours(settle.Boundary, own))
}

// seriesOf are the half-hours that are known of some days.
func seriesOf(days []settle.MeteredDay) forecast.Series {
	s := forecast.Series{}
	for _, day := range days {
		for n := 1; n <= day.Day.Periods(); n++ {
			if e, known := day.At(n); known {
				s[day.Day.Period(n)] = e
			}
		}
	}

	return s
}

func addTo(sum, s forecast.Series) {
	for p, e := range s {
		sum[p] += e
	}
}
