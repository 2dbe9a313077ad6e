package control_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// evening plugs in so many cars at 17:00 that need some kWh by 07:00 and charge at once: one rate,
// and prices that rise. Every client accepts, and the first has a site of its own.
func (h *fixture) evening(cars int, kwh float64) (assets []flex.AssetID) {
	h.Helper()
	prices := make([]float64, 40)
	for i := range prices {
		prices[i] = 50 + float64(i)
	}
	h.publish("2026-01-15T17:00:00Z", prices...)

	for range cars {
		h.site = h.Site(flex.FullScheduleMethod)
		h.asset = h.Asset(h.site, flex.Charger, 7400)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(kwh, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		h.accept()
		assets = append(assets, h.asset)
	}
	return assets
}

// drawing is how many of the assets' schedules in force draw at the instant.
func (h *fixture) drawing(assets []flex.AssetID, instant string) (n int) {
	h.Helper()
	for _, h.asset = range assets {
		for _, s := range h.look().Current.Steps {
			if s.Contains(at(instant)) && s.Limit > 0 {
				n++
			}
		}
	}
	return n
}

// short is how many of the assets' schedules in force do not meet a need.
func (h *fixture) short(assets []flex.AssetID, kwh float64) (n int) {
	h.Helper()
	for _, h.asset = range assets {
		sum := 0.0
		for _, s := range h.look().Current.Steps {
			sum += float64(min(s.Limit, 7400)) * s.Len().Hours() / 1000
		}
		if sum < kwh-0.001 {
			n++
		}
	}
	return n
}

// peak asks for less from 17:30 to 19:00.
func peak(watts flex.Watts) flex.Instruction {
	return flex.Instruction{
		Span: flex.Span{From: at("2026-01-15T17:30:00Z"), To: at("2026-01-15T19:00:00Z")}, Change: watts, Service: "dno", Reason: "evening peak", Who: "Ann",
	}
}

func (h *fixture) send(in flex.Instruction) *control.Preview {
	h.Helper()
	p, err := h.service.SendInstruction(h.Context(), h.Org, in)
	if err != nil {
		h.Fatal(err)
	}
	return p
}

// TestInstruction_EveningPeak previews, sends and stops an instruction on a street of six cars.
func TestInstruction_EveningPeak(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(6, 22.2) // three hours each
		preview, err := h.service.PreviewInstruction(h.Context(), h.Org, peak(-19_000))
		if err != nil {
			h.Fatal(err)
		}
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 6 {
			h.Fatalf("%d draw after a preview", n)
		}
		if len(preview.Assets) != 3 || preview.Callable != 6 || preview.Reached() != 1 || preview.Cost <= 0 || preview.Rebound != 0 {
			h.Fatalf("%d called of %d, %v reached, cost %d, rebound %d W", len(preview.Assets), preview.Callable, preview.Reached(), preview.Cost, preview.Rebound)
		}

		sent := h.send(peak(-19_000))
		if len(sent.Assets) != len(preview.Assets) || sent.Cost != preview.Cost || sent.ID.IsZero() {
			h.Errorf("sent to %d at %d, previewed %d at %d", len(sent.Assets), sent.Cost, len(preview.Assets), preview.Cost)
		}
		for instant, want := range map[string]int{"2026-01-15T17:10:00Z": 6, "2026-01-15T17:45:00Z": 3, "2026-01-15T18:59:00Z": 3} {
			if n := h.drawing(assets, instant); n != want {
				h.Errorf("%s: %d draw, not %d", instant, n, want)
			}
		}
		if n := h.short(assets, 22.2); n > 0 {
			h.Errorf("%d needs are not met", n)
		}

		// The others are called by the next: nobody twice before everybody once.
		again := h.send(peak(-19_000))
		for _, a := range again.Assets {
			if a.Calls != 0 {
				h.Errorf("%v is called again before all were", a.AssetID)
			}
		}
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 0 || again.NumBusy != 3 {
			h.Errorf("%d draw, %d were busy", n, again.NumBusy)
		}

		stops(h, assets, sent.ID)
	})
}

// stops stops one instruction, twice, and then all.
func stops(h *fixture, assets []flex.AssetID, id flex.InstructionID) {
	h.Helper()
	h.goTo("2026-01-15T17:40:00Z")
	for range 2 {
		in, err := h.service.StopInstruction(h.Context(), h.Org, id, "Bob")
		if err != nil || in.StoppedBy != "Bob" || !in.StoppedAt.Equal(at("2026-01-15T17:40:00Z")) {
			h.Fatalf("%+v, %v", in, err)
		}
		h.wait(time.Minute)
	}
	if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 3 {
		h.Errorf("%d draw after one was stopped, not 3", n)
	}

	for _, want := range []int{1, 0} {
		if n, err := h.service.StopInstructions(h.Context(), h.Org, "Bob"); n != want || err != nil {
			h.Errorf("%d stopped, not %d: %v", n, want, err)
		}
	}
	if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 6 {
		h.Errorf("%d draw after all were stopped, not 6", n)
	}

	if _, err := h.service.StopInstruction(h.Context(), h.Org, flex.InstructionID{1}, "Bob"); flex.KindOf(err) != flex.NotFound {
		h.Errorf("an instruction that there is not: %v", err)
	}
}

// TestInstruction_NeedWins asks cars to wait that cannot: they keep what they need.
func TestInstruction_NeedWins(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		const kwh = 13 * 7.4 // of the 14 hours to ready-by
		assets := h.evening(2, kwh)
		p := h.send(peak(-14_800))
		if p.Reached() > 0.7 || p.Why() == "" || p.NumNeeded != 2 {
			h.Errorf("%v reached, %d need it: %q", p.Reached(), p.NumNeeded, p.Why())
		}
		if n := h.short(assets, kwh); n > 0 {
			h.Errorf("%d needs are not met", n)
		}
	})
}

// TestInstruction_Follows has what falls short made up for by others, and an event during an
// instruction leave it in force.
func TestInstruction_Follows(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		if len(sent.Assets) != 2 {
			h.Fatalf("%d are called", len(sent.Assets))
		}

		follow := func(want int) {
			h.Helper()
			h.wait(5 * time.Second)
			if r, err := h.service.FollowInstructions(h.Context()); err != nil || r.Count != want {
				h.Errorf("%d changed, not %d: %v", r.Count, want, err)
			}
		}

		follow(0) // they may take some seconds
		h.asset = sent.Assets[0].AssetID
		h.accept()
		follow(1) // the second has not accepted
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 2 {
			h.Errorf("%d draw, not 2", n)
		}

		for _, h.asset = range assets { // the second late: there is more than enough
			if h.asset != sent.Assets[0].AssetID && h.drawing([]flex.AssetID{h.asset}, "2026-01-15T18:00:00Z") == 0 {
				h.accept()
			}
		}

		follow(1)
		follow(0)
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 3 {
			h.Errorf("%d draw, not 3", n)
		}

		i := slices.IndexFunc(assets, func(a flex.AssetID) bool { return h.drawing([]flex.AssetID{a}, "2026-01-15T18:00:00Z") == 0 })
		h.asset = assets[i]
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(29.6, flex.Minimise)})
		if n := h.drawing([]flex.AssetID{h.asset}, "2026-01-15T18:00:00Z"); n != 0 {
			h.Error("an event ended what was instructed")
		}
		if n := h.short([]flex.AssetID{h.asset}, 29.6); n > 0 {
			h.Error("the need is not met")
		}
	})
}

// TestInstruction_FollowsWithinSeconds has something be missing in the last seconds of a half-hour, at an instant between two
// seconds: as many are called as the time after it takes, and what they are sent breaks no law.
func TestInstruction_FollowsWithinSeconds(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(5, 22.2)
		sent := h.send(peak(-13_000))
		if len(sent.Assets) != 2 {
			h.Fatalf("%d are called", len(sent.Assets))
		}

		h.asset = sent.Assets[0].AssetID
		h.accept() // and the second does not
		h.goTo("2026-01-15T17:59:55Z")
		h.wait(250 * time.Millisecond)
		if r, err := h.service.FollowInstructions(h.Context()); err != nil || r.Count != 1 {
			h.Errorf("%d changed, not 1: %v", r.Count, err)
		}
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 2 {
			h.Errorf("%d draw, not 2", n)
		}
	})
}

// TestInstruction_Limit holds a street below a power, and refuses what cannot be.
func TestInstruction_Limit(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		in := peak(0)
		in.Limit = new(flex.Watts(17_000))
		if p := h.send(in); len(p.Assets) != 2 || p.Slots[0].Planned != 14_800 || p.Slots[0].Asked != 6300 {
			h.Errorf("%d are called of %+v", len(p.Assets), p.Slots[0])
		}
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 2 {
			h.Errorf("%d draw, not 2", n)
		}

		for name, change := range map[string]func(*flex.Instruction){
			"no target":        func(in *flex.Instruction) { in.Change = 0 },
			"two targets":      func(in *flex.Instruction) { in.Limit = new(flex.Watts(1)) },
			"a negative limit": func(in *flex.Instruction) { in.Change, in.Limit = 0, new(flex.Watts(-1)) },
			"no service":       func(in *flex.Instruction) { in.Service = "" },
			"a price too high": func(in *flex.Instruction) { in.Price = 6_000_000_001 },
			"a price below 0":  func(in *flex.Instruction) { in.Price = -1 },
			"seconds":          func(in *flex.Instruction) { in.To = in.To.Add(time.Second) },
			"over":             func(in *flex.Instruction) { in.From, in.To = at("2026-01-15T15:00:00Z"), at("2026-01-15T16:00:00Z") },
			"too long":         func(in *flex.Instruction) { in.To = in.From.Add(25 * time.Hour) },
		} {
			in := peak(-1000)

			change(&in)
			if _, err := h.service.PreviewInstruction(h.Context(), h.Org, in); flex.KindOf(err) != flex.Malformed {
				h.Errorf("%s: %v", name, err)
			}
		}

		in = peak(-1000)
		in.Scope.Group = "feeder"
		if _, err := h.service.PreviewInstruction(h.Context(), h.Org, in); flex.KindOf(err) != flex.NotFound {
			h.Errorf("a group that there is not: %v", err)
		}
	})
}

// meter has the assets' meters say what each drew in the half-hour from the instant on, in kWh.
func (h *fixture) meter(assets []flex.AssetID, from string, kwh ...float64) {
	h.Helper()
	half := flex.PeriodAt(at(from)).Span()
	var rs []flex.Reading
	for i, a := range assets {
		rs = append(rs, flex.Reading{AssetID: a, Span: half, Label: flex.ChargerEnergy, Value: flex.Micro(kwh[i] * 1e6)})
	}
	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) }); err != nil {
		h.Fatal(err)
	}
}

// TestInstruction_Metered has a meter that shows nothing given made up for by others, and the
// report say what was asked, expected and metered.
func TestInstruction_Metered(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		sent := h.send(peak(-13_000))
		var called []flex.AssetID
		for _, a := range sent.Assets {
			called = append(called, a.AssetID)
			h.asset = a.AssetID
			h.accept()
		}

		h.goTo("2026-01-15T18:00:30Z")
		h.meter(called, "2026-01-15T17:30:00Z", 3.7, 0) // the first charged on
		if r, err := h.service.FollowInstructions(h.Context()); err != nil || r.Count != 1 {
			h.Errorf("%d changed, not 1: %v", r.Count, err)
		}
		if n := h.drawing(assets, "2026-01-15T18:30:00Z"); n != 1 {
			h.Errorf("%d draw, not 1", n)
		}

		report, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID)
		if err != nil {
			h.Fatal(err)
		}
		first, last := report.Slots[0], report.Slots[2]
		if first.Asked != -6500 || first.Baseline != 2*3700 || first.Metered != 3700 || first.MeteredBaseline != 7400 || first.NumMetered != 2 {
			h.Errorf("the first half-hour: %+v", first)
		}

		if last.Baseline != 3*3700 || last.Expected != 0 || last.NumMetered != 0 || len(report.Slots) != 5 || len(report.Assets) != 3 {
			h.Errorf("the last half-hour: %+v of %d, %d assets", last, len(report.Slots), len(report.Assets))
		}
		if control.StateOf(&report.Instruction, report.At) != control.InstructionRunning {
			h.Errorf("it is %s", control.StateOf(&report.Instruction, report.At))
		}
	})
}

// TestInstruction_Caps sends one to a fleet under caps: they hold, and so does it.
func TestInstruction_Caps(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		if err := h.service.SetCaps(h.Context(), h.Org, flex.Caps{Fleet: flex.Cap{Power: new(flex.Watts(23_000))}}); err != nil {
			h.Fatal(err)
		}

		plan := func() {
			h.Helper()
			for range 3 {
				h.wait(time.Second)
				if _, err := h.service.PlanDue(h.Context()); err != nil {
					h.Fatal(err)
				}
			}
		}

		plan()
		sent := h.send(peak(-12_000))
		plan()
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n > 3-len(sent.Assets)+1 || len(sent.Assets) == 0 {
			h.Errorf("%d draw, %d were called", n, len(sent.Assets))
		}
		for _, a := range sent.Assets {
			if n := h.drawing([]flex.AssetID{a.AssetID}, "2026-01-15T18:00:00Z"); n != 0 {
				h.Errorf("%v draws, although it is called", a.AssetID)
			}
		}

		for m := range 14 * 60 {
			instant := at("2026-01-15T17:01:00Z").Add(time.Duration(m) * time.Minute).Format(time.RFC3339)
			if n := h.drawing(assets, instant); n > 3 {
				h.Fatalf("%s: %d draw, and three may", instant, n)
			}
		}
		if n := h.short(assets, 22.2); n > 0 {
			h.Errorf("%d needs are not met", n)
		}
	})
}

// TestInstruction_Up has cars draw more, earlier than they would.
func TestInstruction_Up(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		prices := make([]float64, 40)
		for i := range prices {
			prices[i] = 100 - float64(i)
		}
		h.publish("2026-01-15T17:00:00Z", prices...)
		assets := []flex.AssetID{h.asset}
		h.event(control.Event{Kind: control.PlugIn, Intent: need(14.8, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		h.accept()
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 0 {
			h.Fatal("it charges in the evening without being asked")
		}

		p := h.send(peak(5_000))
		if len(p.Assets) != 1 || p.Reached() != 1 {
			h.Errorf("%d called, %v reached", len(p.Assets), p.Reached())
		}
		for _, instant := range []string{"2026-01-15T17:30:00Z", "2026-01-15T18:59:00Z"} {
			if n := h.drawing(assets, instant); n != 1 {
				h.Errorf("nothing is drawn at %s", instant)
			}
		}
		if n := h.short(assets, 14.8); n > 0 {
			h.Error("the need is not met")
		}
	})
}

// TestInstruction_AtOnce sends several at the same time: each car is called by one.
func TestInstruction_AtOnce(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		var all sync.WaitGroup
		var mu sync.Mutex
		calls := map[flex.AssetID]int{}
		for range 4 {
			all.Go(func() {
				p, err := h.service.SendInstruction(h.Context(), h.Org, peak(-6_000))
				if err != nil {
					h.Error(err)
					return
				}

				mu.Lock()
				defer mu.Unlock()
				for _, a := range p.Assets {
					calls[a.AssetID]++
				}
			})
		}

		all.Wait()
		if len(calls) != 4 || h.drawing(assets, "2026-01-15T18:00:00Z") != 0 {
			h.Errorf("called: %v", calls)
		}
	})
}

// TestInstruction_MeteredEachMinute has the registers of two called cars say each minute that one charges on: another is
// called in its place before the half-hour is over, and the report has each minute.
func TestInstruction_MeteredEachMinute(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		sent := h.send(peak(-13_000))
		var called []flex.AssetID
		for _, a := range sent.Assets {
			called = append(called, a.AssetID)
			h.asset = a.AssetID
			h.accept()
		}

		h.goTo("2026-01-15T17:31:00Z")
		for minute := range 10 {
			now := time.UnixMicro(h.micro.Load()).UTC()
			h.register(called[0], now, 700)
			h.register(called[1], now, 800+float64(minute)*0.123)
			if r, err := h.service.FollowInstructions(h.Context()); err != nil || (r.Count > 0) != (minute == 1) {
				h.Errorf("%d changed at %s: %v", r.Count, now, err)
			}
			h.acceptAll()
			h.wait(time.Minute)
		}

		if n := h.drawing(assets, "2026-01-15T18:30:00Z"); n != 1 {
			h.Errorf("%d draw, not 1", n)
		}

		report, err := h.service.ReportInstructionMinutes(h.Context(), h.Org, sent.ID)
		if err != nil || len(report.Minutes) != 150 || len(report.Slots) != 5 {
			h.Fatalf("%d minutes, %v", len(report.Minutes), err)
		}
		for m, want := range map[int]control.ReportSlot{
			5:   {Asked: -217, Baseline: 3 * 123, Metered: 123, MeteredBaseline: 2 * 123, NumMetered: 2},
			20:  {Asked: -217, Baseline: 3 * 123},
			100: {Baseline: 3 * 123, Expected: 3 * 123},
		} {
			got := report.Minutes[m]
			if got.Asked != want.Asked || got.Metered != want.Metered || got.NumMetered != want.NumMetered || got.MeteredBaseline != want.MeteredBaseline {
				h.Errorf("minute %d: %+v, not %+v", m, got, want)
			}
		}

		h.inMinutes(report)

		// It is made of so many readings at most; these are 20.
		window := flex.Span{From: sent.From, To: sent.To}
		for most, want := range map[int]flex.Kind{19: flex.Malformed, 20: 0, 0: 0} {
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				_, err := tx.CalledMarks(h.Context(), sent.ID, window, most)
				return err
			})
			if (err == nil) != (want == 0) || err != nil && flex.KindOf(err) != want {
				h.Errorf("at most %d readings: %v", most, err)
			}
		}
	})
}

// TestInstruction_MinutesOfMuch has a report by the minute of 15 MW, which says 250 kWh of each minute.
func TestInstruction_MinutesOfMuch(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		h.evening(1, 22.2)
		sent := h.send(peak(-15_000_000))
		report, err := h.service.ReportInstructionMinutes(h.Context(), h.Org, sent.ID)
		if err != nil || len(report.Minutes) != 150 {
			h.Fatalf("%+v, %v", report, err)
		}

		for m, want := range map[int]flex.WattHours{0: -250_000, 89: -250_000, 90: 0} {
			if got := report.Minutes[m].Asked; got != want {
				h.Errorf("minute %d: %d Wh asked, not %d", m, got, want)
			}
		}
	})
}

// inMinutes fails the test unless the minutes of a report add up to its half-hours.
func (h *fixture) inMinutes(report *control.InstructionReport) {
	h.Helper()
	for _, s := range report.Slots {
		var sum control.ReportSlot
		for _, m := range report.Minutes {
			if s.Contains(m.From) {
				sum.Asked, sum.Baseline, sum.Expected = sum.Asked+m.Asked, sum.Baseline+m.Baseline, sum.Expected+m.Expected
			}
		}

		const rounding = 60 // half a watt-hour of each minute and car
		for _, d := range []flex.WattHours{sum.Asked - s.Asked, sum.Baseline - s.Baseline, sum.Expected - s.Expected} {
			if d > rounding || d < -rounding {
				h.Errorf("%s: the minutes add up to %+v, not %+v", s.From, sum, s)
			}
		}
	}
}

// register has an asset's register show an energy in kWh.
func (h *fixture) register(asset flex.AssetID, now time.Time, kwh float64) {
	h.Helper()
	r := flex.Reading{AssetID: asset, Span: flex.Span{From: now, To: now}, Label: flex.ChargerRegister, Value: flex.Micro(kwh*1000+0.5) * 1000}
	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), []flex.Reading{r}) }); err != nil {
		h.Fatal(err)
	}
}

// TestInstruction_HalfHourShared: what an instruction called is called by no other for the half-hour that it ended in, which both would pay
// for, and by another from the next on, though that one began while the first still bound.
func TestInstruction_HalfHourShared(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(3, 22.2) // three hours each
		h.send(window("17:30", "18:05"))
		second := h.send(window("17:45", "19:00"))
		if len(second.Assets) > 0 || second.NumBusy != len(assets) {
			h.Fatalf("%d of %d are called twice", len(second.Assets), len(assets))
		}

		for _, c := range []struct {
			now    string
			called bool
		}{{"18:10", false}, {"18:29", false}, {"18:30", true}} {
			h.goTo("2026-01-15T" + c.now + ":00Z")
			if _, err := h.service.FollowInstructions(h.Context()); err != nil {
				h.Fatal(err)
			}

			r, err := h.service.ReportInstruction(h.Context(), h.Org, second.ID)
			if err != nil || (len(r.Assets) > 0) != c.called {
				h.Errorf("at %s %d are called: %v", c.now, len(r.Assets), err)
			}
			if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
				h.Errorf("at %s: %v, %v", c.now, findings, err)
			}
		}
	})
}
