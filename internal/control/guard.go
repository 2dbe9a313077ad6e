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
	f *behindFuse,
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
		f.again[again] = append(f.again[again], all[k].Current.AssetID)
	}

	return all
}

// guardExport removes the discharge from the schedules of a site's cars if they would exceed
// the export limit together.
func (s *Service) guardExport(
	ctx context.Context,
	f *behindFuse,
	next []siteNext,
) {
	if law := f.passesExport(next); law != nil {
		s.refuse(ctx, next[0].Current.AssetID, law)
		f.dischargeNothing(next)
	}
}

// passesExport returns an error if the cars of a site would together discharge more than the
// site may export, or than a phase of its main fuse carries, by whichever of their schedules
// they follow; nil if not.
func (f *behindFuse) passesExport(next []siteNext) error {
	export := flex.NoLimit
	var givers []check.Device

	for _, car := range slices.Concat(f.cars, f.gone) {
		may := car.mayDischarge(f.from)
		giver := check.Device{
			Own:    flex.NoLimit,
			May:    may.lists,
			Phases: may.wired.Phases,
			Phase:  may.wired.Phase,
		}

		if car.charging != nil && len(car.discharges) > 0 && isSent(next, car) {
			giver.Next = car.discharges
			export = car.charging.Export
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

// dischargeNothing removes the discharge from the schedules that cars are about to be sent;
// they charge as planned.
func (f *behindFuse) dischargeNothing(next []siteNext) {
	for k := range next {
		s := &next[k].next

		if len(next[k].discharges) == 0 {
			continue
		}

		s.From.Discharge = s.From.Discharge.ChargedAlone()
		s.From.Discharge.Why = dischargeRefused
		again := f.now.Add(MarketInterval)
		f.again[again] = append(f.again[again], next[k].Current.AssetID)
	}
}

// devices returns a site's cars, in their order, and everything else that draws power there,
// as far as it is known: assets that are not planned, committed charging of batteries, and the
// home's own load.
func (f *behindFuse) devices() []check.Device {
	var all []check.Device
	for _, car := range f.cars {
		all = append(all, check.Device{
			Own:    car.from.Power,
			Least:  car.least(),
			May:    car.sent,
			Free:   true,
			Phases: car.from.Phases,
			Phase:  car.from.Phase,
		})
	}

	for _, o := range f.others {
		planned := o.battery && f.home != nil
		if !o.base && !o.asked && !planned {
			all = append(all, devicesOf([]draws{o})...)
		}
	}

	if f.home != nil {
		all = append(all, check.Device{
			Own:    f.home.device.Power,
			May:    [][]flex.Step{eachOnce(f.home.busy, f.home.device.Power)},
			Phases: f.home.wired.Phases,
			Phase:  f.home.wired.Phase,
		})
	}

	if f.base.known {
		all = append(all, f.ownLoad())
	}

	return all
}

// ownLoad returns the home's own load in the form of the check.
func (f *behindFuse) ownLoad() check.Device {
	var steps []flex.Step
	for p := flex.PeriodAt(f.from); p.Start().Before(f.last); p = p.Add(1) {
		steps = append(
			steps,
			flex.Step{Span: p.Span(), Limit: f.base.powerAt(p)},
		)
	}

	return check.Device{
		Own: f.base.most(),
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
	ahead *homeAhead,
	modes []battery.Mode,
	powers []flex.Watts,
) bool {
	meters := ahead.meter.over(ahead.periods)

	var refused bool
	for i, p := range ahead.periods {
		if ahead.isFixed(&b.Plan, i) {
			continue // sent before
		}
		if ahead.ordered(i) {
			continue // an operator's
		}

		m := meters[i]
		m.Power, m.Mode = device.Power, modes[i]
		m.Moves = powers[i]
		m.Net = ahead.load[i] - ahead.roof[i]
		if ahead.feeder != nil {
			if left, bounded := ahead.feeder.headroom(b.Asset.ID, p); bounded {
				m.Feeder = &left
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

// over returns a site's meter for some half-hours, in order, in the form of the check; without
// the battery that is to be checked.
func (m *meter) over(periods []flex.Period) []check.Meter {
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

	left := m.leftOver(periods, spans)
	cars := check.MostDrawn(devicesOf(m.into), spans)
	given := check.MostDrawn(devicesOf(m.mayDischarge), spans)
	others := check.MostDrawn(devicesOf(m.discharge), spans)
	out := m.outFuse(spans)

	for i := range periods {
		all[i].Car = cars[i] > 0
		all[i].Given = given[i]
		all[i].Others = others[i]
		if m.supply.Set {
			all[i].Import = left[i]
			all[i].Export = min(m.supply.Export, m.supply.Import)
			all[i].Out = out[i]
		}
	}

	return all
}

// outFuse returns the power that cars and other batteries leave of the site's main fuse to the
// discharge of the meter's asset, in some half-hours.
func (m *meter) outFuse(spans []flex.Span) []flex.Watts {
	fuse := check.MainFuse{Carries: m.supply.Import, Phases: m.supply.Fuse.Phases}
	own := check.Device{Phases: m.wired.Phases, Phase: m.wired.Phase}
	if fuse.Phases != 3 { // its sum is an export limit like the site's own
		fuse.Carries = flex.Unbounded
	}

	return check.LeastLeft(
		append(devicesOf(m.mayDischarge), devicesOf(m.discharge)...),
		spans,
		fuse,
		&own,
	)
}

// leftOver returns the power that all others at a site leave of its main fuse to the meter's
// asset, in some half-hours.
func (m *meter) leftOver(periods []flex.Period, spans []flex.Span) []flex.Watts {
	home := check.Device{Own: m.base.most(), May: [][]flex.Step{nil}}
	for i, p := range periods {
		home.May[0] = append(home.May[0], flex.Step{Span: spans[i], Limit: m.base.powerAt(p)})
	}

	fuse := check.MainFuse{Carries: m.supply.Import, Phases: m.supply.Fuse.Phases}
	own := check.Device{Phases: m.wired.Phases, Phase: m.wired.Phase}

	return check.LeastLeft(append(devicesOf(m.may), home), spans, fuse, &own)
}

// devicesOf returns loads in the form of the check.
func devicesOf(all []draws) []check.Device {
	var devices []check.Device
	for _, o := range all {
		devices = append(
			devices,
			check.Device{
				Own:    o.power,
				May:    o.lists,
				Free:   o.free,
				Phases: o.wired.Phases,
				Phase:  o.wired.Phase,
			},
		)
	}
	return devices
}
