package backtest

import (
	"math"

	"flexd/internal/engine/heat"
	"flexd/internal/engine/site"
	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/forecast"
)

// What is counted beside the energy, in every way of running a home and in the bound alike, so that a way that
// leaves a need out is not the cheaper for it.
const (
	// MissingPence is counted for each kWh that a car leaves without, about what public rapid chargers cost.
	MissingPence = 80.0
	// ColdPence is counted for each kWh that a tank lacks of its comfort band, in each half-hour.
	ColdPence = 100.0
	// DiscomfortPence is counted for each kelvin outside the comfort band, in each hour.
	DiscomfortPence = 20.0
)

// Lack is what a way of running a home left out.
type Lack struct {
	Missing    float64 // kWh that cars left without
	Stays      int     // after which something was missing
	Cold       float64 // kWh that the tank lacked at the ends of half-hours, added up
	Discomfort float64 // kelvin-hours outside the comfort band
}

// pence is what counts for it.
func (l Lack) pence() float64 {
	return l.Missing*MissingPence + l.Cold*ColdPence + l.Discomfort*DiscomfortPence
}

// Tank is a hot-water tank with an element: one mixed store, whose level is the heat in Wh above the bottom of its
// comfort band. A thermostat keeps the element from passing the top of the band.
type Tank struct {
	Element flex.Watts
	Litres  float64
	Daily   flex.WattHours // of hot water in a day, where Drawn is nil
	Drawn   forecast.Series
}

// levels are the level at the top of the band, and that at which all water is cold.
func (k *Tank) levels() (top, floor int) {
	return tank.HeatOf(k.Litres, tank.High-tank.Low), -tank.HeatOf(
		k.Litres,
		tank.Low-tank.Cold,
	)
}

// used is the heat in Wh that left the tank in a half-hour, and whether it is known.
func (k *Tank) used(p flex.Period) (int, bool) {
	if k.Drawn == nil {
		return tank.Used(p.Span(), k.Daily), true
	}

	e, known := k.Drawn[p]

	return int(e) + tank.Used(p.Span(), 0), known
}

// ahead guesses what will leave the tank in half-hours.
func (k *Tank) ahead(c *Case, periods []flex.Period) []int {
	drawn := make([]flex.WattHours, len(periods))
	if k.Drawn != nil {
		var known bool
		drawn, known = forecast.Load(
			k.Drawn,
			periods,
			c.Working,
		)
		if !known {
			drawn = make([]flex.WattHours, len(periods))
		}
	}

	used := make([]int, len(periods))
	for i, p := range periods {
		daily := k.Daily
		if k.Drawn != nil {
			daily = 0
		}

		used[i] = tank.Used(p.Span(), daily) + int(drawn[i])
	}

	return used
}

// slots are half-hours as package tank has them.
func (k *Tank) slots(used []int, prices []float64) []tank.Slot {
	slots := make([]tank.Slot, len(prices))
	for i := range slots {
		slots[i] = tank.Slot{
			Heat:  int(k.Element) / 2,
			Draw:  used[i],
			Price: prices[i],
		}
	}

	return slots
}

// run takes the tank through a half-hour in which its element is on or off and may draw so much. An element that is
// off continues where the tank would be colder than its band. It returns the energy drawn, and by how much the tank is too cold.
func (k *Tank) run(
	level *int,
	used int,
	on bool,
	most flex.WattHours,
) (flex.WattHours, int) {
	top, floor := k.levels()
	after := *level - used
	wanted := max(0, -after)
	if on {
		wanted = top - after
	}

	given := max(0, min(wanted, int(k.Element)/2, int(most)))
	after += given
	short := max(0, floor-after)
	after = max(floor, after)
	*level = after

	return flex.WattHours(given), short + max(0, -after)
}

// HeatPump is a heat pump in a house of one temperature, which it may keep anywhere in a comfort band.
type HeatPump struct {
	Power flex.Watts
	// degrees; the thermostat of a heat pump that nobody steers is in the middle
	Low, High float64
	Outdoor   map[flex.Period]float64
}

// room is how the house goes through a half-hour: its temperature is stays times that before, plus idle, plus perWh
// times the electricity.
type room struct{ stays, idle, perWh, cop float64 }

// course is a half-hour of the house at a temperature outdoors.
func (h *HeatPump) course(outdoor float64) room {
	b := heat.Assumed(float64(h.Power))
	stays := math.Exp(-b.Loss * 0.5 / b.Capacity)
	cop := heat.COP(outdoor)

	return room{
		stays: stays,
		idle:  (1 - stays) * outdoor,
		perWh: (1 - stays) / b.Loss * cop / 0.5,
		cop:   cop,
	}
}

// needs is the electricity in Wh that brings the house to a temperature.
func (r room) needs(before, after float64) float64 {
	return max(0, (after-r.stays*before-r.idle)/r.perWh)
}

// run takes the house through a half-hour with so many Wh of electricity wanted. The thermostat keeps it within the
// band whatever is wanted, as far as it can.
func (h *HeatPump) run(
	temp *float64,
	outdoor float64,
	wanted, most flex.WattHours,
) (flex.WattHours, float64) {
	r := h.course(outdoor)
	low, high := r.needs(*temp, h.Low), r.needs(*temp, h.High)
	given := max(
		math.Ceil(low),
		min(float64(wanted), math.Floor(high)),
	)
	given = max(
		0,
		min(given, float64(h.Power)/2, float64(most)),
	)
	*temp = r.stays**temp + r.idle + r.perWh*given

	return flex.WattHours(given), h.outside(*temp)
}

// outside is by how many kelvins a temperature is outside the band.
func (h *HeatPump) outside(temp float64) float64 {
	return max(0, h.Low-temp) + max(0, temp-h.High)
}

// ahead guesses the temperature outdoors: each half-hour as it was at the same time in the last day that is known.
func (h *HeatPump) ahead(periods []flex.Period) []float64 {
	guess := make([]float64, len(periods))
	for i, p := range periods {
		for back := 1; back <= forecast.Days; back++ {
			before := p.Add(-48 * back)
			if v, known := h.Outdoor[before]; known && before.Sub(periods[0]) < 0 {
				guess[i] = v
				break
			}
		}
	}

	return guess
}

// problem is the house from a half-hour on, as package heat has it.
func (h *HeatPump) problem(
	temp float64,
	outdoor, prices []float64,
	worth float64,
) heat.Problem {
	p := heat.Problem{
		Building: heat.Assumed(float64(h.Power)),
		Init:     temp,
		Worth:    worth,
	}
	middle := (h.Low + h.High) / 2
	for i, price := range prices {
		p.Slots = append(p.Slots, heat.Slot{
			Hours:   0.5,
			Outdoor: outdoor[i],
			COP:     heat.COP(outdoor[i]),
			Price:   price,
			Low:     h.Low,
			High:    h.High,
			Choices: []heat.Choice{
				{Off: true},
				{Target: h.Low},
				{Target: middle},
				{Target: h.High},
			},
		})
	}

	return p
}

// site is the house as a site has it, with what a kWh of electricity is worth whose heat is left.
func (h *HeatPump) site(
	temp float64,
	outdoor []float64,
	worth float64,
) *site.Heat {
	b := heat.Assumed(float64(h.Power))
	stays := math.Exp(-b.Loss * 0.5 / b.Capacity)
	resistance := 1000 / b.Loss // K per kW
	s := &site.Heat{
		Capacity:   0.5 / ((1 - stays) * resistance),
		Resistance: resistance,
		Init:       temp,
		Penalty:    DiscomfortPence,
		Max:        h.Power.KW(),
		Reference:  h.Low,
	}

	for _, v := range outdoor {
		s.Outdoor = append(s.Outdoor, v)
		s.COP = append(s.COP, heat.COP(v))
		s.Gain = append(s.Gain, 0)
		s.Low, s.High = append(s.Low, h.Low), append(
			s.High,
			h.High,
		)
	}

	s.Terminal = worth * b.Capacity / 1000 / s.COP[len(s.COP)-1]

	return s
}
