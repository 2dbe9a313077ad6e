package ocppserver

import (
	"math"
	"strings"
	"time"
)

// quantity is what a sample measures, the most useful first.
type quantity int

const (
	register quantity = iota // Energy.Active.Import.Register
	interval                 // Energy.Active.Import.Interval
	power                    // Power.Active.Import
)

// The best source of a connector's energy has the rank 0.
const (
	// meterStart and meterStop are combined with any other source
	rankSession     = -1
	rankChargePoint = 10 // added to what is measured for connector 0
)

// sample is one value of a connector, in Wh or W.
type sample struct {
	At       time.Time `json:"at,omitzero"`
	Quantity quantity  `json:"quantity,omitempty"`
	Value    float64   `json:"value"`
	Step     float64   `json:"step,omitempty"` // of the last digit, in Wh
	Rank     int       `json:"rank,omitempty"`
	Begin    bool      `json:"begin,omitempty"` // a transaction's first
	End      bool      `json:"end,omitempty"`   // a transaction's last
}

// sampleKey distinguishes the values of one message.
type sampleKey struct {
	begin    bool
	quantity quantity
	rank     int
	perPhase bool
}

// isBetter reports whether a value describes the energy that flowed into the car better than
// another.
func (k sampleKey) isBetter(other sampleKey) bool {
	if k.begin != other.begin {
		return other.begin
	}
	if k.quantity != other.quantity {
		return k.quantity < other.quantity
	}
	if k.rank != other.rank {
		return k.rank < other.rank
	}

	return !k.perPhase && other.perPhase
}

// observe finds the best measure of a connector's energy among the values of one instant.
// Phases without a total are added up. If there is no measure, it returns the reason.
func observe(values []sampled) (sample, string) {
	sums := map[sampleKey]decimal{}
	phases := map[sampleKey]map[string]bool{}
	problem := "no energy and no power among the measurands"

	for _, v := range values {
		key, d, reason := v.read()
		if reason != "" {
			problem = reason
			continue
		}
		if phases[key] == nil {
			phases[key] = map[string]bool{}
		}

		phase, _, _ := strings.Cut(v.Phase, "-")
		if phases[key][phase] {
			continue
		}

		phases[key][phase] = true
		sum := sums[key]
		sums[key] = decimal{sum.value + d.value, max(sum.step, d.step)}
	}

	if len(sums) == 0 {
		return sample{}, problem
	}

	best := sampleKey{begin: true, quantity: power + 1} // worse than any
	for key := range sums {
		if key.isBetter(best) {
			best = key
		}
	}

	sum := sums[best]

	return sample{
		Quantity: best.quantity,
		Value:    sum.value,
		Step:     sum.step,
		Rank:     best.rank,
		Begin:    best.begin,
	}, ""
}

// locations are the places of measurement, the nearest to the car's plug first.
var locations = map[string]int{
	"":       0,
	"Outlet": 0,
	"Cable":  1,
	"Inlet":  2,
	"Body":   3,
}

// read returns the value in Wh or W, or the reason why it cannot be used.
func (v sampled) read() (sampleKey, decimal, string) {
	var key sampleKey
	var d decimal
	switch v.Measurand {
	case "", "Energy.Active.Import.Register":
		key.quantity = register
	case "Energy.Active.Import.Interval":
		key.quantity = interval
	case "Power.Active.Import":
		key.quantity = power
	default:
		return key, d, "no energy and no power among the measurands"
	}

	rank, known := locations[v.Location]
	phased := v.Phase != ""
	wanted := !phased ||
		strings.HasPrefix(v.Phase, "L") &&
			(len(v.Phase) == 2 || strings.HasSuffix(v.Phase, "-N"))

	if v.Format == "SignedData" {
		return key, d, "the register comes as signed data alone"
	}

	if !known || !wanted {
		return key, d, "the register is measured elsewhere: " + v.Location +
			" " + v.Phase
	}

	if math.IsNaN(v.Value.value) || v.Value.value < 0 {
		return key, d, "the register is not a number from 0"
	}

	scale, ok := scaleOf(key.quantity, v.Unit)
	d = decimal{v.Value.value * scale, v.Value.step * scale}
	if !ok || d.value > registerMax {
		return key, d, "the register's value or unit is out of range: " + v.Unit
	}

	key.rank = rank
	key.perPhase = phased
	key.begin = v.Context == "Transaction.Begin"

	return key, d, ""
}

// scaleOf returns the factor from a unit, in any spelling, to Wh or W.
func scaleOf(q quantity, unit string) (float64, bool) {
	units := map[string]float64{
		"":    1,
		"wh":  1,
		"kwh": 1000,
	}

	if q == power {
		units = map[string]float64{
			"":   1,
			"w":  1,
			"kw": 1000,
		}
	}

	scale, ok := units[strings.ToLower(strings.TrimSpace(unit))]

	return scale, ok
}
