package control

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestFence_NewTail has two cars that keep their schedules but for what they have once they are done. The charger of one may still follow an
// older schedule, which the other's was planned without: both are sent what the fuse carries all the same, and nothing is refused.
func TestFence_NewTail(t *testing.T) {
	now := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	ready := now.Add(13 * time.Hour)
	f := &sitePlan{fuse: 10000, now: now, from: now, tight: true, replanTimes: map[time.Time][]flex.AssetID{}}

	charges := func(from, to time.Duration) []flex.Step {
		return []flex.Step{
			{Span: flex.Span{From: now, To: now.Add(from)}},
			{Span: flex.Span{From: now.Add(from), To: now.Add(to)}, Limit: 7400},
			{Span: flex.Span{From: now.Add(to), To: ready}},
			{Span: flex.Span{From: ready, To: ready.Add(TailTime)}, Limit: 3000},
		}
	}

	add := func(id byte, need flex.WattHours, sent ...[]flex.Step) *siteCar {
		e := store.PlanInputs{Power: 7400, Phases: 1, Need: need, ReadyBy: ready, Mode: flex.Minimise}
		p := &store.ScheduledAsset{}
		p.Current.AssetID, p.Current.Generation = flex.AssetID{id}, 1
		p.Current.Steps, p.Current.From = sent[0], e
		car := &siteCar{member: member{ScheduledAsset: p, from: e}, possibleSteps: sent}
		f.cars = append(f.cars, car)

		return car
	}

	kept := add(1, 14800, charges(6*time.Hour, 8*time.Hour))
	add(2, 7400, charges(8*time.Hour, 9*time.Hour), charges(7*time.Hour+31*time.Minute, 8*time.Hour))
	f.addLoads(nil, nil)
	f.buildProblems()

	s := &Service{}
	if err := f.solve(t.Context(), s); err != nil {
		t.Fatal(err)
	}

	if sent := s.guarded(t.Context(), f); len(sent) != 2 || s.Refused() > 0 {
		t.Errorf("%d are sent schedules, and %d plans are refused", len(sent), s.Refused())
	}
	if lacks := kept.shortfallOf(kept.stepsForNow); lacks > heatSlack {
		t.Errorf("the one that keeps its schedule lacks %d Wh of its need until the other has accepted", lacks)
	}
	if !slices.Contains(f.waiting(), kept.Current.AssetID) {
		t.Error("it is not planned again once the other may have accepted")
	}
}
