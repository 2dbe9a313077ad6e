package settle

import (
	"slices"

	"flexd/internal/flex"
)

// Method says how a baseline is found.
type Method string

// The baseline methods.
const (
	// of the same settlement period over the days used
	Mean Method = "mean"
	// the mean without the days of the highest and the lowest use
	MiddleEight Method = "mid_8_of_10"
	// what the plan without market prices would have used
	Nominated Method = "nominated"
)

// Rule is how the baseline of an event is found. DefaultRule holds the printed defaults.
type Rule struct {
	Method     Method
	Working    Days // for an event on a working day
	NonWorking Days // for an event on any other
	LookBack   int  // how many days back the days may lie
	// if set, the days lie before this day and not before the event's
	Frozen flex.Day
	// bank holidays that were proclaimed and that the table of this version lacks
	Holidays []flex.Day
	// whether to adjust the baseline by the difference in the window before the event
	InDay    bool
	InDayCap flex.WattHours
	Rounding Rounding
}

// Days is the number of days that a baseline should have, and the least that it must have.
type Days struct{ Want, Least int }

// DefaultRule is the published method with its in-day adjustment off.
var DefaultRule = Rule{
	Method:     Mean,
	Working:    Days{Want: 10, Least: 5},
	NonWorking: Days{Want: 4, Least: 2},
	LookBack:   60,
}

// The in-day window: this many settlement periods, the last of which ends this many
// before the event starts.
const (
	inDayPeriods = 6
	gateClosure  = 2
)

// Quality says how reliable a baseline is.
type Quality string

// The qualities of a baseline. Nothing is paid on an insufficient one.
const (
	Full         Quality = "full"
	Partial      Quality = "partial"      // fewer days than wanted
	Insufficient Quality = "insufficient" // fewer days than the least
)

// MeteredDay is what a meter measured on one settlement day: net import per settlement
// period, as far as it is known.
type MeteredDay struct {
	Day   flex.Day
	Known uint64           // bit n-1 is set if settlement period n is known
	Wh    []flex.WattHours // of settlement period n at n-1
}

// At returns the energy of settlement period n, and whether it is known.
func (m *MeteredDay) At(n int) (flex.WattHours, bool) {
	if n < 1 || n > len(m.Wh) || m.Known>>(n-1)&1 == 0 {
		return 0, false
	}
	return m.Wh[n-1], true
}

// Set sets the energy of settlement period n. A period that the day does not have is ignored.
func (m *MeteredDay) Set(n int, e flex.WattHours) {
	if m.Wh == nil {
		m.Wh = make([]flex.WattHours, m.Day.Periods())
	}
	if n >= 1 && n <= len(m.Wh) {
		m.Wh[n-1], m.Known = e, m.Known|1<<(n-1)
	}
}

// Reason says why a day was left out of a baseline.
type Reason string

// The reasons.
const (
	OtherClass     Reason = "other day class"
	HeldEvent      Reason = "held an event"
	ClocksChanged  Reason = "clocks changed"
	DataIncomplete Reason = "data incomplete"
	HighestUse     Reason = "highest use"
	LowestUse      Reason = "lowest use"
)

// Excluded is a day that was considered and left out, with the reason.
type Excluded struct {
	Day    flex.Day
	Reason Reason
}

// baseline is the result of a rule for a case.
type baseline struct {
	quality    Quality
	used       []flex.Day // newest first
	excluded   []Excluded // newest first
	energy     []flex.WattHours
	errors     []flex.WattHours // the standard error of each
	adjustment flex.WattHours
	adjusted   bool
}

// working reports the class of a day under the rule.
func (r *Rule) working(d flex.Day) bool {
	return Working(d) && !slices.Contains(r.Holidays, d)
}

// before returns the day from which the rule looks back: the event's, or the day at which
// the baseline was frozen.
func (r *Rule) before(event flex.Day) flex.Day {
	if r.Frozen != (flex.Day{}) && compare(r.Frozen, event) < 0 {
		return r.Frozen
	}
	return event
}

// daysLookedBack returns how many days back the rule must look to find the days that it wants.
func (r *Rule) daysLookedBack(c *Case, slots []int) int {
	want := r.NonWorking
	class := r.working(c.Day)
	if class {
		want = r.Working
	}
	var b baseline

	return len(b.choose(r, c, want.Want, class, slots)) + len(b.excluded)
}

// find returns the baseline of the given settlement periods (slots) of an ordinary day, from
// the days before the event's.
func (r *Rule) find(c *Case, slots []int) baseline {
	if r.Method == Nominated {
		return c.nominated(slots)
	}

	want := r.NonWorking

	class := r.working(c.Day)
	if class {
		want = r.Working
	}

	window := r.window(c, slots)
	b := baseline{quality: Insufficient}
	days := b.choose(
		r,
		c,
		want.Want,
		class,
		append(slices.Clone(slots), window...),
	)

	if len(days) >= want.Want && len(days) > 0 {
		b.quality = Full
	} else if len(days) >= max(want.Least, 1) {
		b.quality = Partial
	}

	days = b.use(r, days, slots)
	if len(days) == 0 {
		return b
	}

	for _, n := range slots {
		b.energy = append(
			b.energy,
			flex.WattHours(r.Rounding.divide(sumOfPeriod(days, n), int64(len(days)))),
		)
	}

	if r.InDay && len(window) == inDayPeriods {
		b.adjust(r, c, days, window)
	}

	return b
}

// use records the standard errors of a baseline from the days, and returns the days that the
// rule uses.
func (b *baseline) use(
	r *Rule,
	days []*MeteredDay,
	slots []int,
) []*MeteredDay {
	b.errors = standardErrors(days, slots)
	if r.Method == MiddleEight && len(days) >= 10 {
		days = b.dropExtremes(days, slots)
	}

	for _, d := range days {
		b.used = append(b.used, d.Day)
	}

	return days
}

// choose walks back from the event and returns the newest eligible days, at most want.
func (b *baseline) choose(
	r *Rule,
	c *Case,
	want int,
	class bool,
	slots []int,
) []*MeteredDay {
	before := r.before(c.Day)

	var days []*MeteredDay
	for back := 1; back <= r.LookBack && len(days) < want; back++ {
		d := before.Add(-back)
		m := c.metered(d)

		if why := r.unfit(c, d, class, m, slots); why != "" {
			b.excluded = append(b.excluded, Excluded{d, why})
			continue
		}

		days = append(days, m)
	}

	return days
}

// unfit returns why a day with the metered energy m cannot be part of a baseline, for working
// days or for others; empty if it can.
func (r *Rule) unfit(
	c *Case,
	d flex.Day,
	working bool,
	m *MeteredDay,
	slots []int,
) Reason {
	switch {
	case r.working(d) != working:
		return OtherClass
	case slices.Contains(c.EventDays, d):
		return HeldEvent
	case ClockChange(d):
		return ClocksChanged
	case m == nil || !complete(m, slots):
		return DataIncomplete
	}

	return ""
}

// dropExtremes leaves out the day of the highest and the day of the lowest use over the
// slots, the newest among equals.
func (b *baseline) dropExtremes(days []*MeteredDay, slots []int) []*MeteredDay {
	use := func(m *MeteredDay) int64 {
		var e int64
		for _, n := range slots {
			e += sumOfPeriod([]*MeteredDay{m}, n)
		}
		return e
	}

	high, low := 0, 0
	for i, m := range days {
		if use(m) > use(days[high]) {
			high = i
		}

		if use(m) < use(days[low]) {
			low = i
		}
	}

	if high == low { // all are equal: any two days may be left out
		low = 1
	}

	b.excluded = append(
		b.excluded,
		Excluded{days[high].Day, HighestUse},
		Excluded{days[low].Day, LowestUse},
	)

	kept := make([]*MeteredDay, 0, len(days)-2)

	for i, m := range days {
		if i != high && i != low {
			kept = append(kept, m)
		}
	}

	return kept
}

// window returns the slots before gate closure that the in-day adjustment compares, or
// none if the rule wants no adjustment or the day does not have them all.
func (r *Rule) window(c *Case, slots []int) []int {
	if !r.InDay || len(slots) == 0 || ClockChange(c.Day) {
		return nil
	}

	first := slots[0] - gateClosure - inDayPeriods
	if first < 1 {
		return nil
	}

	window := make([]int, inDayPeriods)
	for i := range window {
		window[i] = first + i
	}

	return window
}

// adjust shifts the baseline by the mean difference between the metered energy in the window
// and that of the days used, within the rule's cap.
func (b *baseline) adjust(
	r *Rule,
	c *Case,
	days []*MeteredDay,
	window []int,
) {
	m := c.metered(c.Day)
	if m == nil || !complete(m, window) {
		return
	}

	n := int64(len(days))
	var difference int64 // n times the sum over the window

	for _, slot := range window {
		difference += n*sumOfPeriod([]*MeteredDay{m}, slot) - sumOfPeriod(days, slot)
	}

	b.adjustment = flex.WattHours(r.Rounding.divide(difference, n*inDayPeriods))
	if r.InDayCap > 0 {
		b.adjustment = min(max(b.adjustment, -r.InDayCap), r.InDayCap)
	}

	b.adjusted = true
	for i := range b.energy {
		b.energy[i] += b.adjustment
	}
}

// sumOfPeriod adds up settlement period n over the days, in all of which it must be known.
func sumOfPeriod(days []*MeteredDay, n int) int64 {
	var total int64
	for _, m := range days {
		e, _ := m.At(n)
		total += int64(e)
	}

	return total
}

// complete reports whether every one of the slots is known on the day.
func complete(m *MeteredDay, slots []int) bool {
	for _, n := range slots {
		if _, known := m.At(n); !known {
			return false
		}
	}

	return true
}
