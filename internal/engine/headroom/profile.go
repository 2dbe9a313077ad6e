package headroom

import (
	"math"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Hours is how far ahead a Profile looks. What is planned later is not counted.
const Hours = 48

// LeastPower is the least that a car can charge with, where its problem does not say: 6 A at 230 V
// on one phase. Less headroom than that is none.
const LeastPower = flex.PhasePower

// leastOf is the least that a car can charge with, in W.
func leastOf(p *charge.Problem) flex.Watts { return max(p.Least, LeastPower) }

const horizon = Hours * 60

// Profile is the headroom that caps leave to cars that share them, minute by minute from an
// instant on. A minute counts as filled by the most that is drawn in it, so that what fits
// every minute exceeds no cap at any instant.
//
// Caps are named by their place: the fleet's is 0, which binds every car, and others bind a
// group. A car that is in no group names 0. A group may lie in another one, whose cap binds its
// cars too.
type Profile struct {
	first   int64 // minute since 1970
	caps    []flex.Cap
	parents []int     // of each cap's group, the place of the one that it lies in; 0 for none
	load    [][]int64 // watts, by cap and minute; nil before anything was added
	starts  [][]int32
	hard    bool // charge-now is limited too
	// caps for a time, by cap and minute, in watts; nil for none
	tight [][]int64
	// a tighter cap of the fleet, by minute, in watts; nil for none
	ceiling []int64
}

// New returns the headroom under caps, the fleet's first, from an instant on. No group lies in another.
func New(from time.Time, caps []flex.Cap) *Profile {
	return Nested(from, caps, make([]int, len(caps)))
}

// Nested is New for groups that lie in each other: parents has, for each cap's group, the place of the one that it lies in,
// and 0 for none.
func Nested(
	from time.Time,
	caps []flex.Cap,
	parents []int,
) *Profile {
	return &Profile{
		first:   from.Unix() / 60,
		caps:    caps,
		parents: parents,
		load:    make([][]int64, len(caps)),
		starts:  make([][]int32, len(caps)),
	}
}

// LimitNow has charge-now limited as well: what a fuse or a transformer cannot carry is not a
// matter of who asks.
func (r *Profile) LimitNow() { r.hard = true }

// eachCap calls fn with every cap that binds a car: the fleet's, then its group's and those around it, outwards. Groups that are wrongly
// said to lie in themselves end it, as flex.CapTree's Path does.
func (r *Profile) eachCap(cap int, fn func(k int)) {
	fn(0)
	for k, depth := cap, 0; k != 0 && depth < flex.CapDepthMax; k, depth = r.parents[k], depth+1 {
		fn(k)
	}
}

// Tighten holds what a cap binds to a power for a time, beside the cap. The lowest binds.
func (r *Profile) Tighten(
	k int,
	s flex.Span,
	most flex.Watts,
) {
	if r.tight == nil {
		r.tight = make([][]int64, len(r.caps))
	}

	if r.tight[k] == nil {
		r.tight[k] = make([]int64, horizon)
		for m := range r.tight[k] {
			r.tight[k][m] = math.MaxInt64
		}
	}

	for m, to := r.minutes(s); m < to; m++ {
		r.tight[k][m] = min(r.tight[k][m], int64(most))
	}
}

// cap is the power that cap k allows in a minute; false if it bounds none.
func (r *Profile) cap(
	k, minute int,
) (watts int64, bounded bool) {
	watts = math.MaxInt64
	if p := r.caps[k].Power; p != nil {
		watts = int64(*p)
	}
	if r.tight != nil && r.tight[k] != nil {
		watts = min(watts, r.tight[k][minute])
	}

	return watts, watts != math.MaxInt64
}

// bounds reports whether cap k allows no more than some power in any minute.
func (r *Profile) bounds(k int) bool {
	return r.caps[k].Power != nil || r.tight != nil && r.tight[k] != nil
}

// At is the power that cap k allows at an instant within the horizon; false if it bounds none.
func (r *Profile) At(
	k int,
	at time.Time,
) (most flex.Watts, bounded bool) {
	m := int(max(0, min(horizon-1, at.Unix()/60-r.first)))
	watts, bounded := r.cap(k, m)
	return flex.Watts(watts), bounded
}

// instant returns the beginning of a minute.
func (r *Profile) instant(minute int) time.Time {
	return time.Unix((r.first+int64(minute))*60, 0).UTC()
}

// minutes returns the minutes that a span touches, within the horizon.
func (r *Profile) minutes(s flex.Span) (from, to int) {
	from = int(max(0, s.From.Unix()/60-r.first))
	to = int(min(horizon, (s.To.Unix()+59)/60-r.first))
	return from, to
}

// Add counts what a car of some power draws by its steps, and their starts. A car that is
// charging already as they begin does not start then.
func (r *Profile) Add(
	cap int,
	steps []flex.Step,
	power flex.Watts,
	running bool,
) {
	r.change(cap, steps, power, running, 1)
}

// Remove takes back what was added.
func (r *Profile) Remove(
	cap int,
	steps []flex.Step,
	power flex.Watts,
	running bool,
) {
	r.change(cap, steps, power, running, -1)
}

func (r *Profile) change(
	cap int,
	steps []flex.Step,
	power flex.Watts,
	running bool,
	sign int,
) {
	r.fill(cap, steps, power, int64(sign))
	r.eachStart(steps, running, func(m int) bool {
		r.eachCap(cap, func(k int) {
			if r.starts[k] == nil {
				r.starts[k] = make([]int32, horizon)
			}
			r.starts[k][m] += int32(sign)
		})

		return true
	})
}

// Reserve keeps power for a car without counting a start; Release gives it back.
func (r *Profile) Reserve(cap int, steps []flex.Step) {
	r.fill(cap, steps, flex.Unbounded, 1)
}

// Release gives back what was reserved.
func (r *Profile) Release(cap int, steps []flex.Step) {
	r.fill(cap, steps, flex.Unbounded, -1)
}

func (r *Profile) fill(
	cap int,
	steps []flex.Step,
	power flex.Watts,
	sign int64,
) {
	r.eachCap(cap, func(k int) {
		if r.load[k] == nil {
			r.load[k] = make([]int64, horizon)
		}

		for _, s := range steps {
			w := sign * int64(min(s.Limit, power))
			if w == 0 {
				continue
			}

			for m, to := r.minutes(s.Span); m < to; m++ {
				r.load[k][m] += w
			}
		}
	})
}

// eachStart calls fn with the minutes in which steps begin to charge, until it says no.
func (r *Profile) eachStart(
	steps []flex.Step,
	running bool,
	fn func(m int) bool,
) {
	for _, s := range steps {
		starts := s.Limit > 0 && !running
		running = s.Limit > 0
		if !starts {
			continue
		}

		m := s.From.Unix()/60 - r.first
		if m >= 0 && m < horizon && !fn(int(m)) {
			return
		}
	}
}

// setCeiling holds the fleet, beside its cap, to what is drawn and reserved now.
func (r *Profile) setCeiling() {
	r.ceiling = make([]int64, horizon)
	copy(r.ceiling, r.load[0])
}

// bound returns the power that cap k allows in a minute, and the cap's place: -1 if that is
// the ceiling. It reports false if the cap bounds no power.
func (r *Profile) bound(
	k, minute int,
) (watts int64, by int, bounded bool) {
	by = k
	watts, bounded = r.cap(k, minute)

	if k == 0 && r.ceiling != nil {
		if ceiling := r.ceiling[minute]; !bounded || ceiling < watts {
			return ceiling, -1, true
		}
	}

	return watts, by, bounded
}

// loadAt is what is drawn under cap k in a minute.
func (r *Profile) loadAt(k, minute int) int64 {
	if r.load[k] == nil {
		return 0
	}
	return r.load[k][minute]
}

// Spare is the least power that is left under the caps of a place in a span, below zero where they are exceeded; false
// if they bound none in it.
func (r *Profile) Spare(
	cap int,
	s flex.Span,
) (least flex.Watts, bounded bool) {
	for m, to := r.minutes(s); m < to; m++ {
		r.eachCap(cap, func(k int) {
			most, binds := r.cap(k, m)
			if !binds {
				return
			}

			free := flex.Watts(most - r.loadAt(k, m))
			if !bounded || free < least {
				least, bounded = free, true
			}
		})
	}

	return least, bounded
}

// freePower returns the headroom of a car in a minute, at most the given watts, and the place of
// the cap that sets it: -1 if none does, or the ceiling. Less than the least is none.
func (r *Profile) freePower(
	cap, minute int,
	most int64,
	least flex.Watts,
) (int64, int) {
	var (
		watts int64
		by    int
	)

	watts, by = most, -1
	r.eachCap(cap, func(k int) {
		allowed, place, bounded := r.bound(k, minute)
		if !bounded {
			return
		}

		allowed -= r.loadAt(k, minute)
		if allowed < watts {
			watts = max(0, allowed)
			by = place
		}
	})

	if watts < int64(least) && watts < most {
		watts = 0
	}

	return watts, by
}

// full reports whether a car may not start in a minute.
func (r *Profile) full(cap, minute int) bool {
	var full bool
	r.eachCap(cap, func(k int) {
		most := r.caps[k].StartsPerMinute
		full = full || most > 0 && r.startsAt(k, minute) >= most
	})

	return full
}

// startsAt is how many start under cap k in a minute.
func (r *Profile) startsAt(k, minute int) int {
	if r.starts[k] == nil {
		return 0
	}
	return int(r.starts[k][minute])
}

// Exceeded returns the first minute in which more is drawn than a cap, and which cap; false
// if no cap is exceeded.
func (r *Profile) Exceeded() (at time.Time, cap int, over bool) {
	for k := range r.caps {
		if !r.bounds(k) || r.load[k] == nil {
			continue
		}

		for m, w := range r.load[k] {
			if most, bounded := r.cap(k, m); !bounded || w <= most {
				continue
			}

			if first := r.instant(m); !over || first.Before(at) {
				at, cap = first, k
				over = true
			}

			break
		}
	}

	return at, cap, over
}
