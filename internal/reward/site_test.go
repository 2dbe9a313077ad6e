package reward_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// home is a site whose devices a test describes: readings of one half-hour of the evening, of
// a Monday and of three weeks before it.
type home struct {
	*fixture
	t      *testing.T
	monday flex.Day
	put    []flex.Reading
}

// homeSlot is the settlement period that the homes are steered in.
const homeSlot = 36

// homeDays is how many days before the Monday a home is metered.
const homeDays = 20

func newHome(t *testing.T, url string, share, price float64) *home {
	t.Helper()
	h := &home{fixture: open(t, url), t: t, monday: flex.Day{Year: 2025, Month: 2, Dom: 3}}
	h.set(t, fmt.Sprintf("user_share=%g", share))
	h.now = h.monday.Start().Add(time.Hour)
	h.prices(t, h.monday.Span(), price)
	h.exec(t, `UPDATE asset SET power_w = 7400`)
	h.supply(t, 23_000)
	return h
}

// device adds an asset to the site.
func (h *home) device(n byte, typ flex.AssetType, power flex.Watts) flex.AssetID {
	id := flex.AssetID{n}
	h.exec(h.t, `INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, $4, $5, $6, 0)`,
		id.Bytes(), h.org.Bytes(), h.site.Bytes(), fmt.Sprint("device ", n), string(typ), int64(power))
	return id
}

// energy is one half-hour's, sent so many days before the Monday.
func (h *home) energy(a flex.AssetID, label flex.Label, back int, kwh float64) {
	h.put = append(h.put, flex.Reading{AssetID: a, Span: h.monday.Add(-back).Period(homeSlot).Span(), Label: label, Value: flex.Micro(kwh * 1e6)})
}

// register is read at the beginning (0) or the end (1) of the half-hour.
func (h *home) register(a flex.AssetID, back, end int, kwh float64) {
	at := h.monday.Add(-back).Period(homeSlot + end).Start()
	h.put = append(h.put, flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: flex.BoundaryImportRegister, Value: flex.Micro(kwh * 1e6)})
}

// power tells the half-hour in parts of so many minutes.
func (h *home) power(a flex.AssetID, back int, minutes int, kw func(minute int) float64) {
	from := h.monday.Add(-back).Period(homeSlot).Start()
	for m := 0; m < 30; m += minutes {
		span := flex.Span{From: from.Add(time.Duration(m) * time.Minute), To: from.Add(time.Duration(m+minutes) * time.Minute)}
		h.put = append(h.put, flex.Reading{AssetID: a, Span: span, Label: flex.BoundaryImportPower, Value: flex.Micro(kw(m) * 1e6)})
	}
}

func (h *home) flush() {
	h.t.Helper()
	rs := h.put
	h.put = nil
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
}

// pause has assets paused in the half-hour of the Monday, and settles.
func (h *home) pause(assets ...flex.AssetID) string {
	h.t.Helper()
	h.flush()

	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		for _, id := range assets {
			a, err := tx.Asset(ctx, id)
			if err != nil {
				return err
			}
			if err := tx.SetPause(ctx, a, h.monday.Period(homeSlot).Span(), 0); err != nil {
				return err
			}
		}
		return nil
	})

	h.now = h.monday.Period(homeSlot).End().Add(time.Minute)
	h.fixture.events(h.t)
	return h.said()
}

// said tells what the events moved and what was credited, in the order of amounts.
func (h *home) said() string {
	h.t.Helper()
	events, _, err := h.service.FlexEvents(h.t.Context(), h.org, h.site)
	if err != nil {
		h.t.Fatal(err)
	}

	var moved []string
	for _, e := range events {
		if e.Flex == nil {
			moved = append(moved, fmt.Sprintf("missing %d", e.Missing))
			continue
		}
		moved = append(moved, fmt.Sprintf("%d Wh", *e.Flex))
	}
	slices.Sort(moved)
	credits := strings.Split(strings.ReplaceAll(h.history(h.t), "flex event ", ""), ", ")
	slices.Sort(credits)
	return strings.Join(moved, " ") + ": " + strings.Join(credits, " ")
}

// Each case went wrong once, with the figure in its comment.
func TestSite(t *testing.T) {
	main := flex.AssetID{1}
	for _, tt := range []struct {
		name         string
		share, price float64
		home         func(h *home) string
		want         string
	}{
		{"two chargers behind one meter", 1, 181.99, func(h *home) string { // 135 p each
			other := h.device(2, flex.Charger, 7400)
			for back := range homeDays {
				h.energy(main, flex.ProvisionalConsumption, back+1, 7.8)
			}

			h.energy(main, flex.ProvisionalConsumption, 0, 0.4)
			return h.pause(main, other)
		}, "-3700 Wh -3700 Wh: 67p 68p"},
		{"two devices read the boundary, and one reading is missing", 0.5, 181.99, func(h *home) string { // £464.10
			other := h.device(2, flex.Battery, 5000)

			for back := range homeDays + 1 {
				used := 0.5
				if back == 0 {
					used = 0.2
				}
				h.register(main, back, 0, 1060-float64(back))
				h.register(main, back, 1, 1060-float64(back)+used)
				h.register(other, back, 0, 52060-float64(back))
				if back != 5 {
					h.register(other, back, 1, 52060-float64(back)+used)
				}
			}

			return h.pause(main)
		}, "-300 Wh: 3p"},
		{"a gateway is replaced", 1, 181.99, func(h *home) string { // £698.57
			old := h.device(2, flex.Battery, 5000)

			for back := range homeDays + 1 {
				used := 0.5
				if back == 0 {
					used = 0.28
				}
				id, offset := old, 1000.0
				if back < 5 {
					id, offset = main, 70_000
				}

				h.register(id, back, 0, offset-float64(back))
				if back == 5 {
					id, offset = main, 70_000
				}
				h.register(id, back, 1, offset-float64(back)+used)
			}

			h.flush()
			h.write(h.t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, old) })
			return h.pause(main)
		}, "-220 Wh: 4p"},
		{"one clamp told at two lengths", 1, 100, func(h *home) string { // not settled
			other := h.device(2, flex.Battery, 5000)

			for back := range homeDays + 1 {
				kw := 4.0
				if back == 0 {
					kw = 1
				}
				same := func(int) float64 { return kw }
				h.power(main, back, 30, same)
				h.power(other, back, 1, same)
			}

			return h.pause(main)
		}, "-1500 Wh: 15p"},
		{"a register read at one end only is no label of the event", 1, 100, func(h *home) string { // by the register's days
			for back := range homeDays + 1 {
				kw := 4.0
				if back == 0 {
					kw = 1
				}

				h.power(main, back, 30, func(int) float64 { return kw })
				h.register(main, back, 0, 1060-float64(back))
				if back > 0 {
					h.register(main, back, 1, 1060-float64(back)+1)
				}
			}

			return h.pause(main)
		}, "-1500 Wh: 15p"},
		{"more than the connection carries is not known", 1, 100, func(h *home) string { // money
			for back := range homeDays {
				h.energy(main, flex.ProvisionalConsumption, back+1, 2)
			}
			h.energy(main, flex.ProvisionalConsumption, 0, -11.501)
			return h.pause(main)
		}, "missing 1: "},
		{"as much as it carries is", 1, 100, func(h *home) string {
			for back := range homeDays {
				h.energy(main, flex.ProvisionalConsumption, back+1, 2)
			}

			h.energy(main, flex.ProvisionalConsumption, 0, -11.5)
			return h.pause(main)
		}, "-3700 Wh: 37p"}, // 13.5 kWh less, of which the charger can have moved 3.7
		{"more than the device draws is not known", 1, 100, func(h *home) string { // 510 kWh were taken
			for back := range homeDays {
				h.energy(main, flex.ChargerEnergy, back+1, 3.7)
			}

			h.energy(main, flex.ChargerEnergy, 0, 4.071) // a tenth more than 3.7 is still known
			return h.pause(main)
		}, "missing 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.EachOf(t, func(t *testing.T, url string) {
				if got := tt.home(newHome(t, url, tt.share, tt.price)); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// Two events on one meter are worth 43.47 p each: what the market owes is 87 p, as what the user
// and the platform have of it, and not 43 p twice with a penny of rounding.
func TestSite_GrossTogether(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		main := flex.AssetID{1}
		h := newHome(t, url, 0.5, 151.99)
		other := h.device(2, flex.Charger, 7400)
		for back := range homeDays {
			h.energy(main, flex.ProvisionalConsumption, back+1, 7.8)
		}
		h.energy(main, flex.ProvisionalConsumption, 0, 2.08)

		if got := h.pause(main, other); got != "-2860 Wh -2860 Wh: 21p 22p" {
			t.Errorf("credited: %s", got)
		}
		if got := h.books(t); got != "market_receivable 87, platform_revenue -44, rewards_payable -43" {
			t.Errorf("in the books: %s", got)
		}
		h.sound(t)
	})
}
