package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteAheadPeriods is the number of half-hours for which a site's plans are listed.
const siteAheadPeriods = 48

// SiteAhead is what the devices of a site are planned to do in the next 24 hours, from the
// running half-hour on.
type SiteAhead struct {
	Org    flex.OrgID
	Supply flex.Supply
	// devices with a plan: cars that are plugged in, batteries, tanks and heat pumps
	Devices []SiteDevice
	Periods []SitePeriod
	Lines   []string // what limits which device, in sentences
}

// SiteDevice is a device of a site.
type SiteDevice struct {
	ID   flex.AssetID
	Name string // the client's own, else its type
	Type flex.AssetType
}

// SitePeriod is one half-hour: mean powers in kW, positive into a device.
type SitePeriod struct {
	flex.Period
	Price   flex.Price // of the market
	Known   bool       // the price is
	Home    float64    // expected of the home itself, less its solar generation
	Devices []float64  // of each device, in the order of SiteAhead.Devices
	Meter   float64    // the sum
}

// SiteAhead returns the plans of a site's devices, for a site of any organisation. An unknown
// site is NotFound; one without plans has no devices.
func (s *Service) SiteAhead(
	ctx context.Context,
	site flex.SiteID,
) (SiteAhead, error) {
	var a SiteAhead
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		a = SiteAhead{}

		var err error
		a.Org, err = all.SiteOrg(ctx, site)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, a.Org)
		if err != nil {
			return err
		}

		return s.readAhead(ctx, tx, site, &a)
	})

	return a, err
}

// readAhead is SiteAhead within a transaction of its organisation.
func (s *Service) readAhead(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	a *SiteAhead,
) error {
	record, err := tx.Site(ctx, site)
	if err != nil {
		return err
	}

	a.Supply = record.Supply
	if err := a.addPrices(ctx, tx); err != nil {
		return err
	}

	if a.Supply.Set {
		base, err := baseAt(ctx, tx, site)
		if err != nil {
			return err
		}

		for i := range a.Periods {
			a.Periods[i].Home = base.powerAt(a.Periods[i].Period).KW()
		}
	}

	names, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return err
	}

	if err := a.addCars(ctx, tx, site, names); err != nil {
		return err
	}

	if err := s.addBatteries(ctx, tx, a, names); err != nil {
		return err
	}

	if err := a.addHeaters(ctx, tx, site, names); err != nil {
		return err
	}

	a.sum()

	return nil
}

// addPrices adds the half-hours, with the market's prices.
func (a *SiteAhead) addPrices(ctx context.Context, tx *store.Tx) error {
	first := flex.PeriodAt(tx.Now())
	for i := range siteAheadPeriods {
		a.Periods = append(a.Periods, SitePeriod{Period: first.Add(i)})
	}

	ps, err := tx.Prices(ctx, flex.Span{
		From: first.Start(),
		To:   first.Add(siteAheadPeriods).Start(),
	})

	for _, p := range ps {
		if i := p.Period.Sub(first); i >= 0 && i < len(a.Periods) {
			a.Periods[i].Price, a.Periods[i].Known = p.Price, p.Known
		}
	}

	return err
}

// add adds a device with its powers.
func (a *SiteAhead) add(asset *flex.Asset, kw func(flex.Period) float64) {
	device := SiteDevice{asset.ID, asset.ExternalID, asset.Type}
	if device.Name == "" {
		device.Name = string(asset.Type)
	}

	a.Devices = append(a.Devices, device)
	for i := range a.Periods {
		a.Periods[i].Devices = append(
			a.Periods[i].Devices,
			kw(a.Periods[i].Period),
		)
	}
}

// addCars adds the cars that are plugged in and have a schedule.
func (a *SiteAhead) addCars(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	assets []flex.Asset,
) error {
	found, err := tx.PlannedAt(ctx, site)
	if err != nil {
		return fmt.Errorf("read the site's schedules: %w", err)
	}

	for i := range found {
		s := &found[i].Current
		m := meter{plannedDraws: []loadBound{{
			lists: [][]flex.Step{stepsWithin(s.Steps, flex.Span{
				From: tx.Now(),
				To:   flex.Later(s.From.ReadyBy, s.From.ChargeNow.To),
			})},
			power: s.From.Power,
		}}}

		discharged := []loadBound{{
			lists: [][]flex.Step{dischargeSteps(s, tx.Now())},
			power: flex.Unbounded,
		}}

		asset := assetByID(assets, s.AssetID)
		a.add(asset, func(p flex.Period) float64 {
			return 2 * (m.carCharge(p) - energyIn(discharged, p)).KWh()
		})

		x, err := explanationOf(ctx, tx, s.EventID)
		if err != nil {
			return err
		}

		for _, line := range x.CapLines() {
			a.Lines = append(
				a.Lines,
				a.Devices[len(a.Devices)-1].Name+": "+line,
			)
		}
	}

	return nil
}

func assetByID(assets []flex.Asset, id flex.AssetID) *flex.Asset {
	for i := range assets {
		if assets[i].ID == id {
			return &assets[i]
		}
	}

	return &flex.Asset{ID: id}
}

// addBatteries adds the batteries that have a plan, and what the home is expected to draw by
// it.
func (s *Service) addBatteries(
	ctx context.Context,
	tx *store.Tx,
	a *SiteAhead,
	assets []flex.Asset,
) error {
	for i := range assets {
		if assets[i].Type != flex.Battery {
			continue
		}

		why, _, err := s.whyBattery(ctx, tx, assets[i].ID, nil)
		switch flex.KindOf(err) {
		case flex.NotFound, flex.Forbidden: // nothing is planned of it
			continue
		}
		if err != nil {
			return err
		}

		a.addBattery(&assets[i], &why)
	}

	return nil
}

// addBattery adds one battery.
func (a *SiteAhead) addBattery(asset *flex.Asset, why *BatteryWhy) {
	powers := map[flex.Period]float64{}
	for i, power := range why.Powers() {
		powers[why.Periods[i].Period] = power.KW()
	}

	for i := range a.Periods {
		n := a.Periods[i].Period.Sub(why.Periods[0].Period)
		if n >= 0 && n < len(why.Periods) {
			a.Periods[i].Home = 2 * (why.Periods[n].Load -
				why.Periods[n].Roof).KWh()
		}
	}

	a.add(asset, func(p flex.Period) float64 { return powers[p] })
	for _, w := range why.Stretches() {
		if w.Mode != battery.ModeLock {
			continue
		}

		a.Lines = append(
			a.Lines,
			fmt.Sprintf(
				"%s: From %s to %s %s.",
				a.Devices[len(a.Devices)-1].Name,
				flex.Clock(w.From, flex.London, "Mon 15:04"),
				flex.Clock(w.To, flex.London, "Mon 15:04"),
				w.itText(),
			),
		)
	}
}

// addHeaters adds the tanks and heat pumps that have a plan. The home's own load does not
// contain what they draw.
func (a *SiteAhead) addHeaters(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	assets []flex.Asset,
) error {
	plans, err := tx.TankPlansAt(ctx, site)
	if err != nil {
		return fmt.Errorf("read the plans of the site's heaters: %w", err)
	}

	for i := range plans {
		var steps []flex.Step
		for _, d := range plans[i].Draws() {
			steps = append(steps, flex.Step{Span: d.Span, Limit: d.Power})
		}

		drawn := []loadBound{{lists: [][]flex.Step{steps}, power: flex.Unbounded}}
		a.add(assetByID(assets, plans[i].AssetID), func(p flex.Period) float64 {
			return 2 * energyIn(drawn, p).KWh()
		})
	}

	return nil
}

// Waits is why a battery may not use every mode in a half-hour.
type Waits string

// The reasons.
const (
	WaitsNot Waits = ""
	// a car charges, and a battery does not discharge into it
	WaitsForCar Waits = "car"
	// a car discharges, and a battery does not charge from it
	WaitsForDischarging Waits = "car_gives"
	// other loads leave it no headroom under the main fuse
	WaitsForFuse Waits = "fuse"
	// at full power it would exceed the export limit
	WaitsForExport Waits = "export"
	// other batteries of its feeder use the feeder's export limit
	WaitsForFeeder Waits = "feeder"
	// cars and other batteries leave it no headroom under a cap
	WaitsForCap Waits = "cap"
)

// WaitText says why a battery waits, and until when.
func WaitText(w Waits, until time.Time) string {
	at := flex.Clock(until, flex.London, "15:04")
	switch w {
	case WaitsForFuse:
		return "the car needs the main fuse until " + at
	case WaitsForDischarging:
		return "the car gives until " + at +
			" and it does not charge from a car"
	}

	return "the car charges until " + at +
		" and it does not discharge into a car"
}

// sum adds up the power at the meter.
func (a *SiteAhead) sum() {
	for i := range a.Periods {
		p := &a.Periods[i]
		p.Meter = p.Home
		for _, kw := range p.Devices {
			p.Meter += kw
		}
	}
}
