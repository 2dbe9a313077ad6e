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

// addTank puts a tank of 3 kW into the home that heats from 17:30 on unless it is asked to
// wait, and plans it. Its client accepts.
func (s *twoChargers) addTank() flex.AssetID {
	s.t.Helper()
	id := s.device(3, flex.HotWaterTank, 3000)
	s.write(s.t, func(ctx context.Context, tx *store.Tx) error {
		cheap := flex.Tariff{
			OffPeak: "17:30-18:30",
			Zone:    "Europe/London",
			Type:    flex.DualRate,
		}
		if err := tx.PutTariff(ctx, id, cheap); err != nil {
			return err
		}

		at := s.monday.Start().Add(16*time.Hour + 50*time.Minute)
		return tx.PutReadings(ctx, []flex.Reading{{
			AssetID: id,
			Span:    flex.Span{From: at, To: at},
			Label:   flex.TankTemperature,
			Value:   54e6,
		}})
	})
	s.planTanks()

	return id
}

// planTanks plans tanks, and has the client accept.
func (s *twoChargers) planTanks() {
	s.t.Helper()
	if _, err := s.control.PlanTanks(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.exec(s.t, `UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject IN (SELECT asset_id FROM tank_plan)`)
}

// TestInstruction_CarBatteryAndHeater has one instruction call a car, a battery and a tank of
// one site: the site's meter has one deviation, which is paid once, to the events of the car
// and the battery. The tank has no event and earns nothing.
func TestInstruction_CarBatteryAndHeater(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, battery := newCarAndBattery(t, url)
		tank := s.addTank()
		s.at(17, 15)
		from := s.monday.Start().Add(17*time.Hour + 30*time.Minute)
		window := flex.Span{From: from, To: from.Add(90 * time.Minute)}
		p, err := s.control.SendInstruction(t.Context(), s.org, flex.Instruction{
			Span:    window,
			Change:  -20_000,
			Service: "dno",
			Price:   flex.FromGBPPerMWh(300),
			Who:     "Ann",
		})
		if err != nil || len(p.Assets) != 3 {
			t.Fatalf("called %+v: %s: %v", p.Assets, p.Why(), err)
		}

		s.accept()
		s.acceptDispatches()
		s.planTanks()
		for hour, minute := 17, 30; hour < 21; hour, minute = hour+minute/30, 30-minute {
			s.at(hour, minute)
			s.plan()
			s.planTanks()
		}
		s.at(21, 30)
		s.event(control.Event{Kind: control.PlugOut})
		s.at(21, 32)

		// 5.2 kWh less in each of three half-hours, as much as the car and the battery can
		// have moved.
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
			if e.Flex != nil && !e.Meet(window).Empty() {
				of[e.AssetID] = true
				moved += *e.Flex
				estimated += e.Estimated
			}
		}

		if moved != -15_600 || estimated != 4_680_000 || len(of) != 2 || !of[battery] || of[tank] {
			t.Errorf("%d Wh for %d of %d assets: %+v", moved, estimated, len(of), events)
		}
		info, err := s.service.Info(t.Context(), s.org, s.site)
		if err != nil || info.Balance != 234 {
			t.Errorf("a balance of %d p: %v", info.Balance, err)
		}

		// The report has all three, and the delivered energy once.
		r, err := s.control.ReportInstruction(t.Context(), s.org, p.ID)
		if err != nil || len(r.Assets) != 3 || r.Settled.Flex != moved || r.Settled.Revenue != estimated {
			t.Errorf("%v: %d assets, %+v", err, len(r.Assets), r.Settled)
		}
		if findings, err := s.db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
	})
}

// TestInstruction_HeaterOnly has an instruction with a price call a site's tank alone: there
// is no flex event for it, so nothing is paid, though the site's meter shows less; the report
// has what was asked for, and no event.
func TestInstruction_HeaterOnly(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, _ := newCarAndBattery(t, url)
		tank := s.addTank()
		s.exec(t, `UPDATE asset SET excluded_at = 1 WHERE type = 'battery'`)
		s.at(17, 10)
		s.event(control.Event{Kind: control.PlugOut})
		s.at(17, 15)
		from := s.monday.Start().Add(17*time.Hour + 30*time.Minute)
		p, err := s.control.SendInstruction(t.Context(), s.org, flex.Instruction{
			Span:    flex.Span{From: from, To: from.Add(90 * time.Minute)},
			Change:  -2000,
			Service: "dno",
			Price:   flex.FromGBPPerMWh(300),
			Who:     "Ann",
		})
		if err != nil || len(p.Assets) != 1 || p.Assets[0].AssetID != tank {
			t.Fatalf("called %+v: %s: %v", p.Assets, p.Why(), err)
		}

		s.planTanks()
		s.at(21, 32)
		s.used(0, 5.6, 0.4, 0.4, 0.4, 5.6, 5.6, 0.4, 0.4, 0.4)
		for range 2 {
			s.events(t)
		}

		r, err := s.control.ReportInstruction(t.Context(), s.org, p.ID)
		if err != nil || len(r.Assets) != 1 || r.Assets[0].AssetID != tank || r.Settled.Found != 0 || r.Settled.Revenue != 0 {
			t.Errorf("%v: %+v, %+v", err, r.Assets, r.Settled)
		}
		if info, err := s.service.Info(t.Context(), s.org, s.site); err != nil || info.Balance != 0 {
			t.Errorf("a balance of %d p: %v", info.Balance, err)
		}
	})
}
