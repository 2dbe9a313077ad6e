package settle

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"flexd/internal/flex"
)

// standardErrors returns the standard error of each of the settlement periods.
func standardErrors(days []*MeteredDay, slots []int) []flex.WattHours {
	errors := make([]flex.WattHours, len(slots))
	for i, n := range slots {
		errors[i] = standardError(days, n)
	}

	return errors
}

// standardError returns the standard error of a baseline from the days in a settlement period,
// in watt-hours rounded up: the standard deviation of the days' energies, times the root of 1
// + 1/n, since the mean of n days has an error too. With fewer than two days it is unknown,
// and 0.
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

// rootUp returns the least whole number whose square is at least n/d.
func rootUp(n, d *big.Int) int64 {
	up := new(big.Int).Sub(d, big.NewInt(1))
	up.Add(up, n).Quo(up, d)

	root := new(big.Int).Sqrt(up)
	if new(big.Int).Mul(root, root).Cmp(up) < 0 {
		root.Add(root, big.NewInt(1))
	}

	return root.Int64()
}

// errorShare divides the standard error of a whole among its parts, in proportion to the
// parts, and returns the share of one of them. The shares add up to the whole error.
func errorShare(
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

// StandardError returns the standard error of the user's amount that comes from the baseline's
// errors: the sum over the half-hours of the absolute value of error times price, times loss
// factor and share, and times the part that is paid early where only that part counts. It is
// rounded to the nearest thousandth of a penny, half up, and 0 if nothing is paid.
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

// Certainty is the rule for crediting a month's sum: it is credited if it is more than Errors
// standard errors. Otherwise it is carried into later months, and lapses after Months of them.
type Certainty struct {
	// 0: a sum above zero is credited, and nothing is carried
	Errors Parts
	Months int
}

// DefaultCertainty holds the printed defaults.
var DefaultCertainty = Certainty{Errors: 2 * Whole, Months: 12}

// DayNetted has the sums over the netted events of a site's day.
type DayNetted struct {
	Day       flex.Day
	Certainty Certainty  // of its month
	Share     flex.Pence // the user's
	Early     flex.Pence // the part of it that is paid now
	// the standard error of Early; the errors of events of one day are added
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

// MonthNetted is a netted month and the decision about it.
type MonthNetted struct {
	First flex.Day
	// whether it has events; otherwise it is listed because something lapses in it
	HasEvents bool
	Certainty Certainty
	Share     flex.Pence // of its own events
	Early     flex.Pence

	// from months before it; below zero if they cost money
	CarriedIn flex.Pence
	Lapsed    flex.Pence // the part of CarriedIn that was carried for the full number of months
	// the standard error of Early and of what is still carried, together, rounded up; 0 where
	// no certainty is asked for
	Error MilliPence
	// the sum is credited if it is above this; rounded up
	Threshold  MilliPence
	Credited   flex.Pence
	Owed       flex.Pence // Credited plus what is paid later
	CarriedOut flex.Pence
	Carried    int        // the number of months that are carried out, with this one
	Dropped    flex.Pence // the negative sum that is dropped, where nothing is carried

	variance *big.Int // of its own events, in thousandths of a penny squared
}

// Sum is the amount about which the month is decided.
func (m *MonthNetted) Sum() flex.Pence {
	return m.CarriedIn - m.Lapsed + m.Early
}

// NetMonths nets days by month and decides about each month that has any, oldest first. Days
// must be in order. The result depends on the days alone, and not on the order in which their
// events were settled. Months without a day are included, up to that of the last day, if
// something lapses in them; nothing is credited in these.
func NetMonths(days []DayNetted, until flex.Day) []MonthNetted {
	var months []MonthNetted
	for _, d := range days {
		first := firstOf(d.Day, 0)
		if n := len(months); n == 0 || months[n-1].First != first {
			months = append(months, MonthNetted{
				First:     first,
				Certainty: d.Certainty,
				HasEvents: true,
				variance:  new(big.Int),
			})
		}

		m := &months[len(months)-1]
		m.Share, m.Early = m.Share+d.Share, m.Early+d.Early
		m.variance.Add(m.variance, square(int64(d.Error)))
	}

	months = withLapseMonths(months, until)

	var carried []*MonthNetted
	for i := range months {
		carried = months[i].decide(carried)
	}

	return slices.DeleteFunc(months, func(m MonthNetted) bool {
		return !m.HasEvents && m.Lapsed == 0
	})
}

// withLapseMonths adds the months without events in which something may lapse.
func withLapseMonths(months []MonthNetted, until flex.Day) []MonthNetted {
	listed := map[flex.Day]bool{}
	for _, m := range months {
		listed[m.First] = true
	}

	all := slices.Clone(months)
	for _, m := range months {
		first := firstOf(m.First, m.Certainty.Months+1)
		if m.Certainty.Errors == 0 || listed[first] || compare(first, until) > 0 {
			continue
		}

		listed[first] = true
		all = append(all, MonthNetted{First: first, variance: new(big.Int)})
	}

	slices.SortFunc(all, func(a, b MonthNetted) int {
		return compare(a.First, b.First)
	})

	return all
}

// firstOf returns the first day of the month that is so many months after a day's month.
func firstOf(d flex.Day, later int) flex.Day {
	months := d.Year*12 + int(d.Month) - 1 + later
	return flex.Day{
		Year:  months / 12,
		Month: time.Month(months%12 + 1),
		Dom:   1,
	}
}

// decide decides about a month together with the months that are carried into it, and returns
// those that are carried out of it.
func (m *MonthNetted) decide(carried []*MonthNetted) []*MonthNetted {
	remaining := m.carryIn(carried)
	if !m.HasEvents {
		return m.carryOut(remaining)
	}

	share, variance := m.Share, new(big.Int).Set(m.variance)
	for _, c := range remaining {
		share += c.Share
		variance.Add(variance, c.variance)
	}

	if m.Certainty.Errors == 0 {
		m.Credited, m.Owed = max(0, m.Sum()), max(0, share)
		m.Dropped = m.Credited - m.Sum()
		return nil
	}

	m.Error = MilliPence(rootUp(variance, big.NewInt(1)))
	m.Threshold = m.Certainty.Threshold(m.Error)

	if sum := m.Sum(); sum > m.Threshold.Whole() {
		m.Credited, m.Owed = sum, max(sum, share)
		return nil
	}

	return m.carryOut(append(remaining, m))
}

// carryIn adds the months that are carried into this one, and returns those that have not
// lapsed.
func (m *MonthNetted) carryIn(carried []*MonthNetted) []*MonthNetted {
	var remaining []*MonthNetted
	for _, c := range carried {
		m.CarriedIn += c.Early
		last := firstOf(c.First, c.Certainty.Months)
		if compare(m.First, last) > 0 {
			m.Lapsed += c.Early
			continue
		}

		remaining = append(remaining, c)
	}

	return remaining
}

func (m *MonthNetted) carryOut(months []*MonthNetted) []*MonthNetted {
	m.CarriedOut, m.Carried = m.Sum(), len(months)
	return months
}

// Threshold returns the threshold of a sum with that standard error: the sum is credited if it
// is above it. It is rounded up.
func (c Certainty) Threshold(e MilliPence) MilliPence {
	n := new(big.Int).Mul(big.NewInt(int64(e)), big.NewInt(int64(c.Errors)))
	n.Add(n, big.NewInt(int64(Whole)-1))
	return MilliPence(n.Quo(n, big.NewInt(int64(Whole))).Int64())
}

// Whole returns the whole pence in an amount that is not negative, rounded down.
func (m MilliPence) Whole() flex.Pence { return flex.Pence(m / 1000) }
