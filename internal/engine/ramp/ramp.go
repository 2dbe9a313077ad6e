package ramp

import (
	"encoding/binary"
	"math"
	"time"

	"flexd/internal/flex"
)

// SpreadMost is the longest time over which starts are spread, since offsets are within a
// half-hour.
const SpreadMost = flex.HalfHour

// Deviations is the number of standard deviations between the mean power change of a minute
// and the ramp. One minute in a thousand million exceeds the ramp.
const Deviations = 6

// Fleet is the power that may start at once.
type Fleet struct {
	Cars  int64
	Power flex.Watts // their total
	// the sum of the squares of their powers, in watts squared
	Squares float64
}

// Add adds an asset.
func (f *Fleet) Add(power flex.Watts) {
	f.Cars++
	f.Power += power
	f.Squares += float64(power) * float64(power)
}

// With returns the sum of both fleets.
func (f Fleet) With(o Fleet) Fleet {
	f.Cars += o.Cars
	f.Power += o.Power
	f.Squares += o.Squares

	return f
}

// Spread returns the time, in whole minutes, over which the starts of a fleet are spread so
// that its power changes by at most the ramp, in watts a minute. It is zero without a ramp,
// and for a fleet whose total is within it. It also reports whether the ramp can be met: the
// least possible ramp is about a thirtieth of the fleet a minute.
func Spread(f Fleet, ramp flex.Watts) (spread time.Duration, fits bool) {
	if ramp <= 0 || f.Power <= ramp {
		return 0, true
	}

	// F x^2 + 6 sqrt(S) x = ramp for x = sqrt(60 s / D).
	noise := Deviations * math.Sqrt(f.Squares)
	x := (math.Sqrt(noise*noise+4*float64(f.Power)*float64(ramp)) - noise) / (2 * float64(f.Power))
	minutes := math.Ceil(1 / (x * x))
	if minutes > SpreadMost.Minutes() {
		return SpreadMost, false
	}

	return time.Duration(minutes) * time.Minute, true
}

// Offset returns how much later an asset begins and ends than the market and the tariff say.
// It is uniform over the whole seconds of a spread.
func Offset(id [16]byte, spread time.Duration) time.Duration {
	return time.Duration(placeOf(id)*spread.Seconds()) * time.Second
}

// placeOf returns an asset's position in [0, 1). Consecutive ids are far apart.
func placeOf(id [16]byte) float64 {
	h := mix(mix(binary.BigEndian.Uint64(id[:8])) ^
		binary.BigEndian.Uint64(id[8:]))
	return float64(h>>11) / (1 << 53)
}

// mix is the finalizer of SplitMix64, in which each bit of the input moves each of the output.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
