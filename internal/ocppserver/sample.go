package ocppserver

import (
	"math"
	"strings"
	"time"
)

// quantity is what a sample measures; the better ones come first.
type quantity int

const (
	register quantity = iota // Energy.Active.Import.Register
	interval                 // Energy.Active.Import.Interval
	power                    // Power.Active.Import
)

// The best source of a connector's energy has the rank 0.
const (
	// meterStart and meterStop go with whatever else there is
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

// sampleKey is what tells the values of one message apart.
type sampleKey struct {
	begin    bool
	quantity quantity
	rank     int
	phased   bool
}

// better reports whether a value says more of what flowed into the car by now.
func (k sampleKey) better(than sampleKey) bool {
	if k.begin != than.begin {
		return than.begin
	}
	if k.quantity != than.quantity {
		return k.quantity < than.quantity
	}
	if k.rank != than.rank {
		return k.rank < than.rank
	}

	return !k.phased && than.phased
}

// observe finds the best measure of a connector's energy among the values of one instant.
// Phases without a total are added up. If there is none, why says what was there instead.
func observe(values []sampled) (sample, string) {
	sums := map[sampleKey]decimal{}
	counted := map[sampleKey]map[string]bool{}
	why := "no energy and no power among the measurands"

	for _, v := range values {
		key, d, reason := v.read()
		if reason != "" {
			why = reason
			continue
		}
		if counted[key] == nil {
			counted[key] = map[string]bool{}
		}

		phase, _, _ := strings.Cut(v.Phase, "-")
		if counted[key][phase] {
			continue
		}

		counted[key][phase] = true
		sum := sums[key]
		sums[key] = decimal{sum.value + d.value, max(sum.step, d.step)}
	}

	if len(sums) == 0 {
		return sample{}, why
	}

	best := sampleKey{begin: true, quantity: power + 1} // worse than any
	for key := range sums {
		if key.better(best) {
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

// locations are where a measure may be taken, the nearest to the car's plug first.
var locations = map[string]int{
	"":       0,
	"Outlet": 0,
	"Cable":  1,
	"Inlet":  2,
	"Body":   3,
}

// read returns what a value measures, in Wh or W, or why it says nothing.
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
	key.phased = phased
	key.begin = v.Context == "Transaction.Begin"

	return key, d, ""
}

// scaleOf turns a unit, however it is spelled, into Wh or W.
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
