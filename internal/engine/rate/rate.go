package rate

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// The numbers of the method.
const (
	// SessionsMax is the number of sessions that are looked back at.
	SessionsMax = 5
	// DeadPercent is how far the power must move for a plan under way to be changed.
	DeadPercent = 3
	// ClimbPercent is how far a session that was held to less than nominal power can raise
	// what is known.
	ClimbPercent = 10
	// DelayMax is the longest start delay that is believed.
	DelayMax = 25 * time.Minute
	// RestartDelay is allowed for a start after a stop even if no delay was seen: a few minutes
	// that are planned to make up for what is missing must not pass before the asset draws.
	RestartDelay = 5 * time.Minute

	atLimitPercent = 99 // of what was allowed: all of it
	// of what a cap allowed: clearly less; of a session's highest: a tail
	belowPercent = 90
	agreePercent = 10 // how far sessions may differ that agree
	// of a half-hour at the level: less is no delay
	errorPercent = 4
	openMin      = 5 * time.Minute // of a half-hour that shows a tail
	// of a half-hour that counts within a session
	nearlyMin     = 20 * time.Minute
	acceptPercent = 50 // of a limit: the asset accepts it
	tailPercent   = 30 // of a need: the most that a tail adds
	fullWatts     = 50 // drawn by a full car, at most
	stepWatts     = 10 // the power is rounded down to these
)

// HalfHour is one settlement period of which it is known what was allowed throughout, and
// what was drawn.
type HalfHour struct {
	flex.Period
	Energy flex.WattHours
	// the most that was allowed at every instant; above nominal is nominal
	Allowed flex.Watts
	Open    time.Duration // in which nominal power or more was allowed
	Nominal flex.Watts
	Began   bool // nothing was allowed just before
}

// power is the mean power.
func (h *HalfHour) power() flex.Watts { return flex.Watts(2 * h.Energy) }

// Idle reports whether the asset drew nothing, but what a full car or its charger draws by itself.
func (h *HalfHour) Idle() bool { return h.power() <= fullWatts }

// openPower is the mean power of the time in which the asset was allowed all; it is zero where
// that was not most of what it drew in, or too short.
func (h *HalfHour) openPower() flex.Watts {
	limited := h.Allowed > 0 && h.Open < flex.HalfHour
	if h.Open < openMin || limited {
		return 0
	}

	return flex.Watts(int64(h.Energy) * int64(time.Hour) / int64(h.Open))
}

// all reports whether the asset drew all that it was allowed.
func (h *HalfHour) all() bool {
	return 100*h.power() >= atLimitPercent*min(h.Allowed, h.Nominal)
}

// Session is what the half-hours of one session come to.
type Session struct {
	// of the half-hours that counted; of all of them if none did
	From      time.Time
	To        time.Time
	HalfHours int // that counted
	// flex.FullLimit of the nominal power if it drew all of that; 0 if none counted
	Power flex.Watts
	// the most that it drew of what a cap allowed, all of it; 0 if none
	AtLeast flex.Watts
	// the lowest limit under which it charged; 0 if it never was under one
	Minimum flex.Watts
	Delay   time.Duration
	Tail    flex.WattHours
}

// Rate is what is known of an asset.
type Rate struct {
	Power     flex.Watts // 0, or flex.FullLimit of the nominal: nothing below that is known
	Delay     time.Duration
	Tail      flex.WattHours
	Minimum   flex.Watts
	HalfHours int
	Sessions  int
	Since     time.Time // of the oldest half-hour that counted
	Until     time.Time // of the newest
	Certainty Certainty
}

// Certainty says in a word how much a rate rests on.
type Certainty string

// The certainties.
const (
	None Certainty = "none" // no half-hour
	Low  Certainty = "low"  // fewer than three half-hours
	// fewer than twelve, or of fewer than three sessions, or sessions that differ
	Medium Certainty = "medium"
	High   Certainty = "high"
)

// sortedByTime returns the half-hours in order, each once: of two for the same time the last given.
func sortedByTime(hs []HalfHour) []HalfHour {
	out := slices.Clone(hs)
	slices.SortStableFunc(out, func(a, b HalfHour) int {
		return a.Start().Compare(b.Start())
	})
	n := 0

	for i := range out {
		if i+1 < len(out) && out[i+1].Period == out[i].Period {
			continue
		}

		out[n] = out[i]
		n++
	}

	return out[:n]
}

// revealingHalfHours are the half-hours of a session that show what it draws.
func revealingHalfHours(hs []HalfHour) []HalfHour {
	var began []HalfHour
	var revealing []HalfHour
	for _, h := range hs {
		limited := h.Allowed < h.Nominal
		clear := 100*h.power() < belowPercent*h.Allowed

		switch {
		case h.Nominal <= 0 || h.Allowed <= 0 || h.power() <= fullWatts:
		case limited && !clear:
		case h.Began:
			began = append(began, h)
		default:
			revealing = append(revealing, h)
		}
	}

	if len(revealing) == 0 {
		return began
	}

	return revealing
}

// revealedPower is what a half-hour says of the power.
func revealedPower(h HalfHour) flex.Watts {
	if h.all() {
		return flex.FullLimit(h.Nominal)
	}
	return h.power()
}

// Summarise puts the half-hours of one session, in any order, into one.
func Summarise(hs []HalfHour) Session {
	hs = sortedByTime(hs)

	var s Session
	for i := range hs {
		s.noteLimited(&hs[i])
	}

	all := revealingHalfHours(hs)
	revealing := withoutTail(all)
	s.HalfHours = len(revealing)

	if len(revealing) == 0 {
		if len(hs) > 0 {
			s.From, s.To = hs[0].Start(), hs[len(hs)-1].End()
		}
		return s
	}

	s.From, s.To = revealing[0].Start(), revealing[len(revealing)-1].End()

	powers := make([]flex.Watts, len(revealing))

	for i, h := range revealing {
		powers[i] = revealedPower(h)
	}

	slices.Sort(powers)
	s.Power = powers[len(powers)/2]
	at := min(s.Power, revealing[0].Nominal)
	s.Delay = startDelay(hs, revealing, at)

	s.Tail = taperOf(hs, s.To, at)

	return s
}

// taperOf is what the half-hours after an instant fell short of the level while the asset was
// allowed all. If it was full in the end, the last of them lacks what there was no room for.
func taperOf(
	hs []HalfHour,
	after time.Time,
	at flex.Watts,
) flex.WattHours {
	var last flex.WattHours
	var short flex.WattHours
	for i := range hs {
		h := &hs[i]
		if h.Start().Before(after) || h.Open < openMin || h.Began {
			continue
		}
		if h.openPower() <= fullWatts {
			return short - last
		}

		last = 0
		if 100*h.openPower() < belowPercent*at {
			last = at.For(h.Open) - h.Energy
		}

		short += last
	}

	return short
}

// noteLimited notes what a half-hour under a limit below nominal shows.
func (s *Session) noteLimited(h *HalfHour) {
	if h.Allowed <= 0 || h.Allowed >= h.Nominal {
		return
	}

	if h.all() {
		s.AtLeast = max(s.AtLeast, h.Allowed)
	}

	if 100*h.power() >= acceptPercent*h.Allowed &&
		(s.Minimum == 0 || h.Allowed < s.Minimum) {
		s.Minimum = h.Allowed
	}
}

// withoutTail leaves out what came last and is low.
func withoutTail(hs []HalfHour) []HalfHour {
	var most flex.Watts
	for _, h := range hs {
		most = max(most, min(revealedPower(h), h.Nominal))
	}

	n := len(hs)
	for n > 0 && 100*min(revealedPower(hs[n-1]), hs[n-1].Nominal) < belowPercent*most {
		n--
	}

	return hs[:n]
}

// startDelay is what the first half-hours fell short of the level, in time at the level: the
// median over the starts.
func startDelay(hs, revealing []HalfHour, at flex.Watts) time.Duration {
	if at <= 0 || revealing[0].Began { // nothing to compare with
		return 0
	}

	var delays []time.Duration
	for _, h := range hs {
		if !h.Began || h.Allowed < h.Nominal || h.power() <= fullWatts {
			continue
		}

		missing := max(0, at.For(flex.HalfHour)-h.Energy)
		delays = append(
			delays,
			time.Duration(int64(missing)*3600/int64(at))*time.Second,
		)
	}

	if len(delays) == 0 {
		return 0
	}

	slices.Sort(delays)

	d := delays[len(delays)/2]
	if d > flex.HalfHour*errorPercent/100 { // less is a meter's error
		return min(d, DelayMax)
	}

	return 0
}

// Learn puts sessions, in any order, into what is known of the asset.
func Learn(past []Session) Rate {
	past = slices.Clone(past)
	slices.SortFunc(past, func(a, b Session) int {
		return cmp.Or(
			b.To.Compare(a.To),
			b.From.Compare(a.From),
			cmp.Compare(a.Power, b.Power),
		)
	})

	var r Rate
	r.Certainty = None
	var powers []flex.Watts
	var delays []time.Duration
	var tails []flex.WattHours

	for _, s := range past {
		if s.Minimum > 0 && (r.Minimum == 0 || s.Minimum < r.Minimum) {
			r.Minimum = s.Minimum
		}

		if s.HalfHours == 0 || len(powers) == SessionsMax {
			continue
		}

		powers = append(powers, s.Power)
		delays = append(delays, s.Delay)
		tails = append(tails, s.Tail)
		r.note(s.From, s.To, s.HalfHours)
	}

	if len(powers) == 0 {
		return r
	}

	r.Power = lowerMedian(powers)
	r.Delay = lowerMedian(delays)
	r.Tail = lowerMedian(tails)
	r.climb(past)
	r.Certainty = r.certainty(powers)

	return r
}

// note counts a stretch of half-hours.
func (r *Rate) note(from, to time.Time, n int) {
	if r.Sessions == 0 || from.Before(r.Since) {
		r.Since = from
	}

	if to.After(r.Until) {
		r.Until = to
	}

	r.Sessions++
	r.HalfHours += n
}

// climb raises the power by what newer sessions drew of all that a cap allowed.
func (r *Rate) climb(newest []Session) {
	for _, s := range newest {
		if s.Power > 0 {
			return
		}

		if s.AtLeast >= r.Power*atLimitPercent/100 {
			r.Power = s.AtLeast * (100 + ClimbPercent) / 100
			return
		}
	}
}

func (r *Rate) certainty(powers []flex.Watts) Certainty {
	low, high := slices.Min(powers), slices.Max(powers)
	agree := 100*high <= (100+agreePercent)*low

	if r.HalfHours == 0 {
		return None
	}

	if r.HalfHours < 3 {
		return Low
	}

	if r.HalfHours >= 12 && r.Sessions >= 3 && agree {
		return High
	}

	return Medium
}

func lowerMedian[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

// Within puts what the half-hours of the session under way show, in any order, over what is
// known from the sessions before.
func Within(known Rate, hs []HalfHour) Rate {
	hs = sortedByTime(hs)
	revealing := revealingHalfHours(nearlyComplete(hs))
	r := known

	if len(revealing) > 0 && (known.Power == 0 || !revealing[0].Began) {
		r = within(known, revealing)
		if known.HalfHours == 0 {
			r.Delay = startDelay(hs, revealing, min(r.Power, revealing[0].Nominal))
		}
	}

	full := known.Power // of one that drew all that is nominal it says no number
	if n := len(hs); n > 0 {
		full = min(full, hs[n-1].Nominal)
	}

	r = falling(r, hs)
	if 100*r.Power < belowPercent*full { // the tail has begun, and is measured
		r.Tail = 0
	}

	return r
}

// nearlyComplete has half-hours of which at least nearlyMin was allowed, and the rest not, count by that part: a schedule that is replaced each
// half-hour, a minute after it, would show nothing. A start does not count so, as it may have been late.
func nearlyComplete(hs []HalfHour) []HalfHour {
	out := slices.Clone(hs)
	for i := range out {
		h := &out[i]
		if h.Began || h.Allowed > 0 || h.Open < nearlyMin {
			continue
		}

		h.Energy = flex.WattHours(h.openPower() / 2)
		h.Allowed = h.Nominal
	}

	return out
}

// falling lowers the power of an asset that draws less and less to half of what it drew last:
// what comes will be less still.
func falling(r Rate, hs []HalfHour) Rate {
	hs = slices.DeleteFunc(hs, func(h HalfHour) bool {
		return h.Open < openMin
	})
	n := len(hs)
	if n == 0 {
		return r
	}

	last := hs[n-1].openPower()
	before := hs[n-1].Nominal

	if r.Power > 0 {
		before = min(before, r.Power)
	}

	if n > 1 {
		before = max(before, hs[n-2].openPower())
	}

	if hs[n-1].Began || last <= fullWatts {
		return r
	}

	if 100*last < belowPercent*before {
		r.Power = last / 2
	}

	return r
}

// within puts the half-hours that count over what is known.
func within(known Rate, revealing []HalfHour) Rate {
	last := revealedPower(revealing[len(revealing)-1])
	before := known.Power

	if n := len(revealing); n > 1 {
		before = revealedPower(revealing[n-2])
	}

	r := known
	r.Power = last

	if before > 0 {
		r.Power = min(last, before)
	}

	r.note(revealing[0].Start(), revealing[len(revealing)-1].End(), len(revealing))
	r.Certainty = r.certainty([]flex.Watts{r.Power, last})

	return r
}

// Steady returns the power that a plan under way continues with: the one that it was made with,
// if the new one differs by no more than the dead band.
func Steady(current, next flex.Watts) flex.Watts {
	if 100*max(current-next, next-current) <= DeadPercent*current {
		return current
	}
	return next
}

// Planned is what a plan takes of the nominal power, rounded down, and whether that is less.
func (r Rate) Planned(nominal flex.Watts) (power flex.Watts, less bool) {
	if r.Power <= 0 || r.Power >= nominal {
		return nominal, false
	}
	return max(stepWatts, r.Power/stepWatts*stepWatts), true
}

// State is how far a charge has come when it is planned.
type State int

// The states.
const (
	Waiting State = iota // it has not begun
	Running              // its start is behind it
	Stopped              // it has begun, and must start again
)

// Allowance is the energy by which a plan for a remaining need is to allow more than that, at
// the power that is planned. The whole need bounds the tail, so that it does not shrink, and cost
// a push, with each half-hour.
func (r Rate) Allowance(
	need, fullNeed flex.WattHours,
	power flex.Watts,
	state State,
) flex.WattHours {
	if need <= 0 {
		return 0
	}

	more := need/100 + power.For(time.Minute) +
		min(r.Tail, fullNeed*tailPercent/100)
	switch state {
	case Waiting:
		more += power.For(r.Delay)
	case Stopped:
		more += power.For(max(r.Delay, RestartDelay))
	}

	return more
}
