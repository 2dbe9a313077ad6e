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
	// MarkGap is how far apart two readings of a register may be for what is between them to count as metered
	// each minute, evenly.
	MarkGap = 10 * time.Minute
	// least changes of the register, by its own steps, that tell whether a car follows
	stepsToTell = 10
)

// Metered is what was drawn in a span by the readings of a register, in order; false if two of them that it lies
// between are further apart than MarkGap, or the register fell between them, or there are none.
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

// MeteredPower is what a battery drew in a span, below zero what it gave, by its inverter's readings of its power, in order; false
// unless they cover the span without a gap or an overlap, each of at most MarkGap.
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

// joules is an energy in millionths of a kWh.
func joules(e flex.Micro) float64 { return float64(e) * 3.6 }

// Share is how much of its change a car brought by the readings of a register since it was called, in the time from
// the first of them to the last; false if they do not tell: they are of less than a minute, the register fell, or
// the change is less than ten of the steps in which the register counts.
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

// byEnergy orders readings by what the register showed: in the order of time it falls only if the meter was
// exchanged or restarted.
func byEnergy(a, b flex.RegisterMark) int { return cmp.Compare(a.Energy, b.Energy) }

// registerStep is the step in which a register counts, as its readings have it: the largest power of ten, of 1 Wh to 1 kWh,
// that all are multiples of.
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
