package wave

import (
	"cmp"
	"math/bits"
	"slices"

	"flexd/internal/flex"
)

// Rule decides which changes are sent. A plan that changes with every small price change is
// worse than one that costs a penny more.
type Rule struct {
	Saving flex.MicroPounds // a change that saves this much is pushed,
	// and so is one that saves this share of what the current plan costs; 0 is off
	Percent int64
	// below this saving, the running half-hour stays as it is
	Running flex.MicroPounds
	// a change that begins more seconds than this from now is put off; 0 is off
	Ahead uint32
}

// DefaultRule is used unless another rule is set. In the half-hourly updates of 2016 to 2019
// it sends a new profile to 4 cars in 100 an update and preserves nearly all of the saving
// (docs/engine-fleet.md has the figures of this and other rules). Nothing is lost by a delayed
// change, since it is found again in the next wave, which should come within the hour.
var DefaultRule = Rule{
	Saving:  10_000,
	Running: 10_000,
	Ahead:   60 * 60,
}

// Choose returns the changes that the rule accepts: first the plans that are wrong, then by
// falling saving, then by asset. If a change is too small to affect the running half-hour, it
// is replaced by the best plan that leaves that half-hour unchanged, if the rule accepts it.
// The result uses the memory of changes. The inputs are those of Replan, current plans
// included.
func Choose(
	rule Rule,
	curves []Curve,
	assets []Asset,
	current []Plan,
	changes []Change,
) []Change {
	chosen := changes[:0]
	for _, ch := range changes {
		a := &assets[ch.Asset]
		if c := &curves[a.Class]; ch.Plan.Flags()&Wrong == 0 {
			var ok bool
			ch, ok = rule.filter(c, a, current[ch.Asset], ch)
			if !ok {
				continue
			}
		}

		chosen = append(chosen, ch)
	}

	slices.SortFunc(chosen, func(a, b Change) int {
		return cmp.Or(
			-cmp.Compare(a.Plan.Flags()&Wrong, b.Plan.Flags()&Wrong),
			-cmp.Compare(a.Saving, b.Saving),
			cmp.Compare(a.Asset, b.Asset))
	})

	return chosen
}

// filter returns the change, or its replacement, if it should be sent.
func (r Rule) filter(c *Curve, a *Asset, old Plan, ch Change) (Change, bool) {
	if ch.Plan.Flags()&Running != 0 && flex.MicroPounds(ch.Saving) < r.Running {
		current, ok := c.unchanged(a, old)
		if !ok {
			return ch, false
		}
		current.Asset = ch.Asset
		ch = current
	}

	saving := flex.MicroPounds(ch.Saving)
	isWorth := saving > 0 && saving >= r.Saving
	if !isWorth && saving > 0 && r.Percent > 0 {
		_, cost := c.Charge(a, old)
		isWorth = cost > 0 && saving*100 >= cost*flex.MicroPounds(r.Percent)
	}

	return ch, isWorth && (r.Ahead == 0 || c.begins(a, old, ch.Plan) <= r.Ahead)
}

// begins returns the second at which the first piece begins in which two plans differ.
func (c *Curve) begins(a *Asset, old, p Plan) uint32 {
	v := c.view(a)
	old = c.rest(&v, old)
	cut := cuts(old, p)
	if x := old.lo ^ p.lo | cut.lo; x != 0 {
		return c.start[bits.TrailingZeros64(x)]
	}
	if x := old.hi() ^ p.hi() | cut.hi(); x != 0 {
		return c.start[bits.TrailingZeros64(x)+64]
	}

	return c.end
}

// unchanged plans the car again with the running half-hour unchanged. There is no such plan if
// that half-hour and the rest would both have a cut piece.
func (c *Curve) unchanged(a *Asset, old Plan) (Change, bool) {
	v := c.view(a)
	remaining := c.rest(&v, old)
	remaining.lo, remaining.tag = remaining.lo&c.now, remaining.tag>>32<<32
	if remaining.lo>>remaining.slot()&1 == 0 {
		remaining.setCut(0, 0)
	}

	later := *a
	later.From = max(a.From, min(halfHour, c.end))
	later.Need -= min(
		later.Need,
		uint32(c.difference(&v, remaining, Plan{}).seconds),
	)

	p := c.Plan(&later)
	if p.isCut() && remaining.isCut() {
		return Change{}, false
	}

	p.lo, p.tag = p.lo|remaining.lo, p.tag|remaining.tag
	saving, ok := c.change(a, old, &p)

	return Change{Plan: p, Saving: saving}, ok && p.Flags()&Running == 0
}
