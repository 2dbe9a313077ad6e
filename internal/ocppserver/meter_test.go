package ocppserver

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

func TestMeter_Cuts(t *testing.T) {
	at := func(minutes int) time.Time { return night.Add(time.Duration(minutes) * time.Minute) }
	for name, x := range map[string]struct {
		marks []mark
		want  map[int]float64 // by the half-hour's number from night on
	}{
		"read at the edges":      {[]mark{{at(0), 100}, {at(30), 1100}, {at(60), 1600}}, map[int]float64{0: 1000, 1: 500}},
		"read between them":      {[]mark{{at(0), 0}, {at(20), 1000}, {at(40), 2000}, {at(60), 3000}}, map[int]float64{0: 1500, 1: 1500}},
		"the first is not whole": {[]mark{{at(10), 0}, {at(30), 1000}, {at(60), 2000}}, map[int]float64{1: 1000}},
		"stood still for hours":  {[]mark{{at(0), 700}, {at(100), 700}}, map[int]float64{0: 0, 1: 0, 2: 0}},
		"ran unseen for hours":   {[]mark{{at(0), 0}, {at(100), 9000}, {at(120), 9500}, {at(150), 9900}}, map[int]float64{4: 400}},
		"fell":                   {[]mark{{at(0), 5000}, {at(15), 10}, {at(30), 20}, {at(60), 30}}, map[int]float64{1: 10}},
		"told twice and late":    {[]mark{{at(0), 0}, {at(30), 500}, {at(30), 500}, {at(20), 300}, {at(60), 800}}, map[int]float64{0: 500, 1: 300}},
		"still for too long":     {[]mark{{at(0), 5}, {at(49 * 60), 5}}, nil},
	} {
		var m meter
		got := map[int]float64{}
		for _, k := range x.marks {
			done, _ := m.read(k)
			for _, h := range done {
				got[h.Sub(flex.PeriodAt(night))] = h.wh
			}
		}
		if len(got) != len(x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
		for n, wh := range x.want {
			if got[n] != wh {
				t.Errorf("%s: half-hour %d is %v Wh, want %v", name, n, got[n], wh)
			}
		}
	}
}

// TestMeter_LosesNothing: half-hours and what is left of the last add up to the register.
func TestMeter_LosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		k := mark{at: night, wh: 1000}
		sum, count := 0.0, 0.0
		for {
			done, _ := m.read(k)
			for _, h := range done {
				sum += h.wh
				count++
			}
			if k.at.Sub(night) > 12*time.Hour {
				break
			}
			k.at = k.at.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "seconds")) * time.Second)
			k.wh += float64(rapid.IntRange(0, 4000).Draw(t, "wh"))
		}
		if left := k.wh - 1000 - sum - m.partial; math.Abs(left) > count/2+1 { // each is rounded
			t.Fatalf("%v Wh are nowhere", left)
		}
	})
}

func TestMeter_PassesOnEveryFiveMinutes(t *testing.T) {
	var m meter
	passed := 0
	for i := range 61 { // an hour of minutes
		if _, pass := m.read(mark{night.Add(time.Duration(i) * time.Minute), float64(i)}); pass {
			passed++
		}
	}
	if passed != 13 {
		t.Errorf("%d of 61 marks were passed on, want 13", passed)
	}
}

func TestRegisterOf(t *testing.T) {
	for text, want := range map[string]float64{
		`[{"value":"1234"}]`:               1234,
		`[{"value":" 1.5 ","unit":"kWh"}]`: 1500,
		`[{"value":"7","measurand":"Voltage","unit":"V"},{"value":"9","measurand":"Energy.Active.Import.Register","unit":"Wh","location":"Outlet"}]`: 9,
		`[{"value":"7","phase":"L1"},{"value":"8"}]`: 8,
		`[{"value":"7","location":"EV"}]`:            -1,
		`[{"value":"abc"}]`:                          -1,
		`[{"value":"NaN"}]`:                          -1,
		`[{"value":"-5"}]`:                           -1,
		`[{"value":"5","format":"SignedData"}]`:      -1,
		`[{"value":"5","unit":"kvarh"}]`:             -1,
		`[]`:                                         -1,
	} {
		var s []sampled
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if got, ok := registerOf(s); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %v, %v", text, got, ok)
		}
	}
}

func TestStamp_AsChargersWriteIt(t *testing.T) {
	want := time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)
	for text, ok := range map[string]bool{
		`"2026-04-14T22:00:00Z"`: true, `"2026-04-14T22:00:00.000Z"`: true, `"2026-04-14T23:00:00+01:00"`: true,
		`"2026-04-14T22:00:00"`: true, `"2026-04-14 22:00:00Z"`: true,
		`""`: false, `"yesterday"`: false, `null`: false, `12`: false, `"1970-01-01T00:00:05Z"`: false,
	} {
		var s stamp
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Equal(want) != ok || !ok && !s.IsZero() {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
}
