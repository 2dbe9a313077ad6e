package reward_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// watch is a home whose meter is read every half-hour from 17:00 to 18:30, on the Monday and
// three weeks before. The home uses 2 kWh in each half-hour, and 1.3 kWh in the two of the
// Monday's event, from 17:00 to 18:00.
type watch struct {
	*home
	intake *reading.Service
	late   []reading.Input // sent after all others
}

// mark is one reading of a register: so many half-hours after 17:00, and minutes.
func (w *watch) mark(a flex.AssetID, label flex.Label, back, halfHours, minutes int, kwh float64) reading.Input {
	at := w.monday.Add(-back).Period(35 + halfHours).Start().Add(time.Duration(minutes) * time.Minute)
	return reading.Input{AssetID: a, Label: label, Span: flex.Span{From: at, To: at}, Value: kwh}
}

// used is what the home had used since the first day by a half-hour of a day.
func used(back, halfHours int) float64 {
	sum := float64(homeDays-back) * 6
	for n := range halfHours {
		if back == 0 && n < 2 {
			sum += 1.3
		} else {
			sum += 2
		}
	}
	return sum
}

// send sends readings and has each reading released that is held back, the oldest first, as one of
// a new meter if it is the first of these.
func (w *watch) send(rs []reading.Input) {
	w.t.Helper()
	if _, err := w.intake.Store(w.t.Context(), w.org, rs); err != nil {
		w.t.Fatal(err)
	}

	for first := true; ; first = false {
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
		if _, err := w.intake.Release(w.t.Context(), w.org, oldest.ID, first); err != nil {
			w.t.Fatal(err)
		}
	}
}

// meter says what a meter counts by a half-hour of a day.
type meter func(back, halfHours, minutes int) float64

// counts is a meter that showed some kWh at the beginning.
func counts(begin float64) meter {
	return func(back, halfHours, minutes int) float64 {
		rate := used(back, halfHours+1) - used(back, halfHours)
		return begin + used(back, halfHours) + rate*float64(minutes)/30
	}
}

// A register that begins at another value never makes money, and takes none but that of the
// half-hour in which the meter was replaced. Two half-hours at 0.7 kWh and 100 £/MWh are 14 p.
func TestMeterReplaced(t *testing.T) {
	type place struct{ back, halfHours, minutes int }
	const import0 = flex.BoundaryImportRegister
	cases := []struct {
		name string
		at   place // the first reading of the new meter
		next float64
		late bool // what the old one read on its last day comes after the new one
		want string
	}{
		{"between the days of comparison and the event", place{0, 0, 0}, 5, false, "14p"},
		{"the same, and the old one's readings are late", place{0, 0, 0}, 5, true, "14p"},
		{"on a day of comparison", place{6, 1, 0}, 5, false, "14p"},
		{"on a day of comparison, within a half-hour", place{6, 0, 12}, 5, false, "14p"},
		{"by a higher count", place{6, 1, 0}, 900_000, false, "14p"},
		{"by a higher count, within a half-hour", place{6, 1, 12}, 900_000, false, "14p"},
		{"within the event's second half-hour", place{0, 1, 12}, 5, false, "7p"},
		{"the same, by a higher count", place{0, 1, 12}, 900_000, false, "7p"},
		{"the same, and the old one's readings are late", place{0, 1, 12}, 5, true, "7p"},
		{"on a day of comparison, by a count that is a little lower", place{6, 1, 0}, 1000 + used(6, 1) - 3, false, "14p"},
		{"within the event, by a count that is a little lower", place{0, 1, 12}, 1000 + used(0, 1) - 3, false, "7p"},
		{"at the event's end", place{0, 2, 0}, 5, false, "7p"},
		{"after the event", place{0, 3, 0}, 5, false, "14p"},
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
				old, next := counts(1000), counts(tt.next-used(tt.at.back, tt.at.halfHours))

				var rs []reading.Input
				for back := homeDays; back >= 0; back-- {
					for n := range 4 {
						m, begun := old, back < tt.at.back || back == tt.at.back && (n > tt.at.halfHours || n == tt.at.halfHours && tt.at.minutes == 0)
						if begun {
							m = next
						}

						r := w.mark(h.asset, import0, back, n, 0, m(back, n, 0))
						if tt.late && !begun && back == max(tt.at.back, 1) && n > 0 {
							w.late = append(w.late, r)
						} else {
							rs = append(rs, r)
						}
						if back == tt.at.back && n == tt.at.halfHours && tt.at.minutes > 0 {
							rs = append(rs, w.mark(h.asset, import0, back, n, 5, old(back, n, 5)), w.mark(h.asset, import0, back, n, tt.at.minutes, next(back, n, tt.at.minutes)))
						}
					}
				}

				w.event()
				w.send(rs)
				h.jobs()
				w.send(w.late)
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

// event has the charger asked to wait from 17:00 to 18:00 on the Monday, and turns the clock
// to 19:00.
func (w *watch) event() {
	w.t.Helper()
	w.now = w.monday.Period(34).Start()
	w.write(w.t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, w.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, flex.Span{From: w.monday.Period(35).Start(), To: w.monday.Period(36).End()}, 0)
	})
	w.now = w.monday.Period(39).Start()
}

// earned is what the market owes, which is all the user's.
func (h *home) earned() string {
	h.t.Helper()
	var m, u int
	text := h.owes()
	if text == "" {
		return "0p"
	}
	if _, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "market_receivable %d rewards_payable %d", &m, &u); err != nil || m+u != 0 {
		return text
	}
	return fmt.Sprintf("%dp", m)
}
