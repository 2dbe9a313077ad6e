package grid

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// steering adds up what the schedules of sessions had cars draw.
type steering struct {
	e       *Evidence
	regions map[flex.AssetID]store.AssetRegion
	hours   map[hourKey]*SteeredHour
	// by region, then by minute since 1970; "all" is one
	changes map[string]map[int64]flex.Watts

	of   stay      // the session whose schedules are being read, newest first
	rest flex.Span // the part of it that was not covered by these yet
}

type hourKey struct {
	region string
	unix   int64
}

// allRegions is the name of the sum of all regions.
const allRegions = "all"

func newSteering(e *Evidence, assets []store.AssetRegion) *steering {
	w := &steering{
		e:       e,
		regions: map[flex.AssetID]store.AssetRegion{},
		hours:   map[hourKey]*SteeredHour{},
		changes: map[string]map[int64]flex.Watts{},
	}

	for _, a := range assets {
		w.regions[a.Asset] = a
	}

	return w
}

// hour returns the hour of a region that contains an instant.
func (w *steering) hour(region string, at time.Time) *SteeredHour {
	from := at.Truncate(time.Hour)
	k := hourKey{region, from.Unix()}
	if w.hours[k] == nil {
		w.hours[k] = &SteeredHour{Region: region, From: from}
	}

	return w.hours[k]
}

// change records that a region's planned power changes at an instant.
func (w *steering) change(region string, at time.Time, by flex.Watts) {
	if !w.e.Span.Contains(at) {
		return
	}

	for _, name := range []string{allRegions, region} {
		if w.changes[name] == nil {
			w.changes[name] = map[int64]flex.Watts{}
		}

		w.changes[name][at.Unix()/60] += by
	}
}

// add counts one schedule of a session, up to the beginning of the next one. The newest comes
// first; with it the need is compared.
func (w *steering) add(p *store.Plugged) {
	of := stay{p.AssetID, p.PluggedInAt}
	newest := of != w.of
	if newest {
		w.begin(p)
	}

	if !p.Planned || p.Power <= 0 {
		if newest && w.e.Span.Contains(p.PluggedInAt) {
			w.e.Needs.Unplanned++
		}

		return
	}

	if newest {
		w.judge(p, w.untilReady(p))
	}

	region := w.regions[p.AssetID].Region
	for _, s := range p.Steps {
		power := min(s.Limit, p.Power)
		step := s.Span.Meet(w.rest)
		if power == 0 || step.Empty() {
			continue
		}

		w.change(region, step.From, power)
		if step.To.Before(w.e.At) { // a step that is still running has no end yet
			w.change(region, step.To, -power)
		}

		w.spread(region, step.Meet(w.e.Span), power)
	}

	w.rest.To = flex.Earlier(w.rest.To, p.Steps[0].From)
}

// begin starts another session.
func (w *steering) begin(p *store.Plugged) {
	end := p.PluggedOutAt
	if end.IsZero() {
		end = w.e.At
	}

	w.of = stay{p.AssetID, p.PluggedInAt}
	w.rest = flex.Span{From: p.PluggedInAt, To: end}
}

// untilReady returns what the newest schedule of a session has it draw until ready-by.
func (w *steering) untilReady(p *store.Plugged) flex.WattHours {
	here := w.rest.Meet(flex.Span{From: p.PluggedInAt, To: p.ReadyBy})
	sum := flex.WattHours(0)
	for _, s := range p.Steps {
		sum += min(s.Limit, p.Power).For(s.Span.Meet(here).Len())
	}

	return sum
}

// spread adds a step's energy to the hours that it touches.
func (w *steering) spread(region string, step flex.Span, power flex.Watts) {
	for hour := step.From.Truncate(time.Hour); hour.Before(step.To); hour = hour.Add(time.Hour) {
		within := step.Meet(flex.Span{From: hour, To: hour.Add(time.Hour)})
		w.hour(region, hour).Planned += power.For(within.Len())
	}
}

// judge counts whether a session's plan meets its need, if its ready-by lies in the span.
func (w *steering) judge(p *store.Plugged, planned flex.WattHours) {
	n := &w.e.Needs
	if !w.e.Span.Contains(p.ReadyBy) || p.Need == 0 {
		return
	}

	if !w.isConclusive(p) {
		return
	}

	n.Stays++
	if !p.PluggedOutAt.IsZero() && p.PluggedOutAt.Before(p.ReadyBy) {
		n.LeftEarly++
		return
	}

	left := p.Need - p.Delivered
	short := left - planned
	if short <= p.Power.For(roundUp*time.Second) { // a schedule is cut to whole minutes
		return
	}

	why := shortOfHours
	if p.Power.For(p.ReadyBy.Sub(p.Steps[0].From)) < left {
		why = shortOfTime
	}

	n.Missed++
	n.Why[why]++
	n.List = append(n.List, MissedNeed{
		w.regions[p.AssetID].Name,
		p.ReadyBy,
		p.Need,
		short,
		why,
	})
}

// isConclusive reports whether the newest schedule of a session shows if its need is met: its
// time before ready-by is over, and it was made before ready-by. A later schedule only says
// what a car that is done may draw behind a main fuse.
func (w *steering) isConclusive(p *store.Plugged) bool {
	goesOn := p.PluggedOutAt.IsZero() && p.ReadyBy.After(w.e.At)
	return !goesOn && p.Steps[0].From.Before(p.ReadyBy)
}

// finish sorts what was added up.
func (w *steering) finish() {
	for _, h := range w.hours {
		w.e.Hours = append(w.e.Hours, *h)
	}

	slices.SortFunc(w.e.Hours, func(a, b SteeredHour) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Region, b.Region))
	})

	for region, changes := range w.changes {
		w.e.Steps = append(w.e.Steps, largest(region, changes))
	}

	slices.SortFunc(w.e.Steps, func(a, b PowerStep) int {
		if (a.Region == allRegions) != (b.Region == allRegions) {
			return map[bool]int{true: -1, false: 1}[a.Region == allRegions]
		}

		return cmp.Compare(a.Region, b.Region)
	})

	n := &w.e.Needs
	slices.SortStableFunc(n.List, func(a, b MissedNeed) int {
		return cmp.Compare(b.Short, a.Short)
	})

	n.List = n.List[:min(len(n.List), missedMax)]
}

// largest returns the minute in which the planned power changes most; the first of equal ones.
func largest(region string, changes map[int64]flex.Watts) PowerStep {
	best := PowerStep{Region: region}
	for minute, change := range changes {
		at := time.Unix(minute*60, 0).UTC()
		size, most := abs(change), abs(best.Change)
		if size > most || size == most && at.Before(best.At) {
			best.At, best.Change = at, change
		}
	}

	return best
}

func abs(w flex.Watts) flex.Watts { return max(w, -w) }
