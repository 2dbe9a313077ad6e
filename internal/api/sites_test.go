package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// newSite makes a site and returns its id.
func (h *fixture) newSite(mpan, postcode, address string) string {
	h.Helper()
	r := h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":%q,"street_address":%q,%s}`, mpan, postcode, address, consent), 200, "")
	return text(h.T, r.body, "id")
}

// newAsset makes a charger at a site and returns its id.
func (h *fixture) newAsset(site, external string) string {
	h.Helper()
	r := h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":%q,"type":"charger","site_id":%q}`, external, site), 200, "")
	return text(h.T, r.body, "id")
}

func TestSites(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "sw1a2aa", " 10  Downing Street ")
		shown := fmt.Sprintf(`{"id":%q,"mpan":"1234567890126","postcode":"SW1A 2AA","address":"10 Downing Street","asset_ids":[],"markets":["cm","dno","wholesale"],"dispatch_methods":[],"gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z","import_capacity_kw":23,"export_capacity_kw":23,"capacity_source":"default"}`, site)
		h.want("GET", "/entities/site/"+site, "", 200, shown)
		h.want("POST", "/entities/site", `{"mpan":"1000000000012","postcode":"SW1A 2AA","street_address":"10, downing st."}`, 409,
			fmt.Sprintf(`{"detail":"a site with this address exists already: %s"}`, site))
		h.want("POST", "/entities/site", `{"mpan":"12345 6789 0126","postcode":"SW1A 2AB"}`, 400,
			fmt.Sprintf(`{"detail":"a site with this MPAN exists already: %s"}`, site))
		h.want("POST", "/entities/site", `{"mpan":"1000000000012","postcode":"SW1A 2AB","email":"x"}`, 400, "")
		h.want("POST", "/entities/site", `{"postcode":7}`, 422, `{"detail":"body.postcode: str type expected: give a string in quotes; body.mpan: field required"}`)
		h.want("POST", "/entities/site", `{"mpan":"1000000000012","postcode":"X"}`, 422, `{"detail":"body.postcode: \"X\" is not a postcode; one looks like SW1A 2AA"}`)

		second := h.newSite(notSettled, "SW1A 2AB", "")
		page := func(query string, total int, ids ...string) {
			t.Helper()
			r := h.want("GET", "/entities/site"+query, "", 200, "")
			var got []string
			for _, s := range get(t, r.body, "sites").([]any) {
				got = append(got, s.(map[string]any)["id"].(string))
			}
			if !slices.Equal(got, ids) || text(t, r.body, "total_num_sites") != fmt.Sprint(total) {
				t.Errorf("%s: %s", query, r.body)
			}
		}

		page("", 2, site, second)
		page("?limit=1", 2, site)
		page("?limit=1&offset=1", 2, second)
		page("?limit=1&offset=2", 2)
		page("?mpan=1234567890126", 1, site)
		page("?postcode=sw1a2ab", 1, second)
		page("?postcode=SW1A%202AB&mpan=1234567890126", 0)
		page("?mpan=12", 0)
		page("?postcode=x", 0)
		if r := h.want("GET", "/entities/site?limit=1&offset=1", "", 200, ""); text(t, r.body, "page_number") != "2" || text(t, r.body, "total_num_pages") != "2" {
			t.Error(r.body)
		}

		for _, query := range []string{"limit=0", "limit=5001", "offset=-1", "limit=x", "limit=1&limit=2", "limit=%zz", "mpan=%00", "mpan=%ff"} {
			h.want("GET", "/entities/site?"+query, "", 422, "")
		}
		h.want("GET", "/entities/site?limit=5000&Limit=x&unknown=y", "", 200, "")
	})
}

func TestSite_Change(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site, other := h.newSite(halfHourly, "SW1A 2AA", "10 Downing Street"), h.newSite(notSettled, "SW1A 2AB", "")
		at := "/entities/site/" + site
		r := h.want("PATCH", at, `{"tariff":{"tariff_type":"dual_rate","tariff_cheap_start_time":"00:30","tariff_cheap_end_time":"05:30:00"},"address":"11 Downing Street","postcode":"SW1A 2AC","mpan":"1500000000033","email":"resident@example.com"}`, 200, "")
		want := fmt.Sprintf(`{"id":%q,"mpan":"1500000000033","postcode":"SW1A 2AC","address":"11 Downing Street","asset_ids":[],"markets":[],"dispatch_methods":[],"tariff":{"tariff_type":"dual_rate","tariff_cheap_start_time":"00:30:00","tariff_cheap_end_time":"05:30:00"},"gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z","import_capacity_kw":23,"export_capacity_kw":23,"capacity_source":"default"}`, site)
		if r.body != want {
			t.Errorf("%s\nwant %s", r.body, want)
		}

		h.want("PATCH", at, `{}`, 200, want)
		h.want("GET", at, "", 200, want)
		h.want("PATCH", at, `{"mpan":"1000000000012"}`, 422, fmt.Sprintf(`{"detail":[{"loc":["body","mpan"],"msg":"another site has this MPAN: %s","type":"value_error.mpan.taken"}]}`, other))
		h.want("PATCH", at, `{"mpan":"1","postcode":"X","email":"y"}`, 422,
			`{"detail":[{"loc":["body","mpan"],"msg":"it has 1 characters; an MPAN has 13 digits, or 21 with the top line of the bill","type":"value_error.mpan"},`+
				`{"loc":["body","postcode"],"msg":"\"X\" is not a postcode; one looks like SW1A 2AA","type":"value_error.postcode"},`+
				`{"loc":["body","email"],"msg":"the email is not an address that mail can be sent to: write it like resident@example.com","type":"value_error.email"}]}`)
		h.want("PATCH", "/entities/site/nothing", `{"tariff":{}}`, 422,
			`{"detail":[{"loc":["path","site_id"],"msg":"value is not a valid uuid: write it like b2c3d4e5-f6a7-8901-bcde-f23456789012","type":"type_error.uuid"},`+
				`{"loc":["body","tariff","tariff_type"],"msg":"field required","type":"value_error.missing"}]}`)
		h.want("GET", at, "", 200, want)

		const rates = `"tariff":{"tariff_type":"dual_rate","import_p_per_kwh":1000,"off_peak_p_per_kwh":7.25,"export_p_per_kwh":0}`
		h.want("PATCH", at, `{`+rates+`}`, 200, "")
		for _, way := range []string{at, "/entities/site?mpan=1500000000033", "/operations/site/" + site} {
			if r := h.want("GET", way, "", 200, ""); !strings.Contains(r.body, `"import_p_per_kwh":1000,"off_peak_p_per_kwh":7.25,"export_p_per_kwh":0`) {
				t.Error(r.body)
			}
		}
		for _, wrong := range []string{`"import_p_per_kwh":1000.1`, `"off_peak_p_per_kwh":-0.1`, `"export_p_per_kwh":"15"`} {
			h.want("PATCH", at, `{"tariff":{"tariff_type":"dual_rate",`+wrong+`}}`, 422, "")
		}
		h.want("PATCH", at, `{"tariff":{"tariff_type":"dual_rate","tariff_cheap_start_time":"00:30","tariff_cheap_end_time":"05:30:00"}}`, 200, want)

		h.want("POST", at+"/meter-consent", `{"gave_boundary_meter_consent_at":"2026-02-01T00:00:00+01:00"}`, 200, strings.Replace(want, "2026-01-15T10:30:00", "2026-01-31T23:00:00", 1))
		h.want("POST", at+"/meter-consent", `{"gave_boundary_meter_consent_at":"2199-01-01T00:00:00Z"}`, 400, "")
		h.want("POST", at+"/dispatch-consent", `{"dispatch_methods":["vpp_limited_control","cm_infrequent_dispatch"]}`, 200, "")
		r = h.want("POST", at+"/dispatch-deconsent", `{"dispatch_methods":["vpp_limited_control"]}`, 200, "")
		if text(t, r.body, "dispatch_methods") != "[cm_infrequent_dispatch]" {
			t.Error(r.body)
		}
		asset := h.newAsset(site, "x")
		h.want("DELETE", at, "", 400, `{"detail":"the site still has assets: delete them first, or offboard the site"}`)
		h.want("DELETE", "/entities/asset/"+asset, "", 204, "")
		h.want("DELETE", at, "", 204, "")
		h.want("DELETE", at, "", 404, `{"detail":"site not found or not authorized"}`)
	})
}

func TestAssets(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")

		for i, typ := range []string{"charger", "battery", "heat pump", "electric_vehicle", "hot water tank"} {
			body := fmt.Sprintf(`{"external_id":"e%d","type":%q,"site_id":%q,"properties":{"power_kw":7.4,"capacity_kwh":0},"installation_date":"2025-06-15","serial_number":"s"}`, i, typ, site)
			r := h.want("POST", "/entities/asset", body, 200, "")
			id := text(t, r.body, "id")
			want := fmt.Sprintf(`{"id":%q,"external_id":"e%d","type":%q,"site_id":%q,"properties":{"power_kw":7.4,"capacity_kwh":0}}`, id, i, typ, site)
			h.want("GET", "/entities/asset/"+id, "", 200, want)
			h.want("GET", "/entities/asset/"+strings.ToUpper(id), "", 200, want)
			h.want("POST", "/entities/asset", body, 409, fmt.Sprintf(`{"detail":"an asset with this external id exists already: %s"}`, id))
		}

		h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"m","type":"boundary meter","site_id":%q}`, site), 422, "")
		h.want("POST", "/entities/asset", `{"external_id":"m","type":"charger","site_id":"b2c3d4e5-f6a7-8901-bcde-f23456789012"}`, 404, `{"detail":"site not found or not authorized"}`)
		h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"m","type":"charger","site_id":%q,"asset_model":"none"}`, site), 404, `{"detail":"asset_model \"none\" is not in the catalogue"}`)
		h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"m","type":"charger","site_id":%q,"properties":{"power_kw":-1},"installation_date":"2025-02-30"}`, site), 422, "")
		r := h.want("GET", "/entities/asset?limit=2&offset=4", "", 200, "")
		if text(t, r.body, "assets", 0, "external_id") != "e4" || !strings.HasSuffix(r.body, `"total_num_assets":5,"total_num_pages":3,"page_number":3}`) {
			t.Error(r.body)
		}

		plain := h.newAsset(site, "plain")
		h.want("GET", "/entities/asset/"+plain, "", 200, fmt.Sprintf(`{"id":%q,"external_id":"plain","type":"charger","site_id":%q}`, plain, site))
		h.want("PATCH", "/entities/asset/"+plain, `{"asset_model":"zappi","type":"battery"}`, 200, fmt.Sprintf(`{"id":%q,"external_id":"plain","type":"charger","site_id":%q,"properties":{"power_kw":7.4}}`, plain, site))
		h.want("PATCH", "/entities/asset/"+plain, `{"properties":{"capacity_kwh":5.5},"installation_date":"2025-06-15"}`, 200, fmt.Sprintf(`{"id":%q,"external_id":"plain","type":"charger","site_id":%q,"properties":{"power_kw":7.4,"capacity_kwh":5.5}}`, plain, site))
		h.want("PATCH", "/entities/asset/"+plain, `{"asset_model":"none"}`, 404, "")
		h.want("PATCH", "/entities/asset/"+plain, `{"asset_model":"pack"}`, 400, `{"detail":"asset_model \"pack\" is a battery, and the asset a charger"}`)
		h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"m","type":"charger","site_id":%q,"asset_model":"pack"}`, site), 400, "")
		h.want("DELETE", "/entities/asset/"+plain, "", 204, "")
		h.want("DELETE", "/entities/asset/"+plain, "", 404, `{"detail":"asset not found or not authorized"}`)
	})
}

// TestAsset_ExternalID finds assets by names that a URL has to escape.
func TestAsset_ExternalID(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		names := []string{"a/b", "a%2Fb", "%", "100%", "..", ".", "a b", "a+b", "Zoë 🚗", "a?b#c", "x;y=z", "/", "//", `"quoted"`, "a\\b", "a\tb", "external-id", strings.Repeat("n", 1000)}
		for _, name := range names {
			id := h.newAsset(site, name)
			r := h.want("GET", "/entities/asset/external-id/"+strings.ReplaceAll(url.PathEscape(name), ".", "%2E"), "", 200, "")
			if text(t, r.body, "id") != id {
				t.Errorf("%q found %s", name, r.body)
			}
		}

		h.want("GET", "/entities/asset/external-id/nothing", "", 404, `{"detail":"asset not found or not authorized"}`)
		h.want("GET", "/entities/asset/external-id/%00", "", 422, "")
		h.want("GET", "/entities/asset/external-id/%ff", "", 422, "")
	})
}

// TestOnboardSiteAndAsset sends the recorded requests of the older way in.
func TestOnboardSiteAndAsset(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		const at = "/entities/site/onboard-site-and-asset"
		body := func(mpan, external, methods string) string {
			return fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 1AA",%s},"asset":{"external_id":%q,"type":"charger","properties":{"power_kw":7.4}},"dispatch_consent":{"dispatch_methods":[%s]}}`, mpan, consent, external, methods)
		}

		r := h.want("POST", at, body(halfHourly, "a", `"limited_pause","vpp_limited_control"`), 200, "")
		site := text(t, r.body, "site", "id")
		if text(t, r.body, "site", "dispatch_methods") != "[limited_pause vpp_limited_control]" || text(t, r.body, "asset", "site_id") != site {
			t.Error(r.body)
		}
		h.want("POST", at, body(halfHourly, "b", `"limited_pause"`), 409, "")
		h.want("POST", at, body(notSettled, "a", ``), 409, "")
		h.want("POST", at, body(notSettled, "b", `"limited_pause"`), 422, "")
		h.want("POST", at, body(notSettled, "b", ``), 200, "")
		h.want("POST", at, body("1500000000033", "c", `"limited_pause","limited_pause"`), 422, "")
		h.want("POST", at, strings.Replace(body("1500000000033", "c", ``), consent, `"email":"a@b.example"`, 1), 400, "")
	})
}

// TestTenants shows that what is another organisation's is, byte for byte, what never was.
func TestTenants(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "10 Downing Street")
		asset := h.newAsset(site, "a")
		_, token := h.newOrg("Other", "other")
		other := "Authorization: Bearer " + token

		const nowhere = "b2c3d4e5-f6a7-8901-bcde-f23456789012"
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/entities/site/SITE", ""},
			{"PATCH", "/entities/site/SITE", `{"email":"a@b.example"}`},
			{"DELETE", "/entities/site/SITE", ""},
			{"GET", "/entities/site/SITE/eligibility", ""},
			{"POST", "/entities/site/SITE/enrol", `{"proposition":"limited_pause"}`},
			{"POST", "/entities/site/SITE/unenrol", `{"proposition":"limited_pause"}`},
			{"POST", "/entities/site/SITE/offboard-site-and-assets", ""},
			{"POST", "/entities/site/SITE/meter-consent", "{" + consent + "}"},
			{"POST", "/entities/site/SITE/dispatch-consent", `{"dispatch_methods":[]}`},
			{"POST", "/entities/site/SITE/dispatch-deconsent", `{"dispatch_methods":[]}`},
			{"POST", "/entities/asset", `{"external_id":"x","type":"charger","site_id":"SITE"}`},
			{"GET", "/entities/asset/ASSET", ""},
			{"PATCH", "/entities/asset/ASSET", `{}`},
			{"DELETE", "/entities/asset/ASSET", ""},
		} {
			theirs := strings.NewReplacer("SITE", site, "ASSET", asset)
			never := strings.NewReplacer("SITE", nowhere, "ASSET", nowhere)
			a := h.want(c.method, theirs.Replace(c.path), theirs.Replace(c.body), 404, "", other)
			h.want(c.method, never.Replace(c.path), never.Replace(c.body), 404, a.body, other)
		}

		h.want("GET", "/entities/asset/external-id/a", "", 404, "", other)
		h.want("GET", "/entities/site", "", 200, `{"sites":[],"total_num_sites":0,"total_num_pages":0,"page_number":1}`, other)
		// Two organisations may know the same premises and use the same names.
		h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "a", ""), 200, "", other)
		h.want("GET", "/entities/asset/"+asset, "", 200, "")
	})
}

// TestOnboardSiteAndAsset_Vectors sends the recorded requests of the older way in, each
// twice to an organisation of its own.
func TestOnboardSiteAndAsset_Vectors(t *testing.T) {
	b, err := os.ReadFile("testdata/onboard-legacy-single-asset.json")
	if err != nil {
		t.Fatal(err)
	}

	var v struct {
		Requests []struct {
			Use  string
			Body json.RawMessage
		}
		Second int `json:"second_call_expected_status"`
	}
	if err := json.Unmarshal(b, &v); err != nil || len(v.Requests) == 0 {
		t.Fatal(err)
	}

	h := settleIn(t)
	for i, r := range v.Requests {
		o, password, err := h.whole.Access.AddOrg(t.Context(), r.Use, fmt.Sprint("user", i), "")
		if err != nil || o.ID.IsZero() || password == "" {
			t.Fatal(err)
		}

		h.token = h.login(fmt.Sprint("user", i))
		if strings.HasPrefix(r.Use, "VPP") { // its battery names no model, and its meter is on no list
			h.want("POST", "/entities/site/onboard-site-and-asset", string(r.Body), 422, "")
			continue
		}
		h.want("POST", "/entities/site/onboard-site-and-asset", string(r.Body), 200, "")
		h.want("POST", "/entities/site/onboard-site-and-asset", string(r.Body), v.Second, "")
	}
}

// TestSite_MainFuse gives a site's import capacity as a main fuse: at its limits and past them, in the place of kW, and
// shown with what it carries, until it is given in kW again.
func TestSite_MainFuse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA",%s,"main_fuse":{"amperes":60,"phases":1}}`, halfHourly, consent), 200, "").body
		if text(t, site, "import_capacity_kw") != "13.8" || text(t, site, "capacity_source") != "set" || text(t, site, "main_fuse", "amperes") != "60" {
			t.Error(site)
		}

		at := "/entities/site/" + text(t, site, "id")
		for fuse, kw := range map[string]string{`{"amperes":5,"phases":1}`: "1.15", `{"amperes":800,"phases":3}`: "552", `{"amperes":62.5,"phases":3}`: "43.125"} {
			h.want("PATCH", at, `{"main_fuse":`+fuse+`}`, 200, "")
			shown := h.want("GET", at, "", 200, "").body
			view := h.want("GET", strings.Replace(at, "/entities/", "/operations/", 1), "", 200, "").body
			if !strings.Contains(view, `"main_fuse":`+fuse) {
				t.Errorf("GET /operations/site does not show a main fuse of %s: %s", fuse, view)
			}
			if text(t, shown, "import_capacity_kw") != kw || !strings.Contains(shown, `"main_fuse":`+fuse) {
				t.Errorf("%s: %s", fuse, shown)
			}
		}

		for _, wrong := range []string{`{"amperes":4.99,"phases":1}`, `{"amperes":800.1,"phases":1}`, `{"amperes":60,"phases":0}`, `{"amperes":60,"phases":4}`, `{"amperes":60}`, `{"phases":1}`} {
			h.want("PATCH", at, `{"main_fuse":`+wrong+`}`, 422, "")
		}
		h.want("PATCH", at, `{"main_fuse":{"amperes":60,"phases":2}}`, 422,
			`{"detail":[{"loc":["body","main_fuse"],"msg":"a main fuse of 60 A on 2 phases: give 5 to 800 A for each phase, and 1 or 3 phases","type":"value_error"}]}`)
		h.want("PATCH", at, `{"main_fuse":{"amperes":60,"phases":1},"import_capacity_kw":13.8}`, 422,
			`{"detail":[{"loc":["body","main_fuse"],"msg":"the import capacity is given as a main fuse and in kW: give one of them","type":"value_error"}]}`)

		h.want("PATCH", at, `{"main_fuse":{"amperes":80,"phases":1},"capacity_from":"2026-01-02"}`, 200, "")
		if shown := h.want("PATCH", at, `{"export_capacity_kw":3.68}`, 200, "").body; text(t, shown, "main_fuse", "amperes") != "80" || text(t, shown, "import_capacity_kw") != "18.4" {
			t.Error(shown)
		}
		if shown := h.want("PATCH", at, `{"import_capacity_kw":18.4}`, 200, "").body; strings.Contains(shown, "main_fuse") {
			t.Errorf("given in kW again: %s", shown)
		}
		if found, err := db.Verify(t.Context()); err != nil || len(found) > 0 {
			t.Error(err, found)
		}
	})
}

// TestSite_Supply holds a site's capacity at its limits: told at registering, changed by
// PATCH and by onboarding, and shown.
func TestSite_Supply(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		create := func(mpan, capacity string, status int) string {
			t.Helper()
			return h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA",%s%s}`, mpan, consent, capacity), status, "").body
		}

		for _, wrong := range []string{`"import_capacity_kw":0.999`, `"import_capacity_kw":10000.001`, `"export_capacity_kw":-0.001`, `"export_capacity_kw":10000.001`, `"import_capacity_kw":"23"`} {
			create(halfHourly, ","+wrong, 422)
		}
		least := create(halfHourly, `,"import_capacity_kw":1,"export_capacity_kw":0`, 200)
		if text(t, least, "import_capacity_kw") != "1" || text(t, least, "export_capacity_kw") != "0" {
			t.Error(least)
		}

		most := create(notSettled, `,"import_capacity_kw":10000,"export_capacity_kw":10000`, 200)
		if text(t, most, "import_capacity_kw") != "10000" || text(t, most, "export_capacity_kw") != "10000" {
			t.Error(most)
		}
		plain := create(nonDomestic, "", 200)
		if text(t, plain, "import_capacity_kw") != "23" || text(t, plain, "capacity_source") != "default" {
			t.Error(plain)
		}

		named := h.want("PATCH", "/entities/site/"+text(t, plain, "id"), `{"import_capacity_kw":23}`, 200, "").body
		if text(t, named, "capacity_source") != "set" {
			t.Errorf("the default, given as such: %s", named)
		}

		at := "/entities/site/" + text(t, least, "id")
		shows := func(importKW, exportKW string) {
			t.Helper()
			for _, path := range []string{at, "/entities/site?mpan=" + halfHourly} {
				want := fmt.Sprintf(`"import_capacity_kw":%s,"export_capacity_kw":%s,"capacity_source":"set"}`, importKW, exportKW)
				if r := h.want("GET", path, "", 200, ""); !strings.Contains(r.body, want) {
					t.Errorf("%s: %s has no %s", path, r.body, want)
				}
			}
		}

		shows("1", "0")
		h.want("PATCH", at, `{"export_capacity_kw":3.68}`, 200, "")
		shows("1", "3.68")
		h.want("PATCH", at, `{"export_capacity_kw":3.68,"capacity_from":"2026-01-02"}`, 200, "")
		shows("1", "3.68")
		h.want("PATCH", at, `{"export_capacity_kw":5,"capacity_from":"2126-01-02"}`, 422,
			`{"detail":[{"loc":["body","capacity_from"],"msg":"the day lies ahead: give a capacity when its day has come","type":"value_error.date"}]}`)
		h.want("PATCH", at, `{"capacity_from":"2026-01-02"}`, 422,
			`{"detail":[{"loc":["body","capacity_from"],"msg":"a day is given, and no capacity that counts from it","type":"value_error.date"}]}`)
		asset := h.newAsset(text(t, least, "id"), "dated")
		powered := h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"power_kw":3.6},"power_from":"2026-01-02"}`, 200, "").body
		if !strings.Contains(powered, `"power_kw":3.6`) {
			t.Error(powered)
		}

		h.want("PATCH", "/entities/asset/"+asset, `{"power_from":"2026-01-02"}`, 422, "")
		for _, phases := range []string{"1", "3"} {
			h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":`+phases+`}}`, 200, "")
			if shown := h.want("GET", "/entities/asset/"+asset, "", 200, "").body; !strings.Contains(shown, `"properties":{"power_kw":3.6,"phases":`+phases+`}`) {
				t.Error(shown)
			}
		}
		h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":2}}`, 422,
			`{"detail":[{"loc":["body","properties","phases"],"msg":"an asset on 2 phases: give 1 or 3","type":"value_error"}]}`)

		h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":4}}`, 422, "")
		for _, phase := range []string{"L1", "L3", ""} {
			h.want("PATCH", "/entities/asset/"+asset, fmt.Sprintf(`{"properties":{"phases":1,"phase":%q}}`, phase), 200, "")
			h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"power_kw":3.6}}`, 200, "")
			shown := h.want("GET", "/entities/asset/"+asset, "", 200, "").body
			if strings.Contains(shown, fmt.Sprintf(`"phase":%q`, phase)) != (phase != "") || strings.Contains(shown, `"phase":""`) {
				t.Errorf("phase %q: %s", phase, shown)
			}
		}
		h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phase":"L4"}}`, 422,
			`{"detail":[{"loc":["body","properties","phase"],"msg":"an asset on phase \"L4\": give L1, L2 or L3","type":"value_error"}]}`)

		for _, none := range []string{"null", "0"} {
			h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":3}}`, 200, "")
			h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"power_kw":3.6}}`, 200, "")
			if kept := h.want("GET", "/entities/asset/"+asset, "", 200, "").body; !strings.Contains(kept, `"phases":3`) {
				t.Errorf("phases that were not sent did not stay: %s", kept)
			}
			h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":`+none+`}}`, 200, "")
			if shown := h.want("GET", "/entities/asset/"+asset, "", 200, "").body; !strings.Contains(shown, `"properties":{"power_kw":3.6}`) {
				t.Errorf("phases %s: %s", none, shown)
			}
		}

		h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"phases":3}}`, 200, "")
		for _, version := range []string{"3.2.1", ""} {
			shown := h.want("PATCH", "/entities/asset/"+asset, fmt.Sprintf(`{"properties":{"firmware":%q}}`, version), 200, "").body
			if strings.Contains(shown, `"firmware":"3.2.1"`) != (version != "") || !strings.Contains(shown, `"phases":3`) {
				t.Error(shown)
			}
		}
		h.want("PATCH", "/entities/asset/"+asset, `{"properties":{"firmware":"`+strings.Repeat("x", 257)+`"}}`, 422, "")
		three := h.want("POST", "/entities/asset", fmt.Sprintf(`{"external_id":"three","type":"charger","site_id":%q,"properties":{"phases":3}}`, text(t, least, "id")), 200, "").body
		if text(t, three, "properties", "phases") != "3" {
			t.Error(three)
		}

		h.want("PATCH", at, `{"import_capacity_kw":0}`, 422, "")
		h.want("PATCH", at, `{"import_capacity_kw":null}`, 200, "")
		shows("1", "3.68")
		r := h.want("POST", "/entities/site/initialise", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA","import_capacity_kw":69,%s},"assets":[{"external_id":"supplied","type":"charger"}]}`, halfHourly, consent), 200, "")
		if updated := text(t, r.body, "site", "fields_updated"); updated != "[import_capacity_kw]" {
			t.Error(r.body)
		}
		shows("69", "3.68")
		if findings, err := db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}

// TestMeterConsent_Withdrawn withdraws the consent to the boundary meter: it is gone at once, is
// not given again by the one that was withdrawn, and no way in takes one of the future.
func TestMeterConsent_Withdrawn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		at := "/entities/site/" + site
		r := h.want("DELETE", at+"/meter-consent", "", 200, "")
		if strings.Contains(r.body, "gave_boundary_meter_consent_at") {
			t.Errorf("after withdrawing: %s", r.body)
		}

		h.want("DELETE", at+"/meter-consent", "", 200, r.body)
		if e := h.want("GET", at+"/eligibility", "", 200, ""); text(t, e.body, "site_properties", "has_meter_consent") != "false" {
			t.Error(e.body)
		}

		for _, way := range []struct {
			status     int
			path, body string
		}{
			{400, at + "/meter-consent", `{%s}`},
			{422, at + "/enrol", `{"proposition":"limited_pause",%s}`},
			{400, "/entities/site", `{"mpan":"` + notSettled + `","postcode":"SW1A 2AB",%s}`},
			{400, "/entities/site/initialise", `{"site":{"mpan":"` + halfHourly + `","postcode":"SW1A 2AA",%s},"assets":[{"external_id":"c","type":"charger"}]}`},
			{400, "/entities/site/onboard", `{"site":{"mpan":"` + halfHourly + `","postcode":"SW1A 2AA",%s},"assets":[{"external_id":"c","type":"charger"}],"proposition":"limited_pause"}`},
		} {
			dated := func(at time.Time) string {
				return fmt.Sprintf(way.body, `"gave_boundary_meter_consent_at":"`+at.UTC().Format(time.RFC3339)+`"`)
			}

			r := h.want("POST", way.path, dated(time.Now().Add(6*time.Minute)), way.status, "")
			if !strings.Contains(r.body, "future") {
				t.Errorf("%s: %s", way.path, r.body)
			}
			if strings.HasPrefix(way.path, at) || strings.Contains(way.body, halfHourly) {
				r := h.want("POST", way.path, fmt.Sprintf(way.body, consent), way.status, "")
				if !strings.Contains(r.body, "withdrew") {
					t.Errorf("%s with the old consent: %s", way.path, r.body)
				}
			}
		}

		form := url.Values{"external_user_id": {"u"}, "allowed_origin": {"https://app.example.com"}, "gave_boundary_meter_consent_at": {"2199-01-01T00:00:00Z"}}
		if r := h.want("POST", "/auth/component-token", form.Encode(), 422, "", asForm); !strings.Contains(r.body, "future") {
			t.Errorf("component token: %s", r.body)
		}
		again := fmt.Sprintf(`{"gave_boundary_meter_consent_at":%q}`, time.Now().Add(4*time.Minute).UTC().Format(time.RFC3339))
		if r := h.want("POST", at+"/meter-consent", again, 200, ""); !strings.Contains(r.body, "gave_boundary_meter_consent_at") {
			t.Errorf("given again: %s", r.body)
		}
		h.want("DELETE", "/entities/site/b2c3d4e5-f6a7-8901-bcde-f23456789012/meter-consent", "", 404, "")
		if findings, err := db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}

// TestSite_AgreedCalls sets how often a site may be called, changes it and ends it.
func TestSite_AgreedCalls(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AA",%s}`, halfHourly, consent), 200, "").body
		at := "/entities/site/" + text(t, site, "id")
		if strings.Contains(site, "agreed_calls") {
			t.Error(site)
		}

		for _, c := range []struct{ sent, shown string }{
			{`{"per_day":1,"per_month":12}`, `"agreed_calls":{"per_day":1,"per_month":12}`},
			{`{"per_month":0}`, `"agreed_calls":{"per_month":0}`},
			{`{"per_day":1000}`, `"agreed_calls":{"per_day":1000}`},
		} {
			h.want("PATCH", at, `{"agreed_calls":`+c.sent+`}`, 200, "")
			h.want("PATCH", at, `{"address":"1 High Street"}`, 200, "") // what is not given stays
			for _, way := range []string{at, "/entities/site?postcode=SW1A%202AA", "/operations/site/" + text(t, site, "id")} {
				if r := h.want("GET", way, "", 200, ""); !strings.Contains(r.body, c.shown) {
					t.Errorf("%s: %s", c.sent, r.body)
				}
			}
		}

		for _, wrong := range []string{`{"per_day":-1}`, `{"per_month":1001}`, `{"per_day":1.5}`, `{"per_day":"1"}`, `[]`} {
			h.want("PATCH", at, `{"agreed_calls":`+wrong+`}`, 422, "")
		}

		h.want("PATCH", at, `{"agreed_calls":{}}`, 200, "")
		if r := h.want("GET", at, "", 200, ""); strings.Contains(r.body, "agreed_calls") {
			t.Error(r.body)
		}
	})
}
