package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestLack_Words has what a site's plan lacks be kept in the origins of a schedule, be read back, and be
// marked for the list of exceptions where it is much. What was kept before is taken off.
func TestLack_Words(t *testing.T) {
	kept := origins{"event", "asset", "site"}
	for name, c := range map[string]struct {
		lack   planQuality
		listed bool
		says   string
	}{
		"nothing":          {planQuality{}, false, "as one with the battery"},
		"no prices":        {planQuality{why: noPrices}, true, "no prices are known"},
		"too many cars":    {planQuality{why: tooLarge}, true, "more than 98 half-hours or 3 cars"},
		"no plan":          {planQuality{why: noPlan}, true, "found no plan within its bound"},
		"a small gap":      {planQuality{gap: 2.5}, false, "up to 2.5 p less"},
		"as much as 10 p":  {planQuality{gap: 10}, true, "up to 10.0 p less"},
		"less than a word": {planQuality{gap: 0.01}, false, "as one with the battery"},
	} {
		t.Run(name, func(t *testing.T) {
			words := originsWithHome("event asset site home 99.0 cut_short", c.lack)
			if listed := strings.HasSuffix(words, " "+store.CutShort); listed != c.listed {
				t.Errorf("%q is listed: %v", words, listed)
			}

			e := store.PlanInputs{Origins: words}
			text := strings.Join(lackOf(words).sentences(), " ")
			if !plannedAsOne(&e) || originsOf(words) != kept || !strings.Contains(text, c.says) {
				t.Errorf("%q says %q", words, text)
			}
		})
	}
}

// TestLack_Search has a search note the gap that its bound left, and none where it went to the end.
func TestLack_Search(t *testing.T) {
	var l planQuality
	l.setResult(site.Result{Cost: 120, Bound: 105})
	if l.gap != 15 {
		t.Errorf("a plan of 120 p over a bound of 105 p has a gap of %v p", l.gap)
	}

	l = planQuality{}
	l.setResult(site.Result{Cost: 120, Bound: 120 - 1e-9, Optimal: true})
	if l.gap != 0 {
		t.Errorf("the best plan has a gap of %v p", l.gap)
	}

	l = planQuality{}
	l.setResult(site.Result{Bound: -120, None: true})
	if l.why != noPlan || l.gap != 0 {
		t.Errorf("a search that found no plan lacks %q and %v p", l.why, l.gap)
	}
}

// TestLack_Reasons has a car wait that is planned as one with a battery: no cap and no instruction is blamed for it, but where there
// is one.
func TestLack_Reasons(t *testing.T) {
	hour := func(n int) flex.Span {
		from := time.Date(2026, 1, 10, 18+n, 0, 0, 0, time.UTC)
		return flex.Span{From: from, To: from.Add(time.Hour)}
	}

	explained := func(l planQuality) []charge.Reason {
		var x Explanation
		x.From.Origins = originsWithHome("event asset site", l)
		x.From.Closed = []flex.Span{hour(3)}
		x.Caps = []BindingCap{{Span: hour(2)}}

		for n := range 5 {
			x.Plan.Periods = append(x.Plan.Periods, charge.Period{Span: hour(n), Reason: charge.CapClosed})
		}

		x.Plan.Periods[0].Reason = charge.PeakClosed
		x.Plan.Periods[4].Reason = charge.Cheapest
		x.addBatteryReasons()

		var reasons []charge.Reason
		for _, p := range x.Plan.Periods {
			reasons = append(reasons, p.Reason)
		}
		return reasons
	}

	want := []charge.Reason{charge.PeakClosed, charge.BesideBattery, charge.CapClosed, charge.CapClosed, charge.Cheapest}
	if found := explained(planQuality{}); !slices.Equal(found, want) {
		t.Errorf("the reasons are %v, not %v", found, want)
	}

	if found := explained(planQuality{why: noPlan}); slices.Contains(found, charge.BesideBattery) {
		t.Errorf("a car that is not planned as one with the battery has the reasons %v", found)
	}
}
