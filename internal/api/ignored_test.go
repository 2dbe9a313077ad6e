package api_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestIgnoredNames sends unknown names to several operations: the status stays, the header lists them
// and the log counts them.
func TestIgnoredNames(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		log := make(events, 100)
		h.server.Log = slog.New(slog.NewTextHandler(log, nil))
		l := httptest.NewServer(h.server.Handler())

		t.Cleanup(l.Close)
		h.url = l.URL
		site := onboardBody(halfHourly, "1", `"emial":"a@home.example",`, `"properties":{"power":7.4},`)
		made := h.want("POST", "/entities/site/onboard", site, 200, "")
		siteID := get(t, made.body, "site", "site_id").(string)
		<-log
		asset := "/entities/asset/" + get(t, made.body, "assets", 0, "asset_id").(string)

		const intent = `{"intent":{"energy_required_kwh":10,"ready_by":"2030-01-16T07:00:00Z"`
		for _, c := range []struct {
			method, path, body string
			status             int
			header             string
			count              string
		}{
			{"POST", "/entities/site/onboard", site, 200, "site.emial, assets.0.properties.power", "2"},
			{"PATCH", "/entities/site/" + siteID, `{"emial":"a@home.example"}`, 200, "emial", "1"},
			{"PATCH", "/entities/site/" + siteID, `{"tariff":{"type":"dynamic"}}`, 422, "tariff.type", "1"},
			{"PATCH", asset, `{"power_kw":22}`, 200, "power_kw", "1"},
			{"POST", asset + "/event/plug-in", intent + `,"mode":1},"tariff":{"off_peak_times":"00:00-05:30","timezone":"Europe/London","type":"smart"}}`, 200, "intent.mode, tariff.type", "2"},
			{"POST", asset + "/event/tariff-update", `{"off_peak_times":"00:00-05:30","timezone":"Europe/London","type":"smart"}`, 200, "type", "1"},
			{"POST", asset + "/event/plug-out", `{"ended\r\nX: y":1}`, 200, "ended??X:?y", "1"},
			{"GET", "/entities/asset?limit=5&ofset=1", "", 200, "ofset", "1"},
			{"GET", "/entities/asset?limit=5&offset=1", "", 200, "", ""},
			{"PATCH", asset, `{"properties":{"power_kw":22}}`, 200, "", ""},
		} {
			r := h.ask(c.method, c.path, c.body)
			if got := r.Header.Get("Flexd-Ignored"); r.StatusCode != c.status || got != c.header {
				t.Errorf("%s %s: %d, the header has %q, want %d and %q: %s", c.method, c.path, r.StatusCode, got, c.status, c.header, r.body)
			}

			if c.header == "" && r.Header["Flexd-Ignored"] != nil {
				t.Errorf("%s %s: the header is empty, not absent", c.method, c.path)
			}
			_, count, _ := strings.Cut(strings.TrimSpace(<-log), " ignored_names=")
			if count != c.count {
				t.Errorf("%s %s: the log counts %q, want %q", c.method, c.path, count, c.count)
			}
		}
	})
}

// events takes the lines of a log.
type events chan string

// Write sends a line.
func (e events) Write(line []byte) (int, error) {
	e <- string(line)
	return len(line), nil
}

// TestIgnoredNames_Warnings reads the warnings of an onboarding, and its answer without unknown names.
func TestIgnoredNames_Warnings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		key := "Idempotency-Key: once"
		body := onboardBody(halfHourly, "1", `"emial":"a@home.example",`, `"properties":{"power":7.4},`)
		first := h.want("POST", "/entities/site/onboard", body, 200, "", key)
		for _, want := range []string{
			`"warnings":["unknown name \"emial\" in site: ignored; did you mean \"email\"?"]`,
			`"warnings":["unknown name \"power\" in assets.0.properties: ignored; did you mean \"power_kw\"?"]`,
		} {
			if !strings.Contains(first.body, want) {
				t.Errorf("%s lacks %s", first.body, want)
			}
		}

		// the answer that was kept with what was made has them too
		h.want("POST", "/entities/site/onboard", body, 200, first.body, key)

		sound := h.ask("POST", "/entities/site/onboard", onboardBody(halfHourly, "1", "", ""))
		if strings.Count(sound.body, `"warnings":[]`) != 2 || sound.Header["Flexd-Ignored"] != nil {
			t.Errorf("without unknown names: %v %s", sound.Header, sound.body)
		}

		h.want("PATCH", "/entities/site/"+get(t, first.body, "site", "site_id").(string), `{"tariff":{"type":"dynamic"}}`, 422,
			`{"detail":[{"loc":["body","tariff","tariff_type"],"msg":"field required; there is \"type\", which is unknown","type":"value_error.missing"}]}`)
	})
}

// onboardBody is the body of an onboarding, with further members of its site and its asset.
func onboardBody(mpan, id, ofSite, ofAsset string) string {
	return `{"site":{` + ofSite + `"mpan":"` + mpan + `","postcode":"SW1A 2AA","gave_boundary_meter_consent_at":"2025-11-01T09:00:00Z"},` +
		`"assets":[{` + ofAsset + `"external_id":"` + id + `","type":"charger","asset_model":"zappi"}],"proposition":"limited_pause"}`
}
