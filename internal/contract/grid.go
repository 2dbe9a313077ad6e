package contract

import (
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// ScopeOf is the part of a fleet that is asked for; empty names bound nothing.
func ScopeOf(group, gspGroup string) flex.Scope {
	return flex.Scope{Group: group, GSPGroup: gspGroup}
}

// Envelope is a fleet's envelope, with all windows if they are asked for.
func Envelope(e *grid.Envelope, windows bool) wire.EnvelopeResponse {
	d := wire.EnvelopeResponse{
		At:       wire.At(e.At),
		Group:    e.Scope.Group,
		GSPGroup: e.Scope.GSPGroup,

		NumControlled:   e.Controlled,
		NumUncontrolled: e.Uncontrolled,
		NumShort:        e.Short,
		NumBatteries:    e.Batteries,
		NumHeaters:      e.Heaters,
		HalfHours:       envelopeWindows(e.HalfHours),
	}

	if windows {
		d.Windows = envelopeWindows(e.Windows)
	}

	if e.Batteries > 0 {
		addBatteries(d.HalfHours, e.HalfHours)
		if windows {
			addBatteries(d.Windows, e.Windows)
		}
	}

	if e.Heaters > 0 {
		addHeaters(d.HalfHours, e.HalfHours)
		if windows {
			addHeaters(d.Windows, e.Windows)
		}
	}

	return d
}

// addBatteries adds what home batteries do to windows.
func addBatteries(to []wire.EnvelopeWindow, of []grid.Window) {
	for i := range to {
		b := &of[i].Batteries
		to[i].Batteries = &wire.EnvelopeBatteries{
			PlannedKWh: b.Planned.KWh(),
			LeastKWh:   b.Least.KWh(),
			MostKWh:    b.Most.KWh(),
		}
	}
}

// addHeaters adds what tanks and heat pumps do to windows.
func addHeaters(to []wire.EnvelopeWindow, of []grid.Window) {
	for i := range to {
		h := &of[i].Heaters
		to[i].Heaters = &wire.EnvelopeHeaters{
			PlannedKWh: h.Planned.KWh(),
			LeastKWh:   h.Least.KWh(),
			MostKWh:    h.Most.KWh(),
		}
	}
}

func envelopeWindows(ws []grid.Window) []wire.EnvelopeWindow {
	out := make([]wire.EnvelopeWindow, len(ws))
	for i, w := range ws {
		out[i] = wire.EnvelopeWindow{
			StartTimestamp: wire.At(w.From),
			EndTimestamp:   wire.At(w.To),
			PlannedKWh:     w.Planned.KWh(),
			LeastKWh:       w.Least.KWh(),
			MostKWh:        w.Most.KWh(),
		}
	}

	return out
}

// Profile is whether a fleet can follow a profile, with the parts if they are asked for.
func Profile(f *grid.Follows, parts bool) wire.ProfileResponse {
	d := wire.ProfileResponse{
		At:              wire.At(f.At),
		Group:           f.Scope.Group,
		GSPGroup:        f.Scope.GSPGroup,
		NumControlled:   f.Controlled,
		NumUncontrolled: f.Uncontrolled,
		Follows:         f.Yes,
		HalfHours:       envelopeWindows(f.Asked),
	}

	if !f.Yes {
		d.Certificate = &wire.ProfileCertificate{
			AskedKWh: f.Certificate.Asked.KWh(),
			BoundKWh: f.Certificate.Bound.KWh(),
			TooMuch:  f.Certificate.TooMuch,
			Text:     f.Certificate.String(),
		}

		for _, s := range f.Certificate.HalfHours {
			d.Certificate.StartTimestamps = append(
				d.Certificate.StartTimestamps,
				wire.At(s.From),
			)
		}
	}

	for i := 0; parts && i < len(f.Parts); i++ {
		p := wire.ProfilePart{AssetID: f.Parts[i].AssetID}
		for _, e := range f.Parts[i].Energy {
			p.EnergyKWh = append(p.EnergyKWh, e.KWh())
		}

		d.Parts = append(d.Parts, p)
	}

	return d
}

// Ahead is what a fleet is expected to do on a day.
func Ahead(a *grid.Ahead) wire.AheadResponse {
	d := wire.AheadResponse{
		At:              wire.At(a.At),
		Day:             wire.Day(a.Day),
		Group:           a.Scope.Group,
		GSPGroup:        a.Scope.GSPGroup,
		NumDays:         a.Days,
		NumStays:        a.Stays,
		NumUncontrolled: a.Uncontrolled,
		NumBatteries:    a.Batteries,
		NumHeaters:      a.Heaters,
		Confidences:     forecast.Confidences[:],
		Reliability:     []wire.AheadJudged{},
		Windows:         []wire.AheadWindow{},
	}

	for _, k := range forecast.Kinds {
		j := a.Judged[k]
		d.Reliability = append(d.Reliability, wire.AheadJudged{
			Kind:    k.String(),
			NumDays: j.Days,
			Kept:    rounded(j.Kept[:]),
			Volume:  rounded(j.Volume[:]),
		})
	}

	for _, w := range a.Windows {
		d.Windows = append(d.Windows, aheadWindow(w))
	}

	return d
}

func aheadWindow(w grid.AheadWindow) wire.AheadWindow {
	v := wire.AheadWindow{
		StartTimestamp: wire.At(w.From),
		EndTimestamp:   wire.At(w.To),
		LoadKW:         rounded(w.KW[forecast.FleetLoad][:]),
		TurnDownKW:     rounded(w.KW[forecast.TurnDown][:]),
		TurnUpKW:       rounded(w.KW[forecast.TurnUp][:]),
	}

	if w.Actual != nil {
		came := rounded(w.Actual[:])
		v.LoadCameKW, v.TurnDownCameKW = &came[forecast.FleetLoad], &came[forecast.TurnDown]
		v.TurnUpCameKW = &came[forecast.TurnUp]
	}

	return v
}

// rounded are numbers to a thousandth.
func rounded(vs []float64) []float64 {
	out := make([]float64, len(vs))
	for i, v := range vs {
		out[i] = grid.Round(v)
	}

	return out
}
