package wire

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTime(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}

	for s, want := range map[string]Time{
		"2026-01-15T10:30:00Z":             {Time: at("2026-01-15T10:30:00Z")},
		"2026-01-15t10:30:00z":             {Time: at("2026-01-15T10:30:00Z")},
		"2026-01-15T10:30:00+00:00":        {Time: at("2026-01-15T10:30:00Z")},
		"2026-07-15T10:30:00+01:00":        {Time: at("2026-07-15T09:30:00Z"), Offset: time.Hour},
		"2026-07-15T10:30:00-0330":         {Time: at("2026-07-15T14:00:00Z"), Offset: -3*time.Hour - 30*time.Minute},
		"2026-07-15 10:30+01":              {Time: at("2026-07-15T09:30:00Z"), Offset: time.Hour},
		"2026-01-15T10:30":                 {Time: at("2026-01-15T10:30:00Z"), Zoneless: true},
		"2026-01-15T10:30:00.123456789Z":   {Time: at("2026-01-15T10:30:00.123456Z")},
		"2026-01-15T10:30:00.5":            {Time: at("2026-01-15T10:30:00.5Z"), Zoneless: true},
		"2024-02-29T00:00:00Z":             {Time: at("2024-02-29T00:00:00Z")},
		"1970-01-01T00:00:00Z":             {Time: at("1970-01-01T00:00:00Z")},
		"1970-01-01T01:00:00+01:00":        {Time: at("1970-01-01T00:00:00Z"), Offset: time.Hour},
		"9999-12-31T22:59:59.999999-01:00": {Time: at("9999-12-31T23:59:59.999999Z"), Offset: -time.Hour},
		"9999-12-31T23:59:59.999999+00:00": {Time: at("9999-12-31T23:59:59.999999Z")},
	} {
		if got, err := ParseTime(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "2026-01-15", "2026-1-15T10:30:00Z", "2026-01-15T10:30:00.Z", "2026-01-15T10:30:60Z", "2026-01-15T24:00:00Z",
		"2026-01-15T10:60:00Z", "2026-13-15T10:30:00Z", "2026-00-15T10:30:00Z", "2026-04-31T10:30:00Z", "2026-02-29T10:30:00Z",
		"2026-01-00T10:30:00Z", "1969-12-31T23:59:59Z", "2026-01-15T10:30:00+24:00", "2026-01-15T10:30:00+1:00", "2026-01-15T10:30:00 Z",
		"2026-01-15T10:30:00+01:60", "2026-01-15X10:30:00Z", "+026-01-15T10:30:00Z", "2026-01-15T10:30:00Zulu", "1768473000", "now",
		"2026-01-15T10:30:0Z", "2026-01-15T10-30:00Z", "2026-01-15T10:30:00.000000000000000000000000000Z",
		"1970-01-01T00:59:59+01:00", "9999-12-31T23:00:00-01:00", // years 1969 and 10000 in UTC
	} {
		if got, err := ParseTime(s); err == nil {
			t.Errorf("%q is taken as %v", s, got)
		}
	}
}

// TestParseTime_AgreesWithTheLibrary writes instants in any offset as time.Format does.
func TestParseTime_AgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "offset"))
		want := time.UnixMicro(rapid.Int64Range(100_000*1e6, 250_000_000_000*1e6).Draw(t, "micros")).In(zone)
		layout := rapid.SampledFrom([]string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999-0700", "2006-01-02T15:04:05.000000000Z07:00"}).Draw(t, "layout")
		got, err := ParseTime(want.Format(layout))
		_, seconds := want.Zone()
		if err != nil || !got.Equal(want) || got.Offset != time.Duration(seconds)*time.Second || got.Zoneless {
			t.Errorf("%s: %+v, %v", want.Format(layout), got, err)
		}
	})
}

// TestWallTime_IgnoresAnOffset takes the time of RFC 3339, which must have an offset, and the
// plain one.
func TestWallTime_IgnoresAnOffset(t *testing.T) {
	for text, good := range map[string]bool{
		"07:30": true, "07:30:00": true, "07:30:00Z": true, "07:30:00z": true, "07:30:00+00:00": true, "07:30:00-05:00": true,
		"07:30:00.5+01": true, "07:30+0100": true,
		"": false, "Z": false, "07:30:00 Z": false, "07:30:00UTC": false, "07:30:00+25:00": false, "07:30:00+": false, "24:30:00Z": false,
	} {
		var w WallTime
		if err := w.UnmarshalText([]byte(text)); (err == nil) != good || good && w != WallTime(7*time.Hour+30*time.Minute) && text != "07:30:00.5+01" {
			t.Errorf("%q: %v, %v", text, w, err)
		}
	}
}

// TestDaysIn goes through all months of 400 years.
func TestDaysIn(t *testing.T) {
	for year := 1970; year < 2370; year++ {
		for month := 1; month <= 12; month++ {
			if want := time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day(); daysIn(year, month) != want {
				t.Errorf("%d-%02d: %d", year, month, daysIn(year, month))
			}
		}
	}
}

// TestTimes_AreWritten holds for both encoders of JSON.
func TestTimes_AreWritten(t *testing.T) {
	summer := time.Date(2026, 7, 1, 5, 30, 0, 250_000_000, time.UTC)
	v := struct {
		Instant Time       `json:"instant"`
		Exact   Time       `json:"exact"`
		London  LondonTime `json:"london"`
		Wall    WallTime   `json:"wall"`
		Day     Day        `json:"day"`
		None    Time       `json:"none,omitzero"`
		NoDay   Day        `json:"no_day,omitzero"`
	}{At(summer.In(time.FixedZone("", 3600))), Time{Time: summer}, LondonTime{summer}, WallTime(7 * time.Hour), Day{2026, 7, 1}, Time{}, Day{}}

	const want = `{"instant":"2026-07-01T05:30:00Z","exact":"2026-07-01T05:30:00.25Z","london":"2026-07-01T06:30:00+01:00","wall":"07:00:00","day":"2026-07-01"}`
	if b, err := Encode(v); err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	if b, err := json.Marshal(v); err != nil || string(b) != want {
		t.Errorf("encoding/json: got  %s, %v\nwant %s", b, err, want)
	}
}

func TestEncode_ListsAreNeverNull(t *testing.T) {
	b, err := Encode(SiteResponse{})
	const want = `{"id":"00000000-0000-0000-0000-000000000000","asset_ids":[],"markets":[],"dispatch_methods":[],"import_capacity_kw":0,"export_capacity_kw":0,"capacity_source":""}`
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v", b, err)
	}
	b, err = Encode(PriceCurveResponse{HalfHourlyTradedPrices: []HalfHourlyPrice{{StartTimestamp: At(time.Unix(0, 0))}}})
	if err != nil || string(b) != `{"half_hourly_traded_prices":[{"start_timestamp":"1970-01-01T00:00:00Z","price_gbp_per_mwh":null}]}` {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := Encode(ErrorWithDetail{Detail: "\xff"}); err == nil {
		t.Error("bad UTF-8 was written")
	}
}
