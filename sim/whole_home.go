package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// household is a site with its chargers, its main fuse and its battery, as far as it has them.
type household struct {
	site     client.SiteID
	chargers []*outlet
	battery  *Battery // nil for none
	heaters  []*heater
	fuse     flex.Watts // what it carries; zero for one that nobody knows
	weak     bool
	churns   bool // its battery does not do what it is sent
	late     int  // spans of late readings that it is in
	kept     []client.ReadingDataPoint
	sessions int       // plug-ins that were acknowledged
	over     time.Time // when the fuse was last found to carry too much
}

// outlet is one of a home's chargers.
type outlet struct {
	*Charger
	asset client.AssetID
	power float64   // kW
	ready time.Time // of the car that is plugged in
	since time.Time // when its need was given
	need  float64   // kWh that can be there by then
	boost time.Time // when its charge-now ends
}

// free reports whether a car is plugged in that no cap holds back: it is to charge at once, or its
// ready-by is past.
func (o *outlet) free(at time.Time) bool {
	return o.Car() != nil && (at.Before(o.boost) || !at.Before(o.ready))
}

// ask notes what the car is to have by ready-by, as far as there is time for it from an instant on.
func (o *outlet) ask(need float64, from time.Time) {
	possible := o.power*(o.ready.Sub(from)-startLoss).Hours() + o.Car().Got/1000
	o.need, o.since = min(need, possible), from
}

// steered reports whether every car that is plugged in, and every heater, has had a profile.
func (h *household) steered() bool {
	for _, c := range h.chargers {
		if _, p := c.Received(); c.Car() != nil && len(p.Steps) == 0 {
			return false
		}
	}

	unsteered := func(device *heater) bool { return !device.steered() }

	return !slices.ContainsFunc(h.heaters, unsteered)
}

func (h *household) free(at time.Time) bool {
	return slices.ContainsFunc(h.chargers, func(o *outlet) bool {
		return o.free(at)
	})
}

// drawing lets the battery and the heaters run through the minute from the instant on, and returns what the home's
// devices draw together in it.
func (h *household) drawing(at time.Time, w *weather) flex.Watts {
	sum := h.charging(at)
	for _, device := range h.heaters {
		device.runTo(at.Add(time.Minute), w)
		sum += device.drawing()
	}
	if h.battery != nil {
		h.battery.runTo(at.Add(time.Minute), free)
		sum += h.battery.Flow()
	}

	return sum
}

// charging is what the home's cars draw at the instant.
func (h *household) charging(at time.Time) flex.Watts {
	var sum flex.Watts
	for _, c := range h.chargers {
		sum += c.Drawing(at)
	}

	return sum
}

// free is a market on which nothing costs anything.
func free(flex.Period) flex.Price { return 0 }

// register registers every home that the history names.
func (w *whole) register(ctx context.Context, history []Happening) error {
	for _, h := range history {
		if h.Kind == Weather {
			w.weather = newWeather(h.Climate, flex.Span{From: h.From, To: h.To})
		}
	}

	for _, h := range history {
		if h.Home != "" {
			w.plan(h)
		}
		if h.Kind == Cap {
			w.caps = append(w.caps, flex.Span{From: h.From, To: h.To})
		}
		if slices.Contains([]Kind{Outage, Restart, Kill}, h.Kind) {
			w.unsteady = append(w.unsteady, h)
		}
	}

	maps.DeleteFunc(w.homes, func(_ string, h *household) bool {
		return len(h.devices()) == 0 // a main fuse with nothing behind it
	})

	for n, name := range w.names() {
		if err := w.onboard(ctx, name, n+1); err != nil {
			return fmt.Errorf("onboard %s: %w", name, err)
		}
	}

	return nil
}

// plan notes what a home must have for the happening.
func (w *whole) plan(h Happening) {
	place := w.homes[h.Home]
	if place == nil {
		place = &household{}
		w.homes[h.Home] = place
	}

	power := flex.FromKW(h.KW)

	switch h.Kind {
	case Fuse:
		place.fuse, place.weak = power, h.Weak
		w.supplied = true

	case Storage:
		w.supplied = true
		place.churns = h.Churns
		place.battery = &Battery{
			Name:     h.Home + "-battery",
			Power:    power,
			Capacity: flex.FromKWh(h.CapacityKWh),
			Stored:   h.CapacityKWh * 500, // half full
		}

	case Pump, Tank:
		w.supplied = true
		place.heat(h, w)

	default:
		for len(place.chargers) <= h.Charger {
			id := fmt.Sprintf("%s-%d", h.Home, len(place.chargers))
			charger := &Charger{ExternalID: id, Power: power}
			place.chargers = append(
				place.chargers,
				&outlet{Charger: charger, power: h.KW},
			)
		}
	}
}

// names are the homes in a fixed order.
func (w *whole) names() []string { return slices.Sorted(maps.Keys(w.homes)) }

// onboard registers a home: its meter, its site with what the main fuse carries, its devices.
func (w *whole) onboard(
	ctx context.Context,
	name string,
	n int,
) error {
	const form = "mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n%s,import,%d High Street,SW1A 1AA,true,true,true\n"
	_, err := w.app.ImportMeters(
		ctx,
		strings.NewReader(fmt.Sprintf(form, MPANOf(n), n)),
		nil,
	)
	if err != nil {
		return err
	}

	place := w.homes[name]
	site := client.SiteRequest{
		MPAN:                       MPANOf(n),
		Postcode:                   "SW1A 1AA",
		StreetAddress:              fmt.Sprintf("%d High Street", n),
		Email:                      name + "@example.com",
		GaveBoundaryMeterConsentAt: client.At(w.time().Add(-consentedFor)),
	}

	if place.fuse > 0 {
		site.ImportCapacityKW = new(place.fuse.KW())
	}
	if place.weak {
		place.fuse /= 2
	}

	r, err := w.client.Onboard(ctx, client.OnboardRequest{
		Site:        site,
		Assets:      place.devices(),
		Proposition: client.PropositionFullAssetSchedule,
	})
	if err != nil {
		return err
	}

	place.site = r.Site.SiteID

	return w.connect(ctx, place, r.Assets)
}

// devices are the home's devices as they are registered: the chargers, then the battery, then the heaters.
func (h *household) devices() []client.OnboardingAssetRequest {
	var out []client.OnboardingAssetRequest
	for _, c := range h.chargers {
		out = append(out, client.OnboardingAssetRequest{
			ExternalID: c.ExternalID,
			Type:       client.AssetCharger,
			Properties: &client.AssetProperties{PowerKW: new(c.Power.KW())},
		})
	}

	if b := h.battery; b != nil {
		out = append(out, client.OnboardingAssetRequest{
			ExternalID: b.Name,
			Type:       client.AssetBattery,
			Properties: &client.AssetProperties{
				PowerKW:     new(b.Power.KW()),
				CapacityKWh: new(b.Capacity.KWh()),
			},
		})
	}

	for _, device := range h.heaters {
		out = append(out, device.request())
	}

	return out
}

// connect has the devices take what flexd sends to the assets, which come in the devices' order.
func (w *whole) connect(
	ctx context.Context,
	place *household,
	assets []client.InitialiseAssetResult,
) error {
	for i, c := range place.chargers {
		c.asset = assets[i].AssetID
		c.Plug(nil, w.time())
		w.endpoint.Add(c.Charger)
	}

	heaters := assets[len(assets)-len(place.heaters):]
	if err := w.connectHeaters(ctx, place, heaters); err != nil {
		return err
	}

	b := place.battery
	if b == nil {
		return nil
	}

	b.Asset, b.at = assets[len(place.chargers)].AssetID, w.time()

	request := client.TariffUpdateEventRequest{Tariff: economy7}

	return w.client.UpdateTariff(ctx, b.Asset, request)
}

// run lets the devices draw up to the instant. What main fuses and the cap carry is looked at once a
// minute.
func (w *whole) run(to time.Time) {
	for at := w.time(); w.bound() && at.Before(to); at = at.Add(time.Minute) {
		w.look(at)
	}

	for _, h := range w.homes {
		h.runTo(to, w.weather)
	}
}

// bound reports whether anything bounds what is drawn.
func (w *whole) bound() bool { return w.supplied || w.cap.power > 0 }

// look holds what each home draws, and all cars and batteries together, against what they may in the minute from the
// instant on.
func (w *whole) look(at time.Time) {
	var drawn flex.Watts
	steered := true
	for _, name := range w.names() {
		h := w.homes[name]
		h.runTo(at, w.weather)
		drawn += h.charging(at)
		if h.battery != nil && !h.churns {
			drawn += max(0, h.battery.asked()) // at full power, as caps count it
		}
		steered = steered && h.steered() && !h.free(at)
		w.checkFuse(name, h, at)
	}

	if steered {
		w.checkCap(drawn, at)
	}
}

// fleetCap is what all cars and batteries together may draw.
type fleetCap struct {
	power flex.Watts // zero for no cap
	over  bool       // it was found to be passed
}

// capAt sets the cap of the fleet.
func (w *whole) capAt(ctx context.Context, h Happening) error {
	w.cap = fleetCap{power: flex.FromKW(h.KW)}
	if h.Weak {
		w.cap.power /= 2
	}

	_, err := w.client.SetCaps(
		ctx,
		client.Caps{Fleet: &client.Cap{CapKW: &h.KW}},
	)

	return err
}

// uncap ends it.
func (w *whole) uncap(ctx context.Context) error {
	w.cap = fleetCap{}
	return w.client.ClearCaps(ctx)
}

func (h *household) runTo(at time.Time, w *weather) {
	for _, device := range h.heaters {
		device.runTo(at, w)
	}
	for _, c := range h.chargers {
		c.RunTo(at, free)
	}
	if h.battery != nil {
		h.battery.runTo(at, free)
	}
}

// askBatteries has each battery report how full it is, once in a half-hour, and ask what it is to do.
func (w *whole) askBatteries(ctx context.Context) error {
	e := &Evening{
		Client: w.client,
		Price:  free,
		Say:    func(time.Time, string, string) {},
	}

	for _, name := range w.names() {
		if b := w.homes[name].battery; b != nil {
			if err := b.step(ctx, e, w.time()); err != nil {
				return fmt.Errorf("%s: %w", b.Name, err)
			}
			if w.homes[name].churns {
				b.churn(w.time())
			}
		}
	}

	return nil
}

// meter sends what has been metered.
func (w *whole) meter(ctx context.Context) error {
	var readings []client.ReadingDataPoint
	for _, name := range w.names() {
		h := w.homes[name]
		metered := h.meter(w.time())
		w.note(metered)
		if h.late > 0 {
			h.kept = append(h.kept, metered...)
			continue
		}
		readings = append(readings, metered...)
	}

	return w.post(ctx, readings)
}

// note keeps what chargers and heaters drew.
func (w *whole) note(metered []client.ReadingDataPoint) {
	for _, m := range metered {
		kWh := m.Value
		if m.Label == client.LabelHeatPower {
			kWh *= flex.HalfHour.Hours()
		}

		drawn := m.Label == client.LabelHeatPower || m.Label == client.LabelChargerEnergy
		if !drawn {
			continue
		}

		if w.metered[m.AssetID] == nil {
			w.metered[m.AssetID] = map[flex.Period]float64{}
		}

		w.metered[m.AssetID][flex.PeriodAt(m.StartTimestamp.Time)] += kWh
	}
}

// meter returns the chargers' readings of the half-hours that ended by the instant.
func (h *household) meter(by time.Time) []client.ReadingDataPoint {
	var out []client.ReadingDataPoint
	for _, c := range h.chargers {
		for _, m := range c.Meter(by) {
			out = append(out, client.ReadingDataPoint{
				AssetID:        c.asset,
				StartTimestamp: client.At(m.Period.Start()),
				EndTimestamp:   client.At(m.Period.End()),
				Value:          m.Energy / 1000,
				Label:          client.LabelChargerEnergy,
			})
		}
	}

	return out
}

// postKept sends what a home kept back: the newest first, and all of it twice.
func (w *whole) postKept(ctx context.Context, h *household) error {
	kept := h.kept
	h.kept = nil
	slices.Reverse(kept)
	if err := w.post(ctx, kept); err != nil {
		return err
	}

	return w.post(ctx, kept)
}

func (w *whole) post(
	ctx context.Context,
	readings []client.ReadingDataPoint,
) error {
	if len(readings) == 0 {
		return nil
	}

	e := Evening{Client: w.client}

	return e.post(ctx, readings)
}

func (w *whole) arrive(
	ctx context.Context,
	h Happening,
	place *household,
) error {
	c := place.chargers[h.Charger]
	c.Outage = flex.Span{}
	if h.Dead {
		c.Outage = flex.Span{From: h.From, To: h.To}
	}

	c.Plug(&Car{Rate: c.Power, Room: 60_000}, w.time())
	c.ready = h.ready()
	c.ask(h.Need, w.time())
	place.sessions++
	if h.Skipped {
		return nil
	}

	in, err := PlugIn(needs(h)+" tariff 00:30-05:30 Europe/London", w.time())
	if err != nil {
		return err
	}

	return w.client.PlugIn(ctx, c.asset, in)
}

func needs(h Happening) string {
	return fmt.Sprintf("need %gkWh by 07:00 peak allowed", h.Need)
}

// change has the user of a car ask for something else. Where no car is, nobody asks.
func (w *whole) change(
	ctx context.Context,
	h Happening,
	place *household,
) error {
	c := place.chargers[h.Charger]
	if c.Car() == nil || !w.time().Before(c.ready) {
		return nil
	}

	c.ask(h.Need, w.reachable())
	in, err := PlugIn(needs(h), w.time())
	if err != nil {
		return err
	}

	return w.client.SetIntent(
		ctx,
		c.asset,
		client.IntentEventRequest{Intent: *in.Intent},
	)
}

// reachable is when a car that is plugged in can next be sent something: now, or when the endpoint is back.
func (w *whole) reachable() time.Time {
	at := w.time()
	for _, h := range w.unsteady {
		out := flex.Span{From: h.From, To: h.To}
		if h.Kind == Outage && out.Contains(w.time()) && h.To.After(at) {
			at = h.To
		}
	}

	return at
}

// boost has the user of a car ask to charge at once.
func (w *whole) boost(
	ctx context.Context,
	h Happening,
	place *household,
) error {
	c := place.chargers[h.Charger]
	if c.Car() == nil {
		return nil
	}

	c.boost = h.To

	return w.client.ChargeNow(
		ctx,
		c.asset,
		client.ChargeNowEventRequest{EndAt: client.At(h.To)},
	)
}

func (w *whole) leave(
	ctx context.Context,
	h Happening,
	place *household,
) error {
	c := place.chargers[h.Charger]
	w.drew = append(
		w.drew,
		fmt.Sprintf(
			"%s until %s drew %.0f Wh",
			c.ExternalID,
			h.To.Format(time.RFC3339),
			c.Car().Got,
		),
	)

	c.Plug(nil, w.time())
	if h.Skipped {
		return nil
	}

	return w.client.PlugOut(ctx, c.asset)
}
