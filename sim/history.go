package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"flexd/internal/flex"
)

// Kind is what a happening is.
type Kind string

// The kinds of happenings.
const (
	Stay   Kind = "stay"   // a car at its home, from plug-in to plug-out
	Outage Kind = "outage" // the client's endpoint answers 503
	// flexd ends and is opened again on the same database
	Restart Kind = "restart"
	// flexd is killed in the midst of what it writes next
	Kill Kind = "kill"
	// a home's readings are kept back, and come at the end, twice, the newest first
	Late Kind = "late"
	// the home has a main fuse
	Fuse Kind = "fuse"
	// the home has a battery
	Storage Kind = "battery"
	// the user of a car that is plugged in needs something else
	Change Kind = "change"
	// the user of a car that is plugged in wants it charged at once, until the end
	Boost Kind = "boost"
	// all cars together may draw KW from From to To
	Cap Kind = "cap"
	// the grid's side asks for KW less from From to To
	Instruct Kind = "instruct"
	// the weather of all homes: from From to To there is a cold spell
	Weather Kind = "weather"
	// the home has a heat pump, which is judged until To
	Pump Kind = "heat pump"
	// the home has a hot-water tank, which is judged until To
	Tank Kind = "tank"
)

// chargersMax is how many chargers a home may have.
const chargersMax = 3

// Happening is one event of a history. It is taken out of a history whole.
type Happening struct {
	Kind Kind    `json:"kind"`
	Home string  `json:"home,omitempty"` // of all but outages, restarts and kills
	KW   float64 `json:"kw,omitempty"`   // of the charger, the main fuse or the battery
	// which of the home's chargers a car comes to, from 0
	Charger int `json:"charger,omitempty"`
	// of the home's battery
	CapacityKWh float64   `json:"capacity_kwh,omitempty"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	// of a stay and of a change: by 07:00 in London on the day the car leaves
	Need float64 `json:"need_kwh,omitempty"`
	// of a kill: of what was being written, from 0 to 1, that is on disk
	Share float64 `json:"share,omitempty"`

	Climate *Climate `json:"climate,omitempty"` // of the weather
	Rooms   *Rooms   `json:"rooms,omitempty"`   // of a heat pump
	Water   *Water   `json:"water,omitempty"`   // of a tank

	// a planted fault: the charger gives nothing during the stay, or the heater nothing from From to To
	Dead bool `json:"dead,omitempty"`
	// a planted fault: the home's main fuse, or the cap, is half of what flexd is given
	Weak bool `json:"weak,omitempty"`
	// a planted fault: the plug-in is counted and never sent
	Skipped bool `json:"skipped,omitempty"`
	// a planted fault: a kill takes away what was acknowledged at its instant, too
	Forgets bool `json:"forgets,omitempty"`
	// a planted fault: while the instruction lasts chargers answer and do not follow
	Deaf bool `json:"deaf,omitempty"`
	// a planted fault: each charger's first push comes once more at the end of the outage
	Replays bool `json:"replays,omitempty"`
	// a planted fault: the battery charges in one half-hour and gives in the next
	Churns bool `json:"churns,omitempty"`
}

var kinds = []Kind{
	Stay,
	Outage,
	Restart,
	Kill,
	Late,
	Fuse,
	Storage,
	Change,
	Boost,
	Cap,
	Instruct,
	Weather,
	Pump,
	Tank,
}

// valid reports why a happening cannot be played.
func (h Happening) valid() error {
	switch {
	case !slices.Contains(kinds, h.Kind):
		return flex.Fail(flex.Invalid, "no happening is of the kind %q", h.Kind)

	case h.To.Before(h.From):
		return flex.Fail(
			flex.Invalid,
			"a %s ends at %s, before it begins",
			h.Kind,
			h.To.Format(time.RFC3339),
		)

	case h.Share < 0, h.Share > 1:
		return flex.Fail(flex.Invalid, "a share is 0 to 1, not %g", h.Share)

	case h.lacksHeat():
		return flex.Fail(flex.Invalid, "a %s has no climate, rooms or water", h.Kind)

	case slices.Contains([]Kind{Outage, Restart, Kill, Weather}, h.Kind):
		return nil

	case h.fleetWide() && h.KW > 0:
		return nil

	case h.Home == "" && !h.fleetWide():
		return flex.Fail(flex.Invalid, "a %s names no home", h.Kind)

	case h.KW <= 0:
		return flex.Fail(
			flex.Invalid,
			"a %s of %s has no power: kw is above 0",
			h.Kind,
			h.Home,
		)

	case h.Charger < 0, h.Charger >= chargersMax:
		return flex.Fail(
			flex.Invalid,
			"a home's chargers are 0 to %d, not %d",
			chargersMax-1,
			h.Charger,
		)

	case h.Kind == Storage && h.CapacityKWh <= 0:
		return flex.Fail(
			flex.Invalid,
			"the battery of %s has no capacity: capacity_kwh is above 0",
			h.Home,
		)
	}

	return nil
}

// fixed reports whether it is there from the first.
func (h Happening) fixed() bool {
	return slices.Contains([]Kind{Fuse, Storage, Weather, Pump, Tank}, h.Kind)
}

// lacksHeat reports whether it is not said what the weather, a heat pump's rooms or a tank are.
func (h Happening) lacksHeat() bool {
	switch h.Kind {
	case Weather:
		return h.Climate == nil
	case Pump:
		return h.Rooms == nil
	case Tank:
		return h.Water == nil
	}

	return false
}

// fleetWide reports whether the happening is of all homes.
func (h Happening) fleetWide() bool { return h.Kind == Cap || h.Kind == Instruct }

// ready is when the car of a stay is to be ready.
func (h Happening) ready() time.Time { return h.To.Add(-time.Hour) }

// DrawHistory draws what happens at homes in the days from first on: cars that come on four evenings of
// five and want what they want, an endpoint that is down on one evening of three, flexd restarted at night
// on one of three, killed at some hour of each day, and readings that come late. One home of five has a
// second car behind a main fuse that cannot carry both at full power, and half of these a battery. Two
// draws from one seed are the same.
func DrawHistory(
	seed uint64,
	first flex.Day,
	homes, days int,
) []Happening {
	r := stream(seed, 13)
	// apart, so that the rest of a seed stays what it was
	kills := stream(seed, 14)
	supplies := stream(seed, 15)
	caps := stream(seed, 16)
	grid := stream(seed, 17)

	shared := map[int]bool{} // homes with a second charger
	var history []Happening
	for h := range homes {
		supply := drawSupply(supplies, homeName(h), first.Start())
		shared[h] = len(supply) > 0
		history = append(history, supply...)
	}

	for n := range days {
		evening := first.Add(n).Start().Add(17 * time.Hour)
		morning := morningAfter(first.Add(n))

		for h := range homes {
			name := homeName(h)
			history = append(history, drawHome(r, name, evening, morning)...)
			if shared[h] {
				history = append(
					history,
					drawSecond(supplies, name, evening, morning),
				)
			}

			history = append(history, drawWishes(supplies, name, evening)...)
		}

		history = append(history, drawCap(caps, evening, homes)...)
		history = append(history, drawInstruction(grid, evening, homes)...)
		history = append(history, drawFaults(r, evening)...)
		history = append(history, drawKill(kills, evening))
	}

	return history
}

// stream is one of a seed's streams of random numbers.
func stream(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

// morningAfter is when cars leave on the day after one: at eight by the clock of London.
func morningAfter(d flex.Day) time.Time {
	return time.Date(
		d.Year,
		d.Month,
		d.Dom+1,
		8,
		0,
		0,
		0,
		flex.London,
	).UTC()
}

// drawCap draws a cap of some hours in one night of four. Most of the fleet fits below it.
func drawCap(
	r *rand.Rand,
	evening time.Time,
	homes int,
) []Happening {
	from := evening.Add(time.Duration(r.IntN(12*12)) * 5 * time.Minute)
	limit := Happening{
		Kind: Cap,
		KW:   float64(4 + r.IntN(1+3*homes)),
		From: from,
		To:   from.Add(time.Duration(1+r.IntN(6)) * time.Hour),
	}

	if r.IntN(4) > 0 {
		return nil
	}

	return []Happening{limit}
}

// drawInstruction draws an instruction of one to three hours in one night of three.
func drawInstruction(
	r *rand.Rand,
	evening time.Time,
	homes int,
) []Happening {
	from := evening.Add(time.Duration(r.IntN(24)) * flex.HalfHour)
	ask := Happening{
		Kind: Instruct,
		KW:   float64(1 + r.IntN(2*homes)),
		From: from,
		To:   from.Add(time.Duration(2+r.IntN(5)) * flex.HalfHour),
	}

	if r.IntN(3) > 0 {
		return nil
	}

	return []Happening{ask}
}

// drawFaults draws when in an evening the endpoint is down, and when flexd is restarted.
func drawFaults(r *rand.Rand, evening time.Time) []Happening {
	down := evening.Add(time.Duration(r.IntN(120)) * 5 * time.Minute)

	var out []Happening
	if r.IntN(3) == 0 {
		up := down.Add(time.Duration(1+r.IntN(12)) * 10 * time.Minute)
		out = append(out, Happening{
			Kind: Outage,
			From: down,
			To:   up,
		})
	}

	ends := evening.Add(time.Duration(r.IntN(150)) * 5 * time.Minute)
	if r.IntN(3) == 0 {
		out = append(out, Happening{
			Kind: Restart,
			From: ends,
			To:   ends,
		})
	}

	return out
}

// drawKill draws when in the day after the evening's begin flexd is killed, and what is on disk by then.
func drawKill(r *rand.Rand, evening time.Time) Happening {
	at := evening.Add(time.Duration(r.IntN(24*12)) * 5 * time.Minute)

	return Happening{
		Kind:  Kill,
		From:  at,
		To:    at,
		Share: r.Float64(),
	}
}

func homeName(n int) string { return fmt.Sprint("car", n) }

// drawSupply draws what a home has beside its charger. Nothing means that it has neither a fuse that is
// known nor a battery.
func drawSupply(
	r *rand.Rand,
	home string,
	at time.Time,
) []Happening {
	if r.IntN(5) > 0 {
		return nil
	}

	var out []Happening
	out = append(out, Happening{
		Kind: Fuse,
		Home: home,
		KW:   float64(8 + r.IntN(5)),
		From: at,
		To:   at,
	})

	if r.IntN(2) == 0 {
		return out
	}

	return append(out, Happening{
		Kind:        Storage,
		Home:        home,
		KW:          3,
		CapacityKWh: 10,
		From:        at,
		To:          at,
	})
}

// drawStay draws when a car comes to a home in an evening and what it needs.
func drawStay(
	r *rand.Rand,
	home string,
	evening, morning time.Time,
) Happening {
	return Happening{
		Kind: Stay,
		Home: home,
		KW:   chargerPower(home),
		Need: float64(2 + r.IntN(30)),
		From: evening.Add(time.Duration(r.IntN(60)) * 5 * time.Minute),
		To:   morning,
	}
}

// drawSecond draws the stay of a home's second car.
func drawSecond(
	r *rand.Rand,
	home string,
	evening, morning time.Time,
) Happening {
	stay := drawStay(r, home, evening, morning)
	stay.Charger = 1

	return stay
}

// drawWishes draws what the user of a home's first car asks for in a night, beside what was asked for
// when it came: something else in one night of four, to charge at once in one of six.
func drawWishes(
	r *rand.Rand,
	home string,
	evening time.Time,
) []Happening {
	at := evening.Add(time.Duration(r.IntN(12*12)) * 5 * time.Minute)
	wish := Happening{
		Home: home,
		KW:   chargerPower(home),
		From: at,
		To:   at,
		Need: float64(2 + r.IntN(30)),
	}

	switch r.IntN(12) {
	case 0, 1, 2:
		wish.Kind = Change
	case 3, 4:
		wish.Kind = Boost
		wish.Need = 0
		wish.To = at.Add(time.Duration(1+r.IntN(12)) * 10 * time.Minute)
	default:
		return nil
	}

	return []Happening{wish}
}

// chargerPower is what the chargers of a home give, in kW.
func chargerPower(home string) float64 {
	return []float64{3.7, 7.4}[len(home)%2]
}

// drawHome draws what happens at one home in an evening.
func drawHome(
	r *rand.Rand,
	home string,
	evening, morning time.Time,
) []Happening {
	stay := drawStay(r, home, evening, morning)

	var out []Happening
	if r.IntN(5) > 0 {
		out = append(out, stay)
	}

	from := evening.Add(time.Duration(r.IntN(12)) * time.Hour)
	if r.IntN(4) == 0 {
		out = append(out, Happening{
			Kind: Late,
			Home: home,
			KW:   stay.KW,
			From: from,
			To:   from.Add(3 * time.Hour),
		})
	}

	return out
}

// ShrinkHistory takes out of a history what it fails without, until nothing more can go.
func ShrinkHistory(
	history []Happening,
	fails func([]Happening) (bool, error),
) ([]Happening, error) {
	size := (len(history) + 1) / 2
	for size > 0 {
		less, smaller, err := shrinkBy(history, size, fails)
		if err != nil {
			return nil, err
		}

		history = less
		if !smaller {
			size /= 2
		}
	}

	return history, nil
}

// shrinkBy takes out the first run of so many happenings without which the history still fails.
func shrinkBy(
	history []Happening,
	size int,
	fails func([]Happening) (bool, error),
) (less []Happening, smaller bool, err error) {
	for i := 0; i+size <= len(history); i++ {
		less := slices.Delete(slices.Clone(history), i, i+size)
		if len(less) == 0 {
			continue
		}

		failed, err := fails(less)
		if err != nil || failed {
			return less, failed, err
		}
	}

	return history, false, nil
}
