package ocppserver

import (
	"testing"
	"time"

	"pgregory.net/rapid"

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
	for name, x := range map[string]struct {
		able  ability
		max   flex.Watts
		now   time.Duration
		unit  string
		from  time.Duration
		limit []float64
		phase int
		again time.Duration
	}{
		"as it is":            {ability{StackLevel: 5}, 0, 0, "W", 0, []float64{0, 99999, 0, 3680}, 1, 0},
		"the asset's power":   {ability{}, 7400, 0, "W", 0, []float64{0, 7400, 0, 3680}, 1, 0},
		"three phases":        {ability{}, 11000, 0, "W", 0, []float64{0, 11000, 0, 3680}, 3, 0},
		"amperes":             {ability{AmpereOnly: true}, 7360, 0, "A", 0, []float64{0, 32, 0, 16}, 1, 0},
		"amperes, three":      {ability{AmpereOnly: true}, 11040, 0, "A", 0, []float64{0, 16, 0, 5.3}, 3, 0},
		"what is past":        {ability{}, 0, 90*time.Minute + time.Millisecond, "W", 90 * time.Minute, []float64{99999, 0, 3680}, 1, 0},
		"few periods":         {ability{Periods: 2}, 0, 0, "W", 0, []float64{0, 99999}, 1, time.Hour},
		"one period":          {ability{Periods: 1}, 0, 0, "W", 0, []float64{0}, 1, time.Hour},
		"exactly the periods": {ability{Periods: 4}, 0, 0, "W", 0, []float64{0, 99999, 0, 3680}, 1, 0},
	} {
		f, ok := fit(p, x.able, x.max, night.Add(x.now))
		if !ok || f.Schedule.Unit != x.unit || !f.Schedule.Start.Equal(night.Add(x.from)) || f.StackLevel != x.able.StackLevel || len(f.Schedule.Periods) != len(x.limit) {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		for i, q := range f.Schedule.Periods {
			if q.Limit != x.limit[i] || q.Phases != x.phase {
				t.Errorf("%s: period %d is %+v, want %v", name, i, q, x.limit[i])
			}
		}
		if x.again == 0 != f.Again.IsZero() || x.again != 0 && !f.Again.Equal(night.Add(x.again)) {
			t.Errorf("%s: again at %v", name, f.Again)
		}
	}
	if _, ok := fit(p, ability{}, 0, night.Add(4*time.Hour)); ok {
		t.Error("a profile that has ended fits")
	}
}

// TestFit_InParts: however few periods a charger holds, sending the rest when it is due
// leaves it under the same limit at every second as the whole would.
func TestFit_InParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(rapid.SampledFrom([]flex.Watts{0, 1400, 3680, 7400}), 1, 8).Draw(t, "limits")
		p := profileOf(t, limits...)
		able := ability{Periods: rapid.IntRange(1, 8).Draw(t, "periods")}
		f, ok := fit(p, able, 7400, night)
		for minute := range len(limits) * 60 {
			at := night.Add(time.Duration(minute) * time.Minute)
			if !f.Again.IsZero() && !at.Before(f.Again) {
				f, ok = fit(p, able, 7400, at)
			}
			if !ok || len(f.Schedule.Periods) > able.Periods {
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
	f, _ := fit(profileOf(t, 0, 7400, 0), ability{}, 7400, night)
	of := func(limits ...float64) compositeSchedule {
		c := compositeSchedule{Status: accepted, Start: stamp{night}, Schedule: &schedule{Duration: 3 * 3600, Unit: "W"}}
		for i, l := range limits {
			c.Schedule.Periods = append(c.Schedule.Periods, period{Start: i * 3600, Limit: l})
		}
		return c
	}
	short := of(0)
	short.Schedule.Duration = 3600
	amperes := of(0, 32, 0)
	amperes.Schedule.Unit = "A"
	for name, x := range map[string]struct {
		c    compositeSchedule
		want inForce
	}{
		"the same":          {of(0, 7400, 0), obeyed},
		"lower by a rule":   {of(0, 3680, 0), obeyed},
		"does not pause":    {of(7400, 7400, 7400), contradicts},
		"does not charge":   {of(0, 0, 0), contradicts},
		"more than allowed": {of(0, 11000, 0), contradicts},
		"the first hour":    {short, obeyed},
		"another unit":      {amperes, unsure},
		"refused":           {compositeSchedule{Status: rejected}, unsure},
		"empty":             {compositeSchedule{Status: accepted, Schedule: &schedule{Unit: "W"}}, unsure},
	} {
		if got := compare(f, x.c); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}

func TestAbilityOf_OddValues(t *testing.T) {
	c := configuration{}
	for k, v := range map[string]string{keyStackLevel: " 3 ", keyPeriods: "-1", keyUnits: "Current"} {
		c.Known = append(c.Known, struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		}{k, v})
	}
	if got := abilityOf(c); got != (ability{StackLevel: 3, AmpereOnly: true}) {
		t.Errorf("got %+v", got)
	}
}
