package store

import (
	"encoding/json"

	"flexd/internal/flex"
)

// heatRecord is flex.Heat as it is kept: in thousandths of a degree and of a litre.
type heatRecord struct {
	Low       *int64 `json:"low_mc,omitempty"`
	High      *int64 `json:"high_mc,omitempty"`
	NightLow  *int64 `json:"night_low_mc,omitempty"`
	NightHigh *int64 `json:"night_high_mc,omitempty"`
	Setpoint  *int64 `json:"setpoint_mc,omitempty"`
	Volume    *int64 `json:"volume_ml,omitempty"`
	Steering  string `json:"steering,omitempty"`
}

// readHeat reads what is kept of an asset's heat.
func readHeat(text string) (h flex.Heat, err error) {
	var r heatRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return h, err
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

// writeHeat is what is kept of an asset's heat: nothing of one that has none.
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

func fromMilli[V ~float64](n *int64) (o flex.Optional[V]) {
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
