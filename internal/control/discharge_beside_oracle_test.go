package control

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// givingPair is a site of two cars of 6 kW that may give 4.86 kW each, behind a fuse that they can pass together, over a few half-hours.
type givingPair struct {
	fuse, export float64 // kW
	buy          []float64
	sell, wear   float64
	arrival      [2]float64 // kWh in each battery, of 40; 4 stay in it
	halves       [2]int     // half-hours of charging that each needs
	gives        [2]bool
}

// cost is what the cars take or give in each half-hour comes to, in pence; false where a rule is broken. It shares nothing with the
// planner.
func (s *givingPair) cost(moves [2][]float64) (pence float64, ok bool) {
	stored := s.arrival
	for t := range s.buy {
		net, takes, gives := 0.0, 0.0, 0.0
		for c := range moves {
			e := moves[c][t]
			net, takes, gives = net+e, takes+max(0, e), gives+max(0, -e)
			stored[c] += max(0, e)*carWorks - max(0, -e)/carWorks
			if e < 0 && (!s.gives[c] || stored[c] < 4-0.01) {
				return 0, false
			}
		}

		if 2*takes > s.fuse+0.01 || 2*gives > s.export+0.01 {
			return 0, false
		}
		pence += max(0, net)*s.buy[t] + min(0, net)*s.sell + gives*s.wear
	}

	for c := range moves {
		if stored[c] < s.arrival[c]+3*float64(s.halves[c])*carWorks-0.02 {
			return 0, false
		}
	}

	return pence, true
}

// best tries everything that has each car rest, charge at full or at a quarter of its power, or give, and returns the best of all, and
// of those that give nothing.
func (s *givingPair) best() (giving, alone float64) {
	giving, alone = math.Inf(1), math.Inf(1)
	n := len(s.buy)
	moves := [2][]float64{make([]float64, n), make([]float64, n)}

	var try func(at int, gave bool)
	try = func(at int, gave bool) {
		if at == 2*n {
			if c, ok := s.cost(moves); ok {
				giving = min(giving, c)
				if !gave {
					alone = min(alone, c)
				}
			}
			return
		}

		for _, move := range []float64{-givesMost, 0, 0.75, 3} {
			moves[at%2][at/2] = move
			try(at+1, gave || move < 0)
		}
	}
	try(0, false)

	return giving, alone
}

// plan has the site planned as the service does it, and returns what the cars do, and what they do if none may give.
func (s *givingPair) plan(t testing.TB, from time.Time) (moves, alone [2][]float64) {
	t.Helper()
	n := len(s.buy)
	periods := periodsTo(flex.PeriodAt(from), flex.PeriodAt(from).Add(n).Start())
	fuse := flex.FromKW(s.fuse)
	f := &sitePlan{fuse: fuse, from: from, now: from, tight: true, replanTimes: map[time.Time][]flex.AssetID{}}
	for i, p := range periods {
		f.prices = append(f.prices, flex.PricedPeriod{Period: p, Known: true, Price: flex.FromGBPPerMWh(10 * s.buy[i])})
	}

	for c := range s.arrival {
		own := &store.ScheduledAsset{}
		own.Current.AssetID = flex.AssetID{byte(c + 1)}
		e := store.PlanInputs{ReadyBy: periods[n-1].End(), Need: flex.WattHours(3000 * s.halves[c]), CountFrom: from, Power: 6000, Mode: flex.Minimise, Phases: 1}
		charging := &store.PlanningState{}
		charging.Export = flex.FromKW(s.export)
		f.cars = append(f.cars, &siteCar{member: member{ScheduledAsset: own, from: e}, state: charging, cause: replanReason{trigger: ByEvent, must: true}})
	}

	f.addLoads(nil, nil)
	f.buildProblems()
	d := &Service{}
	if err := f.solve(t.Context(), d); err != nil {
		t.Fatal(err)
	}

	for c, car := range f.cars {
		alone[c] = drawnIn(periods, car.stepsForNow)
	}

	for c, car := range f.cars {
		if s.gives[c] {
			s.give(t, f, car, periods, flex.FromKWh(s.arrival[c]))
		}
	}

	if d.Refused() > 0 {
		t.Error("a plan is refused")
	}
	for c, car := range f.cars {
		moves[c] = drawnIn(periods, car.stepsForNow)
		for i, given := range drawnIn(periods, car.discharges) {
			moves[c][i] -= given
		}
	}

	return moves, alone
}

// give plans what one of the cars gives.
func (s *givingPair) give(t testing.TB, f *sitePlan, car *siteCar, periods []flex.Period, arrival flex.WattHours) {
	car.from.Discharge = &store.Discharge{Power: 4860, Capacity: 40_000, Reserve: 4000, Wear: s.wear, Stored: arrival}
	alone := f.chargeOnlyCandidate(car)
	most := f.exportHeadroom(car)
	if most < discharge.Least {
		return
	}

	q := &discharge.Problem{From: f.from, ReadyBy: car.from.ReadyBy, Alone: alone.Plan.Steps, Open: []flex.Span{{From: f.from, To: car.from.ReadyBy}},
		Charge: 6000, Most: min(4860, most), Limit: 6000, Stored: float64(arrival), Capacity: 40_000, Reserve: 4000, Wear: s.wear, Turn: DischargeTurn}
	for i, p := range periods {
		q.Rates = append(q.Rates, discharge.Rate{Period: p, Buy: s.buy[i], Sell: s.sell})
	}

	f.limitDischarge(car, q)
	if g := new(Service).solveCarDischarge(t.Context(), f, car, q); g != nil && len(g.Discharges) > 0 {
		car.setPlan(g.Steps, g.Discharges, f)
	}
}

// drawnIn is what steps come to in each half-hour, in kWh.
func drawnIn(periods []flex.Period, steps []flex.Step) (kwh []float64) {
	all := []loadBound{{lists: [][]flex.Step{steps}, power: 6000}}
	for _, p := range periods {
		kwh = append(kwh, energyIn(all, p).KWh())
	}

	return kwh
}

// TestDischargeBeside_Oracle holds small sites of two cars behind a fuse against the best of all that could be done: no rule is ever
// broken, no household pays more than if its cars only charged, and what is saved is most of what could be.
func TestDischargeBeside_Oracle(t *testing.T) {
	from := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	var pays, least, charges float64
	gave, could := 0, 0
	const sites = 60
	for seed := range uint64(sites) {
		r := rand.New(rand.NewPCG(seed, 18))
		s := &givingPair{fuse: []float64{7.5, 9, 11}[r.IntN(3)], export: []float64{1, 5, 7, 23}[r.IntN(4)], sell: float64(10 + r.IntN(40)), wear: float64(r.IntN(4))}
		for c := range s.arrival {
			s.arrival[c], s.halves[c], s.gives[c] = 4+float64(r.IntN(20)), r.IntN(2), c == 0 || r.IntN(3) > 0
		}

		for range 4 {
			s.buy = append(s.buy, float64(3+r.IntN(25)))
		}

		moves, takes := s.plan(t, from)
		got, ok := s.cost(moves)
		alone, kept := s.cost(takes)
		best, _ := s.best()
		if !ok || !kept || got > alone+0.01 {
			t.Errorf("seed %d: %.2f of %.2f is allowed: %v; it costs %.2f p, and %.2f alone: %+v", seed, moves, takes, ok, got, alone, s)
		}

		pays, least, charges = pays+got, least+best, charges+alone
		if slices.ContainsFunc(slices.Concat(moves[0], moves[1]), func(e float64) bool { return e < 0 }) {
			gave++
		}
		if alone-best > DischargeMinSaving {
			could++
		}
	}

	t.Logf("%.2f p a site where cars only charge, %.2f where they give, %.2f at least; %d of %d give, %d could", charges/sites, pays/sites, least/sites, gave, sites, could)
	if gave < 20 || charges-pays < 0.6*(charges-least) {
		t.Errorf("%d give, and save %.1f p of %.1f", gave, charges-pays, charges-least)
	}
}
