package reward_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// twoChargers is a home with two chargers behind one meter, both of which charge from 17:00 to
// 20:00 unless they are asked to wait.
type twoChargers struct {
	*home
	control *control.Service
	cars    []flex.AssetID
}

// at turns the clock to a time of the Monday.
func (s *twoChargers) at(hour, minute int) {
	s.now = s.monday.Start().Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

// accept has the client take every schedule over that it has not.
func (s *twoChargers) accept() {
	s.exec(s.t, `UPDATE outbox SET accepted = generation, turn_at = NULL`)
	s.exec(s.t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT org_id, event_id, 'schedule', 'schedule', asset_id, generation, made_at, 'accepted', 1, made_at, 0, 200, '', '' FROM schedule s
		WHERE NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = s.event_id)`)
}

func (s *twoChargers) event(ev control.Event) {
	s.t.Helper()
	for _, car := range s.cars {
		if err := s.control.Event(s.t.Context(), s.org, car, ev); err != nil {
			s.t.Fatal(err)
		}
	}
	s.accept()
}

// used is what the home and its cars used in half-hours from 17:00 on, in kWh, so many days before.
func (s *twoChargers) used(back int, kwh ...float64) {
	var rs []flex.Reading
	for i, e := range kwh {
		rs = append(rs, flex.Reading{AssetID: s.asset, Span: s.monday.Add(-back).Period(35 + i).Span(), Label: flex.ProvisionalConsumption, Value: flex.Micro(e * 1e6)})
	}
	s.write(s.t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
}

func newTwoChargers(t *testing.T, url string) *twoChargers {
	t.Helper()
	s := &twoChargers{home: newHome(t, url, 1, 60)}
	s.control = &control.Service{DB: s.db}
	s.supply(t, 69_000) // so that both charge beside each other
	s.exec(t, `UPDATE asset SET type = 'charger'`)
	s.exec(t, `INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, $3, 0)`,
		s.org.Bytes(), s.site.Bytes(), string(flex.FullScheduleMethod))
	s.cars = []flex.AssetID{s.asset, s.device(2, flex.Charger, 7400)}
	for back := 1; back <= homeDays; back++ {
		s.used(back, 7.8, 7.8, 7.8, 7.8, 7.8, 7.8, 0.4, 0.4)
	}

	s.at(16, 58)
	s.prices(t, flex.Span{From: s.monday.Period(41).Start(), To: s.monday.Period(42).End()}, 100)
	s.prices(t, flex.Span{From: s.monday.Period(43).Start(), To: s.monday.Add(1).Period(20).End()}, 500)
	s.at(17, 0)
	wall := flex.WallTime(7 * time.Hour)
	s.event(control.Event{Kind: control.PlugIn,
		Intent: &flex.Intent{Need: 22_200, ReadyByLocal: &wall, ReadyBy: s.monday.Add(1).Start().Add(7 * time.Hour), Mode: flex.Minimise},
		Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	})

	return s
}

// waits asks both cars to wait from 17:30 to 19:00, and stops that at 18:10; they leave at 21:30.
func (s *twoChargers) waits(price float64) {
	s.t.Helper()
	s.at(17, 15)
	from := s.monday.Start().Add(17*time.Hour + 30*time.Minute)
	p, err := s.control.SendInstruction(s.t.Context(), s.org, flex.Instruction{
		Span: flex.Span{From: from, To: from.Add(90 * time.Minute)}, Change: -14_800, Service: "dno", Price: flex.FromGBPPerMWh(price), Reason: "evening peak", Who: "Ann",
	})
	if err != nil || len(p.Assets) != 2 {
		s.t.Fatalf("called %d of %d, slots %v: %v", len(p.Assets), p.Callable, p.Slots, err)
	}

	s.accept()
	s.at(18, 10)
	if _, err := s.control.StopInstruction(s.t.Context(), s.org, p.ID, "Bob"); err != nil {
		s.t.Fatal(err)
	}

	s.accept()
	s.at(21, 30)
	s.event(control.Event{Kind: control.PlugOut})
	s.at(21, 32)
}

// TestInstruction_Settled follows an instruction from the send to the balance: two cars at one
// site, stopped early, a reading that comes late, and one that is corrected. With a price of
// 300 it earns 7.4 kWh at 300 and 2.467 kWh at (10 x 300 + 20 x 60) / 30 = 140; what comes
// back at 20:00 costs 9.867 kWh at the market's 100. Without a price all of the evening is
// worth nothing.
func TestInstruction_Settled(t *testing.T) {
	for price, want := range map[float64]struct {
		sources   int // that events' prices are from
		estimated flex.MicroPounds
		balances  [2]flex.Pence
	}{
		300: {2, 2*1_282_760 - 2*493_300, [2]flex.Pence{158, 144}},
		0:   {1, 2*296_040 - 2*493_300, [2]flex.Pence{0, 0}},
	} {
		t.Run(fmt.Sprint(price), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				s := newTwoChargers(t, url)

				s.waits(price)
				s.used(0, 7.8, 0.4)
				s.events(t)
				if estimated, _ := s.sums(); estimated != want.estimated {
					t.Errorf("estimated %d, want %d", estimated, want.estimated)
				}

				s.used(0, 7.8, 0.4, 5.333, 7.8, 7.8, 7.8, 7.8, 2.867)
				s.settled(-9867+9867, want.balances[0], want.sources)
				s.used(0, 7.8, 0.4, 6.333)
				s.settled(-8867+9867, want.balances[1], want.sources)
			})
		})
	}
}

// sums adds up what the site's events are estimated at and what they moved.
func (s *twoChargers) sums() (estimated flex.MicroPounds, moved flex.WattHours) {
	s.t.Helper()
	events, _, err := s.service.FlexEvents(s.t.Context(), s.org, s.site)
	if err != nil || len(events) != 4 { // two of the wait, two of the return
		s.t.Fatalf("%d events: %v", len(events), err)
	}

	for _, e := range events {
		estimated += e.Estimated
		if e.Flex != nil {
			moved += *e.Flex
		}
	}

	return estimated, moved
}

// settled settles, and again to no effect, and holds what was moved, the balance, where prices are
// from and the laws of the books.
func (s *twoChargers) settled(moved flex.WattHours, balance flex.Pence, sources int) {
	s.t.Helper()
	for range 2 {
		s.fixture.events(s.t)
		_, got := s.sums()
		info, err := s.service.Info(s.t.Context(), s.org, s.site)
		if err != nil || got != moved || info.Balance != balance {
			s.t.Errorf("moved %d Wh for %d p, want %d and %d: %v", got, info.Balance, moved, balance, err)
		}
	}

	events, prices, err := s.service.FlexEvents(s.t.Context(), s.org, s.site)
	if err != nil {
		s.t.Fatal(err)
	}

	from := map[string]bool{}
	for _, p := range prices[events[0].ID] {
		from[p.Source] = true
	}
	for _, p := range prices[events[3].ID] {
		from[p.Source] = true
	}

	if len(from) != sources {
		s.t.Errorf("prices from %v, want %d sources", from, sources)
	}

	findings, err := s.db.Verify(s.t.Context())
	if err != nil || len(findings) > 0 {
		s.t.Errorf("verify: %v %v", findings, err)
	}
}
