package control_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// feeders are two batteries of 3 kW behind each of two feeders, full, with an hour from 20:00 on that is worth
// giving in.
func (h *fixture) feeders() (north, south []flex.AssetID) {
	h.Helper()
	prices := slices.Repeat([]float64{100}, 4*48)
	prices[4], prices[5] = 500, 500
	h.publish("2026-01-14T18:00:00Z", prices...)

	var groups []flex.CapGroup
	for _, name := range []string{"north", "south"} {
		g := flex.CapGroup{Name: name}

		for range 2 {
			h.site = h.Site(flex.FullScheduleMethod)
			g.Sites = append(g.Sites, h.site)
			id := h.battery()
			h.tariff(id, flex.Tariff{Type: flex.DynamicTariff})
			h.read(id, flex.BatteryStateOfCharge, "2026-01-14T18:05:00Z", "2026-01-14T18:05:00Z", 100)
			if name == "north" {
				north = append(north, id)
			} else {
				south = append(south, id)
			}
		}

		groups = append(groups, g)
	}

	h.setCaps(flex.Caps{Groups: groups})
	h.runBatteries()

	return north, south
}

// giving is how many of some batteries are told to give at an instant.
func (h *fixture) giving(when string, ids ...flex.AssetID) (n int) {
	h.Helper()
	for _, id := range ids {
		if modeAt(h.modes(id), when) == battery.ModeDischarge {
			n++
		}
	}
	return n
}

func exportLimit(group string, power flex.Watts, from, to string) flex.CapLimit {
	return flex.CapLimit{Group: group, Direction: flex.Export, Power: power, Span: flex.Span{From: at(from), To: at(to)}}
}

// TestExportLimits has a network operator limit what the batteries of one feeder of two give, say no more, and come
// back.
func TestExportLimits(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		north, south := h.feeders()
		gives := func(step string, n, later, s int) {
			h.Helper()
			h.runBatteries()
			got := []int{h.giving("2026-01-14T20:00:00Z", north...), h.giving("2026-01-14T20:30:00Z", north...), h.giving("2026-01-14T20:00:00Z", south...)}
			if want := []int{n, later, s}; !slices.Equal(got, want) {
				h.Errorf("%s: %v give, want %v", step, got, want)
			}
		}

		imports := func(limits ...flex.CapLimit) {
			h.Helper()
			if err := h.service.ImportLimits(h.Context(), h.Org, limits); err != nil {
				h.Fatal(err)
			}
		}

		gives("no limit", 2, 2, 2)
		drawn := exportLimit("north", 0, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z")
		drawn.Direction = flex.Import
		imports(drawn)
		gives("what is drawn is limited", 2, 2, 2)
		imports(exportLimit("north", 4000, "2026-01-14T20:10:00Z", "2026-01-14T20:20:00Z"))
		gives("room for one", 1, 2, 2)
		imports(exportLimit("north", 6000, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"))
		gives("room for both", 2, 2, 2)
		imports(
			exportLimit("north", 2999, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"),
			exportLimit("south", 3000, "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z"),
		)
		gives("room for none, and for one", 0, 2, 1)

		limits, _, err := h.service.Limits(h.Context(), h.Org)
		if err != nil || len(limits) != 3 {
			t.Errorf("%d limits: %v", len(limits), err)
		}
		if err := h.service.ClearLimits(h.Context(), h.Org, "south"); err != nil {
			t.Fatal(err)
		}
		gives("one feeder's are cleared", 0, 2, 2)

		err = h.service.SetLink(h.Context(), h.Org, flex.CapLink{Group: "south", Silence: time.Minute})
		if flex.KindOf(err) != flex.Malformed {
			t.Errorf("a link without a fallback: %v", err)
		}
		if err := h.service.SetLink(h.Context(), h.Org, flex.CapLink{Group: "south", Export: new(flex.Watts), Silence: 15 * time.Minute}); err != nil {
			t.Fatal(err)
		}

		gives("a link that is heard", 0, 2, 2)
		h.wait(15 * time.Minute)
		if r, err := h.service.WatchLinks(h.Context()); err != nil || r.Count != 1 {
			t.Fatal(r, err)
		}
		gives("a lost link", 0, 2, 0)
		if err := h.service.LinkAlive(h.Context(), h.Org, "south"); err != nil {
			t.Fatal(err)
		}
		gives("heard again", 0, 2, 2)
	})
}

// TestExportLimits_Dispatched has what was dispatched be taken back once, where a limit that came since leaves it no
// headroom, and refuses a dispatch that there is no headroom for.
func TestExportLimits_Dispatched(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.listen()
		north, south := h.feeders()
		h.goTo("2026-01-14T19:10:00Z")
		h.runBatteries()
		const nothing = `SELECT count(*) FROM dispatch_asset WHERE power_w = 0`
		if n := h.Count(`SELECT count(*) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id WHERE power_w < 0 AND from_at = $1`,
			at("2026-01-14T20:00:00Z").UnixMicro()); n != 4 {
			t.Fatalf("%d batteries were told to give", n)
		}

		limit := exportLimit("north", 4000, "2026-01-14T20:00:00Z", "2026-01-14T21:00:00Z")
		if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{limit}); err != nil {
			t.Fatal(err)
		}

		for range 2 {
			h.runBatteries()
			if n := h.Count(nothing); n != 1 {
				t.Errorf("%d dispatches were taken back, not 1", n)
			}
			h.wait(time.Minute)
		}
		if n, s := h.giving("2026-01-14T20:00:00Z", north...), h.giving("2026-01-14T20:00:00Z", south...); n != 1 || s != 2 {
			t.Errorf("%d and %d give", n, s)
		}

		idle := north[0]
		if h.giving("2026-01-14T20:00:00Z", idle) == 1 {
			idle = north[1]
		}

		for _, c := range []struct {
			asset  flex.AssetID
			power  flex.Watts
			refuse bool
		}{{idle, -1001, true}, {idle, -1000, false}, {idle, 3000, false}, {south[0], -3000, false}} {
			order := store.Dispatch{
				Span:   flex.Span{From: at("2026-01-14T20:00:00Z"), To: at("2026-01-14T20:20:00Z")},
				Assets: []store.DispatchedAsset{{ID: c.asset, Power: c.power}},
			}
			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return control.CheckExport(h.Context(), tx, &order) })
			if refused := flex.KindOf(err) == flex.Conflict && strings.Contains(err.Error(), "limited to 4 kW"); refused != c.refuse || !c.refuse && err != nil {
				t.Errorf("%d W: %v", c.power, err)
			}
		}

		// What an operator dispatched beside the plans counts, and the plan gives way to it.
		err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
			_, err := tx.AddDispatch(h.Context(), store.Dispatch{
				Market: "dno", Span: flex.Span{From: at("2026-01-14T20:30:00Z"), To: at("2026-01-14T20:40:00Z")},
				Assets: []store.DispatchedAsset{{ID: idle, Power: -3000}},
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		h.goTo("2026-01-14T19:30:00Z")
		h.runBatteries()
		told := 0
		for _, id := range north {
			if id != idle {
				told = h.giving("2026-01-14T20:30:00Z", id)
			}
		}
		if n := h.Count(`SELECT count(*) FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id
			WHERE a.asset_id = $1 AND a.power_w = 0 AND d.from_at = $2`, idle.Bytes(), at("2026-01-14T20:30:00Z").UnixMicro()); told+1-n != 1 {
			t.Errorf("the plan gives %d beside the operator's dispatch, of which %d were taken back", told, n)
		}

		// A limit that leaves the operator's dispatch nothing has it taken back, for its own market.
		none := exportLimit("north", 0, "2026-01-14T20:30:00Z", "2026-01-14T21:00:00Z")
		if err := h.service.ImportLimits(h.Context(), h.Org, []flex.CapLimit{none}); err != nil {
			t.Fatal(err)
		}
		h.runBatteries()
		markets := h.Strings(`SELECT d.market FROM dispatch d JOIN dispatch_asset a ON a.event_id = d.event_id
			WHERE a.asset_id = $1 AND a.power_w = 0 AND d.from_at = $2`, idle.Bytes(), at("2026-01-14T20:30:00Z").UnixMicro())
		if !slices.Equal(markets, []string{"dno"}) || h.backMarkets() != "dno wholesale" {
			t.Errorf("the operator's dispatch is taken back for %q, all for %q", markets, h.backMarkets())
		}
	})
}

// TestExportLimits_Offered has what batteries behind limited feeders could move be the same whether those of one feeder are asked or
// all: what limits one feeder is kept from one battery to the next, and counts for no other feeder. A limit of nothing leaves nothing.
func TestExportLimits_Offered(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		h.listen()
		h.feeders()
		window := flex.Span{From: at("2026-01-14T22:00:00Z"), To: at("2026-01-14T23:00:00Z")}

		moves := func(group string) (found []forecast.Moved) {
			t.Helper()
			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				var err error
				found, err = h.service.DeviceMoves(h.Context(), tx, &flex.Instruction{Span: window, Scope: flex.Scope{Group: group}, Service: "dno", Change: -1})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(found, func(a, b forecast.Moved) int { return cmp.Or(cmp.Compare(a.KWh, b.KWh), cmp.Compare(a.Cost, b.Cost)) })
			return found
		}

		for _, c := range []struct {
			north flex.Watts
			want  int
		}{{100_000, 2}, {0, 0}} {
			var limits []flex.CapLimit
			for group, power := range map[string]flex.Watts{"north": c.north, "south": 100_000} {
				limits = append(limits, exportLimit(group, power, "2026-01-14T21:00:00Z", "2026-01-15T21:00:00Z"))
			}
			if err := h.service.ImportLimits(h.Context(), h.Org, limits); err != nil {
				t.Fatal(err)
			}

			all, north, south := moves(""), moves("north"), moves("south")
			if len(north) != c.want || len(south) != 2 || len(all) != c.want+2 {
				t.Fatalf("under %d W %d batteries move in the north, %d in the south, %d in all", c.north, len(north), len(south), len(all))
			}
			apart := append(north, south...)
			slices.SortFunc(apart, func(a, b forecast.Moved) int { return cmp.Or(cmp.Compare(a.KWh, b.KWh), cmp.Compare(a.Cost, b.Cost)) })
			if !slices.Equal(all, apart) {
				t.Errorf("under %d W all move %v, and each feeder by itself %v", c.north, all, apart)
			}
		}
	})
}

// TestExportLimits_Nested has a limit of a substation bind the batteries of both of its feeders, beside a limit of one of them,
// and refuses a dispatch that the substation leaves no headroom for.
func TestExportLimits_Nested(t *testing.T) {
	each(t, "2026-01-14T18:10:00Z", func(h *fixture) {
		north, south := h.feeders()
		all := append(slices.Clone(north), south...)

		nest := func(parent string) {
			h.Helper()
			err := h.service.ChangeCaps(h.Context(), h.Org, func(c *flex.Caps) error {
				for i := range c.Groups[:2] {
					c.Groups[i].Parent = parent
				}
				if len(c.Groups) == 2 {
					c.Groups = append(c.Groups, flex.CapGroup{Name: "station"})
				}

				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		limits := func(limits ...flex.CapLimit) {
			h.Helper()
			if err := h.service.ImportLimits(h.Context(), h.Org, limits); err != nil {
				t.Fatal(err)
			}
		}

		gives := func(step string, n int) {
			h.Helper()
			h.runBatteries()
			if got := h.giving("2026-01-14T20:00:00Z", all...); got != n {
				h.Errorf("%s: %d batteries give, want %d", step, got, n)
			}
		}

		nest("station")
		gives("no limit", 4)
		limits(exportLimit("station", 9500, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"))
		gives("room for three", 3)
		limits(exportLimit("north", 0, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"))
		gives("none of the north", 2)
		limits(exportLimit("station", 3000, "2026-01-14T20:00:00Z", "2026-01-14T20:30:00Z"))
		gives("room for one", 1)

		idle := south[0]
		if h.giving("2026-01-14T20:00:00Z", idle) == 1 {
			idle = south[1]
		}
		order := store.Dispatch{
			Span:   flex.Span{From: at("2026-01-14T20:00:00Z"), To: at("2026-01-14T20:20:00Z")},
			Assets: []store.DispatchedAsset{{ID: idle, Power: -1000}},
		}
		dispatch := func(tx *store.Tx) error { return control.CheckExport(h.Context(), tx, &order) }
		if err := h.db.Write(h.Context(), h.Org, dispatch); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), `"station" is limited to 3 kW`) {
			t.Errorf("a dispatch beyond the substation's limit: %v", err)
		}

		nest("")
		gives("in no substation", 2)
		if err := h.db.Write(h.Context(), h.Org, dispatch); err != nil {
			t.Errorf("a dispatch that nothing limits any more: %v", err)
		}
		nest("station")
		gives("back in it", 1)
	})
}
