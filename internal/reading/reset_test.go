package reading_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestResets_NoDifferenceAcross reads a register over days with both clock changes, on which it
// was replaced several times: at the edge of half-hours and between them, by a lower count and
// by one that is a little higher, which no bound can tell from a charge. What the half-hours
// give is summed independently, from what was truly used; those with a reset are not known. With
// the resets forgotten some are counted, which proves that the test would see a difference.
func TestResets_NoDifferenceAcross(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h, a := open(t, url, 2), asset(1)
		for _, day := range []string{"2025-03-30", "2025-10-26", "2025-12-03"} {
			d, err := flex.ParseDay(day)
			if err != nil {
				t.Fatal(err)
			}

			for seed := range uint64(4) {
				random := rand.New(rand.NewPCG(seed, 7))
				k := store.Register{AssetID: a, Label: flex.ChargerRegister}
				truth, reset, rs, resets := replaced(random, d, k)
				neighbour := make([]flex.Reading, len(rs)) // the same count, by a meter that stayed
				for i, r := range rs {
					r.AssetID, r.Value = asset(2), flex.Micro(i)*1_000_000
					neighbour[i] = r
				}

				err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
					for _, at := range resets {
						if err := tx.AddReset(t.Context(), k, at); err != nil {
							return err
						}
					}
					return tx.PutReadings(t.Context(), append(neighbour, rs...))
				})
				if err != nil {
					t.Fatal(err)
				}

				for p, e := range h.halfHours(t, asset(2), d) {
					if e != 1000 {
						t.Errorf("%s: the neighbour's %s is %d Wh", day, p.Start(), e)
					}
				}

				got := h.halfHours(t, a, d)
				for p, want := range truth {
					e, known := got[p]
					if known == reset[p] || known && e != want {
						t.Errorf("%s, seed %d, %s: %d Wh, known %v; want %d, reset %v", day, seed, p.Start(), e, known, want, reset[p])
					}
				}

				// Forgotten, the resets are differences.
				h.exec(t, `DELETE FROM register_reset`)
				if n := len(h.halfHours(t, a, d)); n <= len(got) {
					t.Errorf("%s, seed %d: %d half-hours without the resets, %d with them", day, seed, n, len(got))
				}
				h.exec(t, `DELETE FROM reading`)
			}
		}
	})
}

// replaced makes a register of three days about one, what was truly used in each half-hour, and
// in which of them it was replaced.
func replaced(random *rand.Rand, d flex.Day, k store.Register) (truth map[flex.Period]flex.WattHours, reset map[flex.Period]bool, rs []flex.Reading, resets []time.Time) {
	truth, reset = map[flex.Period]flex.WattHours{}, map[flex.Period]bool{}
	mark := flex.Micro(50_000_000)

	for p := flex.PeriodAt(d.Add(-1).Start()); p.Start().Before(d.Add(2).Start()); p = p.Add(1) {
		rs = append(rs, flex.Reading{AssetID: k.AssetID, Label: k.Label, Span: flex.Span{From: p.Start(), To: p.Start()}, Value: mark})
		truth[p] = flex.WattHours(random.IntN(3000))
		mark += flex.Micro(truth[p]) * 1000

		if random.IntN(10) == 0 {
			reset[p] = true
			after := []time.Duration{time.Second, 7 * time.Minute, flex.HalfHour}[random.IntN(3)]
			resets = append(resets, p.Start().Add(after))
			mark += []flex.Micro{500_000, 1_000_000, -40_000_000}[random.IntN(3)]
			mark = max(mark, 0)
		}
	}

	end := flex.Span{From: d.Add(2).Start(), To: d.Add(2).Start()}
	return truth, reset, append(rs, flex.Reading{AssetID: k.AssetID, Label: k.Label, Span: end, Value: mark}), resets
}

// halfHours is what settlement takes of an asset's own meter on three days about one.
func (h *fixture) halfHours(t *testing.T, id flex.AssetID, d flex.Day) map[flex.Period]flex.WattHours {
	t.Helper()

	found := map[flex.Period]flex.WattHours{}
	err := h.db.Read(t.Context(), h.org, func(tx *store.Tx) error {
		rs, err := tx.Readings(t.Context(), store.ReadingQuery{
			Assets: []flex.AssetID{id}, Labels: settle.Labels(settle.Asset), Days: []flex.Day{d.Add(-1), d, d.Add(1)},
		})

		for _, m := range settle.HalfHours(settle.Asset, rs) {
			for n := 1; n <= m.Day.Periods(); n++ {
				if e, known := m.At(n); known {
					found[m.Day.Period(n)] = e
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}
