package reward_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// After every change of the assets, the site and the terms, a settlement as of an earlier instant
// has the hash that it had, and a repair moves no penny that was credited.
func TestSettleAgain_WhateverChanges(t *testing.T) {
	for _, label := range []flex.Label{flex.ProvisionalConsumption, flex.ChargerEnergy} {
		t.Run(string(label), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				h := newHome(t, url, 1, 100)
				other := h.device(2, flex.Charger, 11_000)
				for back := range homeDays + 1 {
					h.energy(h.asset, label, back, byWeek(back)/2)
					h.energy(other, label, back, byWeek(back)/3)
				}

				said := h.pause(h.asset, other)
				known := []time.Time{h.now, h.now.Add(time.Hour), h.now.Add(48 * time.Hour)}
				h.now = h.now.Add(72 * time.Hour)
				var before []store.Run
				for _, at := range known {
					before = append(before, h.again(t, h.monday, at))
				}

				h.exec(t, `INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
				for _, change := range []string{
					`UPDATE asset SET power_w = 1000`, `UPDATE asset SET power_w = NULL`, `UPDATE asset SET capacity_wh = 1`,
					`UPDATE asset SET model = 'm', installed_on = '2025-01-01'`,
				} {
					h.exec(t, change)
					h.unchanged(before, said, change)
				}
				for _, terms := range []string{"user_share=0.1", "baseline=nominated", "in_day=true", "loss_factor=1.2", "rounding=half_even", "paid_early=0.5",
					"crediting=event", "claw_back=true", "credit_pence_per_kwh=7"} {
					if _, err := h.agree(t, flex.Day{}, terms); err != nil {
						t.Fatal(err)
					}
					h.unchanged(before, said, terms)
				}

				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					s, err := tx.Site(ctx, h.site)
					if err != nil {
						return err
					}
					s.ConsentAt = time.Time{}
					return tx.UpdateSite(ctx, s, "")
				})
				h.unchanged(before, said, "consent withdrawn")
				h.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, other) })
				h.unchanged(before, said, "a device taken away")
			})
		})
	}
}

func (h *home) unchanged(before []store.Run, said, change string) {
	h.t.Helper()
	h.now = h.now.Add(time.Hour)
	for _, was := range before {
		if run := h.again(h.t, h.monday, was.KnownAt); run.Hash != was.Hash || run.Events != was.Events {
			h.t.Errorf("%s: as known at %s %d events, %s; before %d, %s", change, was.KnownAt, run.Events, run.Hash, was.Events, was.Hash)
		}
	}
	r, err := h.service.Repair(h.t.Context(), h.org, reward.Resettlement{From: h.monday, To: h.monday})
	if now := h.said(); err != nil || r.Transactions != 0 || !strings.HasPrefix(now, said) {
		h.t.Errorf("%s: a repair %+v, %v; %s, before %s", change, r, err, now, said)
	}
}
