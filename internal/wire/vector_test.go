package wire

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func vector(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// same reports whether two JSON texts say the same, instants being written with Z or +00:00.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for i, p := range []*any{&x, &y} {
		text := strings.ReplaceAll(string([][]byte{a, b}[i]), `+00:00"`, `Z"`)
		if err := json.Unmarshal([]byte(text), p); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(x, y)
}

// roundTrip reads a body of the vectors as a T and writes it again.
func roundTrip[T any](t *testing.T, name string, body []byte) (v T) {
	t.Helper()
	v, err := Decode[T](body, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return v
	}
	if again, err := Encode(v); err != nil || !same(t, body, again) {
		t.Errorf("%s: %v\nread  %s\nwrote %s", name, err, body, again)
	}
	return v
}

func TestVectors_Requests(t *testing.T) {
	var onboard struct {
		Request  json.RawMessage
		Response json.RawMessage `json:"expected_response"`
	}
	vector(t, "onboard-charger", &onboard)
	roundTrip[OnboardRequest](t, "onboard", onboard.Request)
	roundTrip[OnboardResponse](t, "onboard's answer", onboard.Response)

	var legacy struct {
		Requests []struct{ Body json.RawMessage }
	}
	vector(t, "onboard-legacy-single-asset", &legacy)
	for _, r := range legacy.Requests {
		roundTrip[OnboardingRequest](t, "onboard-site-and-asset", r.Body)
	}

	var pause struct {
		Request  json.RawMessage
		Response json.RawMessage `json:"expected_response"`
	}
	vector(t, "plug-in-schedule-30-minute", &pause)
	roundTrip[PlugInScheduleEventRequest](t, "plug-in-schedule", pause.Request)
	roundTrip[PlugInScheduleEventResponse](t, "plug-in-schedule's answer", pause.Response)

	var batch struct{ Request json.RawMessage }
	vector(t, "readings-batch-partial", &batch)
	if v := roundTrip[ReadingsDataPoints](t, "readings", batch.Request); len(v.Readings) != 2 {
		t.Errorf("%d readings", len(v.Readings))
	}
}

func TestVectors_Answers(t *testing.T) {
	var curve struct {
		Example json.RawMessage `json:"example_response"`
	}
	vector(t, "price-curve-values", &curve)
	roundTrip[PriceCurveResponse](t, "price curve", curve.Example)

	var plan struct {
		Example json.RawMessage
		Actions []string
	}
	vector(t, "dispatch-plan", &plan)
	if !slices.Equal(plan.Actions, Enum("DispatchAction")) {
		t.Errorf("actions %v", plan.Actions)
	}

	var p PlainDispatchScheduleResponse
	if err := json.Unmarshal(plan.Example, &p); err != nil {
		t.Fatal(err)
	}
	if b, err := Encode(p); err != nil || !same(t, plan.Example, b) {
		t.Errorf("%v\nread  %s\nwrote %s", err, plan.Example, b)
	}
}

func TestVectors_Labels(t *testing.T) {
	var v struct {
		Cases   []struct{ Reading json.RawMessage }
		Unknown struct{ Label string } `json:"unknown_label"`
	}
	vector(t, "readings-labels", &v)
	if len(v.Cases) == 0 {
		t.Fatal("no cases")
	}

	for _, c := range v.Cases {
		roundTrip[ReadingDataPoint](t, "reading", c.Reading) // its bounds are the service's to judge
	}
	unknown := strings.Replace(oneReading, "charger_consumption_energy_kwh", v.Unknown.Label, 1)
	for item, err := range Readings(strings.NewReader(`{"readings":[`+unknown+`]}`), nil) {
		if err != nil || item.Identified || item.Faults[0].Type != "type_error.enum" {
			t.Errorf("unknown label: %+v, %v", item, err)
		}
	}
}

func TestVectors_Tariffs(t *testing.T) {
	var v struct {
		Valid      []map[string]any
		Malformed  []map[string]any `json:"invalid_400"`
		Unreadable []map[string]any `json:"invalid_422"`
	}

	vector(t, "tariff-grammar", &v)
	read := func(tariff map[string]any) error {
		b, err := json.Marshal(map[string]any{"tariff": tariff})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Decode[TariffUpdateEventRequest](b, nil)
		return err
	}

	for _, c := range slices.Concat(v.Valid, v.Malformed) {
		if err := read(c); err != nil {
			t.Errorf("%v is refused before it is parsed: %v", c, err)
		}
	}

	for _, c := range v.Unreadable {
		if w := words(t, read(c)); len(w) != 1 {
			t.Errorf("%v gives %v", c, w)
		}
	}
	if len(v.Valid)+len(v.Malformed) == 0 || len(v.Unreadable) == 0 {
		t.Error("no cases")
	}
}

func TestVectors_Callbacks(t *testing.T) {
	var v struct {
		Event     json.RawMessage
		Callbacks []struct {
			Path   string
			Body   json.RawMessage
			Status int `json:"expected_status"`
		}
	}

	vector(t, "dispatch-event-asset-level", &v)
	var e DispatchEvent
	if err := json.Unmarshal(v.Event, &e); err != nil {
		t.Fatal(err)
	}
	if b, err := Encode(e); err != nil || !same(t, v.Event, b) {
		t.Errorf("%v\nread  %s\nwrote %s", err, v.Event, b)
	}

	for _, c := range v.Callbacks {
		parts := strings.Split(c.Path, "/") // "", entities, asset, {asset_id}, callback, {event_id}
		_, inPath := Path[CallbackPath](func(name string) string {
			return map[string]string{"asset_id": parts[3], "event_id": parts[5]}[name]
		})
		_, inBody := Decode[EventResponse](bytes.TrimSpace(c.Body), nil)
		if refused := Join(inPath, inBody) != nil; refused != (c.Status == 422) {
			t.Errorf("%s %s: %v, %v", c.Path, c.Body, inPath, inBody)
		}
	}
}
