package check

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
)

// Device is the possible power of one device of a site, or of the home itself.
type Device struct {
	Own   flex.Watts    // its highest power
	Least flex.Watts    // its lowest usable power, if Own is not less
	May   [][]flex.Step // all lists that it may follow until it accepts Next
	Free  bool          // after the end of a list it draws Own
	// how many phases it is on, 1 or 3 (another number is 1), and of one on three, which; 0 for not known
	Phases, Phase int
	Next          []flex.Step // the steps that it is about to be sent; empty if none
}

// MainFuse is what a site's import carries.
type MainFuse struct {
	Carries flex.Watts
	Phases  int // 3 if each of three carries a third; else only the sum has a limit
}

// cable has the parts of a device's power on each phase, in thirds of its power. A
// single-phase device on an unknown phase counts on each of them.
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

// may returns the highest power of a device at an instant, over all lists that it may follow.
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

// isOver reports whether the steps that a device is about to be sent have ended at an instant.
func (d *Device) isOver(at time.Time) bool {
	n := len(d.Next)

	return n > 0 && !at.Before(d.Next[n-1].To)
}

// by returns the power of a device at an instant if it follows a list of steps.
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

// Fuse checks what is about to be sent to the devices of a site against its main fuse. At no
// instant may a device be sent more power than all others leave, whichever of their lists they
// follow. Power that is drawn without regard to any schedule may exceed the fuse; then nothing
// else may be drawn. Each of three phases is checked by itself. An error says which device,
// when and by how much.
func Fuse(devices []Device, fuse MainFuse) error {
	instants := instantsOf(devices)

	for i := range devices {
		for _, at := range within(instants, devices[i].Next) {
			own := devices[i].by(devices[i].Next, at)
			remaining := remainingFor(devices, i, at, fuse, len(devices))

			if own > 0 && own > remaining {
				return fmt.Errorf(
					"device %d is let draw %d W at %v, where a main fuse of %d W on %d phases leaves it %d W",
					i,
					own,
					at,
					fuse.Carries,
					max(1, fuse.Phases),
					remaining,
				)
			}
		}
	}

	return nil
}

// ClipToFuse reduces what is about to be sent to what Fuse allows, one device after the other.
// Power below a device's minimum becomes zero.
func ClipToFuse(devices []Device, fuse MainFuse) {
	instants := instantsOf(devices)

	for i := range devices {
		var cut []flex.Step
		ends := within(instants, devices[i].Next)

		for k, at := range ends {
			own := devices[i].by(devices[i].Next, at)
			remaining := min(own, remainingFor(devices, i, at, fuse, i))

			if remaining < devices[i].Least && remaining < own {
				remaining = 0
			}

			to := devices[i].Next[len(devices[i].Next)-1].To

			if k+1 < len(ends) {
				to = ends[k+1]
			}

			cut = append(cut, flex.Step{
				Span:  flex.Span{From: at, To: to},
				Limit: max(0, remaining),
			})
		}

		devices[i].Next = cut
	}
}

// MostDrawn returns the highest total power of devices at any instant of each span, whichever
// of their lists they follow. The spans are in order.
func MostDrawn(devices []Device, spans []flex.Span) []flex.Watts {
	most := make([]flex.Watts, len(spans))
	for i, remaining := range LeastLeft(devices, spans, MainFuse{}, &Device{}) {
		most[i] = -remaining
	}

	return most
}

// LeastLeft returns the least power that devices leave of a main fuse to another device, at
// any instant of each span. It is below zero if they may exceed the fuse. The spans are in
// order.
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
		least[i] = otherDevices(devices, span.From, fuse, other)

		for next < len(instants) && instants[next].Before(span.From) {
			next++
		}

		for k := next; k < len(instants) && instants[k].Before(span.To); k++ {
			least[i] = min(least[i], otherDevices(devices, instants[k], fuse, other))
		}
	}

	return least
}

// otherDevices returns the power that devices leave of a main fuse to another one at an
// instant.
func otherDevices(
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

	return fuse.remainder(other, used)
}

// remainingFor returns the power that all others leave to device i at an instant. For devices
// from a given place on, the steps that they are about to be sent do not count, except for
// their power after the last step.
func remainingFor(
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

		w := devices[k].may(at, k < to || devices[k].isOver(at))
		for phase, part := range fuse.cable(&devices[k]) {
			used[phase] += part * w
		}
	}

	return fuse.remainder(&devices[i], used)
}

// remainder returns the power that is left to a device, given the used part of each phase. It
// is below zero if a phase is exceeded.
func (f MainFuse) remainder(d *Device, used [3]flex.Watts) flex.Watts {
	remaining := flex.Unbounded
	for phase, part := range f.cable(d) {
		if part > 0 {
			remaining = min(remaining, (f.Carries-used[phase])/part)
		}
	}

	return remaining
}

// instantsOf returns the instants at which any list begins or ends a step, in order.
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

// within returns the instants that a list covers, without its end.
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

// Meter describes a site's meter in one half-hour, apart from one battery.
type Meter struct {
	Import flex.Watts     // the power that the main fuse leaves the battery, whatever others draw; Unbounded without a fuse
	Export flex.Watts     // the export limit
	Out    flex.Watts     // the discharge that the main fuse allows, by its phases; Unbounded without a fuse
	Feeder *flex.Watts    // the power that the feeder's export limit leaves; nil without a limit
	Net    flex.WattHours // the home's expected consumption minus its solar generation
	Car    bool           // a car charges
	Given  flex.Watts     // the highest discharge of cars
	Others flex.Watts     // the discharge of other batteries
	Power  flex.Watts     // the battery's own, each way
	Moves  flex.Watts     // its planned power; negative to discharge
	Mode   battery.Mode
}

// AtMeter checks the mode of a battery in a half-hour against the limits of its site and its
// own. An error says which limit is exceeded. A mode other than charging or locked supplies
// whatever is drawn, including a car's charging.
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

// discharging checks the battery's discharge at full power.
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
