package control_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// heatIn is what a heater is expected to draw in each of some half-hours by its plan, in Wh.
func (h *fixture) heatIn(id flex.AssetID, from time.Time, n int) []flex.WattHours {
	h.Helper()
	p := h.tankPlan(id)
	sums := make([]flex.WattHours, n)
	for i := range sums {
		at := flex.Span{From: from.Add(time.Duration(i) * flex.HalfHour), To: from.Add(time.Duration(i+1) * flex.HalfHour)}
		for _, s := range p.DrawSteps() {
			sums[i] += flex.WattHours(math.Round(float64(s.Limit) * max(0, s.Meet(at).Len()).Hours()))
		}
	}

	return sums
}

// heater puts a heater at a site of its own, and plans it. Its client accepts.
func (h *fixture) heater(heat string) flex.AssetID {
	h.Helper()
	h.site = h.Site(flex.FullScheduleMethod)
	id := h.heaterHere(heat)
	h.runTanks()
	h.acceptHeat(id)

	return id
}

// heaterHere puts a heater into the fixture's site: a tank, or a heat pump with what was set of it.
func (h *fixture) heaterHere(heat string) flex.AssetID {
	if heat == "tank" {
		return h.tank()
	}
	return h.pump(heat)
}

// acceptHeat has the client take the plans of heaters.
func (h *fixture) acceptHeat(ids ...flex.AssetID) {
	h.Helper()
	for _, id := range ids {
		h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject = $1`, id.Bytes())
	}
}

// heatUntil has heaters and batteries be planned each half-hour until an instant.
func (h *fixture) heatUntil(instant string) {
	h.Helper()
	for h.db.Now().Before(at(instant)) {
		h.runTanks()
		h.runBatteries()
		next := flex.PeriodAt(h.db.Now()).End()
		h.micro.Store(min(next.UnixMicro(), at(instant).UnixMicro()))
	}
	h.runTanks()
	h.runBatteries()
}

// warm reports how far a heater's plan lets it be below its band.
func warm(p store.TankPlan) (lack int64) {
	if p.Room != nil {
		return p.Room.Lack
	}
	return int64(p.Lack)
}

const (
	pumpOn    = `{"setpoint_mc":20500}`
	pumpReady = `{"low_mc":19000,"high_mc":22000,"setpoint_mc":20500,"steering":"sg_ready"}`
	pumpMoved = `{"low_mc":19000,"high_mc":22000,"setpoint_mc":20500,"steering":"temperature_offset"}`
)

// TestInstruction_Heat has a tank, and a heat pump in each way that it is steered, be called for less and for more: a preview changes
// nothing, no half-hour of the window goes the other way, none of the hour after one for less draws more than by plan, nothing gets
// cold, later plans keep to the call, and it says so.
func TestInstruction_Heat(t *testing.T) {
	for _, c := range []struct {
		heat, from string
		change     flex.Watts
		least      flex.WattHours // in all
	}{
		{"tank", "2026-01-15T08:00:00Z", -3000, 2000},
		{"tank", "2026-01-15T02:00:00Z", 3000, 2000},
		{pumpOn, "2026-01-15T14:00:00Z", -3000, 1000},
		{pumpOn, "2026-01-15T12:30:00Z", 3000, 1000},
		{pumpReady, "2026-01-15T03:00:00Z", -3000, 500},
		{pumpReady, "2026-01-15T16:00:00Z", 3000, 1000},
		{pumpMoved, "2026-01-15T03:00:00Z", -3000, 300},
		{pumpMoved, "2026-01-15T16:00:00Z", 3000, 1000},
	} {
		t.Run(c.heat+c.from, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.heater(c.heat)

				in := asks(c.from, at(c.from).Add(time.Hour).Format(time.RFC3339), c.change)
				before, made := h.heatIn(id, in.From, 4), h.tankPlan(id).Generation
				lacks := warm(h.tankPlan(id))
				preview, err := h.service.PreviewInstruction(h.Context(), h.Org, in)
				if err != nil || h.tankPlan(id).Generation != made {
					t.Fatalf("previewed: %v, generation %d", err, h.tankPlan(id).Generation)
				}

				sent := h.send(in)
				if len(sent.Assets) != 1 || !sent.Assets[0].Heater || sent.Assets[0].AssetID != id || sent.Cost != preview.Cost {
					t.Fatalf("called %+v at %d, previewed at %d: %v draws %v", sent.Assets, sent.Cost, preview.Cost, c.heat, before)
				}
				after := h.heatIn(id, in.From, 4)
				if moved := sent.Assets[0].Moved(); moved < c.least || sent.Assets[0].Quality != 90 {
					t.Errorf("%d Wh of %d are moved, %d %% count", moved, c.least, sent.Assets[0].Quality)
				}

				h.keepsCall(in, before, after, sent.Assets[0].Change)
				if p := h.tankPlan(id); p.Generation != made+1 || warm(p) > lacks {
					t.Errorf("generation %d, lacks %d, not %d", p.Generation, warm(p), lacks)
				}
				h.pushed(id, h.tankPlan(id))
				if x, err := h.service.Explanation(h.Context(), h.Org, id); err != nil || !strings.Contains(x.Prose(), "instruction of the grid called it") {
					t.Errorf("%v: %s", err, x.Prose())
				}

				h.acceptHeat(id)
				h.heatUntil(in.From.Format(time.RFC3339))
				for range 2 {
					h.keepsCall(in, before, h.heatIn(id, in.From, 4), nil)
					h.wait(time.Minute)
					h.Exec(`UPDATE tank_plan SET planned_at = 0`)
					h.runTanks()
				}

				h.heatUntil("2026-01-15T19:00:00Z")
				if p := h.tankPlan(id); warm(p) > lacks || strings.Contains(h.tankSays(id), "called it to draw") {
					t.Errorf("afterwards it lacks %d: %s", warm(p), h.tankSays(id))
				}
				h.clean()
			})
		})
	}
}

// keepsCall holds what a heater draws from the beginning of an instruction on against what it drew before it was called.
func (h *fixture) keepsCall(in flex.Instruction, before, after, change []flex.WattHours) {
	h.Helper()
	for i := range after {
		less := before[i] - after[i]
		window := i < int(in.Len()/flex.HalfHour)
		if in.Change > 0 {
			less = -less
		}

		if less < -2 && (window || in.Change < 0) {
			h.Errorf("%v in half-hour %d of %v, %v before", after, i, in.From, before)
		}
		if window && change != nil && (change[i] < less-2 || change[i] > less+2) {
			h.Errorf("said to move %v, and %d of them in half-hour %d", change, less, i)
		}
	}
}

// TestInstruction_HeatWithOthers calls a car, a battery, a tank and a heat pump at one site, and each at a site of its own: all bring
// what the report then expects of each, one site is called once, and together they are what was asked for.
func TestInstruction_HeatWithOthers(t *testing.T) {
	for _, sites := range []int{1, 4} {
		each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
			battery := h.nightBattery()
			apart := func() {
				if sites > 1 {
					h.site = h.Site(flex.FullScheduleMethod)
				}
			}

			apart()
			tank := h.tank()
			apart()
			pump := h.pump(pumpOn)
			apart()
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.event(control.Event{Kind: control.PlugIn, Intent: need(41, flex.Minimise), Tariff: nightTariff("Europe/London")})
			h.accept()
			h.runTanks()
			h.acceptHeat(tank, pump)

			order := asks("2026-01-15T04:30:00Z", "2026-01-15T05:00:00Z", -20_000)
			if sites > 1 {
				order.Price = flex.FromGBPPerMWh(300)
			}
			in := h.send(order)
			kinds := map[flex.AssetID]string{}
			sum := flex.WattHours(0)

			for _, a := range in.Assets {
				kinds[a.AssetID] = map[bool]string{a.Heater: "heater", a.Battery: "battery"}[true]
				sum += a.Change[0]
			}
			want := map[flex.AssetID]string{battery: "battery", tank: "heater", pump: "heater", h.asset: ""}
			if sites == 1 {
				delete(want, battery) // beside the car it charges earlier, as nothing was sent to it before
			}

			for id, kind := range want {
				if got, is := kinds[id]; !is || got != kind {
					t.Errorf("%d sites: %q is called as %q: %+v", sites, kind, got, in.Assets)
				}
			}
			if len(sitesOf(in)) != sites || in.Slots[0].Given != sum || sum < 5500 {
				t.Errorf("%d Wh of %d at %d sites, not %d", in.Slots[0].Given, sum, len(sitesOf(in)), sites)
			}

			r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
			if err != nil || r.Slots[0].Baseline-r.Slots[0].Expected < sum-4 || r.Slots[0].Baseline-r.Slots[0].Expected > sum+4 {
				t.Errorf("%v: %+v of %d", err, r.Slots[0], sum)
			}

			for _, a := range r.Assets { // a heater is never paid, the others where the instruction says what
				kind := want[a.AssetID]
				if kind == "" {
					kind = "car"
				}
				if paid := a.NotPaid == ""; string(a.Kind) != kind || paid != (sites > 1 && kind != "heater") {
					t.Errorf("%d sites: %q is reported as %q, not paid %q", sites, kind, a.Kind, a.NotPaid)
				}
			}

			if again, err := h.service.PreviewInstruction(h.Context(), h.Org, in.Instruction); err != nil || again.NumBusy != len(want) || len(again.Assets) != 0 {
				t.Errorf("%v: %d are busy, %d called again", err, again.NumBusy, len(again.Assets))
			}
			h.goTo("2026-01-15T04:00:00Z")
			if n := h.count(h.site); n.Day != 1 {
				t.Errorf("the site had %d calls", n.Day)
			}
			h.clean()
		})
	}
}

// TestInstruction_HeatFollows has a client not take what a tank was sent: another is called in its place, and one of the two is released
// once both follow, which has its plan back.
func TestInstruction_HeatFollows(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(ids...)
		in := h.send(asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000))
		if len(in.Assets) != 1 {
			t.Fatalf("%d are called", len(in.Assets))
		}

		look := func() int {
			t.Helper()
			h.wait(30 * time.Second)
			r, err := h.service.FollowInstructionsOf(h.Context(), h.Org)
			if err != nil {
				t.Fatal(err)
			}
			return r.Count
		}

		if n := look(); n != 1 {
			t.Fatalf("%d are called where nothing was accepted", n)
		}
		h.acceptHeat(ids...) // late
		if n := look(); n != 1 {
			t.Fatalf("%d are released where both follow", n)
		}
		if n := look(); n != 0 {
			t.Errorf("%d are called or released with nothing to do", n)
		}

		r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil || len(r.Assets) != 2 {
			t.Fatal(r, err)
		}
		for _, a := range r.Assets {
			p := h.tankPlan(a.AssetID)
			if heats := onAtNow(p, h.db.Now()); heats != !a.ReleasedAt.IsZero() {
				t.Errorf("released at %v, heats: %t, %v", a.ReleasedAt, heats, p.Steps)
			}
		}
		h.clean()
	})
}

// onAtNow reports whether a plan has a heater on at an instant.
func onAtNow(p store.TankPlan, now time.Time) bool {
	for _, s := range p.Steps {
		if s.Contains(now) {
			return s.Limit > 0
		}
	}
	return true
}

// TestInstruction_HeatStopped stops an instruction before it begins, while it binds, twice, and after its end: the heater returns to what it
// would do without, at once, and after the end nothing changes.
func TestInstruction_HeatStopped(t *testing.T) {
	for _, c := range []struct {
		name, at string
		sent     int64 // schedules in all
		on       bool  // before 05:30
	}{
		{"before", "2026-01-15T01:00:00Z", 3, true},
		{"while it binds", "2026-01-15T04:40:00Z", 3, true},
		{"after", "2026-01-15T05:31:00Z", 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.heater("tank")

				before := h.heatIn(id, at("2026-01-15T04:00:00Z"), 4)
				in := h.send(asks("2026-01-15T04:30:00Z", "2026-01-15T05:30:00Z", -3000))
				h.acceptHeat(id)
				h.heatUntil(c.at)
				if got := h.heatIn(id, at("2026-01-15T04:30:00Z"), 2); before[1] != 1500 || c.name == "before" && (got[0] != 0 || got[1] != 0) {
					t.Fatalf("called it draws %v, without %v", got, before)
				}

				for range 2 {
					if n, err := h.service.StopInstructions(h.Context(), h.Org, "Bob"); err != nil || n > 1 {
						t.Fatal(n, err)
					}
					if _, err := h.service.StopInstruction(h.Context(), h.Org, in.ID, "Bob"); err != nil {
						t.Fatal(err)
					}
				}

				p := h.tankPlan(id)
				if p.Generation != c.sent || onAtNow(p, at("2026-01-15T05:15:00Z")) != c.on {
					t.Errorf("generation %d, %v at %v", p.Generation, p.Steps, h.db.Now())
				}
				if c.name == "before" {
					if got := h.heatIn(id, at("2026-01-15T04:00:00Z"), 4); got[1] != before[1] || got[2] < before[2]-1 || got[2] > before[2]+1 {
						t.Errorf("it draws %v, not %v", got, before)
					}
				}
				h.clean()
			})
		})
	}
}

// TestInstruction_HeatLeftOut has heaters that bring nothing: what they heat would get cold, their fuse carries nothing more, their household
// agreed to no calls, they are not under control, or their plan does nothing then.
func TestInstruction_HeatLeftOut(t *testing.T) {
	const narrow = `{"low_mc":19000,"high_mc":19500,"setpoint_mc":19400,"steering":"sg_ready"}`
	less := asks("2026-01-15T16:00:00Z", "2026-01-15T17:00:00Z", -3000)
	more := asks("2026-01-15T16:00:00Z", "2026-01-15T17:00:00Z", 3000)

	for _, c := range []struct {
		name, heat   string
		in           flex.Instruction
		but          func(h *fixture, id flex.AssetID)
		called, idle int
		sites        int
	}{
		{"it is called", pumpReady, more, func(*fixture, flex.AssetID) {}, 1, 0, 0},
		{"comfort forbids it", narrow, asks("2026-01-14T23:00:00Z", "2026-01-15T00:00:00Z", -3000), func(h *fixture, id flex.AssetID) {
			h.read(id, flex.OutdoorTemperature, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", -12)
			h.read(id, flex.RoomTemperature, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 19.1)
			h.Exec(`UPDATE tank_plan SET planned_at = 0`)

			h.runTanks()
		}, 0, 1, 0},
		{"it does nothing then", "tank", less, func(*fixture, flex.AssetID) {}, 0, 1, 0},
		{"the fuse carries nothing more", pumpReady, more, func(h *fixture, _ flex.AssetID) {
			h.Exec(`UPDATE site SET import_w = 2000, supply_set = TRUE WHERE id = $1`, h.site.Bytes())
		}, 0, 1, 0},
		{"no call was agreed to", pumpReady, more, func(h *fixture, _ flex.AssetID) { h.agree(h.site, 0, -1) }, 0, 0, 1},
		{"it is excluded", pumpReady, more, func(h *fixture, id flex.AssetID) { h.pumpFreed(id) }, 0, 0, 0},
		{"it is never planned", pumpReady, more, func(h *fixture, id flex.AssetID) {
			h.Exec(`DELETE FROM outbox`)

			h.Exec(`DELETE FROM tank_plan`)
		}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.heater(c.heat)
				c.but(h, id)
				p, err := h.service.PreviewInstruction(h.Context(), h.Org, c.in)
				if err != nil || len(p.Assets) != c.called || p.NumIdle != c.idle || p.SpentSites != c.sites {
					t.Errorf("%v: %d called, %d idle, %d sites left out: %+v", err, len(p.Assets), p.NumIdle, p.SpentSites, p.Assets)
				}
			})
		})
	}
}

// TestInstruction_HeatFair calls the heater of the site that was called less often, though it costs more.
func TestInstruction_HeatFair(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		first := h.send(asks("2026-01-15T04:30:00Z", "2026-01-15T05:00:00Z", -1000))
		second := h.send(asks("2026-01-15T08:00:00Z", "2026-01-15T08:30:00Z", -1000))
		if len(first.Assets) != 1 || len(second.Assets) != 1 || first.Assets[0].SiteID == second.Assets[0].SiteID {
			t.Errorf("%v: called %+v, then %+v", ids, first.Assets, second.Assets)
		}
	})
}

// TestInstruction_HeatReport has what a heater's own readings of its power say beside what was asked for: in half-hours, and in the minutes
// that they cover; without readings nothing is metered.
func TestInstruction_HeatReport(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.heater("tank")
		in := h.send(asks("2026-01-15T04:30:00Z", "2026-01-15T05:30:00Z", -3000))
		h.acceptHeat(id)
		h.heatUntil("2026-01-15T05:10:00Z")
		report := h.service.ReportInstructionMinutes
		r, err := report(h.Context(), h.Org, in.ID)
		if err != nil || r.Slots[0].NumMetered != 0 || r.Slots[0].Baseline != 1500 || r.Slots[0].Expected != 0 || r.Minutes[0].Baseline != 50 {
			t.Fatalf("%v: %+v, %+v", err, r.Slots, r.Minutes[0])
		}

		for k := range 6 {
			from := at("2026-01-15T04:30:00Z").Add(time.Duration(k) * 5 * time.Minute)
			h.read(id, flex.HeatPower, from.Format(time.RFC3339), from.Add(5*time.Minute).Format(time.RFC3339), 0.6)
		}
		r, err = report(h.Context(), h.Org, in.ID)
		if err != nil || r.Slots[0].NumMetered != 1 || r.Slots[0].Metered != 300 || r.Slots[1].NumMetered != 0 {
			t.Errorf("%v: %+v", err, r.Slots)
		}
		if m := r.Assets[0].Minutes.Metered; !m[0].Given || m[0].Value != 10 || !m[29].Given || m[30].Given {
			t.Errorf("%+v", m[:31])
		}

		// Of what it was to leave out it left out four fifths: somebody else is to make up for the rest.
		h.goTo("2026-01-15T05:00:30Z")
		p, err := h.service.FollowInstructionsOf(h.Context(), h.Org)
		if err != nil || p.Count != 0 {
			t.Errorf("%v: %d were called", err, p.Count)
		}
	})
}

// TestInstruction_HeatClockChanges calls heaters in the hours in which the clock changes: they are half-hours like others.
func TestInstruction_HeatClockChanges(t *testing.T) {
	for _, day := range []string{"2026-03-29", "2026-10-25"} {
		for _, heat := range []string{"tank", pumpReady} {
			for _, change := range []flex.Watts{-3000, 3000} {
				one(t, day+"T00:10:00Z", func(h *fixture) {
					id := h.heater(heat)
					in := asks(day+"T00:30:00Z", day+"T02:30:00Z", change)
					before := h.heatIn(id, in.From, 6)
					sent := h.send(in)
					if len(sent.Slots) != 4 {
						t.Fatalf("%d half-hours", len(sent.Slots))
					}

					if len(sent.Assets) == 0 && change > 0 {
						t.Errorf("%s is not called to draw more than %v", heat, before)
					}

					h.heatUntil(day + "T01:10:00Z")
					rest := in
					rest.From = in.From.Add(time.Hour)
					h.keepsCall(rest, before[2:], h.heatIn(id, rest.From, 4), nil)
					if r, err := h.service.ReportInstruction(h.Context(), h.Org, sent.ID); err != nil || len(r.Slots) != 6 {
						t.Errorf("%v: %+v", err, r)
					}
					h.heatUntil(day + "T05:00:00Z")
					h.clean()
				})
			}
		}
	}
}

// TestInstruction_HeatWaits sends and stops an instruction within a transaction: the heater is planned after it, by the job that plans heaters. Until then it
// counts as one that has not accepted yet, so that nobody else is called, and once it is stopped it has its best plan back.
func TestInstruction_HeatWaits(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(ids...)
		was := map[flex.AssetID]store.TankPlan{ids[0]: h.tankPlan(ids[0]), ids[1]: h.tankPlan(ids[1])}
		var sent *control.Preview
		h.write(func(tx *store.Tx) error {
			var err error
			sent, err = h.service.InstructWithin(h.Context(), tx, asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000))
			return err
		})

		if len(sent.Assets) != 1 {
			t.Fatalf("%d are called", len(sent.Assets))
		}

		id := sent.Assets[0].AssetID
		look := func(wait time.Duration) int {
			t.Helper()
			h.wait(wait)
			r, err := h.service.FollowInstructionsOf(h.Context(), h.Org)
			if err != nil {
				t.Fatal(err)
			}
			return r.Count
		}

		if n := look(5 * time.Second); n != 0 || h.tankPlan(id).Generation != was[id].Generation {
			t.Fatalf("%d are called before the heater is planned, at generation %d", n, h.tankPlan(id).Generation)
		}
		h.runTanks()
		if p := h.tankPlan(id); p.Generation != was[id].Generation+1 || onAtNow(p, h.db.Now()) {
			t.Fatalf("the job planned generation %d: %v", p.Generation, p.Steps)
		}
		h.acceptHeat(id)
		if n := look(30 * time.Second); n != 0 {
			t.Errorf("%d are called beside one that follows", n)
		}

		h.write(func(tx *store.Tx) error { return h.service.StopWithin(h.Context(), tx, sent.ID, "Bob") })
		if p := h.tankPlan(id); !p.Released || p.Generation != was[id].Generation+1 {
			t.Errorf("released %t, generation %d", p.Released, p.Generation)
		}
		h.runTanks()
		if p := h.tankPlan(id); p.Released || !onAtNow(p, h.db.Now()) {
			t.Errorf("released %t, %v", p.Released, p.Steps)
		}
		h.clean()
	})
}

// TestInstruction_HeatWaitsLimit is TestInstruction_HeatWaits of a limit: what is planned without the instruction is the same whether or not the called
// heater was planned, so that nobody else is called.
func TestInstruction_HeatWaitsLimit(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(ids...)
		in := asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000)
		p, err := h.service.PreviewInstruction(h.Context(), h.Org, in)
		if err != nil {
			t.Fatal(err)
		}

		in.Change, in.Limit = 0, new(flex.Watts(p.Slots[0].Planned*60/25)-2000)
		h.write(func(tx *store.Tx) error {
			p, err = h.service.InstructWithin(h.Context(), tx, in)
			return err
		})
		if len(p.Assets) != 1 {
			t.Fatalf("%d are called", len(p.Assets))
		}
		h.wait(5 * time.Second)
		if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || r.Count != 0 {
			t.Errorf("%v: %d are called before the heater is planned", err, r.Count)
		}
	})
}

// TestInstruction_HeatNeverPlanned has a called heater that nobody plans: after a moment another is called in its place.
func TestInstruction_HeatNeverPlanned(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := []flex.AssetID{h.heater("tank"), h.heater("tank")}
		h.heatUntil("2026-01-15T04:35:00Z")
		h.acceptHeat(ids...)
		h.write(func(tx *store.Tx) error {
			_, err := h.service.InstructWithin(h.Context(), tx, asks("2026-01-15T04:35:00Z", "2026-01-15T05:00:00Z", -2000))
			return err
		})
		h.wait(30 * time.Second)
		if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || r.Count != 1 {
			t.Errorf("%v: %d are called", err, r.Count)
		}
	})
}
