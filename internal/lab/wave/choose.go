package wave

import (
	"cmp"
	"math/bits"
	"slices"

	"flexd/internal/flex"
)

// Rule says which changes are worth a push. A plan that jumps at every price tick is
// worse than one that is a penny dearer.
type Rule struct {
	Saving flex.MicroPounds // a change that saves this much is pushed,
	// and so is one that saves this share of what the current plan costs; 0 is off
	Percent int64
	// below this saving, the running half-hour stays as it is
	Running flex.MicroPounds
	// a change that begins more seconds than this from now is put off; 0 is off
	Ahead uint32
}

// DefaultRule is the rule unless another is set. Of the half-hourly updates of 2016 to
// 2019 it sends a new profile to 4 cars in 100 an update and keeps nearly all that
// updates are worth (docs/engine-fleet.md has the figures of this and other rules). What
// is put off loses nothing, as it comes up again in the next wave, which should come
// within the hour.
var DefaultRule = Rule{
	Saving:  10_000,
	Running: 10_000,
	Ahead:   60 * 60,
}

// Choose returns the changes that the rule lets through: first the plans that stand
// wrong, then by falling saving, then by asset. Where a change is too small to touch the
// running half-hour, the best plan that leaves it alone replaces it, if that one
// still passes. The answer lies in the memory of changes; the inputs are those of
// Replan, current plans included.
func Choose(
	rule Rule,
	curves []Curve,
	assets []Asset,
	current []Plan,
	changes []Change,
) []Change {
	kept := changes[:0]
	for _, ch := range changes {
		a := &assets[ch.Asset]
		if c := &curves[a.Class]; ch.Plan.Flags()&Wrong == 0 {
			var ok bool
			ch, ok = rule.pass(c, a, current[ch.Asset], ch)
			if !ok {
				continue
			}
		}

		kept = append(kept, ch)
	}

	slices.SortFunc(kept, func(a, b Change) int {
		return cmp.Or(
			-cmp.Compare(a.Plan.Flags()&Wrong, b.Plan.Flags()&Wrong),
			-cmp.Compare(a.Saving, b.Saving),
			cmp.Compare(a.Asset, b.Asset))
	})

	return kept
}

// pass returns the change, or what replaces it, if it is worth a push.
func (r Rule) pass(c *Curve, a *Asset, old Plan, ch Change) (Change, bool) {
	if ch.Plan.Flags()&Running != 0 && flex.MicroPounds(ch.Saving) < r.Running {
		held, ok := c.hold(a, old)
		if !ok {
			return ch, false
		}
		held.Asset = ch.Asset
		ch = held
	}

	saving := flex.MicroPounds(ch.Saving)
	worth := saving > 0 && saving >= r.Saving
	if !worth && saving > 0 && r.Percent > 0 {
		_, cost := c.Charge(a, old)
		worth = cost > 0 && saving*100 >= cost*flex.MicroPounds(r.Percent)
	}

	return ch, worth && (r.Ahead == 0 || c.begins(a, old, ch.Plan) <= r.Ahead)
}

// begins is the second at which the first piece starts that two plans charge differently.
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

// hold plans the car again with the running half-hour left as it is. There is no such
// plan if that half-hour and the rest would both hold a cut piece.
func (c *Curve) hold(a *Asset, old Plan) (Change, bool) {
	v := c.view(a)
	stays := c.rest(&v, old)
	stays.lo, stays.tag = stays.lo&c.now, stays.tag>>32<<32
	if stays.lo>>stays.slot()&1 == 0 {
		stays.setCut(0, 0)
	}

	later := *a
	later.From = max(a.From, min(halfHour, c.end))
	later.Need -= min(
		later.Need,
		uint32(c.difference(&v, stays, Plan{}).seconds),
	)

	p := c.Plan(&later)
	if p.isCut() && stays.isCut() {
		return Change{}, false
	}

	p.lo, p.tag = p.lo|stays.lo, p.tag|stays.tag
	saving, ok := c.change(a, old, &p)

	return Change{Plan: p, Saving: saving}, ok && p.Flags()&Running == 0
}
