package headroom

import (
	"math"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Hours is how far ahead a Profile looks. What is drawn later is not counted.
const Hours = 48

// LeastPower is the least power that a car can charge with, if its problem does not say: 6 A
// at 230 V on one phase. Less headroom than that counts as none.
const LeastPower = flex.PhasePower

// leastOf returns the least power that a car can charge with.
func leastOf(p *charge.Problem) flex.Watts { return max(p.Least, LeastPower) }

const horizon = Hours * 60

// Profile is the headroom that caps leave to cars that share them, minute by minute from an
// instant on. A minute counts as filled by the most that is drawn in it, so that what fits
// every minute exceeds no cap at any instant.
//
// Caps are named by their index: 0 is the fleet's cap, which limits every car, and the others
// are those of groups. A car in no group has index 0. A group may lie in another group, whose
// cap then limits its cars too.
type Profile struct {
	first     int64 // minute since 1970
	caps      []flex.Cap
	parents   []int     // of each cap's group, the index of the group that it lies in; 0 for none
	load      [][]int64 // watts, by cap and minute; nil before anything was added
	starts    [][]int32
	limitsNow bool // charge-now is limited too
	// temporary caps, by cap and minute, in watts; nil for none
	temporary [][]int64
	// a tighter cap of the fleet, by minute, in watts; nil for none
	ceiling []int64
}

// New returns the headroom under caps, the fleet's first, from an instant on. No group lies in
// another.
func New(from time.Time, caps []flex.Cap) *Profile {
	return Nested(from, caps, make([]int, len(caps)))
}

// Nested is New for groups that may lie in each other. parents has, for each cap's group, the
// index of the group that it lies in, or 0 for none.
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

// LimitNow makes the caps limit charge-now as well, for a fuse or a transformer, which cannot
// carry more whoever asks for it.
func (r *Profile) LimitNow() { r.limitsNow = true }

// eachCap calls fn with the index of every cap that limits a car: the fleet's, then its
// group's and those around it, from the inside out. It ends at flex.CapDepthMax if groups are
// wrongly recorded to lie in each other, as flex.CapTree's Path does.
func (r *Profile) eachCap(cap int, fn func(k int)) {
	fn(0)
	for k, depth := cap, 0; k != 0 && depth < flex.CapDepthMax; k, depth = r.parents[k], depth+1 {
		fn(k)
	}
}

// Tighten adds a temporary limit of power to a cap. The lowest limit counts.
func (r *Profile) Tighten(
	k int,
	s flex.Span,
	most flex.Watts,
) {
	if r.temporary == nil {
		r.temporary = make([][]int64, len(r.caps))
	}

	if r.temporary[k] == nil {
		r.temporary[k] = make([]int64, horizon)
		for m := range r.temporary[k] {
			r.temporary[k][m] = math.MaxInt64
		}
	}

	for m, to := r.minutes(s); m < to; m++ {
		r.temporary[k][m] = min(r.temporary[k][m], int64(most))
	}
}

// cap returns the power that cap k allows in a minute; false if it limits no power.
func (r *Profile) cap(
	k, minute int,
) (watts int64, bounded bool) {
	watts = math.MaxInt64
	if p := r.caps[k].Power; p != nil {
		watts = int64(*p)
	}
	if r.temporary != nil && r.temporary[k] != nil {
		watts = min(watts, r.temporary[k][minute])
	}

	return watts, watts != math.MaxInt64
}

// bounds reports whether cap k limits the power in any minute.
func (r *Profile) bounds(k int) bool {
	return r.caps[k].Power != nil || r.temporary != nil && r.temporary[k] != nil
}

// At returns the power that cap k allows at an instant within the horizon; false if it limits
// none.
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

// Add counts what a car of a given power draws by its steps, and their starts. A car that is
// charging already when the steps begin does not start then.
func (r *Profile) Add(
	cap int,
	steps []flex.Step,
	power flex.Watts,
	running bool,
) {
	r.change(cap, steps, power, running, 1)
}

// Remove reverses Add.
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

// Reserve reserves power for a car without counting a start. Release ends the reservation.
func (r *Profile) Reserve(cap int, steps []flex.Step) {
	r.fill(cap, steps, flex.Unbounded, 1)
}

// Release ends a reservation of Reserve.
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

// eachStart calls fn with each minute in which steps begin to charge, until fn returns false.
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

// setCeiling limits the fleet, in addition to its cap, to what is drawn and reserved now.
func (r *Profile) setCeiling() {
	r.ceiling = make([]int64, horizon)
	copy(r.ceiling, r.load[0])
}

// bound returns the power that cap k allows in a minute, and the index of the cap: -1 if that
// is the ceiling. It returns false if the cap limits no power.
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

// loadAt returns what is drawn under cap k in a minute.
func (r *Profile) loadAt(k, minute int) int64 {
	if r.load[k] == nil {
		return 0
	}
	return r.load[k][minute]
}

// Spare returns the least power that is left in a span under a cap and those around it, below
// zero if they are exceeded. It returns false if none of them limits power in the span.
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

// freePower returns the headroom of a car in a minute, at most the given watts, and the index
// of the cap that sets it: -1 if none does, or the ceiling. Less than the least power counts
// as none.
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

// startsAt returns how many cars start under cap k in a minute.
func (r *Profile) startsAt(k, minute int) int {
	if r.starts[k] == nil {
		return 0
	}
	return int(r.starts[k][minute])
}

// Exceeded returns the first minute in which more is drawn than a cap allows, and that cap;
// false if there is none.
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
