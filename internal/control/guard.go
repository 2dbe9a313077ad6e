package control

import (
	"context"
	"slices"
	"strings"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Refused returns the number of plans of sites and batteries that were refused by the check
// before sending, since this process began.
func (s *Service) Refused() int64 { return s.refused.Load() }

// withoutRefused returns origins without the mark that the previous plan was refused.
func withoutRefused(origins string) string {
	return strings.TrimSuffix(origins, " "+store.PlanRefused)
}

// planRefused reports whether a schedule is the permitted part of a refused plan.
func planRefused(e *store.PlanInputs) bool {
	return strings.HasSuffix(e.Origins, " "+store.PlanRefused)
}

// refuse counts a plan that is not sent as it is, and logs it.
func (s *Service) refuse(
	ctx context.Context,
	asset flex.AssetID,
	law error,
) {
	s.refused.Add(1)
	s.log().ErrorContext(
		ctx,
		"a site's plan breaks a limit and is not sent: what is left of it is",
		"asset",
		asset,
		"law",
		law,
	)
}

// siteNext is a car with the schedule that it is about to be sent.
type siteNext struct {
	*siteCar
	next store.Schedule
}

// guarded returns the schedules that the cars of a site are about to be sent, checked against
// the main fuse by check.Fuse, which shares no code with the planner. Schedules that break the
// fuse are cut down to what it permits, are marked as refused in their origins, and are
// planned again after MarketInterval.
func (s *Service) guarded(
	ctx context.Context,
	f *sitePlan,
) []siteNext {
	var of []int // the index in f.cars of each of all
	devices := f.devices()

	var all []siteNext
	for i, car := range f.cars {
		if schedule, changed := f.scheduleOf(car); changed {
			all = append(all, siteNext{car, schedule})
			of = append(of, i)
			devices[i].Next = schedule.Steps
		}
	}

	s.guardExport(ctx, f, all)
	if f.fuse == 0 || len(all) == 0 {
		return all
	}

	law := check.Fuse(devices, f.mainFuse())
	if law == nil {
		return all
	}

	s.refuse(ctx, all[0].Current.AssetID, law)
	check.ClipToFuse(devices, f.mainFuse())
	for k := range all {
		schedule := &all[k].next
		schedule.Steps = devices[of[k]].Next
		schedule.From.Discharge = schedule.From.Discharge.ChargedAlone()
		schedule.From.Origins += " " + store.PlanRefused
		again := f.now.Add(MarketInterval)
		f.replanTimes[again] = append(f.replanTimes[again], all[k].Current.AssetID)
	}

	return all
}

// guardExport removes the discharge from the schedules of a site's cars if they would exceed
// the export limit together.
func (s *Service) guardExport(
	ctx context.Context,
	f *sitePlan,
	next []siteNext,
) {
	if law := f.passesExport(next); law != nil {
		s.refuse(ctx, next[0].Current.AssetID, law)
		f.removeDischarge(next)
	}
}

// passesExport returns an error if the cars of a site would together discharge more than the
// site may export, or than a phase of its main fuse carries, by whichever of their schedules
// they follow; nil if not.
func (f *sitePlan) passesExport(next []siteNext) error {
	export := flex.NoLimit
	var givers []check.Device

	for _, car := range slices.Concat(f.cars, f.finishedCars) {
		may := car.possibleDischarge(f.from)
		giver := check.Device{
			Own:    flex.NoLimit,
			May:    may.lists,
			Phases: may.wiring.Phases,
			Phase:  may.wiring.Phase,
		}

		if car.state != nil && len(car.discharges) > 0 && isSent(next, car) {
			giver.Next = car.discharges
			export = car.state.Export
		}

		givers = append(givers, giver)
	}

	law := check.Fuse(givers, check.MainFuse{Carries: export})
	if law == nil && f.fuse > 0 {
		law = check.Fuse(givers, f.mainFuse())
	}

	return law
}

// isSent reports whether a car is among those that are sent a schedule.
func isSent(next []siteNext, car *siteCar) bool {
	return slices.ContainsFunc(next, func(n siteNext) bool {
		return n.siteCar == car
	})
}

// removeDischarge removes the discharge from the schedules that cars are about to be sent;
// they charge as planned.
func (f *sitePlan) removeDischarge(next []siteNext) {
	for k := range next {
		s := &next[k].next

		if len(next[k].discharges) == 0 {
			continue
		}

		s.From.Discharge = s.From.Discharge.ChargedAlone()
		s.From.Discharge.Why = dischargeCheckFailed
		again := f.now.Add(MarketInterval)
		f.replanTimes[again] = append(f.replanTimes[again], next[k].Current.AssetID)
	}
}

// devices returns a site's cars, in their order, and everything else that draws power there,
// as far as it is known: assets that are not planned, committed charging of batteries, and the
// home's own load.
func (f *sitePlan) devices() []check.Device {
	var all []check.Device
	for _, car := range f.cars {
		all = append(all, check.Device{
			Own:    car.from.Power,
			Least:  car.least(),
			May:    car.possibleSteps,
			Free:   true,
			Phases: car.from.Phases,
			Phase:  car.from.Phase,
		})
	}

	for _, o := range f.others {
		planned := o.isBattery && f.home != nil
		if !o.isHome && !o.isRequest && !planned {
			all = append(all, devicesOf([]loadBound{o})...)
		}
	}

	if f.home != nil {
		all = append(all, check.Device{
			Own:    f.home.device.Power,
			May:    [][]flex.Step{distinctHalfHours(f.home.certainCharging, f.home.device.Power)},
			Phases: f.home.wiring.Phases,
			Phase:  f.home.wiring.Phase,
		})
	}

	if f.base.known {
		all = append(all, f.ownLoad())
	}

	return all
}

// ownLoad returns the home's own load in the form of the check.
func (f *sitePlan) ownLoad() check.Device {
	var steps []flex.Step
	for p := flex.PeriodAt(f.from); p.Start().Before(f.lastEnd); p = p.Add(1) {
		steps = append(
			steps,
			flex.Step{Span: p.Span(), Limit: f.base.powerAt(p)},
		)
	}

	return check.Device{
		Own: f.base.max(),
		May: [][]flex.Step{steps},
	}
}

// guardBattery checks what a battery is sent against its site's fuse, export limit and cars,
// by check.AtMeter. In a half-hour that breaks one of them the battery is locked: it neither
// charges nor discharges. It reports whether there was one.
func (s *Service) guardBattery(
	ctx context.Context,
	b *store.Battery,
	device home.Battery,
	ahead *batteryInputs,
	modes []battery.Mode,
	powers []flex.Watts,
) bool {
	meters := ahead.meter.checkedMeters(ahead.periods)

	var refused bool
	for i, p := range ahead.periods {
		if ahead.isFixed(&b.Plan, i) {
			continue // sent before
		}
		if ahead.isDispatched(i) {
			continue // an operator's
		}

		m := meters[i]
		m.Power, m.Mode = device.Power, modes[i]
		m.Moves = powers[i]
		m.Net = ahead.load[i] - ahead.roof[i]
		if ahead.feeder != nil {
			if remaining, bounded := ahead.feeder.headroom(b.Asset.ID, p); bounded {
				m.Feeder = &remaining
			}
		}

		if law := check.AtMeter(m); law != nil {
			s.refuse(ctx, b.Asset.ID, law)
			modes[i], powers[i] = battery.ModeLock, 0
			refused = true
		}
	}

	return refused
}

// checkedMeters returns a site's meter for some half-hours, in order, in the form of the
// check; without the battery that is to be checked.
func (m *meter) checkedMeters(periods []flex.Period) []check.Meter {
	all := make([]check.Meter, len(periods))
	spans := make([]flex.Span, len(periods))
	for i, p := range periods {
		all[i].Import = flex.Unbounded
		all[i].Out = flex.Unbounded
		all[i].Export = flex.Unbounded
		spans[i] = p.Span()
	}

	if m == nil {
		return all
	}

	remaining := m.importHeadroom(periods, spans)
	cars := check.MostDrawn(devicesOf(m.noDischargeInto), spans)
	given := check.MostDrawn(devicesOf(m.possibleDischarges), spans)
	others := check.MostDrawn(devicesOf(m.batteryDischarges), spans)
	out := m.dischargeLimits(spans)

	for i := range periods {
		all[i].Car = cars[i] > 0
		all[i].Given = given[i]
		all[i].Others = others[i]
		if m.supply.Set {
			all[i].Import = remaining[i]
			all[i].Export = min(m.supply.Export, m.supply.Import)
			all[i].Out = out[i]
		}
	}

	return all
}

// dischargeLimits returns the power that cars and other batteries leave of the site's main
// fuse to the discharge of the meter's asset, in some half-hours.
func (m *meter) dischargeLimits(spans []flex.Span) []flex.Watts {
	fuse := check.MainFuse{Carries: m.supply.Import, Phases: m.supply.Fuse.Phases}
	own := check.Device{Phases: m.wiring.Phases, Phase: m.wiring.Phase}
	if fuse.Phases != 3 { // its sum is an export limit like the site's own
		fuse.Carries = flex.Unbounded
	}

	return check.LeastLeft(
		append(devicesOf(m.possibleDischarges), devicesOf(m.batteryDischarges)...),
		spans,
		fuse,
		&own,
	)
}

// importHeadroom returns the power that all others at a site leave of its main fuse to the
// meter's asset, in some half-hours.
func (m *meter) importHeadroom(periods []flex.Period, spans []flex.Span) []flex.Watts {
	home := check.Device{Own: m.base.max(), May: [][]flex.Step{nil}}
	for i, p := range periods {
		home.May[0] = append(home.May[0], flex.Step{Span: spans[i], Limit: m.base.powerAt(p)})
	}

	fuse := check.MainFuse{Carries: m.supply.Import, Phases: m.supply.Fuse.Phases}
	own := check.Device{Phases: m.wiring.Phases, Phase: m.wiring.Phase}

	return check.LeastLeft(append(devicesOf(m.possibleDraws), home), spans, fuse, &own)
}

// devicesOf returns loads in the form of the check.
func devicesOf(all []loadBound) []check.Device {
	var devices []check.Device
	for _, o := range all {
		devices = append(
			devices,
			check.Device{
				Own:    o.power,
				May:    o.lists,
				Free:   o.openEnded,
				Phases: o.wiring.Phases,
				Phase:  o.wiring.Phase,
			},
		)
	}
	return devices
}
