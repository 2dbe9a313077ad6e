package ocpp

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

var asset = flex.AssetID{0x01, 0x9d, 0x8e, 0x1c, 15: 0x07}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}

	return t
}

func step(from, to string, w flex.Watts) flex.Step {
	return flex.Step{Span: flex.Span{From: at(from), To: at(to)}, Limit: w}
}

// overnight is the schedule of scenario 1 as a planner makes it, half-hour by half-hour.
func overnight() (steps []flex.Step) {
	start := at("2026-04-14T23:00:00+01:00").UTC() // a zone of its own must not show

	for i := range 18 {
		from := start.Add(time.Duration(i) * flex.HalfHour)
		s := flex.Step{Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}}

		if i >= 3 && i < 15 {
			s.Limit = flex.NoLimit
		}

		steps = append(steps, s)
	}

	return steps
}

// TestScenario1 compares with the worked payload byte for byte, but for the id, which
// the worked payload leaves null.
func TestScenario1(t *testing.T) {
	b, err := os.ReadFile("testdata/scenario-1-overnight.json")
	if err != nil {
		t.Fatal(err)
	}

	var v struct {
		Expected struct {
			Profile json.RawMessage `json:"charging_profile"`
		}
	}

	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	var want bytes.Buffer
	if err := json.Compact(&want, v.Expected.Profile); err != nil {
		t.Fatal(err)
	}

	p, err := New(asset, overnight())
	if err != nil {
		t.Fatal(err)
	}

	p.ID = 77

	if got := strings.Replace(string(p.Message(1, Form{Bare: true, Nulls: true})), `"chargingProfileId":77`, `"chargingProfileId":null`, 1); got != want.String() {
		t.Errorf("got  %s\nwant %s", got, want.String())
	}

	if got, want := string(p.Message(1, Form{})), `{"connectorId":1,"csChargingProfiles":`+string(p.Message(1, Form{Bare: true}))+`}`; got != want {
		t.Errorf("wrapped: %s", got)
	}

	read, err := Parse(v.Expected.Profile)
	if p.ID = 0; err != nil || !reflect.DeepEqual(read, p) {
		t.Errorf("the worked payload reads as %v, %v, want %v", read, err, p)
	}
}

func TestProfileID(t *testing.T) {
	seen := map[int32]bool{}

	for i := range 10_000 {
		var a flex.AssetID
		a[14], a[15] = byte(i>>8), byte(i)
		id := ProfileID(a)

		if id <= 0 {
			t.Fatalf("id %d", id)
		}

		seen[id] = true
	}

	if len(seen) < 9_990 {
		t.Errorf("10,000 assets share %d ids", len(seen))
	}

	id, again := ProfileID(asset), ProfileID(asset)

	if id != again || id == ProfileID(flex.AssetID{1}) {
		t.Error("an id must be the asset's own, always")
	}
}

// TestMessage_Phases: each period names the phases of its profile, 1 where none are given, and what is read has the same limits.
func TestMessage_Phases(t *testing.T) {
	for phases, want := range map[int]string{
		0: `"limit":7400.0,"numberPhases":1},{"startPeriod":3600,"limit":0.0,"numberPhases":1}]`,
		3: `"limit":7400.0,"numberPhases":3},{"startPeriod":3600,"limit":0.0,"numberPhases":3}]`,
	} {
		p, err := New(asset, []flex.Step{
			step("2026-04-14T22:00:00Z", "2026-04-14T23:00:00Z", 7400),
			step("2026-04-14T23:00:00Z", "2026-04-15T00:00:00Z", 0),
		})
		if err != nil {
			t.Fatal(err)
		}

		p.Phases = phases
		body := p.Message(1, Form{})
		if !strings.Contains(string(body), want) {
			t.Errorf("%d phases: %s lacks %s", phases, body, want)
		}

		read, err := Parse(body)
		if err != nil || !slices.Equal(read.Steps, p.Steps) {
			t.Errorf("%d phases: read as %v: %v", phases, read.Steps, err)
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []flex.Step
		want  string // the periods, or ! and a part of the refusal
	}{
		{"one step", []flex.Step{step("2026-04-14T22:00:00Z", "2026-04-14T22:00:01Z", 7400)},
			`"duration":1,"startSchedule":"2026-04-14T22:00:00Z","chargingRateUnit":"W","chargingSchedulePeriod":[{"startPeriod":0,"limit":7400.0,"numberPhases":1}]`},
		{"another zone", []flex.Step{step("2026-04-14T23:00:00+01:00", "2026-04-14T22:00:01Z", 0)}, `"startSchedule":"2026-04-14T22:00:00Z"`},
		{"beyond any charger", []flex.Step{step("2026-04-14T22:00:00Z", "2026-04-14T23:00:00Z", 200_000)}, `"limit":200000.0`},
		{"a limit within", []flex.Step{
			step("2026-04-14T22:00:00Z", "2026-04-14T23:00:00Z", 3680),
			step("2026-04-14T23:00:00Z", "2026-04-14T23:30:00Z", 3680),
			step("2026-04-14T23:30:00Z", "2026-04-15T00:00:00Z", 0),
		}, `[{"startPeriod":0,"limit":3680.0,"numberPhases":1},{"startPeriod":5400,"limit":0.0,"numberPhases":1}]`},
		{"none", nil, "!at least one"},
		{"empty", []flex.Step{step("2026-04-14T22:00:00Z", "2026-04-14T22:00:00Z", 0)}, "!empty"},
		{"inside a second", []flex.Step{step("2026-04-14T22:00:00.5Z", "2026-04-14T23:00:00Z", 0)}, "!second"},
		{"negative", []flex.Step{step("2026-04-14T22:00:00Z", "2026-04-14T23:00:00Z", -1)}, "!negative"},
		{"a gap", []flex.Step{step("2026-04-14T22:00:00Z", "2026-04-14T23:00:00Z", 0), step("2026-04-14T23:00:01Z", "2026-04-14T23:30:00Z", 0)}, "!step 1"},
		{"as many as may be", many(MaxPeriods), `"startPeriod":1023,`},
		{"too many", many(MaxPeriods + 1), "!1025 periods"},
	} {
		p, err := New(asset, c.steps)

		if part, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want a refusal with %q", c.name, err, part)
			}
		} else if err != nil || !strings.Contains(string(p.Message(1, Form{Bare: true})), c.want) {
			t.Errorf("%s: %v\n%s\nlacks %s", c.name, err, p.Message(1, Form{Bare: true}), c.want)
		}
	}
}

// TestNewDischarging writes what a car gives as limits below zero, where it may take nothing, and reads it again.
func TestNewDischarging(t *testing.T) {
	steps := []flex.Step{
		step("2026-04-14T16:00:00Z", "2026-04-14T23:00:00Z", 0),
		step("2026-04-14T23:00:00Z", "2026-04-15T01:00:00Z", flex.NoLimit),
		step("2026-04-15T01:00:00Z", "2026-04-15T07:00:00Z", 0),
	}

	gives := []flex.Step{
		step("2026-04-14T16:30:00Z", "2026-04-14T18:00:00Z", 5000),
		step("2026-04-14T18:00:00Z", "2026-04-14T18:30:00Z", 3000),
		step("2026-04-15T06:30:00Z", "2026-04-15T07:00:00Z", 1000),
	}

	p, err := NewDischarging(asset, steps, gives)
	if err != nil {
		t.Fatal(err)
	}

	body := p.Message(1, Form{})
	want := `[{"startPeriod":0,"limit":0.0,"numberPhases":1},{"startPeriod":1800,"limit":-5000.0,"numberPhases":1},` +
		`{"startPeriod":7200,"limit":-3000.0,"numberPhases":1},{"startPeriod":9000,"limit":0.0,"numberPhases":1},` +
		`{"startPeriod":25200,"limit":99999.0,"numberPhases":1},{"startPeriod":32400,"limit":0.0,"numberPhases":1},` +
		`{"startPeriod":52200,"limit":-1000.0,"numberPhases":1}]`
	if !strings.Contains(string(body), want) {
		t.Errorf("%s\nlacks %s", body, want)
	}

	read, err := ParseDischarging(body)
	if err != nil || !slices.Equal(read.Steps, p.Steps) {
		t.Errorf("read again: %v\n%v\n%v", err, read.Steps, p.Steps)
	}

	if _, err := Parse(body); err == nil || !strings.Contains(err.Error(), "-5000 W") {
		t.Errorf("read by what charges alone: %v", err)
	}

	gives[1] = step("2026-04-14T22:30:00Z", "2026-04-14T23:30:00Z", 3000)
	if _, err := NewDischarging(asset, steps, gives); err == nil {
		t.Error("it takes and gives at once")
	}
}

func many(n int) (steps []flex.Step) {
	start := at("2026-04-14T22:00:00Z")

	for i := range n {
		from := start.Add(time.Duration(i) * time.Second)
		steps = append(steps, flex.Step{Span: flex.Span{From: from, To: from.Add(time.Second)}, Limit: flex.Watts(i % 2)})
	}

	return steps
}

func TestLimitAt(t *testing.T) {
	p, err := New(asset, overnight())
	if err != nil {
		t.Fatal(err)
	}

	for when, want := range map[string]flex.Watts{
		"2026-04-14T21:59:59Z": flex.NoLimit,
		"2026-04-14T22:00:00Z": 0,
		"2026-04-14T23:29:59Z": 0,
		"2026-04-14T23:30:00Z": flex.NoLimit,
		"2026-04-15T05:30:00Z": 0,
		"2026-04-15T06:59:59Z": 0,
		"2026-04-15T07:00:00Z": flex.NoLimit, // free after the end
	} {
		if got := p.LimitAt(at(when)); got != want {
			t.Errorf("at %s: %d W, want %d", when, got, want)
		}
	}

	if (Profile{}).LimitAt(at("2026-04-14T22:00:00Z")) != flex.NoLimit || !(Profile{}).Span().Empty() {
		t.Error("no profile, no limit")
	}
}

func TestParseRefuses(t *testing.T) {
	p, err := New(asset, overnight())
	if err != nil {
		t.Fatal(err)
	}

	good := string(p.Message(1, Form{Bare: true}))

	for _, c := range []struct{ old, new, want string }{
		{`"duration":32400,`, ``, "never end"},
		{`"duration":32400,`, `"duration":null,`, "never end"},
		{`"duration":32400`, `"duration":0`, "lasts 0 s"},
		{`"duration":32400`, `"duration":2678401`, "lasts 2678401 s"},
		{`"duration":32400`, `"duration":27000`, "after the end"},
		{`"chargingRateUnit":"W"`, `"chargingRateUnit":"A"`, `"A"`},
		{`"Absolute"`, `"Relative"`, `"Relative"`},
		{`"startSchedule":"2026-04-14T22:00:00Z",`, ``, "startSchedule"},
		{`"startSchedule":"2026-04-14T22:00:00Z"`, `"startSchedule":"2026-04-14"`, "reading"},
		{`"startSchedule":"2026`, `"startSchedule":"9999`, "year 9999"},
		{`"startPeriod":0`, `"startPeriod":1`, "not at 0"},
		{`"startPeriod":5400`, `"startPeriod":0`, "out of order"},
		{`"startPeriod":5400,`, ``, "lacks"},
		{`"limit":99999.0,`, ``, "lacks"},
		{`"limit":99999.0`, `"limit":-0.1`, "-1 W"},
		{`"limit":99999.0`, `"limit":1e10`, "1e+10 W"},
		{`"chargingSchedule":`, `"chargingPlan":`, "no chargingSchedule"},
		{good, `[]`, "reading"},
		{good, `null`, "no chargingSchedule"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%s is not in the profile", c.old)
		}

		if _, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want a refusal with %q", c.new, c.old, err, c.want)
		}
	}

	read, err := Parse([]byte(strings.Replace(good, "99999.0", "3680.9", 1)))
	if err != nil || read.Steps[1].Limit != 3680 || read.ID != ProfileID(asset) {
		t.Errorf("%v, %v", read, err)
	}
}

// TestRoundTrip writes any schedule and reads back the same limits at every second.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Unix(rapid.Int64Range(1.6e9, 1.9e9).Draw(t, "start"), 0)
		var steps []flex.Step

		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			to := from.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "seconds")) * time.Second)
			limit := rapid.SampledFrom([]flex.Watts{0, 1, 3680, 7400, flex.NoLimit}).Draw(t, "limit")
			steps = append(steps, flex.Step{Span: flex.Span{From: from, To: to}, Limit: limit})
			from = to
		}

		p, err := New(asset, steps)
		if err != nil {
			t.Fatal(err)
		}

		for i := range p.Steps[1:] {
			if p.Steps[i].Limit == p.Steps[i+1].Limit {
				t.Fatalf("neighbours %d and %d were not merged", i, i+1)
			}
		}

		for _, b := range [][]byte{p.Message(1, Form{Bare: true}), p.Message(0, Form{})} {
			read, err := Parse(b)
			if err != nil || !reflect.DeepEqual(read, p) {
				t.Fatalf("%s reads as %v, %v", b, read, err)
			}

			for _, s := range steps {
				if read.LimitAt(s.From) != s.Limit || read.LimitAt(s.To.Add(-time.Second)) != s.Limit {
					t.Fatalf("%v: not the limit of %v", read, s)
				}
			}

			if end := steps[len(steps)-1].To; read.LimitAt(end) != flex.NoLimit {
				t.Fatal("a profile must end free")
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	p, err := New(asset, overnight())
	if err != nil {
		f.Fatal(err)
	}

	f.Add(p.Message(1, Form{Bare: true}))
	f.Add(p.Message(1, Form{}))
	f.Add([]byte(`{"csChargingProfiles":{}}`))
	f.Add(bytes.Replace(p.Message(1, Form{Bare: true}), []byte("99999.0"), []byte("1e308"), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}

		again, err := Parse(p.Message(3, Form{}))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Fatalf("%s reads back as %v, %v", p.Message(3, Form{}), again, err)
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	p, err := New(asset, overnight())
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		p.Message(1, Form{})
	}
}

// TestMessage_Heat has what steers a heat pump beside its profile, wrapped and bare.
func TestMessage_Heat(t *testing.T) {
	from := time.Date(2026, 1, 13, 17, 0, 0, 0, time.UTC)
	steps := []flex.Step{
		{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Limit: 3000},
		{Span: flex.Span{From: from.Add(time.Hour), To: from.Add(2 * time.Hour)}},
	}

	p, err := New(flex.AssetID{}, steps)
	if err != nil {
		t.Fatal(err)
	}

	for name, h := range map[string]*flex.HeatSignals{
		"sg_ready_state": {Steering: flex.SteerSGReady, Signals: []int{3, 1}},
		"offset_k":       {Steering: flex.SteerOffset, Signals: []int{3, 1}},
	} {
		want := `,"heat":{"steering":"` + string(h.Steering) + `","periods":[{"startPeriod":0,"` + name + `":3},{"startPeriod":3600,"` + name + `":1}]}}`

		for _, bare := range []bool{true, false} {
			plain := string(p.Message(1, Form{Bare: bare}))
			got := string(p.Message(1, Form{Bare: bare, Heat: h}))

			if got != plain[:len(plain)-1]+want {
				t.Error(got)
			}
		}
	}
}
