package control

import (
	"context"
	"math"
	"slices"
	"time"

	"flexd/internal/engine/heat"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// What is assumed of a heat pump where nothing was set or learned, and limits of its plans.
const (
	// RoomLow and RoomHigh are the comfort band of its rooms in degrees Celsius, by day and by
	// night.
	RoomLow, RoomHigh = 19.0, 22.0
	// NightFrom and NightTo are the hours of London between which it is night.
	NightFrom, NightTo = 22, 6
	// BuildingTime is how long a house takes to lose 63 % of its difference to the outdoors,
	// in hours.
	BuildingTime = heat.Hours

	// lockMost is the most half-hours in a row in state 1 of SG Ready (off): two hours.
	lockMost = 4
	// offsetMost is the most by which a setpoint is moved, in kelvins.
	offsetMost = 3
	// pumpStart is the cost that a plan counts for a start, pumpHold for an open window or a
	// kelvin of offset; pence.
	pumpStart, pumpHold = 1.0, 0.02
	// pumpWarmer is by how much a new plan must lack less warmth to replace one that was sent:
	// a sum of steps of the temperature grid.
	pumpWarmer = 5
	// spareAssumed is how many kelvins above the bottom of their band the rooms are kept where
	// the model's error is not known; spareLeast and spareMostRoom bound a known error.
	spareAssumed, spareLeast, spareMostRoom = 0.3, 0.15, 0.8
	// stopAssumed and stopMost are the same for a half-hour without heating: the air cools
	// sooner than the building.
	stopAssumed, stopMost = 0.8, 1.2
	// outdoorHold is how long a difference between a temperature read outdoors and the usual
	// one lasts: it falls to 37 % in that time.
	outdoorHold = 24 * time.Hour
)

// heatPump is a heat pump with what its plan depends on.
type heatPump struct {
	*heatedTank
	steering flex.Steering
	building store.BuildingRecord
	temp     float64 // of its rooms now
	outdoor  outdoors
	signals  [][]int   // by slot, of each of its choices
	locked   time.Time // since when it is in state 1 of SG Ready; zero if it is in another
}

// planHeatPump plans one heat pump to the end of tomorrow, and sends the plan if it changed.
// Its site must be locked.
func (s *Service) planHeatPump(
	ctx context.Context,
	tx *store.Tx,
	t *heatedTank,
) error {
	h, err := readHeatPump(ctx, tx, t)
	if err != nil {
		return err
	}

	if err := s.readAround(ctx, tx, t); err != nil {
		return err
	}

	h.giveUp()
	p := h.ahead()
	plan := heat.Solve(p)
	asks := h.askRooms(p, &plan)

	if kept, ok := h.keeps(p, &plan); ok {
		h.note(p, &kept, t.plan.Room.Signals)
		return t.put(ctx, tx, asks)
	}

	accepted, err := tx.Accepted(ctx, t.asset.ID)
	if err != nil {
		return err
	}

	steps, signals := h.steps(&plan)
	t.replace(steps, accepted)
	h.note(p, &plan, signals)
	t.plan.Room.LockedAt = 0
	if !h.locked.IsZero() {
		t.plan.Room.LockedAt = h.locked.Unix()
	}

	return t.send(ctx, tx, asks)
}

// giveUp closes the time that a heat pump yields to cars. One that is controlled by offsets
// cannot be switched off.
func (h *heatPump) giveUp() {
	if h.steering != flex.SteerOffset {
		h.yields(h.besideNeeds)
	}
}

// readHeatPump reads a heat pump's inputs, except the loads around it.
func readHeatPump(
	ctx context.Context,
	tx *store.Tx,
	t *heatedTank,
) (*heatPump, error) {
	h := &heatPump{heatedTank: t, steering: t.asset.Heat.Steering}
	t.pump = h
	if h.steering == "" {
		h.steering = flex.SteerWindows
	}

	h.building = assumedBuilding(t.power)
	if t.known.Rooms != nil {
		h.building = *t.known.Rooms
	}

	var err error
	h.outdoor, err = t.readOutdoors(ctx, tx)
	if err != nil {
		return nil, err
	}

	if err := h.readTemp(ctx, tx); err != nil {
		return nil, err
	}

	return h, nil
}

// assumedBuilding returns a house that a heat pump of this power heats on the design day.
func assumedBuilding(power flex.Watts) store.BuildingRecord {
	b := heat.Assumed(float64(power))
	return store.BuildingRecord{Loss: b.Loss, Capacity: b.Capacity}
}

// atNight reports whether an instant is at night.
func atNight(at time.Time) bool {
	hour := at.In(flex.London).Hour()
	return hour >= NightFrom || hour < NightTo
}

// band returns the comfort band of the rooms at an instant, in °C.
func (h *heatPump) band(at time.Time) (low, high float64) {
	set := &h.asset.Heat
	if set.NightLow.Given && atNight(at) {
		return float64(set.NightLow.Value), float64(set.NightHigh.Value)
	}
	return float64(set.Low.Or(RoomLow)), float64(set.High.Or(RoomHigh))
}

// bandOf returns the comfort band at the end of a slot. Where day and night have different
// bands it is their intersection, so that the rooms do not cool down before the night begins.
func (h *heatPump) bandOf(slot flex.Span) (low, high float64) {
	low, high = h.band(slot.To)
	before, top := h.band(slot.To.Add(-time.Second))

	if both := max(low, before); both < min(high, top) {
		low, high = both, min(high, top)
	}

	return low, high
}

// spare returns how far the rooms stay above the bottom of a band of this width, in kelvins.
// It covers the model's error: the one in the days that it was learned from, else an assumed
// one.
func (h *heatPump) spare(width float64) float64 {
	spare := spareAssumed
	if miss := max(h.building.Miss, h.building.Dip); miss > 0 {
		spare = max(spareLeast, min(spareMostRoom, miss))
	}

	return min(spare, width/3)
}

// stop returns the same for a half-hour without heating: by how much the air cools when the
// heat pump stops.
func (h *heatPump) stop(width float64) float64 {
	stop := stopAssumed
	if h.building.Stop > 0 {
		stop = min(stopMost, h.building.Stop)
	}

	return min(stop, width/2)
}

// margins returns spare and stop.
func (h *heatPump) margins(width float64) (spare, stop float64) {
	return h.spare(width), h.stop(width)
}

// setpoint returns the temperature that the heat pump holds by itself at an instant: at most
// the top of the band.
func (h *heatPump) setpoint(at time.Time) float64 {
	low, high := h.band(at)
	return min(high, float64(h.asset.Heat.Setpoint.Or(flex.Celsius((low+high)/2))))
}

// choices returns what the heat pump may be asked to do in a slot, with the signal of each
// choice. In a closed slot it is off, as far as it can be switched off.
func (h *heatPump) choices(
	span flex.Span,
	price float64,
	closed bool,
) ([]heat.Choice, []int) {
	set := h.setpoint(span.To)
	_, high := h.band(span.To)

	var (
		list    []heat.Choice
		signals []int
	)

	add := func(signal int, c heat.Choice) {
		if !closed || c.Off {
			list, signals = append(list, c), append(signals, signal)
		}
	}

	switch h.steering {
	case flex.SteerOffset: // it cannot keep it off, closed or not
		return offsets(set, high)

	case flex.SteerSGReady:
		more := flex.SGMore
		if price < 0 {
			more = flex.SGForced
		}

		add(flex.SGNormal, heat.Choice{Target: set})
		add(flex.SGOff, heat.Choice{Off: true, Lock: true})
		add(more, heat.Choice{Target: high})

	default:
		add(0, heat.Choice{Off: true})
		add(1, heat.Choice{Target: set, Hold: pumpHold})
	}

	return list, signals
}

// offsets returns by how much a setpoint may be moved, up to the top of the band.
func offsets(set, high float64) ([]heat.Choice, []int) {
	var (
		list    []heat.Choice
		signals []int
	)

	for k := range offsetMost + 1 {
		by := float64(k)
		hold := pumpHold * by
		list = append(list, heat.Choice{Target: set - by, Hold: hold})
		signals = append(signals, -k)

		if k > 0 && set+by <= high {
			list = append(list, heat.Choice{Target: set + by, Hold: hold})
			signals = append(signals, k)
		}
	}

	return list, signals
}

// problem returns the planning problem of some slots, without the initial state.
func (h *heatPump) problem(
	slots []flex.Span,
	prices []float64,
	closed []bool,
) *heat.Problem {
	p := &heat.Problem{
		Building: heat.Building{
			Loss:     h.building.Loss,
			Capacity: h.building.Capacity,
			Gain:     h.building.Gain,
			Power:    float64(h.power),
		},
		Start: pumpStart,
	}

	if h.steering == flex.SteerSGReady {
		p.Locks = lockMost
	}

	h.signals = nil
	for i, span := range slots {
		outdoor := h.outdoor.temperatureAt(span.From.Add(span.Len() / 2))
		slot := heat.Slot{
			Hours:   span.Len().Hours(),
			Outdoor: outdoor,
			COP:     heat.COP(outdoor),
			Price:   prices[i],
			Extra:   h.extra(span),
		}

		slot.Low, slot.High = h.bandOf(span)
		slot.Spare, slot.Stop = h.margins(slot.High - slot.Low)
		choices, signals := h.choices(span, prices[i], closed[i])
		slot.Choices = choices
		p.Slots = append(p.Slots, slot)
		h.signals = append(h.signals, signals)
	}

	return p
}

// ahead returns the problem of the slots that are to be planned.
func (h *heatPump) ahead() *heat.Problem {
	p := h.problem(
		h.slots,
		h.buy,
		h.closed,
	)
	p.Init = h.temp
	p.Worth = h.residual
	h.goesOn(p)
	h.priceOver(p)

	return p
}

// goesOn sets how the heat pump runs now, by the plan in force.
func (h *heatPump) goesOn(p *heat.Problem) {
	if !h.follows() {
		return
	}

	_, off := h.signalAt(h.from)
	p.Runs = !off
	h.locked = h.lockedSince(h.from)
	if h.locked.IsZero() {
		return
	}

	lasted := h.from.Sub(h.locked) + flex.HalfHour - time.Second // a half-hour that has begun counts
	p.Runs = false
	p.Locked = min(lockMost, int(lasted/flex.HalfHour))
}

// lockedSince returns when the heat pump entered state 1 of SG Ready, if it is in that state
// just before an instant by the plan in force and those before it; zero if it is in another
// state.
func (h *heatPump) lockedSince(at time.Time) time.Time {
	if h.steering != flex.SteerSGReady {
		return time.Time{}
	}

	since := at
	for i, s := range slices.Backward(h.plan.Steps) {
		if i >= len(h.plan.Room.Signals) || !s.From.Before(since) {
			continue
		}

		if s.To.Before(since) || h.plan.Room.Signals[i] != flex.SGOff {
			break
		}

		since = s.From
		if began := h.plan.Room.LockedAt; i == 0 && began != 0 {
			since = time.Unix(began, 0).UTC()
		}
	}

	// a plan that begins now goes on with what was before it
	began := h.plan.Room.LockedAt
	if steps := h.plan.Steps; began != 0 && len(steps) > 0 && steps[0].From.Equal(at) {
		return time.Unix(began, 0).UTC()
	}

	if since.Equal(at) {
		return time.Time{}
	}

	return since
}

// follows reports whether a plan is in force for the heat pump's way of control.
func (h *heatPump) follows() bool {
	plan := &h.plan
	return plan.Generation > 0 && !plan.Freed && plan.Room != nil &&
		plan.Room.Steering == h.steering
}

// signalAt returns the signal of the plan in force at an instant, and whether the heat pump is
// off by it.
func (h *heatPump) signalAt(at time.Time) (signal int, off bool) {
	for i, s := range h.plan.Steps {
		if s.Contains(at) && i < len(h.plan.Room.Signals) {
			return h.plan.Room.Signals[i], s.Limit == 0
		}
	}

	return freeSignal(h.steering), false
}

// freeSignal returns the signal of a heat pump that is not controlled.
func freeSignal(s flex.Steering) int {
	switch s {
	case flex.SteerSGReady:
		return flex.SGNormal
	case flex.SteerOffset:
		return 0
	}

	return 1
}

// readTemp sets how warm the rooms are now. The first of these that is known counts: a reading
// of the last two hours, projected by the plan in force; what that plan expects; what the heat
// pump holds by itself. A reading from before the plan cannot be projected by it, as another
// one was in force then.
func (h *heatPump) readTemp(ctx context.Context, tx *store.Tx) error {
	read, found, err := h.latestTemp(ctx, tx, flex.RoomTemperature)
	switch {
	case err != nil:
		return err

	case found && !h.replacedSince(read.To):
		h.basis = store.TankRead
		h.temp = h.moved(float64(read.Value)/1e6, read.To)

	case h.follows():
		h.basis = store.TankExpected
		if h.plan.Basis == store.TankAssumed {
			h.basis = store.TankAssumed
		}
		h.temp = h.moved(h.plan.Room.Temp, h.plan.StoredAt)

	default:
		h.basis = store.TankAssumed
		h.temp = h.setpoint(h.from)
	}

	return nil
}

// lateReading is how long before a plan a reading may be that is projected by it: another plan
// has little effect in that time.
const lateReading = flex.HalfHour

// replacedSince reports whether the plan in force replaced another one more than lateReading
// after an instant, and was made from known values.
func (h *heatPump) replacedSince(at time.Time) bool {
	if !h.follows() || h.plan.Basis == store.TankAssumed {
		return false
	}

	return h.plan.End().After(h.from) && at.Before(h.plan.Steps[0].From.Add(-lateReading))
}

// moved returns how warm the rooms are now if they had a temperature at an instant and the
// heat pump did what it was sent.
func (h *heatPump) moved(temp float64, at time.Time) float64 {
	spans := spansTo(at.Truncate(time.Second), h.from)
	if len(spans) == 0 || len(spans) > projectedMax {
		return temp
	}

	p := h.problem(
		spans,
		make([]float64, len(spans)),
		make([]bool, len(spans)),
	)
	p.Init = temp
	choices := make([]int, len(spans))
	for i, s := range spans {
		signal := freeSignal(h.steering)
		if h.follows() {
			signal, _ = h.signalAt(s.From)
		}
		choices[i] = max(0, h.choiceOf(i, signal))
	}

	temps := heat.Run(p, choices).Temp

	return temps[len(temps)-1]
}

// choiceOf returns the choice of a slot that has a signal; -1 if none has.
func (h *heatPump) choiceOf(slot, signal int) int {
	for i, s := range h.signals[slot] {
		forced := min(s, signal) == flex.SGMore && h.steering == flex.SteerSGReady
		if s == signal || forced {
			return i
		}
	}

	return -1
}

// keeps reports whether the plan in force stays, and returns that plan, continued by the new
// one after its end.
func (h *heatPump) keeps(
	p *heat.Problem,
	plan *heat.Plan,
) (heat.Plan, bool) {
	choices, ok := h.plannedChoices(plan.Choice)
	if !ok || h.endsSoon() {
		return heat.Plan{}, false
	}

	kept := heat.Run(p, choices)
	worse := kept.Short > plan.Short+pumpWarmer ||
		kept.Short >= plan.Short && kept.Cost > plan.Cost+tankMinSaving
	if h.plan.Released {
		worse = !slices.Equal(choices, plan.Choice)
	}

	return kept, !worse
}

// plannedChoices returns the choices of the plan in force, and after its end the given ones.
// It is false if no plan is in force, or the fuse has no headroom for it any more.
func (h *heatPump) plannedChoices(after []int) ([]int, bool) {
	if !h.follows() || h.plan.Power != h.power {
		return nil, false
	}

	choices := make([]int, len(h.slots))
	for i, s := range h.slots {
		choices[i] = after[i]
		if s.From.Before(h.plan.End()) {
			signal, _ := h.signalAt(s.From)
			choices[i] = h.choiceOf(i, signal)
		}

		if choices[i] < 0 {
			return nil, false
		}
	}

	return choices, true
}

// steps returns the windows of a plan, with its power where the heat pump may draw it and 0
// where it is off, and the signal of each.
func (h *heatPump) steps(plan *heat.Plan) ([]flex.Step, []int) {
	var (
		steps   []flex.Step
		signals []int
	)

	for i, s := range h.slots {
		signal := h.signals[i][plan.Choice[i]]
		limit := h.power
		if h.off(signal) {
			limit = 0
		}

		n := len(steps)
		if n > 0 && steps[n-1].Limit == limit && signals[n-1] == signal {
			steps[n-1].To = s.To
			continue
		}

		steps = append(steps, flex.Step{Span: s, Limit: limit})
		signals = append(signals, signal)
	}

	return steps, signals
}

// off reports whether the heat pump draws nothing by a signal.
func (h *heatPump) off(signal int) bool {
	switch h.steering {
	case flex.SteerSGReady:
		return signal == flex.SGOff
	case flex.SteerOffset:
		return false
	}

	return signal == 0
}

// note stores with the plan what it was made from, and the expected temperatures.
func (h *heatPump) note(
	p *heat.Problem,
	plan *heat.Plan,
	signals []int,
) {
	limits := &store.RoomPlan{
		Steering: h.steering,
		Signals:  signals,
		Temp:     h.temp,
		Building: h.building,
		Outdoor:  h.outdoor.origin,
	}

	if before := h.plan.Room; before != nil {
		limits.LockedAt = before.LockedAt
	}

	h.plan.StoredAt, h.plan.Basis = h.from, h.basis
	h.plan.LackAt = time.Time{}
	if lack, slot := plan.Lowest(p.Slots); slot >= 0 {
		limits.Lack = int64(math.Round(lack * 1000))
		h.plan.LackAt = h.slots[slot].To
	}

	for i := range h.slots {
		limits.Cost += p.Slots[i].Price * plan.Energy[i] / 1000
		limits.Course = append(limits.Course, h.courseOf(p, plan, i))
	}

	h.plan.Room = limits
}

// courseOf returns a slot of a plan as it is stored.
func (h *heatPump) courseOf(
	p *heat.Problem,
	plan *heat.Plan,
	i int,
) store.RoomCourse {
	slot := &p.Slots[i]
	signal := h.signals[i][plan.Choice[i]]

	return store.RoomCourse{
		To:      h.slots[i].To.Unix(),
		Signal:  signal,
		Off:     h.off(signal),
		Energy:  math.Round(plan.Energy[i]),
		Temp:    plan.Temp[i],
		Outdoor: math.Round(slot.Outdoor*10) / 10,
		Price:   slot.Price,
		Reason:  h.reason(p, plan, i),
	}
}
