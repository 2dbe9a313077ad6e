package sim_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
	"flexd/internal/tariff"
	"flexd/sim"
)

// sleeper is a car of the night: one real session, moved to the evening.
type sleeper struct {
	name            string
	arrive, readyBy time.Time
	need            flex.WattHours
	power           flex.Watts
	offPeak         string
	peak            bool
	pushes          []pushed // in the order in which they arrived
}

type pushed struct {
	at      time.Time
	profile ocpp.Profile
}

// String tells the car's night.
func (s *sleeper) String() string {
	text := fmt.Sprintf("came %s, ready by %s, %d Wh at %d W, off-peak %s, peak %t", s.arrive.Format(time.RFC3339), s.readyBy.Format(time.RFC3339),
		s.need, s.power, s.offPeak, s.peak)
	for _, p := range s.pushes {
		text += fmt.Sprintf("; %s: %s (ends %s)", p.at.Format("15:04"), sim.InWords(p.profile), p.profile.Span().To.Format(time.RFC3339))
	}
	return text
}

// inForce returns the profile that the charger follows at the instant, if flexd was killed
// for good at the end.
func (s *sleeper) inForce(at, end time.Time) (p ocpp.Profile) {
	for _, x := range s.pushes {
		if x.at.After(at) || x.at.After(end) {
			break
		}
		p = x.profile
	}
	return p
}

// delivered returns the energy that the car has by ready-by, and the most power it drew.
func (s *sleeper) delivered(end time.Time) (wh float64, most flex.Watts) {
	for at := s.arrive; at.Before(s.readyBy); at = at.Add(time.Minute) {
		power := min(s.power, s.inForce(at, end).LimitAt(at))
		most = max(most, power)
		wh += float64(power) / 60
	}
	return wh, most
}

// feasible returns the energy that full power in all permitted time gives by ready-by.
func (s *sleeper) feasible(t testing.TB) float64 {
	w, err := tariff.Parse(s.offPeak, "Europe/London", flex.DualRate)
	if err != nil {
		t.Fatal(err)
	}

	stay := flex.Span{From: s.arrive, To: s.readyBy}
	length := stay.Len()
	if !s.peak {
		length = 0
		for _, span := range w.Spans(stay) {
			length += span.Meet(stay).Len()
		}
	}
	return float64(s.power) * length.Hours()
}

// stranded lists what is wrong with the night if flexd is killed for good at the instant.
func stranded(t testing.TB, cars []*sleeper, end time.Time) (faults []string) {
	for _, s := range cars {
		if s.arrive.After(end) || len(s.pushes) == 0 || s.pushes[0].at.After(end) {
			continue // never heard of flexd: it charges by its own default
		}
		last := s.inForce(end, end)
		if last.Span().Len() == 0 || last.LimitAt(last.Span().To) != flex.NoLimit {
			faults = append(faults, fmt.Sprintf("%s is never free again", s.name))
		}

		got, most := s.delivered(end)
		if want := min(float64(s.need), s.feasible(t)); got < want-float64(s.power)/60 {
			faults = append(faults, fmt.Sprintf("%s has %.0f Wh by its ready-by of %.0f that were feasible: %s", s.name, got, want, s))
		}
		if most > s.power {
			faults = append(faults, fmt.Sprintf("%s drew %d W", s.name, most))
		}
	}
	return faults
}

// sleepers makes n cars of the night that begins at London's noon of the day.
func sleepers(t testing.TB, n int, day flex.Day) (cars []*sleeper) {
	real, err := sim.RealSessions()
	if err != nil {
		t.Fatal(err)
	}

	zone := flex.London
	for i := range n {
		r := real[(i*37)%len(real)]
		// Workplace hours become evening hours: a car that came at eight comes at seven.
		hour := (time.Duration(r.Arrival) + 11*time.Hour) % (24 * time.Hour)
		if hour < 14*time.Hour {
			hour += 4 * time.Hour
		}

		arrive := time.Date(day.Year, day.Month, day.Dom, 0, 0, 0, 0, zone).Add(max(hour, 14*time.Hour)).Truncate(5 * time.Minute)
		leave := arrive.Add(r.Stay).Truncate(time.Minute)
		wall := flex.WallTime(time.Duration(leave.In(zone).Hour())*time.Hour + time.Duration(leave.In(zone).Minute())*time.Minute)
		cars = append(cars, &sleeper{
			name: fmt.Sprintf("car%d", i), arrive: arrive.UTC(), readyBy: tariff.NextTimeOfDay(arrive, wall, zone), need: r.Wanted,
			power: []flex.Watts{3600, 7400, 11000}[i%3], offPeak: []string{"00:30-05:30", "00:00-07:00", "23:30-24:00,00:00-05:30"}[i/3%3], peak: i%5 == 0,
		})
	}

	slices.SortFunc(cars, func(a, b *sleeper) int { return a.arrive.Compare(b.arrive) })
	return cars
}

// sleep lives through the night with the real flexd and notes every push.
func sleep(t *testing.T, cars []*sleeper, day flex.Day) {
	noon := day.Start().Add(13 * time.Hour)
	lines := []sim.Line{{At: noon, Verb: "site", Args: []string{"night", ""}, Text: "site night"}}
	byName := map[string]*sleeper{}
	prices, err := sim.PricesAround(day, day.Add(1))
	if err != nil {
		t.Fatal(err)
	}

	playWith(t, lines, func(p *player) {
		p.step = 15 * time.Minute
		p.endpoint.Received = func(h sim.Received) {
			_, profile := h.Charger.Received()
			s := byName[h.Charger.ExternalID]
			s.pushes = append(s.pushes, pushed{p.now, profile})
		}
		for _, s := range cars {
			byName[s.name] = s
			p.addCharger(s.name, "night", fmt.Sprint(s.power.KW()))
		}

		forecast := slices.Clone(prices)
		for i := range forecast { // what the market thought at first: yesterday's shape
			forecast[i].Price = prices[(i+1)%len(prices)].Price
		}
		p.must(p.app.Publish(p.Context(), "night", time.Time{}, forecast))
		revised := false

		for _, s := range cars {
			if !revised && s.arrive.After(day.Start().Add(20*time.Hour)) {
				revised = true
				p.must(p.app.Publish(p.Context(), "night", time.Time{}, prices))
			}
			p.until(s.arrive)
			p.chargers[s.name].Plug(&sim.Car{Name: s.name, Rate: s.power, Room: float64(s.need) + 20_000}, p.now)
			wall := client.WallTime(time.Duration(s.readyBy.In(flex.London).Hour())*time.Hour + time.Duration(s.readyBy.In(flex.London).Minute())*time.Minute)
			p.must(p.client.PlugIn(p.Context(), p.assets[s.name], client.PlugInEventRequest{
				Intent: &client.Intent{EnergyRequiredKWh: s.need.KWh(), ReadyBy: client.At(p.now), ReadyByLocalTime: &wall,
					MayChargePeak: s.peak, ChargingMode: client.ChargingMinimise},
				Tariff: &client.Tariff{OffPeakTimes: s.offPeak, Timezone: "Europe/London"},
			}))
			p.runUntilIdle()
		}

		p.must(p.app.Publish(p.Context(), "night", time.Time{}, forecast)) // and once more, late
		p.until(day.Start().Add(36 * time.Hour))
	})
}

// nightCars is the number of cars of a night in make test. The race detector takes ten times
// as long for each, and sees no more in many than in few.
var nightCars = 60

// A night: whenever flexd is killed for good, chargers that go on with the last
// profile they have deliver what was feasible, and are free afterwards. In the long run a
// thousand cars; both clock changes.
func TestNight(t *testing.T) {
	n, every := nightCars, 4
	if os.Getenv("FLEXD_LONG") != "" {
		n, every = 1000, 1
	}

	for _, date := range []string{"2026-10-24", "2026-03-28"} {
		t.Run(date, func(t *testing.T) {
			t.Parallel()
			day, err := flex.ParseDay(date)
			if err != nil {
				t.Fatal(err)
			}

			cars := sleepers(t, n, day)
			synctest.Test(t, func(t *testing.T) { sleep(t, cars, day) })
			judged, pushes := 0, 0
			for _, s := range cars {
				pushes += len(s.pushes)
			}

			for quarter := 0; quarter < 96; quarter += every {
				end := day.Start().Add(14*time.Hour + time.Duration(quarter)*15*time.Minute)
				faults := stranded(t, cars, end)
				if judged++; len(faults) > 0 {
					t.Errorf("killed at %s: %d cars stranded, the first: %s", end.Format(time.RFC3339), len(faults), faults[0])
				}
			}
			t.Logf("%d cars, %d pushes, killed at %d instants", len(cars), pushes, judged)
			nightPlantedFaults(t, cars, day)
		})
	}
}

// nightPlantedFaults spoils the profiles as a bad planner would: the judge must see it.
func nightPlantedFaults(t *testing.T, cars []*sleeper, day flex.Day) {
	end := day.Start().Add(40 * time.Hour)
	for name, spoil := range map[string]func(*ocpp.Profile){
		"a zero without an end": func(p *ocpp.Profile) { *p = ocpp.Profile{} },
		"an hour less": func(p *ocpp.Profile) {
			for i, s := range p.Steps {
				if s.Limit > 0 && s.Len() > time.Hour {
					p.Steps = append(slices.Clone(p.Steps[:i]), append([]flex.Step{{Span: flex.Span{From: s.From, To: s.From.Add(time.Hour)}},
						{Span: flex.Span{From: s.From.Add(time.Hour), To: s.To}, Limit: s.Limit}}, p.Steps[i+1:]...)...)
					return
				}
			}
		},
	} {
		spoiled := make([]*sleeper, len(cars))

		for i, s := range cars {
			c := *s
			c.pushes = slices.Clone(s.pushes)
			for j := range c.pushes {
				spoil(&c.pushes[j].profile)
			}
			spoiled[i] = &c
		}
		if len(stranded(t, spoiled, end)) == 0 {
			t.Errorf("%s was planted, and nobody is stranded", name)
		}
	}
}
