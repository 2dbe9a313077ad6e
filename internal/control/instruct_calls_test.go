package control_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// window asks for less by all means at a time of the evening.
func window(from, to string) flex.Instruction {
	in := peak(-1_000_000)
	in.Span = flex.Span{From: at("2026-01-15T" + from + ":00Z"), To: at("2026-01-15T" + to + ":00Z")}
	return in
}

// agree keeps how often a site may be called; a number below zero is no limit.
func (h *fixture) agree(site flex.SiteID, day, month int) {
	h.Helper()
	var c flex.AgreedCalls
	if day >= 0 {
		c.PerDay = flex.Some(day)
	}
	if month >= 0 {
		c.PerMonth = flex.Some(month)
	}

	if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.SetAgreedCalls(h.Context(), site, c) }); err != nil {
		h.Fatal(err)
	}
}

// sitesOf are the sites of those that are called.
func sitesOf(p *control.Preview) map[flex.SiteID]int {
	sites := map[flex.SiteID]int{}
	for _, a := range p.Assets {
		sites[a.SiteID]++
	}
	return sites
}

// count is how many instructions call a site.
func (h *fixture) count(site flex.SiteID) (n flex.CallCount) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		n, err = tx.CallsOf(h.Context(), site, tx.Now())
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return n
}

// TestInstruction_AgreedCalls calls nobody more often than they agreed to: the preview says whom it left out, an
// instruction is one call of a site with two cars, and one that is stopped before it begins is none.
func TestInstruction_AgreedCalls(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(4, 44.4)
		var sites []flex.SiteID
		for _, p := range h.send(window("22:30", "23:00")).Assets { // all have been called once
			sites = append(sites, p.SiteID)
		}
		if len(sites) != 4 {
			h.Fatalf("%d are called", len(sites))
		}

		h.site = sites[0] // a second car at the first site
		h.asset = h.Asset(h.site, flex.Charger, 7400)
		h.event(control.Event{Kind: control.PlugIn, Intent: need(44.4, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		h.accept()

		h.agree(sites[0], 2, -1)
		h.agree(sites[1], 5, 1)
		h.agree(sites[2], 0, -1)
		p, err := h.service.PreviewInstruction(h.Context(), h.Org, window("18:00", "18:30"))
		if err != nil {
			h.Fatal(err)
		}

		if n := sitesOf(p); n[sites[0]] != 2 || n[sites[3]] != 1 || len(n) != 2 {
			h.Errorf("called by site: %v", n)
		}
		const left = "1 site has agreed to no calls, 1 site has had the 1 call of the month that they agreed to"
		if p.SpentSites != 2 || p.Spent != left || !strings.HasSuffix(p.Why(), left) {
			h.Errorf("%d left out, %q: %s", p.SpentSites, p.Spent, p.Why())
		}

		h.agree(sites[3], -1, 0)
		if p, err = h.service.PreviewInstruction(h.Context(), h.Org, window("18:00", "18:30")); err != nil || !strings.HasPrefix(p.Spent, "1 site has had the 1 call of the month that they agreed to, 2 sites have agreed to no calls") {
			h.Errorf("%q left out: %v", p.Spent, err)
		}
		h.agree(sites[3], -1, -1)

		// A call that is taken back before it begins is none; one that has begun is.
		first := h.send(window("18:00", "18:30"))
		if n := sitesOf(h.send(window("20:00", "20:30"))); n[sites[0]] != 0 || n[sites[3]] != 1 {
			h.Errorf("called by site beyond what was agreed: %v", n)
		}
		if _, err := h.service.StopInstruction(h.Context(), h.Org, first.ID, "Ann"); err != nil {
			h.Fatal(err)
		}

		second := h.send(window("18:30", "19:00"))
		if n := sitesOf(second); n[sites[0]] != 2 {
			h.Errorf("after a call that was taken back: %v", n)
		}
		h.goTo("2026-01-15T18:40:00Z")
		if _, err := h.service.StopInstruction(h.Context(), h.Org, second.ID, "Ann"); err != nil {
			h.Fatal(err)
		}
		if n := h.count(sites[0]); n.Day != 2 || n.Month != 2 {
			h.Errorf("%+v calls of the first site", n)
		}

		// Without a limit all are called as ever.
		for _, s := range sites {
			h.agree(s, -1, -1)
		}
		if n := sitesOf(h.send(window("20:30", "21:00"))); len(n) != len(assets) {
			h.Errorf("called without a limit: %v", n)
		}
	})
}

// TestInstruction_AgreedCallsShort has what falls short made up for by nobody who had the calls they agreed to, and
// says so in the report.
func TestInstruction_AgreedCallsShort(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(3, 22.2)
		first := h.send(peak(-6_000))
		if len(first.Assets) != 1 {
			h.Fatalf("%d are called", len(first.Assets))
		}

		for _, h.asset = range assets {
			if h.asset != first.Assets[0].AssetID {
				h.agree(h.look().Session.SiteID, -1, 0)
			}
		}

		h.wait(5 * time.Second)
		h.asset = first.Assets[0].AssetID
		h.event(control.Event{Kind: control.PlugOut})
		h.event(control.Event{Kind: control.PlugIn, Intent: need(90, flex.Minimise), Tariff: &flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate}})
		h.wait(2 * time.Minute)
		for range 3 {
			if _, err := h.service.FollowInstructions(h.Context()); err != nil {
				h.Fatal(err)
			}
			h.wait(time.Minute)
		}

		r, err := h.service.ReportInstruction(h.Context(), h.Org, first.ID)
		if err != nil || len(r.Assets) != 1 || r.SpentSites != 2 || r.Spent != "2 sites have agreed to no calls" {
			h.Errorf("%d called, %d left out, %q, %v", len(r.Assets), r.SpentSites, r.Spent, err)
		}

		// The same without a limit calls another.
		for _, h.asset = range assets {
			h.agree(h.look().Session.SiteID, -1, -1)
		}
		if _, err := h.service.FollowInstructions(h.Context()); err != nil {
			h.Fatal(err)
		}
		if r, err = h.service.ReportInstruction(h.Context(), h.Org, first.ID); err != nil || len(r.Assets) < 2 {
			h.Errorf("%d called without a limit: %v", len(r.Assets), err)
		}
	})
}

// TestInstruction_AgreedCallsAtOnce sends instructions of different times at once: together they call a site no more
// often than it agreed to.
func TestInstruction_AgreedCallsAtOnce(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		assets := h.evening(3, 44.4)
		sites := make([]flex.SiteID, len(assets))
		for i := range assets {
			h.asset = assets[i]
			sites[i] = h.look().Session.SiteID
			h.agree(sites[i], 2, -1)
		}

		var all sync.WaitGroup
		for _, w := range [][2]string{{"17:30", "18:00"}, {"18:00", "18:30"}, {"18:30", "19:00"}, {"19:00", "19:30"}} {
			all.Go(func() {
				if _, err := h.service.SendInstruction(h.Context(), h.Org, window(w[0], w[1])); err != nil {
					h.Error(err)
				}
			})
		}
		all.Wait()

		for _, s := range sites {
			if n := h.count(s); n.Day != 2 {
				h.Errorf("a site is called %d times", n.Day)
			}
		}
	})
}

// TestInstruction_AgreedCallsLondon counts calls by London's days and months, about both changes of the clock and the
// turns of months and years: against a count by the calendar's words.
func TestInstruction_AgreedCallsLondon(t *testing.T) {
	each(t, "2026-01-15T17:00:00Z", func(h *fixture) {
		london, err := time.LoadLocation("Europe/London")
		if err != nil {
			h.Fatal(err)
		}

		var turns []time.Time
		for _, s := range []string{"2026-03-29T00:30:00Z", "2026-03-31T23:00:00Z", "2026-10-25T00:30:00Z", "2026-11-01T00:00:00Z", "2025-12-31T23:30:00Z", "2026-06-30T23:00:00Z"} {
			turns = append(turns, at(s))
		}

		random := rand.New(rand.NewPCG(15, 1))
		var begins []time.Time
		assets := make([]flex.AssetID, 60) // one for each: an asset is called by one at a time
		for i := range assets {
			assets[i] = h.Asset(h.site, flex.Charger, 7400)
		}

		for i, asset := range assets { // each called up to 47 hours ahead
			from := turns[i%len(turns)].Add(time.Duration(random.IntN(60*60)-30*60) * time.Minute)
			h.micro.Store(from.Add(-time.Duration(random.IntN(47)) * time.Hour).UnixMicro())
			in := peak(-1000)
			in.Span, in.Target = flex.Span{From: from, To: from.Add(time.Hour)}, []int64{1, 1, 1}
			begins = append(begins, from)
			step := []flex.Step{{Span: in.Span, Limit: 7400}}

			err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error {
				if err := tx.AddInstruction(h.Context(), &in); err != nil {
					return err
				}
				return tx.AddCalled(h.Context(), in.ID, []store.Called{{AssetID: asset, SiteID: h.site, Baseline: step, Expected: step}})
			})
			if err != nil {
				h.Fatal(err)
			}
		}

		for i := range 200 {
			now := turns[i%len(turns)].Add(time.Duration(random.IntN(60*60)-30*60) * time.Minute)
			var want flex.CallCount
			for _, b := range begins {
				if b.In(london).Format("2006-01-02") == now.In(london).Format("2006-01-02") {
					want.Day++
				}
				if b.In(london).Format("2006-01") == now.In(london).Format("2006-01") {
					want.Month++
				}
			}

			limit := random.IntN(12)
			perDay := random.IntN(2) == 0
			had := want.Month
			h.agree(h.site, -1, limit)
			if perDay {
				h.agree(h.site, limit, -1)
				had = want.Day
			}

			err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
				got, err := tx.CallsOf(h.Context(), h.site, now)
				if err != nil || got != want {
					h.Errorf("%s: %+v calls, not %+v: %v", now, got, want, err)
				}

				spent, err := tx.SpentSites(h.Context(), flex.InstructionID{}, now)
				if _, is := spent[h.site]; is != (had >= limit) {
					h.Errorf("%s: %d calls of %d agreed, spent is %t", now, had, limit, is)
				}
				return err
			})
			if err != nil {
				h.Fatal(err)
			}
		}
	})
}
