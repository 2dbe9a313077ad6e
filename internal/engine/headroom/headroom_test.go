package headroom

import (
	"flag"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
	_ "flexd/test/seed"
)

var evening = time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)

// drawsAt returns what steps allow a car to draw at an instant.
func drawsAt(steps []flex.Step, power flex.Watts, at time.Time) flex.Watts {
	for _, s := range steps {
		if s.Contains(at) {
			return min(s.Limit, power)
		}
	}
	return 0
}

// sharedFleet draws cars that share a fleet's cap and those of three groups. Each group may
// lie in one with a higher index.
func sharedFleet(t *rapid.T) (caps []flex.Cap, parents []int, cars []Car, prices []flex.PricedPeriod) {
	watts := func(label string) *flex.Watts {
		if rapid.Bool().Draw(t, label+" is bound") {
			return new(flex.Watts(rapid.IntRange(0, 40).Draw(t, label) * 1000))
		}
		return nil
	}
	caps = []flex.Cap{{Power: watts("fleet")}, {Power: watts("feeder")}, {Power: watts("yard")}, {Power: watts("substation")}}
	parents = []int{0, rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "feeder in"), rapid.SampledFrom([]int{0, 3}).Draw(t, "yard in"), 0}
	for i := range caps {
		caps[i].StartsPerMinute = rapid.IntRange(0, 2).Draw(t, "starts")
	}

	for i := range 26 {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i),
			Price: flex.Price(rapid.IntRange(-5, 40).Draw(t, "price") * 10e6), Known: rapid.IntRange(0, 9).Draw(t, "known") > 0})
	}

	for range rapid.IntRange(1, 8).Draw(t, "cars") {
		p := &charge.Problem{
			From: evening.Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "second")) * time.Second), Prices: prices,
			Need:    flex.WattHours(rapid.IntRange(0, 40).Draw(t, "need") * 1000),
			Power:   rapid.SampledFrom([]flex.Watts{1000, 3680, 7400, 11000, 150_000}).Draw(t, "power"),
			ReadyBy: evening.Add(time.Duration(rapid.IntRange(1, 13*12).Draw(t, "ready")) * 5 * time.Minute),
			Mode:    rapid.SampledFrom([]flex.ChargingMode{flex.Minimise, flex.Maximise}).Draw(t, "mode"), PauseAbove: 300e6,
			AllOffPeak: rapid.Bool().Draw(t, "one rate"), MayChargePeak: rapid.Bool().Draw(t, "peak"),
			Running: rapid.Bool().Draw(t, "running"),
			Least:   rapid.SampledFrom([]flex.Watts{0, flex.LeastPower(3)}).Draw(t, "least"),
		}
		if !p.AllOffPeak {
			p.OffPeak = []flex.Span{{From: evening.Add(5*time.Hour + 30*time.Minute), To: evening.Add(11 * time.Hour)}}
		}
		if rapid.IntRange(0, 5).Draw(t, "charge now") == 0 {
			p.ChargeNow = flex.Span{From: p.From, To: p.From.Add(time.Hour)}
		}
		cars = append(cars, Car{p, rapid.IntRange(0, 3).Draw(t, "group")})
	}
	return caps, parents, cars, prices
}

// planShared plans cars as a fleet is planned: shares, then one by one.
func planShared(r *Profile, cars []Car, prices []flex.PricedPeriod, traded []flex.Traded) ([]charge.Problem, []charge.Plan, error) {
	now := make([][]flex.Step, len(cars))
	for i, c := range cars {
		if !c.ChargeNow.Empty() {
			now[i] = []flex.Step{{Span: c.ChargeNow, Limit: c.Power}}
			r.Reserve(c.Cap, now[i])
		}
	}
	s, err := r.Share(cars, prices, traded)
	if err != nil {
		return nil, nil, err
	}

	for _, c := range cars {
		c.Prices = s.Prices
	}
	problems, plans := make([]charge.Problem, len(cars)), make([]charge.Plan, len(cars))
	order := make([]int, len(cars))
	for i := range order {
		order[i] = i
	}

	slices.SortStableFunc(order, func(a, b int) int { return int((cars[a].Slack() - cars[b].Slack()) / time.Second) })
	for _, i := range order {
		r.Release(cars[i].Cap, s.Cars[i])
		r.Release(cars[i].Cap, now[i])
		problems[i], plans[i] = r.Charge(*cars[i].Problem, cars[i].Cap)
		r.Add(cars[i].Cap, plans[i].Steps, cars[i].Power, cars[i].Running)
	}
	return problems, plans, nil
}

// TestProfile_NoCapIsExceeded plans random fleets and adds up what they draw at every instant
// at which anything changes. Apart from charge-now it is never more than a cap. Every plan
// keeps its own rules, and a need is missed only if a cap limited the car.
func TestProfile_NoCapIsExceeded(t *testing.T) {
	if v := flag.Lookup("rapid.checks").Value; v.String() == "20000" || v.String() == "1000" { // as TestMain has it
		all := v.String()
		v.Set(all[:len(all)-1]) // a tenth: each plans a fleet
		defer v.Set(all)
	}

	rapid.Check(t, func(t *rapid.T) {
		caps, parents, cars, prices := sharedFleet(t)
		var traded []flex.Traded
		for i := range rapid.IntRange(0, 6).Draw(t, "traded") {
			traded = append(traded, flex.Traded{Period: flex.PeriodAt(evening).Add(10 + i), Energy: 5000, Buy: 200e6, Sell: 20e6})
		}
		r := Nested(evening, caps, parents)
		problems, plans, err := planShared(r, cars, prices, traded)
		if err != nil {
			t.Fatal(err)
		}

		var instants []time.Time
		for i := range plans {
			if err := check.Charge(problems[i], plans[i]); err != nil {
				t.Fatalf("car %d: %v", i, err)
			}
			if alone := charge.Solve(*cars[i].Problem); plans[i].Shortfall > alone.Shortfall && len(problems[i].Limits) == 0 {
				t.Fatalf("car %d lacks %d Wh, and %d Wh alone, and nothing limits it", i, plans[i].Shortfall, alone.Shortfall)
			}

			for _, s := range plans[i].Steps {
				instants = append(instants, s.From)
				if least := min(leastOf(cars[i].Problem), cars[i].Power); s.Limit > 0 && s.Limit < least {
					t.Fatalf("car %d is given %d W, and takes %d W at least", i, s.Limit, least)
				}
			}
		}

		for _, at := range instants {
			for k := range caps {
				var drawn, asked flex.Watts
				for i, c := range cars {
					if k == 0 || c.Cap == k || c.Cap > 0 && (parents[c.Cap] == k || parents[parents[c.Cap]] == k) {
						w := drawsAt(plans[i].Steps, c.Power, at)
						if drawn += w; c.ChargeNow.Contains(at) {
							asked += w
						}
					}
				}

				if bound := caps[k].Power; bound != nil && drawn > max(*bound, asked) {
					t.Fatalf("cap %d of %d W: %d W are drawn at %v, of which %d were asked for now", k, *bound, drawn, at, asked)
				}
			}
		}
	})
}

// TestProfile_Pace plans more cars than may start in a minute, up to the end of the horizon.
func TestProfile_Pace(t *testing.T) {
	for _, c := range []struct {
		cars, pace int
		minutes    []int // in which they start, after the half-hour's beginning
	}{
		{2, 2, []int{0, 0}},
		{3, 2, []int{0, 0, 1}},
		{5, 2, []int{0, 0, 1, 1, 2}},
		{3, 0, []int{0, 0, 0}},
	} {
		var prices []flex.PricedPeriod
		for i := range 8 {
			price := flex.Price(100e6)
			if i == 4 || i == 5 {
				price = 10e6
			}
			prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: price, Known: true})
		}

		r := New(evening, []flex.Cap{{StartsPerMinute: c.pace}})
		p := charge.Problem{From: evening, ReadyBy: evening.Add(4 * time.Hour), Need: 3700, Power: 7400, AllOffPeak: true, Mode: flex.Minimise, Prices: prices}
		var got []int
		for range c.cars {
			q, a := r.Charge(p, 0)
			if err := check.Charge(q, a); err != nil || a.Shortfall > 0 {
				t.Fatal(err, a.Shortfall)
			}

			r.Add(0, a.Steps, p.Power, false)
			for _, s := range a.Steps {
				if s.Limit > 0 {
					got = append(got, int(s.From.Sub(evening.Add(2*time.Hour))/time.Minute))
				}
			}
		}
		if !slices.Equal(got, c.minutes) {
			t.Errorf("%d cars, %d a minute: started %v, want %v", c.cars, c.pace, got, c.minutes)
		}

		late := p
		late.ReadyBy, late.Need = evening.Add(30*time.Minute), 3700 // no minute to lose
		for range 3 {
			_, a := r.Charge(late, 0)
			if a.Shortfall > 0 {
				t.Errorf("%d a minute: a need gave way to the pace", c.pace)
			}
			r.Add(0, a.Steps, p.Power, false)
		}
	}
}

// TestProfile_Nested finds which of several nested caps limits a car, by its power or by its
// number of starts. What the outermost cap leaves is shared among cars of several groups,
// whatever the order of the groups.
func TestProfile_Nested(t *testing.T) {
	watts := func(w flex.Watts) flex.Cap { return flex.Cap{Power: &w} }
	var prices []flex.PricedPeriod
	for i := range 8 {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: flex.Price(i) * 10e6, Known: true})
	}
	problem := func() *charge.Problem {
		return &charge.Problem{From: evening, ReadyBy: evening.Add(4 * time.Hour), Need: 7000, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: prices}
	}
	pace := flex.Cap{StartsPerMinute: 1}

	// The fleet, a street in a feeder in a substation, and a yard in the substation.
	parents := []int{0, 2, 3, 0, 3}

	for _, c := range []struct {
		caps    []flex.Cap
		beside  int // the group of another car
		by      int
		starts  bool
		reports bool
	}{
		{[]flex.Cap{watts(90_000), watts(90_000), watts(90_000), watts(10_000), {}}, 4, 3, false, true},
		{[]flex.Cap{watts(90_000), watts(90_000), watts(10_000), watts(90_000), {}}, 2, 2, false, true},
		{[]flex.Cap{watts(90_000), watts(10_000), watts(10_000), watts(10_000), {}}, 1, 1, false, true},
		{[]flex.Cap{watts(90_000), watts(10_000), watts(10_000), watts(90_000), {}}, 4, 0, false, false},
		{[]flex.Cap{{}, {}, {}, pace, {}}, 4, 3, true, true},
		{[]flex.Cap{pace, pace, pace, pace, {}}, 1, 1, true, true},
		{[]flex.Cap{pace, {StartsPerMinute: 9}, {}, {}, {}}, 4, 0, true, true},
	} {
		r := Nested(evening, c.caps, parents)

		p := problem()
		r.Add(c.beside, []flex.Step{{Span: flex.Span{From: evening, To: evening.Add(time.Hour)}, Limit: flex.Unbounded}}, 7000, false)
		q, a := r.Charge(*p, 1)
		all := r.Bindings(&q, &a, 1)
		if (len(all) > 0) != c.reports || c.reports && (all[0].Cap != c.by || all[0].Starts != c.starts) {
			t.Errorf("caps %+v: %+v, want cap %d, starts %v", c.caps, all, c.by, c.starts)
		}
	}

	r := Nested(evening, []flex.Cap{{}, {}, {}, watts(7000), {}}, parents)
	s, err := r.Share([]Car{{problem(), 1}, {problem(), 4}, {problem(), 0}}, prices, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Caps[3][0] <= 0 || s.Caps[1][0]+s.Caps[2][0]+s.Caps[4][0] != 0 {
		t.Errorf("headroom is worth %v", s.Caps)
	}

	for at := evening; at.Before(evening.Add(4 * time.Hour)); at = at.Add(time.Minute) {
		if w := drawsAt(s.Cars[0], 7000, at) + drawsAt(s.Cars[1], 7000, at); w > 7000 {
			t.Fatalf("%d W are shared at %v", w, at)
		}
	}
	if drawsAt(s.Cars[2], 7000, evening) != 7000 {
		t.Errorf("what lies in no group is held back: %v", s.Cars[2])
	}
}

// TestProfile_ShareAfterNow shares a half-hour of which charge-now takes the first part. The
// reservation lies after that.
func TestProfile_ShareAfterNow(t *testing.T) {
	most := flex.Watts(14_000)
	prices := []flex.PricedPeriod{{Period: flex.PeriodAt(evening), Price: 100e6, Known: true}}
	now := flex.Span{From: evening, To: evening.Add(20 * time.Minute)}
	p := &charge.Problem{From: evening, ReadyBy: evening.Add(30 * time.Minute), Need: 3500, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: prices, ChargeNow: now}
	r := New(evening, []flex.Cap{{Power: &most}})
	r.Reserve(0, []flex.Step{{Span: now, Limit: 7000}})
	s, err := r.Share([]Car{{p, 0}}, prices, nil)
	if err != nil || len(s.Cars[0]) == 0 {
		t.Fatal(s, err)
	}

	for _, step := range s.Cars[0] {
		if step.From.Before(now.To) {
			t.Errorf("%v is reserved, and charge-now takes until %v", step.Span, now.To)
		}
	}
}

// TestProfile_ShareParts shares a cap between a car that can charge only in a part of a
// half-hour and one that can wait. The part is the rest of a half-hour that has begun, or the
// beginning of the last one before ready-by.
func TestProfile_ShareParts(t *testing.T) {
	most := flex.Watts(7000)

	for _, c := range []struct {
		from, ready time.Duration
		need        flex.WattHours // of the one that cannot wait
		cheap       int            // the cheapest half-hour
	}{
		{20 * time.Minute, 30 * time.Minute, 1166, 0},
		{0, 45 * time.Minute, 5250, 1},
		{30 * time.Minute, 45 * time.Minute, 1750, 1},
	} {
		from := evening.Add(c.from)

		var prices []flex.PricedPeriod
		for i := range 8 {
			price := flex.Price(500e6)
			if i == c.cheap {
				price = 100e6
			}

			prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: price, Known: true})
		}

		patient := charge.Problem{From: from, ReadyBy: evening.Add(3 * time.Hour), Need: 3500, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: prices}
		hurried := patient
		hurried.ReadyBy, hurried.Need = evening.Add(c.ready), c.need
		_, plans, err := planShared(New(from, []flex.Cap{{Power: &most}}), []Car{{&patient, 0}, {&hurried, 0}}, prices, nil)
		if err != nil {
			t.Fatal(err)
		}

		if plans[0].Shortfall > 0 || plans[1].Shortfall > 0 {
			t.Errorf("%+v: %d Wh and %d Wh are lacking, and there was time for both", c, plans[0].Shortfall, plans[1].Shortfall)
		}
	}
}

// TestProfile_PricesAfterShare: after the end of what a fleet with a position shares, prices
// are the market's.
func TestProfile_PricesAfterShare(t *testing.T) {
	most := flex.Watts(14_000)
	var prices []flex.PricedPeriod
	for i := range 4 {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: flex.Price(i+1) * 10e6, Known: true})
	}

	p := &charge.Problem{From: evening, ReadyBy: evening.Add(70 * time.Minute), Need: 3500, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: prices}
	traded := []flex.Traded{{Period: prices[0].Period, Energy: 3500, Buy: 200e6, Sell: 5e6}}
	s, err := New(evening, []flex.Cap{{Power: &most}}).Share([]Car{{p, 0}}, prices, traded)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Prices); n != len(prices) || s.Prices[2] != prices[2] || s.Prices[3] != prices[3] {
		t.Errorf("prices %v, and those of the market are %v", s.Prices, prices)
	}
}

// TestProfile_ClosedNotPeak closes time by an instruction, and sets caps that leave no other
// off-peak time. The closed time is used before any peak time.
func TestProfile_ClosedNotPeak(t *testing.T) {
	most := flex.Watts(7000)
	span := func(from, to time.Duration) flex.Span {
		return flex.Span{From: evening.Add(from), To: evening.Add(to)}
	}
	p := charge.Problem{
		From: evening, ReadyBy: evening.Add(2 * time.Hour), Need: 3500, Power: 7000, Mode: flex.Minimise, MayChargePeak: true,
		OffPeak: []flex.Span{span(0, time.Hour)}, Limits: []flex.Step{{Span: span(0, 30*time.Minute)}},
	}
	r := New(evening, []flex.Cap{{Power: &most}})
	r.Add(0, []flex.Step{{Span: span(30*time.Minute, time.Hour), Limit: 7000}}, 7000, true)
	_, a := r.Charge(p, 0)
	if w := drawsAt(a.Steps, p.Power, evening); w != 7000 || a.Shortfall > 0 {
		t.Errorf("it draws %d W in its off-peak time and lacks %d Wh: %v", w, a.Shortfall, a.Steps)
	}
}

// TestProfile_ShareClosed shares a cap, under which one car can charge at a time, between a
// car for which an instruction closes the two cheapest half-hours and one that may charge at
// any time. Each gets headroom where it can use it. If the first needs the closed time, it
// gets that.
func TestProfile_ShareClosed(t *testing.T) {
	var prices []flex.PricedPeriod
	for i, p := range []int{10, 20, 5, 6} {
		prices = append(prices, flex.PricedPeriod{Period: flex.PeriodAt(evening).Add(i), Price: flex.Price(p) * 10e6, Known: true})
	}

	most := flex.Watts(7000)
	closed := flex.Span{From: evening.Add(time.Hour), To: evening.Add(2 * time.Hour)}
	for _, c := range []struct {
		need flex.WattHours // of the one that is called
		in   bool           // it is to have closed time
	}{{7000, false}, {10_500, true}} {
		called := charge.Problem{
			From: evening, ReadyBy: evening.Add(2 * time.Hour), Need: c.need, Power: 7000, AllOffPeak: true, Mode: flex.Minimise, Prices: prices,
			Limits: []flex.Step{{Span: closed}},
		}
		other := called
		other.Need, other.Limits = 3500, nil

		r := New(evening, []flex.Cap{{Power: &most}})
		s, err := r.Share([]Car{{&called, 0}, {&other, 0}}, prices, nil)
		if err != nil {
			t.Fatal(err)
		}

		var all, within time.Duration
		for _, step := range s.Cars[0] {
			all += step.Len()
			within += step.Meet(closed).Len()
		}
		if want := time.Duration(c.need) * time.Hour / 7000; all != want || (within > 0) != c.in {
			t.Errorf("%d Wh: it has %v, %v of it closed: %v", c.need, all, within, s.Cars[0])
		}
	}
}

// TestFits_ChargeNow: a charge-now begins within a minute and draws more than a cap. It is not
// limited, from its beginning on.
func TestFits_ChargeNow(t *testing.T) {
	from := evening.Add(30 * time.Second)
	r := New(from, []flex.Cap{{Power: new(flex.Watts(5000))}})
	now := flex.Span{From: from, To: from.Add(10 * time.Minute)}
	p := charge.Problem{From: from, ReadyBy: from.Add(time.Hour), Power: 7400, ChargeNow: now}
	if !r.Fits(&p, 0, []flex.Step{{Span: now, Limit: 7400}}) {
		t.Error("charge-now is limited in its first minute")
	}

	late := flex.Span{From: now.To, To: p.ReadyBy}
	if r.Fits(&p, 0, []flex.Step{{Span: late, Limit: 7400}}) {
		t.Error("what follows it is not limited")
	}
}
