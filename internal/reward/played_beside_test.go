package reward_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store/storetest"
)

// What passes a charger is read of it and of the car at it: at 2 p a kWh it earns once,
// whatever is read, unplugged, corrected or settled first. Here each step is one of a
// half-hour's 2 kWh, or of an end.
func TestPlayed_CarAtItsCharger(t *testing.T) {
	from := clock("2026-01-14 22:00")
	at := func(minute int) time.Time { return from.Add(time.Duration(minute) * time.Minute) }
	cases := []struct {
		name string
		play func(h *home, car, charger flex.AssetID)
		want int // pence
	}{
		{"the charger's readings come first", func(h *home, car, charger flex.AssetID) {
			h.took(charger, at(0), 2, 3)
			h.ends(charger, at(60))

			h.took(car, at(0), 2, 3)
			h.ends(car, at(60))
		}, 10},
		{"the car's come first, and it is settled before", func(h *home, car, charger flex.AssetID) {
			h.ends(car, at(60))
			h.took(car, at(0), 2, 3)
			h.jobs()
			h.ends(charger, at(61))
			h.took(charger, at(0), 2, 3)
		}, 10},
		{"the car loses a tenth of what the charger gives", func(h *home, car, charger flex.AssetID) {
			h.ends(car, at(60))
			h.ends(charger, at(60))

			h.took(car, at(0), 1.8, 2.7)
			h.jobs()
			h.took(charger, at(0), 2, 3)
		}, 10},
		{"the charger knows one half-hour alone", func(h *home, car, charger flex.AssetID) {
			h.ends(car, at(60))
			h.ends(charger, at(60))
			h.took(car, at(0), 2, 3)
			h.took(charger, at(0), 2)
		}, 10},
		{"the charger's are corrected to nothing", func(h *home, car, charger flex.AssetID) {
			h.ends(car, at(60))

			h.ends(charger, at(60))
			h.took(car, at(0), 2, 3)
			h.took(charger, at(0), 2, 3)
			h.jobs()
			h.took(charger, at(0), 0, 0)
		}, 10},
		{"the charger is taken away before the car's come", func(h *home, car, charger flex.AssetID) {
			h.ends(charger, at(60))
			h.took(charger, at(0), 2, 3)
			h.asset = charger
			h.deleted()
			h.ends(car, at(60))

			h.took(car, at(0), 2, 3)
		}, 10},
		{"a second car is at no charger of the site's", func(h *home, car, charger flex.AssetID) {
			other := h.device(h.asset[15]^0x55, flex.ElectricVehicle, 7400)
			h.asset = other
			h.plugIn(at(0))
			h.took(other, at(0), 1, 1)
			h.ends(other, at(60))

			h.took(car, at(0), 2, 3)
			h.ends(car, at(60))
			h.jobs()
			h.took(charger, at(0), 2, 3)
			h.ends(charger, at(60))
		}, 14},
		{"two cars at the charger and beside it, of which one's second half-hour comes last", func(h *home, car, charger flex.AssetID) {
			cars := []flex.AssetID{car, h.device(250, flex.ElectricVehicle, 7400)}
			h.asset = cars[1]

			h.plugIn(at(0))
			slices.SortFunc(cars, func(a, b flex.AssetID) int { return bytes.Compare(a.Bytes(), b.Bytes()) })
			h.took(charger, at(0), 2.5, 2.5)
			h.ends(charger, at(60))
			h.took(cars[1], at(0), 2, 2)
			h.ends(cars[1], at(60))
			h.ends(cars[0], at(60))
			h.took(cars[0], at(0), 1.5)

			h.jobs()
			h.took(cars[0], at(30), 1.5)
		}, 14},
		{"the charger was not plugged in then", func(h *home, car, charger flex.AssetID) {
			h.ends(charger, at(10))
			h.took(charger, at(0), 2)
			h.took(car, at(0), 2, 3)
			h.ends(car, at(60))
			h.took(charger, at(30), 3)
		}, 10},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				car, charger := h.carAndCharger(t, tt.name, byte(100+i), from)
				tt.play(h, car, charger)
				h.jobs()
				h.now = from.Add(48 * time.Hour)
				h.jobs()
				want := fmt.Sprintf("rewards_expense %d, rewards_payable -%d", tt.want, tt.want)
				if got := h.owes(); got != want {
					t.Errorf("in the books %q, want %q", got, want)
				}
			})
		}

		// Any order of all steps comes to the same.
		for seed := range uint64(storetest.OneOf(url, 12, 4)) {
			name := fmt.Sprint("any order ", seed)
			car, charger := h.carAndCharger(t, name, byte(150+seed), from)
			steps := []func(){
				func() { h.took(car, at(0), 1.9) }, func() { h.took(car, at(30), 2.9) }, func() { h.took(car, at(60), 0.5) },
				func() { h.took(charger, at(0), 2) }, func() { h.took(charger, at(30), 3) }, func() { h.took(charger, at(60), 0.4) },
				func() { h.ends(car, at(90)) }, func() { h.ends(charger, at(90)) },
			}
			random := rand.New(rand.NewPCG(seed, 17))
			random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })

			for _, step := range steps {
				step()
				if random.IntN(2) == 0 {
					h.jobs()
				}
			}
			h.now = from.Add(48 * time.Hour)
			h.jobs()
			if got := h.owes(); got != "rewards_expense 11, rewards_payable -11" {
				t.Errorf("%s: in the books %q", name, got)
			}
		}

		h.sound(t)
	})
}

// Several cars and chargers of a site come to the same in any order of their readings, ends
// and settlements: to what its chargers gave, and what its cars took beyond, at 2 p a kWh.
func TestPlayed_SeveralBeside(t *testing.T) {
	from := clock("2026-01-14 22:00")
	at := func(minute int) time.Time { return from.Add(time.Duration(minute) * time.Minute) }
	type device struct {
		of  flex.AssetType // the first two are the car and the charger of the home
		kwh []float64      // of each half-hour that it is plugged in
	}
	cases := []struct {
		name    string
		devices []device
		want    int // pence
	}{
		{"two cars, one charger", []device{{flex.ElectricVehicle, []float64{1.5, 1.5}}, {flex.Charger, []float64{2.5, 2.5}},
			{flex.ElectricVehicle, []float64{2, 2}}}, 14},
		{"two cars, of which one leaves", []device{{flex.ElectricVehicle, []float64{2}}, {flex.Charger, []float64{3, 1}},
			{flex.ElectricVehicle, []float64{2, 2}}}, 12},
		{"two chargers, one car", []device{{flex.ElectricVehicle, []float64{2.5, 2.5}}, {flex.Charger, []float64{2, 2}},
			{flex.Charger, []float64{1, 0}}}, 11},
		{"two of each", []device{{flex.ElectricVehicle, []float64{3, 3}}, {flex.Charger, []float64{2, 2}},
			{flex.ElectricVehicle, []float64{1, 3}}, {flex.Charger, []float64{1, 1, 1}}}, 22},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		n := byte(100)

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			for seed := range uint64(storetest.OneOf(url, 6, 2)) {
				name := fmt.Sprint(tt.name, seed)
				n += 4
				car, charger := h.carAndCharger(t, name, n, from)
				assets := []flex.AssetID{car, charger}
				for i, d := range tt.devices[2:] {
					h.asset = h.device(n+1+byte(i), d.of, 7400)
					assets = append(assets, h.asset)
					h.plugIn(from)
				}

				var steps []func()
				for i, d := range tt.devices {
					for half, kwh := range d.kwh {
						steps = append(steps, func() { h.took(assets[i], at(30*half), kwh) })
					}
					steps = append(steps, func() { h.ends(assets[i], at(30*len(d.kwh))) })
				}

				random := rand.New(rand.NewPCG(seed, 18))
				random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
				for _, step := range steps {
					step()
					if random.IntN(2) == 0 {
						h.jobs()
					}
				}

				h.now = from.Add(48 * time.Hour)
				h.jobs()
				want := fmt.Sprintf("rewards_expense %d, rewards_payable -%d", tt.want, tt.want)
				if got := h.owes(); got != want {
					t.Errorf("%s: in the books %q, want %q", name, got, want)
				}
			}
		}

		h.sound(t)
	})
}

// What a car buys back for what it gave earns nothing, though it counts at the charger,
// whatever is settled first: 10 kWh replace 8.1 that were given. What the car took beyond the
// charger bears it first.
func TestPlayed_GivenAtItsCharger(t *testing.T) {
	from := clock("2026-01-14 22:00")
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for i, tt := range []struct {
			name         string
			chargerFirst bool
			car          []float64
			want         int
		}{
			{"the car's end comes first", false, []float64{3, 3, 3}, 0},
			{"the charger's end comes first", true, []float64{3, 3, 3}, 0},
			{"the car is not read", true, nil, 0},
			{"the car took more", false, []float64{3.6, 3.6, 3.6}, 2},
		} {
			car, charger := h.carAndCharger(t, tt.name, byte(100+i), from)

			h.took(charger, from, 3, 3, 3)
			end := from.Add(90 * time.Minute)
			if tt.chargerFirst {
				h.ends(charger, end)
				h.jobs()
			}

			h.ends(car, end)
			h.exec(t, `UPDATE reckoning SET given_wh = 8100 WHERE asset_id = $1`, car.Bytes())
			h.took(car, from, tt.car...)
			h.jobs()
			if !tt.chargerFirst {
				h.ends(charger, end)
			}

			h.now = from.Add(48 * time.Hour)
			h.jobs()
			want := ""
			if tt.want > 0 {
				want = fmt.Sprintf("rewards_expense %d, rewards_payable -%d", tt.want, tt.want)
			}
			if got := h.owes(); got != want {
				t.Errorf("%s: in the books %q, want %q", tt.name, got, want)
			}
		}
		h.sound(t)
	})
}

// A car that comes back within half an hour buys back at the charger's session of each stay
// what it gave in that stay: of 6 and 9 kWh, 5 each. Each is taken off once, whichever stay is
// settled first.
func TestPlayed_GivenAgainSoon(t *testing.T) {
	from := clock("2026-01-14 22:00")
	at := func(minute int) time.Time { return from.Add(time.Duration(minute) * time.Minute) }
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		car, charger := h.carAndCharger(t, "back soon", 100, from)

		h.ends(car, at(60))
		h.ends(charger, at(60))
		for _, h.asset = range []flex.AssetID{car, charger} {
			h.plugIn(at(80))
		}
		h.ends(car, at(150))
		h.ends(charger, at(150))

		h.exec(t, `UPDATE reckoning SET given_wh = 4050 WHERE asset_id = $1`, car.Bytes())
		h.took(charger, from, 3, 3, 3, 3, 3)
		h.now = from.Add(48 * time.Hour)
		h.jobs()
		if got := h.owes(); got != "rewards_expense 10, rewards_payable -10" {
			t.Errorf("in the books %q", got)
		}
		h.sound(t)
	})
}

// What is read of a car that gave has its charger settled again also where the car's own
// credit stays nothing: of the 10 kWh that it bought back it bears 1.8.
func TestPlayed_GivenAndReadLate(t *testing.T) {
	from := clock("2026-01-14 22:00")
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		car, charger := h.carAndCharger(t, "read late", 100, from)
		h.ends(car, from.Add(90*time.Minute))
		h.ends(charger, from.Add(90*time.Minute))
		h.exec(t, `UPDATE reckoning SET given_wh = 8100 WHERE asset_id = $1`, car.Bytes())
		h.took(charger, from, 3, 3, 3)

		h.now = from.Add(48 * time.Hour)
		h.jobs()
		if got := h.owes(); got != "" {
			t.Errorf("before the car is read: in the books %q", got)
		}

		h.took(car, from, 3.6, 3.6, 3.6)
		h.jobs()
		if got := h.owes(); got != "rewards_expense 2, rewards_payable -2" {
			t.Errorf("in the books %q", got)
		}
		h.sound(t)
	})
}

// carAndCharger goes on with a home of a car and a charger that are plugged in from an instant on.
func (h *home) carAndCharger(t *testing.T, name string, n byte, from time.Time) (car, charger flex.AssetID) {
	h.t = t
	h.another(name)
	h.set(t, "credit_pence_per_kwh=2")
	car = h.asset
	charger = h.device(n, flex.Charger, 7400)
	h.plugIn(from)
	h.asset = charger
	h.plugIn(from)
	return car, charger
}

// took sends what a device took in each half-hour from an instant on.
func (h *home) took(a flex.AssetID, from time.Time, kwh ...float64) {
	h.t.Helper()
	h.asset = a
	h.now = later(h.now, from.Add(3*time.Hour))
	for i, e := range kwh {
		span := flex.Span{From: from.Add(time.Duration(i) * flex.HalfHour), To: from.Add(time.Duration(i+1) * flex.HalfHour)}
		h.given(reading.Input{Label: flex.ChargerEnergy, Span: span, Value: e})
	}
}

// ends unplugs a device at an instant, which may be past.
func (h *home) ends(a flex.AssetID, at time.Time) {
	h.t.Helper()
	now := h.now
	h.asset, h.now = a, at
	h.unplugged()
	h.now = later(now, at)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
