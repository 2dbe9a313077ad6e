package console

import (
	"fmt"
	"time"

	"flexd/internal/control"
	"flexd/internal/worker"
)

// enginePage is how planning does.
type enginePage struct {
	control.Performance
	Buckets []bucket
	Saved   int64
	Jobs    []jobLine
	Export  Export
}

// bucket is a bar of the histogram of solve times.
type bucket struct {
	Upto  string
	Count int
}

type jobLine struct {
	Name  string
	Every time.Duration
	worker.Last
}

func (s *Server) engine(r *request) (view, error) {
	p := &enginePage{Export: r.exports()}
	if err := readFilter(
		&p.Org,
		r.URL.Query().Get("org"),
		"organisation",
	); err != nil {
		return view{}, err
	}

	var err error
	p.Performance, err = s.Control.Performance(r.Context(), p.Org)
	if err != nil {
		return view{}, err
	}

	p.addBuckets()
	p.Saved = p.Planned - p.Changed

	if s.Jobs != nil {
		for _, w := range s.Jobs() {
			p.Jobs = append(p.Jobs, jobLine{w.Name, w.Every, w.Last()})
		}
	}

	t := &table{
		Name:    "engine",
		Columns: []string{"asset_id", "took_us", "energy_kwh", "shortfall_kwh", "cost_gbp", "gap_gbp"},
	}

	for _, v := range p.Sample {
		t.add(
			v.Asset.String(),
			float64(v.Took.Nanoseconds())/1000,
			v.Energy.KWh(),
			v.Shortfall.KWh(),
			v.Cost.GBP(),
			v.Gap.GBP(),
		)
	}

	return view{
		page:  "engine",
		title: "Engine",
		data:  p,
		table: t,
	}, nil
}

// addBuckets names the bars of the histogram.
func (p *enginePage) addBuckets() {
	for i, n := range p.Counts {
		text := "longer"
		if i < len(control.PerformanceEnds) {
			text = fmt.Sprintf(
				"up to %d\u00a0µs",
				control.PerformanceEnds[i].Microseconds(),
			)
		}
		p.Buckets = append(p.Buckets, bucket{text, n})
	}
}
