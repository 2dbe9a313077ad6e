package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// newCarAndBattery is a home with a charger and a battery behind one meter, which both charge
// from 17:00 on unless they are asked to wait: with 7.4 and 3 kW beside 0.8 kW of the home.
func newCarAndBattery(t *testing.T, url string) (*twoChargers, flex.AssetID) {
	t.Helper()
	s := &twoChargers{home: newHome(t, url, 0.5, 60)}
	s.control = &control.Service{DB: s.db}
	s.supply(t, 69_000)
	s.exec(t, `UPDATE asset SET type = 'charger'`)
	s.exec(t, `INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, $3, 0)`,
		s.org.Bytes(), s.site.Bytes(), string(flex.FullScheduleMethod))
	s.cars = []flex.AssetID{s.asset}
	id := s.device(2, flex.Battery, 3000)
	s.exec(t, `UPDATE asset SET capacity_wh = 10000, model = 'Box 10' WHERE id = $1`, id.Bytes())
	for back := 1; back <= homeDays; back++ {
		s.used(back, 5.6, 5.6, 5.6, 5.6, 5.6, 5.6, 0.4, 0.4, 0.4)
	}

	s.at(16, 58)
	s.prices(t, flex.Span{From: s.monday.Period(43).Start(), To: s.monday.Add(1).Period(20).End()}, 500)
	s.write(t, func(ctx context.Context, tx *store.Tx) error {
		cheap := flex.Tariff{
			OffPeak: "17:00-20:30",
			Zone:    "Europe/London",
			Type:    flex.DualRate,
		}
		if err := tx.PutTariff(ctx, id, cheap); err != nil {
			return err
		}

		listens := flex.Endpoint{
			Name:    flex.DispatchEndpoint,
			URL:     "https://client.example/dispatch",
			Enabled: true,
		}
		if _, err := tx.PutEndpoint(ctx, listens); err != nil {
			return err
		}

		at := s.monday.Start().Add(16*time.Hour + 50*time.Minute)
		return tx.PutReadings(ctx, []flex.Reading{{
			AssetID: id,
			Span:    flex.Span{From: at, To: at},
			Label:   flex.BatteryStateOfCharge,
			Value:   10e6,
		}})
	})
	s.at(17, 0)
	wall := flex.WallTime(7 * time.Hour)
	s.event(control.Event{Kind: control.PlugIn,
		Intent: &flex.Intent{
			Need:         22_200,
			ReadyByLocal: &wall,
			ReadyBy:      s.monday.Add(1).Start().Add(7 * time.Hour),
			Mode:         flex.Minimise,
		},
		Tariff: &flex.Tariff{
			Zone: "Europe/London",
			Type: flex.SingleRate,
		},
	})
	s.plan()

	return s, id
}

// plan plans batteries, and has the client accept all that was dispatched.
func (s *twoChargers) plan() {
	s.t.Helper()
	if _, err := s.control.PlanBatteries(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.acceptDispatches()
}

func (s *twoChargers) acceptDispatches() {
	s.t.Helper()
	s.exec(s.t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT d.org_id, d.event_id, 'dispatch', 'dispatch', 1, d.issued_at, 'accepted', 1, d.issued_at, 0, 200, '', '' FROM dispatch d
		WHERE NOT EXISTS (SELECT 1 FROM delivery v WHERE v.event_id = d.event_id)`)
}

// TestInstruction_CarAndBattery has one instruction call the car and the battery of one site:
// what the site's meter shows is settled once, at the instruction's price, whoever did it.
func TestInstruction_CarAndBattery(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, id := newCarAndBattery(t, url)
		s.at(17, 15)
		from := s.monday.Start().Add(17*time.Hour + 30*time.Minute)
		window := flex.Span{From: from, To: from.Add(90 * time.Minute)}
		p, err := s.control.SendInstruction(t.Context(), s.org, flex.Instruction{
			Span:    window,
			Change:  -10_000,
			Service: "dno",
			Price:   flex.FromGBPPerMWh(300),
			Who:     "Ann",
		})
		if err != nil || len(p.Assets) != 2 {
			t.Fatalf("called %+v: %s: %v", p.Assets, p.Why(), err)
		}

		s.accept()
		s.acceptDispatches()
		for hour, minute := 17, 30; hour < 21; hour, minute = hour+minute/30, 30-minute {
			s.at(hour, minute)
			s.plan()
		}
		s.at(21, 30)
		s.event(control.Event{Kind: control.PlugOut})
		s.at(21, 32)

		// 5.2 kWh less in each of three half-hours; then as on the days before.
		s.used(0, 5.6, 0.4, 0.4, 0.4, 5.6, 5.6, 0.4, 0.4, 0.4)
		for range 2 {
			s.events(t)
		}
		events, _, err := s.service.FlexEvents(t.Context(), s.org, s.site)
		if err != nil {
			t.Fatal(err)
		}

		moved, estimated, of := flex.WattHours(0), flex.MicroPounds(0), map[flex.AssetID]bool{}
		for _, e := range events {
			if e.Flex == nil {
				t.Fatalf("%+v is not settled", e)
			}
			if !e.Meet(window).Empty() {
				of[e.AssetID] = true
				moved += *e.Flex
				estimated += e.Estimated
			}
		}

		if moved != -15_600 || estimated != 4_680_000 || len(of) != 2 || !of[id] {
			t.Errorf("%d Wh for %d of %d assets: %+v", moved, estimated, len(of), events)
		}
		info, err := s.service.Info(t.Context(), s.org, s.site)
		if err != nil || info.Balance != 234 {
			t.Errorf("a balance of %d p: %v", info.Balance, err)
		}
		if findings, err := s.db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
	})
}
