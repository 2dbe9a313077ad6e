package flex

// Discharge is what is known of how a car may give energy back; of a home battery the wear alone.
type Discharge struct {
	Power Watts // at most, on the grid's side; 0 if it is not known to discharge
	// what stays in its battery, as an energy or in percent of its capacity; both nil: DefaultReserve
	Reserve        *WattHours
	ReservePercent *float64
	// pence for each kWh that it gives; nil: DefaultWear, and of a home battery BatteryRates.BatteryWear
	Wear *float64
}

// What is assumed of a car that may discharge where nothing was given.
const (
	DefaultReserve = 30.0 // percent of its capacity
	DefaultWear    = 5.0  // pence a kWh
)

// DischargePowerMin is the least power that a car is asked to give.
const DischargePowerMin Watts = 500

// DischargeWearMax is the most that a kWh may be said to wear, in pence.
const DischargeWearMax = 1000.0

// ReserveOf is what stays in a battery of some capacity.
func (d *Discharge) ReserveOf(capacity WattHours) WattHours {
	percent := DefaultReserve
	if d.Reserve != nil {
		return min(*d.Reserve, capacity)
	}

	if d.ReservePercent != nil {
		percent = *d.ReservePercent
	}

	return WattHours(percent / 100 * float64(capacity))
}

// WearCost is what a kWh that it gives counts as wear, in pence.
func (d *Discharge) WearCost() float64 {
	if d.Wear == nil {
		return DefaultWear
	}
	return *d.Wear
}

// Known reports whether anything was given.
func (d *Discharge) Known() bool {
	reserve := d.Reserve != nil || d.ReservePercent != nil
	return d.Power > 0 || reserve || d.Wear != nil
}

// DischargeForm is how an endpoint takes a schedule by which a car discharges.
type DischargeForm string

// The forms.
const (
	// NoDischarge has the endpoint get schedules that charge alone.
	NoDischarge DischargeForm = ""
	// NegativeLimits has a period in which the car discharges have a limit below zero.
	NegativeLimits DischargeForm = "negative_limits"
)
