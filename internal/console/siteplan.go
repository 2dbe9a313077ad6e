package console

import (
	"fmt"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// sitePlan is the common plan of a site's devices in readable form.
type sitePlan struct {
	control.SiteAhead
	Source string // address of the plot's numbers
}

// sitePlanLine is one half-hour of the plot, for programs: powers in kilowatts.
type sitePlanLine struct {
	Start   int64     `json:"start"`
	End     int64     `json:"end"`
	Price   *float64  `json:"price_gbp_per_mwh"`
	Home    float64   `json:"home_kw"`
	Devices []float64 `json:"devices_kw"`
	Meter   float64   `json:"meter_kw"`
}

// sitePlanSeries are the numbers of the plot.
type sitePlanSeries struct {
	Devices []string       `json:"devices"`
	Fuse    *float64       `json:"fuse_kw"`   // null if it was never set
	Export  *float64       `json:"export_kw"` // null if it was never set
	Periods []sitePlanLine `json:"periods"`
}

// planOf reads the plan of a site's devices; nil if there is none.
func (s *Server) planOf(r *request, id flex.SiteID) (*sitePlan, error) {
	a, err := s.Control.SiteAhead(r.Context(), id)
	if err != nil {
		return nil, fmt.Errorf(
			"read what the site's devices are planned to do: %w",
			err,
		)
	}
	if len(a.Devices) == 0 {
		return nil, nil
	}

	return &sitePlan{a, "/console/sites/" + id.String() + "/plan.json"}, nil
}

// siteSeries answers the numbers of a site's plot.
func (s *Server) siteSeries(r *request) (view, error) {
	var id flex.SiteID
	if err := readID(&id, r.PathValue("id"), "site"); err != nil {
		return view{}, err
	}

	a, err := s.Control.SiteAhead(r.Context(), id)
	if err != nil {
		return view{}, err
	}

	out := sitePlanSeries{
		Devices: []string{},
		Periods: []sitePlanLine{},
	}

	for _, d := range a.Devices {
		out.Devices = append(out.Devices, d.Name)
	}

	if a.Supply.Set {
		out.Fuse, out.Export = new(a.Supply.Import.KW()), new(a.Supply.Export.KW())
	}

	for _, p := range a.Periods {
		line := sitePlanLine{
			Start:   p.Start().Unix(),
			End:     p.End().Unix(),
			Home:    round(p.Home, 3),
			Meter:   round(p.Meter, 3),
			Devices: []float64{},
		}

		for _, kw := range p.Devices {
			line.Devices = append(line.Devices, round(kw, 3))
		}

		if p.Known {
			line.Price = new(p.Price.GBPPerMWh())
		}

		out.Periods = append(out.Periods, line)
	}

	return view{json: out}, nil
}
