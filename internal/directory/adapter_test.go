package directory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"flexd/internal/egress"
	"flexd/internal/flex"
)

// web reaches servers on this machine.
var web = egress.New(egress.Options{Allow: egress.Private})

type shapes struct {
	SearchRequest  struct{ Body json.RawMessage } `json:"search_request"`
	SearchResponse json.RawMessage                `json:"search_response"`
	DetailRequest  struct{ Body json.RawMessage } `json:"detail_request"`
	DetailResponse json.RawMessage                `json:"detail_response"`
	ErrorResponse  json.RawMessage                `json:"error_response"`
}

// registry plays ECOES: it knows the recorded answers, and others by their MPAN.
func registry(t *testing.T, search string, details map[string]string) (ECOES, *[]string) {
	v := vector[shapes](t, "ecoes.json")
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Authentication struct{ Key string }
			ParameterSets  []struct{ Parameters []ecoesPair }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Method != "POST" || q.Authentication.Key != "k3y" || len(q.ParameterSets) != 1 {
			t.Errorf("%s %s: %v %v", r.Method, r.URL, q, err)
		}

		method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		f := fieldsOf(q.ParameterSets[0].Parameters)
		asked = append(asked, method+" "+f["mpan"]+f["postcode"])
		answer := v.ErrorResponse

		switch {
		case method == "SearchUtilityAddress" && search != "":
			answer = json.RawMessage(search)
		case method == "SearchUtilityAddress" && f["postcode"] == "NW1 6XE":
			answer = v.SearchResponse
		case details[f["mpan"]] != "":
			answer = json.RawMessage(details[f["mpan"]])
		case f["mpan"] == "1200023305967":
			answer = v.DetailResponse
		}

		w.Write(answer)
	}))

	t.Cleanup(server.Close)
	return ECOES{web, server.URL + "/RESTful/JSON/", "k3y"}, &asked
}

func number(t *testing.T, s string) MPAN {
	m, err := ParseMPAN(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestECOESRecordedShapes(t *testing.T) {
	e, asked := registry(t, "", nil)
	m, err := e.ByMPAN(t.Context(), number(t, "1200023305967"))
	want := flex.Meter{MPAN: "1200023305967", Import: true, Address: "221B, BAKER STREET, LONDON", Postcode: "NW1 6XE",
		Energised: true, HalfHourly: true, Domestic: true, SupplierMPID: "OCTO", GSPGroup: "_C"}
	if err != nil || m != want {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}

	if _, err := e.ByMPAN(t.Context(), number(t, "1800021679848")); flex.KindOf(err) != flex.NotFound {
		t.Errorf("an error inside a 200: %v", err)
	}
	meters, err := e.ByPostcode(t.Context(), "NW1 6XE")
	if err != nil || len(meters) != 2 || meters[0].Address != "FLAT A, 221B, BAKER STREET, LONDON" || meters[1].MPAN != "1200023305967" || !meters[1].Import {
		t.Errorf("%v, %v", meters, err)
	}

	if meters, err := e.ByPostcode(t.Context(), "NW1 6XF"); err != nil || len(meters) != 0 {
		t.Errorf("a postcode without meters: %v, %v", meters, err)
	}
	if got := fmt.Sprint(*asked); got != "[GetTechnicalDetailsByMpan 1200023305967 GetTechnicalDetailsByMpan 1800021679848 SearchUtilityAddress NW1 6XE SearchUtilityAddress NW1 6XF]" {
		t.Error(got)
	}

	q, err := ParseAddress("221B Baker Street, London, NW1 6XE")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := Match(q, meters); err != nil || found.MPAN != "1200023305967" {
		t.Errorf("%v, %v", found, err)
	}
}

// detail writes the details of a point as ECOES does.
func detail(mpan string, pairs ...string) string {
	list := []ecoesPair{{"mpan_core", mpan}, {"address_line_4", "12"}, {"address_line_6", "MILL LANE"}, {"postcode", "NW16XE"},
		{"trading_status", "T"}, {"energisation_status", "E"}}
	for i := 0; i < len(pairs); i += 2 {
		list = append([]ecoesPair{{pairs[i], pairs[i+1]}}, list...) // in any order
	}
	b, _ := json.Marshal(list)
	return `{"Results":[{"Errors":[],"UtilityMatches":[{"UtilityType":"gas","UtilityDetails":[]},{"UtilityType":"electricity","UtilityDetails":` + string(b) + `}]}]}`
}

func TestECOESReadsByName(t *testing.T) {
	const mpan = "1312345678907"
	for _, c := range []struct {
		pairs []string
		check func(flex.Meter) bool
	}{
		{[]string{"new_field", "x"}, func(m flex.Meter) bool {
			return m.Import && m.Energised && !m.HalfHourly && m.Domestic && m.Postcode == "NW1 6XE"
		}},
		{[]string{"energy_direction", "E"}, func(m flex.Meter) bool { return !m.Import }},
		{[]string{"energy_direction", "I", "profile_class", "08"}, func(m flex.Meter) bool { return m.Import }},
		{[]string{"profile_class", "08"}, func(m flex.Meter) bool { return !m.Import && !m.Domestic }},
		{[]string{"profile_class", "03"}, func(m flex.Meter) bool { return m.Import && !m.Domestic }},
		{[]string{"energisation_status", "D"}, func(m flex.Meter) bool { return !m.Energised }},

		{[]string{"trading_status", "U"}, func(m flex.Meter) bool { return !m.Energised }},
		{[]string{"measurement_class", "A"}, func(m flex.Meter) bool { return !m.HalfHourly }},
		{[]string{"measurement_class", "B"}, func(m flex.Meter) bool { return !m.HalfHourly }},
		{[]string{"measurement_class", "F"}, func(m flex.Meter) bool { return m.HalfHourly && m.Domestic }},
		{[]string{"measurement_class", "G"}, func(m flex.Meter) bool { return m.HalfHourly && !m.Domestic }},
		{[]string{"measurement_class", "A", "mhhs_indicator", "true"}, func(m flex.Meter) bool { return m.HalfHourly }},
		{[]string{"measurement_class", "A", "mhhs_indicator", "0"}, func(m flex.Meter) bool { return !m.HalfHourly }},
		{[]string{"measurement_class", "G", "domestic_premises_indicator", "Y"}, func(m flex.Meter) bool { return m.Domestic }},
		{[]string{"domestic_consumer_indicator", "F"}, func(m flex.Meter) bool { return !m.Domestic }},
		{[]string{"supplier_mpid", "OLDS", "css_supplier_mpid", ""}, func(m flex.Meter) bool { return m.SupplierMPID == "OLDS" }},
		{[]string{"supplier_mpid", "OLDS", "css_supplier_mpid", "NEWS"}, func(m flex.Meter) bool { return m.SupplierMPID == "NEWS" }},
	} {
		e, _ := registry(t, "", map[string]string{mpan: detail(mpan, c.pairs...)})

		if m, err := e.ByMPAN(t.Context(), number(t, mpan)); err != nil || !c.check(m) {
			t.Errorf("%q: %+v, %v", c.pairs, m, err)
		}
	}
}

func TestECOESTellsPairsApart(t *testing.T) {
	listed := func(mpan, number string) string {
		return `{"UtilityType":"electricity","AddressDetails":[{"Key":"mpan_core","Value":"` + mpan + `"},{"Key":"address_line_4","Value":"` + number +
			`"},{"Key":"address_line_6","Value":"MILL LANE"},{"Key":"postcode","Value":"NW1 6XE"}]}`
	}
	search := `{"Results":[{"Errors":[],"UtilityAddressMatches":[{"UtilityType":"gas","AddressDetails":[]},` +
		listed("1312345678907", "12") + "," + listed("1470116845051", "12") + "," + listed("1200023305967", "14") + `]}]}`
	e, asked := registry(t, search, map[string]string{
		"1312345678907": detail("1312345678907", "energy_direction", "E"),
		"1470116845051": detail("1470116845051", "energy_direction", "I"),
	})

	meters, err := e.ByPostcode(t.Context(), "NW1 6XE")
	if err != nil || len(meters) != 3 || len(*asked) != 3 {
		t.Fatalf("%v, %v, asked %v", meters, err, *asked)
	}
	q, err := ParseAddress("12 Mill Lane, NW1 6XE")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := Match(q, meters); err != nil || m.MPAN != "1470116845051" {
		t.Errorf("%v, %v", m, err)
	}
}

// A point that is listed beside another of its address and has no details takes neither that one nor the rest of the postcode away.
func TestECOES_WithoutDetails(t *testing.T) {
	listed := func(mpan string) string {
		return `{"UtilityType":"electricity","AddressDetails":[{"Key":"mpan_core","Value":"` + mpan + `"},{"Key":"address_line_4","Value":"12"},` +
			`{"Key":"address_line_6","Value":"MILL LANE"},{"Key":"postcode","Value":"NW1 6XE"}]}`
	}
	search := `{"Results":[{"Errors":[],"UtilityAddressMatches":[` + listed("1312345678907") + "," + listed("1470116845051") + `]}]}`
	e, _ := registry(t, search, map[string]string{
		"1312345678907": `{"Results":[{"Errors":[{"Code":"1004","Message":"nothing"}]}]}`,
		"1470116845051": detail("1470116845051", "energy_direction", "I"),
	})

	meters, err := e.ByPostcode(t.Context(), "NW1 6XE")
	if err != nil || len(meters) != 1 || meters[0].MPAN != "1470116845051" {
		t.Errorf("%+v, %v", meters, err)
	}
}

// A row that nobody can use takes none of the others of a postcode away; where there is no other, the answer is wrong.
func TestRemote_WrongRow(t *testing.T) {
	const good = `{"mpan":"1200023305967","direction":"import","address":"221B Baker Street, London","postcode":"NW1 6XE"}`
	const wrong = `{"mpan":"1","direction":"import","address":"1 Baker Street, London","postcode":"NW1 6XE"}`
	for body, want := range map[string]int{
		`{"meters":[` + wrong + "," + good + `]}`: 1,
		`{"meters":[` + wrong + `]}`:              -1,
		`{"meters":[]}`:                           0,
	} {
		meters, err := Remote{web, answering(t, 200, body), nil}.ByPostcode(t.Context(), "NW1 6XE")
		if (err != nil) != (want < 0) || len(meters) != max(want, 0) {
			t.Errorf("%s: %+v, %v", body, meters, err)
		}
	}
}

// answering plays a service that always answers the same.
func answering(t *testing.T, status int, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAdaptersInTrouble(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	urls := map[string]string{
		"500":      answering(t, 500, `{}`),
		"empty":    answering(t, 200, ``),
		"html":     answering(t, 200, `<html>sign in</html>`),
		"no list":  answering(t, 200, `{"Results":[]}`),
		"an error": answering(t, 200, `{"Results":[{"Errors":[{"Code":"1001","Message":"Authentication failed"}]}],"meters":[{"mpan":"1"}]}`),
		"redirect": answering(t, 302, ``),
		"gone":     gone.URL,
	}

	for name, url := range urls {
		for _, s := range []Source{ECOES{web, url, "k3y"}, Remote{web, url, nil}} {
			var log bytes.Buffer
			d := NewDistant(s, time.Now, slog.New(slog.NewTextHandler(&log, nil)))
			_, err := d.ByMPAN(t.Context(), number(t, "1200023305967"))
			if _, err2 := d.ByPostcode(t.Context(), "NW1 6XE"); name != "no list" && flex.KindOf(err2) != flex.Unavailable {
				t.Errorf("%s, %T: %v", name, s, err2)
			}
			if flex.KindOf(err) != flex.Unavailable {
				t.Errorf("%s, %T: %v", name, s, err)
			}

			if s := log.String(); strings.Contains(s, "1200023305967") || strings.Contains(s, "k3y") || s == "" {
				t.Errorf("%s: logged %q", name, s)
			}
		}
	}
}

// TestAdaptersSayThatTimeRanOut: Distant tells a late answer from a failure by this.
func TestAdaptersSayThatTimeRanOut(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	for _, s := range []Source{ECOES{web, server.URL, "k3y"}, Remote{web, server.URL, nil}} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := s.ByMPAN(ctx, number(t, "1200023305967")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%T: %v", s, err)
		}
		cancel()
	}
}

func TestRemote(t *testing.T) {
	const meter = `{"mpan":"1200023305967","direction":"import","address":"221B Baker Street, London","postcode":"nw16xe",
		"energised":true,"half_hourly_settled":true,"domestic":true,"supplier_mpid":"OCTO","supplier_name":"Octopus","gsp_group":"_C","extra":1}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer t0ken" || r.URL.RawQuery != "" {
			t.Errorf("%s %v", r.URL, r.Header)
		}

		switch r.Method + r.URL.Path + string(b) {
		case `POST/api/lookup{"mpan":"1200023305967"}`:
			io.WriteString(w, meter)
		case `POST/api/search{"postcode":"NW1 6XE"}`:
			io.WriteString(w, `{"meters":[`+meter+`]}`)
		case `POST/api/lookup{"mpan":"1312345678907"}`:
			io.WriteString(w, meter)
		default:
			w.WriteHeader(404)
		}
	}))
	defer server.Close()

	r := Remote{web, server.URL + "/api/", map[string]string{"Authorization": "Bearer t0ken"}}
	want := flex.Meter{MPAN: "1200023305967", Import: true, Address: "221B Baker Street, London", Postcode: "NW1 6XE",
		Energised: true, HalfHourly: true, Domestic: true, SupplierMPID: "OCTO", SupplierName: "Octopus", GSPGroup: "_C"}

	if m, err := r.ByMPAN(t.Context(), number(t, "1200023305967")); err != nil || m != want {
		t.Errorf("%+v, %v", m, err)
	}
	if ms, err := r.ByPostcode(t.Context(), "NW1 6XE"); err != nil || !reflect.DeepEqual(ms, []flex.Meter{want}) {
		t.Errorf("%+v, %v", ms, err)
	}

	if ms, err := r.ByPostcode(t.Context(), "NW1 6XF"); err != nil || len(ms) != 0 {
		t.Errorf("%+v, %v", ms, err)
	}
	if _, err := r.ByMPAN(t.Context(), number(t, "1800021679848")); flex.KindOf(err) != flex.NotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.ByMPAN(t.Context(), number(t, "1312345678907")); err == nil || strings.Contains(err.Error(), "1200023305967") {
		t.Errorf("another meter than asked for: %v", err)
	}
}
