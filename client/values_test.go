package client_test

import (
	"encoding/json"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// TestValues_SameBytes holds that a value is written as flexd writes it, and reads what flexd writes.
func TestValues_SameBytes(t *testing.T) {
	at := time.Date(2026, time.October, 25, 1, 30, 0, 123_456_789, flex.London)
	id := [16]byte{1, 0xab, 6: 0x70, 8: 0x80, 15: 0xff}

	same(t, client.At(at), wire.Time{Time: at})
	same(t, client.At(at.Add(time.Hour).Truncate(time.Second)), wire.At(at.Add(time.Hour)))
	same(t, client.LondonTime{Time: at}, wire.LondonTime{Time: at})
	same(t, client.WallTime(7*time.Hour+90*time.Second), wire.WallTime(7*time.Hour+90*time.Second))
	same(t, client.Day{Year: 2024, Month: time.February, Dom: 29}, wire.Day{Year: 2024, Month: time.February, Dom: 29})
	same(t, client.Pence(-1234), flex.Pence(-1234))
	same(t, client.SiteID(id), flex.SiteID(id))
}

func same[C any](t *testing.T, value C, served any) {
	t.Helper()
	want, err := wire.Encode(served)
	if err != nil {
		t.Fatal(err)
	}

	got, err := wire.Encode(value)
	if err != nil || string(got) != string(want) {
		t.Errorf("%T is written %s, flexd writes %s: %v", value, got, want, err)
	}

	var read C
	if err := json.Unmarshal(want, &read); err != nil {
		t.Errorf("%T of %s: %v", value, want, err)
	}

	again, err := json.Marshal(read)
	if err != nil || string(again) != string(want) {
		t.Errorf("%T is read from %s as %s: %v", value, want, again, err)
	}
}

// TestTime_Zoneless holds that an instant without an offset is UTC.
func TestTime_Zoneless(t *testing.T) {
	want := time.Date(2026, time.March, 4, 18, 30, 0, 0, time.UTC)
	for _, text := range []string{"2026-03-04T18:30", "2026-03-04T18:30:00", "2026-03-04T19:30:00+01:00"} {
		var got client.Time
		if err := json.Unmarshal([]byte(`"`+text+`"`), &got); err != nil || !got.Equal(want) {
			t.Errorf("%s is read as %v: %v", text, got, err)
		}
	}
}

// TestParseID_Refuses tries what is no UUID.
func TestParseID_Refuses(t *testing.T) {
	good := "0100ab00-0000-7000-8000-0000000000ff"
	if id, err := client.ParseID[client.SiteID](good); err != nil || id.String() != good {
		t.Error(id, err)
	}

	for _, text := range []string{"", "x", good[1:], good + "0", "0100ab000000700080000000000000ff", "g" + good[1:], good + "-"} {
		if id, err := client.ParseID[client.SiteID](text); err == nil || !id.IsZero() {
			t.Errorf("%q is read as %s", text, id)
		}
	}
}
