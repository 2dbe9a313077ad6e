package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// HouseholdHeat is a hot-water tank or a heat pump, with when it is planned to heat and the
// expected temperatures.
type HouseholdHeat struct {
	Asset   flex.Asset
	Planned bool // whether there is a plan; the following fields are from it
	Heating []flex.Span
	Until   time.Time // the end of the plan
	// the range of the expected temperature of the water or the rooms until then, in °C
	Coldest float64
	Warmest float64
	// when the temperature is furthest below the comfort band; zero for never
	LackAt time.Time
}

// householdHeat is one heater's part of Household.
func (s *Service) householdHeat(
	ctx context.Context,
	org flex.OrgID,
	a flex.Asset,
	now time.Time,
) (HouseholdHeat, error) {
	var h HouseholdHeat
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		h = HouseholdHeat{Asset: a}
		c, err := tx.PlanningState(ctx, a.ID)
		if err != nil {
			return err
		}

		t, err := tankOf(ctx, tx, c)
		if err != nil || t.uncontrolledReason() != "" {
			return err
		}

		if t.plan.Generation > 0 && !t.plan.Freed && t.plan.End().After(now) {
			h.setPlan(t, now)
		}

		return nil
	})

	return h, err
}

// setPlan sets the fields that follow from a heater's plan, from now on.
func (h *HouseholdHeat) setPlan(t *heatedTank, now time.Time) {
	h.Planned = true
	h.Until = t.plan.End()
	lack := t.plan.Lack > 0
	if t.plan.Room != nil {
		lack = t.plan.Room.Lack > 0
	}
	if lack && t.plan.LackAt.After(now) {
		h.LackAt = t.plan.LackAt
	}

	var steps []flex.Step
	for _, d := range t.plan.Draws() {
		if d.To.After(now) {
			steps = append(steps, flex.Step{Span: d.Span, Limit: d.Power})
		}
	}
	h.Heating = openSpans(steps)

	var degrees []float64
	for _, l := range t.expectedLevels() {
		if !l.At.Before(now) {
			degrees = append(degrees, l.Value)
		}
	}

	if len(degrees) > 0 {
		h.Coldest, h.Warmest = slices.Min(degrees), slices.Max(degrees)
	}
}
