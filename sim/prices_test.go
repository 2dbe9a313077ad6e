package sim

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ocpp"
)

func TestPricesAround_WholeDays(t *testing.T) {
	for _, at := range []string{"2026-11-20", "2026-03-29", "2026-10-25", "2027-01-01", "2026-12-31"} {
		d, err := flex.ParseDay(at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := PricesAround(d, d.Add(1))
		if err != nil {
			t.Fatal(err)
		}
		if want := d.Periods() + d.Add(1).Periods(); len(got) != want {
			t.Errorf("%s: %d prices, want %d", at, len(got), want)
		}

		for i, p := range got {
			if !p.Known || p.Period != d.Period(1).Add(i) {
				t.Errorf("%s: price %d is %+v", at, i, p)
			}
		}
		if twin := twin2018(d); twin.Weekday() != d.Weekday() || twin.Year != 2018 {
			t.Errorf("%s: its twin is %v", at, twin)
		}
	}
}

func TestCharger_ObeysItsProfile(t *testing.T) {
	at := time.Date(2026, 4, 14, 22, 0, 0, 0, time.UTC)
	steps := []flex.Step{
		{Span: flex.Span{From: at, To: at.Add(90 * time.Minute)}, Limit: 0},
		{Span: flex.Span{From: at.Add(90 * time.Minute), To: at.Add(150 * time.Minute)}, Limit: flex.NoLimit},
		{Span: flex.Span{From: at.Add(150 * time.Minute), To: at.Add(4 * time.Hour)}, Limit: 2000},
	}
	p, err := ocpp.New(flex.AssetID{1}, steps)
	if err != nil {
		t.Fatal(err)
	}
	c := &Charger{ExternalID: "leaf", Power: 7400}
	c.Plug(&Car{Rate: 11000, Room: 50_000}, at)
	if err := c.Receive(p.Message(1, ocpp.Form{})); err != nil {
		t.Fatal(err)
	}

	flat := func(flex.Period) flex.Price { return 100e6 }
	c.RunTo(at.Add(3*time.Hour), flat)
	if got := c.Car().Got; got != 7400+1000 {
		t.Errorf("drew %v Wh, want an hour at 7.4 kW and half an hour at 2 kW", got)
	}
	if got := c.Meter(at.Add(3 * time.Hour)); len(got) != 6 || got[2].Energy != 0 || got[3].Energy != 3700 || got[5].Energy != 1000 {
		t.Errorf("metered %v", got)
	}
	c.RunTo(at.Add(5*time.Hour), flat) // the profile ends at four hours: then the car takes what it likes
	if got := c.Car().Got; got != 8400+2000+7400 {
		t.Errorf("drew %v Wh in all", got)
	}
}

func TestInWords(t *testing.T) {
	at := time.Date(2026, 7, 1, 21, 0, 0, 0, time.UTC)
	span := func(from, to int) flex.Span {
		return flex.Span{From: at.Add(time.Duration(from) * time.Minute), To: at.Add(time.Duration(to) * time.Minute)}
	}
	for want, steps := range map[string][]flex.Step{
		"no charging until 23:00":                   {{Span: span(0, 60)}},
		"charge 22:30-23:00, 23:30-00:00 at 3.7 kW": {{Span: span(0, 30)}, {Span: span(30, 60), Limit: flex.NoLimit}, {Span: span(60, 90)}, {Span: span(90, 120), Limit: 3700}},
	} {
		if got := InWords(ocpp.Profile{Steps: steps}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
