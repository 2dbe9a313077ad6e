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
// A called battery keeps the modes of its call in the half-hours of the instruction and in the
// hour after. They are modes of its plan, sent as dispatches like any others; what was
// dispatched before is replaced by another dispatch at once. Its later plans keep these modes,
// and store the energy for them.

// callableBattery is the part of a called device that only batteries have.
type callableBattery struct {
	modes store.BatteryPlan // with the modes of the call
	// its offer if it only stops charging or discharging; nil if that contributes nothing
	stopOnly *callableAsset
}

// preferStopOnly has called batteries only stop what they do by plan, if the target is reached
// by that too.
func (p *Preview) preferStopOnly(
	target []charge.Joules,
	all []callableAsset,
	chosen []int,
) {
	full := make([]instruct.Candidate, len(chosen))
	stopOnly := make([]*instruct.Candidate, len(chosen))
	for k, i := range chosen {
		c := &all[i]
		full[k] = c.candidate()
		if c.isBattery() && c.device.battery.stopOnly != nil {
			stopOnly[k] = new(c.device.battery.stopOnly.candidate())
		}
	}

	for _, k := range instruct.Ease(target, full, stopOnly) {
		all[chosen[k]] = *all[chosen[k]].device.battery.stopOnly
	}
}

// callEffect is how an instruction restricts a device in a half-hour.
type callEffect uint8

const (
	noCall        callEffect = iota
	wholeHalfHour            // the rest of the half-hour belongs to the instruction
	// it must not move in the opposite direction: in the hour after an instruction to draw
	// less, and in a half-hour that the window covers in part
	noOpposite
)

// callEffectIn returns how an instruction restricts a half-hour. A device is planned by whole
// half-hours, so one that the window covers in part does not belong to the instruction, except
// for the running one. There the device must not move in the opposite direction, as a part of
// that would be within the window.
func callEffectIn(
	window flex.Span,
	up bool,
	p flex.Period,
	now time.Time,
) callEffect {
	begun := !window.From.After(flex.Later(p.Start(), now.Add(time.Minute)))
	ahead := p.End().After(window.From)
	switch {
	case begun && ahead && !p.End().After(window.To):
		return wholeHalfHour
	case !p.Span().Meet(window).Empty():
		return noOpposite
	case !up && ahead && p.Start().Before(window.To.Add(instruct.Guard)):
		return noOpposite
	}

	return noCall
}

// offerBattery returns the function that computes the offers of batteries. It caches what is
// read about caps and feeders.
func (s *Service) offerBattery() func(context.Context, *store.Tx, *device, instruct.Order) (callableAsset, bool, error) {
	cache := &headroomCache{feeders: feederCache{}}

	return func(
		ctx context.Context,
		tx *store.Tx,
		known *device,
		order instruct.Order,
	) (callableAsset, bool, error) {
		requested := batteryOrder{
			known: known,
			order: order,
			now:   tx.Now(),
		}

		ahead, err := s.readBatteryOrder(ctx, tx, &requested, cache)
		if err != nil || len(requested.inForce) == 0 {
			return callableAsset{}, false, err
		}

		stopOnly, stops := ahead.batteryOffer(&requested, battery.Modes(battery.ModeLock))
		c, ok := ahead.batteryOffer(&requested, dispatchable)
		if ok && stops {
			c.device.battery.stopOnly = &stopOnly
		}

		return c, ok, nil
	}
}

// readBatteryOrder reads what an offer of a battery depends on. The plan in force stays empty
// if the battery cannot be planned.
func (s *Service) readBatteryOrder(
	ctx context.Context,
	tx *store.Tx,
	a *batteryOrder,
	cache *headroomCache,
) (batteryInputs, error) {
	b, err := tx.Battery(ctx, a.known.id)
	if err != nil {
		return batteryInputs{}, err
	}

	a.plan = b.Plan
	a.device = home.Battery{Power: b.Power(), Capacity: b.Capacity()}
	if a.device.Power <= 0 || a.device.Capacity <= 0 {
		return batteryInputs{}, nil
	}

	ahead, err := s.readBatteryInputs(
		ctx,
		tx,
		&b,
		&a.plan,
		a.device,
		flex.PeriodAt(a.now),
		cache,
	)

	if err != nil {
		return ahead, err
	}

	a.inForce = modesFrom(&a.plan, ahead.periods)
	ahead = ahead.first(len(a.inForce))

	if err := ahead.readCalls(ctx, tx, a.known.id); err != nil {
		return ahead, err
	}

	return ahead, ahead.readOwnDispatches(ctx, tx, &b)
}

// dispatchable are the modes that a dispatch can express.
const dispatchable = battery.ModeSet(1<<battery.ModeCharge | 1<<battery.ModeDischarge | 1<<battery.ModeLock)

// batteryOrder is an order of an instruction to a battery.
type batteryOrder struct {
	known   *device
	plan    store.BatteryPlan
	device  home.Battery
	inForce []battery.Mode // of each half-hour
	order   instruct.Order
	now     time.Time
}

// batteryOffer computes the offer of a battery that may use some modes in the half-hours of an
// instruction; false if it contributes nothing.
func (s *batteryInputs) batteryOffer(
	a *batteryOrder,
	modes battery.ModeSet,
) (callableAsset, bool) {
	call := s.batteryCall(a, modes)
	offer := call.Call(new(battery.Solver))
	idleAtLimits(offer.Modes, offer.Stored, call.Problem.Init, s.rates.buy)

	return s.asCallable(a, &call, &offer)
}

// batteryCall builds the problem of a call, in which the battery may use some modes.
func (s *batteryInputs) batteryCall(
	a *batteryOrder,
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
		if s.fixed != nil && s.fixed[i] || s.isRefused(i) {
			continue // it belongs to another instruction, or is not followed
		}

		part := callEffectIn(a.order.Window, a.order.Up, p, a.now)
		c.Asked[i] = part == wholeHalfHour
		c.After[i] = part == noOpposite
		c.May[i] = s.allowedChange(i, &a.plan)
		if c.Asked[i] {
			c.May[i] = s.allowedIn(i) & modes
		}
	}

	return c
}

// allowedIn returns the modes that a battery may have in a half-hour beside everything else at
// its site.
func (s *batteryInputs) allowedIn(i int) battery.ModeSet {
	if s.isDispatched(i) {
		return battery.Modes(battery.ModeLock) // it follows a dispatch
	}

	if s.allowed == nil {
		return battery.AllModes
	}

	return s.allowed[i]
}

// allowedChange returns the modes to which a half-hour outside the instruction may be changed:
// none in the running half-hour and where one was dispatched.
func (s *batteryInputs) allowedChange(
	i int,
	plan *store.BatteryPlan,
) battery.ModeSet {
	if i == 0 || s.periods[i].Start().Before(plan.DispatchedTo) {
		return 0
	}

	return s.allowedIn(i)
}

// asCallable returns a battery with its offer; false if it contributes nothing, or contributes
// the opposite in some slot.
func (s *batteryInputs) asCallable(
	a *batteryOrder,
	call *instruct.BatteryCall,
	offer *instruct.BatteryOffer,
) (callableAsset, bool) {
	c := a.known.asCallable(s.plannedDevice(a, call, offer), offer.Cost)
	sum, lowest := c.moves(a.order)

	return c, sum > 0 && lowest >= -minMoved
}

// plannedDevice returns a battery's plan by an offer, and the one in force.
func (s *batteryInputs) plannedDevice(
	a *batteryOrder,
	call *instruct.BatteryCall,
	offer *instruct.BatteryOffer,
) *callableDevice {
	from := a.now.Truncate(time.Second)
	first := s.periods[0]
	begin := call.Problem.Init
	own := &callableDevice{
		power:   a.device.Power,
		before:  stepsFrom(first, powersOf(offer.Before, begin), from),
		after:   stepsFrom(first, powersOf(offer.Stored, begin), from),
		battery: &callableBattery{modes: store.BatteryPlan{From: first}},
	}

	modes := make([]byte, len(offer.Modes))
	for i, m := range offer.Modes {
		modes[i] = modeCode(m)
		if call.Asked[i] || call.After[i] {
			own.restricted = append(own.restricted, s.periods[i].Span())
		}
	}

	own.battery.modes.Modes = string(modes)

	return own
}

// stepsFrom returns the powers of half-hours as steps, from an instant in the first half-hour
// on.
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

// readCalls reads the active instructions that call a battery, and applies them to its plan.
func (s *batteryInputs) readCalls(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) error {
	calls, err := tx.BatteryCalls(ctx, id)
	s.applyCalls(calls)

	return err
}

// applyCalls marks the half-hours of a plan in which instructions restrict the battery.
func (s *batteryInputs) applyCalls(calls []store.BatteryCall) {
	for k := range calls {
		call := &calls[k]
		for i, p := range s.periods {
			begins := func(at flex.Span) bool {
				return at.Contains(p.Start())
			}

			if !slices.ContainsFunc(call.Spans, begins) {
				continue
			}

			if s.fixed == nil {
				s.fixed = make([]bool, len(s.periods))
				s.callValue = make([]float64, len(s.periods))
				s.services = make([]string, len(s.periods))
			}

			s.fixed[i] = true
			if callEffectIn(call.Window, call.Up, p, call.Since) != wholeHalfHour {
				continue
			}

			s.services[i] = call.Service
			s.callValue[i] = instruct.BatteryWorth
			if call.Up {
				s.callValue[i] = -instruct.BatteryWorth
			}
		}
	}
}

// fixCalledModes fixes the modes of called half-hours in a problem to those of a plan, and
// values their energy so that it is stored for them. A mode that the site no longer permits is
// replaced by LOCK.
func (s *batteryInputs) fixCalledModes(
	p *battery.ModeProblem,
	plan *store.BatteryPlan,
) {
	if s.fixed == nil {
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
		p.Import[i] += s.callValue[i]
		p.Export[i] += s.callValue[i]

		m, planned := modeAt(plan, at)
		if !s.fixed[i] || !planned {
			continue
		}

		if !p.Allowed[i].Has(m) {
			m = battery.ModeLock
		}

		p.Allowed[i] = battery.Modes(m)
	}
}

// keepBaselines keeps the baseline powers of called half-hours: the baseline is what the
// battery was to do before it was called.
func (s *batteryInputs) keepBaselines(
	old *store.BatteryPlan,
	without []flex.Watts,
) []flex.Watts {
	if s.fixed == nil {
		return without
	}

	out := slices.Clone(without)
	for i, p := range s.periods[:len(out)] {
		k := p.Sub(old.StoredAt)
		if s.fixed[i] && k >= 0 && k < len(old.Without) {
			out[i] = old.Without[k]
		}
	}

	return out
}
