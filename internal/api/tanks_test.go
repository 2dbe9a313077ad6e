package api_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
)

// TestTanks has the schedule of a hot-water tank answered as a charger's, with its explanation in both forms.
func TestTanks(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 13, 17, 10, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		h := open(t, db)
		h.server.Control = &control.Service{DB: db}
		seed := storetest.NewSeed(t, db, url)
		tank := seed.Asset(seed.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
		for _, table := range []string{"site", "asset", "dispatch_method"} {
			seed.Exec(`UPDATE ` + table + ` SET org_id = ` + "(SELECT id FROM org WHERE name = 'Acme')")
		}

		at := "/entities/asset/" + tank.String() + "/schedule"
		h.want("GET", at, "", 404, `{"detail":"asset `+tank.String()+` has no schedule yet: it is planned within a minute"}`)
		if r, err := h.server.Control.PlanTanks(t.Context()); err != nil || r.Count != 1 {
			t.Fatalf("%+v, %v", r, err)
		}

		s := read[wire.ScheduleResponse](t, h.ask("GET", at, ""))
		if s.Generation != 1 || len(s.Periods) < 2 || s.Periods[0].LimitW != 3000 || s.Periods[1].LimitW != 0 {
			t.Errorf("%+v", s)
		}

		x := read[wire.ScheduleExplanation](t, h.ask("GET", at+"/explanation", ""))
		prose := h.want("GET", at+"/explanation", "", 200, "", "Accept: text/plain")
		if !strings.Contains(x.Summary, "The element, 3 kW, is on from Tue 17:10") || !strings.Contains(prose.body, x.Summary) {
			t.Errorf("%s and %s", x.Summary, prose.body)
		}
	})
}
