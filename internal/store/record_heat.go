package store

import (
	"database/sql"
	"encoding/json"
	"time"

	"flexd/internal/flex"
)

// heatRecord is flex.Heat as it is stored: in thousandths of a degree and of a litre.
type heatRecord struct {
	Low       *int64 `json:"low_mc,omitempty"`
	High      *int64 `json:"high_mc,omitempty"`
	NightLow  *int64 `json:"night_low_mc,omitempty"`
	NightHigh *int64 `json:"night_high_mc,omitempty"`
	Setpoint  *int64 `json:"setpoint_mc,omitempty"`
	Volume    *int64 `json:"volume_ml,omitempty"`
	Steering  string `json:"steering,omitempty"`
}

// readHeat returns an asset's heat from its column.
func readHeat(text string) (flex.Heat, error) {
	var r heatRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return flex.Heat{}, err
	}

	return flex.Heat{
		Low:       fromMilli[flex.Celsius](r.Low),
		High:      fromMilli[flex.Celsius](r.High),
		NightLow:  fromMilli[flex.Celsius](r.NightLow),
		NightHigh: fromMilli[flex.Celsius](r.NightHigh),
		Setpoint:  fromMilli[flex.Celsius](r.Setpoint),
		Volume:    fromMilli[float64](r.Volume),
		Steering:  flex.Steering(r.Steering),
	}, nil
}

// writeHeat returns an asset's heat as it is stored; empty for an asset without.
func writeHeat(h flex.Heat) any {
	if (h == flex.Heat{}) {
		return nil
	}

	text, _ := json.Marshal(heatRecord{ // numbers and a word
		Low:       milli(h.Low),
		High:      milli(h.High),
		NightLow:  milli(h.NightLow),
		NightHigh: milli(h.NightHigh),
		Setpoint:  milli(h.Setpoint),
		Volume:    milli(h.Volume),
		Steering:  string(h.Steering),
	})

	return string(text)
}

func fromMilli[V ~float64](n *int64) flex.Optional[V] {
	var o flex.Optional[V]
	if n != nil {
		o = flex.Some(V(*n) / 1000)
	}
	return o
}

func milli[V ~float64](o flex.Optional[V]) *int64 {
	if !o.Given {
		return nil
	}

	thousandths := float64(o.Value) * 1000
	if thousandths < 0 {
		return new(int64(thousandths - 0.5))
	}

	return new(int64(thousandths + 0.5))
}

// RoomPlan is what a heat pump is sent beside its steps, and what its rooms are expected to have.
type RoomPlan struct {
	Steering flex.Steering  `json:"steering"`
	Signals  []int          `json:"signals"` // of each step: a state of SG Ready, or kelvins
	Temp     float64        `json:"temp_c"`  // at the instant at which it was planned
	Lack     int64          `json:"lack_mk,omitempty"`
	Building BuildingRecord `json:"building"`
	Outdoor  string         `json:"outdoor"` // how the temperature outdoors is known
	Cost     float64        `json:"cost_p"`
	Course   []RoomCourse   `json:"course"`
	// when state 1 of SG Ready began that the heat pump was in as the steps began, in seconds
	// since 1970; 0 if it was in another
	LockedAt int64 `json:"locked_at,omitempty"`
}

// BuildingRecord is the house as it was planned.
type BuildingRecord struct {
	Loss     float64 `json:"loss_w_per_k"`
	Capacity float64 `json:"capacity_wh_per_k"`
	Gain     float64 `json:"gain_w"`
	Days     int     `json:"days,omitempty"`  // of readings that it was learned from; 0 if it is assumed
	Since    string  `json:"since,omitempty"` // the first of them
	Error    float64 `json:"error,omitempty"` // of the loss, as a part of it
	// degrees that a forecast of three hours was off, as a root mean square; 0 if it is assumed
	Miss float64 `json:"miss_k,omitempty"`
	// degrees that it was colder after half an hour than was forecast, on one of twenty; 0 if
	// it is assumed
	Dip float64 `json:"dip_k,omitempty"`
	// the same of the half-hours in which it stopped, on one of twenty; 0 if it is assumed
	Stop float64 `json:"stop_k,omitempty"`
}

// RoomCourse is a half-hour of a heat pump's plan.
type RoomCourse struct {
	To      int64   `json:"to"` // Unix seconds
	Signal  int     `json:"signal"`
	Off     bool    `json:"off,omitempty"`
	Energy  float64 `json:"energy_wh"`
	Temp    float64 `json:"temp_c"` // at its end
	Outdoor float64 `json:"outdoor_c"`
	Price   float64 `json:"price_p"`
	Reason  string  `json:"reason"`
}

// End returns when the half-hour ends.
func (c *RoomCourse) End() time.Time { return time.Unix(c.To, 0).UTC() }

// lack is what a plan without rooms lacks too: nothing.
func (p *RoomPlan) lack() int64 {
	if p == nil {
		return 0
	}
	return p.Lack
}

// signals are what a push says beside its steps.
func (p *RoomPlan) signals() *flex.HeatSignals {
	if p == nil || p.Steering == flex.SteerWindows {
		return nil
	}
	return &flex.HeatSignals{Steering: p.Steering, Signals: p.Signals}
}

func readRoom(text sql.Null[string]) (*RoomPlan, error) {
	if !text.Valid {
		return nil, nil
	}

	p := &RoomPlan{}

	return p, json.Unmarshal([]byte(text.V), p)
}

func writeRoom(p *RoomPlan) any {
	if p == nil {
		return nil
	}
	text, _ := json.Marshal(p) // numbers and words

	return string(text)
}

// WaterRecord is what leaves a tank, in the half-hours of a day by the clock of London.
type WaterRecord struct {
	Used  []int  `json:"used_wh"`  // hot water and loss that are expected
	Spare []int  `json:"spare_wh"` // what is to be in it at the end, above the bottom of the band
	Days  int    `json:"days"`     // of readings that it was learned from
	Since string `json:"since"`    // the first of them
}

// heatModelRecord is heat_model.model.
type heatModelRecord struct {
	Rooms *BuildingRecord `json:"rooms,omitempty"`
	Water *WaterRecord    `json:"water,omitempty"`
	As    HeatedAs        `json:"as,omitzero"`
}

func readHeatModel(text string) (heatModelRecord, error) {
	var r heatModelRecord
	err := json.Unmarshal([]byte(text), &r)
	return r, err
}

// writeHeatModel returns a model as it is stored; empty for one that was reset.
func writeHeatModel(m *HeatModel) any {
	r := heatModelRecord{m.Rooms, m.Water, m.As}
	if r == (heatModelRecord{}) {
		return nil
	}

	text, _ := json.Marshal(r) // numbers and a day

	return string(text)
}
