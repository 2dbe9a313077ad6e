package control

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/home"
	"flexd/internal/flex"
)

// BatteryCause is the cause of a battery's mode in a half-hour.
type BatteryCause uint8

// The causes.
const (
	BatteryGainsNothing  BatteryCause = iota
	BatteryOrdered                    // a dispatch replaces the plan
	BatteryBuys                       // the price is low enough to store energy for later
	BatterySells                      // energy is worth more now than later
	BatteryCovers                     // supplies the home
	BatteryWaitsForOther              // for the car or the main fuse, by Waits and Until
	BatteryWaitsForCap
	BatteryKeepsReserve // it is down to its reserve
	BatteryKeepsForLater
	BatteryKeepsForSame // a later use is worth as much as one now
	BatteryKeepsPastEnd // nothing is planned to use it, and using it now would save less than it is worth in the end
)

// BatteryReason explains a battery's mode in a half-hour. Prices are pence per kWh for buying,
// except for BatterySells.
type BatteryReason struct {
	Mode  battery.Mode
	Cause BatteryCause
	Now   float64
	// the half-hour with the highest price in which the stored energy is planned to be used or
	// sold, and that price; zero for none
	Later      time.Time
	LaterPence float64
	Refill     float64 // of BatterySells: the lowest later price of a kWh
	Waits      Waits
	Until      time.Time
	Ordered    flex.Watts
}

// BatteryStretch is a sequence of half-hours with the same mode and reason.
type BatteryStretch struct {
	flex.Span
	BatteryReason
	Stored flex.WattHours // at its end
}

// bestUse is the half-hour in which a plan uses or sells stored energy at the best price.
type bestUse struct {
	at    time.Time
	pence float64
}

// usesAfter returns the best use after each half-hour of the plan; the earliest of equal ones.
func (w *BatteryWhy) usesAfter() []bestUse {
	uses := make([]bestUse, len(w.Periods))
	best := bestUse{pence: math.Inf(-1)}

	for i := len(w.Periods) - 1; i >= 0; i-- {
		uses[i] = best
		p := &w.Periods[i]
		if w.storedBefore(i) <= p.Stored {
			continue
		}

		pence := p.Buy
		if p.Mode == battery.ModeDischarge {
			pence = max(p.Buy, p.Sell)
		}
		if pence >= best.pence {
			best = bestUse{p.Start(), pence}
		}
	}

	return uses
}

// storedBefore returns the energy stored at the start of a half-hour of the plan.
func (w *BatteryWhy) storedBefore(i int) flex.WattHours {
	if i == 0 {
		return w.Stored
	}
	return w.Periods[i-1].Stored
}

// Reasons explains the mode of each half-hour.
func (w *BatteryWhy) Reasons() []BatteryReason {
	device := home.Battery{Power: w.Power, Capacity: w.Capacity}
	reserve, _ := device.Usable()
	uses := w.usesAfter()
	after := pricesAfter(w.Periods)
	reasons := make([]BatteryReason, len(w.Periods))

	for i := range reasons {
		p := &w.Periods[i]
		r := &reasons[i]
		*r = BatteryReason{Mode: p.Mode, Now: p.Buy, Waits: p.Waits, Until: p.Until}
		if uses[i].pence > math.Inf(-1) {
			r.Later, r.LaterPence = uses[i].at, uses[i].pence
		}

		r.Cause = p.cause(uses[i], after[i].most)
		if p.Ordered != nil {
			r.Ordered = *p.Ordered
		}
		if p.Mode == battery.ModeDischarge {
			r.Now, r.Refill = p.Sell, after[i].least
		}

		used := w.storedBefore(i) != p.Stored
		down := w.storedBefore(i) <= reserve && !used
		if down && r.Cause.rests(p) {
			r.Cause = BatteryKeepsReserve
		}
	}

	return reasons
}

// rests reports whether a battery at its reserve is idle for this reason: it has nothing to
// store either.
func (c BatteryCause) rests(p *BatteryPeriod) bool {
	idle := []BatteryCause{
		BatteryGainsNothing,
		BatteryKeepsForLater,
		BatteryKeepsForSame,
		BatteryKeepsPastEnd,
		BatteryCovers,
	}

	return p.Load > p.Roof && slices.Contains(idle, c)
}

// priceRange is the lowest and the highest of some prices; without any, the lowest is above
// the highest.
type priceRange struct{ least, most float64 }

// pricesAfter returns the range of buying prices after each half-hour.
func pricesAfter(periods []BatteryPeriod) []priceRange {
	after := make([]priceRange, len(periods))
	all := priceRange{math.Inf(1), math.Inf(-1)}
	for i := len(periods) - 1; i >= 0; i-- {
		after[i] = all
		all.least = min(all.least, periods[i].Buy)
		all.most = max(all.most, periods[i].Buy)
	}

	return after
}

// cause returns the cause of a half-hour's mode, from the best later use of stored energy and
// the highest later price. A battery that would not charge anyway does not wait for a cap.
func (p *BatteryPeriod) cause(use bestUse, dearest float64) BatteryCause {
	switch {
	case p.Ordered != nil:
		return BatteryOrdered
	case p.Mode == battery.ModeCharge:
		return BatteryBuys
	case p.Mode == battery.ModeDischarge:
		return BatterySells
	case p.Mode != battery.ModeLock:
		return BatteryCovers

	case p.WaitsForOther():
		return BatteryWaitsForOther
	case p.Waits == WaitsForCap && dearest > p.Buy:
		return BatteryWaitsForCap
	case use.pence > p.Buy:
		return BatteryKeepsForLater
	case p.Load > p.Roof && use.pence >= p.Buy:
		return BatteryKeepsForSame
	case p.Load > p.Roof:
		return BatteryKeepsPastEnd
	}

	return BatteryGainsNothing
}

// Stretches joins consecutive half-hours with the same mode and reason. The reason is that of
// the first.
func (w *BatteryWhy) Stretches() []BatteryStretch {
	var all []BatteryStretch
	for i, r := range w.Reasons() {
		p := &w.Periods[i]
		if n := len(all); n > 0 && all[n-1].goesOn(&r) {
			all[n-1].To, all[n-1].Stored = p.End(), p.Stored
			continue
		}

		all = append(all, BatteryStretch{p.Span(), r, p.Stored})
	}

	return all
}

// goesOn reports whether the next half-hour has the same mode and reason.
func (s *BatteryStretch) goesOn(r *BatteryReason) bool {
	of := &s.BatteryReason
	same := of.Cause == r.Cause && of.Ordered == r.Ordered
	if r.Cause == BatteryWaitsForOther {
		same = same && of.Waits == r.Waits && of.Until.Equal(r.Until)
	}
	if r.Cause == BatteryKeepsForLater || r.Cause == BatteryKeepsForSame {
		same = same && of.Later.Equal(r.Later)
	}

	return same && of.Mode == r.Mode
}

// perKWh formats a price.
func perKWh(pence float64) string {
	return strconv.FormatFloat(math.Round(10*pence)/10, 'f', -1, 64) + " p"
}

// itText is Text after "it".
func (r *BatteryReason) itText() string {
	if r.Cause == BatteryGainsNothing || r.Cause == BatteryOrdered {
		return "it rests: " + r.Text()
	}
	return "it " + r.Text()
}

// Text describes the reason.
func (r *BatteryReason) Text() string {
	later := ""
	if !r.Later.IsZero() {
		later = flex.Clock(r.Later, flex.London, "Mon 15:04")
	}

	switch r.Cause {
	case BatteryOrdered:
		return fmt.Sprintf("a dispatch takes the plan's place, and asks for %.1f kW", r.Ordered.KW())
	case BatteryBuys:
		if later == "" {
			return "charges at " + perKWh(r.Now) + ", which what is stored is worth later"
		}

		return fmt.Sprintf(
			"charges at %s for %s, when a kWh is worth %s",
			perKWh(r.Now),
			later,
			perKWh(r.LaterPence),
		)
	case BatterySells:
		if r.Refill < r.Now {
			return "sold for " + perKWh(r.Now) + ", and can be filled again for " + perKWh(r.Refill)
		}

		return "sold for " + perKWh(r.Now) + ", more than it is worth later"

	case BatteryCovers:
		if r.Mode == battery.ModeFeedIn {
			return "covers the home, and what the roof gives is sold"
		}

		return "covers the home, and stores what the roof gives beyond it"

	case BatteryWaitsForOther:
		return "waits, because " + WaitText(r.Waits, r.Until)
	case BatteryWaitsForCap:
		return "waits, because a cap leaves it less than its full power"
	case BatteryKeepsReserve:
		return "is down to its reserve, which is kept"

	case BatteryKeepsForLater:
		return fmt.Sprintf(
			"waits: a kWh is worth more on %s at %s than now at %s",
			later,
			perKWh(r.LaterPence),
			perKWh(r.Now),
		)
	case BatteryKeepsForSame:
		return fmt.Sprintf(
			"waits: a kWh is worth as much on %s as now, %s",
			later,
			perKWh(r.Now),
		)
	case BatteryKeepsPastEnd:
		return "waits: what is stored is worth more after the end of the plan than now at " + perKWh(r.Now)
	}

	return "neither storing nor using would gain anything"
}
