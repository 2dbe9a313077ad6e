package flex

import "fmt"

// Celsius is a temperature in degrees.
type Celsius float64

// Steering is how a heat pump or a tank takes what was planned for it.
type Steering string

// The ways. Windows are the only one of a tank.
const (
	// SteerWindows has it on or off: its power is the limit, or 0.
	SteerWindows Steering = "windows"
	// SteerSGReady has it take one of the four states of the label SG Ready.
	SteerSGReady Steering = "sg_ready"
	// SteerOffset moves what it keeps by whole kelvins.
	SteerOffset Steering = "temperature_offset"
)

// The four states of the label SG Ready.
const (
	SGOff    = 1 // the heat pump is off, for two hours at most
	SGNormal = 2
	SGMore   = 3 // it is recommended to run
	SGForced = 4 // it is forced to run
)

// Heat is what an installer or a household set of a heat pump or a hot-water tank. What was not given is
// taken to be what the service's documents say.
type Heat struct {
	Low       Optional[Celsius] // of the comfort band
	High      Optional[Celsius]
	NightLow  Optional[Celsius] // of a room by night, from 22:00 to 06:00
	NightHigh Optional[Celsius]
	Setpoint  Optional[Celsius] // what a heat pump keeps by itself
	Volume    Optional[float64] // litres of a tank
	Steering  Steering          // empty: SteerWindows
}

// The limits of what may be set.
const (
	RoomLowest, RoomHighest = Celsius(5), Celsius(30)
	TankLowest, TankHighest = Celsius(30), Celsius(75)
	// RoomBandMin is how wide the band of a room is at least, and TankBandMin that of a tank.
	RoomBandMin, TankBandMin = Celsius(0.5), Celsius(5)
	// VolumeMin and VolumeMax are litres.
	VolumeMin, VolumeMax = 20.0, 1000.0
)

// Heats reports whether assets of the type are planned by the heat that they keep.
func (t AssetType) Heats() bool { return t == HotWaterTank || t == HeatPump }

// Check says what is wrong with it for an asset of a type, and of which member; a blank member means all of it.
func (h *Heat) Check(t AssetType) (member, why string) {
	switch {
	case *h == Heat{}:
		return "", ""
	case t == HotWaterTank:
		return h.checkTank()
	case t == HeatPump:
		return h.checkRoom()
	}

	return "", fmt.Sprintf(
		"a %s keeps no heat: only a %s and a %s do",
		t,
		HeatPump,
		HotWaterTank,
	)
}

func (h *Heat) checkTank() (member, why string) {
	if h.NightLow.Given || h.NightHigh.Given || h.Setpoint.Given {
		return "", "a tank has one band by day and by night, and no setpoint: give comfort_low_c and comfort_high_c"
	}

	if h.Steering != "" && h.Steering != SteerWindows {
		return "steering", "a tank is steered by windows"
	}

	if v := h.Volume; v.Given && (v.Value < VolumeMin || v.Value > VolumeMax) {
		return "volume_l", fmt.Sprintf("a tank holds %g to %g litres", VolumeMin, VolumeMax)
	}

	return checkBand("comfort", h.Low, h.High, TankLowest, TankHighest, TankBandMin)
}

func (h *Heat) checkRoom() (member, why string) {
	if h.Volume.Given {
		return "volume_l", "a heat pump has no volume"
	}

	switch h.Steering {
	case "", SteerWindows, SteerSGReady, SteerOffset:
	default:
		return "steering", fmt.Sprintf(
			"give %s, %s or %s",
			SteerWindows,
			SteerSGReady,
			SteerOffset,
		)
	}

	if s := h.Setpoint; s.Given && (s.Value < RoomLowest || s.Value > RoomHighest) {
		return "setpoint_c", fmt.Sprintf(
			"a room is kept at %g to %g degrees",
			RoomLowest,
			RoomHighest,
		)
	}

	if h.NightLow.Given && !h.Low.Given {
		return "night_low_c", "the band by day is missing: give comfort_low_c and comfort_high_c too"
	}

	member, why = checkBand("comfort", h.Low, h.High, RoomLowest, RoomHighest, RoomBandMin)
	if why != "" {
		return member, why
	}

	return checkBand("night", h.NightLow, h.NightHigh, RoomLowest, RoomHighest, RoomBandMin)
}

// checkBand says what is wrong with a band, whose members begin with a name.
func checkBand(
	name string,
	low, high Optional[Celsius],
	lowest, highest, least Celsius,
) (member, why string) {
	if low.Given != high.Given {
		return name + "_low_c", fmt.Sprintf("give %[1]s_low_c and %[1]s_high_c together", name)
	}
	if !low.Given {
		return "", ""
	}

	if low.Value < lowest || low.Value > highest {
		return name + "_low_c", fmt.Sprintf(
			"ensure this value is from %g to %g degrees",
			lowest,
			highest,
		)
	}
	if high.Value < lowest || high.Value > highest {
		return name + "_high_c", fmt.Sprintf(
			"ensure this value is from %g to %g degrees",
			lowest,
			highest,
		)
	}
	if high.Value < low.Value+least {
		return name + "_high_c", fmt.Sprintf("a band is at least %g degrees wide", least)
	}

	return "", ""
}

// HeatSignals are what steers a heat pump in each step of its schedule: a state of SG Ready, or by how many kelvins
// its setpoint is moved.
type HeatSignals struct {
	Steering Steering
	Signals  []int
}
