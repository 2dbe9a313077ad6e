package contract

import (
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// HeatNoun is what was sent of the heat that an asset keeps; nil if nothing was.
func HeatNoun(p *wire.HeatProperties) *flex.Heat {
	if p == nil {
		return nil
	}

	h := &flex.Heat{
		Low:       degrees(p.ComfortLowC),
		High:      degrees(p.ComfortHighC),
		NightLow:  degrees(p.NightLowC),
		NightHigh: degrees(p.NightHighC),
		Setpoint:  degrees(p.SetpointC),
		Steering:  flex.Steering(p.Steering),
	}

	if p.VolumeL != nil {
		h.Volume = flex.Some(*p.VolumeL)
	}

	return h
}

func degrees(c *float64) flex.Optional[flex.Celsius] {
	var o flex.Optional[flex.Celsius]
	if c != nil {
		o = flex.Some(flex.Celsius(*c))
	}
	return o
}

// Heat shows the heat that an asset keeps; nil if nothing was given of it.
func Heat(h flex.Heat) *wire.HeatProperties {
	if (h == flex.Heat{}) {
		return nil
	}

	p := &wire.HeatProperties{
		ComfortLowC:  celsius(h.Low),
		ComfortHighC: celsius(h.High),
		NightLowC:    celsius(h.NightLow),
		NightHighC:   celsius(h.NightHigh),
		SetpointC:    celsius(h.Setpoint),
		Steering:     string(h.Steering),
	}

	if h.Volume.Given {
		p.VolumeL = new(h.Volume.Value)
	}

	return p
}

func celsius(o flex.Optional[flex.Celsius]) *float64 {
	if !o.Given {
		return nil
	}
	return new(float64(o.Value))
}
