package market

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// exchange is a recorded request and its answer.
type exchange struct {
	Request  string
	Response json.RawMessage
}

func recorded[T any](t testing.TB, name string) (v T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// service plays a market's service: it answers the requests it knows, compared by path
// and parameters, and anything else with 404. In answers SELF stands for its address.
type service struct {
	*httptest.Server
	answers map[string]string
	asked   []string
}

func serve(t testing.TB) *service {
	s := &service{answers: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := canonical(r.URL.String())
		s.asked = append(s.asked, key)
		answer, ok := s.answers[key]
		if !ok || r.Method != "GET" {
			w.WriteHeader(404)
			io.WriteString(w, `{"detail":"nothing at `+key+`"}`)
			return
		}

		if answer == "" {
			w.WriteHeader(204)
			return
		}
		io.WriteString(w, strings.ReplaceAll(answer, "SELF", s.URL))
	}))

	t.Cleanup(s.Close)
	return s
}

// canonical drops the host from an address and orders its parameters.
func canonical(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return u.Path + "?" + u.Query().Encode()
}

// know makes the service answer a recorded request, written "GET https://host/base/path".
func (s *service) know(base string, e exchange) {
	s.answers[canonical(strings.TrimPrefix(strings.TrimPrefix(e.Request, "GET "), base))] = string(e.Response)
}

func local() *Web { return &Web{Client: egress.New(egress.Options{Allow: egress.Private})} }

func span(from, to string) flex.Span {
	return flex.Span{From: at(from), To: at(to)}
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// listed writes prices as start=price, with a mark for those derived.
func listed(f Fetched) string {
	var out []string
	for _, p := range f.Prices {
		s := fmt.Sprintf("%s=%g", p.Period.Start().Format("02T15:04"), p.Price.GBPPerMWh())
		if p.Derived {
			s += "*"
		}
		if !p.Known {
			s += "?"
		}
		out = append(out, s)
	}

	keptOut := 0
	for _, k := range f.Rejected {
		keptOut += k.Rows
	}
	if keptOut > 0 {
		out = append(out, fmt.Sprintf("(%d kept out)", keptOut))
	}
	return strings.Join(out, " ")
}

func check(t *testing.T, s Source, sp flex.Span, want string) {
	t.Helper()
	got, err := s.Fetch(t.Context(), sp)
	if err != nil || listed(got) != want {
		t.Errorf("%s: %s, %v\nwant %s", s.Name(), listed(got), err, want)
	}
	for i, p := range got.Prices {
		if i > 0 && !got.Prices[i-1].Period.Before(p.Period) || !sp.Contains(p.Period.Start()) {
			t.Errorf("%s: %s is out of order or was not asked for", s.Name(), p.Period.Start())
		}
	}
}

func TestElexonIndex(t *testing.T) {
	s := serve(t)
	s.know(ElexonURL, recorded[exchange](t, "elexon_mid.json"))
	check(t, ElexonIndex{Web: local(), URL: s.URL}, span("2022-09-26T13:00:00Z", "2022-09-26T14:00:00Z"), "26T13:00=178.12 26T13:30=181.4")
	check(t, ElexonIndex{Web: local(), URL: s.URL}, span("2022-09-26T13:00:00Z", "2022-09-26T13:00:00Z"), "")

	s.answers[canonical("/datasets/MID/stream?from=2025-03-29T23:30Z&to=2025-03-30T01:30Z&dataProviders=APXMIDP")] = `[
		{"startTime":"2025-03-29T23:30:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-29","settlementPeriod":48,"price":50,"volume":1},
		{"startTime":"2025-03-30T01:00:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":3,"price":-70.5,"volume":1},
		{"startTime":"2025-03-30T01:30:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":6,"price":1,"volume":1},
		{"startTime":"2025-03-30T00:30:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":2,"price":6000.01,"volume":1},
		{"startTime":"2025-03-30T00:00:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":1,"price":0,"volume":0},
		{"startTime":"2025-03-30T00:00:00Z","dataProvider":"N2EXMIDP","settlementDate":"2025-03-30","settlementPeriod":1,"price":9,"volume":9},
		{"startTime":"2025-03-30T02:00:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":5,"price":9,"volume":9},
		{"startTime":"yesterday","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":5,"price":9,"volume":9},
		{"startTime":"2025-03-30T01:30:00Z","dataProvider":"APXMIDP","settlementDate":"2025-03-30","settlementPeriod":4,"price":null,"volume":9}]`
	check(t, ElexonIndex{Web: local(), URL: s.URL, Stream: true}, span("2025-03-29T23:30:00Z", "2025-03-30T02:00:00Z"),
		"29T23:30=50 30T01:00=-70.5 (3 kept out)")
}

func TestElexonSystemPrice(t *testing.T) {
	s := serve(t)
	s.know(ElexonURL, recorded[exchange](t, "elexon_system_prices.json"))
	s.answers[canonical("/balancing/settlement/system-prices/2023-09-19?format=json")] = `{"data":[
		{"settlementDate":"2023-09-19","settlementPeriod":1,"startTime":"2023-09-18T23:00:00Z","createdDateTime":"2023-09-20T00:00:00Z","systemSellPrice":90},
		{"settlementDate":"2023-09-19","settlementPeriod":1,"startTime":"2023-09-18T23:00:00Z","createdDateTime":"2023-09-19T00:00:00Z","systemSellPrice":80},
		{"settlementDate":"2023-09-19","settlementPeriod":2,"startTime":"2023-09-18T23:30:00Z","createdDateTime":"2023-09-19T00:00:00Z","systemSellPrice":null}]}`
	s.answers[canonical("/balancing/settlement/system-prices/2023-09-20?format=json")] = `{"metadata":{"datasets":["DISEBSP"]},"data":[]}`
	e := ElexonSystemPrice{Web: local(), URL: s.URL}
	check(t, e, span("2023-09-17T23:00:00Z", "2023-09-18T23:00:00Z"), "17T23:00=215")
	check(t, e, span("2023-09-17T23:30:00Z", "2023-09-20T23:00:00Z"), "18T23:00=90")
	check(t, e, span("2023-09-19T23:00:00Z", "2023-09-20T00:00:00Z"), "") // a day that is not settled yet
}

func TestOctopus(t *testing.T) {
	s := serve(t)
	e := recorded[exchange](t, "octopus_standard_unit_rates.json")
	s.know(OctopusURL, e)
	o := Octopus{Web: local(), URL: s.URL, Product: "AGILE-24-10-01", GSPGroup: "_C"}
	autumn := span("2024-10-27T00:00:00Z", "2024-10-27T03:00:00Z")
	const want = "27T00:00=110 27T00:30=101 27T01:00=0 27T01:30=-10 27T02:00=88 27T02:30=92"
	check(t, o, autumn, want)

	// The same in London's time without offsets, cut into pages, the hour that comes twice
	// told apart by order alone.
	first := canonical(strings.TrimPrefix(strings.TrimPrefix(e.Request, "GET "), OctopusURL))
	s.answers[first] = `{"count":6,"next":"SELF/second?page=2","results":[
		{"value_exc_vat":9.2,"valid_from":"2024-10-27T02:30:00","valid_to":"2024-10-27T03:00:00","payment_method":null},
		{"value_exc_vat":8.8,"valid_from":"2024-10-27T02:00:00","valid_to":"2024-10-27T02:30:00","payment_method":"DIRECT_DEBIT"},
		{"value_exc_vat":9.9,"valid_from":"2024-10-27T02:00:00","valid_to":"2024-10-27T02:30:00","payment_method":"NON_DIRECT_DEBIT"},
		{"value_exc_vat":-1.0,"valid_from":"2024-10-27T01:30:00","valid_to":"2024-10-27T02:00:00","payment_method":null}]}`

	s.answers["/second?page=2"] = `{"count":6,"next":null,"results":[
		{"value_exc_vat":0.0,"valid_from":"2024-10-27T01:00:00","valid_to":"2024-10-27T01:30:00","payment_method":null},
		{"value_exc_vat":10.1,"valid_from":"2024-10-27T01:30:00","valid_to":"2024-10-27T01:00:00","payment_method":null},
		{"value_exc_vat":11.0,"valid_from":"2024-10-27T01:00:00","valid_to":"2024-10-27T01:30:00","payment_method":null}]}`
	check(t, o, autumn, want)

	// A fixed tariff has one rate without an end; a wall time that was skipped is no time.
	s.answers[first] = `{"count":2,"next":null,"results":[
		{"value_exc_vat":20,"valid_from":"2024-10-27T01:00:00Z","valid_to":null,"payment_method":null},
		{"value_exc_vat":800,"valid_from":"2024-10-27T00:30:00Z","valid_to":"2024-10-27T01:00:00Z","payment_method":null},
		{"value_exc_vat":20,"valid_from":"2024-03-31T01:30:00","valid_to":"2024-03-31T02:00:00","payment_method":null},
		{"value_exc_vat":10,"valid_from":"2023-01-01T00:00:00Z","valid_to":"2024-10-27T00:15:00Z","payment_method":null}]}`
	check(t, o, autumn, "27T01:00=200 27T01:30=200 27T02:00=200 27T02:30=200 (2 kept out)")

	s.answers[first] = `{"count":1,"next":"https://elsewhere.example/","results":[]}`
	if _, err := o.Fetch(t.Context(), autumn); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a link that leads elsewhere: %v", err)
	}
	s.answers[first] = `{"count":1,"next":"SELF` + first + `","results":[]}`
	if _, err := o.Fetch(t.Context(), autumn); err == nil || !strings.Contains(err.Error(), "200 pages") {
		t.Errorf("pages without end: %v", err)
	}
	o.Product = "AGILE-99-01-01"
	if _, err := o.Fetch(t.Context(), autumn); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an unknown product: %v", err)
	}

	for _, region := range []string{"", "C", "_Q", "_I", "_O", "_c", "_CC"} {
		o.GSPGroup = region
		if _, err := o.Fetch(t.Context(), autumn); flex.KindOf(err) != flex.Invalid {
			t.Errorf("region %q: %v", region, err)
		}
	}
}

func TestOctopusNewestProduct(t *testing.T) {
	s := serve(t)
	o := Octopus{Web: local(), URL: s.URL, GSPGroup: "_C"}
	products := canonical("/products/?available_at=2024-10-27T00:00Z&page_size=100")
	s.answers[products] = `{"next":"SELF/products/2","results":[
		{"code":"AGILE-23-12-06","direction":"IMPORT","available_from":"2023-12-06T00:00:00Z","available_to":null},
		{"code":"VAR-22-11-01","direction":"IMPORT","available_from":"2024-10-10T00:00:00Z","available_to":null}]}`
	s.answers["/products/2?"] = `{"next":null,"results":[
		{"code":"AGILE-24-10-01","direction":"IMPORT","available_from":"2024-10-01T00:00:00+01:00","available_to":null},
		{"code":"AGILE-OUTGOING-24-10-02","direction":"EXPORT","available_from":"2024-10-02T00:00:00+01:00","available_to":null},
		{"code":"AGILE-25-01-01","direction":"IMPORT","available_from":"2025-01-01T00:00:00Z","available_to":null}]}`

	e := recorded[exchange](t, "octopus_standard_unit_rates.json")
	s.know(OctopusURL, e)
	check(t, o, span("2024-10-27T00:00:00Z", "2024-10-27T03:00:00Z"), "27T00:00=110 27T00:30=101 27T01:00=0 27T01:30=-10 27T02:00=88 27T02:30=92")
	s.answers[products] = `{"results":[]}`
	if _, err := o.Fetch(t.Context(), span("2024-10-27T00:00:00Z", "2024-10-27T03:00:00Z")); err == nil || !strings.Contains(err.Error(), "AGILE-") {
		t.Errorf("no product: %v", err)
	}
}

func TestNordPool(t *testing.T) {
	s := serve(t)
	s.know(NordPoolURL, recorded[exchange](t, "nordpool_n2ex.json"))
	day := func(date string) string {
		return canonical("/DayAheadPrices?market=N2EX_DayAhead&deliveryArea=UK&currency=GBP&date=" + date)
	}
	n := NordPool{Web: local(), URL: s.URL}
	check(t, n, span("2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"), "14T23:00=81.25* 14T23:30=81.25* 15T00:00=76.1* 15T00:30=76.1*")

	s.answers[day("2025-01-16")] = "" // 204: not out yet
	check(t, n, span("2025-01-15T00:30:00Z", "2025-01-16T23:00:00Z"), "15T00:30=76.1*")
	s.answers[day("2025-01-16")] = `{"currency":"GBP","multiAreaEntries":[]}`
	check(t, n, span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z"), "")
	s.answers[day("2025-01-16")] = `{"currency":"GBP","multiAreaEntries":[
		{"deliveryStart":"2025-01-15T23:00:00Z","deliveryEnd":"2025-01-15T23:30:00Z","entryPerArea":{"UK":-5}},
		{"deliveryStart":"2025-01-16T00:00:00Z","deliveryEnd":"2025-01-16T01:00:00Z","entryPerArea":{"UK":null}},
		{"deliveryStart":"2025-01-16T01:00:00Z","deliveryEnd":"2025-01-16T02:00:00Z","entryPerArea":{"FR":1}},
		{"deliveryStart":"2025-01-16T02:00:00Z","deliveryEnd":"2025-01-16T06:00:00Z","entryPerArea":{"UK":1}}]}`

	check(t, n, span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z"), "15T23:00=-5 (1 kept out)")
	s.answers[day("2025-01-16")] = `{"currency":"EUR","multiAreaEntries":[{"deliveryStart":"2025-01-15T23:00:00Z","deliveryEnd":"2025-01-16T00:00:00Z","entryPerArea":{"UK":1}}]}`
	if _, err := n.Fetch(t.Context(), span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z")); err == nil || !strings.Contains(err.Error(), "EUR") {
		t.Errorf("another currency: %v", err)
	}
}

func TestCarbon(t *testing.T) {
	s := serve(t)
	v := recorded[struct {
		exchange
		Regional exchange `json:"regional_postcode"`
	}](t, "carbon_intensity.json")

	// The recorded requests ask for 24 hours from a time; ours name both ends.
	s.answers["/intensity/2018-01-20T12:00Z/2018-01-20T13:00Z?"] = string(v.Response)
	regional := "/regional/intensity/2018-01-20T12:00Z/2018-01-20T13:00Z/postcode/RG10?"
	s.answers[regional] = string(v.Regional.Response)

	ask := func(outward, want string) {
		t.Helper()
		rows, err := Carbon{local(), s.URL, outward}.Fetch(t.Context(), span("2018-01-20T12:00:00Z", "2018-01-20T13:00:00Z"))
		var out []string
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s=%d,%v", r.Period.Start().Format("15:04"), r.Grams, r.Actual))
		}
		if got := strings.Join(out, " "); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", outward, got, err, want)
		}
	}

	ask("", "12:00=263,true 12:30=260,false")
	ask("RG10", "12:00=266,false")
	s.answers[regional] = `{"data":[{"regionid":12,"data":[
		{"from":"2018-01-20T11:30Z","to":"2018-01-20T12:00Z","intensity":{"forecast":1}},
		{"from":"2018-01-20T12:00Z","to":"2018-01-20T12:30Z","intensity":{"forecast":266}},
		{"from":"2018-01-20T12:30Z","to":"2018-01-20T13:00Z","intensity":{"forecast":99999}}]}]}`
	ask("RG10", "12:00=266,false")
	s.answers[regional] = `{"data":"none"}`
	if _, err := (Carbon{local(), s.URL, "RG10"}).Fetch(t.Context(), span("2018-01-20T12:00:00Z", "2018-01-20T13:00:00Z")); err == nil {
		t.Error("an answer of another shape")
	}
}
