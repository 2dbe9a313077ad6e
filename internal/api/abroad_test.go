package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/wire"
	"flexd/internal/worker"
)

// abroad is the body of a site without a metering point.
func abroad(postcode, address, more string) string {
	return fmt.Sprintf(`{"mpan":"","postcode":%q,"street_address":%q%s}`, postcode, address, more)
}

// onboardAbroad is the body of the onboarding of one charger there.
func onboardAbroad(postcode, address, external string) string {
	return fmt.Sprintf(
		`{"site":%s,"assets":[{"external_id":%q,"type":"charger","properties":{"power_kw":7.4}}],"proposition":"full_asset_schedule_control"}`,
		abroad(postcode, address, ""), external)
}

// allowAbroad has the organisation take sites without a metering point, and pay 5 p for each kWh of a session.
func (h *fixture) allowAbroad(db *store.DB) {
	h.Helper()
	err := db.Write(h.Context(), h.org.ID, func(tx *store.Tx) error {
		if err := tx.PutTerm(h.Context(), flex.Term{Name: "credit_pence_per_kwh", Value: "5"}); err != nil {
			return err
		}
		return tx.SetSettings(h.Context(), flex.OrgSettings{WithoutMPAN: true})
	})
	if err != nil {
		h.Fatal(err)
	}
}

func TestSites_WithoutMPAN(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		needed := `{"detail":"body.mpan: ensure this value has at least 1 characters"}`
		h.want("POST", "/entities/site", abroad("10117", "Unter den Linden 1", ""), 422, "")
		h.want("POST", "/entities/site", abroad("SW1A 2AA", "10 Downing Street", ""), 422, needed)

		h.allowAbroad(db)
		r := h.want("POST", "/entities/site", abroad("d-10117 ", " Unter  den Linden 1", ""), 200, "")
		site := text(t, r.body, "id")
		h.want("GET", "/entities/site/"+site, "", 200, fmt.Sprintf(
			`{"id":%q,"postcode":"D-10117","address":"Unter den Linden 1","asset_ids":[],"markets":[],"dispatch_methods":[],"import_capacity_kw":23,"export_capacity_kw":23,"capacity_source":"default"}`, site))

		for _, postcode := range []string{"D-10117", "d-10117"} {
			page := h.want("GET", "/entities/site?postcode="+postcode, "", 200, "")
			if text(t, page.body, "total_num_sites") != "1" || text(t, page.body, "sites", 0, "id") != site {
				t.Errorf("by the postcode %s: %s", postcode, page.body)
			}
		}

		h.want("POST", "/entities/site", abroad("D-10117", "unter den linden, 1", ""), 409, fmt.Sprintf(`{"detail":"a site with this address exists already: %s"}`, site))
		h.want("POST", "/entities/site", abroad("10117", "", ""), 422, `{"detail":"body.street_address: field required: a site without an MPAN is known by its address and postcode"}`)
		h.want("POST", "/entities/site", abroad("10117", " ,- ", ""), 422, "")
		h.want("POST", "/entities/site", abroad("1011;7", "Unter den Linden 2", ""), 422, "")
		h.want("POST", "/entities/site", abroad(strings.Repeat("1", registry.PostcodeMax+1), "Unter den Linden 2", ""), 422, "")
		h.want("POST", "/entities/site", abroad(strings.Repeat("1", registry.PostcodeMax), "Unter den Linden 2", ""), 200, "")
		h.want("POST", "/entities/site", abroad("10117", "Unter den Linden 3", ","+consent), 400, "")
		h.want("POST", "/entities/site", `{"postcode":"10117","street_address":"Unter den Linden 4"}`, 422, `{"detail":"body.mpan: field required"}`)
		h.want("POST", "/entities/site", `{"mpan":"12","postcode":"10117","street_address":"Unter den Linden 4"}`, 422, "")

		// The tariff of such a site can be changed, and it may get a metering point later, with a British postcode.
		at := "/entities/site/" + site
		h.want("PATCH", at, `{"address":"Unter den Linden 5"}`, 200, "")
		h.want("PATCH", at, fmt.Sprintf(`{"mpan":%q}`, halfHourly), 422, "")
		h.want("PATCH", at, fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA","address":"10 Downing Street"}`, halfHourly), 200, "")
		h.want("PATCH", at, `{"postcode":"10117"}`, 422, "")
	})
}

// TestSites_WithoutMPAN_Settlement has three cars charge alike, two of them at sites without a metering point: all
// are planned, and only the third's session earns.
func TestSites_WithoutMPAN_Settlement(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		h := open(t, db)
		h.stock()
		h.allowAbroad(db)
		h.server.Control, h.server.Reward = &control.Service{DB: db}, &reward.Service{DB: db}

		bodies := []string{
			onboardAbroad("10117", "Unter den Linden 1", "berlin"),
			onboardAbroad("1012 JS", "Dam 1", "amsterdam"),
			onboarding(halfHourly, "london", `,"properties":{"power_kw":7.4}`),
		}

		var sites, assets []string
		for _, body := range bodies {
			r := h.want("POST", "/entities/site/onboard", body, 200, "")
			sites = append(sites, text(t, r.body, "site", "site_id"))
			assets = append(assets, text(t, r.body, "assets", 0, "asset_id"))

			again := h.want("POST", "/entities/site/onboard", body, 200, "")
			if got := text(t, again.body, "site", "site_id"); got != sites[len(sites)-1] {
				t.Errorf("onboarded again it is %s: %s", got, again.body)
			}
		}

		for _, site := range sites[:2] {
			h.want("POST", "/entities/site/"+site+"/meter-consent", `{`+consent+`}`, 400, "")
		}

		for _, asset := range assets {
			h.want("POST", "/entities/asset/"+asset+"/event/plug-in", `{"intent":{"ready_by":"2026-01-16T07:00:00Z","energy_required_kwh":3.7},"tariff":{"off_peak_times":"00:00-05:30","timezone":"Europe/London"}}`, 200, "null")
			s := read[wire.ScheduleResponse](t, h.ask("GET", "/entities/asset/"+asset+"/schedule", ""))
			if len(s.Periods) < 2 {
				t.Errorf("the schedule is %+v", s)
			}
		}

		now = now.Add(14 * time.Hour)
		for _, asset := range assets {
			err := h.server.Control.Event(t.Context(), h.org.ID, parse[flex.AssetID](t, asset), control.Event{Kind: control.PlugOut})
			if err != nil {
				t.Fatal(err)
			}
		}

		first := flex.PeriodAt(now.Add(-8 * time.Hour))
		var readings []flex.Reading
		for _, asset := range assets {
			id := parse[flex.AssetID](t, asset)
			for p := flex.PeriodAt(now.Add(-14 * time.Hour)); p.Start().Before(now); p = p.Add(1) {
				energy := flex.Micro(0)
				if p == first {
					energy = 3_700_000
				}
				readings = append(readings, flex.Reading{AssetID: id, Span: p.Span(), Label: flex.ChargerEnergy, Value: energy})
			}
		}

		err := db.Write(t.Context(), h.org.ID, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), readings) })
		if err != nil {
			t.Fatal(err)
		}

		for range 40 { // past every deadline of settlement
			now = now.Add(24 * time.Hour)
			for _, run := range []func(context.Context) (worker.Report, error){h.server.Reward.SettleSessions, h.server.Reward.SettleEvents} {
				if _, err := run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}

		for i, site := range sites {
			got, err := h.server.Reward.Transactions(t.Context(), h.org.ID, parse[flex.SiteID](t, site), 10, 0)
			if err != nil {
				t.Fatal(err)
			}
			if paid := i == 2; (len(got.Transactions) > 0) != paid {
				t.Errorf("site %d of %s has %d transactions: %+v", i, bodies[i], len(got.Transactions), got)
			}
		}
	})
}

// parse reads an id.
func parse[T ~[16]byte](t *testing.T, text string) (id T) {
	t.Helper()
	u, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return T(u)
}
