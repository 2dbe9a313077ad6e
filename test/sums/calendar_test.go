package sums_test

import (
	"math/big"
	"time"
	_ "time/tzdata" // so that no machine's own time zones count
)

// What this file and oracle_test.go work out is written from docs/money.md alone. They import
// nothing of the project, so that no mistake of it can be in both.

var london = func() *time.Location {
	l, err := time.LoadLocation("Europe/London")
	if err != nil {
		panic(err)
	}
	return l
}()

// date is a civil day, counted from 1 January 1970.
type date int

func dateOf(y int, m time.Month, d int) date {
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func (d date) civil() (int, time.Month, int) { return time.Unix(int64(d)*86400, 0).UTC().Date() }

// begin is the day's first instant in London, in seconds.
func (d date) begin() int64 {
	y, m, dom := d.civil()
	return time.Date(y, m, dom, 0, 0, 0, 0, london).Unix()
}

// halves is how many half-hours the day has: 46, 48 or 50.
func (d date) halves() int { return int((d+1).begin()-d.begin()) / 1800 }

// at is the instant at which half-hour n of the day, from 1, begins.
func (d date) at(n int) int64 { return d.begin() + int64(n-1)*1800 }

// half says which half-hour of which day begins at an instant.
func half(at int64) (date, int) {
	y, m, dom := time.Unix(at, 0).In(london).Date()
	d := dateOf(y, m, dom)
	return d, int(at-d.begin())/1800 + 1
}

// usual is the half-hour of an ordinary day that begins at the same time by the clock.
func (d date) usual(n int) int {
	h, m, _ := time.Unix(d.at(n), 0).In(london).Clock()
	return h*2 + m/30 + 1
}

// The bank holidays of England and Wales, as published.
var holidays = map[date]bool{}

func init() {
	for y, days := range map[int][][2]int{
		2024: {{1, 1}, {3, 29}, {4, 1}, {5, 6}, {5, 27}, {8, 26}, {12, 25}, {12, 26}},
		2025: {{1, 1}, {4, 18}, {4, 21}, {5, 5}, {5, 26}, {8, 25}, {12, 25}, {12, 26}},
		2026: {{1, 1}, {4, 3}, {4, 6}, {5, 4}, {5, 25}, {8, 31}, {12, 25}, {12, 28}},
	} {
		for _, d := range days {
			holidays[dateOf(y, time.Month(d[0]), d[1])] = true
		}
	}
}

func (d date) working() bool {
	w := (int(d)%7 + 4) % 7 // 1 January 1970 was a Thursday
	return w != 0 && w != 6 && !holidays[d]
}

// month counts the London months, so that days of one can be told from those of another.
func (d date) month() int {
	y, m, _ := d.civil()
	return y*12 + int(m)
}

// nearest rounds a fraction to a whole number: what lies between two goes away from zero, or
// to the even one.
func nearest(x *big.Rat, even bool) int64 {
	twice := new(big.Int).Mul(x.Num(), big.NewInt(2))
	twice.Abs(twice).Add(twice, x.Denom())
	q, rest := new(big.Int).QuoRem(twice, new(big.Int).Mul(x.Denom(), big.NewInt(2)), new(big.Int))
	n := q.Int64()
	if even && rest.Sign() == 0 && n%2 == 1 {
		n--
	}
	if x.Sign() < 0 {
		return -n
	}
	return n
}
