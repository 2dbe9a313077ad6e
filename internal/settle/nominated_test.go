package settle_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

func TestStay_Shown(t *testing.T) {
	from := time.Date(2026, 1, 14, 18, 0, 0, 0, time.UTC)
	wh := func(es ...flex.WattHours) []flex.WattHours { return es }

	for _, c := range []struct {
		name           string
		hours          float64
		plan           []flex.WattHours
		drawn, fastest flex.WattHours
		want           []flex.WattHours
	}{
		{"a car that took all of its plan, later", 2, wh(3700, 3700, 2600), 10_000, 3700, wh(3700, 3700, 2600, 0)},
		{"nothing is shown", 2, wh(3700, 3700, 2600), 0, 0, wh(0, 0, 0, 0)},
		{"nearly full", 2, wh(3700, 3700, 2600), 4000, 3700, wh(3700, 300, 0, 0)},
		{"a car half as fast", 2.5, wh(3700, 3700), 7400, 1850, wh(1850, 1850, 1850, 1850, 0)},
		{"it left before its slow charge would have ended", 1.5, wh(3700, 3700), 7400, 1850, wh(1850, 1850, 1850)},
		{"it took more than its plan", 1.5, wh(3700), 7400, 3700, wh(3700, 0, 0)},
		{"its rate is not known", 1, wh(3700, 3700), 7000, 0, wh(3700, 3300)},
		{"the plan begins later", 1.5, wh(0, 0, 3700), 3700, 3700, wh(0, 0, 3700)},
		{"no plan", 1, nil, 3700, 3700, wh(0, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := settle.Stay{Span: flex.Span{From: from, To: from.Add(time.Duration(c.hours * float64(time.Hour)))}, Plan: c.plan, Drawn: c.drawn, Fastest: c.fastest}

			if got := s.SupportedPlan(); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestStay_PartsOfHalfHours(t *testing.T) {
	from := time.Date(2026, 1, 14, 18, 20, 0, 0, time.UTC)
	s := settle.Stay{Span: flex.Span{From: from, To: from.Add(time.Hour)}, Plan: []flex.WattHours{1233, 3700, 2467}, Drawn: 7400, Fastest: 3600}
	if got := s.SupportedPlan(); !slices.Equal(got, []flex.WattHours{1200, 3600, 2400}) {
		t.Errorf("shown %v", got)
	}
	if got := s.PossibleEnergy(7400); !slices.Equal(got, []flex.WattHours{1233, 3700, 2466}) {
		t.Errorf("could %v", got)
	}
}

func TestStay_Evidence(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	s := settle.Stay{Span: flex.Span{From: day.Period(36).Start().Add(time.Minute), To: day.Period(39).End()}}
	own := settle.MeteredDay{Day: day}
	own.Set(35, 9000) // before it was plugged in
	own.Set(36, 0)
	own.Set(38, 3000)
	own.Set(39, 1000)
	if missing := s.UseMeter([]settle.MeteredDay{own}); missing != 1 || s.Drawn != 4000 || s.Fastest != 3000 {
		t.Errorf("%d missing, drawn %d, fastest %d", missing, s.Drawn, s.Fastest)
	}

	level := func(n int, pct float64) flex.Reading {
		at := day.Period(n).Start()
		return flex.Reading{Label: flex.BatteryStateOfCharge, Span: flex.Span{From: at, To: at}, Value: flex.Micro(pct * 1e6)}
	}

	for _, c := range []struct {
		name   string
		levels []flex.Reading
		want   flex.WattHours
	}{
		{"it rose by a tenth", []flex.Reading{level(37, 40), level(38, 45), level(39, 50)}, 6000},
		{"it fell on the way here and rose", []flex.Reading{level(37, 50), level(38, 40), level(39, 45)}, 3000},
		{"full at its limit", []flex.Reading{level(37, 80), level(39, 80)}, 0},
		{"before it was plugged in", []flex.Reading{level(30, 10), level(37, 80)}, 0},
		{"none", nil, 0},
	} {
		if s.UseStateOfCharge(c.levels, 60_000); s.Drawn != c.want || s.Fastest != 0 {
			t.Errorf("%s: drawn %d, want %d", c.name, s.Drawn, c.want)
		}
	}
}

func TestWithout(t *testing.T) {
	day := flex.Day{Year: 2026, Month: time.January, Dom: 14}
	set := func(es map[int]flex.WattHours) settle.MeteredDay {
		m := settle.MeteredDay{Day: day}
		for n, e := range es {
			m.Set(n, e)
		}
		return m
	}

	boundary := []settle.MeteredDay{set(map[int]flex.WattHours{1: 4000, 2: 300, 3: -500, 4: 100})}
	car := []settle.MeteredDay{set(map[int]flex.WattHours{1: 3700, 2: 0, 3: 200})}
	got := settle.Without(boundary, car)
	want := []settle.MeteredDay{set(map[int]flex.WattHours{1: 300, 2: 300, 3: -700})}
	if len(got) != 1 || got[0].Known != want[0].Known || !slices.Equal(got[0].Wh, want[0].Wh) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if none := settle.Without(boundary, car, nil); len(none) != 0 {
		t.Errorf("with an asset of which nothing is known: %+v", none)
	}
}
