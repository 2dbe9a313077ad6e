package reward_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// both reads a device's import and export register at both ends of the half-hour of a day, of
// a home that takes and gives so many kWh in it.
func (h *home) both(imports, exports flex.AssetID, back int, in, out float64) (import0, export0 []flex.Reading) {
	for end := range 2 {
		at := h.monday.Add(-back).Period(homeSlot + end).Start()
		of := func(a flex.AssetID, l flex.Label, begin, kwh float64) flex.Reading {
			v := begin + float64(homeDays-back)*10 + float64(end)*kwh
			return flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: l, Value: flex.Micro(v * 1e6)}
		}
		import0 = append(import0, of(imports, flex.BoundaryImportRegister, 1000, in))
		export0 = append(export0, of(exports, flex.BoundaryExportRegister, 70_000, out))
	}
	return import0, export0
}

// A home with an export register beside that of its import: what it takes less what it gives is
// compared, and a half-hour of which either is missing is not known. At 100 £/MWh a kWh is 10 p.
func TestExported(t *testing.T) {
	type kwh struct{ in, out float64 }
	const after, before = 1, 2
	cases := []struct {
		name    string
		usual   kwh
		event   kwh
		late    []int // of the export register: on the event's day, and on days before it
		partly  bool  // what was late on days before never comes
		at      string
		then    string
		another bool // another device reads the export register
	}{
		{"a battery gives what the home would have taken", kwh{1, 0}, kwh{0, 1.5}, nil, false, "25p", "25p", false},
		{"the roof gives more while the car waits", kwh{0, 1}, kwh{0, 2}, nil, false, "10p", "10p", false},
		{"the same by another device", kwh{0, 1}, kwh{0, 2}, nil, false, "10p", "10p", true},
		{"both ways within the half-hour", kwh{2, 0.5}, kwh{0.4, 0.6}, nil, false, "17p", "17p", false},
		{"it gives less: that costs, and not the user", kwh{0, 2}, kwh{0, 1}, nil, false, "market_receivable -10, platform_revenue 10", "market_receivable -10, platform_revenue 10", false},
		{"exports of the event come late", kwh{1, 0}, kwh{0, 1.5}, []int{after}, false, "0p", "25p", false},
		{"all exports come after settlement", kwh{2, 0.5}, kwh{0.4, 0.6}, []int{after, before}, false, "16p", "17p", false},
		{"those of the event alone do", kwh{2, 0.5}, kwh{0.4, 0.6}, []int{after, before}, true, "16p", "0p", false},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				second := h.asset
				if tt.another {
					second[0] ^= 0xff
					h.exec(t, `INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, 'b', 'battery', 5000, 0)`,
						second.Bytes(), h.org.Bytes(), h.site.Bytes())
				}

				var late []flex.Reading
				for back := range homeDays + 1 {
					use, when := tt.usual, before
					if back == 0 {
						use, when = tt.event, after
					}

					imports, exports := h.both(h.asset, second, back, use.in, use.out)
					h.put = append(h.put, imports...)
					switch {
					case !slices.Contains(tt.late, when):
						h.put = append(h.put, exports...)
					case when == after || !tt.partly:
						late = append(late, exports...)
					}
				}

				h.waits(homeSlot, homeSlot)
				h.flush()
				h.jobs()
				if got := h.earned(); got != tt.at {
					t.Errorf("at first %s, want %s", got, tt.at)
				}
				slices.Reverse(late)
				for _, r := range late { // one by one, the newest first, each settled by itself
					h.put = append(h.put, r)
					h.flush()
				}

				h.jobs()
				h.now = h.now.AddDate(0, 2, 0)
				h.jobs()
				if got := h.earned(); got != tt.then {
					t.Errorf("in the end %s, want %s", got, tt.then)
				}
			})
		}

		h.sound(t)
	})
}

// waits has the charger asked to wait in some settlement periods of the day, and turns the
// clock to a minute after them.
func (h *home) waits(first, last int) {
	h.t.Helper()
	span := flex.Span{From: h.monday.Period(first).Start(), To: h.monday.Period(last).End()}
	h.now = span.From.Add(-time.Minute)
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, span, 0)
	})
	h.now = span.To.Add(time.Minute)
}

// A reading of the event is missing, and comes when all is final; all readings come twice, the last
// first: on an ordinary day, and on those on which the clocks go forward and back. A home uses
// 1 + n/20 kWh in the n-th half-hour of a day by the clock, and half a kWh in each of the event's.
func TestPlayed_AcrossClocks(t *testing.T) {
	days := []struct {
		name        string
		day         flex.Day
		first, last int
		byClock     [2]int // the half-hours of an ordinary day at the same time by the clock
	}{
		{"an ordinary day", flex.Day{Year: 2025, Month: 2, Dom: 3}, 35, 36, [2]int{35, 36}},
		{"clocks go forward between them", flex.Day{Year: 2025, Month: 3, Dom: 30}, 2, 3, [2]int{2, 5}},
		{"in the evening of that day", flex.Day{Year: 2025, Month: 3, Dom: 30}, 33, 34, [2]int{35, 36}},
		{"clocks go back between them", flex.Day{Year: 2025, Month: 10, Dom: 26}, 4, 5, [2]int{4, 3}},
		{"in the evening of that day", flex.Day{Year: 2025, Month: 10, Dom: 26}, 37, 38, [2]int{35, 36}},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, d := range days {
			for _, way := range []string{"in order", "one is missing", "twice, the last first"} {
				t.Run(d.name+", "+way, func(t *testing.T) {
					h.t, h.monday = t, d.day
					h.another(d.name + way + d.day.String() + "-" + time.Duration(d.first).String())
					var rs []flex.Reading
					of := func(day flex.Day, n int, wh int) {
						rs = append(rs, flex.Reading{AssetID: h.asset, Span: day.Period(n).Span(), Label: flex.ProvisionalConsumption, Value: flex.Micro(wh) * 1000})
					}

					for back := range 35 {
						for n := 1; n <= 48; n++ {
							if d.day.Add(-back-1).Periods() == 48 {
								of(d.day.Add(-back-1), n, 1000+50*n)
							}
						}
					}

					of(d.day, d.first, 500)
					of(d.day, d.last, 500)
					missing := rs[len(rs)-1]
					switch way {
					case "one is missing":
						rs = rs[:len(rs)-1]
					case "twice, the last first":
						slices.Reverse(rs)
						rs = append(rs, slices.Clone(rs)...)
					}

					h.waits(d.first, d.last)
					for chunk := range slices.Chunk(rs, 1680) {
						h.put = chunk
						h.flush()
						h.jobs()
					}

					// 10 p per kWh: 1000 Wh and 50 n less 500, in both half-hours.
					both := (2*500 + 50*(d.byClock[0]+d.byClock[1]) + 50) / 100
					one := (500 + 50*d.byClock[0] + 50) / 100
					if way == "one is missing" {
						h.is(0)
						h.now = h.now.AddDate(0, 2, 10)
						h.jobs()
						h.is(one)
						h.put = []flex.Reading{missing}
						h.flush()
						h.jobs()
					}

					h.is(both)
				})
			}
		}

		h.sound(t)
	})
}

// is holds what the user has earned, in pence.
func (h *home) is(pence int) {
	h.t.Helper()
	if got := h.earned(); got != fmt.Sprintf("%dp", pence) {
		h.t.Errorf("earned %s, want %dp", got, pence)
	}
}
