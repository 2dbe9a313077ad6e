package reading_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/reading"
)

type givenJSON struct {
	AssetID flex.AssetID `json:"asset_id"`
	From    time.Time    `json:"start_timestamp"`
	To      time.Time    `json:"end_timestamp"`
	Value   float64      `json:"value"`
	Label   flex.Label   `json:"label"`
}

func (g givenJSON) given() reading.Input {
	return reading.Input{AssetID: g.AssetID, Span: flex.Span{From: g.From, To: g.To}, Value: g.Value, Label: g.Label}
}

var now = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func TestJudge_LabelVectors(t *testing.T) {
	var v struct {
		Cases []struct {
			Reading  givenJSON
			Accepted bool
		}
		Registers struct {
			Labels   []flex.Label
			Sequence []float64
			Then     float64
		} `json:"registers_monotonic"`
		Unknown struct{ Label flex.Label } `json:"unknown_label"`
	}

	b, err := os.ReadFile("testdata/readings-labels.json")
	if err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	labels := map[flex.Label]bool{}
	for _, c := range v.Cases {
		kept, verdict := reading.Judge(c.Reading.given(), now)
		if verdict.Accepted() != c.Accepted {
			t.Errorf("%s %g: %q, want accepted %t", c.Reading.Label, c.Reading.Value, verdict, c.Accepted)
		}
		if c.Accepted && float64(kept.Value) != math.Round(c.Reading.Value*1e6) {
			t.Errorf("%s %g is kept as %d", c.Reading.Label, c.Reading.Value, kept.Value)
		}
		labels[c.Reading.Label] = true
	}

	if len(labels) != 10 {
		t.Errorf("%d labels tried, want 10", len(labels))
	}

	for _, l := range v.Registers.Labels {
		var before *reading.Mark
		at := now.Add(-5 * time.Hour)
		read := func(value float64) (flex.Reading, reading.Verdict) {
			at = at.Add(flex.HalfHour)
			return reading.Judge(reading.Input{Label: l, Span: flex.Span{From: at, To: at}, Value: value}, now)
		}

		for _, value := range v.Registers.Sequence {
			r, verdict := read(value)
			if verdict == "" {
				verdict = reading.JudgeRegister(r, before, nil)
			}
			if !verdict.Accepted() {
				t.Errorf("%s %g: %s", l, value, verdict)
			}
			before = &reading.Mark{At: r.To, Value: r.Value}
		}

		r, _ := read(v.Registers.Then)
		if verdict := reading.JudgeRegister(r, before, nil); verdict.Accepted() {
			t.Errorf("%s fell to %g and was accepted", l, v.Registers.Then)
		}
	}

	g := v.Cases[0].Reading.given()
	g.Label = v.Unknown.Label
	if _, verdict := reading.Judge(g, now); verdict.Accepted() {
		t.Errorf("label %s was accepted", g.Label)
	}
}

func TestJudge_Edges(t *testing.T) {
	const half, reg, power, site = flex.ChargerEnergy, flex.BoundaryImportRegister, flex.BoundaryImportPower, flex.ProvisionalConsumption
	ten := now.Add(-2 * time.Hour)
	oldest := now.Add(-reading.MaxAge)

	for _, tt := range []struct {
		name     string
		label    flex.Label
		from, to time.Time
		value    float64
		want     string // part of the verdict; "" for accepted
	}{
		{"half-hour", half, ten, ten.Add(flex.HalfHour), 1, ""},
		{"half-hour, off by a second", half, ten.Add(time.Second), ten.Add(time.Second + flex.HalfHour), 1, "as in 10:00 to 10:30"},
		{"half-hour, a second long", half, ten, ten.Add(flex.HalfHour + time.Second), 1, "one half-hour"},
		{"an hour", half, ten, ten.Add(time.Hour), 1, "one half-hour"},
		{"a quarter", half, ten, ten.Add(flex.HalfHour / 2), 1, "one half-hour"},
		{"consumption of an odd time", site, ten.Add(time.Second), ten.Add(time.Minute), 1, ""},
		{"consumption of no time", site, ten, ten, 1, "must be after start_timestamp"},
		{"power at an instant", power, ten, ten, -1, ""},
		{"backwards", power, ten, ten.Add(-time.Second), 1, "is before start_timestamp"},
		{"a day", power, ten.Add(-reading.MaxLength), ten, 1, ""},
		{"more than a day", power, ten.Add(-reading.MaxLength - time.Second), ten, 1, "spans 1 day 1 second; a reading spans at most 1 day"},
		{"just ahead", power, now, now.Add(reading.MaxAhead), 1, ""},
		{"too far ahead", power, now, now.Add(reading.MaxAhead + time.Second), 1, "in the future"},
		{"just not too old", power, oldest, oldest, 1, ""},
		{"too old", power, oldest.Add(-time.Second), oldest, 1, "taken for 400 days"},
		{"power too large", power, ten, ten, 100_001, "check the unit"},
		{"power too small", power, ten, ten, -100_001, "check the unit"},
		{"energy at its bound", half, ten, ten.Add(flex.HalfHour), 50_000, ""},
		{"energy too large", half, ten, ten.Add(flex.HalfHour), 50_000.1, "check the unit"},
		{"register at its bound", reg, ten, ten, 1e9, ""},
		{"register too large", reg, ten, ten, 1e9 + 1, "check the unit"},
		{"not a number", power, ten, ten, math.NaN(), "not a number"},
		{"endless", power, ten, ten, math.Inf(1), "not a number"},
	} {
		_, verdict := reading.Judge(reading.Input{Label: tt.label, Span: flex.Span{From: tt.from, To: tt.to}, Value: tt.value}, now)
		if verdict.Accepted() != (tt.want == "") || !strings.Contains(string(verdict), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, verdict, tt.want)
		}
	}
}

func TestJudgeRegister_OutOfOrder(t *testing.T) {
	mark := func(v flex.Micro) *reading.Mark { return &reading.Mark{At: now, Value: v} }
	for _, tt := range []struct {
		before, after *reading.Mark
		want          bool
	}{
		{nil, nil, true},
		{mark(100), mark(100), true},
		{mark(99), mark(101), true},
		{mark(101), nil, false},
		{nil, mark(99), false},
	} {
		if v := reading.JudgeRegister(flex.Reading{Label: flex.ChargerRegister, Value: 100}, tt.before, tt.after); v.Accepted() != tt.want {
			t.Errorf("100 between %v and %v: %q", tt.before, tt.after, v)
		}
	}
}

// Whatever is accepted lies within its label's bounds and times, and is kept exactly to a
// millionth; a refusal always says something.
func TestJudge_Laws(t *testing.T) {
	labels := []flex.Label{
		flex.BoundaryImportPower, flex.BatteryInverterPower, flex.ChargerEnergy, flex.ChargerRegister, flex.BoundaryImportRegister,
		flex.BoundaryExportRegister, flex.ProvisionalConsumption, flex.SolarPower, flex.BatteryStateOfCharge, flex.BatteryStoredEnergy,
		flex.RoomTemperature, flex.TankTemperature, flex.OutdoorTemperature, flex.HeatPower,
	}
	rapid.Check(t, func(t *rapid.T) {
		from := now.Add(time.Duration(rapid.Int64Range(-450*86400, 86400).Draw(t, "from")) * time.Second)
		if rapid.Bool().Draw(t, "aligned") {
			from = flex.PeriodAt(from).Start()
		}
		g := reading.Input{
			Label: rapid.SampledFrom(labels).Draw(t, "label"), Value: rapid.Float64().Draw(t, "value"),
			Span: flex.Span{From: from, To: from.Add(rapid.SampledFrom([]time.Duration{0, flex.HalfHour, time.Minute, 25 * time.Hour, -time.Second}).Draw(t, "length"))},
		}
		kept, verdict := reading.Judge(g, now)
		if !verdict.Accepted() {
			return
		}

		if kept.To.Before(kept.From) || kept.To.After(now.Add(reading.MaxAhead)) || kept.From.Before(now.Add(-reading.MaxAge)) {
			t.Fatalf("accepted %+v", g)
		}
		if kept.Value < 0 && g.Label != flex.BoundaryImportPower && g.Label != flex.BatteryInverterPower {
			t.Fatalf("accepted a negative %s: %d", g.Label, kept.Value)
		}
		if math.Abs(float64(kept.Value)-g.Value*1e6) > 0.5 {
			t.Fatalf("%g is kept as %d millionths", g.Value, kept.Value)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	g := reading.Input{Label: flex.ChargerEnergy, Span: flex.Span{From: now.Add(-time.Hour), To: now.Add(-flex.HalfHour)}, Value: 3.7}
	for b.Loop() {
		if _, v := reading.Judge(g, now); v != "" {
			b.Fatal(v)
		}
	}
}
