package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"flexd/internal/flex"
)

// Rooms are a building with its heat pump, as physics has it: the air, the walls and the water of the radiators or of
// the floor each store heat. It is no model of flexd's, which knows one store and a fixed rule of the heat that
// electricity gives.
type Rooms struct {
	Air     float64 `json:"air_wh_per_k"`   // what the air and the furniture store
	Walls   float64 `json:"walls_wh_per_k"` // what walls and floors store
	Water   float64 `json:"water_wh_per_k"` // what the radiators store
	Leak    float64 `json:"leak_w_per_k"`   // from the air to the outdoors
	Wall    float64 `json:"wall_w_per_k"`   // from the walls to the outdoors
	Couple  float64 `json:"couple_w_per_k"` // between air and walls
	Emitter float64 `json:"emitter_w_per_k"`
	Glass   float64 `json:"glass_m2"`
	People  float64 `json:"people_w"`   // what people and devices give
	Carnot  float64 `json:"efficiency"` // of the heat pump, as a part of the best that is possible

	Low      float64       `json:"low_c"` // the comfort band
	High     float64       `json:"high_c"`
	NightLow float64       `json:"night_low_c"` // from 22:00 to 06:00
	Setpoint float64       `json:"setpoint_c"`
	Steering flex.Steering `json:"steering"`
	// whether its thermometer outdoors is read by the client
	Outdoors bool `json:"outdoors,omitempty"`
}

// drawRooms draws a building and its heat pump's power in kW of electricity. Half of the buildings lose more than
// flexd assumes by that power, some of them twice as much.
func drawRooms(r *rand.Rand) (*Rooms, float64) {
	loss := 100 + 180*r.Float64()
	part := 0.3 + 0.3*r.Float64()
	hours := 20 + 50*r.Float64() // that the building takes to lose most of its heat

	b := &Rooms{
		Leak:    loss * part,
		Wall:    loss * (1 - part),
		Air:     loss * hours * 0.15,
		Walls:   loss * hours * 0.85,
		Couple:  loss * (6 + 4*r.Float64()),
		Water:   60 + 60*r.Float64(),
		Emitter: loss * (1 + r.Float64()),
		Glass:   2 + 4*r.Float64(),
		People:  150 + 250*r.Float64(),
		Carnot:  0.42 + 0.1*r.Float64(),
	}

	if r.IntN(2) == 0 { // a warm floor, slow
		b.Water, b.Emitter = b.Water*6, b.Emitter*2
	}

	b.Low = 18.5 + 0.5*float64(r.IntN(4))
	b.High = b.Low + 2.5 + 0.5*float64(r.IntN(2))
	b.NightLow = b.Low - 2*float64(r.IntN(2))
	b.Steering = []flex.Steering{flex.SteerWindows, flex.SteerSGReady, flex.SteerOffset}[r.IntN(3)]
	b.Outdoors = r.IntN(2) == 0
	b.Setpoint = b.Low + 1
	if b.Steering == flex.SteerWindows { // so that heat can be stored ahead
		b.Setpoint = b.High - 0.5
	}

	// What it needs in the cold, with something over.
	power := loss * (21 + 5) / b.cop(-5) * (1.05 + 0.5*r.Float64()) / 1000

	return b, math.Round(power*10) / 10
}

// kelvin is 0 degrees Celsius.
const kelvin = 273.15

// cop is the heat that the heat pump gives for electricity: a part of what thermodynamics allows between the outdoors
// and the water that it heats, which is the hotter the colder it is. Near 0 degrees it loses something to ice.
func (b *Rooms) cop(outdoor float64) float64 {
	flow := kelvin + max(28, 36-0.6*(outdoor-7))
	source := kelvin + outdoor - 5
	cop := b.Carnot * flow / (flow - source)
	if outdoor > -4 && outdoor < 4 {
		cop *= 0.93
	}

	return cop
}

// order is what a heat pump was sent to do.
type order struct {
	off  bool
	more float64 // kelvins that its setpoint is moved by
}

// rooms is a building at an instant.
type rooms struct {
	*Rooms
	power   float64 // W of electricity at most
	air     float64 // degrees
	walls   float64
	water   float64
	runs    bool
	draws   float64 // W of electricity in the last minute
	metered float64 // Wh since it was last metered
	record
}

// newRooms is a building that has its setpoint.
func newRooms(
	b *Rooms,
	power, outdoor float64,
) *rooms {
	share := b.Wall / (b.Wall + b.Couple)
	walls := b.Setpoint - share*(b.Setpoint-outdoor)

	return &rooms{Rooms: b, power: power, air: b.Setpoint, walls: walls, water: b.Setpoint + 5}
}

// The thermostat of a heat pump: it starts below what it keeps and stops above it, runs at no less than a part of its
// power, and keeps the rooms from frost and damp whatever it was sent.
const (
	thermostat = 0.2  // degrees
	leastPart  = 0.3  // of its power
	safeRoom   = 15.0 // degrees
)

// part is the part of its power that the heat pump runs at.
func (b *rooms) part(o order) float64 {
	keeps := b.Setpoint + o.more
	if o.off {
		keeps = safeRoom
	}

	if b.air < keeps-thermostat {
		b.runs = true
	}
	if b.air > keeps+thermostat || o.off && b.air > safeRoom+thermostat {
		b.runs = false
	}
	if !b.runs {
		return 0
	}

	return max(leastPart, min(1, (keeps+thermostat-b.air)/(2*thermostat)))
}

// step lets a minute pass.
func (b *rooms) step(
	at time.Time,
	around air,
	o order,
	dead bool,
) {
	const hours = 1.0 / 60
	b.draws = b.power * b.part(o)
	if dead {
		b.draws = 0
	}

	heat := b.draws * b.cop(around.outdoor)
	given := b.Emitter * (b.water - b.air)
	between := b.Couple * (b.air - b.walls)
	free := b.People*occupancy(at) + b.Glass*around.sun
	b.water += (heat - given) * hours / b.Water
	b.air += (given + free/2 - between - b.Leak*(b.air-around.outdoor)) * hours / b.Air
	b.walls += (free/2 + between - b.Wall*(b.walls-around.outdoor)) * hours / b.Walls
	b.metered += b.draws * hours
}

// note has the last minute count.
func (b *rooms) note(at time.Time) {
	low, high := b.band(at)
	b.judge(b.air, low, high, b.draws > 0)
	b.count(at, b.draws)
}

// occupancy is the part of the heat of people and devices that there is at an hour: less by night and around noon.
func occupancy(at time.Time) float64 {
	switch hour := at.In(flex.London).Hour(); {
	case hour < 6, hour >= 23:
		return 0.5
	case hour >= 9 && hour < 16:
		return 0.7
	}

	return 1.4
}

// band is the comfort band at an instant.
func (b *Rooms) band(at time.Time) (low, high float64) {
	hour := at.In(flex.London).Hour()
	if hour >= 22 || hour < 6 {
		return b.NightLow, b.High
	}

	return b.Low, b.High
}

// record is what came of a device.
type record struct {
	outside int     // minutes in which it was not in its comfort band
	energy  float64 // Wh that it drew
	pence   float64 // that those cost by the tariff of the simulated homes
}

// bandSlack is what a thermometer shows, in degrees.
const bandSlack = 0.1

// judge counts a minute: below the band, or above it and heated.
func (r *record) judge(
	temp, low, high float64,
	heated bool,
) {
	if temp < low-bandSlack || heated && temp > high+bandSlack {
		r.outside++
	}
}

// What a kWh of the simulated homes costs, in pence: flexd assumes the same where a tariff names no price.
const (
	nightRate = 9.0
	dayRate   = 28.0
)

// count counts a minute's power.
func (r *record) count(at time.Time, watts float64) {
	const hours = 1.0 / 60
	rate := dayRate
	local := at.In(flex.London)
	if minute := 60*local.Hour() + local.Minute(); minute >= 30 && minute < 5*60+30 {
		rate = nightRate
	}

	r.energy += watts * hours
	r.pence += watts * hours / 1000 * rate
}
