package reward_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// The devices of a site that has no boundary are asked to wait in one half-hour. What passes a
// charger is read of it and of the car at it: what they left out is credited once, whatever is
// read, taken away or settled first. At 100 £/MWh a kWh is 10 p; what is used more costs as
// much.
func TestPlayed_PausedAtItsCharger(t *testing.T) {
	cases := []struct {
		name string
		play func(b *beside)
		want int // pence
	}{
		{"the charger alone is read", func(b *beside) { b.usual(b.charger, 3.7); b.used(b.charger, 0) }, 37},
		{"the car alone is read", func(b *beside) { b.usual(b.car, 3.7); b.used(b.car, 0) }, 37},
		{"two cars are read, and no charger", func(b *beside) {
			for _, id := range []flex.AssetID{b.car, b.one(flex.ElectricVehicle)} {
				b.usual(id, 3.7)

				b.used(id, 0)
			}
		}, 74},
		{"both are read", func(b *beside) {
			b.usual(b.charger, 3.7)

			b.usual(b.car, 3.7)
			b.used(b.charger, 0)
			b.used(b.car, 0)
		}, 37},
		{"the car's come first, and it is settled before", func(b *beside) {
			b.usual(b.car, 3.7)

			b.used(b.car, 0)
			b.jobs()
			b.usual(b.charger, 3.7)
			b.used(b.charger, 0)
		}, 37},
		{"the charger's days before come last", func(b *beside) {
			b.used(b.charger, 0)
			b.usual(b.car, 3.7)
			b.used(b.car, 0)

			b.jobs()
			b.usual(b.charger, 3.7)
		}, 37},
		{"the charger's come after the month is final", func(b *beside) {
			b.usual(b.car, 3.7)
			b.used(b.car, 0)
			b.jobs()
			b.now = clock("2025-04-01 00:00")
			b.jobs()
			b.usual(b.charger, 3.7)

			b.used(b.charger, 0)
		}, 37},
		{"the charger's are corrected to as usual", func(b *beside) {
			b.usual(b.charger, 3.7)
			b.usual(b.car, 3.7)
			b.used(b.charger, 0)
			b.used(b.car, 0)
			b.jobs()
			b.used(b.charger, 3.7)
		}, 37},
		{"the car loses a tenth of what the charger gives", func(b *beside) {
			b.usual(b.charger, 3.5)

			b.usual(b.car, 3.15)
			b.used(b.charger, 0)
			b.used(b.car, 0)
		}, 35},
		{"the car left out more than the charger", func(b *beside) {
			b.usual(b.charger, 2)
			b.usual(b.car, 3.7)
			b.used(b.charger, 0)
			b.used(b.car, 0)
		}, 37},
		{"the charger is replaced after it, and the new one is read", func(b *beside) {
			b.usual(b.charger, 3.7)

			b.used(b.charger, 0)
			b.asset = b.charger
			b.deleted()
			b.usual(b.car, 3.7)
			b.used(b.car, 0)
			next := b.device(b.next, flex.Charger, 7400)
			b.energy(next, flex.ChargerEnergy, 0, 0)
			b.flush()
		}, 37},
		{"the charger is new, and has no days to compare with", func(b *beside) {
			b.used(b.charger, 0)

			b.usual(b.car, 3.7)
			b.used(b.car, 0)
		}, 37},
		{"two chargers and their two cars", func(b *beside) {
			other := b.one(flex.Charger)
			second := b.one(flex.ElectricVehicle)
			for _, id := range []flex.AssetID{b.charger, b.car} {
				b.usual(id, 3.7)
				b.used(id, 0)
			}

			for _, id := range []flex.AssetID{second, other} {
				b.usual(id, 2)
				b.used(id, 0.5)
			}
		}, 52},
		{"a second car is at no charger of the site's", func(b *beside) {
			second := b.one(flex.ElectricVehicle)

			for _, id := range []flex.AssetID{b.car, second, b.charger} {
				b.usual(id, 2)
				b.used(id, 0)
			}
		}, 40},
		{"a car elsewhere leaves out what the charger does for another", func(b *beside) { // less than it should be
			b.usual(b.charger, 3.7)
			b.usual(b.car, 2)
			b.used(b.charger, 0)
			b.used(b.car, 0)
		}, 37},
		{"a car elsewhere takes more", func(b *beside) {
			b.usual(b.charger, 3.7)

			b.usual(b.car, 1)
			b.used(b.charger, 0)

			b.used(b.car, 3)
		}, 17},
		{"the charger takes more, with the car", func(b *beside) {
			for _, id := range []flex.AssetID{b.car, b.charger} {
				b.usual(id, 1)
				b.used(id, 3)
			}
		}, -20},
		{"the second of two half-hours is not read of the charger", func(b *beside) {
			for _, id := range []flex.AssetID{b.charger, b.car} {
				b.asksFor(id, 2)
				b.usual(id, 3.7)
				b.used(id, 0)

				for back := range homeDays {
					b.energyAfter(id, back+1, 2)
				}
			}

			b.energyAfter(b.car, 0, 0)
			b.flush()
		}, 57},
		{"the charger was taken away before the half-hour was over", func(b *beside) {
			b.usual(b.charger, 3.7)
			b.usual(b.car, 3.7)
			b.used(b.car, 0)

			now := b.now
			b.asset, b.now = b.charger, b.monday.Period(homeSlot).Start().Add(20*time.Minute)
			b.deleted()
			b.now = now
		}, 37},
		{"both meters are qualified, and a battery is at the boundary", func(b *beside) {
			b.exec(b.t, `UPDATE asset SET model = 'm', installed_on = '2025-01-01' WHERE site_id = $1`, b.site.Bytes())
			battery := b.one(flex.Battery)

			for back := range homeDays + 1 {
				kwh := 6.0
				if back == 0 {
					kwh = 1.3 // 3.7 of the car's and 1 of the battery's less
				}
				b.energy(battery, flex.ProvisionalConsumption, back, kwh)
			}

			for _, id := range []flex.AssetID{b.car, b.charger} {
				b.usual(id, 3.7)
				b.used(id, 0)
			}
		}, 47},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.exec(t, `INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				b := h.askedBoth(tt.name, byte(100+4*i))
				tt.play(b)
				b.settled(tt.want)
			})
		}

		// Any order of all steps comes to the same: 37 p of the charger's and 2 p of the car's
		// beyondChargers.
		for seed := range uint64(storetest.OneOf(url, 8, 2)) {
			h.t = t
			b := h.askedBoth(fmt.Sprint("any order ", seed), byte(180+4*seed))
			steps := []func(){
				func() { b.usual(b.charger, 3.7) }, func() { b.usual(b.car, 4) },
				func() { b.used(b.charger, 0) }, func() { b.used(b.car, 0.1) },
				func() { b.used(b.charger, 1) }, func() { b.used(b.charger, 0) },
			}

			random := rand.New(rand.NewPCG(seed, 29))
			random.Shuffle(4, func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			for _, step := range steps {
				step()
				if random.IntN(2) == 0 {
					b.jobs()
				}
			}
			b.settled(39)
		}
		h.sound(t)
	})
}

// What a car's event has of its deviation is said on its line.
func TestStatement_CarAtItsCharger(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		b := h.askedBoth("said", 100)
		b.usual(b.charger, 3)
		b.usual(b.car, 3.5)
		b.used(b.charger, 0)
		b.used(b.car, 0)
		b.settled(35)

		s, err := h.service.Statement(t.Context(), h.org, h.site, h.monday, h.monday)
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		for i := range s.Lines {
			notes = append(notes, fmt.Sprintf("%d p: %s", s.Lines[i].Amount, s.Lines[i].Note))
		}

		slices.Sort(notes)
		const want = "30 p: \n5 p: 3 kWh less than usual were read at your charger too, and count there."
		if got := strings.Join(notes, "\n"); got != want {
			t.Errorf("the lines say\n%s\nwant\n%s", got, want)
		}
	})
}

// beside is a home with a car and a charger, and maybe more, that were asked to wait in a
// half-hour that is over.
type beside struct {
	*home
	car, charger flex.AssetID
	next         byte
}

// askedBoth goes on with a home of a car and a charger, whose further devices have ids of so
// much and more.
func (h *home) askedBoth(name string, n byte) *beside {
	h.t.Helper()
	h.another(name)
	h.set(h.t, "claw_back=true")
	b := &beside{home: h, car: h.asset, next: n}
	b.charger = b.one(flex.Charger)
	b.asksFor(b.car, 1)

	return b
}

// one adds a device that is asked to wait as well.
func (b *beside) one(typ flex.AssetType) flex.AssetID {
	b.t.Helper()
	id := b.device(b.next, typ, 7400)
	b.next++
	b.asksFor(id, 1)

	return id
}

// asksFor asks a device to wait for so many half-hours, in place of what it was asked before.
func (b *beside) asksFor(id flex.AssetID, halfHours int) {
	b.t.Helper()
	now, home := b.now, b.asset
	from := b.monday.Period(homeSlot).Start()
	to := from.Add(time.Duration(halfHours) * flex.HalfHour)
	b.asset, b.now = id, from.Add(-time.Minute)
	b.asksToWait(from, to)
	b.asset, b.now = home, later(now, to.Add(time.Minute))
}

// energyAfter is what a device took in the half-hour after, so many days before.
func (b *beside) energyAfter(id flex.AssetID, back int, kwh float64) {
	next := b.monday.Add(-back).Period(homeSlot + 1).Span()
	b.put = append(b.put, flex.Reading{AssetID: id, Span: next, Label: flex.ChargerEnergy, Value: flex.Micro(kwh * 1e6)})
}

// usual is what a device takes on each of the days before.
func (b *beside) usual(id flex.AssetID, kwh float64) {
	b.t.Helper()
	for back := range homeDays {
		b.energy(id, flex.ChargerEnergy, back+1, kwh)
	}
	b.flush()
}

// used is what a device took in the half-hour.
func (b *beside) used(id flex.AssetID, kwh float64) {
	b.t.Helper()
	b.energy(id, flex.ChargerEnergy, 0, kwh)
	b.flush()
}

// settled settles at once and after the month, and compares what was credited.
func (b *beside) settled(pence int) {
	b.t.Helper()
	b.jobs()
	b.now = later(b.now, clock("2025-04-01 00:00"))
	b.jobs()
	want := fmt.Sprintf("market_receivable %d, rewards_payable %d", pence, -pence)
	if got := b.owes(); got != want {
		b.t.Errorf("in the books %q, want %q", got, want)
	}
}
