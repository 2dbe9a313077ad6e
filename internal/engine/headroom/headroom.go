package headroom

import (
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

// Hours is how far ahead a Room looks. What is planned later is not counted.
const Hours = 48

// LeastPower is the least that a car can charge with, 6 A at 230 V. Less room than that is
// none.
const LeastPower flex.Watts = 1380

const horizon = Hours * 60

// Room is what caps leave to cars that share them, minute by minute from an instant on. A
// minute counts as filled by the most that is drawn in it, so that what fits into the room
// of every minute exceeds no cap at any instant.
//
// Caps are named by their place: the fleet's is 0, which binds every car, and others bind a
// group. A car that is in no group names 0.
type Profile struct {
	first   int64 // minute since 1970
	caps    []flex.Cap
	load    [][]int64 // watts, by cap and minute; nil before anything was added
	starts  [][]int32
	ceiling []int64 // what the fleet is held to beside its cap, by minute; nil for nothing
}

// New returns the room under caps, the fleet's first, from an instant on.
func New(from time.Time, caps []flex.Cap) *Profile {
	return &Profile{first: from.Unix() / 60, caps: caps, load: make([][]int64, len(caps)), starts: make([][]int32, len(caps))}
}

// of calls fn with every cap that binds a car.
func (r *Profile) of(cap int, fn func(k int)) {
	fn(0)
	if cap != 0 {
		fn(cap)
	}
}

// minutes returns the minutes that a span touches, within the horizon.
func (r *Profile) minutes(s flex.Span) (from, to int) {
	from = int(max(0, s.From.Unix()/60-r.first))
	to = int(min(horizon, (s.To.Unix()+59)/60-r.first))
	return from, to
}

// Add fills the room with what steps have a car of some power draw, and with their starts; a
// car that is charging already as they begin does not start then.
func (r *Profile) Add(cap int, steps []flex.Step, power flex.Watts, running bool) {
	r.change(cap, steps, power, running, 1)
}

// Remove takes back what was added.
func (r *Profile) Remove(cap int, steps []flex.Step, power flex.Watts, running bool) {
	r.change(cap, steps, power, running, -1)
}

func (r *Profile) change(cap int, steps []flex.Step, power flex.Watts, running bool, sign int) {
	r.fill(cap, steps, power, int64(sign))
	r.eachStart(steps, running, func(m int) bool {
		r.of(cap, func(k int) {
			if r.starts[k] == nil {
				r.starts[k] = make([]int32, horizon)
			}
			r.starts[k][m] += int32(sign)
		})

		return true
	})
}

// Reserve keeps room for a car without a start; Release gives it back.
func (r *Profile) Reserve(cap int, steps []flex.Step) { r.fill(cap, steps, flex.NoLimit, 1) }

// Release gives back what was reserved.
func (r *Profile) Release(cap int, steps []flex.Step) { r.fill(cap, steps, flex.NoLimit, -1) }

func (r *Profile) fill(cap int, steps []flex.Step, power flex.Watts, sign int64) {
	r.of(cap, func(k int) {
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
func (r *Profile) eachStart(steps []flex.Step, running bool, fn func(m int) bool) {
	for _, s := range steps {
		if m := s.From.Unix()/60 - r.first; s.Limit > 0 && !running && m >= 0 && m < horizon && !fn(int(m)) {
			return
		}
		running = s.Limit > 0
	}
}

// holdThis binds the fleet, beside its cap, to what is in the room now.
func (r *Profile) setCeiling() {
	r.ceiling = make([]int64, horizon)
	copy(r.ceiling, r.load[0])
}

// left is what the caps leave to a car in a minute, at most so much, and which of them leaves
// it; -1 if none binds, or what the fleet is held to.
func (r *Profile) left(cap, m int, most int64) (watts int64, by int) {
	watts, by = most, -1
	r.of(cap, func(k int) {
		bound := int64(-1)
		if p := r.caps[k].Power; p != nil {
			bound = int64(*p)
		}

		name := k
		if k == 0 && r.ceiling != nil && (bound < 0 || r.ceiling[m] < bound) {
			bound, name = r.ceiling[m], -1
		}
		if bound < 0 {
			return
		}

		if r.load[k] != nil {
			bound -= r.load[k][m]
		}
		if bound < watts {
			watts, by = max(0, bound), name
		}
	})

	if watts < int64(LeastPower) && watts < most {
		watts = 0
	}
	return watts, by
}

// Limits is the room for a car as limits of its problem: none if it has all the room that it
// can use. Charge-now is not limited: whoever asks for it has their reason.
func (r *Profile) Limits(p *charge.Problem, cap int) (limits []flex.Step) {
	end := p.ReadyBy
	if p.ChargeNow.To.After(end) {
		end = p.ChargeNow.To
	}

	bound := false
	put := func(from, to time.Time, limit flex.Watts) {
		if n := len(limits); n > 0 && limits[n-1].Limit == limit {
			limits[n-1].To = to
		} else {
			limits = append(limits, flex.Step{Span: flex.Span{From: from, To: to}, Limit: limit})
		}
	}

	m, to := r.minutes(flex.Span{From: p.From, To: end})
	for at := p.From; m < to; m++ {
		until := time.Unix((r.first+int64(m)+1)*60, 0).UTC()
		if until.After(end) {
			until = end
		}

		limit := flex.NoLimit
		if w, _ := r.left(cap, m, int64(p.Power)); w < int64(p.Power) {
			limit, bound = flex.Watts(w), true
			if now := p.ChargeNow.Meet(flex.Span{From: at, To: until}); !now.Empty() && now.From.Equal(at) {
				put(at, now.To, flex.NoLimit)
				at = now.To
			}
		}

		if at.Before(until) {
			put(at, until, limit)
		}
		at = until
	}

	if !bound {
		return nil
	}
	if last := limits[len(limits)-1].To; last.Before(end) {
		put(last, end, flex.NoLimit)
	}

	return limits
}

// Fits reports whether steps of a car stay within the room from an instant on, charge-now
// apart, without a start in a minute that has as many as it may.
func (r *Profile) Fits(p *charge.Problem, cap int, steps []flex.Step) bool {
	ahead := make([]flex.Step, 0, len(steps))
	for _, s := range steps {
		s.Span = s.Meet(flex.Span{From: p.From, To: s.To})
		if s.Empty() {
			continue
		}

		ahead = append(ahead, s)
		draw := int64(min(s.Limit, p.Power))
		for m, to := r.minutes(s.Span); draw > 0 && m < to; m++ {
			if w, _ := r.left(cap, m, draw); w < draw && !p.ChargeNow.Contains(time.Unix((r.first+int64(m))*60, 0)) {
				return false
			}
		}
	}

	_, crowded := r.crowdedMinute(p, cap, ahead)
	return !crowded
}

// full reports whether a car may not start in a minute.
func (r *Profile) full(cap, m int) (full bool) {
	r.of(cap, func(k int) {
		most := r.caps[k].StartsPerMinute
		full = full || most > 0 && r.starts[k] != nil && int(r.starts[k][m]) >= most
	})
	return full
}

// crowded returns the first minute in which steps start although it is full. A start of
// charge-now is not held back.
func (r *Profile) crowdedMinute(p *charge.Problem, cap int, steps []flex.Step) (minute int, crowded bool) {
	r.eachStart(steps, p.Running, func(m int) bool {
		at := time.Unix((r.first+int64(m)+1)*60-1, 0)
		if r.full(cap, m) && !p.ChargeNow.Contains(at) {
			minute, crowded = m, true
		}
		return !crowded
	})

	return minute, crowded
}

// postponements is how many starts of one car are put off before it starts when it likes.
const postponements = 64

// Charge plans a car in the room that is left. It returns the problem as it was planned, with
// its limits. A start in a full minute is put off to the next that has a place; but the need
// goes before the pace, and before what the fleet is held to.
func (r *Profile) Charge(p charge.Problem, cap int) (charge.Problem, charge.Plan) {
	p.Limits = r.Limits(&p, cap)
	hasty := charge.Solve(p)
	if hold := r.ceiling; hold != nil && hasty.Shortfall > 0 {
		r.ceiling = nil
		defer func() { r.ceiling = hold }()
		q := p
		q.Limits = r.Limits(&p, cap)
		if loose := charge.Solve(q); loose.Shortfall < hasty.Shortfall {
			p, hasty = q, loose
		}
	}

	q, paced := p, hasty
	for range postponements {
		m, crowded := r.crowdedMinute(&p, cap, paced.Steps)
		if !crowded {
			return q, paced
		}

		to := m + 1
		for to < horizon && r.full(cap, to) {
			to++
		}

		shut := flex.Span{From: time.Unix((r.first+int64(m))*60, 0).UTC(), To: time.Unix((r.first+int64(to))*60, 0).UTC()}
		q.Limits = closeIn(q.Limits, shut, &p)
		paced = charge.Solve(q)
		if paced.Shortfall > hasty.Shortfall {
			break
		}
	}

	return p, hasty
}

// closeIn returns the limits with nothing allowed in a span, charge-now apart.
func closeIn(limits []flex.Step, shut flex.Span, p *charge.Problem) (out []flex.Step) {
	end := p.ReadyBy
	if p.ChargeNow.To.After(end) {
		end = p.ChargeNow.To
	}
	if len(limits) == 0 {
		limits = []flex.Step{{Span: flex.Span{From: p.From, To: end}, Limit: flex.NoLimit}}
	}

	put := func(s flex.Span, limit flex.Watts) {
		if n := len(out); s.Empty() {
			return
		} else if n > 0 && out[n-1].Limit == limit {
			out[n-1].To = s.To
		} else {
			out = append(out, flex.Step{Span: s, Limit: limit})
		}
	}

	if !p.ChargeNow.Empty() && shut.From.Before(p.ChargeNow.To) {
		shut.From = p.ChargeNow.To
	}

	for _, l := range limits {
		put(l.Meet(flex.Span{From: l.From, To: shut.From}), l.Limit)
		put(l.Meet(shut), 0)
		put(l.Meet(flex.Span{From: shut.To, To: l.To}), l.Limit)
	}

	return out
}

// Held is a cap that keeps a car from charging as it would for a time.
type Binding struct {
	flex.Span
	Cap    int // by its place
	Starts bool
}

// Held returns the caps that hold a plan of Charge back, by half-hours: where it may charge
// by its tariff, has less room than its power, and does not charge in full. The car itself
// must not be in the room.
func (r *Profile) Bindings(p *charge.Problem, a *charge.Plan, cap int) (held []Binding) {
	for i := range a.Periods {
		k := &a.Periods[i]
		if !k.OffPeak && !p.MayChargePeak || k.From.Before(p.ChargeNow.To) || !k.From.Before(p.ReadyBy) || k.Energy >= p.Power.For(k.Len())-1 {
			continue
		}

		h := Binding{Span: k.Span, Cap: -1}
		least := int64(p.Power)
		for m, to := r.minutes(k.Span); m < to; m++ {
			if w, by := r.left(cap, m, least); by >= 0 && w < least {
				least, h.Cap = w, by
			}
		}

		if w, limited := charge.LimitAt(p.Limits, k.From.Unix()); h.Cap < 0 && limited && w == 0 {
			h.Cap, h.Starts = 0, true
			if cap != 0 && r.caps[cap].StartsPerMinute > 0 {
				h.Cap = cap
			}
		}

		switch n := len(held); {
		case h.Cap < 0:
		case n > 0 && held[n-1].To.Equal(h.From) && held[n-1].Cap == h.Cap && held[n-1].Starts == h.Starts:
			held[n-1].To = h.To
		default:
			held = append(held, h)
		}
	}

	return held
}

// Over returns the first minute in which more is drawn than a cap, and which cap; false if no
// cap is exceeded.
func (r *Profile) Exceeded() (at time.Time, cap int, over bool) {
	for k := range r.caps {
		if r.caps[k].Power == nil || r.load[k] == nil {
			continue
		}

		for m, w := range r.load[k] {
			if w > int64(*r.caps[k].Power) && (!over || time.Unix((r.first+int64(m))*60, 0).Before(at)) {
				at = time.Unix((r.first+int64(m))*60, 0).UTC()
				cap = k
				over = true
				break
			}
		}
	}

	return at, cap, over
}
