package homeassistant

import (
	"context"
	"net/http"
	"time"

	"flexd/client"
)

// entity describes one entity to Home Assistant, by the names of its discovery.
type entity struct {
	Name         string `json:"name"`
	UniqueID     string `json:"unique_id"`
	StateTopic   string `json:"state_topic,omitzero"`
	Template     string `json:"value_template,omitzero"`
	CommandTopic string `json:"command_topic,omitzero"`
	Class        string `json:"device_class,omitzero"`
	Unit         string `json:"unit_of_measurement,omitzero"`
	Device       device `json:"device"`

	// All of them have to be online: the bridge, and what flexd answers for.
	Availability []availability `json:"availability"`
	Mode         string         `json:"availability_mode"`
}

// availability is a topic that says online or offline.
type availability struct {
	Topic string `json:"topic"`
}

// device is the thing that entities belong to.
type device struct {
	Identifiers  []string `json:"identifiers"`
	Name         string   `json:"name"`
	Manufacturer string   `json:"manufacturer"`
}

// button is an entity that asks something of an asset.
type button struct {
	field string
	name  string
	do    func(ctx context.Context, b *Bridge, asset client.AssetID) error
}

var buttons = []button{
	{"charge_now", "Charge now", func(ctx context.Context, b *Bridge, asset client.AssetID) error {
		return b.Client.ChargeNow(
			ctx,
			asset,
			client.ChargeNowEventRequest{
				EndAt: client.At(b.Now().Add(b.ChargeFor)),
			},
		)
	}},
	{"skip_night", "Skip tonight", func(ctx context.Context, b *Bridge, asset client.AssetID) error {
		return b.Client.SkipNight(ctx, asset)
	}},
}

// hasButtons reports whether flexd takes what the buttons ask for from an asset of the type.
func hasButtons(t client.AssetType) bool {
	return t == client.AssetCharger || t == client.AssetElectricVehicle
}

// sensor is an entity that shows one field of a state.
type sensor struct{ field, name, class, unit string }

var assetSensors = []sensor{
	{"plan", "Plan", "", ""},
	{"limit_kw", "Power allowed", "power", "kW"},
	{"next_start", "Next start", "timestamp", ""},
	{"ready_by", "Ready by", "timestamp", ""},
	{"price_gbp_per_mwh", "Price", "", "GBP/MWh"},
}

var siteSensors = []sensor{
	{"balance_gbp", "Balance", "monetary", "GBP"},
	{"earnings_gbp", "Earnings", "monetary", "GBP"},
}

// assetState is what an asset's sensors show. What is not known is null.
type assetState struct {
	// charging, discharging, waiting or none; of a battery the action of its schedule, or none
	Plan      string     `json:"plan"`
	LimitKW   *float64   `json:"limit_kw"`
	NextStart *time.Time `json:"next_start"`
	ReadyBy   *time.Time `json:"ready_by"`
	Price     *float64   `json:"price_gbp_per_mwh"`
}

// siteState is what a site's sensors show.
type siteState struct {
	Balance  float64 `json:"balance_gbp"`
	Earnings float64 `json:"earnings_gbp"`
}

// announce describes every entity, and says that they are there.
func (b *Bridge) announce() {
	there := b.shown.Load()
	for id, a := range there.assets {
		d := b.device(id, a.ExternalID)
		b.describe("asset", id, assetSensors, d)

		for _, press := range buttons {
			topic := b.configTopic("button", id, press.field)
			if !hasButtons(a.Type) {
				b.send(topic, "") // an earlier bridge may have described it
				continue
			}

			e := b.entity("asset", id, press.field, press.name, d)
			e.CommandTopic = b.Topic + "/asset/" + id + "/" + press.field
			b.send(topic, e)
		}
	}

	for _, id := range there.sites {
		b.describe(
			"site",
			id.String(),
			siteSensors,
			b.device(id.String(), "Site "+id.String()),
		)
	}

	b.send(b.statusTopic(), online)
}

// describe announces the sensors of a site or an asset.
func (b *Bridge) describe(kind, id string, sensors []sensor, d device) {
	for _, s := range sensors {
		e := b.entity(kind, id, s.field, s.name, d)
		e.StateTopic = b.stateTopic(kind, id)
		e.Template = "{{ value_json." + s.field + " }}"
		e.Class, e.Unit = s.class, s.unit
		b.send(b.configTopic("sensor", id, s.field), e)
	}
}

// withdraw takes the entities of a site or an asset out of Home Assistant: an empty retained
// message is none.
func (b *Bridge) withdraw(kind, id string) {
	sensors := siteSensors
	if kind == "asset" {
		sensors = assetSensors
		for _, press := range buttons {
			b.send(b.configTopic("button", id, press.field), "")
		}
	}

	for _, s := range sensors {
		b.send(b.configTopic("sensor", id, s.field), "")
	}

	b.send(b.stateTopic(kind, id), "")
	b.send(b.availabilityTopic(kind, id), "")
}

func (b *Bridge) device(id, name string) device {
	return device{[]string{b.Topic + "_" + id}, name, "flexd"}
}

// entity is what all entities have.
func (b *Bridge) entity(kind, id, field, name string, d device) entity {
	return entity{
		Name:         name,
		UniqueID:     b.Topic + "_" + id + "_" + field,
		Device:       d,
		Availability: []availability{{b.statusTopic()}, {b.availabilityTopic(kind, id)}},
		Mode:         "all",
	}
}

func (b *Bridge) configTopic(kind, id, field string) string {
	return b.Discovery + "/" + kind + "/" + b.Topic + "_" + id + "/" + field + "/config"
}

func (b *Bridge) availabilityTopic(kind, id string) string {
	return b.Topic + "/" + kind + "/" + id + "/availability"
}

func (b *Bridge) stateTopic(kind, id string) string {
	return b.Topic + "/" + kind + "/" + id + "/state"
}

// show sends the state of everything. What flexd does not answer for keeps its last state, and
// is unavailable.
func (b *Bridge) show(ctx context.Context) {
	there := b.shown.Load()
	for id, a := range there.assets {
		state, err := b.assetState(ctx, a.ID, a.Type)
		b.showOne("asset", id, state, err)
	}

	for _, id := range there.sites {
		balance, err := b.Client.Balance(ctx, id)
		b.showOne(
			"site",
			id.String(),
			siteState{
				inPounds(balance.CurrentBalancePence),
				inPounds(balance.TotalEarningsPence),
			},
			err,
		)
	}
}

// showOne sends a state, or says that it is not known. Money needs the role rewards.
func (b *Bridge) showOne(kind, id string, state any, err error) {
	if err != nil {
		b.Log.Warn("a state is not known", "of", kind, "id", id, "err", err)
		b.send(b.availabilityTopic(kind, id), offline)
		return
	}

	b.send(b.stateTopic(kind, id), state)
	b.send(b.availabilityTopic(kind, id), online)
}

func inPounds[Pence ~int64 | ~int](p Pence) float64 { return float64(p) / 100 }

func (b *Bridge) assetState(
	ctx context.Context,
	id client.AssetID,
	kind client.AssetType,
) (assetState, error) {
	now := b.Now()
	s := assetState{Plan: "none"}

	follow := b.followPlan
	if kind == client.AssetBattery {
		follow = b.followBattery
	}

	if err := follow(ctx, id, &s, now); err != nil {
		return s, err
	}

	prices, err := b.Client.AssetPriceCurve(ctx, id)
	if err != nil {
		return s, err
	}

	for _, p := range prices.HalfHourlyTradedPrices {
		from := p.StartTimestamp.Time
		if !now.Before(from) && now.Before(from.Add(30*time.Minute)) {
			s.Price = p.PriceGBPPerMWh
		}
	}

	return s, nil
}

// followPlan asks for an asset's schedule, and reads it into the state.
func (b *Bridge) followPlan(
	ctx context.Context,
	id client.AssetID,
	s *assetState,
	now time.Time,
) error {
	plan, err := b.Client.Schedule(ctx, id, client.ScheduleQuery{})
	if client.StatusOf(err) == http.StatusNotFound { // no plan yet
		return nil
	}
	if err != nil {
		return err
	}

	s.follow(plan, now)

	return nil
}

// followBattery asks for a battery's schedule, and reads it into the state.
func (b *Bridge) followBattery(
	ctx context.Context,
	id client.AssetID,
	s *assetState,
	now time.Time,
) error {
	plan, err := b.Client.BatterySchedule(ctx, id)
	switch client.StatusOf(err) {
	case http.StatusForbidden, http.StatusNotFound: // flexd does not control it, so that it has no plan
		return nil
	}
	if err != nil {
		return err
	}

	s.followSteps(plan.ScheduleSteps, now)

	return nil
}

// chargeMax is the action of a battery's step in which it charges.
const chargeMax = "charge_max"

// followSteps reads what a battery is to do now, and when it next begins to charge.
func (s *assetState) followSteps(steps []client.BatteryScheduleStep, now time.Time) {
	var charges time.Time // until when it charges without a break
	for _, step := range steps {
		from, to := step.StartTimestamp.Time, step.EndTimestamp.Time
		if !now.Before(to) {
			continue
		}

		on := step.Action == chargeMax
		begins := on && !from.Equal(charges)

		if !now.Before(from) {
			s.Plan = step.Action
		} else if begins && s.NextStart == nil {
			s.NextStart = new(from.UTC())
		}

		if on {
			charges = to
		}
	}
}

// freeW is the limit in watts that stands for none. An asset of more power has it named, or what limits it.
const freeW = 99_999

// follow reads what the plan has for the asset now, and when it next begins to charge.
func (s *assetState) follow(plan client.ScheduleResponse, now time.Time) {
	var charges time.Time // until when it charges without a break
	for _, p := range plan.Periods {
		from, to := p.StartTimestamp.Time, p.EndTimestamp.Time
		if !now.Before(to) {
			continue
		}

		if s.Plan == "none" {
			s.Plan = "waiting"
		}

		on := p.LimitW > 0
		begins := on && !from.Equal(charges)

		if !now.Before(from) {
			s.now(p.LimitW)
		} else if begins && s.NextStart == nil {
			s.NextStart = new(from.UTC())
		}

		if on {
			charges = to
		}
	}

	if s.Plan != "none" && !plan.ReadyBy.IsZero() {
		s.ReadyBy = new(plan.ReadyBy.UTC())
	}
}

// now takes in the limit of the period under way, in watts.
func (s *assetState) now(watts float64) {
	if watts > 0 {
		s.Plan = "charging"
	} else if watts < 0 {
		s.Plan = "discharging"
	}

	if watts != freeW {
		s.LimitKW = new(watts / 1000)
	}
}
