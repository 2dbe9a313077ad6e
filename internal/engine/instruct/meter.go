package instruct

import (
	"cmp"
	"math"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
)

const (
	// MarkGap is the longest time between two readings of a register for which the energy
	// between them counts as metered. It is spread evenly over that time.
	MarkGap = 10 * time.Minute
	// the least change of the register, in its own steps, that shows whether a car follows its
	// plan
	stepsToTell = 10
)

// Metered returns what was drawn in a span by the readings of a register, in order of time. It
// returns false if the readings do not cover the span, two of them are further apart than
// MarkGap, or the register fell between them.
func Metered(
	marks []flex.RegisterMark,
	span flex.Span,
) (charge.Joules, bool) {
	var sum float64
	until := span.From
	for i := 1; i < len(marks); i++ {
		a, b := marks[i-1], marks[i]
		if !a.At.Before(span.To) {
			break
		}

		between := flex.Span{From: a.At, To: b.At}
		overlap := between.Meet(span)
		if overlap.Empty() {
			continue
		}
		if between.Len() > MarkGap || overlap.From.After(until) {
			return 0, false
		}
		if b.Energy < a.Energy {
			return 0, false
		}

		sum += joules(b.Energy-a.Energy) * overlap.Len().Seconds() / between.Len().Seconds()
		until = overlap.To
	}

	return charge.Joules(sum + 0.5), !until.Before(span.To) && !span.Empty()
}

// MeteredPower returns what a battery drew in a span, below zero what it discharged, by its
// inverter's readings of power, in order of time. It returns false unless the readings cover
// the span without a gap or an overlap, and each lasts for at most MarkGap.
func MeteredPower(
	readings []flex.Reading,
	span flex.Span,
) (charge.Joules, bool) {
	var sum float64
	until := span.From

	for i := range readings {
		r := &readings[i]
		if !r.From.Before(span.To) {
			break
		}

		overlap := r.Meet(span)
		if overlap.Empty() {
			continue
		}

		if r.Len() > MarkGap || !overlap.From.Equal(until) {
			return 0, false
		}

		const watts = 1e-3 // of a millionth of a kW
		sum += watts * float64(r.Value) * overlap.Len().Seconds()
		until = overlap.To
	}

	return charge.Joules(math.Round(sum)), until.Equal(span.To) && !span.Empty()
}

// joules converts an energy from millionths of a kWh.
func joules(e flex.Micro) float64 { return float64(e) * 3.6 }

// Share returns how much of its change a car has brought since it was called, by the readings
// of a register, from the first to the last. It returns false if they do not show it: they
// cover less than a minute, the register fell, or the expected change is less than ten steps
// of the register.
func Share(
	marks []flex.RegisterMark,
	baseline, expected []flex.Step,
	power flex.Watts,
) (Percent, bool) {
	if len(marks) < 2 || !slices.IsSortedFunc(marks, byEnergy) {
		return 0, false
	}

	first, last := marks[0], marks[len(marks)-1]
	span := flex.Span{From: first.At, To: last.At}
	base := Drawn(baseline, power, span)
	change := base - Drawn(expected, power, span)
	least := max(change, -change)
	if span.Len() < time.Minute || float64(least) < stepsToTell*joules(registerStep(marks)) {
		return 0, false
	}

	energy := charge.Joules(joules(last.Energy - first.Energy))

	return Percent(100 * (base - energy) / change), true
}

// byEnergy orders readings by the register. If readings in order of time are not in this
// order, the meter was exchanged or restarted.
func byEnergy(a, b flex.RegisterMark) int { return cmp.Compare(a.Energy, b.Energy) }

// registerStep returns the step in which a register counts, judged by its readings. It is the
// largest power of ten, from 1 Wh to 1 kWh, of which all readings are multiples.
func registerStep(marks []flex.RegisterMark) flex.Micro {
	const wattHour, kilowattHour = flex.Micro(1000), flex.Micro(1_000_000)
	step := kilowattHour
	for _, m := range marks {
		for step > wattHour && m.Energy%step != 0 {
			step /= 10
		}
	}

	return step
}
