package control

import (
	"fmt"
	"math"
	"strings"
	"time"

	"flexd/internal/engine/heat"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// HeatPeriod explains a half-hour of a heat pump's plan.
type HeatPeriod struct {
	flex.Span
	Energy  float64 // Wh of electricity
	Temp    float64 // of the rooms at its end
	Outdoor float64
	Price   float64 // of a kWh, in pence
	Reason  string
}

// heatAheadMargin is by how many degrees the rooms are above the bottom of the band if they
// are heated ahead of need.
const heatAheadMargin = 0.3

// reason explains the choice of a slot.
func (h *heatPump) reason(
	p *heat.Problem,
	plan *heat.Plan,
	i int,
) string {
	slot := &p.Slots[i]
	temp := plan.Temp[i]
	used := plan.Energy[i] > 0
	called := h.callReason(h.slots[i], plan.Energy[i])
	offset := h.steering == flex.SteerOffset // an offset cannot switch it off
	off, over := h.closed[i] && !offset, h.excessPrice(i) > 0 && !offset

	switch {
	case temp < slot.Low-heat.Grid && off:
		return "off, as the main fuse has no room for it, though the rooms are below their band"
	case temp < slot.Low-heat.Grid && used:
		return "heats, and the rooms are below their band"
	case temp < slot.Low-heat.Grid:
		return "waits, and the rooms are below their band: they are warm sooner so than in any other way"

	case off:
		return "off, as the main fuse has no room for it"
	case called != "":
		return called

	case over && used:
		return "heats to stay in the band, though a cap is exceeded"
	case over:
		return "waits: the caps leave it no power, and the rooms stay in their band"

	case used && temp > slot.Low+heatAheadMargin:
		return "heats ahead of hours that are dearer or colder"
	case used:
		return "heats to stay in the band"
	}

	return "waits: the rooms stay in their band, and heat is cheaper at other times"
}

// explainHeatPump adds to an explanation what a heat pump's plan does, and what it was made
// from.
func explainHeatPump(t *heatedTank, x *Explanation) {
	limits := t.plan.Room
	if limits == nil {
		return
	}

	h := &heatPump{heatedTank: t, steering: limits.Steering, building: limits.Building}
	x.Heat = h.periods()
	x.Summary = h.summaryText()
	x.Inputs = h.inputs()

	energy := 0.0
	for i := range x.Heat {
		energy += x.Heat[i].Energy
	}

	x.Plan.Energy = flex.WattHours(energy)
	x.Plan.Cost = flex.MicroPounds(math.Round(limits.Cost * 1e4))
	x.Plan.LowerBound = x.Plan.Cost

	if limits.Steering != flex.SteerWindows {
		x.Schedule.Heat = &flex.HeatSignals{
			Steering: limits.Steering,
			Signals:  limits.Signals,
		}
	}
}

// periods returns the half-hours of the plan.
func (h *heatPump) periods() []HeatPeriod {
	from := h.plan.StoredAt

	var list []HeatPeriod
	for _, c := range h.plan.Room.Course {
		list = append(list, HeatPeriod{
			Span:    flex.Span{From: from, To: c.End()},
			Energy:  c.Energy,
			Temp:    c.Temp,
			Outdoor: c.Outdoor,
			Price:   c.Price,
			Reason:  c.Reason,
		})
		from = c.End()
	}
	return list
}

// summaryText describes the plan.
func (h *heatPump) summaryText() string {
	clock := func(at time.Time) string {
		return flex.Clock(at, flex.London, "Mon 15:04")
	}

	var parts []string
	for i, s := range h.plan.Steps {
		if s.To.After(h.from) && i < len(h.plan.Room.Signals) {
			parts = append(parts, clock(s.From)+" "+h.signalText(h.plan.Room.Signals[i]))
		}
	}

	low, high := h.band(h.plan.StoredAt)
	text := fmt.Sprintf(
		"The heat pump, %g kW: from %s. At %s the rooms had %.1f °C, %s; their band was %g to %g °C.",
		h.power.KW(),
		strings.Join(parts, ", from "),
		clock(h.plan.StoredAt),
		h.plan.Room.Temp,
		roomBasisText[h.plan.Basis],
		low,
		high,
	)

	if !h.asset.Heat.Low.Given {
		text += " The band is assumed, as none was set."
	}

	if days := h.plan.Room.Building.Days; days > 0 {
		text += fmt.Sprintf(
			" The house was learned from %d days of readings since %s.",
			days,
			h.plan.Room.Building.Since,
		)
	}

	if h.plan.Room.Lack > 0 {
		text += fmt.Sprintf(
			" They cannot be kept in their band: at %s they are expected to be %.1f degrees below it.",
			clock(h.plan.LackAt),
			float64(h.plan.Room.Lack)/1000,
		)
	}

	return text
}

// roomBasisText says where the temperature of the rooms is known from.
var roomBasisText = map[store.TankBasis]string{
	store.TankRead:     "as was read lately",
	store.TankExpected: "by what was planned since it was last read",
	store.TankAssumed:  "as nothing was ever read of them: they are assumed to have what the heat pump keeps by itself",
}

// signalText describes a signal.
func (h *heatPump) signalText(signal int) string {
	switch h.steering {
	case flex.SteerSGReady:
		return fmt.Sprintf("in state %d of SG Ready", signal)
	case flex.SteerOffset:
		return fmt.Sprintf("with its setpoint moved by %+d K", signal)
	}

	if signal == 0 {
		return "off"
	}

	return "on"
}

// inputs returns what the plan was made from, and where each value is from.
func (h *heatPump) inputs() []Input {
	set := &h.asset.Heat
	origin := func(given bool) string {
		if given {
			return "asset"
		}
		return "default"
	}

	low, high := set.Low.Or(RoomLow), set.High.Or(RoomHigh)
	nightLow, nightHigh := set.NightLow.Or(low), set.NightHigh.Or(high)
	list := []Input{
		{
			Name:   "comfort_band",
			Value:  fmt.Sprintf("%g to %g °C", low, high),
			Origin: origin(set.Low.Given),
		},
		{
			Name:   "comfort_band_by_night",
			Value:  fmt.Sprintf("%g to %g °C", nightLow, nightHigh),
			Origin: origin(set.NightLow.Given),
		},
		{
			Name:   "steering",
			Value:  string(h.plan.Room.Steering),
			Origin: origin(set.Steering != ""),
		},
		{
			Name:   "outdoor_temperature",
			Value:  h.plan.Room.Outdoor,
			Origin: outdoorOrigin(h.plan.Room.Outdoor),
		},
		{
			Name: "cop",
			Value: fmt.Sprintf(
				"%.1f at 7 °C, %.1f at -3 °C",
				heat.COP(7),
				heat.COP(-3),
			),
			Origin: "default",
		},
	}

	return append(list, h.buildingInputs(float64(high-low))...)
}

// buildingInputs returns the model of the building, and the margins above the bottom of a band
// of this width.
func (h *heatPump) buildingInputs(width float64) []Input {
	building := h.plan.Room.Building
	from, how := "default", "assumed from its power: four fifths of it keep 20 °C at -3 °C outdoors, and the house takes 40 hours to lose 63 % of the difference"
	if building.Days > 0 {
		from = "readings"
		how = fmt.Sprintf(
			"learned from %d days of readings since %s, the loss to within %.0f %%",
			building.Days,
			building.Since,
			building.Error*100,
		)
	}

	loses := fmt.Sprintf(
		"loses %.0f W and keeps %.1f kWh for each degree",
		building.Loss,
		building.Capacity/1000,
	)
	spare := fmt.Sprintf(
		"%.2f degrees, and %.2f where nothing is heated",
		h.spare(width),
		max(h.spare(width), h.stop(width)),
	)

	return []Input{
		{
			Name:   "house",
			Value:  loses,
			Origin: from,
			Detail: how,
		},
		{
			Name:   "kept_above_band",
			Value:  spare,
			Origin: from,
			Detail: "for what a forecast of half an hour or of three misses",
		},
	}
}

// outdoorOrigin says where the outdoor temperature is from.
func outdoorOrigin(text string) string {
	if strings.HasPrefix(text, "what is usual") {
		return "default"
	}
	return "readings"
}
