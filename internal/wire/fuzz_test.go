package wire

import (
	"bytes"
	"errors"
	"net/url"
	"reflect"
	"testing"
	"unicode/utf8"

	"flexd/internal/flex"
)

// requests are the bodies that the fuzzer reads, by the number that it draws.
var requests = []reflect.Type{
	reflect.TypeFor[AssetEventRequest](), reflect.TypeFor[OnboardRequest](), reflect.TypeFor[AssetRequest](),
	reflect.TypeFor[SiteUpdateRequest](), reflect.TypeFor[OnboardingRequest](), reflect.TypeFor[SiteAuthTokenRequest](),
	reflect.TypeFor[PlugInScheduleEventRequest](), reflect.TypeFor[WhatIfRequest](), reflect.TypeFor[EndpointRequest](), reflect.TypeFor[Caps](),
	reflect.TypeFor[ClockRequest](), reflect.TypeFor[EventResponse](), reflect.TypeFor[ReadingsDataPoints](),
}

// wellMade fails unless err is nil or lists faults that can be shown.
func wellMade(t *testing.T, err error, where string) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*flex.Error](err)
	if !ok || e.Kind != flex.Invalid || len(e.Faults) == 0 || len(e.Faults) > MaxFaults {
		t.Fatalf("%v is not a list of faults", err)
	}

	for _, f := range e.Faults {
		if len(f.Loc) == 0 || f.Loc[0] != where || f.Msg == "" || f.Type == "" {
			t.Errorf("fault %+v", f)
		}
	}
	b, err := Encode(ValidationErrors(e.Faults))
	if err != nil || !utf8.Valid(b) {
		t.Errorf("faults cannot be written: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for i := range requests {
		f.Add(uint8(i), []byte(`{}`))
	}
	for _, c := range faultCases {
		f.Add(uint8(0), []byte(c.input))
		f.Add(uint8(1), []byte(c.input))
	}
	f.Add(uint8(0), []byte(`{"event_type":"plug_in","intent":{"energy_required_kwh":30,"ready_by":"2026-01-16T07:00:00.25+01:00","ready_by_local_time":"07:00","energy_estimated":null},"vehicle":{"charging_rate_kw":7.4},"tariff":{"off_peak_times":"00:00-05:30,\u002023:30-24:00","timezone":"Europe/London"}}`))
	f.Add(uint8(2), []byte(`{"external_id":"\ud83d\ude97","type":"heat_pump","site_id":"a1b2c3d4-e5f6-7890-abcd-ef1234567890"}`))
	f.Add(uint8(7), []byte(`{"asset_ids":["a1b2c3d4-e5f6-7890-abcd-ef1234567890"],"prices":[{"start_timestamp":"2026-01-16T07:00:00Z","price_gbp_per_mwh":null}]}`))
	f.Add(uint8(11), []byte(`{"readings":[`+oneReading+`]}`))
	f.Add(uint8(1), []byte(`{"site":{"emial":"a","\r\n\u202e,":1},"assets":[{"properties":{"power":7}}],"\ud83d\ude97":{}}`))

	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		typ := requests[int(which)%len(requests)]
		var ignored Ignored
		Decode[OnboardRequest](body, &ignored)
		bounded(t, &ignored)
		v, err := decodeAs(typ, body)
		wellMade(t, err, "body")
		if err != nil {
			return
		}

		once, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeAs(typ, once)
		if err != nil {
			t.Fatalf("%v: cannot read %s", err, once)
		}
		if twice, err := Encode(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%v\nonce  %s\ntwice %s", err, once, twice)
		}
	})
}

// FuzzReadings reads a batch in both ways: what one refuses, the other does not take whole.
func FuzzReadings(f *testing.F) {
	for _, s := range []string{
		`{"readings":[]}`, `{"readings":[` + oneReading + `,{}]}`, `{"readings":[` + oneReading + `],"readings":1}`,
		`{"Readings":1,"readings":[` + oneReading + `,null,[]]} `, `{"readings":[` + oneReading, ``, `[]`,
	} {
		f.Add([]byte(s))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		whole, refused := Decode[ReadingsDataPoints](body, nil)
		var items []ReadingDataPoint
		var fault bool
		for item, err := range Readings(bytes.NewReader(body), nil) {
			if err != nil {
				wellMade(t, err, "body")
				fault = true
				break
			}

			fault = fault || item.Faults != nil
			if item.Identified && (item.AssetID.IsZero() && !bytes.Contains(body, []byte("00000000-0000-0000")) || item.Label == "") {
				t.Errorf("%+v is not identified", item)
			}
			items = append(items, item.ReadingDataPoint)
		}

		if (refused != nil) != fault {
			t.Fatalf("whole: %v, one at a time: %v", refused, fault)
		}
		if refused == nil && !(len(items) == 0 && len(whole.Readings) == 0) && !reflect.DeepEqual(items, whole.Readings) {
			t.Errorf("whole %+v, one at a time %+v", whole.Readings, items)
		}
	})
}

func FuzzParams(f *testing.F) {
	for _, c := range faultCases {
		f.Add(c.input)
	}
	f.Add("limit=5000&offset=7&mpan=%20&postcode=SW1A+1AA&day=2026-01-15&from=2026-01-01")
	f.Add("username=a%C3%A9&password=b&scope=")
	f.Fuzz(func(t *testing.T, query string) {
		values, _ := url.ParseQuery(query)
		list, err := Query[SiteListQuery](values, nil)
		wellMade(t, err, "query")
		if err == nil && (list.Limit < 1 || list.Limit > 5000 || list.Offset < 0 || len(list.MPAN) > MaxText || !utf8.ValidString(list.Postcode)) {
			t.Errorf("took %+v", list)
		}

		_, err = Query[GapsQuery](values, nil)
		wellMade(t, err, "query")
		_, err = Query[BalanceURLQuery](values, nil)
		wellMade(t, err, "query")
		login, err := Form[TokenForm](values, nil)
		wellMade(t, err, "body")
		if err == nil && (login.GrantType != "password" || !utf8.ValidString(login.Password)) {
			t.Errorf("took %+v", login)
		}

		_, err = Form[ComponentTokenForm](values, nil)
		wellMade(t, err, "body")
		_, err = Path[CallbackPath](values.Get)
		wellMade(t, err, "path")
	})
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"2026-01-15T10:30:00Z", "2026-01-15 10:30", "2024-02-29T23:59:59.999999999+0530", "1970-01-01T00:00:00-23", "1970-01-01T00:00:00+23", "9999-12-31T24:00:00Z", "9999-12-31T23:59:59-01:00"} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseTime(s)
		if err != nil {
			return
		}
		b, err := at.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}

		var again Time
		if err := again.UnmarshalJSON(b); err != nil || !again.Equal(at.Time) {
			t.Errorf("%q is %s, which is %v, %v", s, b, again, err)
		}
	})
}
