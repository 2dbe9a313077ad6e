package control_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// BenchmarkCallables measures what is read of who may be called: 100 cars and 100 heaters at 100 sites, each of which was called 100 times: 10,000 calls.
func BenchmarkCallables(b *testing.B) {
	storetest.EachBench(b, func(b *testing.B, url string) {
		h := open(b, url, "2026-01-14T22:40:00Z")
		for range 100 {
			h.site = h.Site(flex.FullScheduleMethod)
			h.heaterHere("tank")
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			h.event(control.Event{Kind: control.PlugIn, Intent: need(41, flex.Minimise), Tariff: nightTariff("Europe/London")})
		}

		for h.runTanks() > 0 {
		}
		for n := range 100 {
			id := [16]byte{6: 0x70, 8: 0x80, 14: byte(n >> 8), 15: byte(n)}
			h.Exec(`INSERT INTO instruction (org_id, id, change_w, group_name, gsp_group, from_at, to_at, service, price, reason, unfair, who, made_at, looked_at, target)
				VALUES ($1, $2, -1000, '', '', $3, $4, 'dno', 0, '', FALSE, '', 0, 0, '')`, h.Org.Bytes(), id[:], n*2e6, n*2e6+1e6)
			h.Exec(`INSERT INTO called_asset (instruction_id, asset_id, site_id, org_id, called_at, power_w, cost, from_at, baseline, expected, number)
				SELECT $1, id, site_id, org_id, $2, 0, 0, 0, '', '', $3 FROM asset WHERE type = 'charger'`, id[:], n*2e6, n+1)
		}
		b.ReportMetric(float64(h.Count(`SELECT count(*) FROM called_asset`)), "calls")

		span := flex.Span{From: at("2026-01-15T03:00:00Z"), To: at("2026-01-15T04:00:00Z")}
		took := map[string]time.Duration{}

		for b.Loop() {
			err := h.db.Read(b.Context(), h.Org, func(tx *store.Tx) error {
				begun := time.Now()
				_, err := tx.Callables(b.Context(), flex.Scope{}, span, h.db.Now())
				took["cars"] += time.Since(begun)
				if err != nil {
					return err
				}

				begun = time.Now()
				_, err = tx.ScopeHeaters(b.Context(), flex.Scope{}, span, h.db.Now())
				took["heaters"] += time.Since(begun)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}

		for what, d := range took {
			b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), what+"-ms")
		}
	})
}
