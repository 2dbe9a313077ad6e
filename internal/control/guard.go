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

// Refused says how many plans of sites and batteries the check before sending refused since this process
// began.
func (s *Service) Refused() int64 { return s.refused.Load() }

// passed are origins without the word that a plan before was refused.
func passed(origins string) string {
	return strings.TrimSuffix(origins, " "+store.PlanRefused)
}

// planRefused reports whether a schedule is what was left of a refused plan.
func planRefused(e *store.PlanInputs) bool {
	return strings.HasSuffix(e.Origins, " "+store.PlanRefused)
}

// refuse counts a plan that is not sent, and says so.
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

// siteNext is a car with what it is about to be sent.
type siteNext struct {
	*siteCar
	next store.Schedule
}

// guarded lists what the cars of a site are about to be sent. It is checked against the main fuse by
// check.Fuse, which shares nothing with what planned it. What breaks it is cut down to what the fuse leaves, is
// said to be so, and is planned again after a while.
func (s *Service) guarded(
	ctx context.Context,
	f *behindFuse,
) []siteNext {
	var of []int // the place of each car that is sent something
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

// guardExport has what the cars of a site are about to be sent give nothing if they would pass the export limit together.
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

// passesExport says where cars would give more together than their site may export, or than a phase of its main fuse carries, whichever
// of their schedules they follow; nil if they do not.
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

// dischargeNothing has cars that are about to be sent a schedule by which they give charge as it says, and give nothing.
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

// devices are a site's cars, in their order, and what else draws there, as far as it is known: what is not
// planned, what batteries charge with for sure, and the home's own load.
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

// ownLoad is the home's own load as the check knows it.
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

// guardBattery checks what a battery is sent against its site's fuse, export limit and cars, by
// check.AtMeter. A half-hour that breaks one is locked: nothing is charged or given. It reports whether any was.
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

// over is a site's meter in some half-hours, in order, as the check knows it, beside a battery of which nothing
// is said.
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

// outFuse is what of the site's main fuse cars and other batteries leave to what the asset whose meter it is gives, in
// some half-hours.
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

// leftOver is what all others at a site leave of its main fuse to the asset whose meter it is, in some half-hours.
func (m *meter) leftOver(periods []flex.Period, spans []flex.Span) []flex.Watts {
	home := check.Device{Own: m.base.most(), May: [][]flex.Step{nil}}
	for i, p := range periods {
		home.May[0] = append(home.May[0], flex.Step{Span: spans[i], Limit: m.base.powerAt(p)})
	}

	fuse := check.MainFuse{Carries: m.supply.Import, Phases: m.supply.Fuse.Phases}
	own := check.Device{Phases: m.wired.Phases, Phase: m.wired.Phase}

	return check.LeastLeft(append(devicesOf(m.may), home), spans, fuse, &own)
}

// devicesOf are what draws, as the check knows it.
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
