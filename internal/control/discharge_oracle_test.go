package control

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// givingSmall is a smallHome whose car may give 4.86 kW: what it gives in a half-hour it charges again in one.
type givingSmall struct {
	smallHome
	export  float64 // kW
	arrival float64 // kWh in the car's battery, of 40; 4 stay in it
	wear    float64
}

const (
	givesMost = 2.43 // kWh in a half-hour
	carWorks  = 0.9
)

// cost is what modes come to, and what the car takes or gives in each half-hour, in pence; false where a rule is broken. It shares
// nothing with the planner.
func (s *givingSmall) cost(modes []battery.Mode, moves []float64) (pence float64, ok bool) {
	const most, least, eff = 6.0, 0.6, 0.95
	stored, car, before := s.stored, s.arrival, battery.ModeSelfUse
	for t, m := range modes {
		if m != before {
			pence += 0.5
		}
		before = m

		takes, gives := max(0, moves[t]), max(0, -moves[t])
		car += takes*carWorks - gives/carWorks
		in, out := 0.0, 0.0
		switch m {
		case battery.ModeCharge:
			in = 1.5
		case battery.ModeDischarge:
			out = 1.5
		case battery.ModeFeedIn, battery.ModeSelfUse:
			out = min(1.5, max(0, s.load[t]+moves[t]))
		}

		stores := m == battery.ModeCharge || m == battery.ModeSelfUse
		covers := m != battery.ModeCharge && m != battery.ModeLock
		broken := gives > 0 && stores || takes > 0 && covers || gives > 0 && car < 4-0.01 ||
			s.fuse > 0 && m == battery.ModeCharge && 2*takes+3 > s.fuse+0.01 ||
			2*gives > s.export+0.01 || s.fuse > 0 && m == battery.ModeDischarge && 3+2*gives-2*s.load[t] > min(s.export, s.fuse)+0.01
		if broken {
			return 0, false
		}

		in = min(in, max(0, (most-stored)/eff))
		out = min(out, max(0, (stored-least)*eff))
		stored += in*eff - out/eff
		grid := s.load[t] + moves[t] + in - out
		pence += max(0, grid)*s.buy[t] + min(0, grid)*s.sell + gives*s.wear
	}

	return pence - s.spare*stored, car >= s.arrival+3*float64(s.halves)*carWorks-0.02
}

// best tries everything that has the car rest, charge at full power, or give as the steps say, and returns the best of all, and of
// those that give nothing.
func (s *givingSmall) best(steps ...float64) (giving, alone float64) {
	giving, alone = math.Inf(1), math.Inf(1)
	n := len(s.buy)
	modes, moves := make([]battery.Mode, n), make([]float64, n)

	var try func(t int, gave bool)
	try = func(t int, gave bool) {
		if t == n {
			if c, ok := s.cost(modes, moves); ok {
				giving = min(giving, c)
				if !gave {
					alone = min(alone, c)
				}
			}
			return
		}

		for m := range battery.ModeCount {
			modes[t] = m
			for _, move := range steps {
				moves[t] = move
				try(t+1, gave || move < 0)
			}
		}
	}
	try(0, false)

	return giving, alone
}

// plan has the site planned as the service does it, and returns what its devices do; and the same without what the car gives.
func (s *givingSmall) plan(t testing.TB, from time.Time) (modes, plain []battery.Mode, moves, takes []float64) {
	t.Helper()
	d := &Service{}
	f, pose := s.site(from)
	f.home.supply.Export = flex.FromKW(s.export)
	pose(f)
	f, err := f.solveHome(t.Context(), d, pose)
	if err != nil {
		t.Fatal(err)
	}

	car := f.cars[0]
	m := &meter{supply: f.home.supply}
	m.addSite(f)
	plain, takes = s.respond(f.home, m), s.drawn(f.home, car.stepsForNow)

	arrival := flex.FromKWh(s.arrival)
	car.from.Discharge = &store.Discharge{Power: 4860, Capacity: 40_000, Reserve: 4000, Wear: s.wear, Stored: arrival}
	car.state.Export = flex.FromKW(s.export)
	alone := f.chargeOnlyCandidate(car)
	q := &discharge.Problem{From: from, ReadyBy: car.from.ReadyBy, Alone: alone.Plan.Steps, Open: []flex.Span{{From: from, To: car.from.ReadyBy}},
		Charge: 6000, Most: min(4860, f.exportHeadroom(car)), Limit: 6000, Stored: float64(arrival), Capacity: 40_000, Reserve: 4000, Wear: s.wear, Turn: DischargeTurn}
	for i, p := range f.home.ahead.periods {
		q.Rates = append(q.Rates, discharge.Rate{Period: p, Buy: s.buy[i], Sell: s.sell})
	}
	f.limitDischarge(car, q)
	if g := d.solveCarDischarge(t.Context(), f, car, q); g != nil && len(g.Discharges) > 0 {
		car.setPlan(g.Steps, g.Discharges, f)
	}

	if d.Refused() > 0 {
		t.Error("a plan is refused")
	}
	m = &meter{supply: f.home.supply}
	m.addSite(f)
	moves = s.drawn(f.home, car.stepsForNow)
	for i, given := range s.drawn(f.home, car.discharges) {
		moves[i] -= given
	}

	return s.respond(f.home, m), plain, moves, takes
}

// TestDischargeHome_Oracle holds small sites of a battery and a car that may give against the best of all that could be done: no rule is
// ever broken, no household pays more than if the car only charged, and what is saved is most of what could be.
func TestDischargeHome_Oracle(t *testing.T) {
	from := time.Date(2026, 1, 10, 18, 0, 0, 0, time.UTC)
	var pays, least, charges float64
	gave, better := 0, 0
	const sites = 60
	for seed := range uint64(sites) {
		r := rand.New(rand.NewPCG(seed, 16))
		s := &givingSmall{smallHome: *randomSmall(r, 4), export: []float64{1, 5, 7, 23}[r.IntN(4)], arrival: 4 + float64(r.IntN(20)), wear: float64(r.IntN(4))}
		s.halves = r.IntN(3)
		s.sell = float64(10 + r.IntN(40))
		for i := range s.buy {
			s.buy[i] = float64(3 + r.IntN(25))
		}

		modes, plain, moves, takes := s.plan(t, from)
		got, ok := s.cost(modes, moves)
		alone, kept := s.cost(plain, takes)
		best, bestAlone := s.best(-givesMost, 0, 3)
		if !ok || !kept || got > alone+0.01 {
			t.Errorf("seed %d: %v, %v is allowed: %v; it costs %.2f p, and %.2f alone", seed, modes, moves, ok, got, alone)
		}

		pays, least, charges = pays+got, least+best, charges+alone
		for _, m := range moves {
			if m < 0 {
				gave++
				break
			}
		}
		if bestAlone-best > DischargeMinSaving {
			better++
		}
	}

	t.Logf("%.2f p a site where cars only charge, %.2f where they give, %.2f at least; %d of %d give, %d could", charges/sites, pays/sites, least/sites, gave, sites, better)
	if gave < 10 || charges-pays < 0.75*(charges-least) {
		t.Errorf("%d give, and save %.1f p of %.1f", gave, charges-pays, charges-least)
	}
}
