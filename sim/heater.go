package sim

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// sent is a schedule of a heater as it was pushed.
type sent struct {
	from    time.Time
	to      time.Time
	limits  []client.ChargingSchedulePeriod
	signals []client.HeatSteeredPeriod
}

// heater is a simulated heat pump or hot-water tank, with a twin beside it that nobody steers: what the twin cannot do
// is not possible.
type heater struct {
	name  string
	asset client.AssetID
	power flex.Watts // as it is registered
	ends  time.Time  // no minute is judged after it
	dead  flex.Span  // a planted fault: it draws nothing
	// when it may not be reached, in which nothing is judged
	cut []flex.Span

	rooms     *rooms // of a heat pump; else nil
	roomsFree *rooms
	water     *water // of a tank; else nil
	waterFree *water

	at time.Time
	mu sync.Mutex // of what is below, which pushes change
	// in the order in which they begin
	schedules []sent
}

// receive takes a push: it replaces those that begin no earlier.
func (h *heater) receive(body []byte) error {
	var push client.SetChargingProfileRequest
	if err := json.Unmarshal(body, &push); err != nil {
		return err
	}

	profile := &push.CSChargingProfiles.ChargingSchedule
	s := sent{
		from:   profile.StartSchedule.Time,
		to:     profile.StartSchedule.Time,
		limits: profile.ChargingSchedulePeriod,
	}
	if profile.Duration != nil {
		s.to = s.from.Add(time.Duration(*profile.Duration) * time.Second)
	}
	if push.Heat != nil {
		s.signals = push.Heat.Periods
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	for n := len(h.schedules); n > 0 && !h.schedules[n-1].from.Before(s.from); n-- {
		h.schedules = h.schedules[:n-1]
	}

	h.schedules = append(h.schedules, s)

	return nil
}

// steered reports whether a schedule has come.
func (h *heater) steered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.schedules) > 0
}

// rules is the schedule that rules at an instant; nil for none, when the device is left to itself.
func (h *heater) rules(at time.Time) *sent {
	h.mu.Lock()
	defer h.mu.Unlock()

	for n := len(h.schedules) - 1; n >= 0; n-- {
		s := &h.schedules[n]
		if s.from.After(at) {
			continue
		}
		h.schedules = h.schedules[n:]
		if at.Before(s.to) {
			return &h.schedules[0]
		}

		return nil
	}

	return nil
}

// ordered is what the heater is to do at an instant.
func (h *heater) ordered(at time.Time) order {
	var o order
	s := h.rules(at)
	if s == nil {
		return o
	}

	since := int(at.Sub(s.from) / time.Second)
	for _, p := range s.limits {
		if p.StartPeriod <= since {
			o.off = p.Limit == 0
		}
	}

	for _, p := range s.signals {
		if p.StartPeriod <= since {
			h.signal(p, &o)
		}
	}

	return o
}

// signal reads a state of SG Ready or an offset. In state 3 the heat pump heats on to half a degree below the top of the
// band, as it would be set up.
func (h *heater) signal(p client.HeatSteeredPeriod, o *order) {
	o.more = 0
	if p.OffsetK != nil {
		o.more = float64(*p.OffsetK)
	}
	if p.SGReadyState == nil || h.rooms == nil {
		return
	}

	o.off = *p.SGReadyState == flex.SGOff
	if *p.SGReadyState >= flex.SGMore {
		o.more = max(0, h.rooms.High-0.3-h.rooms.Setpoint)
	}
}

// runTo lets the device and its twin run to an instant, minute by minute.
func (h *heater) runTo(to time.Time, w *weather) {
	for h.at.Before(to) {
		h.minute(w)
		h.at = h.at.Add(time.Minute)
	}
}

// minute lets one pass, and judges it if it is not after the end.
func (h *heater) minute(w *weather) {
	o := h.ordered(h.at)
	dead := h.dead.Contains(h.at)
	judged := h.at.Before(h.ends) && !slices.ContainsFunc(h.cut, func(s flex.Span) bool {
		return s.Contains(h.at)
	})

	if h.rooms == nil {
		h.water.step(h.at, o.off, dead)
		h.waterFree.step(h.at, false, false)
		if judged {
			h.water.note(h.at)
			h.waterFree.note(h.at)
		}

		return
	}

	around := w.at(h.at)
	h.rooms.step(h.at, around, o, dead)
	h.roomsFree.step(h.at, around, order{}, false)
	if judged {
		h.rooms.note(h.at)
		h.roomsFree.note(h.at)
	}
}

// drawing is what it draws.
func (h *heater) drawing() flex.Watts {
	if h.rooms != nil {
		return flex.Watts(math.Round(h.rooms.draws))
	}
	return flex.Watts(h.water.draws)
}

// record is what came of the device, and of its twin that nobody steered.
func (h *heater) record() (steered, free record) {
	if h.rooms != nil {
		return h.rooms.record, h.roomsFree.record
	}
	return h.water.record, h.waterFree.record
}

// readings are what the client reports at the end of a half-hour: how warm it is, and what was drawn in it.
func (h *heater) readings(at time.Time, w *weather) []client.ReadingDataPoint {
	now := client.At(at)
	temperature := func(label client.Label, degrees float64) client.ReadingDataPoint {
		return client.ReadingDataPoint{
			AssetID:        h.asset,
			StartTimestamp: now,
			EndTimestamp:   now,
			Value:          math.Round(degrees*10) / 10,
			Label:          label,
		}
	}

	var list []client.ReadingDataPoint
	if h.rooms == nil {
		list = append(list, temperature(client.LabelTankTemperature, h.water.temp))
	} else {
		list = append(list, temperature(client.LabelRoomTemperature, h.rooms.air))
	}
	if h.rooms != nil && h.rooms.Outdoors {
		outdoor := w.at(at).outdoor
		list = append(list, temperature(client.LabelOutdoorTemperature, outdoor))
	}

	return append(list, client.ReadingDataPoint{
		AssetID:        h.asset,
		StartTimestamp: client.At(at.Add(-flex.HalfHour)),
		EndTimestamp:   now,
		Value:          math.Round(h.metered()/flex.HalfHour.Hours()) / 1000,
		Label:          client.LabelHeatPower,
	})
}

// metered is what it drew since it was last asked, in Wh.
func (h *heater) metered() float64 {
	var drawn *float64
	if h.rooms != nil {
		drawn = &h.rooms.metered
	} else {
		drawn = &h.water.metered
	}

	energy := *drawn
	*drawn = 0

	return energy
}
