package settle

import (
	"cmp"
	"fmt"
	"slices"

	"flexd/internal/flex"
)

// Metering says whose meter an event is settled on.
type Metering string

// The meterings.
const (
	Boundary Metering = "boundary" // the site's meter
	Asset    Metering = "asset"    // the asset's own
)

// Terms is how revenue becomes a credit. DefaultTerms holds the printed defaults.
type Terms struct {
	Share      Parts // of the gross revenue that goes to the site's user
	PaidEarly  Parts // of the user's share that is credited on an estimate
	LossFactor Parts // by which settlement scales volumes at the site
	Rounding   Rounding
	ClawBack   bool // whether an event that cost money takes it from the user
	// whether that is asked of the events of a month together: then a credit may be below zero
	ByMonth bool
}

// DefaultTerms is half for the user, at once and in full, without losses; an event that
// cost money costs the user nothing.
var DefaultTerms = Terms{
	Share:      Whole / 2,
	PaidEarly:  Whole,
	LossFactor: Whole,
}

// MaxPeriods is the most settlement periods of one event: those of the longest day.
const MaxPeriods = 50

// EventPart is a flex event's part in the deviation of its meter.
type EventPart struct {
	Event flex.FlexEventID
	First int // settlement period of the day, from 1
	Last  int
	Meant []flex.WattHours // what its schedules would have moved in each period
	// the most that its asset can have moved in a half-hour; 0: not known
	Most flex.WattHours
	// Bounds is between what its asset can have moved in each period, where it is known that
	// closely: with a nominated baseline, from all of the plan to all that the car could take.
	Bounds []Bound
	// what instructions pay for
	Instructed []Instructed
}

// Bound has the least and the most that an event can have moved.
type Bound struct{ Least, Most flex.WattHours }

// Case has everything that the settlement of one flex event depends on. An event is within one
// settlement day.
type Case struct {
	Event flex.FlexEventID
	Day   flex.Day
	First int // settlement period of the day, from 1
	Last  int
	// what its schedules would have moved in each period
	Meant []flex.WattHours
	// the most that its asset can have moved in a half-hour; 0: not known
	Most       flex.WattHours
	Bounds     []Bound      // as in EventPart
	Instructed []Instructed // as in EventPart
	// the other events settled together with it, on the same meter
	Others   []EventPart
	Metering Metering
	Label    flex.Label // by which it was metered; empty: several
	// in order of day; the event's day and those before it
	Metered []MeteredDay
	// which read each half-hour of the events settled together; it decides nothing
	Devices []flex.AssetID
	// energy that is settled on meters of assets behind this one, or on chargers at which a
	// car was
	SettledElsewhere []SettledElsewhere
	EventDays        []flex.Day // days that held an event of the same meter
	// of the event's day, for the nominated method: the supported part of the plans
	Nominated MeteredDay
	// what the assets of the events used on the days before, for the same at a boundary
	Used []MeteredDay
	// something that is still awaited may support more of the plans
	Pending bool
	Prices  []flex.PricedPeriod
	Rule    Rule
	Terms   Terms
	Final   bool // whether prices and readings are the market's final ones
	// whether the metered data was selected by the user's consent; not part of the inputs
	Consented bool
}

// SettledElsewhere is the part of a meter's deviation in a settlement period that counts
// elsewhere: the deviation of assets behind it that are settled on their own meters, or for a
// car's meter, that of its site's chargers.
type SettledElsewhere struct {
	Period int
	Flex   flex.WattHours
	Known  bool // otherwise this meter's own deviation is not known either
}

// Settled is one settlement period of a result.
type Settled struct {
	Period   int
	Baseline flex.WattHours // of the meter
	// the standard error of the baseline, as far as it is the event's
	Error   flex.WattHours
	Metered flex.WattHours // by the meter
	Flex    flex.WattHours // the event's part of the meter's deviation
	Price   flex.Price
	Revenue PicoPounds // before the loss factor
	Read    bool       // whether its reading is known
	// whether all else is known too; if not, nothing counts yet
	Known bool

	Compared  bool           // whether there is a baseline to compare with
	Deviation flex.WattHours // of the meter, less what is settled apart
	// of it, beyond what the events' assets can have moved
	Unassigned flex.WattHours

	// which read it; zero: not known, or not kept
	Device      flex.AssetID
	Source      string             // of the price, for who reads the result
	Publication flex.PublicationID // that the price is from
	Instruction flex.InstructionID // that pays for it, or for a part of its time
}

// Result is what a case comes to, and why.
type Result struct {
	Event      flex.FlexEventID
	Day        flex.Day
	Metering   Metering
	Label      flex.Label
	Method     Method
	Quality    Quality
	Used       []flex.Day // newest first
	Excluded   []Excluded
	Adjusted   bool
	Adjustment flex.WattHours
	Periods    []Settled
	// periods that wait for a reading or a price; the result is provisional
	Missing int
	Final   bool
	Flex    flex.WattHours
	Gross   flex.MicroPounds
	// the user's, as far as it is paid now; below zero if it is netted with others
	Credit flex.Pence
	Owed   flex.Pence // the user's in all
	Kept   flex.Pence // the platform's: gross less what is owed

	// what the events settled before it on the same meter earned; they are rounded together
	Before PicoPounds
	// on which it was paid; PaidEarly is whole once it is final
	Terms Terms

	// Consented is, of a boundary's, that no reading behind it lies outside the user's consent.
	// Results of before that was asked of days of comparison have it not.
	Consented bool
}

// Provisional reports whether the result can still change without any correction, for
// want of readings, prices or the market's final run.
func (r *Result) Provisional() bool { return !r.Final || r.Missing > 0 }

// Settle works out a case. It fails on a case that contradicts itself: an event outside
// its day, days out of order, quantities out of bounds.
func Settle(c *Case) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	r := &Result{
		Event:     c.Event,
		Day:       c.Day,
		Metering:  c.Metering,
		Label:     c.Label,
		Method:    c.Rule.Method,
		Final:     c.Final,
		Consented: c.Consented,
	}

	b := c.Rule.find(c, c.slots())
	r.Quality, r.Used = b.quality, b.used
	r.Excluded = b.excluded
	r.Adjusted, r.Adjustment = b.adjusted, b.adjustment

	if c.Pending && !c.Final {
		r.Missing++
	}

	before, exact := c.earned(r, &b)
	if r.Quality != Insufficient {
		r.pay(before, exact, &c.Terms)
	}

	return r, nil
}

// earned settles the half-hours of the events settled together. It adds the event's own to
// its result, and returns what it earns and what the events of lower ids do.
func (c *Case) earned(r *Result, b *baseline) (before, exact PicoPounds) {
	claims := c.claims()
	for _, n := range c.own() {
		s, parts := c.period(n, b, claims)
		for i, e := range claims {
			covers := n >= e.First && n <= e.Last
			if !covers {
				continue
			}

			if e.Event == c.Event {
				s.Flex = parts[i]
				s.Error = errorShare(parts, i, s.Error)
				s.Revenue = Revenue(s.Flex, s.Price)
				exact += s.Revenue
				r.add(s)
				continue
			}

			price, known := c.priced(n, e.Instructed)
			if known && compareID(e.Event, c.Event) < 0 {
				before += Revenue(parts[i], price)
			}
		}
	}

	return before, exact
}

// add adds a settlement period of the event.
func (r *Result) add(s Settled) {
	if !s.Known {
		r.Missing++
	}
	r.Flex += s.Flex
	r.Periods = append(r.Periods, s)
}

// period settles one settlement period, and returns the parts of the claims in it. As long as
// any input is not known, they are zero.
func (c *Case) period(
	n int,
	b *baseline,
	claims []EventPart,
) (Settled, []flex.WattHours) {
	var s Settled
	s.Period = n
	first, _ := c.span()

	if b.energy != nil {
		s.Baseline, s.Compared = b.energy[n-first], true
	}

	if b.errors != nil {
		s.Error = b.errors[n-first]
	}

	if metered := c.metered(c.Day); metered != nil {
		s.Metered, s.Read = metered.At(n)
	}

	if s.Read && n-first < len(c.Devices) {
		s.Device = c.Devices[n-first]
	}

	priced := c.setPrice(&s)
	elsewhere, elsewhereKnown := c.settledElsewhere(n)
	s.Known = s.Read && priced && elsewhereKnown
	if !s.Known || !s.Compared {
		return s, make([]flex.WattHours, len(claims))
	}

	s.Deviation = s.Metered - s.Baseline - elsewhere

	var parts []flex.WattHours
	parts, s.Unassigned = shareBetween(claims, n, s.Deviation)

	return s, parts
}

// setPrice sets the price of a period of the event, and reports whether it is known.
func (c *Case) setPrice(s *Settled) bool {
	var known bool
	s.Price, known = c.priced(s.Period, c.Instructed)
	s.Instruction = instructionOf(s.Period, c.Instructed)
	if isWhollyInstructed(s.Period, c.Instructed) {
		s.Source = InstructedSource
	}

	return known
}

// settledElsewhere returns the energy that is settled on other meters in a period, and whether
// all of it is known.
func (c *Case) settledElsewhere(n int) (flex.WattHours, bool) {
	known := true

	var e flex.WattHours
	for _, a := range c.SettledElsewhere {
		if a.Period == n {
			e += a.Flex
			known = known && a.Known
		}
	}

	return e, known
}

// pay divides the exact revenue between the user and the platform. Events that are settled
// together are rounded together: each gets the rounded sum of it and of those before it, minus
// the rounded sum of those before it.
func (r *Result) pay(
	before, exact PicoPounds,
	t *Terms,
) {
	pence := func(of ...Parts) flex.Pence {
		return (before+exact).Pence(t.Rounding, of...) -
			before.Pence(t.Rounding, of...)
	}

	r.Gross = (before+exact).MicroPounds(t.Rounding, t.LossFactor) -
		before.MicroPounds(t.Rounding, t.LossFactor)
	early := t.PaidEarly

	if r.Final {
		early = Whole
	}

	r.Before, r.Terms = before, *t
	r.Terms.PaidEarly = early
	r.Credit, r.Owed = pence(t.LossFactor, t.Share, early), pence(t.LossFactor, t.Share)

	if t.ByMonth && !t.ClawBack {
		// what cost money counts in full at once
		r.Credit = min(r.Credit, r.Owed)
	} else if !t.ClawBack {
		r.Credit, r.Owed = max(0, r.Credit), max(0, r.Owed)
	}

	r.Kept = pence(t.LossFactor) - r.Owed
}

// slots returns, for each settlement period of the events settled together, the number of
// the period of an ordinary day that begins at the same local time.
func (c *Case) slots() []int {
	first, last := c.span()
	slots := make([]int, 0, last-first+1)

	for n := first; n <= last; n++ {
		slot := n
		if ClockChange(c.Day) {
			local := c.Day.Period(n).Start().In(flex.London)
			slot = (local.Hour()*60+local.Minute())/30 + 1
		}

		slots = append(slots, slot)
	}

	return slots
}

// metered returns what was metered on the day, or nil.
func (c *Case) metered(d flex.Day) *MeteredDay { return dayOf(c.Metered, d) }

func dayOf(days []MeteredDay, d flex.Day) *MeteredDay {
	i, found := slices.BinarySearchFunc(days, d, func(m MeteredDay, d flex.Day) int {
		return compare(m.Day, d)
	})
	if !found {
		return nil
	}

	return &days[i]
}

// price returns the price of settlement period n of the event's day, if one is known.
func (c *Case) price(n int) (flex.Price, bool) {
	p := c.Day.Period(n)
	for _, at := range c.Prices {
		if at.Period == p {
			return at.Price, at.Known
		}
	}

	return 0, false
}

// nominated is the baseline of the plans without market prices, as far as they are supported.
// On an asset's own meter it is the plan. At a boundary it is the plan plus the use of the
// rest of the home: the mean of days on which that is known.
func (c *Case) nominated(slots []int) baseline {
	b := baseline{
		quality: Full,
		energy:  make([]flex.WattHours, len(slots)),
	}

	if c.Metering == Boundary {
		home := c.home()
		b = home.Rule.find(home, slots)
	}

	for i, n := range c.own() {
		e, known := c.Nominated.At(n)
		if !known {
			return baseline{quality: Insufficient, excluded: b.excluded}
		}

		if b.energy != nil {
			b.energy[i] += e
		}
	}

	return b
}

// home is the case of everything behind a boundary except the assets of the events. Days with
// events count too, since the energy of those assets is subtracted.
func (c *Case) home() *Case {
	home := *c
	home.Rule.Method, home.Rule.InDay = Mean, false
	home.Metered = Without(c.Metered, c.Used)
	return &home
}

func (c *Case) check() error {
	for _, e := range c.claims() {
		if e.First < 1 || e.Last < e.First || e.Last > c.Day.Periods() {
			return fmt.Errorf("event %s: settlement periods %d to %d are not within the %d of %s",
				e.Event, e.First, e.Last, c.Day.Periods(), c.Day)
		}
	}

	if y := c.Day.Year; y < FirstHolidayYear || y > LastHolidayYear {
		return fmt.Errorf("event %s: bank holidays are known from %d to %d, not for %s",
			c.Event, FirstHolidayYear, LastHolidayYear, c.Day)
	}

	for i := range c.Metered {
		m := &c.Metered[i]
		if i > 0 && compare(c.Metered[i-1].Day, m.Day) >= 0 {
			return fmt.Errorf(
				"event %s: metered days are not in order at %s",
				c.Event,
				m.Day,
			)
		}

		for _, e := range m.Wh {
			if e > MaxEnergy || e < -MaxEnergy {
				return fmt.Errorf(
					"event %s: %d Wh on %s is beyond what a settlement period holds",
					c.Event,
					e,
					m.Day,
				)
			}
		}
	}

	for _, p := range c.Prices {
		if p.Price > MaxPrice || p.Price < -MaxPrice {
			return fmt.Errorf(
				"event %s: a price of %.2f GBP/MWh is out of range",
				c.Event,
				p.Price.GBPPerMWh(),
			)
		}
	}

	if err := c.checkInstructed(); err != nil {
		return err
	}

	return c.Terms.check()
}

// checkInstructed checks what instructions pay against the bounds of a price and of a period.
func (c *Case) checkInstructed() error {
	parts := slices.Clone(c.Instructed)
	for _, e := range c.Others {
		parts = append(parts, e.Instructed...)
	}

	for _, p := range parts {
		if p.Price <= 0 || p.Price > MaxPrice {
			return fmt.Errorf(
				"event %s: an instruction pays %.2f GBP/MWh, which is out of range",
				c.Event,
				p.Price.GBPPerMWh(),
			)
		}

		if p.Seconds <= 0 || int64(p.Seconds) > periodSeconds {
			return fmt.Errorf(
				"event %s: an instruction has %d s of period %d",
				c.Event,
				p.Seconds,
				p.Period,
			)
		}
	}

	return nil
}

func (t *Terms) check() error {
	for _, p := range []struct {
		name  string
		value Parts
		most  Parts
	}{{"share", t.Share, Whole}, {"early payment", t.PaidEarly, Whole}, {"loss factor", t.LossFactor, 2 * Whole}} {
		if p.value < 0 || p.value > p.most {
			return fmt.Errorf(
				"a %s of %d millionths is not between 0 and %d",
				p.name,
				p.value,
				p.most,
			)
		}
	}

	return nil
}

func compare(a, b flex.Day) int {
	return cmp.Or(
		cmp.Compare(a.Year, b.Year),
		cmp.Compare(a.Month, b.Month),
		cmp.Compare(a.Dom, b.Dom),
	)
}

// Needs says what readings a case's result can depend on: the settlement periods of its own
// day, and those of the days before it, each from the first to the last.
type Needs struct {
	Own     [2]int
	History [2]int
	Oldest  flex.Day // of the days before it
}

// Needs returns what readings the case must be given. The case needs no readings for it.
func (c *Case) Needs() Needs {
	slots := c.slots()
	window := c.Rule.window(c, slots)
	first, last := c.span()
	n := Needs{
		Own:     [2]int{first, last},
		History: [2]int{slices.Min(slots), slices.Max(slots)},
	}

	if len(window) > 0 {
		n.Own[0], n.History[0] = min(n.Own[0], window[0]), min(n.History[0], window[0])
	}

	n.Oldest = c.Rule.before(c.Day).Add(-c.Rule.LookBack)

	return n
}
