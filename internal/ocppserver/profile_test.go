package ocppserver

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

var night = time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)

// profileOf makes a profile of steps of an hour each, from night on.
func profileOf(t interface{ Fatal(...any) }, limits ...flex.Watts) ocpp.Profile {
	var steps []flex.Step
	for i, l := range limits {
		from := night.Add(time.Duration(i) * time.Hour)
		steps = append(steps, flex.Step{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Limit: l})
	}
	p, err := ocpp.New(flex.AssetID{1}, steps)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFit(t *testing.T) {
	p := profileOf(t, 0, flex.NoLimit, 0, 3680)
	watts, amperes, whole := form{Unit: unitWatt, Level: 5}, form{Unit: unitAmpere}, form{Unit: unitAmpere, Whole: true}

	for name, x := range map[string]struct {
		form    form
		periods int
		power   flex.Watts
		now     time.Duration
		from    time.Duration
		limit   []float64
		phase   int
		again   time.Duration
	}{
		"as it is":               {watts, 0, 0, 0, -time.Minute, []float64{0, 99999, 0, 3680}, 1, 0},
		"before it begins":       {watts, 0, 0, -time.Hour, 0, []float64{0, 99999, 0, 3680}, 1, 0},
		"the asset's power":      {watts, 0, 7400, 0, -time.Minute, []float64{0, 7400, 0, 3680}, 1, 0},
		"three phases":           {watts, 0, 11000, 0, -time.Minute, []float64{0, 11000, 0, 0}, 3, 0},
		"amperes":                {amperes, 0, 7360, 0, -time.Minute, []float64{0, 32, 0, 16}, 1, 0},
		"amperes, a little more": {amperes, 0, 7400, 0, -time.Minute, []float64{0, 32, 0, 16}, 1, 0},
		"amperes, three":         {amperes, 0, 11040, 0, -time.Minute, []float64{0, 16, 0, 0}, 3, 0},
		"amperes, 11 kW":         {amperes, 0, 11000, 0, -time.Minute, []float64{0, 15.9, 0, 0}, 3, 0},
		"whole, 11 kW":           {whole, 0, 11000, 0, -time.Minute, []float64{0, 16, 0, 0}, 3, 0},
		"whole, 7 kW":            {whole, 0, 7000, 0, -time.Minute, []float64{0, 30, 0, 16}, 1, 0},
		"what is past":           {watts, 0, 0, 90*time.Minute + time.Millisecond, 89 * time.Minute, []float64{99999, 0, 3680}, 1, 0},
		"few periods":            {watts, 2, 0, 0, -time.Minute, []float64{0, 99999}, 1, time.Hour},
		"one period":             {watts, 1, 0, 0, -time.Minute, []float64{0}, 1, time.Hour},
		"exactly the periods":    {watts, 4, 0, 0, -time.Minute, []float64{0, 99999, 0, 3680}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, ok := orderFor(p, x.periods, x.power, night.Add(x.now)).fit(x.form)

			if !ok || f.Schedule.Unit != x.form.Unit || !f.Schedule.Start.Equal(night.Add(x.from)) || f.StackLevel != x.form.Level || len(f.Schedule.Periods) != len(x.limit) {
				t.Fatalf("%+v", f)
			}

			for i, q := range f.Schedule.Periods {
				if q.Limit != x.limit[i] || q.Phases != x.phase {
					t.Errorf("period %d is %+v, want %v", i, q, x.limit[i])
				}
			}

			if x.again == 0 != f.Again.IsZero() || x.again != 0 && !f.Again.Equal(night.Add(x.again)) {
				t.Errorf("again at %v", f.Again)
			}
		})
	}

	if _, ok := orderFor(p, 0, 0, night.Add(4*time.Hour)).fit(watts); ok {
		t.Error("a profile that has ended fits")
	}
}

// TestForm_Limit: whatever the plan, no limit lies between 0 and 6 A a phase, or above the
// charger's own.
func TestForm_Limit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		power := flex.Watts(rapid.IntRange(1380, 22080).Draw(t, "power"))
		watts := flex.Watts(rapid.IntRange(0, 99999).Draw(t, "watts"))
		f := form{Unit: rapid.SampledFrom([]string{unitWatt, unitAmpere}).Draw(t, "unit"), Whole: rapid.Bool().Draw(t, "whole")}
		phases := 1
		if power > flex.SinglePhaseMax {
			phases = 3
		}

		limit, _ := f.limit(watts, power, phases)
		least, most := leastAmperes*0.95, math.Round(float64(power)/float64(volts*phases))+0.01
		if f.Unit == unitWatt {
			least *= float64(volts * phases)
			most = float64(power)
		}
		if limit > 0 && limit < least || limit > most || f.Whole && f.Unit == unitAmpere && limit != math.Trunc(limit) {
			t.Fatalf("%d W of %d W on %d phases is %v %+v", watts, power, phases, limit, f)
		}
	})
}

// TestFit_InParts: however few periods a charger holds, sending the rest when it is due
// leaves it under the same limit at every second as the whole would.
func TestFit_InParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(rapid.SampledFrom([]flex.Watts{0, 1400, 3680, 7400}), 1, 8).Draw(t, "limits")
		p := profileOf(t, limits...)
		periods := rapid.IntRange(1, 8).Draw(t, "periods")
		way := form{Unit: unitWatt}
		f, ok := orderFor(p, periods, 7400, night).fit(way)
		for minute := range len(limits) * 60 {
			at := night.Add(time.Duration(minute) * time.Minute)
			if !f.Again.IsZero() && !at.Before(f.Again) {
				f, ok = orderFor(p, periods, 7400, at).fit(way)
			}

			if !ok || len(f.Schedule.Periods) > periods {
				t.Fatalf("at %v: %v, %d periods", at, ok, len(f.Schedule.Periods))
			}

			second := int(at.Sub(f.Schedule.Start.Time) / time.Second)
			got, _ := f.Schedule.limitAt(second)
			if want := float64(p.LimitAt(at)); second >= f.Schedule.Duration || got != want {
				t.Fatalf("at %v the charger is under %v, want %v (%+v)", at, got, want, f.Schedule)
			}
		}
	})
}

func TestCompare(t *testing.T) {
	p := profileOf(t, 0, 7400, 0)
	of := func(limit float64) compositeSchedule {
		return compositeSchedule{Status: accepted, Schedule: &schedule{Duration: 60, Unit: unitWatt, Periods: []period{{Limit: limit}}}}
	}

	amperes := of(32)
	amperes.Schedule.Unit = unitAmpere

	for name, x := range map[string]struct {
		c    compositeSchedule
		at   time.Duration
		want inForce
	}{
		"pauses":                     {of(0), 0, obeyed},
		"does not pause":             {of(7400), 0, contradicts},
		"no limit in a pause":        {of(-1), 0, contradicts},
		"charges":                    {of(7400), time.Hour, obeyed},
		"lower by a rule":            {of(3680), time.Hour, obeyed},
		"does not charge":            {of(0), time.Hour, contradicts},
		"more than the car is given": {of(11000), time.Hour, unsure},
		"no limit":                   {of(-1), time.Hour, unsure},
		"another unit":               {amperes, time.Hour, unsure},
		"refused":                    {compositeSchedule{Status: rejected}, 0, unsure},
		"empty":                      {compositeSchedule{Status: accepted, Schedule: &schedule{Unit: unitWatt}}, 0, unsure},
		"no schedule":                {compositeSchedule{Status: accepted}, 0, unsure},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := orderFor(p, 0, 7400, night.Add(x.at)).fit(form{Unit: unitWatt})
			if got := compare(f, x.c, night.Add(x.at)); got != x.want {
				t.Errorf("%v, want %v", got, x.want)
			}
		})
	}
}

func TestCapabilitiesOf(t *testing.T) {
	for name, x := range map[string]struct {
		level, periods, units string
		want                  capabilities
	}{
		"nothing":        {"", "", "", capabilities{Levels: []int{0, 1}, Units: []string{unitAmpere, unitWatt}}},
		"odd values":     {" 3 ", "-1", "Current", capabilities{Levels: []int{3, 2, 0}, Units: []string{unitAmpere, unitWatt}}},
		"both units":     {"0", "24", "Current,Power", capabilities{Levels: []int{0}, Periods: 24, Units: []string{unitWatt, unitAmpere}}},
		"one letter":     {"1", "5", "A", capabilities{Levels: []int{1, 0}, Periods: 5, Units: []string{unitAmpere, unitWatt}}},
		"another letter": {"1", "5", "W", capabilities{Levels: []int{1, 0}, Periods: 5, Units: []string{unitWatt, unitAmpere}}},
		"a long name":    {"1", "5", "Amps", capabilities{Levels: []int{1, 0}, Periods: 5, Units: []string{unitAmpere, unitWatt}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := capabilitiesOf(configuration{Known: []configurationKey{
				{Key: keyStackLevel, Value: x.level}, {Key: keyPeriods, Value: x.periods}, {Key: keyUnits, Value: x.units},
			}})

			if !reflect.DeepEqual(got, x.want) {
				t.Errorf("got %+v, want %+v", got, x.want)
			}
		})
	}
}

// TestFit_Phases: a charger's line says how many phases it has; one that can switch is given on
// one phase what is too little for three, and no other less than 6 A a phase.
func TestFit_Phases(t *testing.T) {
	p := profileOf(t, 3000, 5000, flex.NoLimit)
	for name, x := range map[string]struct {
		options  chargerOptions
		learned  int
		given    *int
		power    flex.Watts
		switches bool
		want     []period
	}{
		"by its power":        {power: 11_000, want: []period{{Limit: 0, Phases: 3}, {Limit: 7.2, Phases: 3}, {Limit: 15.9, Phases: 3}}},
		"switches":            {power: 11_000, switches: true, want: []period{{Limit: 13, Phases: 1}, {Limit: 7.2, Phases: 3}, {Limit: 15.9, Phases: 3}}},
		"three of 7.4 kW":     {options: chargerOptions{phases: 3}, power: 7400, want: []period{{Limit: 0, Phases: 3}, {Limit: 7.2, Phases: 3}, {Limit: 10.7, Phases: 3}}},
		"learned":             {learned: 3, power: 7400, want: []period{{Limit: 0, Phases: 3}, {Limit: 7.2, Phases: 3}, {Limit: 10.7, Phases: 3}}},
		"as its asset says":   {given: new(3), power: 7400, want: []period{{Limit: 0, Phases: 3}, {Limit: 7.2, Phases: 3}, {Limit: 10.7, Phases: 3}}},
		"its line goes first": {options: chargerOptions{phases: 1}, learned: 3, power: 7400, want: []period{{Limit: 13, Phases: 1}, {Limit: 21.7, Phases: 1}, {Limit: 32, Phases: 1}}},
		"one phase of 9.2 kW": {options: chargerOptions{phases: 1}, power: 9200, want: []period{{Limit: 13, Phases: 1}, {Limit: 21.7, Phases: 1}, {Limit: 40, Phases: 1}}},
	} {
		o := orderFor(p, 0, x.power, night)

		o.phases = phasesOf(x.options, x.learned, assetOf(x.power, x.given))
		o.capabilities.Switches = x.switches
		f, ok := o.fit(form{Unit: unitAmpere})
		if !ok || len(f.Schedule.Periods) != len(x.want) {
			t.Fatalf("%s: %+v", name, f)
		}

		for i, q := range f.Schedule.Periods {
			if q.Limit != x.want[i].Limit || q.Phases != x.want[i].Phases {
				t.Errorf("%s: period %d is %+v, want %+v", name, i, q, x.want[i])
			}
		}
	}
}

// assetOf is an asset of some power, with the phases that it was given, if any.
func assetOf(power flex.Watts, phases *int) client.AssetResponse {
	return client.AssetResponse{Properties: &client.AssetProperties{PowerKW: new(power.KW()), Phases: phases}}
}

// orderFor is an order of a profile to a charger of some power.
func orderFor(p ocpp.Profile, periods int, power flex.Watts, now time.Time) order {
	return order{p: &pushTarget{profile: p}, steps: p.Steps, capabilities: capabilities{Periods: periods}, power: power, phases: phasesOf(chargerOptions{}, 0, assetOf(power, nil)), now: now}
}

// TestDrawsOnPhases: a car shows more than one phase only if it draws on two at the charger's plug.
func TestDrawsOnPhases(t *testing.T) {
	on := func(measurand, location, unit string, values ...float64) (all []sampled) {
		for i, v := range values {
			all = append(all, sampled{Value: decimal{value: v}, Measurand: measurand, Location: location, Unit: unit, Phase: []string{"L1", "L2-N", "L3"}[i]})
		}
		return all
	}

	const current, drawn = "Current.Import", "Power.Active.Import"
	for name, x := range map[string]struct {
		values []sampled
		want   bool
	}{
		"three currents":          {on(current, "", "A", 10, 10, 10), true},
		"two":                     {on(current, "Outlet", "", 10, 10, 0), true},
		"powers":                  {on(drawn, "", "kW", 2, 2, 2), true},
		"one phase":               {on(current, "", "A", 16, 0, 0), false},
		"one phase, wired to L2":  {on(current, "", "A", 0, 16, 0.2), false},
		"the charger itself":      {on(drawn, "", "W", 3, 2, 2), false},
		"the home":                {on(current, "Inlet", "A", 10, 10, 10), false},
		"energy":                  {on("Energy.Active.Import.Register", "", "Wh", 1000, 1000, 1000), false},
		"between phases":          {[]sampled{{Value: decimal{value: 9}, Measurand: current, Phase: "L1-L2"}, {Value: decimal{value: 9}, Measurand: current, Phase: "L2-L3"}}, false},
		"one phase, twice":        {append(on(current, "", "A", 16), on(current, "", "A", 16)...), false},
		"a current and its power": {append(on(current, "", "A", 16), on(drawn, "", "W", 3600)...), false},
		"nothing":                 {nil, false},
	} {
		if got := drawsOnPhases(x.values); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestForm_Setpoint: what a car is to give is written in the form's unit, never as more than
// that, and is a pause where the form has no setpoints.
func TestForm_Setpoint(t *testing.T) {
	for name, x := range map[string]struct {
		form   form
		phases int
		want   float64
	}{
		"no setpoints":   {form{Unit: unitWatt}, 1, 0},
		"watts":          {form{Unit: unitWatt, Setpoints: true}, 1, -5000},
		"amperes":        {form{Unit: unitAmpere, Setpoints: true}, 1, -21.7},
		"whole amperes":  {form{Unit: unitAmpere, Whole: true, Setpoints: true}, 1, -21},
		"amperes, three": {form{Unit: unitAmpere, Setpoints: true}, 3, -7.2},
	} {
		t.Run(name, func(t *testing.T) {
			if got, low := x.form.limit(-5000, 7400, x.phases); got != x.want || low {
				t.Errorf("it is %v, %v, and not %v", got, low, x.want)
			}
		})
	}
}

// TestCompare_Setpoint: a station that names a setpoint below zero gives, one that names a
// limit above it does not, and one that pauses follows another rule.
func TestCompare_Setpoint(t *testing.T) {
	sent := profileFit{steps: []flex.Step{{Span: flex.Span{From: night, To: night.Add(time.Hour)}, Limit: -5000}}}
	sent.Schedule = schedule{Unit: unitWatt, Periods: []period{{Limit: -5000}}}
	for got, want := range map[float64]inForce{-5000: obeyed, -3000: obeyed, 0: unsure, 7400: contradicts} {
		var station stationComposite
		answer := fmt.Sprintf(`{"status":"Accepted","schedule":{"chargingRateUnit":"W","chargingSchedulePeriod":[{"startPeriod":0,"setpoint":%v}]}}`, got)
		if err := json.Unmarshal([]byte(answer), &station); err != nil {
			t.Fatal(err)
		}
		if found := compare(sent, station.plain(), night); found != want {
			t.Errorf("a station that names %v W: %v, not %v", got, found, want)
		}
	}
}

// TestPeriod_Watts: what a platform allows. Some write -1 for no limit; what is else below
// zero has the car give, and flexd is to add nothing to it.
func TestPeriod_Watts(t *testing.T) {
	setpoint := -3000.0
	for name, x := range map[string]struct {
		period stationPeriod
		want   flex.Watts
	}{
		"a limit":     {stationPeriod{Limit: new(3000.0)}, 3000},
		"no limit":    {stationPeriod{}, math.MaxInt32},
		"-1":          {stationPeriod{Limit: new(-1.0)}, math.MaxInt32},
		"it gives":    {stationPeriod{Setpoint: &setpoint}, 0},
		"gives 1 W":   {stationPeriod{Setpoint: new(-1.0)}, 0},
		"-1, charges": {stationPeriod{Limit: new(-1.0), Setpoint: new(2000.0)}, 2000},
		"both":        {stationPeriod{Limit: new(7400.0), Setpoint: &setpoint}, 0},
		"it charges":  {stationPeriod{Limit: new(7400.0), Setpoint: new(2000.0)}, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			plain := plainPeriods([]stationPeriod{x.period})
			if got := plain[0].watts(unitWatt, 1); got != x.want {
				t.Errorf("%v W, not %v", got, x.want)
			}
		})
	}
}

// TestQueuedMessage_Version: a message that an older bridge kept has the version that it came in.
func TestQueuedMessage_Version(t *testing.T) {
	var now queuedMessage
	now.setVersion(subprotocol21)
	for want, e := range map[string]*queuedMessage{
		subprotocol: {}, subprotocol201: {Station: true}, subprotocol21: &now,
	} {
		if got := e.version(); got != want {
			t.Errorf("%+v is of %s, not %s", e, got, want)
		}
	}
}

// TestFailed_Setpoints: a charger that does not answer a plan with setpoints is sent the plan
// without, and has failed when it does not answer that either.
func TestFailed_Setpoints(t *testing.T) {
	p := &pushTarget{}
	n := &connector{want: p}
	c := &charger{b: New(Settings{Log: slog.New(slog.DiscardHandler)}), connectors: map[int]*connector{1: n}}
	try := func(gives bool) (err error) {
		for range triesMax {
			err = c.noteFailed(n, order{n: n, p: p, discharges: gives}, errLinkLost)
		}
		return err
	}

	if err := try(true); err == nil || !n.refusesDischarge || p.isOver || p.tries != 0 {
		t.Errorf("after setpoints: %v, %+v", err, p)
	}
	if err := try(false); err != nil || !p.isOver {
		t.Errorf("after a plan without: %v, %+v", err, p)
	}
}
