package contract

import (
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// FeederLimits puts what limits feeders into the interface's form.
func FeederLimits(v *control.LimitsView) wire.FeederLimits {
	out := wire.FeederLimits{
		Limits: []wire.FeederLimit{},
		Links:  []wire.LimitLink{},
	}

	for i := range v.Limits {
		l := &v.Limits[i]
		limit := wire.FeederLimit{
			Group:          l.Group,
			Direction:      string(l.Direction),
			StartTimestamp: wire.At(l.From),
			LimitKW:        l.Power.KW(),
			Source:         l.Source,
			Binds:          l.Binds,
			IsLowest:       l.Lowest,
			NumSites:       l.NumSites,
		}

		if !l.To.IsZero() {
			limit.EndTimestamp = wire.At(l.To)
		}
		out.Limits = append(out.Limits, limit)
	}

	for i := range v.Links {
		l := &v.Links[i]
		link := wire.LimitLink{
			Group:            l.Group,
			FallbackKW:       kwOf(l.Fallback),
			ExportFallbackKW: kwOf(l.Export),
			SilenceSeconds:   int(l.Silence / time.Second),
			HeardAt:          wire.At(l.HeardAt),
		}

		if !l.LostAt.IsZero() {
			link.LostAt = wire.At(l.LostAt)
		}
		out.Links = append(out.Links, link)
	}

	return out
}

// kwOf is a power in kW, nil if there is none.
func kwOf(w *flex.Watts) *float64 {
	if w == nil {
		return nil
	}
	return new(w.KW())
}
