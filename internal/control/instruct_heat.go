package control

import (
	"context"
	"math"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/heat"
	"flexd/internal/engine/instruct"
	"flexd/internal/engine/paths"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Tanks and heat pumps that instructions call.
//
// A called heater is planned as usual, but what it draws in the half-hours of the instruction
// costs more, or less. So comfort, the main fuse and the needs of cars have priority over the
// call, as they have over cost. Every later plan is made in the same way until the hour after
// the instruction is over, or the heater is released.

// minMoved is the change of a device's energy, in a half-hour, up to which nothing was
// moved: powers are stored in whole watts.
const minMoved = charge.Joules(3600)

// heatOffer has the energy of a heater in each half-hour, in Wh, by its plan in force and by
// one with a call, and the additional cost of the latter in pence.
type heatOffer struct {
	before []float64
	after  []float64
	cost   float64
}

// offerHeater computes the offer of a heater; false if it contributes nothing, or contributes
// the opposite in some slot.
func (s *Service) offerHeater(
	ctx context.Context,
	tx *store.Tx,
	known *device,
	order instruct.Order,
) (callableAsset, bool, error) {
	t, at, err := s.readCallable(
		ctx,
		tx,
		known.id,
	)

	if err != nil || at == nil {
		return callableAsset{}, false, err
	}

	own := &callableDevice{power: t.power}
	moves, ok := at.withCall(func(before []float64) store.HeaterCall {
		own.before = t.powersOf(before)
		own.restricted = t.restrictedBy(order)

		return store.HeaterCall{
			Called: store.Called{
				Power:    t.power,
				Closed:   own.restricted,
				Baseline: own.before,
			},
			Window: order.Window,
			Up:     order.Up,
		}
	})

	if !ok {
		return callableAsset{}, false, nil
	}

	own.after = t.powersOf(moves.after)
	c := known.asCallable(own, moves.cost)
	sum, lowest := c.moves(order)

	return c, sum > minMoved && lowest >= -minMoved, nil
}

// callableHeater is a heater that an instruction may call: a tank or a heat pump.
type callableHeater interface {
	// withCall plans the heater with a call, and compares that with its plan in force. It is
	// false if there is no plan in force, or the call does not change it.
	withCall(call makeCall) (heatOffer, bool)
	// canDo returns the energy of its plan in force in each half-hour, in Wh, and the graph of
	// everything that it may do instead, over at most so many half-hours. It is false if there
	// is no plan in force.
	possibleDraws(most int) ([]float64, *paths.Graph, bool)
}

// readCallable reads a heater with everything that its plan depends on; nil if it is not
// controlled.
func (s *Service) readCallable(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*heatedTank, callableHeater, error) {
	c, err := tx.PlanningState(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	t, err := tankOf(ctx, tx, c)
	if err != nil || t.uncontrolledReason() != "" {
		return nil, nil, err
	}

	if err := t.readCalls(ctx, tx); err != nil {
		return nil, nil, err
	}

	if t.asset.Type == flex.HeatPump {
		h, err := readHeatPump(ctx, tx, t)
		if err == nil {
			err = s.readAround(ctx, tx, t)
		}

		if err == nil {
			h.giveUpForNeeds()
		}

		return t, h, err
	}

	err = t.readStored(ctx, tx)
	if err == nil {
		err = s.readAround(ctx, tx, t)
	}

	if err == nil {
		t.giveUpForCars(t.onBesideCars)
	}

	return t, t, err
}

// makeCall returns the call of a heater from the energy that it draws in each half-hour
// without the call, in Wh.
type makeCall func(before []float64) store.HeaterCall

// withoutCallCosts returns a tank's problem without the costs of calls, and when its element
// is on by the plan in force; false if there is none.
func (t *heatedTank) withoutCallCosts() (*tank.Problem, []bool, bool) {
	plain := t.problem(t.buy, t.closed)
	for i := range plain.Slots {
		plain.Slots[i].Extra = nil
	}

	after := make([]bool, len(t.slots))
	if t.endsBeforeSlots() {
		after = tank.Solve(t.problem(t.buy, t.closed)).On
	}

	on, ok := t.plannedOn(after)

	return plain, on, ok
}

func (t *heatedTank) possibleDraws(most int) ([]float64, *paths.Graph, bool) {
	plain, on, ok := t.withoutCallCosts()
	if !ok {
		return nil, nil, false
	}

	fixed := map[int]bool{}
	for i, s := range t.slots {
		if len(t.callsIn(s)) > 0 {
			fixed[i] = on[i]
		}
	}

	heated := floats(tank.Run(plain, on).Heat)
	plain.Slots = plain.Slots[:min(most, len(plain.Slots))]

	return heated, plain.Paths(fixed), true
}

func (t *heatedTank) withCall(call makeCall) (heatOffer, bool) {
	var m heatOffer
	plain, on, ok := t.withoutCallCosts()
	if !ok {
		return m, false
	}

	before := tank.Run(plain, on)
	m.before = floats(before.Heat)
	t.calls = append(t.calls, call(m.before))

	p := t.problem(t.buy, t.closed)
	plan := tank.Solve(p)
	m.after = floats(plan.Heat)
	after := tank.Run(plain, plan.On)
	m.cost = after.Cost - before.Cost
	_, unchanged := t.currentSuffices(p, &plan)

	return m, !unchanged
}

// withoutCallCosts returns a heat pump's problem without the costs of calls, and the choices
// of the plan in force; false if there is none.
func (h *heatPump) withoutCallCosts() (*heat.Problem, []int, bool) {
	plain := h.planProblem()
	for i := range plain.Slots {
		plain.Slots[i].Extra = nil
	}

	after := make([]int, len(h.slots))
	if h.endsBeforeSlots() {
		after = heat.Solve(h.planProblem()).Choice
	}

	choices, ok := h.plannedChoices(after)

	return plain, choices, ok
}

func (h *heatPump) possibleDraws(most int) ([]float64, *paths.Graph, bool) {
	plain, choices, ok := h.withoutCallCosts()
	if !ok {
		return nil, nil, false
	}

	fixed := map[int]int{}
	for i, s := range h.slots {
		if len(h.callsIn(s)) > 0 {
			fixed[i] = choices[i]
		}
	}

	drawn := heat.Run(plain, choices).Energy
	plain.Slots = plain.Slots[:min(most, len(plain.Slots))]

	return drawn, plain.Paths(fixed), true
}

func (h *heatPump) withCall(call makeCall) (heatOffer, bool) {
	var m heatOffer
	plain, choices, ok := h.withoutCallCosts()
	if !ok {
		return m, false
	}

	before := heat.Run(plain, choices)
	m.before = before.Energy
	h.calls = append(h.calls, call(m.before))

	p := h.planProblem()
	plan := heat.Solve(p)
	m.after = plan.Energy
	after := heat.Run(plain, plan.Choice)
	m.cost = after.Cost - before.Cost
	_, unchanged := h.currentSuffices(p, &plan)

	return m, !unchanged
}

// endsBeforeSlots reports whether the plan in force ends before the last slot.
func (t *heatedTank) endsBeforeSlots() bool {
	n := len(t.slots)
	return n > 0 && len(t.plan.Steps) > 0 && t.plan.End().Before(t.slots[n-1].To)
}

// powersOf returns the energies of slots, in Wh, as steps of power.
func (t *heatedTank) powersOf(energies []float64) []flex.Step {
	steps := make([]flex.Step, len(energies))
	for i, e := range energies {
		span := t.slots[i]
		power := e / span.Len().Hours()
		steps[i] = flex.Step{
			Span:  span,
			Limit: flex.Watts(math.Round(power)),
		}
	}

	return steps
}

// plannedSteps returns the power that a tank's element is expected to draw by a plan.
func (t *heatedTank) plannedSteps(plan *tank.Plan) []flex.Step {
	return t.powersOf(floats(plan.Heat))
}

// floats converts integers.
func floats(whole []int) []float64 {
	out := make([]float64, len(whole))
	for i, n := range whole {
		out[i] = float64(n)
	}

	return out
}
