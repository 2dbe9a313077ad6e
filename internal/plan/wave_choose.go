package plan

import (
	"cmp"
	"slices"

	"flexd/internal/flex"
)

// WaveRule says which changes are worth a push. A plan that jumps at every price tick is
// worse than one that is a penny dearer.
type WaveRule struct {
	Saving  flex.MicroPounds // a change that saves this much is pushed,
	Percent int64            // and so is one that saves this share of what the standing plan costs
	Running flex.MicroPounds // below this saving, the running half-hour stays as it stands
}

// WaveDefault is the rule unless another is set: 2 p or 2 %, and 5 p to touch the running
// half-hour.
var WaveDefault = WaveRule{Saving: 20_000, Percent: 2, Running: 50_000}

// WaveChoose returns the changes that the rule lets through: first the plans that stand
// wrong, then by falling saving, then by asset. Where a change is too small to touch the
// running half-hour, the best plan that leaves it alone takes its place, if that one
// still passes. The answer lies in the memory of changes; the inputs are those of
// WaveReplan, standing plans included.
func WaveChoose(rule WaveRule, curves []WaveCurve, assets []WaveAsset, standing []WavePlan, changes []WaveChange) []WaveChange {
	kept := changes[:0]
	for _, ch := range changes {
		a := &assets[ch.Asset]
		c := &curves[a.Class]
		old := standing[ch.Asset]
		if ch.Plan.Flags()&WaveWrong == 0 {
			if ch.Plan.Flags()&WaveRunning != 0 && flex.MicroPounds(ch.Saving) < rule.Running {
				held, ok := c.hold(a, old)
				if !ok {
					continue
				}
				held.Asset = ch.Asset
				ch = held
			}
			if !rule.worth(ch, c, a, old) {
				continue
			}
		}
		kept = append(kept, ch)
	}
	slices.SortFunc(kept, func(a, b WaveChange) int {
		return cmp.Or(
			-cmp.Compare(a.Plan.Flags()&WaveWrong, b.Plan.Flags()&WaveWrong),
			-cmp.Compare(a.Saving, b.Saving),
			cmp.Compare(a.Asset, b.Asset))
	})
	return kept
}

// worth reports whether a change saves enough.
func (r WaveRule) worth(ch WaveChange, c *WaveCurve, a *WaveAsset, old WavePlan) bool {
	saving := flex.MicroPounds(ch.Saving)
	if saving <= 0 {
		return false
	}
	if saving >= r.Saving {
		return true
	}
	_, cost := c.Charge(a, old)
	return cost > 0 && saving*100 >= cost*flex.MicroPounds(r.Percent)
}

// hold plans the car anew with the running half-hour left as it stands. There is no such
// plan if that half-hour and the rest would both hold a cut piece.
func (c *WaveCurve) hold(a *WaveAsset, old WavePlan) (ch WaveChange, ok bool) {
	v := c.view(a)
	stays := c.rest(&v, old)
	stays.lo, stays.tag = stays.lo&c.now, stays.tag>>32<<32
	if stays.lo>>stays.slot()&1 == 0 {
		stays.setCut(0, 0)
	}
	later := *a
	later.From = max(a.From, min(waveHalfHour, c.end))
	later.Need -= min(later.Need, uint32(c.difference(&v, stays, WavePlan{}).seconds))
	p := c.Plan(&later)
	if p.isCut() && stays.isCut() {
		return ch, false
	}
	p.lo, p.tag = p.lo|stays.lo, p.tag|stays.tag
	saving, ok := c.change(a, old, &p)
	return WaveChange{Plan: p, Saving: saving}, ok && p.Flags()&WaveRunning == 0
}
