package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// A schedule that cannot be read makes the planning of its own organisation fail. The
// organisations before and after it are planned.
func TestReplan_BrokenElsewhere(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)

		type car struct {
			org   flex.OrgID
			asset flex.AssetID
		}
		var cars []car
		for _, name := range []string{"", "second", "third"} {
			if name != "" {
				org, err := h.db.AddOrg(h.Context(), name)
				if err != nil {
					t.Fatal(err)
				}

				h.Seed = h.As(org.ID)
				h.site = h.Site(flex.FullScheduleMethod)
				h.asset = h.Asset(h.site, flex.Charger, 7400)
			}

			h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
			cars = append(cars, car{h.Org, h.asset})
		}

		const broken = 1
		h.Exec(`UPDATE schedule SET steps = 'broken' WHERE org_id = $1`, cars[broken].org.Bytes())
		h.publish("2026-01-10T18:00:00Z", night(16)...)
		if _, err := h.service.PlanDue(t.Context()); err == nil {
			t.Error("a schedule that cannot be read goes unsaid")
		}

		for i, c := range cars {
			if i == broken {
				continue
			}

			h.Seed, h.asset = h.As(c.org), c.asset
			h.chargesAt("by the new prices", "11T02:00 11T02:30")
		}
	})
}

// breaks makes an asset's schedule unreadable.
func (h *fixture) breaks(asset flex.AssetID) {
	h.Helper()
	h.Exec(`UPDATE schedule SET steps = 'broken' WHERE asset_id = $1`, asset.Bytes())
}

// fails plans what is due, and checks that this fails and names an asset.
func (h *fixture) fails(what string, broken flex.AssetID) {
	h.Helper()
	_, err := h.service.PlanDue(h.Context())
	if err == nil || !strings.Contains(err.Error(), broken.String()) {
		h.Errorf("%s: the job says %v, and does not name %v", what, err, broken)
	}
}

// More cars are marked than one batch has, and the first of them cannot be planned. The same
// run plans all others.
func TestReplan_BrokenAmongMany(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.service.LookAtOnce(20)
		h.plugFleet(22)
		h.Exec(`UPDATE session SET due_for = 'inputs', due_at = 1 WHERE org_id = $1`, h.Org.Bytes())
		h.Exec(`INSERT INTO wave (org_id, publication_id, begun_at) SELECT $1, id, 1 FROM publication`, h.Org.Bytes())
		var broken flex.AssetID
		h.write(func(tx *store.Tx) error {
			found, err := tx.InputsDue(h.Context(), 1)
			broken = found[0].AssetID
			return err
		})

		h.breaks(broken)
		h.fails("with one broken", broken)
		if n := h.Count(`SELECT count(*) FROM session WHERE due_for = 'inputs' AND due_at = 1`); n != 1 {
			t.Errorf("%d marks are left", n)
		}
	})
}

// Marked cars are compared. A transaction that began before the comparison, and is committed
// after it, marks them again. Its change was not compared, so these marks remain.
func TestReplan_MarkedMeanwhile(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.plugFleet(3)
		mark := func(at int) {
			h.Exec(
				`UPDATE session SET due_for = 'inputs', due_at = $2 WHERE org_id = $1`,
				h.Org.Bytes(),
				at,
			)
		}

		mark(1)
		if _, err := h.service.PlanDue(h.Context()); err != nil {
			t.Fatal(err)
		}

		const marked = `SELECT count(*) FROM session WHERE due_for = 'inputs' AND due_at = 2`
		mark(1)
		if err := h.service.StayAfter(h.Context(), h.Org, func() { mark(2) }); err != nil {
			t.Fatal(err)
		}
		if n := h.Count(marked); n != 3 {
			t.Errorf("%d of 3 marks that came meanwhile are left", n)
		}

		if err := h.service.StayAfter(h.Context(), h.Org, func() {}); err != nil {
			t.Fatal(err)
		}
		if n := h.Count(marked); n == 3 {
			t.Error("no mark is removed of cars whose schedules stay")
		}
	})
}

// If caps are set while assets are compared with the market, their marks remain, and the run
// continues.
func TestReplan_CapsMeanwhile(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.service.LookAtOnce(20)
		h.plugFleet(20)
		h.setCaps(flex.Caps{Fleet: kw(100)})
		h.Exec(`UPDATE session SET due_for = 'market', due_at = 1 WHERE org_id = $1`, h.Org.Bytes())

		ctx, cancel := context.WithTimeout(h.Context(), 10*time.Minute)
		defer cancel()
		if err := h.service.Due(ctx, h.Org); err != nil {
			t.Error(err)
		}
		if n := h.Count(`SELECT count(*) FROM session WHERE due_for = 'market'`); n != 20 {
			t.Errorf("%d marks are left", n)
		}
	})
}

// A wave that fails does not delay what was marked.
func TestReplan_WaveFails(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.replan()
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		h.Exec(`CREATE TRIGGER refuse BEFORE DELETE ON wave_part BEGIN SELECT RAISE(ABORT, 'no part ends'); END`)

		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.Exec(`UPDATE asset SET power_w = 3700 WHERE org_id = $1`, h.Org.Bytes())
		h.write(func(tx *store.Tx) error { return tx.MarkDue(h.Context(), h.asset) })
		_, err := h.service.PlanDue(t.Context())
		if err == nil || !strings.Contains(err.Error(), "no part ends") {
			t.Error(err)
		}

		h.chargesAt("by inputs", "10T23:30 11T00:30")
	})
}

// A wave checks cars that were planned before their site's main fuse was set against that
// fuse. If one of them cannot be read, the site's others are not changed but marked, and the
// wave continues without them. A car that leaves is not affected.
func TestReplan_BrokenBehindFuse(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		h.publish("2026-01-10T18:00:00Z", night(12)...)
		h.replan()
		elsewhere := h.Asset(h.Site(flex.FullScheduleMethod), flex.Charger, 7400)
		beside, broken := h.asset, h.Asset(h.site, flex.Charger, 7400)
		for _, car := range []flex.AssetID{elsewhere, beside, broken} {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
			h.accept()
		}

		h.setFuse(8)
		h.breaks(broken)
		h.publish("2026-01-10T18:00:00Z", night(16)...)
		h.fails("by new prices", broken)
		h.at(elsewhere).chargesAt("elsewhere", "11T02:00 11T02:30")
		h.at(beside).chargesAt("beside", "11T00:00 11T00:30")

		h.at(beside).event(control.Event{Kind: control.PlugOut})
		if c := h.look(); c.Open() {
			t.Error("a car does not leave where another cannot be read")
		}
	})
}

// A car whose schedule cannot be read is not called by an instruction, and is not in the
// fleet's picture.
func TestInstruction_Broken(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 22.2)
		broken := assets[1]
		sent := h.send(peak(-19_000))
		h.breaks(broken)
		if _, err := h.service.StopInstruction(h.Context(), h.Org, sent.ID, "Ann"); err != nil {
			t.Fatal(err)
		}

		for _, a := range h.send(peak(-19_000)).Assets {
			if a.AssetID == broken {
				t.Error("it is called")
			}
		}

		seen := map[flex.AssetID]bool{}
		err := h.db.ReadAll(h.Context(), func(all *store.All) error {
			return all.EachPlugged(
				h.Context(),
				store.PluggedPart{},
				func(p *store.Plugged) { seen[p.AssetID] = true },
			)
		})
		if err != nil || len(seen) != 3 || seen[broken] {
			t.Errorf("seen: %v, %v", seen, err)
		}
	})
}

// A battery that cannot be planned, because a car of its site cannot be read, delays no other
// of its organisation.
func TestBattery_BrokenElsewhere(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		broken := h.battery()
		h.breaks(h.asset)

		h.site = h.Site(flex.FullScheduleMethod)
		whole := h.battery() // its id comes after the other's
		_, err := h.service.PlanBatteries(h.Context())
		if err == nil || !strings.Contains(err.Error(), broken.String()) {
			t.Errorf("the job says %v, and does not name %v", err, broken)
		}
		if len(h.modes(whole)) == 0 {
			t.Error("a battery elsewhere has no plan")
		}
	})
}

// A car that cannot be read does not delay another car, which is planned again because its
// household is back.
func TestAway_BrokenElsewhere(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		elsewhere := h.Site(flex.FullScheduleMethod)
		broken, whole := h.asset, h.Asset(elsewhere, flex.Charger, 7400)
		for _, car := range []flex.AssetID{broken, whole} {
			h.at(car).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: need(3.7, flex.Minimise)})
		}

		away := flex.Span{From: at("2026-01-10T18:00:00Z"), To: at("2026-01-12T12:00:00Z")}
		for _, site := range []flex.SiteID{h.site, elsewhere} {
			if err := h.service.SetAway(h.Context(), h.Org, site, away); err != nil {
				t.Fatal(err)
			}
		}

		h.goTo("2026-01-12T12:00:30Z")
		h.breaks(broken)
		_, err := h.service.ReplanAbsences(h.Context())
		if err == nil || !strings.Contains(err.Error(), broken.String()) {
			t.Errorf("the job says %v, and does not name %v", err, broken)
		}
		if c := h.at(whole).look(); !c.Away.Empty() {
			t.Errorf("the other is away still: %v", c.Away)
		}
	})
}
