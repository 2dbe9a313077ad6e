package reward_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// another goes on with another home, of an organisation of its own in the same store.
func (h *home) another(name string) {
	h.t.Helper()
	org, err := h.db.AddOrg(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}

	h.org = org.ID
	copy(h.site[:], org.ID[:])
	copy(h.asset[:], org.ID[:])
	h.exec(h.t, `INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, 1, 0)`, h.site.Bytes(), h.org.Bytes())
	h.exec(h.t, `INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, 'a', 'electric_vehicle', 7400, 0)`,
		h.asset.Bytes(), h.org.Bytes(), h.site.Bytes())
	h.exec(h.t, `INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, 1, 1)`, h.site.Bytes(), h.org.Bytes())
	h.set(h.t, "user_share=1")
	h.now = h.monday.Start().Add(time.Hour)
	h.prices(h.t, h.monday.Span(), 100)
}

// owes returns the sums of the organisation's accounts, as "account sum", which add up to nothing.
func (h *home) owes() string {
	h.t.Helper()
	seed := storetest.At(h.t, h.db, h.url)
	const sums = `SELECT account || ' ' || CAST(SUM(amount) AS TEXT) FROM posting WHERE org_id = $1 GROUP BY account HAVING SUM(amount) <> 0 ORDER BY account`
	if n := seed.Strings(`SELECT SUM(amount) FROM posting WHERE org_id = $1 HAVING SUM(amount) <> 0`, h.org.Bytes()); len(n) > 0 {
		h.t.Errorf("the books sum to %s", n)
	}
	return strings.Join(seed.Strings(sums, h.org.Bytes()), ", ")
}

// leaves has the site offboarded.
func (h *home) leaves() {
	h.t.Helper()
	if _, _, err := (&registry.Service{DB: h.db}).Offboard(h.t.Context(), h.org, h.site); err != nil {
		h.t.Fatal(err)
	}
}

// erased has all that is held on the site deleted, but for the money.
func (h *home) erased() {
	h.t.Helper()
	err := h.db.WriteAll(h.t.Context(), func(all *store.All) error {
		_, err := all.Erase(h.t.Context(), h.site)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// asked has the charger asked to wait in the half-hour of the Monday, in which the home uses 2 kWh
// in place of 4, and turns the clock to a minute after it. At 100 £/MWh that is worth 20 p.
func (h *home) asked() {
	h.t.Helper()
	for back := range homeDays {
		h.energy(h.asset, flex.ProvisionalConsumption, back+1, 4)
	}

	h.energy(h.asset, flex.ProvisionalConsumption, 0, 2)
	h.flush()
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, h.monday.Period(homeSlot).Span(), 0)
	})
	h.now = h.monday.Period(homeSlot).End().Add(time.Minute)
}

// jobs runs the background jobs until they find nothing more to do.
func (h *home) jobs() {
	h.t.Helper()
	for range 10 {
		events, err := h.service.SettleEvents(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}

		sessions, err := h.service.SettleSessions(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		if events.Count+sessions.Count == 0 {
			return
		}
	}
	h.t.Fatal("the jobs still found work after ten runs")
}

// plugged has the car plugged in at 22:00, and 2 kWh read of each of its half-hours.
func (h *home) plugged(halfHours int) {
	h.t.Helper()
	h.set(h.t, "credit_pence_per_kwh=2")
	h.now = h.monday.Period(45).Start()
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.OpenSession(ctx, &c, 0)
	})

	for n := range halfHours {
		h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: h.monday.Period(45 + n).Span(), Label: flex.ChargerEnergy, Value: 2_000_000})
	}
	h.now = h.monday.Period(45 + halfHours).Start()
	h.flush()
}

// unplugged ends the session.
func (h *home) unplugged() {
	h.t.Helper()
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.CloseSession(ctx, &c.Session)
	})
}

// Whoever leaves has earned what was read until then: it is settled to the end, and stands in the
// balance that they left, which the operator sees. What they left in the middle of is not.
func TestLeaving(t *testing.T) {
	cases := []struct {
		name string
		home func(h *home)
		want string
	}{
		{"before the event is found", func(h *home) {
			h.asked()
			h.leaves()

			h.jobs()
		}, "market_receivable 20, rewards_payable -20"},
		{"before a correction is settled", func(h *home) {
			h.asked()
			h.jobs()
			h.energy(h.asset, flex.ProvisionalConsumption, 0, 2.5)
			h.flush()
			h.leaves()
			h.jobs()
		}, "market_receivable 15, rewards_payable -15"},
		{"before a reading that was missing is looked at", func(h *home) {
			h.asked()
			h.exec(h.t, `DELETE FROM reading WHERE asset_id = $1 AND at >= $2`, h.asset.Bytes(), h.monday.Start().UnixMicro())

			h.jobs()
			h.energy(h.asset, flex.ProvisionalConsumption, 0, 2)
			h.flush()
			h.leaves()
			h.jobs()
		}, "market_receivable 20, rewards_payable -20"},
		{"before the rest is paid", func(h *home) {
			h.set(h.t, "paid_early=0.8")
			h.asked()
			h.jobs()
			if got := h.owes(); got != "market_receivable 20, rewards_accrued -4, rewards_payable -16" {
				h.t.Errorf("at first %s", got)
			}

			h.leaves()
			h.now = clock("2025-04-01 00:00")
			h.jobs()
		}, "market_receivable 20, rewards_payable -20"},
		{"in the middle of the event", func(h *home) {
			h.asked()
			h.now = h.monday.Period(homeSlot).Start().Add(time.Minute)
			h.leaves()
			h.now = clock("2025-04-01 00:00")

			h.jobs()
		}, ""},
		{"the charger alone, before the event is found", func(h *home) {
			h.asked()
			h.write(h.t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, h.asset) })
			h.jobs()
		}, "market_receivable 20, rewards_payable -20"},
		{"the charger alone, in the middle of the event", func(h *home) {
			h.asked()

			h.now = h.monday.Period(homeSlot).Start().Add(time.Minute)
			h.write(h.t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, h.asset) })
			h.now = clock("2025-04-01 00:00")
			h.jobs()
		}, ""},
		{"before the session is settled", func(h *home) {
			h.plugged(2)
			h.unplugged()

			h.leaves()
			h.jobs()
		}, "rewards_expense 8, rewards_payable -8"},
		{"while plugged in", func(h *home) {
			h.plugged(2)
			h.now = h.now.Add(10 * time.Minute) // the third half-hour will not be read
			h.leaves()
			h.now = h.now.Add(time.Hour)

			h.jobs()
		}, "rewards_expense 8, rewards_payable -8"},
		{"before the price is revised", func(h *home) {
			h.asked()
			h.jobs()
			h.leaves()
			h.now = h.now.Add(time.Hour)
			h.prices(h.t, h.monday.Span(), 150)
			h.jobs()
		}, "market_receivable 30, rewards_payable -30"},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				tt.home(h)
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q", got, tt.want)
				}
			})
		}
		h.sound(t)
	})
}

// What was settled stays as it is once its readings are gone: of a site that was erased, and of
// a time that is longer ago than readings are kept. Looked at again, it was taken back whole.
func TestLeaving_ReadingsAreGone(t *testing.T) {
	const earned = "market_receivable 20, rewards_expense 8, rewards_payable -28"
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		var homes []home
		for _, name := range []string{"forgotten", "erased", "forgotten, without consent", "erased, without consent"} {
			h.another(name)
			if strings.HasSuffix(name, "without consent") {
				h.exec(t, `UPDATE org SET consent_exempt = TRUE WHERE id = $1`, h.org.Bytes())
			}

			h.asked()
			h.jobs()
			h.plugged(2)
			h.unplugged()
			h.jobs()
			if got := h.owes(); got != earned {
				t.Fatalf("%s, at first: %s", name, got)
			}

			if strings.HasPrefix(name, "erased") {
				h.leaves()
				h.erased()
			}
			if name == "erased" { // an earlier release left this behind, and looking at it failed
				h.exec(t, `UPDATE reckoning SET detect_at = 0 WHERE org_id = $1`, h.org.Bytes())
			}
			homes = append(homes, home{fixture: &fixture{org: h.org, site: h.site, asset: h.asset}})
		}

		for _, at := range []time.Time{clock("2025-03-10 12:00"), clock("2025-04-01 00:00"), h.monday.Add(463).Start()} {
			h.now = at
			if at.After(h.monday.Add(462).Start()) {
				h.exec(t, `DELETE FROM reading`)
			}
			h.prices(t, h.monday.Span(), 100)
			h.jobs()

			for _, one := range homes {
				h.org, h.site, h.asset = one.org, one.site, one.asset
				if _, err := h.service.Repair(t.Context(), h.org, reward.Resettlement{From: h.monday, To: h.monday}); err != nil {
					t.Fatal(err)
				}
				if got := h.owes(); got != earned {
					t.Errorf("%s at %s: %s", one.org, at, got)
				}
			}
		}

		h.sound(t)
	})
}

// Readings are taken of a day as long as what was settled of it may change.
func TestLeaving_ResettledFor(t *testing.T) {
	if reward.ResettledFor != reading.MaxAge {
		t.Errorf("settled anew for %s, while readings are taken for %s", reward.ResettledFor, reading.MaxAge)
	}
}

// A site with a payment under way cannot leave; one that was paid may. What its bank returns then
// is in the balance that was left, counts once, and is there after all else was erased.
func TestLeaving_Returned(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := &home{fixture: open(t, url), t: t}
		h.earn(t, 25)
		h.link(t, h.visit(t, reward.LinkOptions{}))
		w, err := h.service.Withdraw(t.Context(), h.visit(t, reward.LinkOptions{}), 1500, h.form(t))
		if err != nil {
			t.Fatal(err)
		}

		result := func(status ledger.PaymentStatus, moved int) {
			t.Helper()
			r, err := h.service.Import(t.Context(), h.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: status}})
			if err != nil || r.Moved != moved {
				t.Errorf("%s moved %+v, %v", status, r, err)
			}
		}

		stays := func() {
			t.Helper()
			if _, _, err := (&registry.Service{DB: h.db}).Offboard(t.Context(), h.org, h.site); flex.KindOf(err) != flex.Malformed {
				t.Errorf("left with a payment under way: %v", err)
			}
		}
		stays()
		if _, err := h.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Fatal(err)
		}

		stays()
		h.fixture.export(t, false)
		stays()
		result(ledger.Posted, 1)
		h.leaves()
		result(ledger.Returned, 1)
		result(ledger.Returned, 0)
		h.erased()

		left, err := (&books.Service{DB: h.db}).Unclaimed(t.Context(), h.org)
		if err != nil || len(left) != 1 || left[0].Balance != 2500 {
			t.Errorf("left behind: %+v, %v", left, err)
		}
		if got := h.owes(); got != "rewards_expense 2500, rewards_payable -2500" {
			t.Errorf("in the books %s", got)
		}
		h.sound(t)
	})
}

// What a site was to be paid later is owed as soon as it is erased, as nothing of it is
// settled any more: it is in the balance that was left. Erasing it again clears what was
// accrued to it since, as earlier releases left it.
func TestLeaving_ErasedBeforeTheRestIsPaid(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		h.set(t, "paid_early=0.8")
		h.asked()
		h.jobs()
		h.leaves()

		left := func(step, want string, balance flex.Pence) {
			t.Helper()
			h.jobs()
			got, err := (&books.Service{DB: h.db}).Unclaimed(t.Context(), h.org)
			if err != nil || len(got) != 1 || got[0].Balance != balance {
				t.Errorf("%s: left behind %+v, %v; want %s", step, got, err, balance)
			}
			if got := h.owes(); got != want {
				t.Errorf("%s: in the books %s, want %s", step, got, want)
			}
		}

		left("gone", "market_receivable 20, rewards_accrued -4, rewards_payable -16", 16)
		h.erased()
		left("erased", "market_receivable 20, rewards_payable -20", 20)
		h.now = clock("2025-04-01 00:00")
		h.erased()
		left("erased again, when it is final", "market_receivable 20, rewards_payable -20", 20)

		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			b := ledger.Booked{}
			b.Key, b.Kind, b.SiteID, b.Cause = "of an earlier release", ledger.FlexEvent, h.site, ledger.Cause{By: "test"}
			b.Postings = ledger.EarnedInPart(3, 0, 3, 0)
			_, err := tx.Post(ctx, &b)
			return err
		})
		h.erased()
		left("accrued by an earlier release", "market_receivable 23, rewards_payable -23", 23)
		h.sound(t)
	})
}
