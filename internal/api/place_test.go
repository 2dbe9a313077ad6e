package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	whole "flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// sample is a request of testdata/requests.txt.
type sample struct{ method, path, body string }

// samples reads testdata/requests.txt.
func samples(t *testing.T) (list []sample) {
	t.Helper()
	b, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		method, rest, _ := strings.Cut(line, " ")
		path, body, _ := strings.Cut(rest, " ")
		list = append(list, sample{method, path, body})
	}
	return list
}

// headers are what the sample's body needs beside a token.
func (s sample) headers() []string {
	if strings.HasPrefix(s.path, "/auth/") && s.body != "" {
		return []string{asForm}
	}
	return nil
}

// plain is the path without its query.
func (s sample) plain() string {
	plain, _, _ := strings.Cut(s.path, "?")
	return plain
}

// fill puts what there is in the sample's place holders.
func (s sample) fill(there map[string]string) sample {
	var pairs []string
	for name, value := range there {
		pairs = append(pairs, "{"+name+"}", value)
	}
	r := strings.NewReplacer(pairs...)
	address := there["ADDRESS"]
	inPath := strings.NewReplacer(append([]string{"{ADDRESS}", strings.ReplaceAll(address, " ", "%20")}, pairs...)...)
	return sample{s.method, inPath.Replace(s.path), r.Replace(s.body)}
}

// homestead is a whole flexd, and an organisation that has one of everything in it.
type homestead struct {
	*fixture
	whole    *whole.App
	password string
	receiver string
	made     int
}

func settleIn(t *testing.T) *homestead {
	t.Helper()
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	w, err := whole.Open(t.Context(), whole.Settings{
		Database: storetest.SQLite(t), Keys: storetest.Keys(t), Environment: flex.Sandbox, Log: quiet, AllowPrivateEndpoints: true, BaseURL: "http://flexd.example",
		Clouds: []registry.Provider{{Name: "myenergi", AuthorizeURL: "https://login.example/", TokenURL: receiver.URL, ClientID: "x"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	rounds, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		worker.RunAll(rounds, w.Jobs())
	}()

	t.Cleanup(func() {
		stop()
		<-stopped
		if findings, err := w.DB.Verify(context.WithoutCancel(t.Context())); err != nil || len(findings) > 0 {
			t.Errorf("verify: %v %v", findings, err)
		}
		w.Close()
	})

	l := httptest.NewServer(w.API.Handler())
	t.Cleanup(l.Close)
	h := &homestead{fixture: &fixture{T: t, server: w.API, url: l.URL}, whole: w, receiver: receiver.URL}
	o, password, err := w.Access.AddOrg(t.Context(), "Acme", "acme", "")
	if err != nil {
		t.Fatal(err)
	}
	h.org, h.password, h.token = o, password.Reveal(), h.login("acme")
	return h
}

// place makes a site with a charger that is plugged in and has been sent its schedule, and a
// battery, and says what there is.
func (h *homestead) place() map[string]string {
	h.Helper()
	h.made++
	now := flex.PeriodAt(time.Now()).Start()
	there := map[string]string{
		"USERNAME": "acme", "PASSWORD": h.password, "RECEIVER": h.receiver,
		"MPAN": mpan(2 * h.made), "NEW": mpan(2*h.made + 1), "ADDRESS": fmt.Sprint(h.made, " Test Street"), "EXTERNAL": fmt.Sprint("charger-", h.made),
		"SOON": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "HALF": now.Add(4 * flex.HalfHour).Format(time.RFC3339),
		"HALF_END": now.Add(5 * flex.HalfHour).Format(time.RFC3339), "PERIOD": now.Add(-flex.HalfHour).Format(time.RFC3339), "PERIOD_END": now.Format(time.RFC3339),
	}
	err := h.server.Access.DB.WriteAll(h.Context(), func(all *store.All) error {
		if err := all.PutModels(h.Context(), []flex.Model{{Name: "pack", Type: flex.Battery, CoP11: true}}); err != nil {
			return err
		}
		return all.PutMeters(h.Context(), []flex.Meter{{
			MPAN: there["MPAN"], Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "SW1A 2AA", Address: there["ADDRESS"] + ", London",
		}})
	})
	if err != nil {
		h.Fatal(err)
	}

	h.want("PUT", "/endpoints/schedule", fmt.Sprintf(`{"url":%q}`, h.receiver), 200, "")
	r := h.want("POST", "/entities/site/onboard", fmt.Sprintf(`{"site":{"mpan":%q,"postcode":"SW1A 2AA","street_address":%q,%s},"proposition":"full_asset_schedule_control","assets":[
		{"external_id":%q,"type":"charger","properties":{"power_kw":7.4}},
		{"external_id":"battery-%d","type":"battery","properties":{"power_kw":5,"capacity_kwh":13.5},"asset_model":"pack","installation_date":"2025-06-15"},
		{"external_id":"tank-%d","type":"hot water tank","properties":{"power_kw":3}}]}`,
		there["MPAN"], there["ADDRESS"], consent, there["EXTERNAL"], h.made, h.made), 200, "")
	there["SITE"], there["ASSET"], there["BATTERY"] = text(h.T, r.body, "site", "site_id"), text(h.T, r.body, "assets", 0, "asset_id"), text(h.T, r.body, "assets", 1, "asset_id")
	there["TANK"] = text(h.T, r.body, "assets", 2, "asset_id")
	h.want("POST", "/entities/site/"+there["SITE"]+"/enrol", `{"proposition":"limited_pause"}`, 200, "")
	h.want("POST", "/entities/asset/"+there["ASSET"]+"/event/plug-in", `{"intent":{"energy_required_kwh":10,"ready_by":"2026-01-15T07:00:00Z"}}`, 200, "")
	if err := h.whole.RunUntilIdle(context.WithoutCancel(h.Context())); err != nil {
		h.Fatal(err)
	}

	r = h.want("GET", "/deliveries?kind=schedule&asset_id="+there["ASSET"], "", 200, "") // invitations are pushed too
	there["DELIVERY"] = text(h.T, r.body, "deliveries", 0, "id")
	there["EVENT"] = there["DELIVERY"]
	// No charger of 7.4 kW draws 510 kWh in half an hour.
	h.want("POST", "/data/readings", fmt.Sprintf(`{"readings":[{"asset_id":%q,"start_timestamp":%q,"end_timestamp":%q,"value":510,"label":"charger_consumption_energy_kwh"}]}`,
		there["ASSET"], there["PERIOD"], there["PERIOD_END"]), 200, "")
	r = h.want("GET", "/data/readings/held?asset_id="+there["ASSET"], "", 200, "")
	there["HELD"] = text(h.T, r.body, "readings", 0, "id")
	r = h.want("POST", "/grid/instructions", fmt.Sprintf(`{"change_kw":-1,"gsp_group":"_P","start_timestamp":%q,"end_timestamp":%q,"service":"dno","reason":"evening peak"}`, there["HALF"], there["HALF_END"]), 200, "")
	there["INSTRUCTION"] = text(h.T, r.body, "instruction", "id")
	there["OFFER"] = h.offer()
	r = h.want("POST", "/grid/products", fmt.Sprintf(`{"products":[{"reference":"DFS-%d","service":"dfs","start_timestamp":%q,"end_timestamp":%q,"volume_kw":1,"price_gbp_per_mwh":250}]}`,
		h.made, there["HALF"], there["HALF_END"]), 200, "")

	there["PRODUCT"] = text(h.T, r.body, "products", 0, "id")
	there["PROGRAM"] = h.program(fmt.Sprint("Evening peak ", h.made)).String()
	h.want("PUT", "/grid/programs/"+there["PROGRAM"]+"/binding", `{"gsp_group":"_P"}`, 200, "")
	there["ALERT"] = h.alert()
	r = h.want("GET", "/meter/search?postcode=SW1A2AA", "", 200, "")
	there["REF"] = text(h.T, r.body, 0, "ref")
	r = h.want("POST", "/entities/site", fmt.Sprintf(`{"mpan":%q,"postcode":"SW1A 2AB"}`, mpan(100_000+h.made)), 200, "")
	there["BARE"] = text(h.T, r.body, "id")
	return there
}

// program keeps an OpenADR program with an event, as the organisation's business logic does.
func (h *homestead) program(name string) flex.ADRObjectID {
	h.Helper()
	business := adr.Client{Org: h.org.ID, ID: "bl", Business: true}
	o, err := h.whole.ADR.Create(context.WithoutCancel(h.Context()), business, flex.ADRProgram, map[string]any{"programName": name})
	if err != nil {
		h.Fatal(err)
	}

	in := time.Now().Add(26 * time.Hour).UTC().Truncate(time.Hour).Format(time.RFC3339)
	_, err = h.whole.ADR.Create(context.WithoutCancel(h.Context()), business, flex.ADREvent, map[string]any{
		"programID": o.ID.String(), "intervalPeriod": map[string]any{"start": in, "duration": "PT1H"},
		"intervals": []any{map[string]any{"id": 0.0, "payloads": []any{map[string]any{"type": "SIMPLE", "values": []any{1.0}}}}},
	})
	if err != nil {
		h.Fatal(err)
	}

	return o.ID
}

// alert has an alert fire that nobody has answered: the fleet is short of nothing, so it is made by hand.
func (h *homestead) alert() string {
	var id flex.AlertID
	err := h.whole.DB.WriteAll(context.WithoutCancel(h.Context()), func(all *store.All) error {
		a, err := all.NoteAlert(h.Context(), flex.Alert{Kind: "refused", Org: h.org.ID, Level: "critical", Count: 1, Title: "1 asset"})
		if err != nil {
			return err
		}

		id = a.ID
		_, err = all.FireAlert(h.Context(), a)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	return id.String()
}

// offer keeps an offer of the hour after next.
func (h *homestead) offer() string {
	from := flex.PeriodAt(time.Now().Add(2 * time.Hour)).Start()
	o := flex.Offer{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Service: "dfs", Power: 50_000, Confidence: 90, Who: "test"}
	err := h.whole.DB.Write(context.WithoutCancel(h.Context()), h.org.ID, func(tx *store.Tx) error { return tx.AddOffer(h.Context(), &o) })
	if err != nil {
		h.Fatal(err)
	}
	return o.ID.String()
}

// mpan is the n-th number with a right check digit.
func mpan(n int) string {
	s := fmt.Sprintf("12%010d", n)
	sum := 0
	for i, w := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += int(s[i]-'0') * w
	}
	return s + fmt.Sprint(sum%11%10)
}
