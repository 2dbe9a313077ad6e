package site

// Problem is one site over half-hours, with its devices behind one main fuse and one export
// limit. Energies are in kWh on the grid's side of a device, unless they are called stored.
// Powers are in kW, money in pence, temperatures in degrees Celsius.
type Problem struct {
	Hours       float64 // of a slot
	Import      []float64
	Export      []float64
	Load        []float64
	PV          []float64
	Curtailable bool // the output of the roof can be reduced

	GridImport float64
	GridExport float64
	// while a car charges, batteries serve only the building
	NoBatteryToCar bool

	Batteries []Battery
	Cars      []Car
	Tank      *Tank
	Heat      *Heat
}

// Battery is a home battery.
type Battery struct {
	Min, Max, Init       float64 // stored
	Charge               float64
	Discharge            float64
	ChargeEff, Efficient float64 // efficiencies of charging and discharging
	Wear                 float64
	Terminal             float64
	// The slots in which the battery follows an order, or nil for none. In them it stores
	// Moved more, within its bounds, and does nothing else. What that draws or gives is
	// included in the load and the roof.
	Ordered []bool
	Moved   []float64
}

// most returns the most energy that a battery moves in a slot in one direction. power is that
// of this direction, in kW.
func (b *Battery) most(t int, power, hours float64) float64 {
	if b.ordered(t) {
		return 0
	}

	return power * hours
}

// ordered reports whether the battery follows an order in a slot.
func (b *Battery) ordered(t int) bool { return b.Ordered != nil && b.Ordered[t] }

// moved returns the energy that a battery stores in a slot by an order.
func (b *Battery) moved(t int) float64 {
	if b.ordered(t) {
		return b.Moved[t]
	}

	return 0
}

// stores returns the energy that a battery stores in a slot whatever the plan is: what it
// begins with, and what it was ordered to store.
func (b *Battery) stores(t int) float64 {
	if t == 0 {
		return b.Init + b.moved(t)
	}

	return b.moved(t)
}

// Car is a car at its charger, for one stay.
type Car struct {
	Available []float64 // hours of each slot
	Max, Min  float64   // Min is the least power with which it can charge
	StartCost float64
	Energy    float64
	OffPeak   []bool // nil if the tariff has no peak time
	PeakToo   bool   // peak time may be used if off-peak time is not enough
	V2G       *V2G
}

// V2G is what a car has in addition if it may discharge. Car.Energy does not count then.
type V2G struct {
	Arrival, Max, Reserve, Target float64 // stored
	Discharge                     float64
	MinDischarge                  float64
	ChargeEff                     float64
	Efficient                     float64
	Wear                          float64
}

// Tank is a hot-water tank with an element that is on or off for a whole slot.
type Tank struct {
	Element   float64
	Min       float64
	Max       float64
	Init      float64
	Loss      float64 // the share of the stored energy that is lost in each slot
	Draw      []float64
	StartCost float64
	Terminal  float64
}

// Heat is a heat pump in a building that has one temperature.
type Heat struct {
	Capacity, Resistance float64 // kWh per K, K per kW
	Init                 float64
	Outdoor              []float64
	COP                  []float64
	Gain                 []float64
	Low, High            []float64 // the comfort band at the end of each slot
	Penalty              float64   // per K and hour outside it
	Min                  float64
	Max                  float64
	StartCost            float64
	// what a kelvin above Reference is worth at the end
	Reference float64
	Terminal  float64
}

// Plan is what every device does in each slot, in kWh; discharge is negative.
type Plan struct {
	Battery [][]float64
	Car     [][]float64
	Tank    []bool
	Heat    []float64
}

// Slots is the number of slots.
func (p *Problem) Slots() int { return len(p.Load) }

// most returns the most energy that a car takes in a slot; 0 if it may not charge.
func (c *Car) most(t int) float64 {
	if c.OffPeak != nil && !c.OffPeak[t] && !c.PeakToo {
		return 0
	}

	return c.Max * c.Available[t]
}

// peak reports whether what the car takes in a slot counts as peak energy.
func (c *Car) peak(t int) bool { return c.OffPeak != nil && !c.OffPeak[t] }

// counts returns the least and the greatest number of slots in which the tank can have been on
// by the end of each slot. For every number it tracks the range of stored energy that is
// possible with it.
func (k *Tank) counts(hours float64) (least, most []int) {
	n := len(k.Draw)
	low, high := make([]float64, n+2), make([]float64, n+2)

	for i := range low {
		low[i], high[i] = 1, 0 // an empty range
	}

	low[0], high[0] = k.Init, k.Init

	least, most = make([]int, n), make([]int, n)

	for t := range n {
		least[t], most[t] = t+1, 0

		for i := t + 1; i >= 0; i-- {
			k.reach(t, i, hours, low, high)

			if low[i] <= high[i] {
				least[t], most[t] = min(least[t], i), max(most[t], i)
			}
		}
	}

	// A number from which no later number can be reached is impossible too.
	for t := n - 2; t >= 0; t-- {
		least[t] = max(least[t], least[t+1]-1)
		most[t] = min(most[t], most[t+1])
	}

	return least, most
}

// reach replaces the range of a number by the range after slot t.
func (k *Tank) reach(t, count int, hours float64, low, high []float64) {
	const rounding = 1e-7
	retention := 1 - k.Loss
	from, to := 1.0, 0.0

	if low[count] <= high[count] {
		from, to = low[count]*retention-k.Draw[t], high[count]*retention-k.Draw[t]
	}

	if count > 0 && low[count-1] <= high[count-1] {
		on := k.Element*hours - k.Draw[t]
		a, b := low[count-1]*retention+on, high[count-1]*retention+on

		if from <= to {
			a, b = min(a, from), max(b, to)
		}

		from, to = a, b
	}

	low[count], high[count] = max(from, k.Min-rounding), min(to, k.Max+rounding)

	if from > to {
		low[count], high[count] = 1, 0
	}
}
