package ocppserver

import (
	"encoding/json"
	"maps"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

// registers feeds a meter of 7.4 kW with registers and returns its half-hours, by their number
// from night on.
func registers(m *meter, marks ...mark) map[int]float64 {
	got := map[int]float64{}
	for _, k := range marks {
		m.add(sample{At: k.At, Value: k.Wh, Step: 1}, 7400)
		for _, h := range m.cut(conditions{power: 7400, now: k.At}) {
			if h.why == "" {
				got[h.Sub(flex.PeriodAt(night))] = h.wh
			}
		}
	}
	return got
}

func TestMeter_Cuts(t *testing.T) {
	at := func(minutes int, wh float64) mark {
		return mark{At: night.Add(time.Duration(minutes) * time.Minute), Wh: wh}
	}

	for name, x := range map[string]struct {
		marks []mark
		want  map[int]float64
	}{
		"read at the edges":        {[]mark{at(0, 100), at(30, 1100), at(60, 1600)}, map[int]float64{0: 1000, 1: 500}},
		"read between them":        {[]mark{at(0, 10), at(20, 1010), at(40, 2010), at(60, 3010)}, map[int]float64{0: 1500, 1: 1500}},
		"the first is not whole":   {[]mark{at(10, 1), at(30, 1001), at(60, 2001)}, map[int]float64{1: 1000}},
		"stood still for hours":    {[]mark{at(0, 700), at(100, 700)}, map[int]float64{0: 0, 1: 0, 2: 0}},
		"ran unobserved for hours": {[]mark{at(0, 1), at(100, 9001), at(120, 9501), at(150, 9901)}, map[int]float64{4: 400}},
		"begins anew":              {[]mark{at(0, 5000), at(15, 10), at(30, 20), at(60, 30)}, map[int]float64{1: 10}},
		"twice and late":           {[]mark{at(0, 1), at(30, 501), at(30, 501), at(20, 301), at(60, 801)}, map[int]float64{0: 500, 1: 300}},
		"in any order":             {[]mark{at(60, 801), at(0, 1), at(30, 501)}, map[int]float64{0: 500, 1: 300}},
		"one zero":                 {[]mark{at(0, 5000), at(15, 0), at(30, 6000)}, map[int]float64{0: 1000}},
		"many zeros":               {[]mark{at(0, 5000), at(5, 0), at(10, 0), at(15, 0), at(30, 6000)}, map[int]float64{0: 1000}},
		"one too high":             {[]mark{at(0, 5000), at(15, 9e6), at(30, 6000)}, map[int]float64{0: 1000}},
		"a little too high":        {[]mark{at(0, 5000), at(15, 6600), at(30, 6000), at(45, 6500), at(60, 7000)}, map[int]float64{0: 1000, 1: 1000}},
		"the first was wrong":      {[]mark{at(0, 0), at(15, 5000), at(30, 6000), at(60, 7000)}, map[int]float64{1: 1000}},
		"the largest number":       {[]mark{at(0, 5000), at(15, math.MaxUint32), at(20, math.MaxUint32), at(30, 6000)}, map[int]float64{0: 1000}},
		"falls by one":             {[]mark{at(0, 5000), at(15, 5500), at(16, 5499), at(30, 6000)}, map[int]float64{0: 1000}},
		"falls by two":             {[]mark{at(0, 5000), at(15, 5500), at(16, 5498), at(30, 6000)}, map[int]float64{0: 1000}},
		"still for too long":       {[]mark{at(0, 5), at(8*24*60, 5)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var m meter
			if got := registers(&m, x.marks...); !maps.Equal(got, x.want) {
				t.Errorf("got %v, want %v", got, x.want)
			}
		})
	}
}

// TestMeter_Physics: the energy between two registers is at most power times time and 10 %.
func TestMeter_Physics(t *testing.T) {
	a := mark{At: night, Wh: 1000, Step: 0.01}
	most := 1.1 * 7400 * (30*time.Minute + clockSlack).Hours()
	for _, x := range []struct {
		wh   float64
		want bool
	}{{1000, true}, {999, true}, {998.9, false}, {1000 + most + 0.9, true}, {1000 + most + 1.1, false}} {
		b := mark{At: night.Add(30 * time.Minute), Wh: x.wh, Step: 0.01}
		if got := possible(a, b, 7400); got != x.want {
			t.Errorf("from 1000 to %v Wh in 30 minutes: %v", x.wh, got)
		}
	}
}

// TestMeter_AnyOrder: the order in which registers arrive changes no half-hour, and the
// half-hours add up to the register.
func TestMeter_AnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marks := []mark{{At: night, Wh: 1000}}
		for range 40 {
			k := marks[len(marks)-1]
			seconds := rapid.IntRange(1, 1800).Draw(t, "seconds")
			k.At = k.At.Add(time.Duration(seconds) * time.Second)
			k.Wh += math.Floor(float64(seconds) * 7400 / 3600 * rapid.Float64Range(0, 1).Draw(t, "use"))
			marks = append(marks, k)
		}

		var inOrder, mixed meter
		want := registers(&inOrder, marks...)
		got := registers(&mixed, rapid.Permutation(marks).Draw(t, "order")...)
		sum := 0.0
		for p, wh := range want {
			sum += wh
			if math.Abs(got[p]-wh) > 1 {
				t.Fatalf("half-hour %d is %v Wh in this order, %v in the other", p, got[p], wh)
			}
		}

		if whole := marks[len(marks)-1].Wh - 1000; sum > whole+20 || sum < whole-3700*1.1 {
			t.Fatalf("%v Wh in half-hours of %v", sum, whole)
		}
	})
}

func TestObserve_Register(t *testing.T) {
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
		`[{"value":5.25,"unit":"KWh"}]`:              5250,
		`[{"value":"5,25","unit":"kwh"}]`:            5250,
		`[{"value":"1e308","unit":"kWh"}]`:           -1,
		`[{"value":"3","phase":"L1"},{"value":"4","phase":"L2-N"},{"value":"5","phase":"L1-L2"}]`:                     7,
		`[{"value":"3","context":"Transaction.Begin"},{"value":"4","context":"Sample.Periodic"}]`:                     4,
		`[{"value":"3","location":"Inlet"},{"value":"4","location":"Body"}]`:                                          3,
		`[{"value":"3","measurand":"Energy.Active.Export.Register"},{"value":"4"}]`:                                   4,
		`[{"value":"3","measurand":"Power.Active.Import"},{"value":"4","measurand":"Energy.Active.Import.Interval"}]`: 4,
		`[{"value":"[","format":"Raw"},{"value":"4"}]`:                                                                4,
		`[]`: -1,
	} {
		var s []sampled
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}

		got, why := observe(s)
		if (why == "") != (want >= 0) || why == "" && got.Value != want {
			t.Errorf("%s: %v, %v", text, got, why)
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
