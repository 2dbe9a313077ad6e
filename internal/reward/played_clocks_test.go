package reward_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// changes are the days on which the clocks change, with the instant at which they do.
var changes = map[string]time.Time{"23 hours": clock("2025-03-30 01:00"), "25 hours": clock("2025-10-26 01:00")}

// A car that charges through a change of the clocks, from an hour before it to two hours
// after: each of its six half-hours counts once, whatever the clocks show. They have 1, 1.1, …
// 1.5 kWh, at 2 p.
func TestPlayed_SessionOverAClockChange(t *testing.T) {
	cases := []struct {
		name string
		send func(h *home, read func(n int, kwh float64))
		want int // kWh times 10
	}{
		{"all read", func(_ *home, read func(int, float64)) { inOrder(read, -1) }, 75},
		{"one after the change missing", func(_ *home, read func(int, float64)) { inOrder(read, 3) }, 62},
		{"all read twice", func(h *home, read func(int, float64)) { inOrder(read, -1); h.flush(); inOrder(read, -1) }, 75},
		{"one late", func(h *home, read func(int, float64)) {
			inOrder(read, 2)

			h.flush()
			h.now = h.now.Add(3 * time.Hour)
			h.jobs()
			read(2, 1.2)
		}, 75},
		{"one corrected", func(h *home, read func(int, float64)) {
			inOrder(read, -1)
			h.flush()
			h.jobs()
			h.now = h.now.Add(time.Hour)
			read(4, 0.4)
		}, 65},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for day, change := range changes {
			for i, tt := range cases[:map[string]int{"23 hours": 2, "25 hours": len(cases)}[day]] {
				if storetest.LeftOut(url, i) {
					continue
				}

				t.Run(fmt.Sprint(day, ", ", tt.name), func(t *testing.T) {
					h.t = t
					h.another(t.Name())
					h.set(t, "credit_pence_per_kwh=2")
					begin := flex.PeriodAt(change.Add(-time.Hour))
					h.now = begin.Start()
					h.opened()
					h.now = begin.Add(6).Start()
					h.unplugged()
					h.now = h.now.Add(time.Hour)

					tt.send(h, func(n int, kwh float64) {
						h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: begin.Add(n).Span(), Label: flex.ChargerEnergy, Value: flex.Micro(kwh * 1e6)})
					})
					h.flush()
					h.jobs()
					h.now = h.now.Add(40 * 24 * time.Hour)
					h.jobs()
					if got, want := h.owes(), fmt.Sprintf("rewards_expense %[1]d, rewards_payable -%[1]d", (tt.want*2+5)/10); got != want {
						t.Errorf("in the books %s, want %s", got, want)
					}
				})
			}
		}
		h.sound(t)
	})
}

func inOrder(read func(n int, kwh float64), without int) {
	for n := range 6 {
		if n != without {
			read(n, 1+float64(n)/10)
		}
	}
}

// usualAt is what the home uses in a half-hour by the clock on the wall: 4.1 kWh in the first
// of a day, 4.2 in the next.
func usualAt(slot int) float64 { return 4 + float64(slot)/10 }

// A charger is paused, or a battery dispatched, in half-hours of a night in which the clocks
// change, and the home uses 1 kWh less in each than it does at that time by the clock on the
// wall, which is 10 p. The night's other half-hours do not count.
func TestPlayed_EventOverAClockChange(t *testing.T) {
	cases := []struct {
		day         string
		first, last int // half-hours of the night, from 1
		left        int // the one that is not read; 0: none
		how         string
		want        string
	}{
		{"23 hours", 2, 3, 0, "pause", "20p"},
		{"23 hours", 2, 3, 0, "dispatch", "20p"},
		{"25 hours", 4, 5, 0, "pause", "20p"},
		{"25 hours", 4, 5, 0, "dispatch", "20p"},
		{"25 hours", 5, 5, 3, "pause", "10p"},
		{"25 hours", 3, 3, 5, "dispatch", "10p"},
		{"25 hours", 5, 5, 5, "pause", "0p"},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(fmt.Sprint(tt.day, ", a ", tt.how, " in ", tt.first, " to ", tt.last, " without ", tt.left), func(t *testing.T) {
				h.t = t
				h.monday = flex.DayAt(changes[tt.day])
				h.another(fmt.Sprint("org ", i))
				battery := h.device(byte(i+2), flex.Battery, 7400)
				h.night(tt.day == "25 hours", tt.first, tt.last, tt.left)

				span := flex.Span{From: h.monday.Period(tt.first).Start(), To: h.monday.Period(tt.last).End()}
				h.now = span.From.Add(-time.Hour)

				var d store.Dispatch
				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					if tt.how == "pause" {
						a, err := tx.Asset(ctx, h.asset)
						if err == nil {
							err = tx.SetPause(ctx, a, span, 0)
						}
						return err
					}
					var err error
					d, err = tx.AddDispatch(ctx, store.Dispatch{Market: "wholesale", Span: span,
						Assets: []store.DispatchedAsset{{ID: battery, Power: -3000, Without: make([]flex.Watts, tt.last-tt.first+1)}}})
					return err
				})

				if tt.how == "dispatch" {
					h.accepted(t, d.ID, time.Second)
				}
				h.now = span.To.Add(time.Hour)
				h.jobs()
				h.now = h.monday.Add(70).Start()
				h.jobs()
				if got := h.earned(); got != tt.want {
					t.Errorf("earned %s, want %s", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// night has the home's first seven half-hours read, of three weeks and of the night in which
// the clocks change. One is read twice, and one only after the others.
func (h *home) night(longer bool, first, last, left int) {
	for back := homeDays; back >= 0; back-- {
		if day := h.monday.Add(-back).Start().Weekday(); day != time.Saturday && day != time.Sunday {
			continue // a working day does not count
		}

		for n := 1; n <= 7; n++ {
			slot, less := n, 0.0
			switch {
			case back > 0:
			case longer && n > 4: // the hour from 01:00 comes again
				slot = n - 2
			case !longer && n > 2: // 02:00 follows on 01:00
				slot = n + 2
			}

			if back == 0 && n >= first && n <= last {
				less = 1
			}
			if back > 0 || n != left {
				p := h.monday.Add(-back).Period(n)
				h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: p.Span(), Label: flex.ProvisionalConsumption, Value: flex.Micro((usualAt(slot) - less) * 1e6)})
			}
		}
	}

	late, twice := h.put[len(h.put)-1], h.put[len(h.put)-2]
	h.put = h.put[:len(h.put)-1]
	h.flush()
	h.put = append(h.put, late, twice)
	h.flush()
}
