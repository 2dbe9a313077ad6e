package heat

// What a house is taken to be of which only the heat pump's power is known.
const (
	// designOutdoor is how cold it is, in degrees, where so much of the power keeps the rooms at designRoom.
	designOutdoor, designRoom, designPart = -3.0, 20.0, 0.8
	// Hours is how long a house takes to lose 63 % of its difference to the outdoors.
	Hours = 40.0
)

// Assumed is a house that a heat pump of a power in W keeps warm on the design day.
func Assumed(power float64) Building {
	loss := designPart * power * COP(designOutdoor) / (designRoom - designOutdoor)
	return Building{Loss: loss, Capacity: loss * Hours, Power: power}
}

// COP is the heat that a heat pump gives for a unit of electricity, at a temperature outdoors.
func COP(outdoor float64) float64 {
	return max(1.5, min(5, 3.2+0.07*(outdoor-7)))
}
