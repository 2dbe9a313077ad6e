package settle

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"flexd/internal/flex"
)

// standardErrors is that of each of the settlement periods.
func standardErrors(days []*MeteredDay, slots []int) []flex.WattHours {
	errors := make([]flex.WattHours, len(slots))
	for i, n := range slots {
		errors[i] = standardError(days, n)
	}

	return errors
}

// standardError is by how much a baseline from the days errs in a settlement period, in
// watt-hours rounded up: the standard deviation of what they used, times the root of 1 + 1/n,
// as the mean of n days errs too. Of fewer than two days it is not known, and nothing.
func standardError(days []*MeteredDay, n int) flex.WattHours {
	count := int64(len(days))
	if count < 2 {
		return 0
	}

	all, squares := big.NewInt(sumOfPeriod(days, n)), new(big.Int)
	for _, m := range days {
		e, _ := m.At(n)
		squares.Add(squares, square(int64(e)))
	}

	// The squares of the deviations from the mean add up to squares - all²/count.
	variance := squares.Mul(squares, big.NewInt(count))
	variance.Sub(variance, all.Mul(all, all))
	variance.Mul(variance, big.NewInt(count+1))

	return flex.WattHours(rootUp(variance, big.NewInt(count*count*(count-1))))
}

func square(n int64) *big.Int {
	b := big.NewInt(n)
	return b.Mul(b, b)
}

// rootUp is the least whole number whose square is not below n/d.
func rootUp(n, d *big.Int) int64 {
	up := new(big.Int).Sub(d, big.NewInt(1))
	up.Add(up, n).Quo(up, d)

	root := new(big.Int).Sqrt(up)
	if new(big.Int).Mul(root, root).Cmp(up) < 0 {
		root.Add(root, big.NewInt(1))
	}

	return root.Int64()
}

// errorOf is a part's own of the error of the whole: as the parts are to each other, so that
// the parts' errors add up to the whole's.
func errorOf(
	parts []flex.WattHours,
	own int,
	whole flex.WattHours,
) flex.WattHours {
	weights := make([]int64, len(parts))
	for i, p := range parts {
		weights[i] = int64(max(p, -p))
	}

	return Split(whole, weights)[own]
}

// MilliPence is money in thousandths of a penny.
type MilliPence int64

// Pence is the amount in pence.
func (m MilliPence) Pence() float64 { return float64(m) / 1000 }

// String writes the amount in pence.
func (m MilliPence) String() string { return fmt.Sprintf("%.3f p", m.Pence()) }

// StandardError is by how much the errors of the baseline have what the event comes to for its
// user err: the sum over the half-hours of error times price, whatever the sign, times loss
// factor and share, and times the part that is paid where that part alone counts. Rounded to
// the nearest thousandth of a penny, half up. Nothing where nothing is paid.
func (r *Result) StandardError() MilliPence {
	if r.Quality == Insufficient {
		return 0
	}

	var exact PicoPounds
	for _, s := range r.Periods {
		if s.Known {
			exact += max(Revenue(s.Error, s.Price), -Revenue(s.Error, s.Price))
		}
	}

	paid := r.Terms.PaidEarly
	if r.Credit < 0 {
		paid = Whole
	}

	return MilliPence(exact.times(10_000_000, HalfAway, []Parts{
		r.Terms.LossFactor,
		r.Terms.Share,
		paid,
	}))
}

// Certainty is when a month's sum is credited: once it is more than so many standard errors.
// What is not is carried into later months, and lapses after the last of so many.
type Certainty struct {
	// 0: a sum is credited if it is above nothing, and nothing is carried
	Errors Parts
	Months int
}

// DefaultCertainty holds the printed defaults.
var DefaultCertainty = Certainty{Errors: 2 * Whole, Months: 12}

// DayNetted is what the netted events of a site's day come to.
type DayNetted struct {
	Day       flex.Day
	Certainty Certainty  // of its month
	Share     flex.Pence // the user's
	Early     flex.Pence // of it, what is paid as of now
	// the standard error of Early: of events of one day they add up
	Error MilliPence
}

// Add adds an event of the day.
func (d *DayNetted) Add(
	share, early flex.Pence,
	e MilliPence,
) {
	d.Share, d.Early = d.Share+share, d.Early+early
	d.Error += e
}

// MonthNetted is a month that is netted, and what was decided of it.
type MonthNetted struct {
	First flex.Day
	// whether it held events; otherwise something only lapses in it
	Held      bool
	Certainty Certainty
	Share     flex.Pence // of its own events
	Early     flex.Pence

	// from months before it; below zero if they cost money
	CarriedIn flex.Pence
	Lapsed    flex.Pence // of that, what was carried long enough
	// the standard error of Early and of what is still carried, together, rounded up; 0 where no certainty is asked for
	Error MilliPence
	// what the sum must be above to be credited, rounded up
	Threshold  MilliPence
	Credited   flex.Pence
	Owed       flex.Pence // Credited, and what is paid later
	CarriedOut flex.Pence
	Carried    int        // months that are carried out, it among them
	Floored    flex.Pence // below nothing, where nothing is carried

	variance *big.Int // of its own events, in thousandths of a penny squared
}

// Sum is what the month is decided on.
func (m *MonthNetted) Sum() flex.Pence {
	return m.CarriedIn - m.Lapsed + m.Early
}

// NetMonths nets days by month and decides each month that holds any, oldest first. Days must
// be in order. The same days come to the same, in whatever order their events were settled.
// Months without a day are among the answer, up to the one of a last day, if something lapses in
// them; nothing is credited in them.
func NetMonths(days []DayNetted, until flex.Day) []MonthNetted {
	var months []MonthNetted
	for _, d := range days {
		first := firstOf(d.Day, 0)
		if n := len(months); n == 0 || months[n-1].First != first {
			months = append(months, MonthNetted{
				First:     first,
				Certainty: d.Certainty,
				Held:      true,
				variance:  new(big.Int),
			})
		}

		m := &months[len(months)-1]
		m.Share, m.Early = m.Share+d.Share, m.Early+d.Early
		m.variance.Add(m.variance, square(int64(d.Error)))
	}

	months = withLapses(months, until)

	var carried []*MonthNetted
	for i := range months {
		carried = months[i].decide(carried)
	}

	return slices.DeleteFunc(months, func(m MonthNetted) bool {
		return !m.Held && m.Lapsed == 0
	})
}

// withLapses adds the months without events in which something may lapse.
func withLapses(months []MonthNetted, until flex.Day) []MonthNetted {
	held := map[flex.Day]bool{}
	for _, m := range months {
		held[m.First] = true
	}

	all := slices.Clone(months)
	for _, m := range months {
		first := firstOf(m.First, m.Certainty.Months+1)
		if m.Certainty.Errors == 0 || held[first] || compare(first, until) > 0 {
			continue
		}

		held[first] = true
		all = append(all, MonthNetted{First: first, variance: new(big.Int)})
	}

	slices.SortFunc(all, func(a, b MonthNetted) int {
		return compare(a.First, b.First)
	})

	return all
}

// firstOf is the first day of the month that is a number of months after a day's.
func firstOf(d flex.Day, later int) flex.Day {
	months := d.Year*12 + int(d.Month) - 1 + later
	return flex.Day{
		Year:  months / 12,
		Month: time.Month(months%12 + 1),
		Dom:   1,
	}
}

// decide decides a month, with the months that are carried into it, and returns those that are
// carried out of it.
func (m *MonthNetted) decide(carried []*MonthNetted) []*MonthNetted {
	kept := m.carryIn(carried)
	if !m.Held {
		return m.carryOut(kept)
	}

	share, variance := m.Share, new(big.Int).Set(m.variance)
	for _, c := range kept {
		share += c.Share
		variance.Add(variance, c.variance)
	}

	if m.Certainty.Errors == 0 {
		m.Credited, m.Owed = max(0, m.Sum()), max(0, share)
		m.Floored = m.Credited - m.Sum()
		return nil
	}

	m.Error = MilliPence(rootUp(variance, big.NewInt(1)))
	m.Threshold = m.Certainty.Threshold(m.Error)

	if sum := m.Sum(); sum > m.Threshold.Whole() {
		m.Credited, m.Owed = sum, max(sum, share)
		return nil
	}

	return m.carryOut(append(kept, m))
}

// carryIn takes in months that are carried, and returns those that have not lapsed.
func (m *MonthNetted) carryIn(carried []*MonthNetted) []*MonthNetted {
	var kept []*MonthNetted
	for _, c := range carried {
		m.CarriedIn += c.Early
		last := firstOf(c.First, c.Certainty.Months)
		if compare(m.First, last) > 0 {
			m.Lapsed += c.Early
			continue
		}

		kept = append(kept, c)
	}

	return kept
}

func (m *MonthNetted) carryOut(months []*MonthNetted) []*MonthNetted {
	m.CarriedOut, m.Carried = m.Sum(), len(months)
	return months
}

// Threshold is what a sum of that standard error must be above to be credited, rounded up.
func (c Certainty) Threshold(e MilliPence) MilliPence {
	n := new(big.Int).Mul(big.NewInt(int64(e)), big.NewInt(int64(c.Errors)))
	n.Add(n, big.NewInt(int64(Whole)-1))
	return MilliPence(n.Quo(n, big.NewInt(int64(Whole))).Int64())
}

// Whole is the greatest whole number of pence that is not above the amount, which is not below
// nothing.
func (m MilliPence) Whole() flex.Pence { return flex.Pence(m / 1000) }
