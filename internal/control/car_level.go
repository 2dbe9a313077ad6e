package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// levelDays is how many days back the state of charge of a car that is plugged in may have
// been read.
const levelDays = 7

// carLevels returns the state of charge of a car that is plugged in, in %: since its last
// reading as it was metered or planned, and then by its schedule in force until ready-by.
// There are none without a schedule, a capacity or a reading of this stay.
func carLevels(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) ([]LevelAt, error) {
	capacity := capacityOf(&c.Asset)
	if !c.Open() || c.Current.Generation == 0 || capacity <= 0 {
		return nil, nil
	}

	read, err := stayLevel(ctx, tx, c)
	if err != nil || read.At.IsZero() {
		return nil, err
	}

	since := flex.Span{From: read.At, To: tx.Now()}
	g, err := progressOf(ctx, tx, &c.Current, since)
	if err != nil {
		return nil, err
	}

	course := chargeSimulation{
		discharge: &store.Discharge{Capacity: capacity},
		stored:    flex.WattHours(read.Value / 100 * float64(capacity)),
		levels:    []LevelAt{read},
	}

	if !since.Empty() {
		course.add(since.To, g.delivered(since), possibleDischarge(c, &g, since))
	}

	for _, s := range scheduleParts(&c.Current, since.To) {
		charged := flex.WattHours(scheduledEnergy(&c.Current, s) / 3600)
		course.add(s.To, charged, dischargeEnergy(&c.Current, s))
	}

	return course.levels, nil
}

// chargeSimulation simulates the state of charge of a car.
type chargeSimulation struct {
	discharge *store.Discharge
	stored    flex.WattHours
	levels    []LevelAt
}

// add continues to an instant, with the energy that is charged and discharged until then.
func (l *chargeSimulation) add(at time.Time, charged, discharged flex.WattHours) {
	l.stored = storedAfter(l.discharge, l.stored, charged, discharged)
	part := 100 * float64(l.stored) / float64(l.discharge.Capacity)
	l.levels = append(l.levels, LevelAt{at, part})
}

func capacityOf(a *flex.Asset) flex.WattHours {
	if a.Capacity == nil {
		return 0
	}
	return *a.Capacity
}

// stayLevel returns the newest reading of a car's state of charge since it was plugged in; its
// instant is zero if there is none.
func stayLevel(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
) (LevelAt, error) {
	stay := c.Session.PluggedInAt.Add(-chargeReadBefore)
	q := store.ReadingQuery{
		Assets: []flex.AssetID{c.Asset.ID},
		Labels: levelLabels(c.Asset.Type),
	}

	for i := range levelDays {
		day := flex.DayAt(tx.Now()).Add(-i)
		if day.Add(1).Start().After(stay) {
			q.Days = append(q.Days, day)
		}
	}

	found, err := tx.Readings(ctx, q)
	last := LevelAt{}
	for _, r := range found {
		if r.To.Before(stay) || r.To.After(tx.Now()) || !r.To.After(last.At) {
			continue
		}

		value, known := levelOf(&r, &c.Asset, capacityOf(&c.Asset))
		if known {
			last = LevelAt{r.To, value}
		}
	}

	return last, err
}

// scheduleParts returns the spans, from an instant to ready-by, in each of which a schedule
// has the same steps.
func scheduleParts(s *store.Schedule, from time.Time) []flex.Span {
	var parts []flex.Span
	bounds := []time.Time{from, s.From.ReadyBy}
	steps := s.Steps
	if s.From.Discharge != nil {
		steps = slices.Concat(steps, s.From.Discharge.Discharges)
	}

	for _, step := range steps {
		bounds = append(bounds, step.From, step.To)
	}

	slices.SortFunc(bounds, time.Time.Compare)
	for i, to := range bounds[1:] {
		part := flex.Span{From: bounds[i], To: to}
		part = part.Meet(flex.Span{From: from, To: s.From.ReadyBy})
		if !part.Empty() {
			parts = append(parts, part)
		}
	}

	return parts
}

// AtLast returns the expected level at the end of the plan, which for a car is at its
// ready-by; false if it is not known.
func (l *Level) AtLast() (float64, bool) {
	if len(l.Expected) == 0 {
		return 0, false
	}
	return l.Expected[len(l.Expected)-1].Value, true
}
