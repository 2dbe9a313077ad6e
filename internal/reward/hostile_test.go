package reward_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store/storetest"
)

// Tricks by which a household would have its 2 kWh of the half-hour from 22:00, which are 4 p,
// counted more than once: none is credited more.
func TestHostile_Sessions(t *testing.T) {
	from := clock("2026-01-14 22:00")
	at := func(seconds int) time.Time { return from.Add(time.Duration(seconds) * time.Second) }
	cases := []struct {
		name  string
		trick func(h *home, send func(label flex.Label, from, to time.Time, kwh float64))
		want  string
	}{
		{"thirty sessions within it", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			for n := range 30 {
				h.pluggedFor(at(60*n), at(60*n+50))
			}

			h.now = at(1800)
			send(flex.ChargerEnergy, at(0), at(1800), 2)
		}, "rewards_expense 4, rewards_payable -4"},
		{"sessions around its ends", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			for _, s := range [][2]int{{-600, -10}, {-5, 50}, {55, 1770}, {1780, 1850}, {1855, 2400}} {
				h.pluggedFor(at(s[0]), at(s[1]))
			}

			h.now = at(3600)
			send(flex.ChargerEnergy, at(-1800), at(0), 0)
			send(flex.ChargerEnergy, at(0), at(1800), 2)
			send(flex.ChargerEnergy, at(1800), at(3600), 0)
		}, "rewards_expense 4, rewards_payable -4"},
		{"by its energy and by a register", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			h.pluggedFor(at(0), at(1800))
			send(flex.ChargerEnergy, at(0), at(1800), 2)
			send(flex.ChargerRegister, at(0), at(0), 100)
			send(flex.ChargerRegister, at(1800), at(1800), 102)
		}, "rewards_expense 4, rewards_payable -4"},
		{"a register that goes back and forth", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			h.pluggedFor(at(0), at(1800))

			for n := range 6 {
				send(flex.ChargerRegister, at(360*n), at(360*n), 100+float64(n%2)*2)
			}
			send(flex.ChargerRegister, at(1800), at(1800), 102)
		}, ""}, // held back
		{"more than the charger can draw, less than nothing, and in the future", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			h.pluggedFor(at(0), at(1800))
			send(flex.ChargerEnergy, at(0), at(1800), 40)
			send(flex.ChargerEnergy, at(0), at(1800), -40)
			send(flex.ChargerRegister, at(0), at(0), -100)
			send(flex.ChargerRegister, at(3600), at(3600), 102)
		}, ""},
		{"corrected up, and down again", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			h.pluggedFor(at(0), at(1800))

			for _, kwh := range []float64{2, 3.7, 2, 3.7, 2} {
				send(flex.ChargerEnergy, at(0), at(1800), kwh)
				h.jobs()
				h.now = h.now.Add(time.Minute)
			}
		}, "rewards_expense 4, rewards_payable -4"},
		{"half-hours that overlap it", func(h *home, send func(flex.Label, time.Time, time.Time, float64)) {
			h.pluggedFor(at(0), at(1800))
			h.now = at(3600)
			send(flex.ChargerEnergy, at(0), at(1800), 2)
			send(flex.ChargerEnergy, at(600), at(2400), 2)
			send(flex.ChargerEnergy, at(-900), at(900), 2)
			send(flex.ProvisionalConsumption, at(0), at(1800), 2)
		}, "rewards_expense 4, rewards_payable -4"},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				h.set(t, "credit_pence_per_kwh=2")
				intake := &reading.Service{DB: h.db}
				tt.trick(h, func(label flex.Label, from, to time.Time, kwh float64) {
					t.Helper()
					g := reading.Input{AssetID: h.asset, Label: label, Span: flex.Span{From: from, To: to}, Value: kwh}
					if _, err := intake.Store(t.Context(), h.org, []reading.Input{g}); err != nil {
						t.Fatal(err)
					}
				})

				h.jobs()
				h.now = from.Add(48 * time.Hour)
				h.jobs()
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}

// plugIn has the car plugged in at an instant.
func (h *home) plugIn(at time.Time) {
	h.t.Helper()
	h.now = at
	h.opened()
}

// pluggedFor has the car plugged in at an instant and out at another.
func (h *home) pluggedFor(from, to time.Time) {
	h.t.Helper()
	h.plugIn(from)
	h.now = to
	h.unplugged()
}
