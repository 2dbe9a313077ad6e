package grid

import (
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/test/draws"
	_ "flexd/test/seed"
)

// TestMain tries every property 2,000 times, unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	draws.SetDefault("200", "2000")
	os.Exit(m.Run())
}

var evening = time.Date(2026, 1, 15, 18, 10, 0, 0, time.UTC)

func plugged(t *rapid.T) *store.Plugged {
	minutes := func(low, high int, name string) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, name)) * time.Minute
	}

	p := &store.Plugged{
		Planned: true, Power: rapid.SampledFrom([]flex.Watts{3680, 7001, 7400}).Draw(t, "power"),
		ReadyBy: evening.Add(minutes(1, 36*60, "ready")), Delivered: flex.WattHours(rapid.IntRange(0, 3000).Draw(t, "delivered")),
		Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	}

	if rapid.Bool().Draw(t, "two rates") {
		p.Tariff.Type = flex.DualRate
		p.Tariff.OffPeak = rapid.SampledFrom([]string{"00:00-05:00", "23:30-05:30", "13:00-16:00, 02:00-05:00"}).Draw(t, "off-peak")
	}

	at := evening.Add(-minutes(0, 120, "made ago"))
	for !at.After(p.ReadyBy) {
		to := at.Add(minutes(1, 300, "step"))
		limit := rapid.SampledFrom([]flex.Watts{0, 0, 1380, flex.NoLimit}).Draw(t, "limit")
		p.Steps = append(p.Steps, flex.Step{Span: flex.Span{From: at, To: to}, Limit: limit})
		at = to
	}

	last := &p.Steps[len(p.Steps)-1]
	last.To = p.ReadyBy
	if !last.From.Before(last.To) {
		p.Steps = p.Steps[:len(p.Steps)-1]
	}

	if rapid.IntRange(0, 3).Draw(t, "charge now") == 0 && len(p.Steps) > 0 && p.Steps[0].Limit > 0 {
		p.ChargeNow = p.Steps[0].Span
	}

	return p
}

// total is what a schedule lets an asset draw by ready-by, with what was delivered before.
func total(p *store.Plugged) flex.WattHours {
	sum := int64(0)
	for _, s := range p.Steps {
		sum += int64(min(s.Limit, p.Power)) * int64(s.Len()/time.Second)
	}
	return p.Delivered + flex.WattHours(sum/3600)
}

// TestEnvelope_Plan shows that a plan that meets its needs lies within the bounds of every
// window, whatever it is, also where nobody may be called on a day: then the plan is all that its windows can have.
func TestEnvelope_Plan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gather(evening)
		today := flex.DayAt(evening).Span()
		day := secondSpan{today.From.Unix(), today.To.Unix()}
		spent := rapid.Bool().Draw(t, "no call left today")
		if spent {
			g.spent = []spentDay{{day, map[flex.AssetID]bool{{}: true}}}
		}

		for range rapid.IntRange(0, 3).Draw(t, "cars") {
			p := plugged(t)
			p.Need = flex.WattHours(rapid.Int64Range(0, int64(total(p))).Draw(t, "need"))
			if len(p.Steps) > 0 {
				g.add(p)
			}
		}

		e := g.envelope(flex.Scope{})
		if len(e.HalfHours) != HalfHours || len(e.Windows) != HalfHours*(HalfHours+1)/2 || e.Short != 0 {
			t.Fatalf("%d half-hours, %d windows, %d short", len(e.HalfHours), len(e.Windows), e.Short)
		}

		if err := outside(e); err != nil {
			t.Fatal(err)
		}

		for _, w := range e.Windows {
			still := w.Least == w.Planned && w.Most == w.Planned
			if within := w.To.Unix() <= day.to; spent && within && !still {
				t.Fatalf("%v: %d to %d, and %d by plan", w.Span, w.Least, w.Most, w.Planned)
			}
		}
	})
}

// outside names a window in which the plan is not within the bounds.
func outside(e *Envelope) error {
	for _, w := range e.Windows {
		if w.Planned < w.Least || w.Planned > w.Most {
			return fmt.Errorf("%v: %d by plan, not %d to %d", w.Span, w.Planned, w.Least, w.Most)
		}
	}
	return nil
}

// TestEnvelope_PlanPlantedFault shows that a plan that misses its need is found outside.
func TestEnvelope_PlanPlantedFault(t *testing.T) {
	hour := flex.Span{From: evening, To: evening.Add(time.Hour)}
	g := gather(evening)
	g.add(&store.Plugged{
		Planned: true, Power: 7400, Need: 7400 + 1, ReadyBy: hour.To.Add(time.Hour), Steps: []flex.Step{{Span: hour, Limit: flex.NoLimit}},
		Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	})
	if outside(g.envelope(flex.Scope{})) == nil {
		t.Error("a plan that misses its need by a watt-hour is within the bounds")
	}
}

// TestEnvelope_Night has a car of 7.4 kW that may charge from 00:00 to 05:00 and needs 14.8 kWh
// by 07:00, planned from 00:00 on: two hours of five.
func TestEnvelope_Night(t *testing.T) {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	car := &store.Plugged{
		Planned: true, Power: 7400, Need: 14_800, ReadyBy: midnight.Add(7 * time.Hour),
		Steps: []flex.Step{
			{Span: flex.Span{From: evening, To: midnight}},
			{Span: flex.Span{From: midnight, To: midnight.Add(2 * time.Hour)}, Limit: flex.NoLimit},
			{Span: flex.Span{From: midnight.Add(2 * time.Hour), To: midnight.Add(7 * time.Hour)}},
		},
		Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
	}

	g := gather(evening)
	g.add(car)
	g.add(&store.Plugged{})
	e := g.envelope(flex.Scope{})
	if e.Controlled != 1 || e.Uncontrolled != 1 || e.Short != 0 {
		t.Errorf("%d controlled, %d not, %d short", e.Controlled, e.Uncontrolled, e.Short)
	}

	bounds := func(from, to time.Duration) [3]flex.WattHours {
		for _, w := range e.Windows {
			if w.From.Equal(midnight.Add(from)) && w.To.Equal(midnight.Add(to)) {
				return [3]flex.WattHours{w.Planned, w.Least, w.Most}
			}
		}

		t.Fatalf("no window from %v to %v", from, to)

		return [3]flex.WattHours{}
	}

	for _, c := range []struct {
		from, to time.Duration
		want     [3]flex.WattHours
	}{
		{-time.Hour, 0, [3]flex.WattHours{0, 0, 0}},
		{0, 30 * time.Minute, [3]flex.WattHours{3700, 0, 3700}},
		{0, 4 * time.Hour, [3]flex.WattHours{14_800, 7400, 14_800}}, // one hour is left for the rest
		{3 * time.Hour, 5 * time.Hour, [3]flex.WattHours{0, 0, 14_800}},
		{0, 5 * time.Hour, [3]flex.WattHours{14_800, 14_800, 14_800}},
	} {
		if got := bounds(c.from, c.to); got != c.want {
			t.Errorf("from %v to %v: %v, not %v", c.from, c.to, got, c.want)
		}
	}
}

// TestEnvelope_ChargeNow keeps charge-now where it is, and takes it off the need.
func TestEnvelope_ChargeNow(t *testing.T) {
	hour := flex.Span{From: evening, To: evening.Add(time.Hour)}
	g := gather(evening)
	g.add(&store.Plugged{
		Planned: true, Power: 7400, Need: 7400 + 3700, ReadyBy: evening.Add(4 * time.Hour), ChargeNow: hour,
		Steps:  []flex.Step{{Span: hour, Limit: flex.NoLimit}, {Span: flex.Span{From: hour.To, To: hour.To.Add(30 * time.Minute)}, Limit: flex.NoLimit}},
		Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	})

	e := g.envelope(flex.Scope{})
	first := e.HalfHours[0] // 20 minutes of it are left
	if want := flex.WattHours(2467); first.Planned != want || first.Least != want || first.Most != want {
		t.Errorf("charge-now was moved: %+v", first)
	}

	whole := e.Windows[HalfHours-1]
	if whole.Least != 11_100 || whole.Most != 11_100 {
		t.Errorf("%d to %d Wh in all, not 11100", whole.Least, whole.Most)
	}
}

// TestEnvelope_Short has a car that needs more than the time gives: it draws all that it can.
func TestEnvelope_Short(t *testing.T) {
	hour := flex.Span{From: evening, To: evening.Add(time.Hour)}
	g := gather(evening)
	g.add(&store.Plugged{
		Planned: true, Power: 7400, Need: 10_000, ReadyBy: hour.To, Steps: []flex.Step{{Span: hour, Limit: flex.NoLimit}},
		Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	})
	e := g.envelope(flex.Scope{})
	if whole := e.Windows[HalfHours-1]; e.Short != 1 || whole.Least != 7400 || whole.Most != 7400 {
		t.Errorf("%d short, %d to %d Wh", e.Short, whole.Least, whole.Most)
	}
}

// BenchmarkGather is 100,000 cars from their schedules to the bounds of all windows.
func BenchmarkGather(b *testing.B) {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		g := gather(evening)
		for i := range 100_000 {
			p := store.Plugged{
				Planned: true, Power: 7400, Need: flex.WattHours(5000 + i%20_000), ReadyBy: midnight.Add(time.Duration(5*60+i%300) * time.Minute),
				Steps:  []flex.Step{{Span: flex.Span{From: midnight, To: midnight.Add(3 * time.Hour)}, Limit: flex.NoLimit}},
				Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
			}

			g.add(&p)
		}

		if e := g.envelope(flex.Scope{}); e.Controlled != 100_000 {
			b.Fatal(e.Controlled)
		}
	}
}

// night is a car of 7.4 kW that may charge from 00:00 to 05:00, needs 14.8 kWh by 07:00, and
// charges from 00:00 on by plan.
func night(id byte) *store.Plugged {
	midnight := time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC)
	return &store.Plugged{
		AssetID: flex.AssetID{id}, Planned: true, Power: 7400, Need: 14_800, ReadyBy: midnight.Add(7 * time.Hour),
		Steps: []flex.Step{
			{Span: flex.Span{From: evening, To: midnight}},
			{Span: flex.Span{From: midnight, To: midnight.Add(2 * time.Hour)}, Limit: flex.NoLimit},
			{Span: flex.Span{From: midnight.Add(2 * time.Hour), To: midnight.Add(7 * time.Hour)}},
		},
		Tariff: flex.Tariff{OffPeak: "00:00-05:00", Zone: "Europe/London", Type: flex.DualRate},
	}
}

// TestFollow has two cars leave hours out: three of five they can, four they cannot.
func TestFollow(t *testing.T) {
	midnight := flex.PeriodAt(time.Date(2026, 1, 16, 0, 0, 0, 0, time.UTC))
	ask := func(halves int, energy flex.WattHours) *Follows {
		g := gather(evening)
		g.add(night(2))
		g.add(night(1))
		var profile []Asked
		for i := range halves {
			profile = append(profile, Asked{midnight.Add(i), energy})
		}

		asked, joules, err := g.profile(profile)
		if err != nil {
			t.Fatal(err)
		}
		return g.follow(flex.Scope{}, asked, joules)
	}

	yes := ask(6, 0)
	if !yes.Yes || len(yes.Asked) != 6 || yes.Asked[0].Planned != 7400 || len(yes.Parts) != 2 || yes.Parts[0].AssetID != (flex.AssetID{1}) {
		t.Errorf("three hours can be left out: %+v", yes.Parts)
	}

	no := ask(8, 0).Certificate
	if no.TooMuch || no.Asked != 0 || no.Bound != 14_800 || len(no.HalfHours) != 8 {
		t.Errorf("four hours cannot: %+v", no)
	}

	shared := ask(1, 5000)
	if sum := shared.Parts[0].Energy[0] + shared.Parts[1].Energy[0]; !shared.Yes || sum != 5000 {
		t.Errorf("%d Wh are drawn, not 5000", sum)
	}

	over := ask(1, 7401).Certificate
	if !over.TooMuch || over.Asked != 7401 || over.Bound != 7400 || !over.HalfHours[0].From.Equal(midnight.Start()) {
		t.Errorf("more than both have: %+v", over)
	}
}

// TestFollow_ChargeNow has charge-now count on both sides: less than it cannot be asked for.
func TestFollow_ChargeNow(t *testing.T) {
	hour := flex.Span{From: evening, To: evening.Add(time.Hour)}
	g := gather(evening)
	g.add(&store.Plugged{
		Planned: true, Power: 7400, Need: 7400, ReadyBy: evening.Add(4 * time.Hour), ChargeNow: hour,
		Steps:  []flex.Step{{Span: hour, Limit: flex.NoLimit}},
		Tariff: flex.Tariff{Zone: "Europe/London", Type: flex.SingleRate},
	})

	second := flex.PeriodAt(evening).Add(1) // all of it is charge-now
	for energy, want := range map[flex.WattHours]bool{3700: true, 3699: false, 3701: false} {
		asked, joules, err := g.profile([]Asked{{second, energy}})
		if err != nil {
			t.Fatal(err)
		}

		f := g.follow(flex.Scope{}, asked, joules)
		if f.Yes != want || !want && (f.Certificate.Bound != 3700 || f.Certificate.Asked != energy || f.Certificate.TooMuch != (energy > 3700)) {
			t.Errorf("%d Wh: %v, %+v", energy, f.Yes, f.Certificate)
		}
	}
}
