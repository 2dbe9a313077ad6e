package problem

import (
	"math"
	"testing"

	"github.com/go-json-experiment/json"

	"flexd/internal/engine/random"
)

// homeFamilies are the sub-families of home that are drawn at random.
var homeFamilies = []string{"bat-ev", "fuse", "v2g", "short", "negative", "tank", "heat", "all"}

// homeDraw draws homes like the samples. It mixes their series, and draws devices from the
// ranges of theirs.
type homeDraw struct {
	random.Source
	series []homeLine
}

func newHomeDraw(t testing.TB, seed uint64) *homeDraw {
	d := &homeDraw{Source: random.Source(seed)}
	for _, line := range homes(t) {
		var l homeLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		d.series = append(d.series, l)
	}
	return d
}

func (d *homeDraw) chance(p float64) bool { return d.Between(0, 1) < p }

func (d *homeDraw) between(lo, hi float64) float64 {
	return math.Round((lo+(hi-lo)*d.Between(0, 1))*100) / 100
}

func (d *homeDraw) of(values ...float64) float64 { return values[d.index(len(values))] }

func (d *homeDraw) index(n int) int { return min(int(d.Between(0, 1)*float64(n)), n-1) }

// stretch returns n values of a series, from a slot on; the series repeats.
func stretch(v []float64, from, n int, factor float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v[(from+i)%len(v)] * factor
	}
	return out
}

// home draws one home of a sub-family.
func (d *homeDraw) home(family string, n int) homeLine {
	prices, load, roof := d.series[d.index(len(d.series))], d.series[d.index(len(d.series))], d.series[d.index(len(d.series))]
	from := 0
	if n < 48 {
		from = d.index(36)
	}
	l := homeLine{siteFields: siteFields{
		SlotHours: 0.5, Import: stretch(prices.Import, from, n, 1), Export: stretch(prices.Export, from, n, 1),
		Load: stretch(load.Load, from, n, d.between(0.7, 1.5)), PV: stretch(roof.PV, from, n, d.between(0, 1.5)),
		Curtailable: d.chance(0.5), GridImportKW: d.of(8, 9.2, 11, 14, 18, 23), GridExportKW: d.of(0, 3.68, 5, 10),
	}}

	d.tariff(&l, family)
	d.devices(&l, family, n)
	if len(l.Batteries) > 0 && len(l.Cars) > 0 {
		l.NoBatteryToCar = d.chance(0.3)
	}
	if !l.Curtailable {
		for t := range l.PV { // what cannot be curtailed must have somewhere to go
			l.PV[t] = min(l.PV[t], l.Load[t]+l.GridExportKW*l.SlotHours)
		}
	}
	return l
}

// tariff replaces the prices of some homes.
func (d *homeDraw) tariff(l *homeLine, family string) {
	style := d.index(4)
	if family == "negative" {
		style = 4 + d.index(2)
	}

	for t := range l.Import {
		switch style {
		case 0:
			l.Import[t], l.Export[t] = 27, 15
		case 4:
			l.Import[t] -= 14

			l.Export[t] -= d.of(0, 4, 4, 8)
		case 5:
			l.Export[t] = 15
		default:
			if l.Import[t] < l.Export[t] || l.Import[t] < 0 {
				l.Import[t], l.Export[t] = max(0, l.Export[t]), max(0, min(l.Import[t], l.Export[t]))
			}
		}
	}
}

// devices draws what a sub-family has.
func (d *homeDraw) devices(l *homeLine, family string, n int) {
	batteries, cars := 0, 0
	switch family {
	case "bat-ev":
		batteries, cars = 1+d.index(2), 1
	case "fuse", "short":
		l.GridImportKW = d.of(3.7, 5.5, 7, 9.2)

		batteries, cars = d.index(2), 1+d.index(2)
	case "v2g":
		batteries, cars = d.index(2), 1+d.index(2)
	case "negative":
		batteries, cars = 1+d.index(2), d.index(2)
	case "tank", "heat":
		batteries, cars = d.index(2), d.index(2)
	default:
		batteries, cars = 1, 1+d.index(2)
	}

	for range batteries {
		l.Batteries = append(l.Batteries, d.battery())
	}
	for range cars {
		l.Cars = append(l.Cars, d.car(family, n))
	}
	if family == "tank" || family == "all" || family == "negative" && d.chance(0.2) {
		l.Tank = d.tank(n)
	}
	if family == "heat" || family == "all" {
		l.Heat = d.heat(n)
	}
}

func (d *homeDraw) battery() homeBattery {
	size := d.of(5.2, 9.5, 13.5, 19)
	power := d.of(2.6, 3.6, 5)
	least := size * d.of(0, 0.04, 0.1, 0.4)
	return homeBattery{storageFields{
		SoCMin: least, SoCMax: size, deviceFields: deviceFields{
			SoCInit: max(least, d.between(least, size)), ChargeKW: power, DischargeKW: power,
			EffCharge: d.of(0.9, 0.95, 0.97), EffDischarge: d.of(0.9, 0.95, 0.97), Wear: d.of(0, 1.5, 4), Terminal: d.of(0, 0, 8, 20),
		},
	}}
}

func (d *homeDraw) car(family string, n int) homeCar {
	c := homeCar{MaxKW: d.of(3.6, 7.4, 11), AvailHours: make([]float64, n), MayChargePeak: true}
	first := d.index(max(1, n/3))
	last := min(n-1, first+n/3+d.index(max(1, n/3)))
	for t := first; t <= last; t++ {
		c.AvailHours[t] = 0.5
	}
	c.AvailHours[first], c.AvailHours[last] = d.of(0.1, 0.15, 0.35, 0.45), d.of(0.15, 0.2166666667, 0.3666666667, 0.4833333333)

	if family != "bat-ev" && d.chance(0.6) {
		c.MinKW = d.of(1.4, 1.4, min(c.MaxKW, 4.2))
		c.StartCost = d.of(0, 1, 4)
	}
	room := c.MaxKW * 0.5 * float64(last-first)
	c.Energy = d.between(0.1, 0.8) * room
	if family == "short" && d.chance(0.7) {
		c.Energy = d.of(0.3, 1.2, 2) * room * d.between(0.5, 1.5)
	}

	if family == "v2g" || (family == "all" || family == "negative" || family == "short") && d.chance(0.3) {
		c.V2G = d.v2g(&c)
	} else if d.chance(0.3) {
		c.MayChargePeak = d.chance(0.5)
		for t := range n {
			c.OffPeak = append(c.OffPeak, float64(t*2/max(1, n/2)%2))
		}
	}
	return c
}

func (d *homeDraw) v2g(c *homeCar) *homeV2G {
	size := d.of(41.6, 46.8, 77)
	v := &homeV2G{
		SoCArrival: size * d.between(0.2, 0.9), SoCMax: size, Reserve: size * d.of(0.3, 0.4, 0.5), Target: size * d.of(0.6, 0.8, 1),
		DischargeKW: d.of(3.6, 5), EffCharge: d.of(0.9, 0.93, 0.95), EffDischarge: d.of(0.9, 0.93, 0.95), Wear: d.of(0.5, 2, 5),
	}
	if c.MinKW > 0 {
		v.MinDischargeKW = d.of(0, 1.4)
	}
	return v
}

func (d *homeDraw) tank(n int) *homeTank {
	size := d.of(7, 9.3, 14)
	k := &homeTank{
		ElementKW: d.of(2.7, 2.8, 3), Min: size * d.of(0.05, 0.15), Max: size, Loss: d.of(0.003, 0.006, 0.01),
		Draw: make([]float64, n), StartCost: d.of(0, 0.5), Terminal: d.between(4, 20),
	}
	k.Init = size * d.between(0.5, 0.9)
	for t := range k.Draw {
		if t%48 < 2 || t%24 > 14 && d.chance(0.4) {
			k.Draw[t] = d.between(0.05, 1.1)
		}
	}
	return k
}

func (d *homeDraw) heat(n int) *homeHeat {
	k := &homeHeat{
		Capacity: d.of(6, 9, 14), Resistance: d.of(4, 5, 8), Init: d.between(18, 21), Penalty: d.of(10, 20, 40),
		MinKW: d.of(0.62, 0.75, 1, 1.05), MaxKW: d.of(2.5, 3, 4), StartCost: d.of(0, 1), Reference: 17,
		Terminal: d.between(12, 30),
	}
	base := d.between(-4, 8)
	for t := range n {
		day := math.Cos(float64(t) / 24 * math.Pi)
		k.Outdoor = append(k.Outdoor, base+3*day)
		k.COP = append(k.COP, 2.9+0.08*base/2+0.15*day)
		k.Gain = append(k.Gain, 0.25+0.2*max(0, day))

		low := 17.5
		if hour := (12 + t/2) % 24; hour >= 6 && hour < 9 || hour >= 16 && hour < 23 {
			low = 19.5
		}
		k.Low, k.High = append(k.Low, low), append(k.High, low+3)
	}
	return k
}

// line writes a drawn home as a problem.
func (l homeLine) line(t testing.TB, id string) []byte {
	t.Helper()
	out, err := Append(nil, struct {
		ID        string `json:"id"`
		Family    string `json:"family"`
		Subfamily string `json:"subfamily"`
		Slots     int    `json:"slots"`
		homeLine
	}{id, "home", id, len(l.Load), l})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
