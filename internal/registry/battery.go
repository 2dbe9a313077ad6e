package registry

import (
	"fmt"

	"flexd/internal/flex"
)

// Bounds of home batteries. They are far beyond any product, so that a value beyond them must
// be in another unit.
const (
	mostOfBattery      flex.Watts     = 1_000_000
	leastBatteryHolds  flex.WattHours = 100
	mostBatteryHolds   flex.WattHours = 5_000_000
	fastestBattery                    = 20 // as multiple of the capacity, per hour
	slowestBatteryHrs                 = 100
	batteryUnitExample                = "a battery of 5000 W and 10000 Wh has a power_kw of 5 and a capacity_kwh of 10"
)

// checkBattery refuses a power or a capacity that no battery has, if it was changed. Earlier
// values are accepted. A car's battery is bounded by its charger.
func checkBattery(before, a *flex.Asset) error {
	if a.Type != flex.Battery {
		return nil
	}

	power, capacity := batteryPower(a), batteryCapacity(a)
	changed := power != batteryPower(before)
	resized := capacity != batteryCapacity(before)

	if changed && power > mostOfBattery {
		return batteryFault(
			fmt.Sprintf("%g kW is more than a battery has", power.KW()),
			"power_kw",
		)
	}

	if resized && capacity > mostBatteryHolds {
		return batteryFault(
			fmt.Sprintf("%g kWh is more than a battery holds", capacity.KWh()),
			"capacity_kwh",
		)
	}

	if resized && capacity > 0 && capacity < leastBatteryHolds {
		return batteryFault(
			fmt.Sprintf("%g kWh is less than any battery holds", capacity.KWh()),
			"capacity_kwh",
		)
	}

	if !changed && !resized {
		return nil
	}

	return sizesFault(power, capacity, resized)
}

// sizesFault refuses a power and a capacity that cannot belong to one battery.
func sizesFault(power flex.Watts, capacity flex.WattHours, resized bool) error {
	if power <= 0 || capacity <= 0 {
		return nil
	}

	field := "power_kw"
	if resized {
		field = "capacity_kwh"
	}

	hours := float64(capacity) / float64(power)
	if hours*fastestBattery < 1 {
		return batteryFault(
			fmt.Sprintf(
				"%g kW would fill %g kWh in less than 3 minutes",
				power.KW(),
				capacity.KWh(),
			),
			field,
		)
	}

	if hours > slowestBatteryHrs {
		return batteryFault(
			fmt.Sprintf(
				"%g kW would take more than %d hours to fill %g kWh",
				power.KW(),
				slowestBatteryHrs,
				capacity.KWh(),
			),
			field,
		)
	}

	return nil
}

func batteryPower(a *flex.Asset) flex.Watts {
	if a.Power == nil {
		return 0
	}
	return *a.Power
}

func batteryCapacity(a *flex.Asset) flex.WattHours {
	if a.Capacity == nil {
		return 0
	}
	return *a.Capacity
}

func batteryFault(reason, field string) error {
	return invalid([]flex.Fault{faultAt(
		"value_error",
		reason+": is it in another unit? For example, "+batteryUnitExample,
		[]string{"properties"},
		field,
	)})
}

// checkAsset checks the asset for values that none of its type can have, after its model has
// set those that were not sent.
func checkAsset(before, a *flex.Asset) error {
	if err := checkBattery(before, a); err != nil {
		return err
	}
	return checkDischarge(before, a)
}
