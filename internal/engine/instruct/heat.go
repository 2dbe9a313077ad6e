package instruct

// HeatersMax is how many heaters an instruction looks at, at most, those of sites that were called least often first. All their
// plans are made in one transaction.
const HeatersMax = 200

const (
	// heatBeyond is what a kWh counts, in pence, that a heater moves the other way than an instruction asks: more than any heat
	// costs, and less than comfort, which is no matter of money.
	heatBeyond = 1000.0
	// heatReturn is the same of what it draws after the instruction beyond what is left of the rebound: more than a kWh costs, and less than
	// it is worth in the window, so that it does not come back in there.
	heatReturn = BatteryWorth / 2
	// heatSlack is what of that is not counted, in Wh: powers are kept in whole watts.
	heatSlack = 1.0
)

// HeatAsk is what an instruction asks of a heater in a half-hour.
type HeatAsk struct {
	Planned float64 // Wh that the heater draws by the plan that it had
	Return  bool    // it comes back after the instruction: what it draws more than that counts less than what it left out
	Fuller  float64 // from 0 to 1, how much others come back in it too: those that must come back then do so where it is less
	Whole   bool    // the half-hour is the instruction's; else the heater is only to come no nearer to what it left out
	Up      bool    // it is to draw more; else less
}

// Pence is what drawing so many Wh counts besides their price. Each kWh in a half-hour of the instruction counts as one of a battery.
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

// HeatPence is what several instructions ask in one half-hour; nil for nothing. Where it is one's own, others that end before it bind
// the heater no more.
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
