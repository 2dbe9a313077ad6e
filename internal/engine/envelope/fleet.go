package envelope

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"flexd/internal/flex"
)

// MaxSlots is the most slots that a fleet has.
const MaxSlots = 63

// Joules are watt-seconds.
type Joules int64

// WattHours returns the energy in whole watt-hours, rounded down.
func (j Joules) WattHours() flex.WattHours { return flex.WattHours(j / 3600) }

// Of returns watt-hours as joules.
func Of(e flex.WattHours) Joules { return Joules(e) * 3600 }

// Hours names the seconds of each slot that are permitted to a car. Cars with the same ones
// share a name.
type Hours int32

// Car is what one car may draw.
type Car struct {
	Hours       Hours
	Power       flex.Watts
	Least, Most Joules // by the end of its hours
}

// Fleet is the cars, and their hours.
type Fleet struct {
	slots  int
	names  map[string]Hours
	hours  [][]int64 // seconds, by name and slot
	cars   []Car
	counts []int // of cars that no fuse limits, by hours

	shared   []bool // by car, whether it is behind a fuse that limits it
	branches []*branch
}

// New returns a fleet without cars over so many slots, 1 to MaxSlots. It panics on others.
func New(slots int) *Fleet {
	if slots < 1 || slots > MaxSlots {
		panic(fmt.Sprintf("envelope: %d slots, not 1 to %d", slots, MaxSlots))
	}
	return &Fleet{slots: slots, names: map[string]Hours{}}
}

// Car returns a car, cars counted in the order in which they were added.
func (f *Fleet) Car(car int) Car { return f.cars[car] }

// Able is what a car could draw in a slot at full power.
func (f *Fleet) Able(car, slot int) Joules {
	c := &f.cars[car]
	return Joules(c.Power) * Joules(f.hours[c.Hours][slot])
}

// Len is how many cars the fleet has.
func (f *Fleet) Len() int { return len(f.cars) }

// Hours names permitted seconds, one number for each slot, 0 or more. The fleet keeps a copy.
func (f *Fleet) Hours(seconds []int64) Hours {
	key := make([]byte, 0, 2*f.slots)
	for _, s := range seconds[:f.slots] {
		key = binary.AppendVarint(key, s)
	}

	name, ok := f.names[string(key)]
	if ok {
		return name
	}

	name = Hours(len(f.hours))
	f.names[string(key)] = name
	f.hours = append(f.hours, append([]int64(nil), seconds[:f.slots]...))
	f.counts = append(f.counts, 0)

	return name
}

// Add adds a car and returns how much of its least it cannot draw even at full power: that
// part is no longer asked of it. What it may draw beyond its hours does not count either.
func (f *Fleet) Add(c Car) Joules {
	c.Power = max(0, c.Power)
	able := Joules(c.Power) * Joules(f.seconds(c.Hours, f.all()))
	c.Least = max(0, c.Least)
	short := max(0, c.Least-able)

	c.Least -= short
	c.Most = min(max(c.Least, c.Most), able)
	f.cars = append(f.cars, c)
	f.shared = append(f.shared, false)
	f.counts[c.Hours]++

	return short
}

// Set is a set of slots.
type Set uint64

// Window is the slots from one up to another, which is left out.
func Window(from, to int) Set { return Set(1)<<to - Set(1)<<from }

// Has reports whether a slot is in the set.
func (s Set) Has(slot int) bool { return s>>slot&1 == 1 }

// first is the first slot of a set that is not empty.
func (s Set) first() int { return bits.TrailingZeros64(uint64(s)) }

// all is every slot.
func (f *Fleet) all() Set { return Window(0, f.slots) }

// seconds returns how many permitted seconds a set has.
func (f *Fleet) seconds(h Hours, s Set) int64 {
	var sum int64
	for t, n := range f.hours[h] {
		if s.Has(t) {
			sum += n
		}
	}

	return sum
}
