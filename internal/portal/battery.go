package portal

import (
	"math"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// tenths rounds a price for people.
func tenths(pence float64) float64 { return math.Round(10*pence) / 10 }

// becauseText says in a sentence why a battery does what it does; empty where what it does says that.
func (l *speech) becauseText(s control.BatteryStretch) string {
	later := ""
	if !s.Later.IsZero() {
		later = l.when(s.Later, flex.London, "15:04 on Monday")
	}

	switch s.Cause {
	case control.BatteryKeepsForLater:
		return l.say(
			"It keeps its energy for {1}, when a kWh is worth {2} p and not {3} p.",
			later,
			tenths(s.LaterPence),
			tenths(s.Now),
		)
	case control.BatteryKeepsForSame:
		return l.say(
			"It keeps its energy for {1}, when a kWh is worth {2} p, as now.",
			later,
			tenths(s.Now),
		)
	case control.BatteryKeepsPastEnd:
		return l.say("What it stores is worth more later than {1} p a kWh.", tenths(s.Now))

	case control.BatteryKeepsReserve:
		return l.say("It is down to its reserve, which is kept.")
	case control.BatteryWaitsForOther:
		return l.waitText(s)
	case control.BatteryWaitsForCap:
		return l.say("The network leaves it less power than it takes.")

	case control.BatteryBuys:
		if later == "" {
			return l.say("A kWh costs {1} p.", tenths(s.Now))
		}

		return l.say(
			"A kWh costs {1} p, and is worth {2} p at {3}.",
			tenths(s.Now),
			tenths(s.LaterPence),
			later,
		)

	case control.BatterySells:
		return l.say("A kWh earns {1} p, more than it is worth later.", tenths(s.Now))
	case control.BatteryOrdered:
		return l.say("The grid asks for it.")
	case control.BatteryGainsNothing:
		return l.say("Nothing would be gained by moving energy.")
	}

	return ""
}

// waitText says what of its site a battery waits for.
func (l *speech) waitText(s control.BatteryStretch) string {
	until := clockIn(s.Until, flex.London)

	switch s.Waits {
	case control.WaitsForFuse:
		return l.say("The car needs the main fuse until {1}.", until)
	case control.WaitsForDischarging:
		return l.say("The car gives electricity back until {1}, and the battery is not charged from the car.", until)
	}

	return l.say("The car charges until {1}, and the battery is not emptied into the car.", until)
}

// batteryPaysText says what the home pays by the plan of its only battery, and what the plan counts for wear.
func (l *speech) batteryPaysText(b control.HouseholdBattery) string {
	bill := flex.Pence(math.Round(b.Plan.Bill))
	until := l.when(b.Until, flex.London, "15:04 on Monday")
	text := l.say(
		"Until {1} your home is expected to pay {2} for electricity, less what is then left in the battery.",
		until,
		bill,
	)
	if bill < 0 {
		text = l.say(
			"Until {1} electricity is expected to bring your home {2}, what is then left in the battery included.",
			until,
			-bill,
		)
	}

	if saved := flex.Pence(math.Round(b.Idle.Bill)) - bill; saved > 0 {
		text += " " + l.say("That is {1} better than if the battery only covered your home.", saved)
	}

	return text + l.wearText(b)
}

// wearText says what a battery's plan counts for wear, after a space; empty if nothing.
func (l *speech) wearText(b control.HouseholdBattery) string {
	wear := flex.Pence(math.Round(b.Plan.Wear))
	if wear <= 0 {
		return ""
	}
	return " " + l.say("The plan also counts {1} for wear of the battery, which is on no bill.", wear)
}

// batterySavesText says what the plan of one of several batteries saves: what the home pays is said of all of them together.
func (l *speech) batterySavesText(b control.HouseholdBattery) string {
	text := l.say("By its plan your home pays no less than if this battery only covered it.")
	if saved := flex.Pence(math.Round(b.Idle.Bill)) - flex.Pence(math.Round(b.Plan.Bill)); saved > 0 {
		text = l.say("By its plan your home is {1} better off than if this battery only covered it.", saved)
	}

	return text + l.wearText(b)
}

// batteriesPayText says what a home pays by the plans of its batteries.
func (l *speech) batteriesPayText(b control.HouseholdBill) string {
	bill := flex.Pence(math.Round(b.Pence))
	until := l.when(b.Until, flex.London, "15:04 on Monday")
	if bill < 0 {
		return l.say(
			"Until {1} electricity is expected to bring your home {2}, what is then left in the batteries included.",
			until,
			-bill,
		)
	}

	return l.say(
		"Until {1} your home is expected to pay {2} for electricity, less what is then left in the batteries.",
		until,
		bill,
	)
}
