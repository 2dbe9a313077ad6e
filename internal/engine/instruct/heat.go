package instruct

// HeatersMax is the most heaters that are considered for an instruction; those of sites that
// were called least often come first. Their plans are all made in one transaction.
const HeatersMax = 200

const (
	// heatBeyond is the cost, in pence for each kWh, of a heater that moves the other way than
	// an instruction asks. It is more than any heat costs, and less than comfort, which has no
	// price.
	heatBeyond = 1000.0
	// heatReturn is the cost, in pence for each kWh, of what a heater draws after the
	// instruction beyond what is left of the rebound. It is more than a kWh costs, and less
	// than a kWh is worth in the window, so that the heater does not return within the window
	// instead.
	heatReturn = BatteryWorth / 2
	// heatSlack is the energy, in Wh, that is not counted in these costs: powers are whole
	// watts.
	heatSlack = 1.0
)

// HeatAsk is what an instruction asks of a heater in a half-hour.
type HeatAsk struct {
	Planned float64 // Wh that the heater draws by its plan from before
	Return  bool    // it comes back after the instruction: what it draws more than that counts less than what it left out
	Fuller  float64 // from 0 to 1, how much others come back in it too: those that must come back then do so where it is less
	Whole   bool    // the half-hour is the instruction's; else the heater is only to come no nearer to what it left out
	Up      bool    // it is to draw more; else less
}

// Pence returns what drawing an energy, in Wh, costs in addition to its price. Each kWh in a
// half-hour of the instruction counts as one of a battery.
func (a HeatAsk) Pence(energy float64) float64 {
	reward, beyond := BatteryWorth, energy-a.Planned
	if a.Up {
		reward, beyond = -reward, -beyond
	}

	if !a.Whole {
		reward = 0
	}

	each := heatBeyond
	if a.Return {
		each = heatReturn * (1 + a.Fuller) / 2
	}

	return reward*energy/1000 + each*max(0, beyond-heatSlack)/1000
}

// HeatPence returns the sum of what several instructions ask in one half-hour; nil for
// nothing. If the half-hour belongs to instructions, others that ended before it no longer
// count.
func HeatPence(requests []HeatAsk) func(energy float64) float64 {
	if len(requests) == 0 {
		return nil
	}

	var own []HeatAsk
	for _, a := range requests {
		if a.Whole {
			own = append(own, a)
		}
	}

	if own == nil {
		own = requests
	}

	return func(energy float64) float64 {
		sum := 0.0
		for _, a := range own {
			sum += a.Pence(energy)
		}

		return sum
	}
}
