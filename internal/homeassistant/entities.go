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
	Availability string `json:"availability_topic"`
	Device       device `json:"device"`
}

// device is the thing that entities belong to.
type device struct {
	Identifiers  []string `json:"identifiers"`
	Name         string   `json:"name"`
	Manufacturer string   `json:"manufacturer"`
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
	Plan      string     `json:"plan"` // charging, waiting or none
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
func (b *Bridge) announce(context.Context) {
	for id, a := range b.assets {
		d := device{[]string{b.Topic + "_" + id}, a.ExternalID, "flexd"}
		b.describe("asset", id, assetSensors, d)

		b.send(b.Discovery+"/button/"+b.Topic+"_"+id+"/charge_now/config", entity{
			Name: "Charge now", UniqueID: b.Topic + "_" + id + "_charge_now", CommandTopic: b.Topic + "/asset/" + id + "/charge_now",
			Availability: b.statusTopic(), Device: d,
		})
	}

	for _, id := range b.Sites {
		b.describe("site", id.String(), siteSensors, device{[]string{b.Topic + "_" + id.String()}, "Site " + id.String(), "flexd"})
	}

	b.send(b.statusTopic(), "online")
}

// describe announces the sensors of a site or an asset.
func (b *Bridge) describe(kind, id string, sensors []sensor, d device) {
	for _, s := range sensors {
		b.send(b.Discovery+"/sensor/"+b.Topic+"_"+id+"/"+s.field+"/config", entity{
			Name: s.name, UniqueID: b.Topic + "_" + id + "_" + s.field, StateTopic: b.stateTopic(kind, id),
			Template: "{{ value_json." + s.field + " }}", Class: s.class, Unit: s.unit,
			Availability: b.statusTopic(), Device: d,
		})
	}
}

func (b *Bridge) stateTopic(kind, id string) string {
	return b.Topic + "/" + kind + "/" + id + "/state"
}

// show sends the state of everything. What flexd does not answer for keeps its last state.
func (b *Bridge) show(ctx context.Context) {
	for id, a := range b.assets {
		state, err := b.assetState(ctx, a.ID)
		if err != nil {
			b.Log.Warn("an asset's state is not known", "asset", id, "err", err)
			continue
		}
		b.send(b.stateTopic("asset", id), state)
	}

	for _, id := range b.Sites {
		balance, err := b.Client.Balance(ctx, id)
		if err != nil {
			b.Log.Warn("a site's balance is not known: it needs the role rewards", "site", id, "err", err)
			continue
		}

		b.send(b.stateTopic("site", id.String()), siteState{inPounds(balance.CurrentBalancePence), inPounds(balance.TotalEarningsPence)})
	}
}

func inPounds[Pence ~int64 | ~int](p Pence) float64 { return float64(p) / 100 }

func (b *Bridge) assetState(ctx context.Context, id client.AssetID) (assetState, error) {
	now := b.Now()
	s := assetState{Plan: "none"}

	plan, err := b.Client.Schedule(ctx, id, client.ScheduleQuery{})
	switch {
	case err == nil:
		s.follow(plan, now)
	case client.StatusOf(err) != http.StatusNotFound: // 404 is no plan yet
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

// freeKW is the power from which a limit stands for none.
const freeKW = 99.999

// follow reads what the plan has for the asset now, and when it next begins to charge.
func (s *assetState) follow(plan client.ScheduleResponse, now time.Time) {
	for _, p := range plan.Periods {
		from, to := p.StartTimestamp.Time, p.EndTimestamp.Time
		if !now.Before(to) {
			continue
		}

		if s.Plan == "none" {
			s.Plan = "waiting"
		}

		switch on := p.LimitW > 0; {
		case !now.Before(from):
			s.now(p.LimitW)
		case on && s.NextStart == nil:
			s.NextStart = new(from.UTC())
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
	}

	if kw := watts / 1000; kw < freeKW {
		s.LimitKW = &kw
	}
}
