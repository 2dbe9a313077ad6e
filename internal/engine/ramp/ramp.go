package ramp

import (
	"encoding/binary"
	"math"
	"time"

	"flexd/internal/flex"
)

// SpreadMost is the longest time that starts are spread over: offsets are within a half-hour.
const SpreadMost = flex.HalfHour

// Deviations is how many standard deviations above the mean the power of a minute is kept under the
// ramp: one minute in a thousand million is above.
const Deviations = 6

// Fleet is what may start at once.
type Fleet struct {
	Cars  int64
	Power flex.Watts // of all of them
	// the sum of the squares of their powers, in watts squared
	Squares float64
}

// Add counts an asset.
func (f *Fleet) Add(power flex.Watts) {
	f.Cars++
	f.Power += power
	f.Squares += float64(power) * float64(power)
}

// With is both fleets together.
func (f Fleet) With(o Fleet) Fleet {
	f.Cars += o.Cars
	f.Power += o.Power
	f.Squares += o.Squares

	return f
}

// Spread is the time, in whole minutes, that the starts of a fleet are spread over so that its power
// moves by at most a ramp, in watts a minute. It is zero for a fleet that all together is no more
// than the ramp, and for no ramp. It reports whether the ramp can be kept: not below about a thirtieth
// of the fleet a minute.
func Spread(f Fleet, ramp flex.Watts) (spread time.Duration, kept bool) {
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

// Offset is how much later an asset begins and ends than the market and the tariff say, within a
// spread: whole seconds, of which each is as likely.
func Offset(id [16]byte, spread time.Duration) time.Duration {
	return time.Duration(placeOf(id)*spread.Seconds()) * time.Second
}

// placeOf is where in [0, 1) an asset is. Ids that follow each other are far apart.
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
