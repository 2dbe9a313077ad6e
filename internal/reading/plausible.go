package reading

import (
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Bounds of what a device or a connection can have measured.
const (
	// Tolerance is by how many percent a measured value may exceed the rating of a device or a
	// connection: the voltage may be a tenth above the nominal one.
	Tolerance = 10
	// RegisterStep is added to the rise that a rating allows a register, since some count
	// whole kilowatt-hours.
	RegisterStep flex.Micro = 1_000_000
	// HeldMax is how many readings of an organisation wait for a decision at most; further
	// ones are refused.
	HeldMax = 100_000
)

// The reasons for which a reading is held back.
const (
	BeyondSupply = "beyond_supply" // more than the site's connection can carry
	BeyondPower  = "beyond_power"  // more than the asset can draw or give
	// more than the asset's battery can hold
	BeyondCapacity = "beyond_capacity"
	RegisterJump   = "register_jump" // a register rose by more than that
	// a register is lower than before: a new meter, or a wrong value
	RegisterFall = "register_fall"
)

// suspicion is why a reading is held back; without a reason it is not.
type suspicion struct{ reason, detail string }

// verdict is the answer to the client.
func (s suspicion) verdict() Verdict {
	return Verdict("held back: " + s.detail)
}

// bound is the most that readings of a label can show of a time, in each direction, in watts.
type bound struct {
	most    flex.Watts
	least   flex.Watts
	reason  string
	setting string // what sets it
}

// boundOf returns the bound of readings of a label, and false if there is none.
func boundOf(l flex.Label, r store.Rating) (bound, bool) {
	switch l {
	case flex.BoundaryImportPower:
		return bound{
			r.Supply.Import,
			-r.Supply.Export,
			BeyondSupply,
			"import_capacity_kw and export_capacity_kw of the site" + sourceOf(r.Supply),
		}, true

	case flex.BoundaryImportRegister, flex.ProvisionalConsumption:
		return bound{
			r.Supply.Import,
			0,
			BeyondSupply,
			"import_capacity_kw of the site" + sourceOf(r.Supply),
		}, true

	case flex.BoundaryExportRegister:
		return bound{
			r.Supply.Export,
			0,
			BeyondSupply,
			"export_capacity_kw of the site" + sourceOf(r.Supply),
		}, true

	case flex.ChargerEnergy, flex.ChargerRegister, flex.BatteryInverterPower, flex.HeatPower:
		if r.Power > 0 {
			return bound{
				r.Power,
				-r.Power,
				BeyondPower,
				"power_kw of the asset",
			}, true
		}

		return bound{
			r.Supply.Import,
			-r.Supply.Import,
			BeyondSupply,
			"import_capacity_kw of the site" + sourceOf(r.Supply) + ", as the asset's power_kw is not known,",
		}, true
	}

	return bound{}, false
}

// sourceOf says of a capacity that was never set that it is the default.
func sourceOf(s flex.Supply) string {
	if s.Set {
		return ""
	}
	return " (the default: none was set)"
}

// suspect checks a reading by itself against its bound. A register is compared with its
// neighbours instead.
func suspect(r flex.Reading, rating store.Rating) suspicion {
	if r.Label == flex.BatteryStoredEnergy {
		return suspectLevel(r, rating.Capacity)
	}

	b, bounded := boundOf(r.Label, rating)
	if !bounded || r.Label.Register() {
		return suspicion{}
	}

	if rules[r.Label].kind == level {
		if exceeds(r.Value, b.most, time.Hour) ||
			exceeds(-r.Value, -b.least, time.Hour) {
			return suspicion{
				b.reason,
				fmt.Sprintf(
					"%s of %s kW is more than %s, %s, allow%s",
					r.Label,
					micro(r.Value),
					b.setting,
					b.limits(),
					remedy,
				),
			}
		}

		return suspicion{}
	}

	if exceeds(r.Value, b.most, r.Len()) {
		return suspicion{
			b.reason,
			fmt.Sprintf(
				"%s of %s kWh in %s minutes is more than %s, %s kW, allows%s",
				r.Label,
				micro(r.Value),
				number(r.Len().Minutes()),
				b.setting,
				watts(b.most),
				remedy,
			),
		}
	}

	return suspicion{}
}

// suspectLevel checks whether more is stored than the battery's capacity.
func suspectLevel(r flex.Reading, capacity flex.WattHours) suspicion {
	most := float64(capacity) * 1000 * (100 + Tolerance) / 100
	if capacity == 0 || float64(r.Value) <= most {
		return suspicion{}
	}

	return suspicion{
		BeyondCapacity,
		fmt.Sprintf(
			"%s of %s kWh is more than capacity_kwh of the asset, %s kWh, holds. Correct the value (a share in percent is %s), or the capacity, or have the reading released",
			r.Label,
			micro(r.Value),
			number(capacity.KWh()),
			flex.BatteryStateOfCharge,
		),
	}
}

// suspectRise checks whether a register rose by more, from one mark to a later one, than its
// bound allows.
func suspectRise(r flex.Reading, rating store.Rating, before Mark) suspicion {
	b, bounded := boundOf(r.Label, rating)
	if !bounded ||
		!exceeds(r.Value-before.Value-RegisterStep, b.most, r.To.Sub(before.At)) {
		return suspicion{}
	}

	return suspicion{
		RegisterJump,
		fmt.Sprintf(
			"%s rose from %s at %s to %s, which is more than %s, %s kW, allows in that time%s",
			r.Label,
			micro(before.Value),
			stamp(before.At),
			micro(r.Value),
			b.setting,
			watts(b.most),
			remedy,
		),
	}
}

// suspectFall is the suspicion about a register that is lower than before.
func suspectFall(r flex.Reading, before Mark) suspicion {
	return suspicion{RegisterFall, fmt.Sprintf(
		"%s fell from %s at %s to %s, and a register never falls. If the earlier reading was wrong, send it again with the right value; if the meter was replaced, have this one released as that",
		r.Label, micro(before.Value), stamp(before.At), micro(r.Value))}
}

const remedy = ". Correct the value, or the rating, or have the reading released"

// exceeds reports whether an energy in millionths of a kilowatt-hour is more than a power
// delivers in a time, with the tolerance.
func exceeds(e flex.Micro, power flex.Watts, d time.Duration) bool {
	most := float64(power) * 1000 * d.Hours() * (100 + Tolerance) / 100
	return float64(e) > most
}

func (b bound) limits() string {
	return watts(b.least) + " to " + watts(b.most) + " kW"
}

func watts(w flex.Watts) string { return number(w.KW()) }

func micro(v flex.Micro) string { return number(float64(v) / 1e6) }
