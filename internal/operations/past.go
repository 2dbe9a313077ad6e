package operations

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
)

// PastQuery asks what a fleet, or a group of it, did on a day.
type PastQuery struct {
	Org   flex.OrgID // the first if zero
	Day   flex.Day   // today if zero
	Group PastGroup
}

// PastGroup is a part of a fleet, by an attribute of its assets; the zero group is all.
type PastGroup struct{ Attribute, Name string }

// PastView is a day of a fleet's past, beside the day before and the same day a week before.
type PastView struct {
	Orgs      []flex.Org
	Org       flex.OrgID // zero if there is none
	Day       flex.Day
	Today     flex.Day
	Group     PastGroup
	Groups    []PastGroup // that there were on the day, beside the whole
	CountedAt time.Time   // when the newest of its half-hours was counted; zero if none was
	HalfHours []PastHalfHour
	Days      [3]PastDay // the day, the day before, a week before
}

// PastHalfHour is a half-hour of the day, with those of the other days at the same time on the clock.
type PastHalfHour struct {
	At      time.Time
	Price   *flex.Price // that plans were made on, as known now
	Counted bool        // what follows is zero where it was not
	Energy  PastEnergy
	Cap     *flex.Watts
	Plugged int
	// chargers with a car throughout, and those of them that were metered
	Wanted int
	Known  int
	Before *PastEnergy // the day before; nil where the clock did not show this time, or nothing was counted
	Week   *PastEnergy
}

// PastEnergy is what was planned and drawn in a half-hour.
type PastEnergy struct {
	Planned        flex.WattHours
	Unmoved        flex.WattHours // without flexd
	Metered        flex.WattHours // by chargers
	BatteryPlanned flex.WattHours
	BatteryMetered flex.WattHours
	HeatPlanned    flex.WattHours // by tanks and heat pumps
	HeatMetered    flex.WattHours
}

// PastDay is the sums of a day.
type PastDay struct {
	Day     flex.Day
	Counted int // half-hours
	Energy  PastEnergy
	Wanted  int
	Known   int
	// what the schedules of cars that were plugged in on the day cost less at market prices than the same energy
	// at full power from the plug-in on
	Saved    flex.MicroPounds
	Unpriced int // sessions that are left out of it, as a price is missing
	Earned   flex.MicroPounds
}

// Past is what an organisation's fleet did on a day.
func (s *Service) Past(
	ctx context.Context,
	q PastQuery,
) (PastView, error) {
	var v PastView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, q.Org)
		v = PastView{Orgs: orgs, Group: q.Group}
		if tx == nil || err != nil {
			return err
		}

		v.Org, v.Today = tx.Org(), flex.DayAt(tx.Now())
		v.Day = q.Day
		if v.Day == (flex.Day{}) {
			v.Day = v.Today
		}

		v.Groups, err = groupsOn(ctx, tx, v.Day)
		if err != nil {
			return err
		}

		return v.fill(ctx, tx)
	})

	return v, err
}

// groupsOn lists the groups that were counted on a day.
func groupsOn(
	ctx context.Context,
	tx *store.Tx,
	day flex.Day,
) ([]PastGroup, error) {
	var gs []PastGroup
	for _, attribute := range store.FleetAttributes {
		names, err := tx.FleetNames(ctx, attribute, day.Span())
		if err != nil {
			return nil, err
		}

		for _, name := range names {
			gs = append(gs, PastGroup{attribute, name})
		}
	}

	return gs, nil
}

// fill reads the three days.
func (v *PastView) fill(ctx context.Context, tx *store.Tx) error {
	var days [3][]PastHalfHour
	for i, back := range []int{0, 1, 7} {
		var err error
		d := &v.Days[i]
		d.Day = v.Day.Add(-back)
		days[i], err = v.read(ctx, tx, d)
		if err != nil {
			return err
		}

	}

	v.HalfHours = days[0]
	beside(v.HalfHours, days[1], func(h *PastHalfHour, e *PastEnergy) { h.Before = e })
	beside(v.HalfHours, days[2], func(h *PastHalfHour, e *PastEnergy) { h.Week = e })

	for i := range days {
		v.Days[i].sum(days[i])
	}

	return nil
}

// read reads a day's half-hours, with what was saved and earned noted in the day's sums.
func (v *PastView) read(
	ctx context.Context,
	tx *store.Tx,
	d *PastDay,
) ([]PastHalfHour, error) {
	day := d.Day
	prices, err := tx.Quotes(ctx, pricing.Planning, day.Span())
	if err != nil {
		return nil, err
	}

	counted, err := tx.FleetHalfHours(ctx, v.Group.Attribute, day.Span())
	if err != nil {
		return nil, err
	}

	first := flex.PeriodAt(day.Start())
	hs := make([]PastHalfHour, day.Periods())
	for i := range hs {
		hs[i].At = first.Add(i).Start()
		if i < len(prices) && prices[i].Known {
			hs[i].Price = &prices[i].Price
		}
	}

	for _, c := range counted {
		if c.Name == v.Group.Name {
			v.take(d, &hs[flex.PeriodAt(c.At).Sub(first)], &c)
		}
	}

	return hs, nil
}

// take notes a half-hour as it was counted.
func (v *PastView) take(d *PastDay, h *PastHalfHour, c *store.FleetHalfHour) {
	h.Counted = true
	h.Cap = c.Cap
	h.Plugged = c.Plugged
	h.Wanted, h.Known = c.Wanted, c.Known

	h.Energy = PastEnergy{
		Planned:        c.Planned,
		Unmoved:        c.Unmoved,
		Metered:        c.Metered,
		BatteryPlanned: c.BatteryPlanned,
		BatteryMetered: c.BatteryMetered,
		HeatPlanned:    c.HeatPlanned,
		HeatMetered:    c.HeatMetered,
	}

	d.Earned += c.Earned
	d.Saved += c.Saved
	d.Unpriced += c.Unpriced
	if d.Day == v.Day && c.CountedAt.After(v.CountedAt) {
		v.CountedAt = c.CountedAt
	}
}

// instantText is an instant for those who read of it: London's date and time, with GMT or BST.
func instantText(at time.Time) string {
	return at.In(flex.London).Format("2 January 2006, 15:04 MST")
}

// wallTime is what the clocks in Britain show.
func wallTime(at time.Time) string {
	return at.In(flex.London).Format("15:04")
}

// beside puts half-hours of another day beside those of a day at the same time on the clock. Where that
// comes twice on one of them, the first goes with the first, and a second alone with the only one.
func beside(
	of, other []PastHalfHour,
	put func(*PastHalfHour, *PastEnergy),
) {
	by := map[string][]*PastHalfHour{}
	for i := range other {
		clock := wallTime(other[i].At)
		by[clock] = append(by[clock], &other[i])
	}

	seen := map[string]int{}
	for i := range of {
		clock := wallTime(of[i].At)
		found := by[clock]
		nth := seen[clock]
		seen[clock]++

		if len(found) == 0 {
			continue
		}

		if o := found[min(nth, len(found)-1)]; o.Counted {
			put(&of[i], &o.Energy)
		}
	}
}

// sum adds up the day's half-hours.
func (d *PastDay) sum(hs []PastHalfHour) {
	for i := range hs {
		h := &hs[i]
		if !h.Counted {
			continue
		}

		d.Counted++
		d.Wanted += h.Wanted
		d.Known += h.Known
		d.Energy.add(&h.Energy)
	}
}

func (e *PastEnergy) add(o *PastEnergy) {
	e.Planned += o.Planned
	e.Unmoved += o.Unmoved
	e.Metered += o.Metered
	e.BatteryPlanned += o.BatteryPlanned
	e.BatteryMetered += o.BatteryMetered
	e.HeatPlanned += o.HeatPlanned
	e.HeatMetered += o.HeatMetered
}

// HeatAttributes are what the map of readings groups a fleet by.
var HeatAttributes = slices.Clone(store.FleetAttributes)

// CoverageView is which half-hours of a day were metered, by group, the worst first.
type CoverageView struct {
	Orgs      []flex.Org
	Org       flex.OrgID // zero if there is none
	Day       flex.Day
	Attribute string
	Times     []time.Time
	Rows      []CoverageRow
	Wanted    int
	Missing   int
}

// CoverageRow is a group's half-hours.
type CoverageRow struct {
	Name    string // "" for assets of which none is known
	Cells   []CoverageCell
	Wanted  int
	Missing int
}

// CoverageCell is a half-hour of a group: chargers with a car throughout, and those of them that were not metered.
type CoverageCell struct {
	Counted bool
	Wanted  int
	Missing int
}

// Level says how bad it is: nothing wanted, all there, some, half or all missing.
func (c CoverageCell) Level() string { return flex.MissingLevel(c.Missing, c.Wanted) }

// Percent is how many of a hundred are missing, at least 1 where any is.
func (c CoverageCell) Percent() int {
	if c.Missing == 0 {
		return 0
	}

	return max(1, 100*c.Missing/c.Wanted)
}

// Heat says which half-hours of a day were metered, by group of an attribute.
func (s *Service) Heat(
	ctx context.Context,
	q PastQuery,
) (CoverageView, error) {
	var v CoverageView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, q.Org)
		v = CoverageView{Orgs: orgs, Attribute: q.Group.Attribute}
		if tx == nil || err != nil {
			return err
		}

		v.Org, v.Day = tx.Org(), q.Day
		if v.Day == (flex.Day{}) {
			v.Day = flex.DayAt(tx.Now())
		}

		counted, err := tx.FleetHalfHours(ctx, v.Attribute, v.Day.Span())
		v.lay(counted)
		return err
	})

	return v, err
}

// lay puts what was counted into rows.
func (v *CoverageView) lay(counted []store.FleetHalfHour) {
	for i := range v.Day.Periods() {
		v.Times = append(v.Times, v.Day.Period(i+1).Start())
	}

	at := map[string]int{}
	for i := range counted {
		v.add(at, &counted[i])
	}

	v.Rows = slices.DeleteFunc(v.Rows, func(r CoverageRow) bool { return r.Wanted == 0 })
	slices.SortStableFunc(v.Rows, compareMissing)

	for i := range v.Rows {
		v.Wanted += v.Rows[i].Wanted
		v.Missing += v.Rows[i].Missing
	}
}

// add puts a half-hour into its group's row.
func (v *CoverageView) add(at map[string]int, c *store.FleetHalfHour) {
	i, known := at[c.Name]
	if !known {
		i = len(v.Rows)
		at[c.Name] = i
		v.Rows = append(v.Rows, CoverageRow{
			Name:  c.Name,
			Cells: make([]CoverageCell, len(v.Times)),
		})
	}

	row := &v.Rows[i]
	slot := flex.PeriodAt(c.At).Sub(v.Day.Period(1))
	missing := c.Wanted - c.Known
	row.Cells[slot] = CoverageCell{true, c.Wanted, missing}
	row.Wanted += c.Wanted
	row.Missing += missing
}

// compareMissing puts the larger part that is missing first, and of equal parts the larger number.
func compareMissing(a, b CoverageRow) int {
	part := b.Missing*a.Wanted - a.Missing*b.Wanted
	if part != 0 {
		return part
	}

	return b.Missing - a.Missing
}
