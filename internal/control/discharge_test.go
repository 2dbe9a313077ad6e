package control_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// mayDischarge has the fixture's car have a battery of 60 kWh and give 5 kW, all that it takes being agreed. What is
// given earns 30 p, what is charged at night costs 9.
func (h *fixture) mayDischarge() {
	h.Helper()
	h.discharges(h.asset)
	h.Exec(`UPDATE site SET discharge_consent_at = $2 WHERE id = $1`, h.site.Bytes(), at("2026-01-01T00:00:00Z").UnixMicro())
	h.exports(30)
	h.endpoint(flex.NegativeLimits)
}

// discharges has a charger's car give 5 kW of 60 kWh.
func (h *fixture) discharges(id flex.AssetID) {
	h.Exec(`UPDATE asset SET capacity_wh = 60000, discharge = '{"power_w":5000}' WHERE id = $1`, id.Bytes())
}

func (h *fixture) endpoint(form flex.DischargeForm) {
	h.write(func(tx *store.Tx) error {
		_, err := tx.PutEndpoint(h.Context(), flex.Endpoint{
			Name:      flex.ScheduleEndpoint,
			URL:       "https://client.example/schedule",
			Enabled:   true,
			Discharge: form,
		})
		return err
	})
}

// soc reads the fixture's car's state of charge, in percent, as of now.
func (h *fixture) soc(percent float64) {
	now := time.UnixMicro(h.micro.Load()).UTC().Format(time.RFC3339)
	h.read(h.asset, flex.BatteryStateOfCharge, now, now, percent)
}

// gave is what the schedule in force has the fixture's car give, in all.
func (h *fixture) gives() (sum flex.WattHours) {
	if d := h.look().Current.From.Discharge; d != nil {
		for _, s := range d.Discharges {
			sum += flex.WattHours(float64(s.Limit) * s.Len().Hours())
		}
	}

	return sum
}

// householdSays holds what its household is told of the car that gives: the least that it keeps and how full it will
// be, in %, and that it charges at no time at which it gives.
func (h *fixture) householdSays(reserve, full int) {
	h.Helper()
	home, err := h.service.Household(h.Context(), h.Org, h.site)
	if err != nil {
		h.Fatal(err)
	}

	car := home.Cars[0]
	if len(car.Discharging) == 0 || car.Reserve != reserve || car.ReadyLevel != full {
		h.Errorf("it gives %v, keeps %d %% and will be %d %% full", car.Discharging, car.Reserve, car.ReadyLevel)
	}

	for _, given := range car.Discharging {
		for _, charged := range car.Charging {
			if !given.Meet(charged).Empty() {
				h.Errorf("it gives %v and charges %v", given, charged)
			}
		}
	}
}

// why is why the fixture's car is charged alone; empty if it gives or was never said to.
func (h *fixture) why() string {
	if d := h.look().Current.From.Discharge; d != nil {
		return d.Why
	}

	return ""
}

// holds plays what was sent to the fixture's car from an instant on, from what it stores, and returns the least that it
// held while it gave and what it holds by an instant. It loses what is assumed.
func (h *fixture) plays(from, to string, stored float64) (least, end float64) {
	s := h.look().Current
	least = stored

	for t := at(from); t.Before(at(to)); t = t.Add(time.Minute) {
		takes, gives := limitAt(s.Steps, t), flex.Watts(0)

		if s.From.Discharge != nil {
			gives = limitAt(s.From.Discharge.Discharges, t)
		}

		if takes > 0 && gives > 0 {
			h.Errorf("it takes and gives at %v", t)
		}

		stored += float64(min(takes, s.From.Power)) / 60 * 0.9
		stored = min(stored, 60000)

		if gives > 0 {
			stored -= float64(gives) / 60 / 0.9
			least = min(least, stored)
		}
	}

	return least, stored
}

func limitAt(steps []flex.Step, at time.Time) flex.Watts {
	for _, s := range steps {
		if s.Contains(at) {
			return s.Limit
		}
	}

	return 0
}

func (h *fixture) plugInAt(kwh float64, mode flex.ChargingMode) {
	h.event(control.Event{
		Kind:   control.PlugIn,
		Tariff: nightTariff("Europe/London"),
		Intent: need(kwh, mode),
	})
}

// TestDischarge has a car give in the evening what it buys back at night, and end with what it needs and its reserve if nothing
// more is heard; and get the schedule of today without any of what it takes.
func TestDischarge(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)

		if h.gives() < 12000 {
			t.Fatalf("it gives %d Wh: %s", h.gives(), h.why())
		}

		least, end := h.plays("2026-01-14T17:00:00Z", "2026-01-15T07:00:00Z", 36000)

		if least < 18000-10 || end < 36000+9000-10 {
			t.Errorf("it holds %.0f Wh at least, and %.0f in the end", least, end)
		}

		d := h.look().Current.From.Discharge

		if d.Saves < control.DischargeMinSaving || len(d.Parts) == 0 || d.Parts[0].Price != 30 || d.Parts[0].Back < 8.9 || d.Parts[0].Back > 9.1 {
			t.Errorf("%+v", d)
		}

		x := h.explanation()

		if !x.Exact || !strings.Contains(x.Summary, "at 30.0 p") || !strings.Contains(x.Summary, "buys it back at 9.0 p on average") || x.Discharge.Reserve != 18000 {
			t.Errorf("exact %v: %s", x.Exact, x.Summary)
		}

		h.householdSays(30, 75)
		below := 0

		for _, s := range x.Schedule.Limits() {
			if s.Limit < 0 {
				below++
			}
		}

		for _, p := range x.Plan.Periods {
			if taken := p.Energy; taken < 0 && !strings.Contains(p.Reason.String(), "gives") || taken > 0 && p.Energy > 3700 {
				t.Errorf("%v takes %d Wh: %v", p.From, taken, p.Reason)
			}
		}

		if below == 0 || !strings.Contains(x.Prose(), "that earns more than the wear") {
			t.Errorf("%d limits below zero\n%s", below, x.Prose())
		}

		before := h.look().Current.Generation
		h.wait(5 * time.Minute)
		h.refresh()

		if h.look().Current.Generation != before {
			t.Error("planned again, it is sent the same again")
		}

		// What it gave in an hour is kept for settlement.
		gave := h.gives()
		h.goTo("2026-01-14T18:00:00Z")
		h.event(control.Event{Kind: control.PlugOut})
		kept := h.Strings(`SELECT CAST(given_wh AS TEXT) FROM reckoning`)

		if len(kept) != 1 || kept[0] != "5000" || gave < 12000 {
			t.Errorf("%v Wh are kept of %d", kept, gave)
		}
	})
}

// refresh has the fixture's car planned anew for its inputs.
func (h *fixture) refresh() {
	h.Helper()
	h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) })
	if _, err := h.service.PlanDue(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// TestDischarge_Alone has cars charged alone that lack something of what it takes, each with its reason, and all of them by the
// steps that a car gets which was never said to discharge.
func TestDischarge_Alone(t *testing.T) {
	plain := func(h *fixture) []flex.Step {
		h.plugInAt(10, flex.Minimise)

		return h.look().Current.Steps
	}

	// of those that are planned as if they were never said to discharge
	lacking := map[string]string{
		"no consent":      "its site's user had not consented to it",
		"an old endpoint": "the endpoint for schedules took none with discharge",
		"no capacity":     "the capacity of its battery was not known",
	}

	for name, c := range map[string]struct {
		lack func(*fixture)
		why  string
	}{
		"no consent": {
			func(h *fixture) {
				h.Exec(`UPDATE site SET discharge_consent_at = NULL`)

				h.soc(60)
			},
			"",
		},
		"an old endpoint": {
			func(h *fixture) {
				h.endpoint(flex.NoDischarge)
				h.soc(60)
			},
			"",
		},
		"no power": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET discharge = NULL`)

				h.soc(60)
			},
			"",
		},
		"no capacity": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET capacity_wh = NULL`)

				h.soc(60)
			},
			"",
		},
		"nothing read": {func(h *fixture) {}, "not read in the last two hours"},
		"read before": {
			func(h *fixture) {
				h.soc(60)
				h.wait(11 * time.Minute)
			},
			"not read in the last two hours",
		},
		"no export": {
			func(h *fixture) {
				h.Exec(`UPDATE site SET export_w = 0, supply_set = TRUE`)

				h.soc(60)
			},
			"may not export",
		},
		"no time": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET power_w = 1600`)
				h.soc(60)
			},
			"all the time in which it may charge is needed",
		},
		"no more than the reserve": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET discharge = '{"power_w":5000,"reserve_pct":100}'`)

				h.soc(60)
			},
			"kept as its reserve",
		},
		"too weak": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET discharge = '{"power_w":490}'`)
				h.soc(60)
			},
			"less than any car is asked",
		},
		"little to gain": {
			func(h *fixture) {
				h.exports(16.15)

				h.Exec(`UPDATE asset SET discharge = '{"power_w":5000,"reserve_pct":59}'`)
				h.soc(60)
			},
			"saves 2 p or more",
		},
		"no gain": {
			func(h *fixture) {
				h.exports(15)
				h.soc(60)
			},
			"earn less in each half-hour",
		},
		"a battery beside": {
			func(h *fixture) {
				h.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, h.Asset(h.site, flex.Battery, 5000).Bytes())

				h.soc(60)
			},
			"home battery that is not planned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mayDischarge()
				c.lack(h)
				steps := plain(h)

				if h.gives() > 0 || !strings.Contains(h.why(), c.why) || c.why == "" && h.why() != "" {
					t.Errorf("it gives %d Wh: %s", h.gives(), h.why())
				}

				if lacks := h.look().Current.From.ChargesOnly; lacks != lacking[name] {
					t.Errorf("it lacks %q, not %q", lacks, lacking[name])
				}

				if said := "because when this was planned " + lacking[name]; lacking[name] != "" && !strings.Contains(h.explanation().Summary, said) {
					t.Error(h.explanation().Summary)
				}

				power := h.look().Current.From.Power
				other := h.at(h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, power))

				if want := plain(other); !sameSteps(steps, want) {
					t.Errorf("%v\nnot as a car that was never said to discharge:\n%v", steps, want)
				}
			})
		})
	}
}

func sameSteps(a, b []flex.Step) bool {
	if len(a) != len(b) {
		return false
	}

	for i := range a {
		if !a[i].From.Equal(b[i].From) || !a[i].To.Equal(b[i].To) || a[i].Limit != b[i].Limit {
			return false
		}
	}

	return true
}

// TestDischarge_Changes has a car stop giving as soon as it may not any more, and end with what it needs by what was pushed
// then, though it gave until then.
func TestDischarge_Changes(t *testing.T) {
	for name, c := range storetest.InOrder(map[string]struct {
		change func(*fixture)
		why    string
	}{
		"consent withdrawn": {func(h *fixture) {
			h.write(func(tx *store.Tx) error { return tx.SetDischargeConsent(h.Context(), h.site, time.Time{}) })

			h.refresh()
		}, "does not permit it any more"},
		"charge now": {func(h *fixture) {
			h.event(control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-14T19:00:00Z")})
		}, "charges at once"},
		"a traded position": {
			func(h *fixture) {
				traded := flex.Traded{Period: flex.PeriodAt(at("2026-01-15T02:00:00Z")), Energy: 1000}
				h.setCaps(flex.Caps{Position: []flex.Traded{traded}})

				h.refresh()
			},
			"traded a position",
		},
		"export is worth nothing": {
			func(h *fixture) {
				h.exports(1)

				h.refresh()
			},
			"earn less in each half-hour",
		},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mayDischarge()
				h.soc(60)
				h.plugInAt(10, flex.Minimise)
				h.accept()
				h.goTo("2026-01-14T18:00:00Z")
				c.change(h)

				if h.gives() > 0 || !strings.Contains(h.why(), c.why) {
					t.Fatalf("it gives %d Wh: %s", h.gives(), h.why())
				}
				// It gave 5 kW for an hour.
				_, end := h.plays("2026-01-14T18:00:00Z", "2026-01-15T07:00:00Z", 36000-5000/0.9)

				if end < 45000-10 {
					t.Errorf("it holds %.0f Wh in the end", end)
				}
			})
		})
	}
}

// TestDischarge_Sooner has the departure of a car brought forward while it gives, by a new intent: what it gave since its state of
// charge was read is met first.
func TestDischarge_Sooner(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.accept()
		h.goTo("2026-01-14T18:30:00Z")
		intent := need(10, flex.Minimise)
		wall := flex.WallTime(21*time.Hour + 30*time.Minute)
		intent.ReadyByLocal, intent.MayChargePeak = &wall, true
		h.event(control.Event{Kind: control.IntentUpdate, Intent: intent})
		gave := 1.5 * 5000 / 0.9

		if _, end := h.plays("2026-01-14T18:30:00Z", "2026-01-14T21:30:00Z", 36000-gave); end < 45000-10 || h.gives() > 0 {
			t.Errorf("it holds %.0f Wh by 21:30, and gives %d", end, h.gives())
		}
	})
}

// TestDischarge_NothingTaken has schedules that give made of which none is taken, so that the car holds more than they come to, and
// then a new intent, whose schedule it follows. Read, and planned again, it still ends with what was asked for.
func TestDischarge_NothingTaken(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.goTo("2026-01-14T18:00:00Z")
		h.exports(35)
		h.Exec(`UPDATE asset SET discharge = '{"power_w":4000}' WHERE id = $1`, h.asset.Bytes())
		h.refresh()

		before := h.look().Current
		if before.From.Discharge.Stored > 32000 || h.gives() == 0 {
			t.Fatalf("nothing is tried: it is thought to hold %d Wh", before.From.Discharge.Stored)
		}

		h.goTo("2026-01-14T18:30:00Z")
		h.event(control.Event{Kind: control.IntentUpdate, Intent: need(12, flex.Minimise)})
		h.accept()
		s, stored := h.look().Current, 36000.0
		read := at("2026-01-14T19:30:00Z")

		for now := at("2026-01-14T18:30:00Z"); now.Before(read); now = now.Add(time.Minute) {
			stored -= float64(limitAt(s.From.Discharge.Discharges, now)) / 60 / 0.9
		}

		h.goTo(read.Format(time.RFC3339))
		h.soc(stored / 600)
		h.refresh()

		if _, end := h.plays(read.Format(time.RFC3339), "2026-01-15T07:00:00Z", stored); end < 36000+12*900-10 {
			t.Errorf("it held %.0f Wh when 12 kWh were asked for, %.0f when it was read, and holds %.0f in the end", 36000.0, stored, end)
		}
	})
}

// TestDischarge_TakenLate has a schedule taken 40 minutes late, while the car gives on by the one before. Planned again then,
// what it gave meanwhile is met too; as the late one stands, it is not.
func TestDischarge_TakenLate(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.accept()
		h.goTo("2026-01-14T17:30:00Z")
		intent := need(10, flex.Minimise)
		wall := flex.WallTime(23*time.Hour + 30*time.Minute)
		intent.ReadyByLocal, intent.MayChargePeak = &wall, true
		h.event(control.Event{Kind: control.IntentUpdate, Intent: intent})

		const late, by = "2026-01-14T18:10:00Z", "2026-01-14T23:30:00Z"
		h.goTo(late)
		h.acceptAt(at(late))
		stored := 36000 - 70.0/60*5000/0.9

		if _, end := h.plays(late, by, stored); end > 45000-1000 {
			t.Fatalf("it holds %.0f Wh by 23:30 without being planned again: nothing is tried", end)
		}

		h.refresh()

		if _, end := h.plays(late, by, stored); end < 45000-10 {
			t.Errorf("it holds %.0f Wh by 23:30", end)
		}
	})
}

// TestDischarge_Maximise has a car that maximises give in peak time alone, and charge in every off-peak second.
func TestDischarge_Maximise(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Maximise)
		s := h.look().Current

		if h.gives() < 12000 {
			t.Fatalf("it gives %d Wh: %s", h.gives(), h.why())
		}

		if limitAt(s.Steps, at("2026-01-14T23:30:00Z")) == 0 || limitAt(s.Steps, at("2026-01-15T05:29:00Z")) == 0 || limitAt(s.Steps, at("2026-01-14T18:00:00Z")) > 0 {
			t.Errorf("%v", s.Steps)
		}
	})
}

// TestDischarge_TwoCars has two cars of a site give no more together than may be exported, whichever of their schedules they
// follow.
func TestDischarge_TwoCars(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.Exec(`UPDATE site SET export_w = 7000 WHERE id = $1`, h.site.Bytes())
		first, second := h.asset, h.Asset(h.site, flex.Charger, 7400)
		h.discharges(second)

		for _, id := range []flex.AssetID{first, second} {
			h.at(id).soc(60)
			h.at(id).plugInAt(10, flex.Minimise)
		}

		most := func(id flex.AssetID) (most flex.Watts) {
			if d := h.at(id).look().Current.From.Discharge; d != nil {
				for _, s := range d.Discharges {
					most = max(most, s.Limit)
				}
			}

			return most
		}

		if a, b := most(first), most(second); a != 5000 || b != 2000 {
			t.Errorf("they give %d and %d W of 7000: %s, %s", a, b, h.at(first).why(), h.at(second).why())
		}
	})
}

// TestDischarge_Random plays random evenings: what was pushed last always brings the car to its need and keeps its reserve, whatever
// of it was accepted, read or changed, by a model that shares no code with the planner.
func TestDischarge_Random(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		r := rand.New(rand.NewPCG(14, 11))
		gave := 0

		for range 12 {
			gave += h.randomEvening(r)
		}

		if gave < 4 {
			t.Errorf("%d of 12 cars gave", gave)
		}
	})
}

// randomEvening plays one, and returns 1 if the car gave anything.
func (h *fixture) randomEvening(r *rand.Rand) (gave int) {
	h.goTo("2026-01-14T17:00:00Z")
	h.site = h.Site(flex.FullScheduleMethod)
	h.asset = h.Asset(h.site, flex.Charger, 7400)
	h.mayDischarge()

	stored, kwh := 60000*(0.2+0.7*r.Float64()), float64(2+r.IntN(12))
	h.soc(stored / 600)
	h.plugInAt(kwh, flex.Minimise)
	h.accept()
	follows := h.look().Current
	needs := min(60000, stored+kwh*900)

	for range 3 + r.IntN(4) {
		if h.gives() > 0 {
			gave = 1
		}

		for range 10 + r.IntN(110) { // the car does what its charger was sent
			t := time.UnixMicro(h.micro.Load()).UTC()
			takes := min(limitAt(follows.Steps, t), 7400)
			stored = min(60000, stored+float64(takes)/60*0.9)

			if d := follows.From.Discharge; d != nil {
				stored -= float64(limitAt(d.Discharges, t)) / 60 / 0.9
			}

			h.wait(time.Minute)
		}

		now := time.UnixMicro(h.micro.Load()).UTC()
		did := ""

		switch r.IntN(6) {
		case 0:
			did = "read"
			h.soc(stored / 600)
			h.refresh()
		case 1:
			did = "intent"
			next := float64(1 + r.IntN(10))
			if next != kwh { // the same again asks for nothing more
				kwh = next
				needs = min(60000, stored+kwh*900)
			}

			h.event(control.Event{Kind: control.IntentUpdate, Intent: need(kwh, flex.Minimise)})
		case 2:
			did = "prices"
			h.exports(float64(5 + r.IntN(40)))
			h.refresh()
		case 3:
			did = "withdrawn"
			h.write(func(tx *store.Tx) error { return tx.SetDischargeConsent(h.Context(), h.site, time.Time{}) })

			h.refresh()
		case 4:
			did = "charge now"
			h.event(control.Event{Kind: control.ChargeNow, EndAt: now.Add(40 * time.Minute)})
		case 5:
			did = "planned again"
			h.refresh()
		}

		newest := h.look().Current
		if now.Sub(newest.MadeAt) < 30*time.Second || newest.Generation == follows.Generation {
			h.brings(did, now, stored, needs)
		}

		if r.IntN(3) > 0 && newest.Generation > follows.Generation {
			h.acceptAt(now)
			follows = newest
			if now.Sub(newest.MadeAt) > 30*time.Second { // the delivery of one that is taken late has it planned again
				h.refresh()
				h.brings(did+" and late acceptance", now, stored, needs)
			}
		}
	}

	return gave
}

// brings holds what the fixture's car was sent last, from an instant on and from what it stores, against what it needs and its
// reserve.
func (h *fixture) brings(did string, now time.Time, stored, needs float64) {
	h.Helper()
	least, end := h.plays(now.Format(time.RFC3339), "2026-01-15T07:00:00Z", stored)
	if end < needs-150 || least < min(18000, stored)-150 && h.gives() > 0 {
		h.Fatalf("%s at %v: it holds %.0f Wh, of %.0f needed %.0f in the end, %.0f at least\n%+v", did, now, stored, needs, end, least, h.look().Current.From.Discharge)
	}
}

// TestDischarge_Reasons holds the reason of each period of a car that gives against what it does there, and what it would do
// alone; and the figures of its plan against its periods.
func TestDischarge_Reasons(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		x, car := h.explanation(), h.asset
		alone := h.at(h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, 7400))
		alone.plugInAt(10, flex.Minimise)
		other := alone.explanation()
		count := map[charge.Reason]int{}
		taken, cost := flex.WattHours(0), flex.MicroPounds(0)

		for i, p := range x.Plan.Periods {
			by := other.Plan.Periods[i].Energy
			count[p.Reason]++
			taken += max(0, p.Energy)
			cost += p.Price.Of(p.Energy)

			right := map[charge.Reason]bool{
				charge.Discharges: p.Energy < 0,
				charge.BuysBack:   p.Energy > by,
				charge.MovedHere:  p.Energy > by,
				charge.MovedAway:  p.Energy >= 0 && p.Energy < by,
				charge.Rests:      p.Energy == 0,
			}

			if ok, own := right[p.Reason]; own && !ok || !own && p.Energy != by {
				t.Errorf("%v takes %d Wh and alone %d: %v", p.From, p.Energy, by, p.Reason)
			}
		}

		if count[charge.Discharges] == 0 || count[charge.BuysBack]+count[charge.MovedHere] == 0 {
			t.Errorf("%v", count)
		}

		if x.Plan.Energy != taken || x.Plan.Cost != cost || x.Plan.HasThreshold || x.Plan.LowerBound != 0 {
			t.Errorf("%+v, not %d Wh for %d", x.Plan, taken, cost)
		}

		if !strings.Contains(x.Summary, "the need and what the car gives is met") || strings.Contains(x.Summary, "is bought") {
			t.Error(x.Summary)
		}

		// What it gave for an hour is said to be part of the need of the next plan.
		h.at(car).accept()
		h.goTo("2026-01-14T18:00:00Z")
		h.exports(1)
		h.refresh()

		if x := h.explanation(); !strings.Contains(x.Summary, "6.2 of which because of what it may have given before") {
			t.Error(x.Summary)
		}
	})
}

// TestDischarge_Rates has a car give by its site's rates, else by its organisation's, else by none that pay; the explanation
// names each with where it is from, and those that are assumed in a sentence.
func TestDischarge_Rates(t *testing.T) {
	given := func(c string) func(*fixture) {
		return func(h *fixture) { h.Exec(`UPDATE site SET rates = $2 WHERE id = $1`, h.site.Bytes(), c) }
	}

	for name, c := range storetest.InOrder(map[string]struct {
		set     func(*fixture)
		gives   bool
		inputs  string
		assumed string
	}{
		"none": {
			func(*fixture) {},
			false,
			"import 28 default, off_peak 9 default, export 15 default",
			"28, 9, 15 p were assumed",
		},

		"the organisation's": {
			func(h *fixture) { h.exports(30) },
			true,
			"import 28 default, off_peak 9 default, export 30 organisation",
			"28, 9 p were assumed",
		},
		"the organisation's 0": {
			func(h *fixture) { h.exports(0) },
			false,
			"import 28 default, off_peak 9 default, export 0 organisation",
			"28, 9 p were assumed",
		},
		"the site's": {
			given("40,7.5,24"),
			true,
			"import 40 site, off_peak 7.5 site, export 24 site",
			"",
		},
		"the site's before the organisation's": {
			func(h *fixture) {
				h.exports(30)

				given(",8,0")(h)
			},
			false,
			"import 28 default, off_peak 8 site, export 0 site",
			"28 p were assumed",
		},
	}) {
		t.Run(name, func(t *testing.T) {
			eachOf(t, "2026-01-14T17:00:00Z", func(h *fixture) {
				h.mayDischarge()
				h.write(func(tx *store.Tx) error { return tx.SetSettings(h.Context(), flex.OrgSettings{}) })
				c.set(h)
				h.soc(60)
				h.plugInAt(10, flex.Minimise)
				x := h.explanation()
				var inputs []string

				for _, in := range x.Inputs {
					if rate, is := strings.CutSuffix(in.Name, "_p_per_kwh"); is {
						inputs = append(inputs, rate+" "+in.Value+" "+in.Origin)
					}
				}

				if got := strings.Join(inputs, ", "); h.gives() > 0 != c.gives || got != c.inputs {
					t.Errorf("it gives %d Wh by %s", h.gives(), got)
				}

				if !strings.Contains(x.Summary, c.assumed) || c.assumed == "" && strings.Contains(x.Summary, "assumed") {
					t.Error(x.Summary)
				}
			})
		})
	}
}

// TestDischarge_DynamicExport has what is exported under a dynamic tariff earn the site's own rate, if one was given.
func TestDischarge_DynamicExport(t *testing.T) {
	each(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.soc(60)
		h.publish("2026-01-13T17:00:00Z", slices.Repeat([]float64{100}, 48+28)...)
		h.Exec(`UPDATE site SET tariff_type = 'dynamic', rates = ',,90' WHERE id = $1`, h.site.Bytes())
		h.event(control.Event{Kind: control.PlugIn, Intent: need(10, flex.Minimise)})
		d := h.look().Current.From.Discharge

		if d == nil || len(d.Parts) == 0 || d.Parts[0].Price != 90 {
			t.Fatalf("%+v", d)
		}

		if x := h.explanation(); strings.Contains(x.Summary, "assumed") {
			t.Error(x.Summary)
		}
	})
}

// A car that has given nothing is not said to have, also where it was read to hold less than its plan assumed.
func TestDischarge_NothingGiven(t *testing.T) {
	one(t, "2026-01-14T17:00:00Z", func(h *fixture) {
		h.mayDischarge()
		h.exports(1)
		h.soc(60)
		h.plugInAt(10, flex.Minimise)
		h.accept()

		s := h.look().Current.Steps
		first := slices.IndexFunc(s, func(s flex.Step) bool { return s.Limit > 0 })
		h.goTo(s[first].From.Add(30 * time.Minute).Format(time.RFC3339))
		h.soc(61) // it took 3.7 kWh
		h.refresh()

		x := h.explanation()
		if x.From.Delivered >= 3700 || x.From.Discharge.ReadAt.IsZero() {
			t.Fatalf("its state of charge does not count: %+v", x.From)
		}
		if x.From.Discharge.Again != 0 || strings.Contains(x.Summary, "given before") {
			t.Error(x.Summary)
		}
	})
}
