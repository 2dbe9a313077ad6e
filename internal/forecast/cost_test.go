package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
)

// TestMove moves what the history says that can be moved (but for parts of seconds), and for what
// it costs.
func TestMove(t *testing.T) {
	day := flex.Day{Year: 2025, Month: 1, Dom: 15}
	midnight := day.Start()
	r := rand.New(rand.NewPCG(7, 1))
	var prices [PricedSlots]float64
	for t := range prices {
		prices[t] = float64(r.IntN(200)) - 20
	}

	for range 5000 {
		from := midnight.Add(time.Duration(r.IntN(30*60)-6*60) * time.Minute)
		s := atOnce(from, from.Add(time.Duration(30+r.IntN(14*60))*time.Minute), flex.WattHours(500+r.IntN(40_000)), 7200)
		length := 1 + r.IntN(8)
		window := r.IntN(Slots + 1 - length)
		h := NewFleetHistory(day, 1, length)
		h.Add(s)

		for _, up := range []bool{false, true} {
			kind := TurnDown
			if up {
				kind = TurnUp
			}

			want := h.Came(kind, day)[window] * float64(length) / 2
			if m := Move(s, midnight, window, length, up, &prices); math.Abs(m.KWh-want) > 0.01 {
				t.Fatalf("%v: moved %g kWh, want %g", kind, m.KWh, want)
			}
		}
	}

	// 7.2 kWh are drawn from 18:00 to 19:00 at £100 and may be drawn until 20:00, at £40 and then £60.
	prices[Slots+36], prices[Slots+37], prices[Slots+38], prices[Slots+39] = 100, 100, 40, 60
	six := midnight.Add(18 * time.Hour)
	s := atOnce(six, six.Add(2*time.Hour), 7200, 7200)
	if m := Move(s, midnight, 36, 2, false, &prices); math.Abs(m.Cost+0.36) > 1e-9 {
		t.Errorf("it costs %g", m.Cost)
	}

	if got := Marginal([]Moved{{2, 0.2}, {0, 1}, {2, 0.1}}, 0.5); got != 50 {
		t.Errorf("half of it costs £%g/MWh at the margin", got)
	}
	if got := Marginal([]Moved{{2, 0.2}, {2, 0.1}}, 0.6); got != 100 {
		t.Errorf("more than half costs £%g/MWh at the margin", got)
	}
}

// TestOffersAreKept: offers of P90 of an evening window are kept on 90 ± 1 % of simulated days.
func TestOffersAreKept(t *testing.T) {
	kept, days := 0, 0
	for seed := range uint64(30) {
		h, day := made(100+seed, 200, 100, 4)
		for _, d := range h.Ahead(TurnDown, day, dayClass).Judged.Past {
			days++
			if d.Came[36] >= d.KW[36][2] { // 18:00 to 20:00
				kept++
			}
		}
	}

	share := 100 * float64(kept) / float64(days)
	t.Logf("P90 from 18:00 to 20:00 is kept on %.2f %% of %d days", share, days)
	if share < 89 || share > 91 {
		t.Errorf("P90 is kept on %.2f %% of %d days", share, days)
	}
}
