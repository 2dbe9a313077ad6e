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

	// maxLockHalfHours is the longest time in state 1 of SG Ready (off), in half-hours: two
	// hours.
	maxLockHalfHours = 4
	// maxOffset is the greatest offset of a setpoint, in kelvins.
	maxOffset = 3
	// pumpStart is the cost of a start in a plan, and pumpHold that of an open window or of a
	// kelvin of offset, in pence.
	pumpStart, pumpHold = 1.0, 0.02
	// pumpWarmer is by how much the shortfall of a new plan must be less to replace one that
	// was sent, as a sum of steps of the temperature grid.
	pumpWarmer = 5
	// spareAssumed is how many kelvins above the bottom of their band the rooms are kept where
	// the model's error is not known; minSpare and maxRoomSpare bound a known error.
	spareAssumed, minSpare, maxRoomSpare = 0.3, 0.15, 0.8
	// stopAssumed and maxStop are the margin in a half-hour without heating: the air cools
	// faster than the building.
	stopAssumed, maxStop = 0.8, 1.2
	// outdoorDecay is how long a difference between a temperature read outdoors and the usual
	// one lasts: it falls to 37 % in that time.
	outdoorDecay = 24 * time.Hour
)

// heatPump is a heat pump with what its plan depends on.
type heatPump struct {
	*heatedTank
	steering flex.Steering
	building store.BuildingRecord
	temp     float64 // of the rooms now
	outdoor  outdoors
	signals  [][]int   // for each slot, the signal of each of its choices
	locked   time.Time // when it entered state 1 of SG Ready; zero in another state
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

	h.giveUpForNeeds()
	p := h.planProblem()
	plan := heat.Solve(p)
	requests := h.requestForRooms(p, &plan)

	if current, ok := h.currentSuffices(p, &plan); ok {
		h.record(p, &current, t.plan.Room.Signals)
		return t.putUnchanged(ctx, tx, requests)
	}

	accepted, err := tx.Accepted(ctx, t.asset.ID)
	if err != nil {
		return err
	}

	steps, signals := h.steps(&plan)
	t.replace(steps, accepted)
	h.record(p, &plan, signals)
	t.plan.Room.LockedAt = 0
	if !h.locked.IsZero() {
		t.plan.Room.LockedAt = h.locked.Unix()
	}

	return t.send(ctx, tx, requests)
}

// giveUpForNeeds closes the half-hours that a heat pump gives up for cars. One that is
// controlled by offsets cannot be switched off, and gives up none.
func (h *heatPump) giveUpForNeeds() {
	if h.steering != flex.SteerOffset {
		h.giveUpForCars(h.onBesideCars)
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
	if t.model.Rooms != nil {
		h.building = *t.model.Rooms
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

// assumedBuilding returns the model of a house that a heat pump of this power can heat on the
// design day.
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

// spare returns how far the rooms are to stay above the bottom of a band, in kelvins. It
// covers the model's error: the one found in the days that it was learned from, or else an
// assumed one.
func (h *heatPump) spare(width float64) float64 {
	spare := spareAssumed
	if miss := max(h.building.Miss, h.building.Dip); miss > 0 {
		spare = max(minSpare, min(maxRoomSpare, miss))
	}

	return min(spare, width/3)
}

// stop returns that margin for a half-hour without heating: by how much the air cools when the
// heat pump stops.
func (h *heatPump) stop(width float64) float64 {
	stop := stopAssumed
	if h.building.Stop > 0 {
		stop = min(maxStop, h.building.Stop)
	}

	return min(stop, width/2)
}

// margins returns spare and stop.
func (h *heatPump) margins(width float64) (spare, stop float64) {
	return h.spare(width), h.stop(width)
}

// setpoint returns the temperature that the heat pump maintains without control at an instant:
// at most the top of the band.
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
	case flex.SteerOffset: // an offset cannot switch it off, closed or not
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

	for k := range maxOffset + 1 {
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
		p.Locks = maxLockHalfHours
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

// planProblem returns the problem of the slots that are to be planned.
func (h *heatPump) planProblem() *heat.Problem {
	p := h.problem(
		h.slots,
		h.buy,
		h.closed,
	)
	p.Init = h.temp
	p.Worth = h.residual
	h.setRunning(p)
	h.priceExcess(p)

	return p
}

// setRunning sets how the heat pump runs now by the plan in force: whether it is on, and for
// how long it has been off by SG Ready.
func (h *heatPump) setRunning(p *heat.Problem) {
	if !h.hasPlan() {
		return
	}

	_, off := h.signalAt(h.from)
	p.Runs = !off
	h.locked = h.lockedSince(h.from)
	if h.locked.IsZero() {
		return
	}

	lasted := h.from.Sub(h.locked) + flex.HalfHour - time.Second // rounded up to half-hours
	p.Runs = false
	p.Locked = min(maxLockHalfHours, int(lasted/flex.HalfHour))
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

	// a plan that begins now continues the state of the one before it
	began := h.plan.Room.LockedAt
	if steps := h.plan.Steps; began != 0 && len(steps) > 0 && steps[0].From.Equal(at) {
		return time.Unix(began, 0).UTC()
	}

	if since.Equal(at) {
		return time.Time{}
	}

	return since
}

// hasPlan reports whether a plan is in force that was made for the heat pump's way of control.
func (h *heatPump) hasPlan() bool {
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

// readTemp sets the temperature of the rooms now. The first of these that is known counts: a
// reading of the last two hours, projected by the plan in force; what that plan expects; the
// setpoint. A reading from before the plan cannot be projected by it, as another plan was in
// force then.
func (h *heatPump) readTemp(ctx context.Context, tx *store.Tx) error {
	read, found, err := h.latestTemp(ctx, tx, flex.RoomTemperature)
	switch {
	case err != nil:
		return err

	case found && !h.replacedSince(read.To):
		h.basis = store.TankRead
		h.temp = h.projected(float64(read.Value)/1e6, read.To)

	case h.hasPlan():
		h.basis = store.TankExpected
		if h.plan.Basis == store.TankAssumed {
			h.basis = store.TankAssumed
		}
		h.temp = h.projected(h.plan.Room.Temp, h.plan.StoredAt)

	default:
		h.basis = store.TankAssumed
		h.temp = h.setpoint(h.from)
	}

	return nil
}

// readingTolerance is how long before a plan a reading may be taken that is still projected by
// it: another plan has little effect in that time.
const readingTolerance = flex.HalfHour

// replacedSince reports whether the plan in force replaced another one more than
// readingTolerance after an instant, and was made from known values.
func (h *heatPump) replacedSince(at time.Time) bool {
	if !h.hasPlan() || h.plan.Basis == store.TankAssumed {
		return false
	}

	return h.plan.End().After(h.from) && at.Before(h.plan.Steps[0].From.Add(-readingTolerance))
}

// projected returns the temperature of the rooms now if they had temp at an instant and the
// heat pump followed its plan since.
func (h *heatPump) projected(temp float64, at time.Time) float64 {
	spans := spansTo(at.Truncate(time.Second), h.from)
	if len(spans) == 0 || len(spans) > maxProjected {
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
		if h.hasPlan() {
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

// currentSuffices reports whether the plan in force may stay, and returns it, continued by the
// new one after its end.
func (h *heatPump) currentSuffices(
	p *heat.Problem,
	plan *heat.Plan,
) (heat.Plan, bool) {
	choices, ok := h.plannedChoices(plan.Choice)
	if !ok || h.endsTooSoon() {
		return heat.Plan{}, false
	}

	current := heat.Run(p, choices)
	worse := current.Short > plan.Short+pumpWarmer ||
		current.Short >= plan.Short && current.Cost > plan.Cost+tankMinSaving
	if h.plan.Released {
		worse = !slices.Equal(choices, plan.Choice)
	}

	return current, !worse
}

// plannedChoices returns the choices of the plan in force, and after its end the given ones.
// It is false if no plan is in force, or the fuse has no headroom for it any more.
func (h *heatPump) plannedChoices(after []int) ([]int, bool) {
	if !h.hasPlan() || h.plan.Power != h.power {
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

// record records with the plan what it was made from, and the expected temperatures.
func (h *heatPump) record(
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
