package reward_test

import (
	"context"
	"fmt"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two registers that are read on one device for a while, and two devices that are read at one
// boundary: what is earned is never more than what the home left out, whatever is released.
// The home left out 0.7 kWh in each of two half-hours, which is 7 p each at 100 £/MWh.
func TestPlayed_TwoMetersAtOnce(t *testing.T) {
	const import0 = flex.BoundaryImportRegister
	old, next := counts(1000), counts(5)

	cases := []struct {
		name    string
		release string // what is held back is released: "all" as of a new meter, "fits" as readings, or not at all
		read    func(w *watch) (rs []reading.Input)
		want    string
	}{
		{"the new one a minute after the old one, held back", "", func(w *watch) []reading.Input { return w.both(import0, 1, 1, old, next) }, "14p"},

		{"the new one 12 minutes after the old one, released", "all", func(w *watch) []reading.Input { return w.both(import0, 1, 12, old, next) }, "0p"},
		{"at the same minutes", "", func(w *watch) []reading.Input { return w.both(import0, 1, 0, old, next) }, "14p"},
		{"at the same minutes, released", "all", func(w *watch) []reading.Input { return w.both(import0, 1, 0, old, next) }, "0p"},
		{"the old one by a little more, at the same minutes", "", func(w *watch) []reading.Input { return w.both(import0, 1, 0, old, counts(1000.4)) }, "14p"},
		{"by a little more, 12 minutes after, on the Monday", "", func(w *watch) []reading.Input { return w.both(import0, 0, 12, old, counts(1000.4)) }, "14p"},
		{"by a little less, 12 minutes after, on the Monday", "all", func(w *watch) []reading.Input { return w.both(import0, 0, 12, old, counts(999.6)) }, "14p"},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(fmt.Sprint("org ", i))
				w := &watch{home: h, intake: &reading.Service{DB: h.db}}
				w.event()
				w.take(tt.read(w), tt.release)

				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got := h.earned(); got != tt.want {
					t.Errorf("earned %q, want %s", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// both has the old meter read all the time, and the new one beside it so many minutes later
// from a day on.
func (w *watch) both(label flex.Label, since, minutes int, old, next meter) (rs []reading.Input) {
	for back := homeDays; back >= 0; back-- {
		for n := range 4 {
			rs = append(rs, w.mark(w.asset, label, back, n, 0, old(back, n, 0)))
			if back <= since {
				rs = append(rs, w.mark(w.asset, label, back, n, minutes, next(back, n, minutes)))
			}
		}
	}
	return rs
}

// take sends readings, and releases what is held back, the oldest first.
func (w *watch) take(rs []reading.Input, release string) {
	w.t.Helper()
	if _, err := w.intake.Store(w.t.Context(), w.org, rs); err != nil {
		w.t.Fatal(err)
	}

	for release != "" {
		page, n, err := w.intake.Held(w.t.Context(), reading.HeldQuery{Org: w.org, State: flex.HeldWaiting, Limit: 1000})
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return
		}

		oldest := page[0]
		for _, h := range page {
			if h.To.Before(oldest.To) {
				oldest = h
			}
		}
		if _, err := w.intake.Release(w.t.Context(), w.org, oldest.ID, release == "all"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Two devices measure a boundary, and one of them only a part of it. While the whole is read
// nothing else counts; where it is missing, the part says nothing of it: 4 kWh less 0.2 kWh is
// not what the home left out. One that measures the same may stand in.
func TestPlayed_TwoBoundaryMeters(t *testing.T) {
	cases := []struct {
		name  string
		gone  bool    // the first device's reading of the event is missing
		since int     // how many days before the event the second began
		part  float64 // what the second measures of the first's kWh
		left  float64 // of 4 kWh
		want  string
	}{
		{"both are read", false, 20, 0.05, 2.5, "15p"},
		{"the whole is missing in the event", true, 20, 0.05, 2.5, "1p"}, // 75 Wh, by the part's own days
		{"the whole is missing in the event, and the part is newer", true, 5, 0.05, 2.5, "0p"},
		{"the same, and nothing is left out", true, 5, 0.05, 4, "0p"},
		{"another that measures the same stands in", true, 5, 1.01, 2.5, "15p"},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(fmt.Sprint("org ", i))
				other := h.device(byte(i+2), flex.Battery, 5000)

				for back := range homeDays + 1 {
					kwh := 4.0
					if back == 0 {
						kwh = tt.left
					}
					if back > 0 || !tt.gone {
						h.energy(h.asset, flex.ProvisionalConsumption, back, kwh)
					}
					if back <= tt.since {
						h.energy(other, flex.ProvisionalConsumption, back, kwh*tt.part)
					}
				}

				h.pause(h.asset)
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got := h.earned(); got != tt.want {
					t.Errorf("earned %q, want %s", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// A car's own register is replaced while it charges 2 kWh in each of three half-hours, which
// are 4 p each. The half-hour of the change is not known, and nothing is counted across it.
func TestPlayed_ChargerMeterReplaced(t *testing.T) {
	const own = flex.ChargerRegister
	cases := []struct {
		name      string
		halfHours int // after 17:00 that the new meter is read first
		minutes   int
		next      float64
		late      bool // the session was settled by the old meter, and what it read of the new one was held back
	}{
		{"at a half-hour, by a lower count", 1, 0, 5, false},
		{"at a half-hour, by a higher count", 1, 0, 900_000, false},
		{"within one, by a lower count", 1, 12, 5, false},
		{"within one, by a higher count", 1, 12, 900_000, false},
		{"within one, by a count that is a little lower", 1, 12, 1119, false},
		{"settled before it is known", 1, 12, 5, true},
		{"settled before it is known, by a higher count", 1, 12, 900_000, true},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(fmt.Sprint("org ", i))
				h.set(t, "credit_pence_per_kwh=2")
				w := &watch{home: h, intake: &reading.Service{DB: h.db}}
				charged := func(begin float64) meter {
					return func(_, n, minutes int) float64 { return begin + 2*float64(n) + 2*float64(minutes)/30 }
				}
				old, next := charged(1118), charged(tt.next-2*float64(tt.halfHours)-2*float64(tt.minutes)/30)

				var rs []reading.Input
				for n := range 4 {
					m := old
					if n > tt.halfHours || n == tt.halfHours && tt.minutes == 0 {
						m = next
					}
					rs = append(rs, w.mark(h.asset, own, 0, n, 0, m(0, n, 0)))
					if n == tt.halfHours && tt.minutes > 0 {
						rs = append(rs, w.mark(h.asset, own, 0, n, 5, old(0, n, 5)), w.mark(h.asset, own, 0, n, tt.minutes, next(0, n, tt.minutes)))
					}
				}

				h.now = h.monday.Period(35).Start()
				h.exec(t, `UPDATE asset SET power_w = 7400`)
				h.opened()
				h.now = h.monday.Period(38).Start()
				h.unplugged()
				if tt.late {
					w.take(rs, "")
					h.now = h.monday.Period(40).Start()
					h.jobs()
				}

				h.now = h.monday.Period(41).Start()
				w.take(rs, "all")
				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got, want := h.owes(), "rewards_expense 8, rewards_payable -8"; got != want {
					t.Errorf("earned %q, want %s", got, want)
				}
			})
		}

		h.sound(t)
	})
}

// opened has the car plugged in now.
func (h *home) opened() {
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.OpenSession(ctx, &c, 0)
	})
}
