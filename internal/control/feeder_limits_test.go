package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// most is how many of the assets' schedules in force draw at once at most, of the minutes of a time.
func (h *fixture) most(assets []flex.AssetID, from, to string) (most int) {
	h.Helper()
	for m := at(from); m.Before(at(to)); m = m.Add(15 * time.Minute) {
		most = max(most, h.drawing(assets, m.Format(time.RFC3339)))
	}
	return most
}

// planned runs the planning job until it has nothing to do, as it does within seconds of a change.
func (h *fixture) planned() {
	h.Helper()
	for range 3 {
		if _, err := h.service.PlanDue(h.Context()); err != nil {
			h.Fatal(err)
		}
		h.wait(time.Second)
	}
}

// TestLimits_GroupStays has a group that is limited not be taken away, and limits that are over forgotten
// in their time.
func TestLimits_GroupStays(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		ctx := h.Context()
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}, {Name: "other"}}})
		limit := flex.CapLimit{Group: "feeder", Span: flex.Span{From: at("2026-01-15T18:00:00Z"), To: at("2026-01-15T19:00:00Z")}, Power: 15_000}
		other := limit
		other.Group = "other"
		if err := h.service.ImportLimits(ctx, h.Org, []flex.CapLimit{limit, other}); err != nil {
			t.Fatal(err)
		}

		stays := func(step, why string) {
			h.Helper()
			without := flex.Caps{Groups: []flex.CapGroup{{Name: "other"}}}
			for _, err := range []error{h.service.SetCaps(ctx, h.Org, without), h.service.ClearCaps(ctx, h.Org)} {
				if flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), why) {
					h.Errorf("%s: the group went: %v", step, err)
				}
			}
		}

		stays("a limit", `"feeder" cannot be taken away: limits of it hold until 2026-01-15T19:00:00Z`)
		if err := h.service.ClearLimits(ctx, h.Org, "nowhere"); flex.KindOf(err) != flex.NotFound {
			t.Errorf("limits of a group that there is not: %v", err)
		}
		if err := h.service.ClearLimits(ctx, h.Org, "feeder"); err != nil {
			t.Fatal(err)
		}

		if err := h.service.SetLink(ctx, h.Org, flex.CapLink{Group: "feeder", Fallback: new(flex.Watts), Silence: time.Minute}); err != nil {
			t.Fatal(err)
		}
		stays("a link", `"feeder" cannot be taken away: it has a fallback`)
		if err := h.service.ClearLink(ctx, h.Org, "feeder"); err != nil {
			t.Fatal(err)
		}
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "other"}}})

		h.goTo("2026-01-15T19:00:00Z")
		if err := h.service.ClearCaps(ctx, h.Org); err != nil {
			t.Errorf("no limit holds any more: %v", err)
		}

		kept := func(step string, want int) {
			h.Helper()
			if _, err := h.service.Purge(ctx); err != nil {
				h.Fatal(err)
			}
			if n := h.Count(`SELECT count(*) FROM cap_limit`); n != want {
				h.Errorf("%s: %d limits are kept, not %d", step, n, want)
			}
		}

		h.wait(control.Retention)
		kept("90 days", 1)
		h.wait(time.Second)
		kept("longer", 0)
	})
}

// TestLimits has a network operator limit a feeder of six cars for an hour, say no more, and come back.
func TestLimits(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(6, 37) // five hours each
		var sites []flex.SiteID
		for _, h.asset = range assets {
			sites = append(sites, h.look().Asset.SiteID)
		}
		h.setCaps(flex.Caps{Groups: []flex.CapGroup{{Name: "feeder", Sites: sites}}})
		h.planned()
		if n := h.drawing(assets, "2026-01-15T18:00:00Z"); n != 6 {
			t.Fatalf("%d draw without a limit", n)
		}

		ctx := h.Context()
		link := flex.CapLink{Group: "feeder", Fallback: new(flex.Watts(7500)), Silence: 15 * time.Minute}
		if err := h.service.SetLink(ctx, h.Org, link); err != nil {
			t.Fatal(err)
		}

		limit := flex.CapLimit{Group: "feeder", Span: flex.Span{From: at("2026-01-15T18:00:00Z"), To: at("2026-01-15T19:00:00Z")}, Power: 15_000}
		if err := h.service.ImportLimits(ctx, h.Org, []flex.CapLimit{limit}); err != nil {
			t.Fatal(err)
		}
		elsewhere := limit
		elsewhere.Group = "nowhere"
		if err := h.service.ImportLimits(ctx, h.Org, []flex.CapLimit{elsewhere}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a limit of a group that there is not: %v", err)
		}

		// What was sent keeps the limit by itself, whatever becomes of flexd.
		h.planned()
		h.heldBackBy(assets, "the network operator's limit of the feeder of group feeder, 15 kW", "the cap of")
		if n := h.most(assets, "2026-01-15T18:00:00Z", "2026-01-15T19:00:00Z"); n != 2 {
			t.Errorf("%d draw under the limit, not 2", n)
		}
		if n := h.most(assets, "2026-01-15T19:15:00Z", "2026-01-15T21:00:00Z"); n < 5 {
			t.Errorf("%d draw after it", n)
		}
		if n := h.short(assets, 37); n > 0 {
			t.Errorf("%d needs are not met", n)
		}

		watch := func(at string, want int) {
			h.Helper()
			h.goTo(at)
			r, err := h.service.WatchLinks(ctx)
			if err != nil || r.Count != want {
				t.Errorf("%s: %d links are lost, not %d: %v", at, r.Count, want, err)
			}
			h.planned()
		}

		watch("2026-01-15T17:10:00Z", 0)
		watch("2026-01-15T17:15:10Z", 1)
		watch("2026-01-15T17:16:00Z", 0)
		if n := h.most(assets, "2026-01-15T17:30:00Z", "2026-01-16T06:00:00Z"); n != 1 {
			t.Errorf("%d draw under the fallback, not 1", n)
		}
		h.heldBackBy(assets, "the fallback of the feeder of group feeder, 7.5 kW, as nothing is heard on its link", "the cap of")

		if err := h.service.LinkAlive(ctx, h.Org, "feeder"); err != nil {
			t.Fatal(err)
		}
		h.planned()
		if n, m := h.drawing(assets, "2026-01-15T17:45:00Z"), h.most(assets, "2026-01-15T18:00:00Z", "2026-01-15T19:00:00Z"); n < 5 || m != 2 {
			t.Errorf("%d draw once it was heard, %d under the limit", n, m)
		}

		if err := h.service.ClearLink(ctx, h.Org, "feeder"); err != nil {
			t.Error(err)
		}
		if err := h.service.ClearLink(ctx, h.Org, "feeder"); flex.KindOf(err) != flex.NotFound {
			t.Errorf("cleared twice: %v", err)
		}
		if err := h.service.LinkAlive(ctx, h.Org, "feeder"); flex.KindOf(err) != flex.NotFound || !strings.Contains(err.Error(), "has no link") {
			t.Errorf("a sign of life without a link: %v", err)
		}
	})
}

// TestReadLimits_Refused: a file with a wrong line or an unknown column is refused, and the error names the line.
func TestReadLimits_Refused(t *testing.T) {
	const (
		header  = "group,start_timestamp,end_timestamp,limit_kw"
		evening = "feeder,2026-01-15T18:00:00Z,2026-01-15T19:00:00Z,30"
	)

	for text, want := range map[string]string{
		header + ",dir\n" + evening + ",export\n":                                           `line 1: there is no such column as "dir"`,
		header + "\n" + evening + "\nfeeder,2026-01-15T19:00:00Z,2026-01-15T18:00:00Z,30\n": `line 3: a limit of "feeder" ends before it begins`,
		header + "\n" + evening + "\n" + strings.Replace(evening, ",30", ",-30", 1) + "\n":  "line 3: a limit of \"feeder\" is -30 kW",
		header + ",direction\n" + evening + ",Import\n":                                     `line 2: a limit of "feeder" has the direction "Import"`,
	} {
		if _, err := control.ReadLimits(strings.NewReader(text)); flex.KindOf(err) != flex.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}

	limits, err := control.ReadLimits(strings.NewReader(header + ",direction\n" + evening + ",export\n" + evening + ",\n"))
	if err != nil || len(limits) != 2 || limits[0].Direction != flex.Export || limits[1].Direction != flex.Import {
		t.Errorf("%+v, %v", limits, err)
	}
}

// heldBackBy holds that the schedule of a car at least says what holds it back, and none says another thing.
func (h *fixture) heldBackBy(assets []flex.AssetID, want, never string) {
	h.Helper()
	n := 0

	for _, a := range assets {
		x, err := h.service.Explanation(h.Context(), h.Org, a)
		if err != nil {
			h.Fatal(err)
		}
		if strings.Contains(x.Summary, want) {
			n++
		}
		if strings.Contains(x.Summary, never) {
			h.Errorf("%s is held back otherwise: %s", a, x.Summary)
		}
	}

	if n == 0 {
		h.Errorf("nobody is held back by %s", want)
	}
}
