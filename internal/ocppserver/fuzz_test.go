package ocppserver

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"
)

// FuzzMeter gives a meter of 7.4 kW samples of any kind in any order: no half-hour that it passes
// on is less than nothing, or more than physics allows.
func FuzzMeter(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 19, 136, 0, 30, 0, 0, 23, 112, 0, 60, 0, 0, 27, 88})
	f.Add([]byte{0, 0, 0, 0, 19, 136, 0, 15, 0, 0, 0, 0, 0, 30, 255, 255, 255, 255, 0, 10, 0, 0, 20, 80})

	f.Fuzz(func(t *testing.T, data []byte) {
		const watts, record, rounding = 7400, 6, 5
		var m meter
		for ; len(data) >= record; data = data[record:] {
			minute := int16(binary.BigEndian.Uint16(data))
			value := binary.BigEndian.Uint32(data[2:])
			s := sample{
				At: night.Add(time.Duration(minute&^7) * time.Minute), Value: float64(value), Step: 1,
				Quantity: quantity(minute & 3 % 3), Begin: minute&4 != 0,
			}

			m.add(s, watts)
			for _, h := range m.cut(conditions{power: watts, now: s.At}) {
				if h.why == "" && !(h.wh >= 0 && h.wh <= watts/2*excess+rounding) {
					t.Fatalf("a half-hour of %v Wh", h.wh)
				}
			}
		}
	})
}

// FuzzObserve reads the values of a message: what is measured is a number, whatever was written.
func FuzzObserve(f *testing.F) {
	f.Add([]byte(`[{"value":"5000","measurand":"Energy.Active.Import.Register","unit":"Wh"}]`))
	f.Add([]byte(`[{"value":"2,3","measurand":"Power.Active.Import","unit":"kW","phase":"L1"},{"value":1e308,"measurand":"Power.Active.Import","unit":"kW","phase":"L2"}]`))
	f.Add([]byte(`[{"value":null,"location":"EV","context":"Transaction.Begin"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var values []sampled
		if json.Unmarshal(text, &values) != nil {
			return
		}

		s, why := observe(values)
		if why == "" && (math.IsNaN(s.Value) || math.IsInf(s.Value, 0)) {
			t.Fatalf("%s is read as %v", text, s.Value)
		}
	})
}
