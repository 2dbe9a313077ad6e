package settle_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// Whatever a boundary's readings outside the spans of consent say, or whether they are there,
// changes nothing; and no half-hour is known that does not lie in a span. A meter that is made
// without the spans, as a planted fault, is found.
func TestNewBoundary_OutsideIsNoInput(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 160))
	differs, known := 0, 0
	for range 300 {
		first := flex.Day{Year: 2025, Month: 10, Dom: 20 + random.IntN(6)} // over the change of the clock
		readings := boundaryReadings(random, first, 5)
		spans := randomSpans(random, first.Start(), 5*24*time.Hour)
		other := append([]flex.Reading(nil), readings...)
		for i := range other {
			if !oracleConsented(spans, other[i]) {
				other[i].Value += flex.Micro(random.IntN(1_000_000))
			}
		}

		c := settle.Case{Day: first.Add(5), First: 1, Last: 1, Rule: settle.DefaultRule}
		for _, d := range []flex.Day{first, first.Add(2), first.Add(4)} {
			c.Day, c.First, c.Last = d, 1+random.IntN(40), 0
			c.Last = c.First + random.IntN(4)
			mine, theirs, planted := c, c, c
			got := settle.NewBoundary(readings, settle.Unlimited, spans).Give(&mine)
			if again := settle.NewBoundary(other, settle.Unlimited, spans).Give(&theirs); again != got || !reflect.DeepEqual(mine, theirs) {
				t.Fatalf("readings outside %v changed what %s gives", spans, d)
			}

			settle.NewMeter(settle.Boundary, readings, settle.Unlimited).Give(&mine)
			settle.NewMeter(settle.Boundary, other, settle.Unlimited).Give(&planted)
			if !reflect.DeepEqual(mine, planted) {
				differs++
			}

			for _, m := range theirs.Metered {
				for n := 1; n <= m.Day.Periods(); n++ {
					if _, is := m.At(n); is {
						known++
						if p := m.Day.Period(n).Span(); !oracleCovers(spans, p.From, p.To) {
							t.Fatalf("%s is known, consented are %v", p.From, spans)
						}
					}
				}
			}
		}
	}

	if differs < 100 || known < 1000 {
		t.Errorf("%d cases differ without the spans, %d half-hours known", differs, known)
	}
}

// oracleConsented counts minutes: a register is in at its minute, another reading in all of them.
func oracleConsented(spans []flex.Span, r flex.Reading) bool {
	if r.Label == flex.BoundaryImportRegister || r.Label == flex.BoundaryExportRegister {
		return oracleCovers(spans, r.To, r.To)
	}
	return oracleCovers(spans, r.From, r.To)
}

func oracleCovers(
	spans []flex.Span,
	from, to time.Time,
) bool {
	for _, s := range spans {
		inside := true
		for at := from; !at.After(to); at = at.Add(time.Minute) {
			inside = inside && at.Unix() >= s.From.Unix() && at.Unix() <= s.To.Unix()
		}
		if inside {
			return true
		}
	}
	return false
}

// randomSpans makes spans of whole minutes, apart from each other.
func randomSpans(
	random *rand.Rand,
	from time.Time,
	in time.Duration,
) (spans []flex.Span) {
	minutes := int(in / time.Minute)
	for at := random.IntN(minutes); at < minutes; {
		to := at + 1 + random.IntN(minutes/2)
		spans = append(spans, flex.Span{From: from.Add(time.Duration(at) * time.Minute), To: from.Add(time.Duration(to) * time.Minute)})
		at = to + 1 + random.IntN(40)
	}
	return spans
}

// boundaryReadings are of one device: registers, energies and powers of odd lengths, with holes.
func boundaryReadings(
	random *rand.Rand,
	first flex.Day,
	days int,
) (rs []flex.Reading) {
	mark := flex.Micro(1_000_000)
	from, to := first.Start(), first.Add(days).Start()
	for at := from; at.Before(to); at = at.Add(flex.HalfHour) {
		mark += flex.Micro(random.IntN(2_000_000))
		if random.IntN(20) > 0 {
			rs = append(rs, flex.Reading{AssetID: flex.AssetID{1}, Label: flex.BoundaryImportRegister, Span: flex.Span{From: at, To: at}, Value: mark})
		}
		if random.IntN(3) == 0 {
			rs = append(rs, flex.Reading{AssetID: flex.AssetID{2}, Label: flex.ProvisionalConsumption, Span: flex.Span{From: at, To: at.Add(flex.HalfHour)},
				Value: flex.Micro(random.IntN(2_000_000))})
		}
	}

	for at := from; at.Before(to); {
		next := at.Add(time.Duration(1+random.IntN(90)) * time.Minute)
		rs = append(rs, flex.Reading{AssetID: flex.AssetID{3}, Label: flex.BoundaryImportPower, Span: flex.Span{From: at, To: next}, Value: flex.Micro(random.IntN(4_000_000))})
		at = next
	}
	return rs
}
