package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The MPANs of flexd's meters; their check digits are right.
const (
	halfHourly  = "1234567890126"
	notSettled  = "1000000000012"
	nonDomestic = "2000000000024"
	notListed   = "1500000000033"
)

// stock gives flexd's store meters and models for every case.
func (h *fixture) stock() {
	h.Helper()
	err := h.server.Access.DB.WriteAll(h.Context(), func(all *store.All) error {
		m := flex.Meter{Import: true, Address: "10 DOWNING STREET, LONDON", Postcode: "SW1A 2AA", Energised: true, Domestic: true}
		hh, flat, shop := m, m, m
		hh.MPAN, hh.HalfHourly = halfHourly, true
		flat.MPAN = notSettled
		shop.MPAN, shop.HalfHourly, shop.Domestic = nonDomestic, true, false
		if err := all.PutMeters(h.Context(), []flex.Meter{hh, flat, shop}); err != nil {
			return err
		}

		return all.PutModels(h.Context(), []flex.Model{
			{Name: "zappi", Type: flex.Charger, CoP11: true, Power: new(flex.Watts(7400))},
			{Name: "plain", Type: flex.Charger},
			{Name: "pack", Type: flex.Battery},
			{Name: "barred", Type: flex.Charger, CoP11: true, Enrol: flex.EnrolDeny},
			{Name: "welcome", Type: flex.Charger, Enrol: flex.EnrolAllow},
		})
	})
	if err != nil {
		h.Fatal(err)
	}
}

// get reads a path of names and positions out of a JSON text.
func get(t *testing.T, body string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}

	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				t.Fatalf("no %v in %s", path, body)
			}

			v = l[p]
		}
	}
	return v
}

func text(t *testing.T, body string, path ...any) string {
	t.Helper()
	return fmt.Sprint(get(t, body, path...))
}

const consent = `"gave_boundary_meter_consent_at":"2026-01-15T10:30:00Z"`

// onboarding is the body of an onboarding of one charger.
func onboarding(mpan, external, more string) string {
	return fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA",%s},"assets":[{"external_id":%q,"type":"charger"%s}],"proposition":"full_asset_schedule_control"}`,
		mpan, consent, external, more)
}

// TestOnboard_Watts has a power that looks like watts be taken, new and again, with a warning that asks.
func TestOnboard_Watts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		for power, warned := range map[string]bool{"7400": true, "1000": false, "1000.1": true} {
			body := onboarding(halfHourly, "a", `,"properties":{"power_kw":`+power+`}`)
			r := h.want("POST", "/entities/site/onboard", body, 200, "")
			said := fmt.Sprint(get(t, r.body, "assets", 0, "warnings"))
			if strings.Contains(said, "is it in watts?") != warned {
				t.Errorf("%s kW: %s", power, said)
			}
		}
	})
}

func TestOnboard_Vector(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		b, err := os.ReadFile("testdata/onboard-charger.json")
		if err != nil {
			t.Fatal(err)
		}

		var v struct {
			Request json.RawMessage
			Expect  any `json:"expected_response"`
		}
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}

		r := h.want("POST", "/entities/site/onboard", string(v.Request), 200, "")
		site, asset := text(t, r.body, "site", "site_id"), text(t, r.body, "assets", 0, "asset_id")
		h.want("POST", "/entities/site/onboard", string(v.Request), 200, fmt.Sprintf(
			`{"site":{"site_id":%q,"site_created":false,"fields_updated":[],"warnings":[]},`+
				`"assets":[{"asset_id":%q,"external_id":"charger-001","asset_created":false,"fields_updated":[],"warnings":[]}],"enrolment":{"site_id":%q,"status":"already_enrolled"}}`,
			site, asset, site))
		changed := strings.NewReplacer(`"power_kw": 7.4`, `"power_kw": 11`, "resident@", "other@").Replace(string(v.Request))
		r = h.want("POST", "/entities/site/onboard", changed, 200, "")
		if got := fmt.Sprint(get(t, r.body, "site", "fields_updated"), get(t, r.body, "assets", 0, "fields_updated")); got != "[email] [properties]" {
			t.Errorf("fields_updated: %s", got)
		}
		h.want("GET", "/entities/asset/"+asset, "", 200, fmt.Sprintf(`{"id":%q,"external_id":"charger-001","type":"charger","site_id":%q,"properties":{"power_kw":11}}`, asset, site))
	})
}

// A site is not deleted while a payment to its user is under way.
func TestDeleteSite_PaymentUnderWay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		var id flex.SiteID
		if err := id.UnmarshalText([]byte(site)); err != nil {
			t.Fatal(err)
		}

		var w store.Withdrawal
		err := db.Write(t.Context(), h.org.ID, func(tx *store.Tx) (err error) {
			w, err = tx.Withdraw(t.Context(), id, 1, "test")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		if r := h.want("DELETE", "/entities/site/"+site, "", 400, ""); !strings.Contains(r.body, "is under way") {
			t.Error(r.body)
		}
		h.want("GET", "/entities/site/"+site, "", 200, "")

		err = db.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
			_, err := tx.MoveWithdrawal(t.Context(), w.ID, ledger.Cancelled, "test", "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h.want("DELETE", "/entities/site/"+site, "", 204, "")
	})
}

// A site whose user consented to full control, and which was never enrolled, is controlled: to unenrol it ends that.
func TestUnenrol_ConsentAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		site := h.newSite(halfHourly, "SW1A 2AA", "")
		at := "/entities/site/" + site
		h.want("POST", at+"/dispatch-consent", `{"dispatch_methods":["full_asset_schedule_control","limited_pause"]}`, 200, "")

		for _, status := range []string{"unenrolled", "already_unenrolled"} {
			h.want("POST", at+"/unenrol", `{"proposition":"full_asset_schedule_control"}`, 200, fmt.Sprintf(`{"site_id":%q,"status":%q}`, site, status))
			r := h.want("GET", at, "", 200, "")
			if got := text(t, r.body, "dispatch_methods"); got != "[limited_pause]" {
				t.Errorf("dispatch methods: %s", got)
			}
		}
	})
}

// TestEnrolment walks the interface's table of enrolment states.
func TestEnrolment(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		r := h.want("POST", "/entities/site/initialise", onboarding(halfHourly, "a", ""), 200, "")
		site := text(t, r.body, "site", "site_id")
		if got := text(t, r.body, "eligibility", "eligible_propositions"); got != "[limited_pause full_asset_schedule_control]" {
			t.Errorf("eligible: %s", got)
		}

		at := func(op string) string { return "/entities/site/" + site + "/" + op }
		status := func(s string) string { return fmt.Sprintf(`{"site_id":%q,"status":%q}`, site, s) }
		full, pause := `{"proposition":"full_asset_schedule_control"}`, `{"proposition":"limited_pause"}`
		override := `{"proposition":"full_asset_schedule_control","override_withdrawal":true}`
		for _, step := range []struct {
			op, body string
			status   int
			answer   string
		}{
			{"unenrol", full, 200, status("already_unenrolled")},
			{"enrol", full, 200, status("enrolled")},
			{"enrol", full, 200, status("already_enrolled")},
			{"enrol", pause, 200, status("enrolled")},
			{"unenrol", full, 200, status("unenrolled")},
			{"unenrol", full, 200, status("already_unenrolled")},
			{"enrol", full, 422, ""},
			{"enrol", pause, 200, status("already_enrolled")},
			{"enrol", override, 200, status("enrolled")},
			{"enrol", override, 200, status("already_enrolled")},
			{"enrol", `{"proposition":"other"}`, 422, ""},
		} {
			h.want("POST", at(step.op), step.body, step.status, step.answer)
		}

		r = h.want("GET", "/entities/site/"+site, "", 200, "")
		if got := text(t, r.body, "dispatch_methods"); got != "[full_asset_schedule_control limited_pause]" {
			t.Errorf("dispatch methods: %s", got)
		}

		h.want("POST", at("dispatch-deconsent"), `{"dispatch_methods":["limited_pause","vpp_limited_control"]}`, 200, "")
		h.want("POST", at("enrol"), pause, 422, "")
		h.want("DELETE", "/entities/site/"+site, "", 400, "")
		r = h.want("POST", at("offboard-site-and-assets"), "", 200, "")
		if text(t, r.body, "asset", "external_id") != "a" || text(t, r.body, "site", "id") != site {
			t.Error(r.body)
		}
		h.want("GET", "/entities/site/"+site, "", 404, `{"detail":"site not found or not authorized"}`)
		h.want("POST", at("enrol"), full, 404, `{"detail":"site not found or not authorized"}`)
	})
}

// Another MPAN of an enrolled site, or its first, passes the checks of a new enrolment whichever way it comes.
func TestEnrolment_AnotherMPAN(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		h.allowAbroad(db)
		refused := func(method, path, body string) {
			t.Helper()
			r := h.want(method, path, body, 422, "")
			if !strings.Contains(r.body, "another MPAN than the enrolled site has") {
				t.Errorf("%s %s: %s", method, body, r.body)
			}
		}

		r := h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "a", ""), 200, "")
		at := "/entities/site/" + text(t, r.body, "site", "site_id")
		before := h.want("GET", at, "", 200, "").body
		for _, mpan := range []string{notSettled, nonDomestic, notListed} {
			refused("PATCH", at, fmt.Sprintf(`{"mpan":%q}`, mpan))
		}
		h.want("PATCH", at, fmt.Sprintf(`{"mpan":%q}`, halfHourly), 200, before)

		// A site without a metering point is enrolled without checks, as nothing of it is settled.
		r = h.want("POST", "/entities/site/onboard", onboardAbroad("SW1A 2AB", "11 Downing Street", "b"), 200, "")
		at = "/entities/site/" + text(t, r.body, "site", "site_id")
		refused("PATCH", at, fmt.Sprintf(`{"mpan":%q}`, nonDomestic))
		refused("POST", "/entities/site/onboard", fmt.Sprintf(
			`{"site":{"mpan":%q,"postcode":"SW1A 2AB","street_address":"11 Downing Street",%s},"assets":[{"external_id":"b","type":"charger"}],"proposition":"full_asset_schedule_control"}`,
			nonDomestic, consent))
	})
}

func TestEligibility(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		const dated = `,"installation_date":"2025-06-15"`
		model := func(name string) string { return fmt.Sprintf(`,"asset_model":%q`, name) }

		for i, c := range []struct {
			mpan, more string
			eligible   bool
			issues     string
		}{
			{halfHourly, "", true, "[]"},
			{halfHourly, model("plain"), true, "[]"},
			{halfHourly, model("barred"), false, "[asset_model_enrol_eligibility_override]"},
			{notSettled, "", false, "[asset_model_not_set asset_installation_date_not_set]"},
			{notSettled, dated, false, "[asset_model_not_set]"},
			{notSettled, model("plain") + dated, false, "[asset_model_not_cop11_qualified]"},
			{notSettled, model("zappi"), false, "[asset_installation_date_not_set]"},
			{notSettled, model("ZAPPI ") + dated, true, "[]"},
			{notSettled, model("welcome"), true, "[asset_model_enrol_eligibility_override]"},
			{notSettled, model("doomed") + dated, false, "[asset_model_not_found]"},
			{notListed, model("zappi") + dated, true, "[]"},
			{notListed, dated, false, "[asset_model_not_set]"},
			{nonDomestic, model("zappi") + dated, false, "[non_domestic_site]"},
		} {
			drop := func(name string) {
				err := db.WriteAll(t.Context(), func(all *store.All) (err error) {
					if name == "" {
						return all.PutModels(t.Context(), []flex.Model{{Name: "doomed", Type: flex.Charger, CoP11: true}})
					}

					_, err = all.DropModel(t.Context(), name)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}

			drop("")
			body := strings.Replace(onboarding(c.mpan, fmt.Sprint("asset", i), c.more), "SW1A 2AA", fmt.Sprintf("SW1A %dA%c", i%10, 'A'+i/10), 1)
			r := h.want("POST", "/entities/site/initialise", body, 200, "")
			site := text(t, r.body, "site", "site_id")
			drop("doomed")
			r = h.want("GET", "/entities/site/"+site+"/eligibility", "", 200, "")
			var last any
			for _, a := range get(t, r.body, "assets").([]any) {
				last = a
			}

			got := fmt.Sprint(last.(map[string]any)["propositions"].([]any)[1])
			if want := fmt.Sprintf("map[is_eligible:%v issues:%s proposition:full_asset_schedule_control]", c.eligible, c.issues); got != want {
				t.Errorf("%s%s: %s, want %s", c.mpan, c.more, got, want)
			}
			h.want("POST", "/entities/site/"+site+"/offboard-site-and-assets", "", 200, "")
		}

		h.want("POST", "/entities/site/check-eligibility", `{"mpan":"1234567890126"}`, 200,
			`{"is_half_hourly_settled":true,"propositions":[{"proposition":"limited_pause","is_eligible":true,"issues":[]},{"proposition":"full_asset_schedule_control","is_eligible":true,"issues":[]}]}`)
		h.want("POST", "/entities/site/check-eligibility", `{"mpan":"1000000000012","asset_model":"zappi"}`, 200,
			`{"is_half_hourly_settled":false,"propositions":[{"proposition":"limited_pause","is_eligible":true,"issues":[]},{"proposition":"full_asset_schedule_control","is_eligible":true,"issues":[]}]}`)
		h.want("POST", "/entities/site/check-eligibility", `{"mpan":"1000000000012","asset_model":"nothing"}`, 404, `{"detail":"asset_model \"nothing\" is not in the catalogue"}`)
		h.want("POST", "/entities/site/check-eligibility", `{"mpan":"12"}`, 422, "")

		// An export above the organisation's limit has no word in the interface's closed list.
		err := db.Write(t.Context(), h.org.ID, func(tx *store.Tx) error {
			largest := flex.Some(flex.WattHours(2))
			if err := tx.PutPairs(t.Context(), []flex.MeterPair{{Import: halfHourly, From: tx.Now(), LargestExport: largest}}); err != nil {
				return err
			}
			return tx.SetSettings(t.Context(), flex.OrgSettings{ExportLimit: flex.Some(flex.WattHours(1))})
		})
		if err != nil {
			t.Fatal(err)
		}
		h.want("POST", "/entities/site/check-eligibility", fmt.Sprintf(`{"mpan":%q}`, halfHourly), 200,
			`{"is_half_hourly_settled":true,"propositions":[{"proposition":"limited_pause","is_eligible":false,"issues":[]},{"proposition":"full_asset_schedule_control","is_eligible":false,"issues":[]}]}`)
		h.want("GET", "/entities/site", "", 200, `{"sites":[],"total_num_sites":0,"total_num_pages":0,"page_number":1}`)
	})
}

// TestOnboard_Atomic shows that a call that fails leaves nothing.
func TestOnboard_Atomic(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		for _, c := range []struct {
			body   string
			status int
		}{
			{onboarding(notSettled, "a", ""), 422},
			{onboarding(halfHourly, "a", `,"asset_model":"nothing"`), 404},
			{strings.Replace(onboarding(halfHourly, "a", ""), consent, `"email":"resident@example.com"`, 1), 400},
			{strings.Replace(onboarding(halfHourly, "a", ""), consent, consent+`,"email":"resident"`, 1), 400},
			{strings.Replace(onboarding(halfHourly, "a", ""), "SW1A 2AA", "nowhere", 1), 422},
			{onboarding("12", "a", ""), 422},
			{strings.Replace(onboarding(halfHourly, "a", ""), `"assets":[`, `"assets":[{"external_id":"a","type":"battery"},`, 1), 422},
			{onboarding(halfHourly, "a", `},{"external_id":"b","type":"charger","asset_model":"nothing"`), 404},
		} {
			h.want("POST", "/entities/site/onboard", c.body, c.status, "")
			h.want("GET", "/entities/site", "", 200, `{"sites":[],"total_num_sites":0,"total_num_pages":0,"page_number":1}`)
			h.want("GET", "/entities/asset", "", 200, `{"assets":[],"total_num_assets":0,"total_num_pages":0,"page_number":1}`)
		}

		h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "a", ""), 200, "")
		h.want("POST", "/entities/site/onboard", strings.Replace(onboarding(halfHourly, "a", ""), `"charger"`, `"battery"`, 1), 409, "")
		h.want("POST", "/entities/site/onboard", onboarding(notListed, "a", ""), 409, "")
	})
}

// TestOnboard_AtOnce sends one onboarding many times at once: all are answered, and there is
// one site with one asset.
func TestOnboard_AtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		var wg sync.WaitGroup
		answers := make(chan reply, 16)
		for range cap(answers) {
			wg.Go(func() { answers <- h.ask("POST", "/entities/site/onboard", onboarding(halfHourly, "a", "")) })
		}
		wg.Wait()
		close(answers)
		created := 0

		for r := range answers {
			if r.StatusCode != 200 {
				t.Errorf("%d %s", r.StatusCode, r.body)
			} else if strings.Contains(r.body, `"site_created":true`) {
				created++
			}
		}
		r := h.want("GET", "/entities/asset", "", 200, "")
		if created != 1 || text(t, r.body, "total_num_assets") != "1" {
			t.Errorf("%d sites were made, %s", created, r.body)
		}
	})
}

// Another MPAN at the address of an enrolled site gets the checks of a new enrolment, and a refusal says what is wrong
// with it and changes nothing.
func TestOnboard_OtherMPAN(t *testing.T) {
	const next, dead, export, wrong = "1099000010041", "1099000010032", "1099000010050", "1099000010006"
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()

		err := db.WriteAll(h.Context(), func(all *store.All) error {
			m := flex.Meter{MPAN: next, Import: true, Address: "10 DOWNING STREET, LONDON", Postcode: "SW1A 2AA", Energised: true, Domestic: true, HalfHourly: true}
			off, out := m, m
			off.MPAN, off.Energised = dead, false
			out.MPAN, out.Import = export, false
			return all.PutMeters(h.Context(), []flex.Meter{m, off, out})
		})
		if err != nil {
			t.Fatal(err)
		}

		body := func(mpan, place string) string {
			return strings.Replace(onboarding(mpan, "a", ""), `"postcode"`, fmt.Sprintf(`"street_address":%q,"postcode"`, place), 1)
		}
		refused := []struct{ name, mpan, why string }{
			{"wrong", wrong, "the MPAN is wrong: the last digit is 6, but the first twelve call for 5"},
			{"not listed", notListed, "the directory of meters does not know the MPAN"},
			{"not energised", dead, "its meter is not energised"},
			{"of export", export, "that of an export meter"},
			{"not half-hourly", notSettled, "its meter is not settled half-hourly"},
			{"without a model", notSettled, "asset_model_not_set (send asset_model with the asset, or by PATCH /entities/asset/{asset_id})"},
		}
		for _, c := range refused {
			if r := h.want("POST", "/entities/site/onboard", body(c.mpan, "10 Downing Street"), 422, ""); !strings.Contains(r.body, c.why) {
				t.Errorf("a new site, %s: %s", c.name, r.body)
			}
		}

		site := text(t, h.want("POST", "/entities/site/onboard", body(halfHourly, "10 Downing Street"), 200, "").body, "site", "site_id")
		before := h.want("GET", "/entities/site/"+site, "", 200, "").body
		initialise := func(mpan string) string {
			return strings.Replace(body(mpan, "10 Downing Street"), `,"proposition":"full_asset_schedule_control"`, "", 1)
		}

		for _, c := range refused {
			for path, body := range map[string]string{"onboard": body(c.mpan, "10 Downing Street"), "initialise": initialise(c.mpan)} {
				if r := h.want("POST", "/entities/site/"+path, body, 422, ""); !strings.Contains(r.body, c.why) {
					t.Errorf("%s at an enrolled site, %s: %s", path, c.name, r.body)
				}
			}
		}
		h.want("GET", "/entities/site/"+site, "", 200, before)

		r := h.want("POST", "/entities/site/onboard", body(next, "10 Downing Street"), 200, "")
		if text(t, r.body, "enrolment", "status") != "already_enrolled" || text(t, r.body, "site", "fields_updated") != "[mpan]" {
			t.Error(r.body)
		}
	})
}
