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

// HeatRead is how long a heater must have been metered so that it is assumed to have drawn an
// unknown energy before its first reading too.
const HeatRead = 7 * 24 * time.Hour

// readSiteAccount reads the energy at a site's boundary and of its devices in the days before
// one. Readings of the boundary are only used from times of the user's consent. The account is
// empty if no asset sends steady readings.
func readSiteAccount(
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

	a.net, a.boundaryReadings = boundaryOf(by, a.meters(), consent[site])

	err = a.addDevices(ctx, tx, by)

	return a, err
}

// siteAccount has the past energy at a site's boundary, and of the devices behind it.
type siteAccount struct {
	before           flex.Day
	assets           []pastAsset
	planned          map[flex.AssetID]bool // the assets that flexd plans
	net              forecast.Series       // at the boundary
	boundaryReadings store.PlanRead        // the readings of the boundary that were used
	devices          []siteDevice
	// another asset, such as a solar inverter, reports the energy of batteries
	hybrid bool
}

// pastAsset is an asset of a site, or one that was removed.
type pastAsset struct {
	id        flex.AssetID
	typ       flex.AssetType
	removedAt time.Time // zero if it was not removed
	metered   bool      // it has sent steady readings
}

// days returns the days of the account, the newest first.
func (a *siteAccount) days() []flex.Day {
	days := make([]flex.Day, forecast.Days)
	for k := range days {
		days[k] = a.before.Add(-k - 1)
	}

	return days
}

// span returns the time of these days.
func (a *siteAccount) span() flex.Span {
	return flex.Span{
		From: a.before.Add(-forecast.Days).Start(),
		To:   a.before.Start(),
	}
}

// readAssets finds the assets that may have readings: those of the site in its order, then
// those that were removed. It finds none if no present asset sends steady readings.
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

	a.planned, err = tx.Steered(ctx, site)
	if err != nil {
		return fmt.Errorf("read what of the site is planned: %w", err)
	}

	for i := range assets {
		own := pastAsset{
			id:      assets[i].ID,
			typ:     assets[i].Type,
			metered: steady[assets[i].ID],
		}
		if own.metered || own.typ.Charges() || a.planned[own.id] {
			a.assets = append(a.assets, own)
		}
	}

	former, err := tx.FormerAssets(ctx, site, a.before.Add(-forecast.Days).Start())
	if err != nil {
		return fmt.Errorf("read which assets the site had: %w", err)
	}

	for _, g := range former {
		a.assets = append(a.assets, pastAsset{
			id:        g.ID,
			typ:       g.Type,
			removedAt: g.GoneAt,
			metered:   true,
		})
	}

	return nil
}

// meters returns the assets that may have reported the energy at the boundary.
func (a *siteAccount) meters() []flex.AssetID {
	var ids []flex.AssetID
	for _, own := range a.assets {
		if own.metered {
			ids = append(ids, own.id)
		}
	}

	return ids
}

// readings returns the readings of each asset.
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

// addDevices computes the energy of each device.
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
		} else if metered := energies(rs, flex.BatteryInverterPower); len(metered) > 0 {
			a.addBattery(own, metered)
		}

		if generated := energies(rs, flex.SolarPower); len(generated) > 0 {
			a.add(
				own,
				roofDevice,
				generated,
			)
		}

		if err := a.addPlannedEnergy(ctx, tx, own, rs); err != nil {
			return err
		}

		heats := own.typ.Heats() && (a.planned[own.id] || !own.removedAt.IsZero())
		if metered := energies(rs, flex.HeatPower); heats && len(metered) > 0 {
			a.add(
				own,
				heaterDevice,
				metered,
			)
		}
	}

	return nil
}

// findHybrid sets whether an asset other than a battery reports the energy of batteries.
func (a *siteAccount) findHybrid(by map[flex.AssetID][]flex.Reading) {
	a.hybrid = slices.ContainsFunc(a.assets, func(own pastAsset) bool {
		other := own.typ != flex.Battery && !own.typ.Charges()
		return other && own.removedAt.IsZero() && reports(by[own.id], flex.BatteryInverterPower)
	})
}

// addCharger adds the energy of a charger, and when something was plugged in.
func (a *siteAccount) addCharger(
	ctx context.Context,
	tx *store.Tx,
	own *pastAsset,
	rs []flex.Reading,
) error {
	pluggedIn, err := tx.SessionSpans(
		ctx,
		[]flex.AssetID{own.id},
		a.span(),
	)
	if err != nil {
		return err
	}

	d := a.add(own, chargerDevice, seriesOf(settle.HalfHours(settle.Asset, rs)))
	d.pluggedIn = pluggedIn[own.id]

	return nil
}

// addBattery adds the energy of a battery. What an unplanned battery charged counts as the
// home's own load, as no plan reserves power for it.
func (a *siteAccount) addBattery(own *pastAsset, energies forecast.Series) {
	planned := a.planned[own.id] || !own.removedAt.IsZero()
	if own.typ != flex.Battery { // reported by another asset
		planned = a.plansBattery()
	}

	for p, e := range energies {
		if !planned {
			energies[p] = min(0, e)
		}
	}

	a.add(
		own,
		batteryDevice,
		energies,
	)
}

// plansBattery reports whether a battery of the site is planned.
func (a *siteAccount) plansBattery() bool {
	return slices.ContainsFunc(a.assets, func(own pastAsset) bool {
		return own.typ == flex.Battery && a.planned[own.id]
	})
}

func (a *siteAccount) add(
	own *pastAsset,
	kind deviceKind,
	energies forecast.Series,
) *siteDevice {
	d := siteDevice{
		kind:        kind,
		energies:    energies,
		removedAt:   own.removedAt,
		generatesAt: map[time.Duration]bool{},
	}

	for p, e := range energies {
		if at := p.Start(); d.from.IsZero() || at.Before(d.from) {
			d.from = at
		}
		if e > 0 {
			d.generatesAt[timeOfDay(p)] = true
		}
	}

	longAgo := a.before.Start().Add(-HeatRead)
	d.longMetered = !d.from.After(longAgo)
	a.devices = append(a.devices, d)

	return &a.devices[len(a.devices)-1]
}

// timeOfDay returns when a half-hour begins in the UTC day, which follows the sun.
func timeOfDay(p flex.Period) time.Duration {
	at := p.Start().UTC()
	return at.Sub(at.Truncate(24 * time.Hour))
}

// loadWithout returns the energy at the boundary less that of some kinds of devices. A
// half-hour is left out if one of these is not known in it, or if the home has batteries of
// which none reports anything.
func (a *siteAccount) loadWithout(kinds ...deviceKind) forecast.Series {
	load := forecast.Series{}
	for p, e := range a.net {
		energy, known := a.energyOf(p, kinds)
		if known && a.batteryKnown(p) {
			load[p] = max(0, e-energy)
		}
	}

	return load
}

// load returns what the home drew: the energy at the boundary, less that of batteries and
// chargers, plus solar generation. Heaters are included.
func (a *siteAccount) load() forecast.Series {
	return a.loadWithout(chargerDevice, batteryDevice, roofDevice)
}

// energyOf returns the energy of all devices of some kinds in a half-hour, and whether that is
// known.
func (a *siteAccount) energyOf(
	p flex.Period,
	kinds []deviceKind,
) (flex.WattHours, bool) {
	var sum flex.WattHours
	for i := range a.devices {
		d := &a.devices[i]
		if !slices.Contains(kinds, d.kind) {
			continue
		}

		energy, known := d.energyIn(p)
		if !known {
			return 0, false
		}
		if d.kind == roofDevice {
			energy = -energy
		}

		sum += energy
	}

	return sum, true
}

// batteryKnown reports whether any battery reports a half-hour, or the home then has no
// battery that ever reported.
func (a *siteAccount) batteryKnown(p flex.Period) bool {
	found := false
	for i := range a.devices {
		d := &a.devices[i]
		if d.kind != batteryDevice || d.removedBefore(p) {
			continue
		}

		found = true
		if _, heard := d.energies[p]; heard {
			return true
		}
	}

	return !found
}

// addPlannedEnergy adds the planned energy of a heater or battery that is planned and reports
// nothing. Planned discharge is not counted: it was planned from such a forecast itself, and
// would make the next one grow.
func (a *siteAccount) addPlannedEnergy(
	ctx context.Context,
	tx *store.Tx,
	own *pastAsset,
	rs []flex.Reading,
) error {
	if !a.planned[own.id] {
		return nil
	}

	energies, estimated := forecast.Series{}, map[flex.Period]bool{}
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
			energies[p] = flex.WattHours(max(0, w) / 2)
			estimated[p] = w > 0
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
			energies[p] = h.Expected
			estimated[p] = h.Most > 0
		}
	}

	if len(energies) > 0 {
		a.add(own, plannedDevice, energies).estimated = estimated
	}

	return nil
}

// reports reports whether any of some readings has a label.
func reports(rs []flex.Reading, label flex.Label) bool {
	return slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return r.Label == label
	})
}

// isEstimated reports whether the energy of any device in a half-hour is only known from its
// plan.
func (a *siteAccount) isEstimated(p flex.Period) bool {
	return slices.ContainsFunc(a.devices, func(d siteDevice) bool {
		return d.estimated[p]
	})
}

// roof returns the generation of all solar panels, in the half-hours in which all of it is
// known. It is empty if all panels were removed.
func (a *siteAccount) roof() forecast.Series {
	return a.roofOf(func(*siteDevice) bool { return true })
}

// roofAhead returns the past generation from which that of the panels at an instant is
// forecast.
func (a *siteAccount) roofAhead(at time.Time) forecast.Series {
	return a.roofOf(func(d *siteDevice) bool { return a.stillGenerates(d, at) })
}

// stillGenerates reports whether solar panels still generate at an instant: they were not
// removed, or their inverter was replaced by another one. That is one which is present and
// began to report about when the old one ended. Panels that were removed while others stayed
// generate nothing more.
func (a *siteAccount) stillGenerates(
	roof *siteDevice,
	at time.Time,
) bool {
	if roof.removedAt.IsZero() || roof.removedAt.After(at) {
		return true
	}

	var ended time.Time
	for p := range roof.energies {
		ended = flex.Later(ended, p.End())
	}

	return slices.ContainsFunc(a.devices, func(d siteDevice) bool {
		there := d.kind == roofDevice && d.removedAt.IsZero()
		return there && d.from.After(roof.from) && d.from.After(ended.Add(-24*time.Hour))
	})
}

// roofOf is roof for those panels that count.
func (a *siteAccount) roofOf(counts func(*siteDevice) bool) forecast.Series {
	sum := forecast.Series{}
	there := func(d siteDevice) bool { return d.kind == roofDevice && d.removedAt.IsZero() }
	if !slices.ContainsFunc(a.devices, there) {
		return sum
	}

	var roofs []*siteDevice
	for i := range a.devices {
		d := &a.devices[i]
		if d.kind == roofDevice && counts(d) {
			roofs = append(roofs, d)
			addTo(sum, d.energies)
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

// deviceKind is the kind of a device.
type deviceKind int

const (
	chargerDevice deviceKind = iota
	batteryDevice
	roofDevice
	heaterDevice
	plannedDevice // it reports nothing: its energy is known from its plans
)

// siteDevice is a device behind a site's boundary whose energy is not the home's own load.
type siteDevice struct {
	kind      deviceKind
	energies  forecast.Series // what it drew, negative for discharge; of solar panels, what they generated
	from      time.Time       // start of the first known half-hour
	removedAt time.Time       // zero if it was not removed
	pluggedIn []flex.Span     // of a charger: when a car was plugged in; a zero end if it still is
	// of solar panels: the times of day at which they ever generated something
	generatesAt map[time.Duration]bool
	// it was metered for HeatRead or more
	longMetered bool
	// half-hours whose energy is only known from its plan
	estimated map[flex.Period]bool
}

// energyIn returns the energy of the device in a half-hour, and whether it is known. Where
// nothing was reported:
//
//   - A charger drew nothing if nothing was plugged in.
//   - A battery did not exist before its first reading.
//   - Solar panels generated nothing at a time of day at which they never did: inverters are
//     off at night.
//   - A heater that was metered for HeatRead drew an unknown energy before that too; so did a
//     device that was sent plans for so long.
func (d *siteDevice) energyIn(p flex.Period) (flex.WattHours, bool) {
	if e, known := d.energies[p]; known {
		return e, true
	}

	if d.removedBefore(p) {
		return 0, true
	}

	before := p.Start().Before(d.from)

	switch d.kind {
	case chargerDevice:
		return 0, !pluggedInAt(d.pluggedIn, p)
	case batteryDevice:
		return 0, before
	case roofDevice:
		return 0, before || !d.generatesAt[timeOfDay(p)]
	}

	return 0, before && !d.longMetered
}

// removedBefore reports whether the device had been removed before a half-hour.
func (d *siteDevice) removedBefore(p flex.Period) bool {
	return !d.removedAt.IsZero() && !p.Start().Before(d.removedAt)
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

// energies returns the half-hours that readings of a power cover in full.
func energies(rs []flex.Reading, power flex.Label) forecast.Series {
	var own []flex.Reading
	for _, r := range rs {
		if r.Label == power {
			// settle converts every power to energy in the same way
			r.Label = flex.BoundaryImportPower
			own = append(own, r)
		}
	}

	return seriesOf(settle.HalfHours(settle.Boundary, own))
}

// seriesOf returns the known half-hours of some days.
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
