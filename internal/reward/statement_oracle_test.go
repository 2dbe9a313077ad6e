package reward_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// oracle nets the events of a statement by month, as its rounding rule says. It shares no code
// with the program.
type oracle struct {
	carry  map[string]int64                  // months for which a month is carried
	events map[string]map[string]oracleEvent // by month and event, as they stand
	sum    int64                             // credited by all lines that are netted
}

type oracleEvent struct {
	due, err  int64 // pence, thousandths of a penny
	day       string
	certainty *big.Rat
}

// oracleMonth is what a month comes to.
type oracleMonth struct {
	carriedIn, lapsed, shares, err, threshold, credit, carriedOut, floored int64
}

func newOracle(months []paperMonth) *oracle {
	o := &oracle{carry: map[string]int64{}, events: map[string]map[string]oracleEvent{}}
	for _, m := range months {
		o.carry[m.name] = whole(m.carryMonths)
	}
	return o
}

// londonDay is the day of an instant as a statement writes it.
func londonDay(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}

	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		panic(err)
	}

	return at.In(london).Format(time.DateOnly)
}

// thousandths of a number that has no more places.
func thousandths(text string) int64 {
	return rounded(times(rat(text), big.NewRat(1000, 1)), "")
}

// take counts a line and returns what it is to be, and what of what it says is wrong.
func (o *oracle) take(l *paperLine, due int64, credited map[string]int64) (amount int64, wrong []string) {
	is := func(what, text string, want int64) {
		if got := thousandths(text); got != want {
			wrong = append(wrong, fmt.Sprintf("%s of %s: %s, not %d thousandths", what, l.month, text, want))
		}
	}

	err := l.workedError(due)
	is("standard error of the event", l.err, err)
	before := o.months()

	if o.events[l.month] == nil {
		o.events[l.month] = map[string]oracleEvent{}
	}

	o.events[l.month][l.about] = oracleEvent{due, err, londonDay(l.start), rat(l.netting.certainty)}
	after := o.months()
	own := after[l.month]

	var elsewhere, later int64
	for name, m := range after {
		if name != l.month {
			elsewhere += before[name].credit
			later += m.credit - before[name].credit
		}
	}

	n := l.netting
	othersCredited := o.sum - credited[l.about] - elsewhere
	is("others", l.others, 1000*(own.shares-due))
	is("others' credit", l.othersCredited, 1000*othersCredited)
	is("carried in", n.carriedIn, 1000*(own.carriedIn-own.lapsed))
	is("sum", n.sum, 1000*(own.carriedIn-own.lapsed+own.shares))
	is("standard error", n.err, own.err)
	is("threshold", n.threshold, own.threshold)
	is("credit", n.credit, 1000*own.credit)
	is("later", n.later, 1000*later)

	o.sum += whole(l.amount)
	return own.credit + later - othersCredited - whole(l.earlier), wrong
}

// workedError works out the event's standard error from its half-hours, in thousandths of a penny.
func (l *paperLine) workedError(due int64) int64 {
	sum := new(big.Rat)
	for _, h := range l.halfHours {
		part := times(rat(h.err), rat(h.price))
		sum.Add(sum, part.Abs(part))
	}

	paid := rat(l.paid)
	if due < 0 {
		paid = big.NewRat(1, 1)
	}

	return rounded(times(sum, rat(l.share), rat(l.loss), paid, big.NewRat(1000, 1)), "half_away_from_zero")
}

// upRoot is the root rounded up.
func upRoot(n *big.Int) int64 {
	root := new(big.Int).Sqrt(n)
	if new(big.Int).Mul(root, root).Cmp(n) < 0 {
		return root.Int64() + 1
	}
	return root.Int64()
}

// upWhole is a number rounded up.
func upWhole(r *big.Rat) int64 {
	up := new(big.Int).Sub(r.Denom(), big.NewInt(1))
	return up.Add(up, r.Num()).Div(up, r.Denom()).Int64()
}

// number counts months.
func number(month string) int64 {
	at, err := time.Parse("2006-01", month)
	if err != nil {
		panic(err)
	}
	return int64(at.Year())*12 + int64(at.Month())
}

// oracleCarried is a month that is carried.
type oracleCarried struct {
	sum      int64
	variance *big.Int
	last     int64 // month that it is carried into
}

// months decides all months, and those besides in which something may lapse.
func (o *oracle) months(besides ...string) map[string]oracleMonth {
	names := slices.Concat(slices.Collect(maps.Keys(o.events)), besides)
	slices.Sort(names)

	var pool []oracleCarried
	all := map[string]oracleMonth{}

	for _, name := range slices.Compact(names) {
		m := oracleMonth{}
		variance := new(big.Int)

		var kept []oracleCarried
		for _, c := range pool {
			m.carriedIn += c.sum
			if number(name) > c.last {
				m.lapsed += c.sum
				continue
			}

			variance.Add(variance, c.variance)
			kept = append(kept, c)
		}

		pool = o.decide(name, &m, variance, kept)
		all[name] = m
	}

	return all
}

// decide decides a month and returns what is carried out of it.
func (o *oracle) decide(name string, m *oracleMonth, variance *big.Int, kept []oracleCarried) []oracleCarried {
	days := map[string]int64{}
	certainty := new(big.Rat)

	for _, e := range o.events[name] {
		m.shares += e.due
		days[e.day] += e.err
		certainty = e.certainty
	}

	own := new(big.Int)
	for _, e := range days {
		own.Add(own, new(big.Int).Mul(big.NewInt(e), big.NewInt(e)))
	}

	sum := m.carriedIn - m.lapsed + m.shares
	if len(o.events[name]) == 0 {
		m.carriedOut = sum
		return kept
	}

	if certainty.Sign() == 0 {
		m.credit, m.floored = max(0, sum), max(0, -sum)
		return nil
	}

	m.err = upRoot(variance.Add(variance, own))
	m.threshold = upWhole(times(big.NewRat(m.err, 1), certainty))

	if 1000*sum > m.threshold {
		m.credit = sum
		return nil
	}

	m.carriedOut = sum
	return append(kept, oracleCarried{m.shares, own, number(name) + o.carry[name]})
}

// check holds the statement's months against its lines.
func (o *oracle) check(months []paperMonth) (faults []string) {
	var besides []string
	for _, m := range months {
		besides = append(besides, m.name)
	}

	all := o.months(besides...)
	var credit, delivered, lapsed, floored, carried int64

	for _, m := range months {
		is := func(what, text string, want int64) {
			if got := thousandths(text); got != want {
				faults = append(faults, fmt.Sprintf("%s of month %s: %s, not %d thousandths", what, m.name, text, want))
			}
		}

		var shares int64
		for _, e := range m.events {
			shares += whole(e[1])
		}

		own := all[m.name]
		is("shares by events", m.shares, 1000*shares)
		is("shares", m.shares, 1000*own.shares)
		is("carried in", m.netting.carriedIn, 1000*own.carriedIn)
		is("lapsed", m.lapsed, 1000*own.lapsed)
		is("sum", m.netting.sum, 1000*(own.carriedIn-own.lapsed+own.shares))
		is("standard error", m.netting.err, own.err)
		is("threshold", m.netting.threshold, own.threshold)
		is("credit", m.credit, 1000*own.credit)
		is("carried out", m.carriedOut, 1000*own.carriedOut)
		is("floored", m.floored, 1000*own.floored)

		credit, delivered, lapsed = credit+whole(m.credit), delivered+whole(m.shares), lapsed+whole(m.lapsed)
		floored, carried = floored+whole(m.floored), whole(m.carriedOut)
	}

	if credit != o.sum {
		faults = append(faults, fmt.Sprintf("the months credit %d, their lines %d", credit, o.sum))
	}
	if credit+lapsed+carried-floored != delivered {
		faults = append(faults, fmt.Sprintf("of %d delivered, %d are credited, %d lapsed, %d carried and %d below nothing", delivered, credit, lapsed, carried, floored))
	}

	return faults
}
