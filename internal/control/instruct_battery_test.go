package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// nightBattery is a battery of 3 kW with 10 kWh at a site of its own, nearly empty, that fills itself from 02:30 to 05:00;
// somebody listens for dispatches.
func (h *fixture) nightBattery() flex.AssetID {
	h.Helper()
	h.site = h.Site(flex.FullScheduleMethod)
	id := h.battery()
	h.listen()
	h.read(id, flex.BatteryStateOfCharge, "2026-01-14T22:35:00Z", "2026-01-14T22:35:00Z", 10)
	h.runBatteries()

	return id
}

// dispatches are the dispatches of an asset in the order in which they were made, with what they ask for.
func (h *fixture) dispatches(id flex.AssetID) string {
	h.Helper()
	var sent []string
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		ds, err := tx.Dispatches(h.Context(), 100)
		for i := len(ds) - 1; i >= 0; i-- {
			d := &ds[i]
			if d.Assets[0].ID != id {
				continue
			}

			does := "nothing"
			if w := d.Assets[0].Power; w > 0 {
				does = "in"
			} else if w < 0 {
				does = "out"
			}
			sent = append(sent, d.From.Format("15:04")+" "+does)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return strings.Join(sent, ", ")
}

// until has batteries be planned each half-hour until an instant.
func (h *fixture) until(instant string) {
	h.Helper()
	for h.db.Now().Before(at(instant)) {
		h.runBatteries()
		next := flex.PeriodAt(h.db.Now()).End()
		h.micro.Store(min(next.UnixMicro(), at(instant).UnixMicro()))
	}
	h.runBatteries()
}

// asks asks an organisation's fleet for a change.
func asks(from, to string, change flex.Watts) flex.Instruction {
	return flex.Instruction{
		Span: flex.Span{From: at(from), To: at(to)}, Change: change, Service: "dno", Who: "Ann",
	}
}

// acceptDispatches has the client accept all dispatches so far.
func (h *fixture) acceptDispatches() {
	h.Helper()
	h.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT d.org_id, d.event_id, 'dispatch', 'dispatch', 1, d.issued_at, 'accepted', 1, d.issued_at, 0, 200, '', '' FROM dispatch d
		WHERE NOT EXISTS (SELECT 1 FROM delivery v WHERE v.event_id = d.event_id)`)
}

// TestInstruction_Battery has a battery that fills itself by night be called: the plan keeps to it, what reaches the battery
// are dispatches, and in the morning it is as full as without.
func TestInstruction_Battery(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     flex.Instruction
		change flex.WattHours // in each half-hour
		modes  battery.Mode   // in each of them
		sent   string         // for them
	}{
		{"it only waits", asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -1800), 1500, battery.ModeLock, "03:00 nothing, 03:30 nothing"},
		{"it gives", asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500), 2999, battery.ModeDischarge, "03:00 out, 03:30 out"},
		{"it fills itself earlier", asks("2026-01-15T00:00:00Z", "2026-01-15T01:00:00Z", 1700), 1500, battery.ModeCharge, "00:00 in, 00:30 in"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.nightBattery()

				before := h.sentTo(id)
				preview, err := h.service.PreviewInstruction(h.Context(), h.Org, c.in)
				if err != nil {
					t.Fatal(err)
				}
				if n := h.Count(`SELECT count(*) FROM dispatch`); n != 0 || h.sentTo(id) != before {
					t.Errorf("a preview changed %s to %s and sent %d", before, h.sentTo(id), n)
				}

				sent := h.send(c.in)
				if len(sent.Assets) != 1 || !sent.Assets[0].Battery || sent.Assets[0].AssetID != id || sent.Cost != preview.Cost || sent.Cost < 0 {
					t.Fatalf("called %+v at %d, previewed at %d", sent.Assets, sent.Cost, preview.Cost)
				}
				for i, e := range sent.Assets[0].Change {
					if e < c.change-5 || e > c.change+5 {
						t.Errorf("%d Wh in half-hour %d, not %d", e, i, c.change)
					}
				}

				for _, when := range []time.Time{c.in.From, c.in.From.Add(30 * time.Minute)} {
					if m := modeAt(h.modes(id), when.Format(time.RFC3339)); m != c.modes {
						t.Errorf("%v at %v: %s", m, when, h.sentTo(id))
					}
				}

				h.until("2026-01-15T06:00:00Z")
				if got := h.dispatches(id); strings.Count(got, c.sent) != 1 || strings.Count(got, "nothing") > 4 {
					t.Errorf("sent %s", got)
				}
				if n := h.Count(`SELECT count(*) FROM dispatch WHERE market = 'dno'`); n != 2 {
					t.Errorf("%d dispatches are for the service, not those of its two half-hours", n)
				}
				why, _, err := h.service.WhyBattery(h.Context(), h.Org, id, nil)
				if err != nil || why.Stored < 7600 { // it would hold 8 kWh without
					t.Errorf("%d Wh in the morning, %v", why.Stored, err)
				}
			})
		})
	}
}

// TestInstruction_BatteryAtOnce calls a battery in a half-hour that was handed over, and stops: what it was sent is replaced, and
// taken back.
func TestInstruction_BatteryAtOnce(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.until("2026-01-15T04:10:00Z")
		was := h.dispatches(id)
		in := h.send(asks("2026-01-15T04:11:00Z", "2026-01-15T05:00:00Z", -3000))
		if got := h.dispatches(id); got != was+", 04:11 out, 04:30 out" || in.Reached() < 0.9 {
			t.Fatalf("%s, after %s; %v reached", got, was, in.Reached())
		}

		h.goTo("2026-01-15T04:20:30Z")
		was = h.dispatches(id)
		for range 2 {
			if _, err := h.service.StopInstruction(h.Context(), h.Org, in.ID, "Bob"); err != nil {
				t.Fatal(err)
			}
			if got := h.dispatches(id); got != was+", 04:20 nothing, 04:30 nothing" {
				t.Errorf("%s, after %s", got, was)
			}
		}

		if got := h.sentTo(id); !strings.HasPrefix(got, "04:00 LOCK, 05:00 CHARGE") {
			t.Errorf("planned %s", got)
		}
	})
}

// TestInstruction_BatteryAhead stops an instruction before anything of it was handed over: nothing is sent, and the plan is
// as it was.
func TestInstruction_BatteryAhead(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		before := h.sentTo(id)
		h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500))
		if n, err := h.service.StopInstructions(h.Context(), h.Org, "Bob"); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if got := h.sentTo(id); len(got) != len(before) || strings.Contains(got, "LOCK") || h.dispatches(id) != "" {
			t.Errorf("planned %s, before %s; sent %s", got, before, h.dispatches(id))
		}
	})
}

// TestInstruction_BatteryFollows has the client not accept what a battery was sent: another one is called in its place, and the
// first released where it brings what it should after all.
func TestInstruction_BatteryFollows(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		ids := map[flex.AssetID]bool{h.nightBattery(): true, h.nightBattery(): true}
		h.until("2026-01-15T04:10:00Z")
		h.acceptDispatches()
		in := h.send(asks("2026-01-15T04:11:00Z", "2026-01-15T05:00:00Z", -1300))
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
		h.acceptDispatches()
		if n := look(); n != 1 {
			t.Errorf("%d are released where both follow", n)
		}

		report, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil || len(report.Assets) != 2 {
			t.Fatal(report, err)
		}

		released := 0
		for _, a := range report.Assets {
			if !ids[a.AssetID] {
				t.Errorf("%v is called", a.AssetID)
			}
			if !a.ReleasedAt.IsZero() {
				released++
			}
		}
		if released != 1 {
			t.Errorf("%d are released", released)
		}
	})
}

// TestInstruction_BatteryReport has what a battery did at its inverter beside what was asked for.
func TestInstruction_BatteryReport(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		in := h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500))
		h.until("2026-01-15T03:40:00Z")
		h.read(id, flex.BatteryInverterPower, "2026-01-15T03:00:00Z", "2026-01-15T03:30:00Z", -2.5)
		r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil {
			t.Fatal(err)
		}

		s := r.Slots[0]
		near := func(e, want flex.WattHours) bool { return e >= want-5 && e <= want+5 }
		if !near(s.Baseline, 1500) || !near(s.Expected, -1500) || s.Metered != -1250 || s.NumMetered != 1 || s.Asked != -1250 {
			t.Errorf("%+v", s)
		}
		if e := r.Assets[0].Metered[0]; !e.Given || e.Value != -1250 || r.Cost != in.Cost {
			t.Errorf("%+v at %d", e, r.Cost)
		}
	})
}

// TestInstruction_BatteryLeftOut has batteries that are not called: nobody listens, their feeder lets nothing out, their household
// agreed to no calls, or another instruction has them.
func TestInstruction_BatteryLeftOut(t *testing.T) {
	in := asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500)
	for _, c := range []struct {
		name   string
		but    func(h *fixture)
		change flex.WattHours
		busy   int
		sites  int
	}{
		{"it is called", func(*fixture) {}, 2999, 0, 0},

		{"nobody listens", func(h *fixture) { h.Exec(`UPDATE endpoint SET enabled = FALSE`) }, 0, 0, 0},
		{"no call was agreed to", func(h *fixture) { h.agree(h.site, 0, -1) }, 0, 0, 1},
		{"another instruction has it", func(h *fixture) { h.send(in) }, 0, 1, 0},
		{"its feeder lets nothing out", func(h *fixture) {
			h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "north", Sites: []flex.SiteID{h.site}}}})
			limit := exportLimit("north", 0, "2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z")

			if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
				h.Fatal(err)
			}
		}, 1500, 0, 0},
		{"its site lets nothing out", func(h *fixture) {
			h.Exec(`UPDATE site SET import_w = 23000, export_w = 0, supply_set = TRUE WHERE id = $1`, h.site.Bytes())
		}, 1500, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				h.nightBattery()

				c.but(h)
				p, err := h.service.PreviewInstruction(h.Context(), h.Org, in)
				if err != nil {
					t.Fatal(err)
				}

				change := flex.WattHours(0)
				for _, a := range p.Assets {
					change += a.Change[0]
				}
				if change < c.change-5 || change > c.change+5 || p.NumBusy != c.busy || p.SpentSites != c.sites {
					t.Errorf("%d Wh, %d busy, %d sites left out: %s", change, p.NumBusy, p.SpentSites, p.Why())
				}
			})
		})
	}
}

// TestInstruction_BatteryLevel has a battery that turns out to hold less than was thought: what is expected of it follows.
func TestInstruction_BatteryLevel(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		in := h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -2500))
		h.until("2026-01-15T02:50:00Z")
		h.read(id, flex.BatteryStateOfCharge, "2026-01-15T02:49:00Z", "2026-01-15T02:49:00Z", 10)
		h.until("2026-01-15T03:00:00Z")
		r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
		if err != nil {
			t.Fatal(err)
		}

		if r.Slots[0].Expected < -600 || r.Slots[1].Expected < -5 || r.Slots[0].Baseline < 1490 {
			t.Errorf("%+v", r.Slots)
		}
	})
}
