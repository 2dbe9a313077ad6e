package openadr_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// numRequests is how many random requests are made of each engine.
const numRequests = 10_000

// drawer draws documents by the specification's schemas.
type drawer struct {
	*rand.Rand
	ids []string // of objects that there are
}

func (d *drawer) of(all ...string) string { return all[d.IntN(len(all))] }

// value draws a value that a schema allows.
func (d *drawer) value(name string, s *openapi3.Schema, depth int) any {
	switch some := slices.Concat(s.OneOf, s.AnyOf); {
	case len(some) > 0:
		return d.value(name, some[d.IntN(len(some))].Value, depth)
	case s.Nullable && d.IntN(4) == 0:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[d.IntN(len(s.Enum))]
	}

	switch {
	case s.Type.Is("object") || len(s.Properties) > 0:
		o := map[string]any{}
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, field) || d.IntN(2) == 0 && depth < 5 {
				o[field] = d.value(field, s.Properties[field].Value, depth+1)
			}
		}

		return o
	case s.Type.Is("array"):
		list := []any{}
		for range d.IntN(3) {
			list = append(list, d.value(name, s.Items.Value, depth+1))
		}

		return list
	case s.Type.Is("integer"):
		return float64(d.IntN(100))
	case s.Type.Is("number"):
		return d.Float64() * 100
	case s.Type.Is("boolean"):
		return d.IntN(2) == 0
	}
	return d.text(name, s)
}

// text draws a string that a schema allows.
func (d *drawer) text(name string, s *openapi3.Schema) string {
	switch {
	case strings.HasSuffix(name, "ID") && name != "clientID":
		return d.of(append(d.ids, "nowhere", "01a205cb-7659-75f7-95f0-bafc1077120b")...)
	case s.Format == "uri":
		return d.of("https://example.com/a?b=c", "https://[2606:4700::1111]/")
	case s.Format == "date-time":
		return d.of("2030-01-15T17:30:00Z", "2026-06-01T00:00:00.25+01:00", "0001-01-01T00:00:00Z")

	case name == "duration" || name == "randomizeStart":
		return d.of("PT30M", "P1D", "P9999Y", "-PT5M", "P1Y2M3DT4H5M6.7S", "PT0S", "P2W", "P1YT")
	case name == "bearerToken":
		return d.of("abc", "t.o-k_e~n")
	}
	return d.of("a", "b", "c", "group-1", "ключ", `"quoted" <&>`, "emoji 🔌", strings.Repeat("x", 128))
}

// spoil changes one place of a document, so that it may be valid no more.
func (d *drawer) spoil(v any) any {
	wrong := []any{nil, "", strings.Repeat("y", 9000), 1.5, -1.0, 1e20, true, []any{}, map[string]any{}, []any{nil}, "a b\x01", "garbage", 0.0}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			break
		}

		keys := slices.Sorted(maps.Keys(v))
		key := keys[d.IntN(len(keys))]
		switch d.IntN(4) {
		case 0:
			delete(v, key)
		case 1:
			v["unknown"] = 1.0
		default:
			v[key] = d.spoil(v[key])
		}

		return v
	case []any:
		if len(v) > 0 && d.IntN(3) > 0 {
			i := d.IntN(len(v))
			v[i] = d.spoil(v[i])
			return v
		}
	}
	return wrong[d.IntN(len(wrong))]
}

// reasons are why a document that the schema allows may be refused: what the schema cannot
// say, or what the validator of the tests does not look at.
var reasons = []string{
	"there is no program", "there is no event", "there is no ven", "objectType: business logic writes", "another client's", "delete these first",
	"another has this", "is no URI", "is no URL", "must begin with https://", "printable ASCII", "no instant", "with the number 0", "8000", "it is not from", "not a public",
}

// TestRandom asks 10,000 random requests, valid and not: no answer is off the specification, a
// document that the schema does not allow is refused, and one that it allows is not, but for
// the reasons above.
func TestRandom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		tokens := map[string]string{
			"bl": f.bl, "a": f.client(f.org, "a", flex.OpenADRNode), "b": f.client(f.org, "b", flex.OpenADRNode),
			"else": f.client(f.newOrg("Elsewhere", true), "else", flex.OpenADRBusiness), "none": "", "bad": "flexd_x",
		}
		d := &drawer{Rand: rand.New(rand.NewPCG(3, 1))}
		doc := specification()
		templates := slices.Sorted(maps.Keys(doc.Paths.Map()))
		counts := map[string]int{}

		for n := 0; n < numRequests; n++ {
			template := templates[d.IntN(len(templates))]
			if d.IntN(4) > 0 { // mostly objects
				template = d.of("/programs", "/events", "/reports", "/subscriptions", "/vens", "/resources") + d.of("", "", d.of("/{programID}"))
				if strings.HasSuffix(template, "}") {
					template = templates[slices.IndexFunc(templates, func(s string) bool { return strings.HasPrefix(s, strings.TrimSuffix(template, "{programID}")+"{") })]
				}
			}

			item := doc.Paths.Find(template)
			methods := slices.Sorted(maps.Keys(item.Operations()))
			method := d.of(append(methods, "POST", "POST")...)
			op := item.GetOperation(method)
			if op == nil {
				n-- // it is no operation
				continue
			}

			path := template
			for strings.Contains(path, "{") {
				from, to := strings.Index(path, "{"), strings.Index(path, "}")
				path = path[:from] + d.of(append(d.ids, "nowhere", "a%20b", strings.Repeat("x", 129))...) + path[to+1:]
			}
			path += d.query(op)

			who := d.of("bl", "bl", "bl", "a", "a", "b", "else", "none", "bad")
			body, media, valid := d.body(op)
			r := f.ask(tokens[who], method, path, body, media)
			counts[fmt.Sprint(r.status)]++
			f.judge(who, method, path, body, valid, r, op)
			if r.status == http.StatusCreated {
				d.ids = append(d.ids, r.field("id"))
			}
			if len(d.ids) > 60 {
				d.ids = d.ids[20:]
			}
		}

		for _, status := range []string{"200", "201", "400", "401", "403", "404", "409"} {
			if counts[status] < 20 {
				t.Errorf("only %d answers are %s: %v", counts[status], status, counts)
			}
		}
		t.Log(counts)
	})
}

// query draws a query, valid or not.
func (d *drawer) query(op *openapi3.Operation) string {
	var parts []string
	for _, p := range op.Parameters {
		if p.Value.In == "query" && d.IntN(4) == 0 {
			parts = append(parts, p.Value.Name+"="+d.of("1", "50", "51", "-1", "true", "a", "group-1", "EVENT", "%F0%9F%94%8C", "", "nowhere", "%00", "%zz"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// body draws a body, and says whether the schema allows it.
func (d *drawer) body(op *openapi3.Operation) (body, media string, valid bool) {
	if op.RequestBody == nil {
		return "", "", true
	}

	content := op.RequestBody.Value.Content.Get("application/json")
	if content == nil { // the form of auth/token
		return d.of("grant_type=client_credentials&client_id=a&client_secret=b", "grant_type=x", "%", "a=b&a=c"), "application/x-www-form-urlencoded", true
	}

	v := d.value("", content.Schema.Value, 0)
	if d.IntN(2) == 0 {
		v = d.spoil(v)
	}

	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		panic(err)
	}

	valid = content.Schema.Value.VisitJSON(v, openapi3.VisitAsRequest(), goPatterns) == nil
	if d.IntN(50) == 0 {
		return string(b) + d.of("}", "\xff", " 1"), "application/json", false
	}
	return string(b), "application/json", valid
}

// judge holds the status of an answer against what the request was.
func (f *fixture) judge(who, method, path, body string, valid bool, r reply, op *openapi3.Operation) {
	f.Helper()
	refused := r.status == http.StatusBadRequest

	switch {
	case r.status >= 500:
		f.Errorf("%s %s %s: %d %s", method, path, body, r.status, r.body)
	case op.Security != nil && (who == "none" || who == "bad"):
		if r.status != http.StatusUnauthorized {
			f.Errorf("%s %s by %s: %d", method, path, who, r.status)
		}
	case strings.HasPrefix(path, "/auth/") || op.RequestBody == nil:
	case !valid && r.status < 300:
		f.Errorf("%s %s %s: %d, and the document is not allowed", method, path, body, r.status)
	case valid && refused && !strings.Contains(path, "%20") && !strings.Contains(path, "xxx"):
		detail := r.field("detail")

		if !slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(detail, reason) }) {
			f.Errorf("%s %s %s: refused, and the document is allowed: %s", method, path, body, detail)
		}
	}
}
