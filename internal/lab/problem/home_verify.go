package problem

import (
	"github.com/go-json-experiment/json"

	"flexd/internal/engine/check"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
	"flexd/internal/lab/verify"
)

// Verdict is the result of checking an answer with its certificate: the plan keeps every rule,
// and has this cost and this lower bound.
type Verdict struct {
	ID         string  `json:"id"`
	Holds      bool    `json:"holds"`
	Cost       float64 `json:"cost_p"`
	LowerBound float64 `json:"lower_bound_p"` // proven
	Gap        float64 `json:"gap_p"`
	GapPct     float64 `json:"gap_pct"` // of the turnover

	Shortfall      float64 `json:"shortfall_kwh"`
	LeastShortfall float64 `json:"least_shortfall_kwh"` // proven
	Peak           float64 `json:"peak_kwh"`
	LeastPeak      float64 `json:"least_peak_kwh"` // proven, at this shortfall
}

// statedHome is an answer of home, as it is read.
type statedHome struct {
	ID     string `json:"id"`
	Answer struct {
		Battery [][]float64 `json:"battery_kwh"`
		Car     [][]float64 `json:"car_kwh"`
		Tank    []int       `json:"tank_on"`
		Heat    []float64   `json:"heat_kwh"`
	} `json:"answer"`
	Cost        *float64 `json:"cost_p"`
	LowerBound  *float64 `json:"lower_bound_p"`
	Shortfall   *float64 `json:"shortfall_kwh"`
	Peak        *float64 `json:"peak_kwh"`
	Certificate struct {
		Site *site.Proof `json:"site"`
	} `json:"certificate"`
}

// Verify checks an answer, as Append wrote it, against the problem and the answer's
// certificate. It does not plan.
func (p *Problem) Verify(answer []byte) (Verdict, error) {
	h, ok := p.solver.(*homeProblem)
	if !ok {
		return Verdict{}, flex.Fail(flex.Invalid, "only answers of the family home can be checked by themselves")
	}

	var a statedHome
	if err := json.Unmarshal(answer, &a); err != nil {
		return Verdict{}, flex.Fail(
			flex.Malformed,
			"the answer cannot be read: %v",
			err,
		)
	}

	plan, err := a.plan(&h.Problem)
	if err != nil {
		return Verdict{}, err
	}

	r, err := a.result(p.ID)
	if err != nil {
		return Verdict{}, err
	}

	if err := check.Site(&h.Problem, &plan, r); err != nil {
		return Verdict{}, err
	}

	proven, err := verify.SiteProof(&h.Problem, r, a.Certificate.Site)
	if err != nil {
		return Verdict{}, err
	}

	gap := max(0, r.Cost-proven.Cost)

	return Verdict{
		ID:             p.ID,
		Holds:          true,
		Cost:           r.Cost,
		LowerBound:     proven.Cost,
		Gap:            gap,
		GapPct:         100 * gap / max(1, check.SiteTurnover(&h.Problem, &plan)),
		Shortfall:      r.Shortfall,
		LeastShortfall: proven.Shortfall,
		Peak:           r.Peak,
		LeastPeak:      proven.Peak,
	}, nil
}

// result returns the totals that an answer states for its plan.
func (a *statedHome) result(id string) (site.Result, error) {
	var r site.Result
	if a.ID != id {
		return r, flex.Fail(
			flex.Invalid,
			"the answer is of %q, the problem is %q",
			a.ID,
			id,
		)
	}

	for _, field := range []struct {
		name string
		from *float64
		to   *float64
	}{
		{"cost_p", a.Cost, &r.Cost},
		{"lower_bound_p", a.LowerBound, &r.Bound},
		{"shortfall_kwh", a.Shortfall, &r.Shortfall},
		{"peak_kwh", a.Peak, &r.Peak},
	} {
		if field.from == nil {
			return r, flex.Fail(
				flex.Malformed,
				"%s is missing in the answer",
				field.name,
			)
		}

		*field.to = *field.from
	}

	return r, nil
}

// plan returns the plan of an answer, with all devices of the site in all slots.
func (a *statedHome) plan(p *site.Problem) (site.Plan, error) {
	n := p.Slots()
	plan := site.Plan{Battery: a.Answer.Battery, Car: a.Answer.Car, Heat: a.Answer.Heat}
	complete := len(plan.Battery) == len(p.Batteries) && len(plan.Car) == len(p.Cars)

	for _, device := range append(append([][]float64(nil), plan.Battery...), plan.Car...) {
		complete = complete && len(device) == n
	}

	complete = complete && (p.Heat == nil || len(plan.Heat) == n)
	complete = complete && (p.Tank == nil || len(a.Answer.Tank) == n)

	for _, on := range a.Answer.Tank {
		complete = complete && (on == 0 || on == 1)
		plan.Tank = append(plan.Tank, on == 1)
	}

	if !complete {
		return plan, flex.Fail(flex.Invalid, "the plan has not every device of the home in every slot")
	}

	return plan, nil
}
