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

// separateReason is why a site with batteries is not planned as one, as a word in a schedule's
// origins.
type separateReason string

// The reasons.
const (
	noPrices separateReason = "no_prices"
	tooLarge separateReason = "too_large"
	noPlan   separateReason = "no_plan"
)

// text describes the reason in a sentence.
func (r separateReason) text() string {
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
	// minNamedGap is the least gap, in pence, that an explanation names.
	minNamedGap = 0.1
	// minListedGap is the least gap, in pence, for which the asset is listed among the
	// exceptions. The limit on the work ends some plans each day; few of them leave so large a
	// gap.
	minListedGap = 10
)

// planQuality is the quality of a site's plan as one: why there is none, or by how many pence
// the best plan may be cheaper if the limit on the work ended the search.
type planQuality struct {
	why separateReason
	gap float64
}

// setResult sets the quality from the result of a search.
func (l *planQuality) setResult(r site.Result) {
	if r.None {
		l.why = noPlan
		return
	}

	if !r.Optimal {
		l.gap = max(0, r.Cost-r.Bound)
	}
}

// words returns the words that follow withHome in a schedule's origins; empty for the best
// plan.
func (l planQuality) words() string {
	if l.why != "" {
		return string(l.why) + " " + store.CutShort
	}

	if l.gap < minNamedGap {
		return ""
	}

	words := strconv.FormatFloat(l.gap, 'f', 1, 64)
	if l.gap >= minListedGap {
		words += " " + store.CutShort
	}

	return words
}

// lackOf reads the words of a schedule's origins.
func lackOf(origins string) planQuality {
	_, rest, _ := strings.Cut(origins, " "+withHome)
	word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")

	var l planQuality
	switch why := separateReason(word); why {
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
func (l planQuality) sentences() []string {
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

// addBatteryReasons names the site's plan as one as what keeps a car from charging at a time,
// where neither a cap nor an instruction does.
func (x *Explanation) addBatteryReasons() {
	if !plannedAsOne(&x.From) || lackOf(x.From.Origins).why != "" {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		limited := x.isCapped(q.Span) || x.closedIn(q.Span)
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

// addFuseReasons names the main fuse as what keeps an asset from charging, where nothing else
// held its schedule back.
func (x *Explanation) addFuseReasons() {
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

// addFuseGain notes what one kW more of main fuse would bring of what is missing, where it is
// the fuse that decides. p is the problem of the explained plan.
func (x *Explanation) addFuseGain(p charge.Problem) {
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

	x.fuseGain = min(x.Plan.Shortfall, max(0, charge.Solve(p).Energy-x.Plan.Energy))
}
