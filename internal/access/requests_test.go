package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/access"
	"flexd/internal/flex"
)

func TestRedact(t *testing.T) {
	for body, want := range map[string]string{
		`{"email": "jo@home.example", "power_kw": 7.4, "intent": {"charging_mode": "minimise_charging_time", "name": "Jo"}}`: `{"email":"[redacted]","intent":{"charging_mode":"minimise_charging_time","name":"[redacted]"},"power_kw":7.4}`,
		`[{"asset_id": "a"}, "b", null, true]`:                                                             `[{"asset_id":"a"},"[redacted]",null,true]`,
		`{"asset_model": "` + strings.Repeat("x", 65) + `"}`:                                               `{"asset_model":"[redacted]"}`,
		`{"phone": 447700900123, "mpan": 1099000010005, "power_w": 7400, "value": -999999, "n": -1000000}`: `{"mpan":"[redacted]","n":"[redacted]","phone":"[redacted]","power_w":7400,"value":-999999}`,
		`not json`: ``,
		``:         ``,
		`{"a": "` + strings.Repeat("x", 4<<10) + `"}`:                ``,
		strings.Repeat("[", 18) + `"deep"` + strings.Repeat("]", 18): strings.Repeat("[", 17) + `"…"` + strings.Repeat("]", 17),
	} {
		if got := access.Redact([]byte(body)); got != want {
			t.Errorf("%.80s: %s, want %s", body, got, want)
		}
	}
}

func TestRecentRequests(t *testing.T) {
	d := &access.Service{}
	org, at := flex.OrgID{1}, time.Unix(1_000_000, 0)
	for i := range access.RequestsMax + 30 {
		d.RecordRequest(org, access.LoggedRequest{At: at.Add(time.Duration(i) * time.Second), ID: fmt.Sprint(i)}, nil)
	}

	got := d.RecentRequests(org)
	if len(got) != access.RequestsMax || got[0].ID != "129" || got[len(got)-1].ID != "30" {
		t.Errorf("%d requests, from %s to %s", len(got), got[0].ID, got[len(got)-1].ID)
	}

	for range 50 { // in one second
		d.RecordRequest(flex.OrgID{2}, access.LoggedRequest{At: at}, nil)
	}

	if n := len(d.RecentRequests(flex.OrgID{2})); n != 20 {
		t.Errorf("%d requests of one second are remembered", n)
	}

	if len(d.RecentRequests(flex.OrgID{3})) != 0 {
		t.Error("requests of nobody")
	}
}

// hidden are the texts of requests that are not shown: of persons, secret, or free for a client to put anything in.
var hidden = []string{
	"access_token", "address", "allowed_origin", "answer_by", "asset_ids", "capacity_from", "confirm", "csv", "email",
	"expires_utc", "external_id", "external_user_id", "firmware", "gave_boundary_meter_consent_at",
	"gave_discharge_consent_at", "grant_type", "group", "gsp_group", "installation_date", "local_time", "mpan", "name",
	"note", "parent", "password", "postcode", "power_from", "reason", "reference", "refresh_token", "secret", "serial_number",
	"site_ids", "source", "street_address", "tariff_cheap_end_time", "tariff_cheap_start_time", "token_type", "url",
	"user_email", "username", "value",
}

// Each text of a request's body is shown on the page Developer, or stated above to be hidden. One with fixed words
// says nothing of a person and is shown.
func TestRedact_EveryText(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}

	texts := map[string]bool{} // whether its words are fixed wherever it stands, by name
	for _, path := range document.Paths.Map() {
		for _, operation := range path.Operations() {
			if operation.RequestBody == nil {
				continue
			}

			for _, content := range operation.RequestBody.Value.Content {
				textsOf(content.Schema, "", texts, nil)
			}
		}
	}

	if len(texts) < 50 {
		t.Fatalf("%d texts are in requests", len(texts))
	}

	for name, fixed := range texts {
		shown := !strings.Contains(access.Redact([]byte(`{"`+name+`": "word"}`)), "redacted")
		stated := slices.Contains(hidden, name)

		switch {
		case fixed && !shown:
			t.Errorf("%s has fixed words: add it to shown in requests.go", name)
		case shown == stated:
			t.Errorf("is %s shown? Add it to shown in requests.go, or to hidden above if it may say something of a person", name)
		}
	}

	for _, name := range hidden {
		if _, found := texts[name]; !found {
			t.Errorf("%s is in no request", name)
		}
	}
}

// textsOf notes the texts of a schema and of what it holds, each under the name of its member.
func textsOf(ref *openapi3.SchemaRef, name string, texts map[string]bool, within []*openapi3.Schema) {
	if ref == nil || slices.Contains(within, ref.Value) {
		return
	}

	s := ref.Value
	within = append(slices.Clone(within), s)
	for _, list := range []openapi3.SchemaRefs{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			textsOf(one, name, texts, within)
		}
	}

	for member, one := range s.Properties {
		textsOf(one, member, texts, within)
	}

	textsOf(s.Items, name, texts, within)
	textsOf(s.AdditionalProperties.Schema, name, texts, within)

	if s.Type.Includes(openapi3.TypeString) {
		fixed, found := texts[name]
		texts[name] = len(s.Enum) > 0 && (fixed || !found)
	}
}
