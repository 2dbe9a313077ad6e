package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/home"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Home batteries that instructions call.
//
// A battery that is called keeps to the modes that it was called with, in the half-hours that
// the instruction covers and in the hour after. They are modes of its plan, sent as dispatches
// like any of the plan's; what was dispatched before is replaced by another dispatch at once.
// Its plan is made around them, and has the energy that they take.

// calledBattery is what a battery that may be called has beside other devices.
type calledBattery struct {
	modes store.BatteryPlan // with the modes of the call
	// the same battery that only stops what it would do; nil where that brings nothing
	stopOnly *called
}

// ease has called batteries only stop what they would do, where the target is still reached.
func (p *Preview) ease(
	target []charge.Joules,
	all []called,
	chosen []int,
) {
	brings := make([]instruct.Candidate, len(chosen))
	less := make([]*instruct.Candidate, len(chosen))
	for k, i := range chosen {
		c := &all[i]
		brings[k] = c.candidate()
		if c.isBattery() && c.device.battery.stopOnly != nil {
			less[k] = new(c.device.battery.stopOnly.candidate())
		}
	}

	for _, k := range instruct.Ease(target, brings, less) {
		all[chosen[k]] = *all[chosen[k]].device.battery.stopOnly
	}
}

// askedPart is what an instruction asks of a battery in a half-hour.
type askedPart uint8

const (
	askedNothing askedPart = iota
	askedWhole             // all that is left of it is the instruction's
	// not to move the other way: in the hour after the end of one that asks for less, and in a
	// half-hour that the window cuts
	askedAfter
)

// partOf is what an instruction asks for in a half-hour. A device is planned by whole
// half-hours: one that is cut by the window is not its own, but the running one. In a cut one
// the device does not move the other way, as a part of that would be in the window.
func partOf(
	window flex.Span,
	up bool,
	p flex.Period,
	now time.Time,
) askedPart {
	begun := !window.From.After(flex.Later(p.Start(), now.Add(time.Minute)))
	ahead := p.End().After(window.From)
	switch {
	case begun && ahead && !p.End().After(window.To):
		return askedWhole
	case !p.Span().Meet(window).Empty():
		return askedAfter
	case !up && ahead && p.Start().Before(window.To.Add(instruct.Guard)):
		return askedAfter
	}

	return askedNothing
}

// offerBattery returns what works out what a battery would do; false if it can bring nothing.
// What is read of caps and feeders is kept from one to the next.
func (s *Service) offerBattery() func(context.Context, *store.Tx, *device, instruct.Order) (called, bool, error) {
	kept := &capsKept{feeders: feedersKept{}}

	return func(
		ctx context.Context,
		tx *store.Tx,
		known *device,
		order instruct.Order,
	) (called, bool, error) {
		asked := batteryAsked{
			known: known,
			order: order,
			now:   tx.Now(),
		}

		ahead, err := s.readAsked(ctx, tx, &asked, kept)
		if err != nil || len(asked.inForce) == 0 {
			return called{}, false, err
		}

		stopOnly, stops := ahead.offered(&asked, battery.Modes(battery.ModeLock))
		c, ok := ahead.offered(&asked, dispatchable)
		if ok && stops {
			c.device.battery.stopOnly = &stopOnly
		}

		return c, ok, nil
	}
}

// readAsked reads what a battery is planned on that an instruction asks for something; its
// plan in force is empty where nothing can be said ahead.
func (s *Service) readAsked(
	ctx context.Context,
	tx *store.Tx,
	a *batteryAsked,
	kept *capsKept,
) (homeAhead, error) {
	b, err := tx.Battery(ctx, a.known.id)
	if err != nil {
		return homeAhead{}, err
	}

	a.plan = b.Plan
	a.device = home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	if a.device.Power <= 0 || a.device.Capacity <= 0 {
		return homeAhead{}, nil
	}

	ahead, err := s.situationOf(
		ctx,
		tx,
		&b,
		&a.plan,
		a.device,
		flex.PeriodAt(a.now),
		kept,
	)

	if err != nil {
		return ahead, err
	}

	a.inForce = modesFrom(&a.plan, ahead.periods)
	ahead = ahead.first(len(a.inForce))

	if err := ahead.readCalls(ctx, tx, a.known.id); err != nil {
		return ahead, err
	}

	return ahead, ahead.readSent(ctx, tx, &b)
}

// dispatchable are the modes that a dispatch can say.
const dispatchable = battery.ModeSet(1<<battery.ModeCharge | 1<<battery.ModeDischarge | 1<<battery.ModeLock)

// batteryAsked is a battery that an instruction asks for something.
type batteryAsked struct {
	known   *device
	plan    store.BatteryPlan
	device  home.Battery
	inForce []battery.Mode // of each half-hour
	order   instruct.Order
	now     time.Time
}

// offered is what a battery would do by some modes in the half-hours of an instruction; false
// if that brings nothing.
func (s *homeAhead) offered(
	a *batteryAsked,
	modes battery.ModeSet,
) (called, bool) {
	call := s.call(a, modes)
	offer := call.Call(new(battery.Solver))
	idleAtLimits(offer.Modes, offer.Stored, call.Problem.Init, s.rates.buy)

	return s.called(a, &call, &offer)
}

// call is what an instruction asks of a battery that may do it by some modes.
func (s *homeAhead) call(
	a *batteryAsked,
	modes battery.ModeSet,
) instruct.BatteryCall {
	before := battery.ModeSelfUse
	if m, ok := modeAt(&a.plan, s.periods[0].Add(-1)); ok {
		before = m
	}

	n := len(a.inForce)
	c := instruct.BatteryCall{
		Problem: s.problem(a.device, s.stored, before),
		InForce: a.inForce,
		Up:      a.order.Up,
		May:     make([]battery.ModeSet, n),
		Asked:   make([]bool, n),
		After:   make([]bool, n),
	}

	for i, p := range s.periods {
		if s.kept != nil && s.kept[i] || s.isRefused(i) {
			continue // it is another instruction's, or is not followed
		}

		part := partOf(a.order.Window, a.order.Up, p, a.now)
		c.Asked[i] = part == askedWhole
		c.After[i] = part == askedAfter
		c.May[i] = s.may(i, &a.plan)
		if c.Asked[i] {
			c.May[i] = s.allowedIn(i) & modes
		}
	}

	return c
}

// allowedIn is what a battery may do in a half-hour beside all others.
func (s *homeAhead) allowedIn(i int) battery.ModeSet {
	if s.ordered(i) {
		return battery.Modes(battery.ModeLock) // it follows a dispatch
	}

	if s.allowed == nil {
		return battery.AllModes
	}

	return s.allowed[i]
}

// may is what a battery may be sent in a half-hour beside an instruction: nothing else than
// before in the running one, and where that was dispatched.
func (s *homeAhead) may(
	i int,
	plan *store.BatteryPlan,
) battery.ModeSet {
	if i == 0 || s.periods[i].Start().Before(plan.DispatchedTo) {
		return 0
	}

	return s.allowedIn(i)
}

// called is what a battery brings by an offer; false if that is nothing, or only by going the
// other way in between.
func (s *homeAhead) called(
	a *batteryAsked,
	call *instruct.BatteryCall,
	offer *instruct.BatteryOffer,
) (called, bool) {
	c := a.known.calledAs(s.planned(a, call, offer), offer.Cost)
	sum, lowest := c.moves(a.order)

	return c, sum > 0 && lowest >= -leastMoved
}

// planned is a battery's plan by an offer beside the one in force.
func (s *homeAhead) planned(
	a *batteryAsked,
	call *instruct.BatteryCall,
	offer *instruct.BatteryOffer,
) *calledDevice {
	from := a.now.Truncate(time.Second)
	first := s.periods[0]
	begin := call.Problem.Init
	own := &calledDevice{
		power:   a.device.Power,
		before:  stepsFrom(first, powersOf(offer.Before, begin), from),
		after:   stepsFrom(first, powersOf(offer.Stored, begin), from),
		battery: &calledBattery{modes: store.BatteryPlan{From: first}},
	}

	modes := make([]byte, len(offer.Modes))
	for i, m := range offer.Modes {
		modes[i] = modeCode(m)
		if call.Asked[i] || call.After[i] {
			own.kept = append(own.kept, s.periods[i].Span())
		}
	}

	own.battery.modes.Modes = string(modes)

	return own
}

// stepsFrom are powers of half-hours as steps from an instant in the first of them on.
func stepsFrom(
	first flex.Period,
	powers []flex.Watts,
	from time.Time,
) []flex.Step {
	steps := store.PowerSteps(first, powers)
	if len(steps) > 0 {
		steps[0].From = flex.Later(steps[0].From, from)
	}

	return steps
}

// readCalls has a plan keep to what active instructions call a battery for.
func (s *homeAhead) readCalls(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	calls, err := tx.BatteryCalls(ctx, id)
	s.keepTo(calls)

	return err
}

// keepTo has a plan keep to what instructions called a battery for.
func (s *homeAhead) keepTo(calls []store.BatteryCall) {
	for k := range calls {
		call := &calls[k]
		for i, p := range s.periods {
			begins := func(at flex.Span) bool {
				return at.Contains(p.Start())
			}

			if !slices.ContainsFunc(call.Spans, begins) {
				continue
			}

			if s.kept == nil {
				s.kept = make([]bool, len(s.periods))
				s.worth = make([]float64, len(s.periods))
				s.services = make([]string, len(s.periods))
			}

			s.kept[i] = true
			if partOf(call.Window, call.Up, p, call.Since) != askedWhole {
				continue
			}

			s.services[i] = call.Service
			s.worth[i] = instruct.BatteryWorth
			if call.Up {
				s.worth[i] = -instruct.BatteryWorth
			}
		}
	}
}

// keep has a problem keep to the modes that a plan has in the half-hours of instructions, and
// has the energy for them kept. What the site does not allow any more is not done.
func (s *homeAhead) keep(
	p *battery.ModeProblem,
	plan *store.BatteryPlan,
) {
	if s.kept == nil {
		return
	}

	p.Import = slices.Clone(p.Import)
	p.Export = slices.Clone(p.Export)
	if p.Allowed == nil {
		p.Allowed = slices.Repeat([]battery.ModeSet{battery.AllModes}, len(s.periods))
	} else {
		p.Allowed = slices.Clone(p.Allowed)
	}

	for i, at := range s.periods {
		p.Import[i] += s.worth[i]
		p.Export[i] += s.worth[i]

		m, planned := modeAt(plan, at)
		if !s.kept[i] || !planned {
			continue
		}

		if !p.Allowed[i].Has(m) {
			m = battery.ModeLock
		}

		p.Allowed[i] = battery.Modes(m)
	}
}

// keepWithout has the half-hours of instructions keep the powers that a plan had for them
// without: what the battery would have done is what it was to do before it was called.
func (s *homeAhead) keepWithout(
	old *store.BatteryPlan,
	without []flex.Watts,
) []flex.Watts {
	if s.kept == nil {
		return without
	}

	out := slices.Clone(without)
	for i, p := range s.periods[:len(out)] {
		k := p.Sub(old.StoredAt)
		if s.kept[i] && k >= 0 && k < len(old.Without) {
			out[i] = old.Without[k]
		}
	}

	return out
}
