package control

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// notAsOne is why a site with batteries is not planned as one, as a word of a schedule's
// origins.
type notAsOne string

// The reasons.
const (
	noPrices notAsOne = "no_prices"
	tooLarge notAsOne = "too_large"
	noPlan   notAsOne = "no_plan"
)

// text says a reason in a sentence.
func (r notAsOne) text() string {
	switch r {
	case noPrices:
		return "no prices are known"
	case noPlan:
		return "the search found no plan within its bound on the work"
	}

	return fmt.Sprintf(
		"there are more than %d half-hours or %d cars",
		homeSlots,
		homeCars,
	)
}

const (
	// gapNamed is the gap, in pence, from which an explanation names it.
	gapNamed = 0.1
	// gapListed is the gap, in pence, from which the asset is listed among the exceptions.
	// Plans are ended by their bound each day; few of them leave that much.
	gapListed = 10
)

// lack is what a site's plan as one lacks: why there is none, or by how many pence the best
// plan may be cheaper where the bound on the work ended the search.
type lack struct {
	why notAsOne
	gap float64
}

// noteResult notes what a search came to.
func (l *lack) noteResult(r site.Result) {
	if r.None {
		l.why = noPlan
		return
	}

	if !r.Optimal {
		l.gap = max(0, r.Cost-r.Bound)
	}
}

// words are those that follow withHome in a schedule's origins; none where nothing is lacking.
func (l lack) words() string {
	if l.why != "" {
		return string(l.why) + " " + store.CutShort
	}

	if l.gap < gapNamed {
		return ""
	}

	words := strconv.FormatFloat(l.gap, 'f', 1, 64)
	if l.gap >= gapListed {
		words += " " + store.CutShort
	}

	return words
}

// lackOf reads the words of a schedule's origins.
func lackOf(origins string) lack {
	_, rest, _ := strings.Cut(origins, " "+withHome)
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")

	var l lack
	switch why := notAsOne(word); why {
	case noPrices, tooLarge, noPlan:
		l.why = why
		return l
	}

	gap, err := strconv.ParseFloat(word, 64)
	if err == nil {
		l.gap = gap
	}

	return l
}

// sentences say how a car was planned with the battery of its site.
func (l lack) sentences() []string {
	if l.why != "" {
		return []string{
			"It is not planned as one with the battery of its site, as " +
				l.why.text() +
				": the battery goes by what the cars leave, and does not discharge into it.",
		}
	}

	lines := []string{
		"It is planned as one with the battery of its site, which does not discharge into it.",
	}
	if l.gap > 0 {
		lines = append(
			lines,
			fmt.Sprintf(
				"The search for that plan was ended by its bound on the work: the best may cost up to %.1f p less.",
				l.gap,
			),
		)
	}

	return lines
}

// sayBattery names the site's plan as one as what keeps a car from charging at a time, where
// neither a cap nor an instruction does.
func (x *Explanation) sayBattery() {
	if !plannedAsOne(&x.From) || lackOf(x.From.Origins).why != "" {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		limited := x.cappedIn(q.Span) || x.closedIn(q.Span)
		if q.Reason == charge.CapClosed && !limited {
			q.Reason = charge.BesideBattery
		}
	}
}

// closedIn reports whether an instruction has the asset draw nothing at some time of a span.
func (x *Explanation) closedIn(s flex.Span) bool {
	return slices.ContainsFunc(x.From.Closed, func(c flex.Span) bool {
		return !c.Meet(s).Empty()
	})
}

// sayFuse names the main fuse as what keeps an asset from charging, where nothing else held
// its schedule back.
func (x *Explanation) sayFuse() {
	other := func(c BindingCap) bool { return !c.Site }
	if len(x.Caps) == 0 || slices.ContainsFunc(x.Caps, other) {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		if q.Reason == charge.CapClosed && !x.closedIn(q.Span) {
			q.Reason = charge.FuseClosed
		}
	}
}

// sayMore notes what one kW more of main fuse would bring of what is missing, where it is the
// fuse that decides. p is the problem of the explained plan.
func (x *Explanation) sayMore(p charge.Problem) {
	if x.Plan.Shortfall <= 0 || len(x.Caps) == 0 || !x.Caps[0].Site {
		return
	}

	p.Limits = slices.Clone(p.Limits)
	for i := range p.Limits {
		l := &p.Limits[i].Limit
		*l = min(*l, flex.Unbounded-flex.FromKW(1)) + flex.FromKW(1)
		if *l < flex.LeastPower(x.From.Phases) {
			*l = 0
		}
	}

	x.more = min(x.Plan.Shortfall, max(0, charge.Solve(p).Energy-x.Plan.Energy))
}
