package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// problem returns the tank's planning problem at some prices, with some half-hours closed.
func (t *heatedTank) problem(prices []float64, closed []bool) *tank.Problem {
	p := &tank.Problem{
		Top:   int(t.capacity),
		Floor: t.floor(),
		Init:  int(t.stored),
		Start: tankStart,
		Hold:  tankHold,
		On:    onAt(t.plan.Steps, t.from),
		Worth: t.residual,
	}

	known := t.pattern()
	for i, span := range t.slots {
		s := t.slot(span, known)
		s.Price, s.Closed = prices[i], closed[i]
		s.Extra = t.extra(span)
		s.Hold = t.excessPrice(i)
		p.Slots = append(p.Slots, s)
	}

	return p
}

// currentSuffices reports whether the plan in force may stay: it reaches far enough, the main
// fuse has headroom for it, and it is nearly as good as the new one. It returns the plan in
// force, continued by the new one after its end.
func (t *heatedTank) currentSuffices(
	p *tank.Problem,
	plan *tank.Plan,
) (tank.Plan, bool) {
	on, ok := t.plannedOn(plan.On)
	if !ok || t.endsTooSoon() {
		return tank.Plan{}, false
	}

	current := tank.Run(p, on)
	worse := current.Short > plan.Short+tankWarmer ||
		current.Short >= plan.Short && current.Cost > plan.Cost+tankMinSaving
	if t.plan.Released { // its best plan replaces the one in force
		worse = !slices.Equal(on, plan.On)
	}

	return current, !worse
}

// endsTooSoon reports whether the plan in force ends soon and a new one would reach further.
// If prices are known no further than the plan in force reaches, a new plan would end as soon,
// and be sent at each run.
func (t *heatedTank) endsTooSoon() bool {
	soon := t.plan.End().Before(t.from.Add(minPlanAhead))

	return soon && t.endsBeforeSlots()
}

// plannedOn returns when the element is on by the plan in force, and after its end as given.
// It is false if there is no such plan, or the fuse has no headroom for it any more.
func (t *heatedTank) plannedOn(after []bool) ([]bool, bool) {
	if t.plan.Generation == 0 || t.plan.Freed || t.plan.Power != t.power {
		return nil, false
	}

	on := make([]bool, len(t.slots))
	for i, s := range t.slots {
		on[i] = after[i]
		if s.From.Before(t.plan.End()) {
			on[i] = onAt(t.plan.Steps, s.From)
		}

		if on[i] && t.closed[i] {
			return nil, false
		}
	}

	return on, true
}

// steps returns the windows of a plan: the element's power where it may be on, and 0 where it
// may not.
func (t *heatedTank) steps(on []bool) []flex.Step {
	var steps []flex.Step
	for i, s := range t.slots {
		limit := flex.Watts(0)
		if on[i] {
			limit = t.power
		}

		n := len(steps)
		if n > 0 && steps[n-1].Limit == limit {
			steps[n-1].To = s.To
		} else {
			steps = append(steps, flex.Step{Span: s, Limit: limit})
		}
	}

	return steps
}

// replace replaces the plan in force. Until its client has accepted the new plan, the tank may
// be following the old one: May is the most of both. A tank that was not controlled may draw
// its power until then.
func (t *heatedTank) replace(steps []flex.Step, accepted int64) {
	old := &t.plan
	may := [][]flex.Step{steps}
	switch {
	case old.Generation == 0:
	case accepted >= old.Generation:
		may = append(may, old.Steps)
	default:
		may = append(may, old.May)
	}

	t.plan = store.TankPlan{
		AssetID:    t.asset.ID,
		SiteID:     t.asset.SiteID,
		Generation: old.Generation,
		Power:      t.power,
		Steps:      steps,
		May:        maxOf(may, t.power, t.from),
	}
}

// maxOf returns the most of some lists of steps at each instant, from one on. After the end
// of a list the tank may draw its power.
func maxOf(
	lists [][]flex.Step,
	power flex.Watts,
	from time.Time,
) []flex.Step {
	d := loadBound{power: power, lists: lists}
	end := from
	for _, list := range lists {
		end = flex.Later(end, list[len(list)-1].To)
	}

	var most []flex.Step
	for _, s := range spansTo(from, end) {
		limit := flex.Watts(0)
		for _, list := range d.lists {
			one := loadBound{
				lists:     [][]flex.Step{list},
				power:     power,
				openEnded: true,
			}

			limit = max(limit, one.powerAt(s.From))
		}

		most = appendStep(most, flex.Step{Span: s, Limit: limit})
	}

	return most
}

// record records with the plan what it was made from, and the expected shortfall.
func (t *heatedTank) record(plan *tank.Plan) {
	t.plan.Stored, t.plan.StoredAt = t.stored, t.from
	t.plan.Basis = t.basis
	t.plan.Lack, t.plan.LackAt = 0, time.Time{}
	t.plan.Expected = t.plannedSteps(plan)

	if level, slot := plan.Lowest(); slot >= 0 && level < 0 {
		t.plan.Lack = flex.WattHours(-level)
		t.plan.LackAt = t.slots[slot].To
	}
}

// heatersAt returns the power that the tanks and heat pumps of a site may draw by their plans,
// except for one asset.
func heatersAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	except flex.AssetID,
) ([]loadBound, error) {
	plans, err := tx.TankPlansAt(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("read the plans of tanks: %w", err)
	}

	if len(plans) == 0 {
		return nil, nil
	}

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return nil, err
	}

	var all []loadBound
	for i := range plans {
		p := &plans[i]
		if p.AssetID == except {
			continue
		}

		steps := p.May
		accepted, err := tx.Accepted(ctx, p.AssetID)
		if err != nil {
			return nil, err
		}

		if accepted >= p.Generation {
			steps = p.Steps
		}

		all = append(all, loadBound{
			lists:     [][]flex.Step{steps},
			power:     p.Power,
			openEnded: true,
			wiring:    wiringOf(assets, p),
			requests:  p.Asks,

			pending: accepted < p.Generation,
		})
	}

	return all, nil
}

// wiringOf returns the wiring of the heater of a plan; one unknown phase if it is not among
// the assets.
func wiringOf(assets []flex.Asset, p *store.TankPlan) flex.Wiring {
	for i := range assets {
		if assets[i].ID == p.AssetID {
			return assets[i].WiringAt(&p.Power)
		}
	}

	return flex.Wiring{}
}

// heaterExplanation returns the plan in force of a tank or heat pump as a schedule, with its
// explanation. It is NotFound, with the reason, if the asset is not controlled or not planned
// yet.
func heaterExplanation(
	ctx context.Context,
	tx *store.Tx,
	c store.PlanningState,
) (Explanation, error) {
	t, err := tankOf(ctx, tx, c)
	if err != nil {
		return Explanation{}, err
	}

	return t.explanation(ctx, tx)
}

// explanation returns the plan in force with its explanation.
func (t *heatedTank) explanation(
	ctx context.Context,
	tx *store.Tx,
) (Explanation, error) {
	if why := t.uncontrolledReason(); why != "" {
		return Explanation{}, flex.Fail(
			flex.NotFound,
			"asset %v has no schedule: it is left alone, because %s",
			t.asset.ID,
			why,
		)
	}

	if t.plan.Generation == 0 || t.plan.Freed {
		return Explanation{}, flex.Fail(
			flex.NotFound,
			"asset %v has no schedule yet: it is planned within a minute",
			t.asset.ID,
		)
	}

	if err := t.readCalls(ctx, tx); err != nil {
		return Explanation{}, err
	}

	var x Explanation
	x.AssetID, x.EventID = t.asset.ID, t.plan.EventID
	x.Generation, x.MadeAt = t.plan.Generation, t.plan.MadeAt
	x.Steps = t.plan.Steps
	x.Exact, x.Cause = true, store.CauseInputs
	if t.asset.Type == flex.HeatPump {
		explainHeatPump(t, &x)
	} else {
		x.Summary = t.summary()
		x.Inputs = t.inputs()
	}

	x.Summary += t.callText()

	var err error
	x.Accepted, err = tx.Accepted(ctx, t.asset.ID)

	return x, err
}

// basisText says where the heat in a tank is known from.
var basisText = map[store.TankBasis]string{
	store.TankRead:     "as it was read lately",
	store.TankExpected: "by what was planned since it was last read",
	store.TankAssumed: "as nothing was ever read of it: it is assumed to have been at the bottom of its " +
		"band when it was first planned",
}

// summary describes a tank's plan and its result.
func (t *heatedTank) summary() string {
	clock := func(at time.Time) string {
		return flex.Clock(at, flex.London, "Mon 15:04")
	}

	var on []string
	for _, s := range t.plan.Steps {
		if s.Limit > 0 && s.To.After(t.from) {
			on = append(on, clock(s.From)+" to "+clock(s.To))
		}
	}

	windows := "is off throughout"
	if len(on) > 0 {
		windows = "is on from " + strings.Join(on, ", from ")
	}

	text := fmt.Sprintf(
		"The element, %g kW, %s. At %s the tank held %.1f kWh more than at %g °C, the bottom of its comfort band, %s; the top, %g °C, is %.1f kWh.",
		t.power.KW(),
		windows,
		clock(t.plan.StoredAt),
		t.plan.Stored.KWh(),
		t.low,
		basisText[t.plan.Basis],
		t.high,
		t.capacity.KWh(),
	)

	if !t.asset.Heat.Low.Given {
		text += " The band is assumed, as none was set."
	}

	if water := t.model.Water; water != nil {
		text += fmt.Sprintf(
			" What is drawn was learned from %d days of readings since %s.",
			water.Days,
			water.Since,
		)
	}

	if t.plan.Lack > 0 {
		text += fmt.Sprintf(
			" It cannot be kept in its band: at %s it is expected to lack %.1f kWh, some %.0f degrees.",
			clock(t.plan.LackAt),
			t.plan.Lack.KWh(),
			t.plan.Lack.KWh()/t.capacity.KWh()*(t.high-t.low),
		)
	}

	return text
}

// inputs returns what a tank's plan was made from, and where each value is from.
func (t *heatedTank) inputs() []Input {
	band, from := "default", "default"
	how := "assumed: tapping cycle M of EU regulation 814/2013"
	if t.asset.Heat.Low.Given {
		band = "asset"
	}

	if water := t.model.Water; water != nil {
		from = "readings"
		how = fmt.Sprintf(
			"learned from %d days of readings since %s",
			water.Days,
			water.Since,
		)
	}

	used, spare := t.dailyUse()
	comfort := fmt.Sprintf("%g to %g °C", t.low, t.high)

	return []Input{
		{
			Name:   "comfort_band",
			Value:  comfort,
			Origin: band,
		},
		{
			Name:   "used_in_a_day",
			Value:  fmt.Sprintf("%.1f kWh, drawn and lost", float64(used)/1000),
			Origin: from,
			Detail: how,
		},
		{
			Name:   "kept_for_more",
			Value:  fmt.Sprintf("up to %.1f kWh", float64(spare)/1000),
			Origin: from,
			Detail: "for what is drawn beyond that before it can be heated",
		},
	}
}
