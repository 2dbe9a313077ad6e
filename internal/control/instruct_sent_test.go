package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// inForce adds up, minute by minute, what assets draw by the schedule that is in force in it.
type inForce map[flex.AssetID]map[flex.Period]flex.WattHours

// pass lets time pass to the instant, by minutes.
func (h *fixture) pass(s inForce, to string) {
	h.Helper()
	for now := time.UnixMicro(h.micro.Load()); now.Before(at(to)); now = now.Add(time.Minute) {
		for asset := range s {
			c := h.at(asset).look()
			for _, step := range c.Current.Steps {
				if step.Contains(now) {
					s[asset][flex.PeriodAt(now)] += min(step.Limit, c.Current.From.Power).For(time.Minute)
				}
			}
		}
		h.wait(time.Minute)
	}
}

// TestInstruction_SentLater has called cars planned anew, as one needs all the time that is left, one charges at once
// and prices change: the report expects what was sent last, each minute.
func TestInstruction_SentLater(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		s := inForce{}
		assets := h.evening(3, 22.2)
		for _, a := range assets {
			s[a] = map[flex.Period]flex.WattHours{}
		}

		sent := h.send(peak(-22_200))
		h.pass(s, "2026-01-15T17:40:00Z")
		h.at(assets[0]).event(control.Event{Kind: control.IntentUpdate, Intent: need(13*7.4, flex.Minimise)})
		h.pass(s, "2026-01-15T17:50:00Z")
		h.at(assets[1]).event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-15T18:20:00Z")})
		h.pass(s, "2026-01-15T18:10:00Z")
		h.publish("2026-01-15T18:00:00Z", 90, 80, 70, 60, 50, 40, 30, 20, 10, 90, 90, 90, 90, 90, 90)
		h.replan()
		h.pass(s, "2026-01-15T20:00:00Z")

		report, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil || len(report.Assets) != 3 {
			h.Fatal(report, err)
		}

		anew := 0
		for _, a := range report.Assets {
			for n, slot := range report.Slots {
				got, want := a.Expected[n], s[a.AssetID][flex.PeriodAt(slot.From)]
				if got-want > 60 || want-got > 60 { // Wh are rounded each minute
					h.Errorf("%v at %s: %v are expected, by what was sent it is %v", a.AssetID, slot.From, got, want)
				}
				if n < 3 && want > 0 {
					anew++
				}
			}
		}

		if anew < 3 {
			h.Errorf("only %d half-hours have what was not expected at first", anew)
		}
	})
}

// TestInstruction_MeteredSinceCall has a car be called when the instruction has begun: what its meter has of before is no part of
// the report.
func TestInstruction_MeteredSinceCall(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(4, 22.2)
		sent := h.send(peak(-13_000))
		first := map[flex.AssetID]bool{}
		var called []flex.AssetID
		for _, a := range sent.Assets {
			first[a.AssetID] = true
			called = append(called, a.AssetID)
			h.asset = a.AssetID
			h.accept()
		}

		h.goTo("2026-01-15T18:00:30Z")
		h.meter(called, "2026-01-15T17:30:00Z", 3.7, 0) // the first charged on
		if r, err := h.service.FollowInstructions(h.Context()); err != nil || r.Count != 1 {
			h.Fatalf("%d changed, not 1: %v", r.Count, err)
		}

		report, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil {
			h.Fatal(err)
		}

		h.goTo("2026-01-15T18:31:00Z")
		for _, a := range report.Assets {
			if !first[a.AssetID] {
				h.meter([]flex.AssetID{a.AssetID}, "2026-01-15T17:30:00Z", 3.7)
				h.meter([]flex.AssetID{a.AssetID}, "2026-01-15T18:00:00Z", 0.062)
			}
		}

		report, err = h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil {
			h.Fatal(err)
		}
		if s := report.Slots[0]; s.Metered != 3700 || s.MeteredBaseline != 7400 || s.NumMetered != 2 {
			h.Errorf("before the call: %+v", s)
		}

		if s := report.Slots[1]; s.NumMetered != 0 {
			h.Errorf("the half-hour of the call: %+v", s)
		}
		if before, during := report.Unmetered(0), report.Unmetered(1); before != 0 || during != 3 {
			h.Errorf("of %d and %d assets nothing is metered, not of 0 and 3", before, during)
		}
	})
}
