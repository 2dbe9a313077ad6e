package wire

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"flexd/internal/flex"
)

var update = flag.Bool("update", false, "write the golden file anew")

// faultCase is a request that is wrong, and how it is read.
type faultCase struct {
	title, input string
	read         func(string) error
}

func as[T any](s string) error { _, err := Decode[T]([]byte(s), nil); return err }

func inQuery[T any](s string) error {
	values, _ := url.ParseQuery(s)
	_, err := Query[T](values, nil)
	return err
}

func inForm[T any](s string) error {
	values, _ := url.ParseQuery(s)
	_, err := Form[T](values, nil)
	return err
}

func inPath[T any](s string) error {
	values, _ := url.ParseQuery(s)
	_, err := Path[T](values.Get)
	return err
}

func inReadings(s string) error {
	for _, err := range Readings(strings.NewReader(s), nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

var faultCases = []faultCase{
	{"no body", ``, as[IntentEventRequest]},
	{"white space", " \n\t", as[IntentEventRequest]},
	{"another type at the root", `[]`, as[IntentEventRequest]},
	{"null at the root", `null`, as[IntentEventRequest]},
	{"a required object is missing", `{}`, as[IntentEventRequest]},
	{"a required object is null", `{"intent":null}`, as[IntentEventRequest]},
	{"every fault at once, in two objects", `{"intent":{"energy_required_kwh":-1,"charging_mode":"fast"},"vehicle":{},"tariff":{"off_peak_times":7,"timezone":null,"tariff_type":"triple_rate"}}`, as[PlugInEventRequest]},
	{"numbers in quotes", `{"intent":{"energy_required_kwh":"30","ready_by":1768460400,"may_charge_peak":"false"}}`, as[IntentEventRequest]},
	{"a wall time with the name of a zone", `{"intent":{"energy_required_kwh":1,"ready_by":"2026-01-16T07:00:00Z","ready_by_local_time":"07:00:00 UTC"}}`, as[IntentEventRequest]},
	{"a name in the wrong case", `{"intent":{"Energy_Required_kWh":1,"ready_by":"2026-01-16T07:00:00Z"}}`, as[IntentEventRequest]},
	{"a name given twice", `{"intent":{"energy_required_kwh":1,"energy_required_kwh":2}}`, as[IntentEventRequest]},
	{"an unknown name given twice", `{"x":{"y":1,"y":1}}`, as[PlugInEventRequest]},
	{"trailing data", `{"intent":{"energy_required_kwh":1,"ready_by":"2026-01-16T07:00:00Z"}} {}`, as[IntentEventRequest]},
	{"a trailing brace", `{}}`, as[PlugOutEventRequest]},
	{"cut off", `{"intent":{"energy_`, as[IntentEventRequest]},
	{"NaN", `{"intent":{"energy_required_kwh":NaN}}`, as[IntentEventRequest]},
	{"Infinity", `{"intent":{"energy_required_kwh":-Infinity}}`, as[IntentEventRequest]},
	{"a number beyond all numbers", `{"intent":{"energy_required_kwh":1e999,"ready_by":"2026-01-16T07:00:00Z"}}`, as[IntentEventRequest]},
	{"a leading plus", `{"charging_rate_kw":+1}`, as[Vehicle]},
	{"a comment", `{/* here */}`, as[PlugOutEventRequest]},
	{"single quotes", `{'mpan':'1'}`, as[MPANValidationRequest]},
	{"bad UTF-8", "{\"mpan\":\"\xff\"}", as[MPANValidationRequest]},
	{"half a surrogate pair", `{"mpan":"\ud800"}`, as[MPANValidationRequest]},
	{"NUL", `{"mpan":"1\u00002"}`, as[MPANValidationRequest]},
	{"empty where something is needed", `{"mpan":"","postcode":""}`, as[SiteRequest]},
	{"consent without a zone", `{"gave_boundary_meter_consent_at":"2026-01-15T10:30:00"}`, as[SiteMeterConsentRequest]},
	{"consent on a day that is not", `{"gave_boundary_meter_consent_at":"2026-02-29T10:30:00Z"}`, as[SiteMeterConsentRequest]},
	{"an asset's every fault", `{"external_id":"","type":"meter","site_id":"17","properties":{"power_kw":-0.1,"capacity_kwh":1e7},"asset_model":1,"installation_date":"15/06/2025"}`, as[AssetRequest]},
	{"a meter cannot be created", `{"external_id":"m","type":"boundary meter","site_id":"a1b2c3d4-e5f6-7890-abcd-ef1234567890"}`, as[AssetRequest]},
	{"no assets", `{"site":{"mpan":"1","postcode":"SW1A 1AA"},"assets":[],"proposition":"limited_pause"}`, as[OnboardRequest]},
	{"places in lists", `{"site":{"mpan":"1","postcode":"SW1A 1AA"},"assets":[{"external_id":"a","type":"charger"},{"type":"charger"},7],"proposition":"both"}`, as[OnboardRequest]},
	{"a method twice", `{"dispatch_methods":["limited_pause","limited_pause"]}`, as[SiteDispatchConsentRequest]},
	{"an unknown method and null", `{"dispatch_methods":["full_asset_control",null]}`, as[SiteDispatchConsentRequest]},
	{"a status of no kind", `{"timestamp":"2026-01-15T10:10:02Z","status":"DONE"}`, as[EventResponse]},
	{"blocks without times", `{"charging_schedule":[{"start_timestamp":"tonight","end_timestamp":""}]}`, as[PlugInScheduleEventRequest]},
	{"seconds that are no integer", `{"expires_in":3600.5}`, as[SiteAuthTokenRequest]},
	{"more seconds than an integer holds", `{"expires_in":99999999999999999999}`, as[SiteAuthTokenRequest]},
	{"no readings", `{"reading":[]}`, inReadings},
	{"readings in the wrong case", `{"Readings":[]}`, inReadings},
	{"readings that are no list", `{"readings":{}}`, inReadings},
	{"readings cut off", `{"readings":[{"asset_id":"b2c3d4e5-`, inReadings},
	{"an empty batch of nothing", ``, inReadings},
	{"limit and offset below their bounds", `limit=0&offset=-1`, inQuery[PageQuery]},
	{"limit above its bound", `limit=5001`, inQuery[PageQuery]},
	{"limit that is no integer", `limit=ten&offset=1.0`, inQuery[PageQuery]},
	{"limit and offset beyond all integers", `limit=99999999999999999999&offset=-99999999999999999999`, inQuery[PageQuery]},
	{"an offset beyond all integers", `offset=99999999999999999999`, inQuery[PageQuery]},
	{"a required parameter in the wrong case", `PostCode=E1`, inQuery[MeterSearchQuery]},
	{"limit twice", `limit=1&limit=2`, inQuery[PageQuery]},
	{"limit empty", `limit=`, inQuery[PageQuery]},
	{"a required parameter is missing", `building_identifier=10`, inQuery[MeterSearchQuery]},
	{"a parameter that is no boolean", `asset_id_is_external=perhaps`, inQuery[CallbackQuery]},
	{"a parameter of no enumeration", `status=lost`, inQuery[DeliveryListQuery]},
	{"a parameter with bad UTF-8 and NUL", `mpan=%ff&postcode=%00`, inQuery[SiteListQuery]},
	{"no credentials", ``, inForm[TokenForm]},
	{"empty credentials", `username=&password=`, inForm[TokenForm]},
	{"credentials in the wrong case", `Username=a&password=b`, inForm[TokenForm]},
	{"another grant", `username=a&password=b&grant_type=client_credentials`, inForm[TokenForm]},
	{"a name twice in a form", `username=a&password=b&username=c`, inForm[TokenForm]},
	{"consent without a zone in a form", `external_user_id=u&allowed_origin=https://a.example&gave_boundary_meter_consent_at=2026-01-15`, inForm[ComponentTokenForm]},
	{"no uuid in the path", `site_id=17`, inPath[SitePath]},
	{"no provider in the path", `site_id=a1b2c3d4-e5f6-7890-abcd-ef1234567890&provider=acme`, inPath[OAuthPath]},
	{"an external id in a callback's path that is no uuid", `asset_id=charger-001&event_id=e`, inPath[CallbackPath]},
}

// TestFaults_Golden shows every kind of fault as the client sees it. After a change, run
// with -update and read the difference.
func TestFaults_Golden(t *testing.T) {
	var got strings.Builder
	for _, c := range faultCases {
		e, ok := errors.AsType[*flex.Error](c.read(c.input))
		if !ok || e.Kind != flex.Invalid {
			t.Errorf("%s: %v is not a failure of kind Invalid", c.title, c.read(c.input))
			continue
		}
		fmt.Fprintf(&got, "%s\n  %q\n", c.title, c.input)
		for _, f := range e.Faults {
			fmt.Fprintf(&got, "  %s: %s (%s)\n", strings.Join(f.Loc, " "), f.Msg, f.Type)
		}
	}

	const path = "testdata/faults.golden"
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("faults differ from %s; run with -update and read the difference", path)
	}
}

func TestFaults_AsJSON(t *testing.T) {
	err := Join(
		inPath[AssetPath]("asset_id=17"), nil,
		inQuery[CallbackQuery]("asset_id_is_external=x"),
		as[OnboardRequest](`{"site":{"mpan":"1","postcode":"E1 6AN"},"assets":[{"type":"charger"}],"proposition":"limited_pause"}`),
	)
	e, ok := errors.AsType[*flex.Error](err)
	if !ok {
		t.Fatal(err)
	}
	got, err := Encode(ValidationErrors(e.Faults))
	if err != nil {
		t.Fatal(err)
	}

	want := `{"detail":[` +
		`{"loc":["path","asset_id"],"msg":"value is not a valid uuid: write it like b2c3d4e5-f6a7-8901-bcde-f23456789012","type":"type_error.uuid"},` +
		`{"loc":["query","asset_id_is_external"],"msg":"value could not be parsed to a boolean: give true or false, without quotes","type":"type_error.bool"},` +
		`{"loc":["body","assets","0","external_id"],"msg":"field required","type":"value_error.missing"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if flat := Flat(e.Faults[2:]); flat != "body.assets.0.external_id: field required" {
		t.Errorf("flat: %s", flat)
	}
}

func TestJoin_ErrorOfAnotherKind(t *testing.T) {
	large := flex.Fail(flex.TooLarge, "too large")
	if err := Join(as[SiteRequest](`{}`), large); !errors.Is(err, large) {
		t.Errorf("got %v", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestDecode_TakesWhatItMay(t *testing.T) {
	r, err := Decode[AssetRequest]([]byte(`{"external_id":"h\u00e9 \"1\"","type":"heat_pump","site_id":"A1B2C3D4-E5F6-7890-ABCD-EF1234567890",`+
		`"properties":{"power_kw":0},"installation_date":null,"serial_number":null,"color":{"deep":[1,{"a":null}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Type != flex.HeatPump || r.ExternalID != `hé "1"` || r.SiteID.String() != "a1b2c3d4-e5f6-7890-abcd-ef1234567890" {
		t.Errorf("got %+v", r)
	}

	if r.Properties == nil || r.Properties.PowerKW == nil || *r.Properties.PowerKW != 0 || r.Properties.CapacityKWh != nil || r.InstallationDate != nil {
		t.Errorf("got %+v", r.Properties)
	}
	tank, err := Decode[OnboardingAssetRequest]([]byte(`{"external_id":"t","type":"hot_water_tank"}`), nil)
	if err != nil || tank.Type != flex.HotWaterTank {
		t.Errorf("got %v, %v", tank.Type, err)
	}

	for written, want := range map[string]int{"3600": 3600, "3600.0": 3600, "36e2": 3600, "3.6E+3": 3600, "0.0": 0, "-0.0": 0, "4294967295.000": 4294967295} {
		token, err := Decode[SiteAuthTokenRequest]([]byte(`{"expires_in":`+written+`}`), nil)
		if err != nil || token.ExpiresIn == nil || *token.ExpiresIn != want {
			t.Errorf("%s: %+v, %v", written, token.ExpiresIn, err)
		}
	}
	i, err := Decode[Intent]([]byte(`{"energy_required_kwh":30,"ready_by":"2026-07-01T07:00:00+01:00"}`), nil)
	if err != nil || i.ChargingMode != flex.Maximise || i.MayChargePeak || i.ReadyByLocalTime != nil || i.ReadyBy.Offset.Hours() != 1 || i.ReadyBy.Hour() != 6 {
		t.Errorf("got %+v, %v", i, err)
	}

	for _, s := range []string{`{}`, ` {} `, `{"anything":1}`} {
		if _, err := Decode[PlugOutEventRequest]([]byte(s), nil); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestParams_Defaults(t *testing.T) {
	q, err := Query[SiteListQuery](url.Values{"unknown": {"1", "2"}}, nil)
	if err != nil || q != (SiteListQuery{Limit: 10}) {
		t.Errorf("got %+v, %v", q, err)
	}

	for _, s := range []string{"true", "True", "1", "yes", "on"} {
		if c, err := Query[CallbackQuery](url.Values{"asset_id_is_external": {s}}, nil); err != nil || !c.AssetIDIsExternal {
			t.Errorf("%s: %+v, %v", s, c, err)
		}
	}
	f, err := Form[TokenForm](url.Values{"username": {"a"}, "password": {"b"}, "client_id": {"x"}}, nil)
	if err != nil || f.GrantType != "password" {
		t.Errorf("got %v, %v", f.GrantType, err)
	}

	f, err = Form[TokenForm](url.Values{"username": {"a"}, "password": {"b"}, "grant_type": {""}, "scope": {""}}, nil)
	if err != nil || f.GrantType != "password" {
		t.Errorf("an empty field is not one that was left out: %v, %v", f.GrantType, err)
	}
	c, err := Form[ComponentTokenForm](url.Values{"external_user_id": {"u"}, "allowed_origin": {"https://a.example"}, "user_email": {""}, "gave_boundary_meter_consent_at": {""}}, nil)
	if err != nil || !c.GaveBoundaryMeterConsentAt.IsZero() {
		t.Errorf("got %+v, %v", c, err)
	}
	b, err := Query[BalanceURLQuery](url.Values{"redirect_uri": {"https://a.example"}}, nil)
	if err != nil || b.EnforceTwoFactorAuth != nil {
		t.Errorf("got %+v, %v", b, err)
	}
}

// TestParams_TypesCompile reads every struct of parameters once, for a bad tag panics.
func TestParams_TypesCompile(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[TokenForm](), reflect.TypeFor[ComponentTokenForm](), reflect.TypeFor[MeterSearchQuery](),
		reflect.TypeFor[MeterByAddressQuery](), reflect.TypeFor[MeterRefPath](), reflect.TypeFor[MPANPath](),
		reflect.TypeFor[SiteListQuery](), reflect.TypeFor[SitePath](), reflect.TypeFor[OAuthPath](),
		reflect.TypeFor[PageQuery](), reflect.TypeFor[AssetPath](), reflect.TypeFor[ExternalIDPath](),
		reflect.TypeFor[CallbackPath](), reflect.TypeFor[CallbackQuery](), reflect.TypeFor[BalanceURLQuery](),
		reflect.TypeFor[TransactionsQuery](), reflect.TypeFor[DeliveryListQuery](), reflect.TypeFor[DeliveryPath](),
		reflect.TypeFor[CurvesQuery](), reflect.TypeFor[ForecastQuery](), reflect.TypeFor[GapsQuery](), reflect.TypeFor[StatementQuery](), reflect.TypeFor[EnvelopeQuery](), reflect.TypeFor[ProfileQuery](), reflect.TypeFor[AheadQuery](), reflect.TypeFor[OfferQuery](), reflect.TypeFor[OfferPath](), reflect.TypeFor[OfferListQuery](), reflect.TypeFor[AlertListQuery](),
		reflect.TypeFor[InstructionQuery](), reflect.TypeFor[InstructionPath](), reflect.TypeFor[InstructionReportQuery](), reflect.TypeFor[InstructionListQuery](),
	} {
		for _, f := range shapeOf(typ).fields {
			if f.kind == object || f.kind == list {
				t.Errorf("%v.%s cannot be a parameter", typ, f.name)
			}
		}
	}
}
