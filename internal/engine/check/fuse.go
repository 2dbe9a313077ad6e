package check

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// Device is what one device of a site, or the home itself, may draw.
type Device struct {
	Own   flex.Watts    // the most that it can draw
	Least flex.Watts    // the least that it can use, if Own is not less
	May   [][]flex.Step // all that it may be following until it accepts Next
	Free  bool          // past the end of a list it draws Own
	// how many phases it is on, 1 or 3 (another number is 1), and of one on three, which; 0 for not known
	Phases, Phase int
	Next          []flex.Step // what it is about to be sent; none where it is sent nothing
}

// MainFuse is what a site's import carries.
type MainFuse struct {
	Carries flex.Watts
	Phases  int // 3 if each of three carries a third; else only the sum has a limit
}

// cable is which parts of a device's power are on each phase, in thirds of what it draws. A device on one phase that
// nobody knows is on each of them.
func (f MainFuse) cable(d *Device) [3]flex.Watts {
	if f.Phases != 3 || d.Phases == 3 {
		return [3]flex.Watts{1, 1, 1}
	}

	if d.Phase < 1 || d.Phase > 3 {
		return [3]flex.Watts{3, 3, 3}
	}

	var thirds [3]flex.Watts
	thirds[d.Phase-1] = 3

	return thirds
}

// may is the most that a device draws at an instant if it follows any list that it has.
func (d *Device) may(at time.Time, next bool) flex.Watts {
	var most flex.Watts
	for _, list := range d.May {
		most = max(most, d.by(list, at))
	}

	if next && len(d.Next) > 0 {
		most = max(most, d.by(d.Next, at))
	}

	return most
}

// over reports whether what a device is about to be sent is over at an instant.
func (d *Device) over(at time.Time) bool {
	n := len(d.Next)

	return n > 0 && !at.Before(d.Next[n-1].To)
}

// by is what a device draws at an instant by a list of steps.
func (d *Device) by(list []flex.Step, at time.Time) flex.Watts {
	n := sort.Search(len(list), func(i int) bool {
		return at.Before(list[i].To)
	})
	if n == len(list) && n > 0 && d.Free {
		return d.Own
	}

	if n == len(list) || at.Before(list[n].From) {
		return 0
	}

	return min(list[n].Limit, d.Own)
}

// Fuse holds what is about to be sent to the devices of a site against its main fuse: at no instant does
// anything that is sent let a device draw what all others, whichever of their lists they follow, do not
// leave. What is drawn with no regard to what is sent may pass the fuse, and then nothing may be
// drawn beside it. Each phase of three is held to its own third. An error says which device, when and by how much.
func Fuse(devices []Device, fuse MainFuse) error {
	instants := instantsOf(devices)

	for i := range devices {
		for _, at := range within(instants, devices[i].Next) {
			own := devices[i].by(devices[i].Next, at)
			left := leftTo(devices, i, at, fuse, len(devices))

			if own > 0 && own > left {
				return fmt.Errorf(
					"device %d is let draw %d W at %v, where a main fuse of %d W on %d phases leaves it %d W",
					i,
					own,
					at,
					fuse.Carries,
					max(1, fuse.Phases),
					left,
				)
			}
		}
	}

	return nil
}

// ClipToFuse cuts what is about to be sent down to what Fuse allows, one device after the other. Power below the
// least that a device can use is none.
func ClipToFuse(devices []Device, fuse MainFuse) {
	instants := instantsOf(devices)

	for i := range devices {
		var cut []flex.Step
		ends := within(instants, devices[i].Next)

		for k, at := range ends {
			own := devices[i].by(devices[i].Next, at)
			left := min(own, leftTo(devices, i, at, fuse, i))

			if left < devices[i].Least && left < own {
				left = 0
			}

			to := devices[i].Next[len(devices[i].Next)-1].To

			if k+1 < len(ends) {
				to = ends[k+1]
			}

			cut = append(cut, flex.Step{
				Span:  flex.Span{From: at, To: to},
				Limit: max(0, left),
			})
		}

		devices[i].Next = cut
	}
}

// MostDrawn is the most that devices may draw together at any instant of each span, whichever of their
// lists they follow. The spans are in order.
func MostDrawn(devices []Device, spans []flex.Span) []flex.Watts {
	most := make([]flex.Watts, len(spans))
	for i, left := range LeastLeft(devices, spans, MainFuse{}, &Device{}) {
		most[i] = -left
	}

	return most
}

// LeastLeft is the least that devices leave of a main fuse to another one at any instant of each span; below zero where
// they may pass it. The spans are in order.
func LeastLeft(
	devices []Device,
	spans []flex.Span,
	fuse MainFuse,
	other *Device,
) []flex.Watts {
	instants := instantsOf(devices)
	least := make([]flex.Watts, len(spans))
	next := 0

	for i, span := range spans {
		least[i] = beside(devices, span.From, fuse, other)

		for next < len(instants) && instants[next].Before(span.From) {
			next++
		}

		for k := next; k < len(instants) && instants[k].Before(span.To); k++ {
			least[i] = min(least[i], beside(devices, instants[k], fuse, other))
		}
	}

	return least
}

// beside is what devices leave of a main fuse to another one at an instant.
func beside(
	devices []Device,
	at time.Time,
	fuse MainFuse,
	other *Device,
) flex.Watts {
	var used [3]flex.Watts
	for i := range devices {
		w := devices[i].may(at, true)
		for phase, part := range fuse.cable(&devices[i]) {
			used[phase] += part * w
		}
	}

	return fuse.leaves(other, used)
}

// leftTo is what all others leave to device i at an instant. Of those from place to on, what they are about
// to be sent is not counted, but what they draw past its end is.
func leftTo(
	devices []Device,
	i int,
	at time.Time,
	fuse MainFuse,
	to int,
) flex.Watts {
	var used [3]flex.Watts
	for k := range devices {
		if k == i {
			continue
		}

		w := devices[k].may(at, k < to || devices[k].over(at))
		for phase, part := range fuse.cable(&devices[k]) {
			used[phase] += part * w
		}
	}

	return fuse.leaves(&devices[i], used)
}

// leaves is what is left to a device where parts of some size are used of each phase; below zero where one is passed.
func (f MainFuse) leaves(d *Device, used [3]flex.Watts) flex.Watts {
	left := flex.Unbounded
	for phase, part := range f.cable(d) {
		if part > 0 {
			left = min(left, (f.Carries-used[phase])/part)
		}
	}

	return left
}

// instantsOf are the instants at which any list begins or ends a step, in order.
func instantsOf(devices []Device) []time.Time {
	var instants []time.Time
	add := func(list []flex.Step) {
		for _, s := range list {
			instants = append(instants, s.From, s.To)
		}
	}

	for i := range devices {
		add(devices[i].Next)

		for _, list := range devices[i].May {
			add(list)
		}
	}

	slices.SortFunc(instants, time.Time.Compare)

	return slices.CompactFunc(instants, time.Time.Equal)
}

// within are those of the instants in the time that a list speaks of, its end left out.
func within(instants []time.Time, list []flex.Step) []time.Time {
	var in []time.Time
	for _, at := range instants {
		before := len(list) == 0 || at.Before(list[0].From)

		if !before && at.Before(list[len(list)-1].To) {
			in = append(in, at)
		}
	}

	return in
}

// Meter is a site's meter in one half-hour, beside a battery.
type Meter struct {
	Import flex.Watts     // what the main fuse leaves the battery, whatever all others draw; Unbounded for no fuse
	Export flex.Watts     // what may be exported
	Out    flex.Watts     // what the main fuse leaves to what the battery gives, by its phases; Unbounded for no fuse
	Feeder *flex.Watts    // what the feeder's export limit leaves it; nil for no limit
	Net    flex.WattHours // what the home is expected to draw, less what its roof gives
	Car    bool           // a car charges
	Given  flex.Watts     // the most that cars give
	Others flex.Watts     // what other batteries discharge
	Power  flex.Watts     // the battery's own, each way
	Moves  flex.Watts     // what the plan has it do; negative: it gives
	Mode   battery.Mode
}

// AtMeter checks what a battery is to do in a half-hour against the limits of its site and its own: an
// error says which one it breaks. A mode other than charging or locked covers whatever is drawn, a car's
// need too.
func AtMeter(m Meter) error {
	gives := m.Mode != battery.ModeCharge && m.Mode != battery.ModeLock
	stores := m.Mode == battery.ModeCharge || m.Mode == battery.ModeSelfUse

	switch {
	case max(m.Moves, -m.Moves) > m.Power+1:
		return fmt.Errorf("%d W are moved by a battery of %d W", m.Moves, m.Power)

	case m.Car && gives:
		return fmt.Errorf("mode %v discharges into a car", m.Mode)

	case m.Given > 0 && stores:
		return fmt.Errorf(
			"mode %v stores the %d W that cars give",
			m.Mode,
			m.Given,
		)

	case m.Mode == battery.ModeCharge && m.Power > m.Import:
		return fmt.Errorf(
			"%d W of charging pass the %d W that the main fuse leaves beside all others",
			m.Power,
			m.Import,
		)

	case m.Mode == battery.ModeDischarge:
		return m.discharging()
	}

	return nil
}

// discharging checks what a battery gives at its full power.
func (m *Meter) discharging() error {
	switch {
	case m.Feeder != nil && m.Power > *m.Feeder:
		return fmt.Errorf(
			"%d W of discharging pass the %d W that the feeder's export limit leaves",
			m.Power,
			*m.Feeder,
		)

	case m.Power > m.Out:
		return fmt.Errorf(
			"%d W of discharging pass the %d W that the phases of the main fuse leave beside what else is given",
			m.Power,
			m.Out,
		)

	case m.Power+m.Given+m.Others-flex.Watts(2*m.Net) > m.Export:
		return fmt.Errorf(
			"%d W of discharging beside %d W of cars and %d W of others less %d Wh of use pass an export limit of %d W",
			m.Power,
			m.Given,
			m.Others,
			m.Net,
			m.Export,
		)
	}

	return nil
}
