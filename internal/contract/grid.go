package contract

import (
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// Envelope is a fleet's envelope, with all windows if they are asked for.
func Envelope(e *grid.Envelope, windows bool) wire.EnvelopeResponse {
	d := wire.EnvelopeResponse{
		At: wire.At(e.At), Group: e.Scope.Group, GSPGroup: e.Scope.GSPGroup,
		NumControlled: e.Controlled, NumUncontrolled: e.Uncontrolled, NumShort: e.Short, HalfHours: envelopeWindows(e.HalfHours),
	}
	if windows {
		d.Windows = envelopeWindows(e.Windows)
	}
	return d
}

func envelopeWindows(ws []grid.Window) []wire.EnvelopeWindow {
	out := make([]wire.EnvelopeWindow, len(ws))
	for i, w := range ws {
		out[i] = wire.EnvelopeWindow{
			StartTimestamp: wire.At(w.From), EndTimestamp: wire.At(w.To),
			PlannedKWh: w.Planned.KWh(), LeastKWh: w.Least.KWh(), MostKWh: w.Most.KWh(),
		}
	}
	return out
}

// Profile is whether a fleet can follow a profile, with the parts if they are asked for.
func Profile(f *grid.Follows, parts bool) wire.ProfileResponse {
	d := wire.ProfileResponse{
		At: wire.At(f.At), Group: f.Scope.Group, GSPGroup: f.Scope.GSPGroup,
		NumControlled: f.Controlled, NumUncontrolled: f.Uncontrolled, Follows: f.Yes, HalfHours: envelopeWindows(f.Asked),
	}
	if !f.Yes {
		d.Certificate = &wire.ProfileCertificate{
			AskedKWh: f.Certificate.Asked.KWh(), BoundKWh: f.Certificate.Bound.KWh(), TooMuch: f.Certificate.TooMuch, Text: f.Certificate.String(),
		}
		for _, s := range f.Certificate.HalfHours {
			d.Certificate.StartTimestamps = append(d.Certificate.StartTimestamps, wire.At(s.From))
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
