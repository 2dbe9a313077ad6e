package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/directory"
	"flexd/internal/flex"
	"flexd/internal/market"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// openMarket is open with the sandbox's meters and a service of prices.
func openMarket(t *testing.T, db *store.DB) *fixture {
	t.Helper()
	err := db.WriteAll(t.Context(), func(all *store.All) error { return all.PutMeters(t.Context(), directory.SandboxMeters()) })
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, db)
	h.server.Directory = directory.New(directory.Sandbox{Source: directory.Listed{Kept: db}}, directory.NewRefs(storetest.Keys(t), db.Random()), db.Now)
	h.server.Market = &market.Service{DB: db}
	return h
}

func TestValidateMPAN(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := openMarket(t, db)
		ask := func(mpan string, status int, want string) {
			t.Helper()
			h.want("POST", "/validation/mpan", `{"mpan":"`+mpan+`"}`, status, want)
		}

		ask("1099000010005", 200, `{"isValid":true}`)
		ask("10 9900 0010 005", 200, `{"isValid":true}`)
		ask("1099000010006", 400, `{"detail":["the last digit is 6, but the first twelve call for 5: one of the digits is wrong"]}`)
		ask("12x", 400, "")
		ask("1800021679848", 404, `{"detail":["no meter with this MPAN was found"]}`)
		ask("1099000010050", 404, `{"detail":["this is the MPAN of an export meter; give the import meter's"]}`)
		ask("1099000010032", 404, `{"detail":["the meter is not energised: no supply flows through it"]}`)
		h.want("POST", "/validation/mpan", `{}`, 422, `{"detail":[{"loc":["body","mpan"],"msg":"field required","type":"value_error.missing"}]}`)
	})
}

func TestMeters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := openMarket(t, db)
		const five = `{"mpan":"1099000010041","half_hourly_settled":true,"supplier_mpid":"FLXD","supplier_name":"Flexible Energy Supply","eligible_markets":["cm","dno","wholesale"]}`
		r := h.want("GET", "/meter/search?postcode=zz991aa&building_identifier=5", "", 200, "")
		var found []struct{ Ref, Address string }
		if err := json.Unmarshal([]byte(r.body), &found); err != nil || len(found) != 1 || found[0].Address != "5 Sandbox Street, Testwick, ZZ99 1AA" {
			t.Fatalf("%s, %v", r.body, err)
		}

		if strings.Contains(r.body, "109900") {
			t.Errorf("a search shows an MPAN: %s", r.body)
		}
		h.want("GET", "/meter/by-ref/"+found[0].Ref, "", 200, five)
		h.want("GET", "/meter/"+found[0].Ref+"/mpan", "", 200, five)
		_, token := h.newOrg("Other", "other")
		h.want("GET", "/meter/by-ref/"+found[0].Ref, "", 422, `{"detail":"this is no meter reference of yours: take one from a meter search"}`, "Authorization: Bearer "+token)
		h.want("GET", "/meter/by-ref/nonsense", "", 422, "")

		h.want("GET", "/meter/search?postcode=ZZ99+9ZZ", "", 200, `[]`)
		h.want("GET", "/meter/search?postcode=nowhere", "", 422, `{"detail":"\"nowhere\" is not a postcode; one looks like SW1A 2AA"}`)
		h.want("GET", "/meter/search", "", 422, "")
		h.want("GET", "/meter/search?postcode=ZZ99+1SL", "", 504, "")
		h.want("GET", "/meter/search?postcode=ZZ99+1DN", "", 503, "")

		h.want("POST", "/meter/by-address", `{"address":"5 Sandbox St, Testwick, ZZ99 1AA"}`, 200, five)
		h.want("POST", "/meter/by-address", `{"address":"7 Sandbox Street, ZZ99 1AA"}`, 202, `{"detail":"the premises has 2 import meters; none was chosen"}`)
		h.want("POST", "/meter/by-address", `{"address":"8 Sandbox Street, ZZ99 1AA"}`, 202, "")
		h.want("POST", "/meter/by-address", `{"address":"5 Sandbox Street"}`, 422, "")
		h.want("POST", "/meter/by-address", `{"address":"1 Any Street, ZZ99 1SL"}`, 504, "")
		h.want("POST", "/meter/by-mpan", `{"mpan":"1099000010041"}`, 200, five)
		h.want("POST", "/meter/by-mpan", `{"mpan":"1800021679848"}`, 202, `{"detail":"no meter with this MPAN was found"}`)
		h.want("POST", "/meter/by-mpan", `{"mpan":"12"}`, 422, "")

		h.want("GET", "/meter/?address="+url.QueryEscape("5 Sandbox St, ZZ99 1AA"), "", 200, five)
		h.want("GET", "/meter/?address="+url.QueryEscape("8 Sandbox St, ZZ99 1AA"), "", 422, "")
		h.want("GET", "/meter/1099000010041", "", 200, five)
		h.want("GET", "/meter/1800021679848", "", 422, "")
		h.want("GET", "/meter/"+directory.DownMPAN, "", 503, "")
	})
}

func TestPriceCurves(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2025, 1, 15, 10, 0, 0, 0, time.UTC)
		first := flex.EFADayAt(now).Span().From
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		h := openMarket(t, db)
		seed := storetest.NewSeed(t, db, url)
		site := seed.Site()
		asset := seed.Asset(site, flex.Battery, 0)
		seed.Exec(`UPDATE site SET org_id = $1`, h.org.ID.Bytes())
		seed.Exec(`UPDATE asset SET org_id = $1`, h.org.ID.Bytes())

		prices := make([]flex.PricedPeriod, 96)
		for i := range prices {
			prices[i] = flex.PricedPeriod{Period: flex.PeriodAt(first).Add(i), Price: flex.Price(-20_004_999 + i*1_000_000), Known: i != 23}
		}

		err := db.WriteAll(t.Context(), func(all *store.All) error {
			_, err := all.AddPublication(t.Context(), store.Publication{Source: "file", PublishedAt: all.Now(),
				Span: flex.Span{From: first, To: first.Add(48 * time.Hour)}}, prices)
			if err != nil {
				return err
			}
			return all.PutCarbon(t.Context(), []flex.Carbon{{Period: flex.PeriodAt(first).Add(2), Grams: 142}})
		})
		if err != nil {
			t.Fatal(err)
		}

		curve := h.want("GET", "/entities/asset/"+asset.String()+"/price-curve", "", 200, "").body
		if !strings.HasPrefix(curve, `{"half_hourly_traded_prices":[{"start_timestamp":"2025-01-15T10:00:00Z","price_gbp_per_mwh":2},{"start_timestamp":"2025-01-15T10:30:00Z","price_gbp_per_mwh":null},`) {
			t.Errorf("%.300s", curve)
		}
		if n := strings.Count(curve, "start_timestamp"); n != 26 {
			t.Errorf("%d rows, want 26", n)
		}

		h.want("GET", "/entities/site/"+site.String()+"/price-curve", "", 200, curve)
		err = db.Write(t.Context(), h.org.ID, func(tx *store.Tx) error { return tx.SetClock(t.Context(), 4*time.Hour) }) // to 14:00
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(h.want("GET", "/entities/site/"+site.String()+"/price-curve", "", 200, "").body, "start_timestamp"); n != 66 {
			t.Errorf("%d rows after publication, want 66", n)
		}
		h.want("GET", "/entities/asset/"+flex.AssetID{1}.String()+"/price-curve", "", 404, "")
		h.want("GET", "/entities/site/"+flex.SiteID{1}.String()+"/price-curve", "", 404, "")

		var day struct {
			Day    string
			Prices []struct {
				Price     *float64 `json:"price_gbp_per_mwh"`
				Carbon    *float64 `json:"carbon_g_per_kwh"`
				Published string   `json:"publication_id"`
			}
			Publications []struct {
				Source  string
				Missing int `json:"num_missing"`
			}
		}

		body := h.want("GET", "/market/curves?day=2025-01-15", "", 200, "").body
		if err := json.Unmarshal([]byte(body), &day); err != nil || day.Day != "2025-01-15" || len(day.Prices) != 48 ||
			*day.Prices[0].Price != -18 || *day.Prices[0].Carbon != 142 || day.Prices[1].Carbon != nil || day.Prices[0].Published == "" {
			t.Errorf("%v: %.400s", err, body)
		}
		if fmt.Sprint(day.Publications) != "[{file 1}]" {
			t.Errorf("%v", day.Publications)
		}
		h.want("GET", "/market/curves?day=2025-02-30", "", 422, "")
	})
}
