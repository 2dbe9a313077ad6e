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
// A heater that is called is planned as before, with what it draws in the half-hours of the
// instruction dearer, or cheaper. So comfort, the main fuse and what cars need go before the
// call, as they go before cost. Every later plan is made in the same way until the hour after
// the instruction is over, or the heater is let go.

// leastMoved is what of a device's energy in a half-hour is no move: powers are stored in
// whole watts.
const leastMoved = charge.Joules(3600)

// heatMoves is what a heater draws in each of its half-hours, in Wh, by its plan in force and
// by one that keeps to a call, and what the second costs more, in pence.
type heatMoves struct {
	before []float64
	after  []float64
	cost   float64
}

// offerHeater works out what a heater would do; false if it can bring nothing, or only by
// going the other way in between.
func (s *Service) offerHeater(
	ctx context.Context,
	tx *store.Tx,
	known *device,
	order instruct.Order,
) (called, bool, error) {
	t, at, err := s.readToCall(
		ctx,
		tx,
		known.id,
	)

	if err != nil || at == nil {
		return called{}, false, err
	}

	own := &calledDevice{power: t.power}
	moves, ok := at.besideCall(func(before []float64) store.HeaterCall {
		own.before = t.powersOf(before)
		own.kept = t.keptFor(order)

		return store.HeaterCall{
			Called: store.Called{
				Power:    t.power,
				Closed:   own.kept,
				Baseline: own.before,
			},
			Window: order.Window,
			Up:     order.Up,
		}
	})

	if !ok {
		return called{}, false, nil
	}

	own.after = t.powersOf(moves.after)
	c := known.calledAs(own, moves.cost)
	sum, lowest := c.moves(order)

	return c, sum > leastMoved && lowest >= -leastMoved, nil
}

// toCall is a heater that an instruction may call.
type toCall interface {
	// besideCall works out what it draws by its plan in force, and by one that keeps to a
	// call. It is false where nothing is in force, or stays so.
	besideCall(call callOf) (heatMoves, bool)
	// canDo is what it draws by its plan in force in each of its half-hours, in Wh, and all
	// that it may do instead, in so many of them at most. It is false where nothing is in
	// force.
	canDo(most int) ([]float64, *paths.Graph, bool)
}

// readToCall reads what a heater is planned on that an instruction may call; nil where it is
// left alone.
func (s *Service) readToCall(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*heatedTank, toCall, error) {
	c, err := tx.PlanningState(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	t, err := tankOf(ctx, tx, c)
	if err != nil || t.why() != "" {
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
			h.giveUp()
		}

		return t, h, err
	}

	err = t.readStored(ctx, tx)
	if err == nil {
		err = s.readAround(ctx, tx, t)
	}

	if err == nil {
		t.yields(t.besideNeeds)
	}

	return t, t, err
}

// callOf is what an instruction would have a heater keep to that draws some Wh in each
// half-hour without it.
type callOf func(before []float64) store.HeaterCall

// plain is a tank's problem without what instructions ask, and when its element is on by the
// plan in force; false where nothing is.
func (t *heatedTank) plain() (*tank.Problem, []bool, bool) {
	plain := t.problem(t.buy, t.closed)
	for i := range plain.Slots {
		plain.Slots[i].Extra = nil
	}

	after := make([]bool, len(t.slots))
	if t.endsWithin() {
		after = tank.Solve(t.problem(t.buy, t.closed)).On
	}

	on, ok := t.plannedOn(after)

	return plain, on, ok
}

func (t *heatedTank) canDo(most int) ([]float64, *paths.Graph, bool) {
	plain, on, ok := t.plain()
	if !ok {
		return nil, nil, false
	}

	given := map[int]bool{}
	for i, s := range t.slots {
		if len(t.keepsIn(s)) > 0 {
			given[i] = on[i]
		}
	}

	heated := floats(tank.Run(plain, on).Heat)
	plain.Slots = plain.Slots[:min(most, len(plain.Slots))]

	return heated, plain.Paths(given), true
}

func (t *heatedTank) besideCall(call callOf) (heatMoves, bool) {
	var m heatMoves
	plain, on, ok := t.plain()
	if !ok {
		return m, false
	}

	was := tank.Run(plain, on)
	m.before = floats(was.Heat)
	t.called = append(t.called, call(m.before))

	p := t.problem(t.buy, t.closed)
	plan := tank.Solve(p)
	m.after = floats(plan.Heat)
	will := tank.Run(plain, plan.On)
	m.cost = will.Cost - was.Cost
	_, kept := t.keeps(p, &plan)

	return m, !kept
}

// plain is the same of a heat pump, with its choices.
func (h *heatPump) plain() (*heat.Problem, []int, bool) {
	plain := h.ahead()
	for i := range plain.Slots {
		plain.Slots[i].Extra = nil
	}

	after := make([]int, len(h.slots))
	if h.endsWithin() {
		after = heat.Solve(h.ahead()).Choice
	}

	choices, ok := h.plannedChoices(after)

	return plain, choices, ok
}

func (h *heatPump) canDo(most int) ([]float64, *paths.Graph, bool) {
	plain, choices, ok := h.plain()
	if !ok {
		return nil, nil, false
	}

	given := map[int]int{}
	for i, s := range h.slots {
		if len(h.keepsIn(s)) > 0 {
			given[i] = choices[i]
		}
	}

	drawn := heat.Run(plain, choices).Energy
	plain.Slots = plain.Slots[:min(most, len(plain.Slots))]

	return drawn, plain.Paths(given), true
}

func (h *heatPump) besideCall(call callOf) (heatMoves, bool) {
	var m heatMoves
	plain, choices, ok := h.plain()
	if !ok {
		return m, false
	}

	was := heat.Run(plain, choices)
	m.before = was.Energy
	h.called = append(h.called, call(m.before))

	p := h.ahead()
	plan := heat.Solve(p)
	m.after = plan.Energy
	will := heat.Run(plain, plan.Choice)
	m.cost = will.Cost - was.Cost
	_, kept := h.keeps(p, &plan)

	return m, !kept
}

// endsWithin reports whether the plan in force ends before what is to be planned.
func (t *heatedTank) endsWithin() bool {
	n := len(t.slots)
	return n > 0 && len(t.plan.Steps) > 0 && t.plan.End().Before(t.slots[n-1].To)
}

// powersOf are energies of half-hours, in Wh, as powers.
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

// draws is what a tank's element is expected to draw by a plan.
func (t *heatedTank) draws(plan *tank.Plan) []flex.Step {
	return t.powersOf(floats(plan.Heat))
}

// floats are whole numbers as such with parts.
func floats(whole []int) []float64 {
	out := make([]float64, len(whole))
	for i, n := range whole {
		out[i] = float64(n)
	}

	return out
}
