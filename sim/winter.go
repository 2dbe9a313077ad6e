package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// DrawWinter is DrawHistory of homes that are heated: two of three have a heat pump, two of three a hot-water tank,
// and each has a main fuse. The weather is drawn too, and is made up.
func DrawWinter(
	seed uint64,
	first flex.Day,
	homes, days int,
) []Happening {
	history := DrawHistory(seed, first, homes, days)
	r := stream(seed, 18)
	start, end := first.Start(), first.Add(days).Start()

	var added []Happening
	for n := range homes {
		name := homeName(n)
		heats := drawHeaters(r, name, start, end)
		fuse := float64(12 + r.IntN(12))
		added = append(added, heats...)

		sum := 0.0
		for _, h := range heats {
			sum += h.KW
		}

		known := slices.IndexFunc(history, func(h Happening) bool {
			return h.Kind == Fuse && h.Home == name
		})
		if known >= 0 {
			history[known].KW += sum
			continue
		}

		added = append(added, Happening{
			Kind: Fuse,
			Home: name,
			KW:   fuse,
			From: start,
			To:   start,
		})
	}

	spell := drawClimate(r, first, days)
	spell.To = flex.Earlier(spell.To, end)

	return append(append(history, spell), added...)
}

// drawHeaters draws the heat pump and the tank of a home, as far as it has them.
func drawHeaters(
	r *rand.Rand,
	home string,
	start, end time.Time,
) []Happening {
	rooms, power := drawRooms(r)
	pump := Happening{
		Kind:  Pump,
		Home:  home,
		KW:    power,
		From:  start,
		To:    end,
		Rooms: rooms,
	}

	tank := Happening{
		Kind:  Tank,
		Home:  home,
		KW:    2.5 + 0.5*float64(r.IntN(2)),
		From:  start,
		To:    end,
		Water: drawWater(r),
	}

	var out []Happening
	if r.IntN(3) > 0 {
		out = append(out, pump)
	}
	if r.IntN(3) > 0 {
		out = append(out, tank)
	}

	return out
}

// heat puts a heater into a home.
func (h *household) heat(e Happening, w *whole) {
	device := &heater{
		name:  fmt.Sprintf("%s-%d", e.Home, 10+len(h.heaters)),
		power: flex.FromKW(e.KW),
		ends:  e.To,
		at:    w.time(),
	}

	if e.Dead {
		device.dead = flex.Span{From: e.From, To: e.To}
	}

	power := float64(device.power)
	if e.Kind == Pump {
		outdoor := w.weather.at(device.at).outdoor
		device.rooms = newRooms(e.Rooms, power, outdoor)
		device.roomsFree = newRooms(e.Rooms, power, outdoor)
	} else {
		device.water = newWater(e.Water, power)
		device.waterFree = newWater(e.Water, power)
	}

	h.heaters = append(h.heaters, device)
}

// heating is what the heaters of a home draw together at most, in kW.
func (h *household) heating() float64 {
	sum := 0.0
	for _, device := range h.heaters {
		sum += device.power.KW()
	}

	return sum
}

// request is the heater as it is registered.
func (h *heater) request() client.OnboardingAssetRequest {
	kind := client.AssetHotWaterTank
	properties := client.AssetProperties{PowerKW: new(h.power.KW())}

	if b := h.rooms; b != nil {
		kind = client.AssetHeatPump
		properties.Heat = &client.HeatProperties{
			ComfortLowC:  &b.Low,
			ComfortHighC: &b.High,
			NightLowC:    &b.NightLow,
			NightHighC:   &b.High,
			SetpointC:    &b.Setpoint,
			Steering:     string(b.Steering),
		}
	} else {
		properties.Heat = &client.HeatProperties{
			ComfortLowC:  &h.water.Low,
			ComfortHighC: &h.water.High,
			VolumeL:      &h.water.Litres,
		}
	}

	return client.OnboardingAssetRequest{
		ExternalID: h.name,
		Type:       kind,
		Properties: &properties,
	}
}

// economy7 is the tariff of all cars and batteries that are simulated, and siteTariff that of a home with heaters.
var (
	economy7 = client.Tariff{
		OffPeakTimes: "00:30-05:30",
		Timezone:     "Europe/London",
		TariffType:   client.TariffDualRate,
	}

	siteTariff = client.TariffRequest{
		TariffType:           client.TariffDualRate,
		TariffCheapStartTime: new(client.WallTime(30 * time.Minute)),
		TariffCheapEndTime:   new(client.WallTime(5*time.Hour + 30*time.Minute)),
	}
)

// connectHeaters has the heaters take what flexd sends to the assets, which come in their order.
func (w *whole) connectHeaters(
	ctx context.Context,
	place *household,
	assets []client.InitialiseAssetResult,
) error {
	for i, h := range place.heaters {
		h.asset, h.cut = assets[i].AssetID, w.outages()
		w.heaters[h.name] = h
	}

	if len(place.heaters) == 0 {
		return nil
	}

	_, err := w.client.UpdateSite(
		ctx,
		place.site,
		client.SiteUpdateRequest{Tariff: &siteTariff},
	)

	return err
}

// outages are when a device may not be reached: while the endpoint is out of reach, and for an hour after that, until
// what could not be sent has been tried again.
func (w *whole) outages() []flex.Span {
	var list []flex.Span
	for _, h := range w.unsteady {
		if h.Kind == Outage {
			list = append(list, flex.Span{From: h.From, To: h.To.Add(time.Hour)})
		}
	}

	return list
}

// removeHeaters takes all heaters from flexd once no law is held of them any more: to plan them each half-hour is most of
// what a heated home costs.
func (w *whole) removeHeaters(ctx context.Context) error {
	for _, name := range w.names() {
		for _, h := range w.homes[name].heaters {
			if err := w.client.DeleteAsset(ctx, h.asset); err != nil {
				return fmt.Errorf("remove %s: %w", h.name, err)
			}
		}
	}

	w.unheated = true

	return nil
}

// readHeaters has every heater report, at the end of each half-hour.
func (w *whole) readHeaters(ctx context.Context) error {
	now := w.time()
	if w.unheated || len(w.heaters) == 0 || !now.Equal(flex.PeriodAt(now).Start()) {
		return nil
	}

	var list []client.ReadingDataPoint
	for _, name := range w.names() {
		for _, h := range w.homes[name].heaters {
			list = append(list, h.readings(now, w.weather)...)
		}
	}

	w.note(list)
	for part := range slices.Chunk(list, readingsAtOnce) {
		if err := w.post(ctx, part); err != nil {
			return err
		}
	}

	return nil
}

// readingsAtOnce is how many readings are sent in one request.
const readingsAtOnce = 500

// receiveHeat takes the pushes to heaters.
func (w *whole) receiveHeat(
	name, id string,
	body []byte,
) {
	h := w.heaters[name]
	if h == nil {
		w.pushes.wrong(fmt.Sprintf("push: no heater is named %q", name))
		return
	}

	if err := h.receive(body); err != nil {
		w.pushes.wrong(fmt.Sprintf("push: %s cannot read one: %v", name, err))
		return
	}

	w.pushes.note(name, id)
}

// allowed is for how long in a week something may be outside its comfort band that could have been in it.
const allowed = 30 // minutes

// checkComfort holds, at the end, the laws of comfort: no heater leaves its comfort band for longer than its twin, which
// nobody steers, and half an hour a week.
func (w *whole) checkComfort() {
	for _, name := range w.names() {
		for _, h := range w.homes[name].heaters {
			w.judgeComfort(h)
		}
	}
}

func (w *whole) judgeComfort(h *heater) {
	law, what := "warm", "rooms"
	if h.water != nil {
		law, what = "hot", "water"
	}

	steered, free := h.record()
	w.drew = append(w.drew, fmt.Sprintf("%s drew %.0f Wh", h.name, steered.energy))
	w.heat.add(what, steered, free)

	weeks := int(h.ends.Sub(w.began)/(7*24*time.Hour)) + 1
	if h.ends.Sub(w.began)%(7*24*time.Hour) == 0 {
		weeks--
	}

	if steered.outside <= free.outside+allowed*weeks {
		return
	}

	w.broke(fmt.Sprintf(
		"%s: the %s of %s were outside their band for %.1f hours, and %.1f by their thermostat alone",
		law,
		what,
		h.name,
		float64(steered.outside)/60,
		float64(free.outside)/60,
	))
}

// Heat is what came of all heat pumps or tanks of a history.
type Heat struct {
	Devices int     `json:"devices"`
	Outside float64 `json:"outside_h"` // hours outside the comfort band, of all together
	Energy  float64 `json:"kwh"`
	Cost    float64 `json:"pounds"`
	// by their thermostats alone
	FreeOutside float64 `json:"free_outside_h"`
	FreeEnergy  float64 `json:"free_kwh"`
	FreeCost    float64 `json:"free_pounds"`
}

// heatSums are what came of heaters, by what they heat.
type heatSums map[string]*Heat

func (s heatSums) add(
	what string,
	steered, free record,
) {
	sum := s[what]
	if sum == nil {
		sum = &Heat{}
		s[what] = sum
	}

	sum.Devices++
	sum.Outside += float64(steered.outside) / 60
	sum.Energy += steered.energy / 1000
	sum.Cost += steered.pence / 100
	sum.FreeOutside += float64(free.outside) / 60
	sum.FreeEnergy += free.energy / 1000
	sum.FreeCost += free.pence / 100
}
