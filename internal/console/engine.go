package console

import (
	"fmt"
	"time"

	"flexd/internal/control"
	"flexd/internal/worker"
)

// enginePage shows the state of planning.
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
	worker.Status
}

func (s *Server) engine(r *request) (view, error) {
	if err := r.onlyFilters("org"); err != nil {
		return view{}, err
	}

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
	p.Jobs = s.jobLines()

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

func (s *Server) jobLines() []jobLine {
	if s.Jobs == nil {
		return nil
	}

	var lines []jobLine

	for _, w := range s.Jobs() {
		lines = append(lines, jobLine{w.Name, w.Every, w.Last()})
	}

	return lines
}

// jobs answers how each background job ran last, as CSV or JSON.
func (s *Server) jobs(r *request) (view, error) {
	t := &table{
		Name: "jobs",
		Columns: []string{
			"job",
			"every_s",
			"runs",
			"failures",
			"last_run_at",
			"last_took_ms",
			"last_processed",
			"last_message",
			"last_error",
			"failing_since",
			"succeeded_at",
		},
	}

	for _, l := range s.jobLines() {
		fault := ""
		if l.Err != nil {
			fault = l.Err.Error()
		}

		t.add(
			l.Name,
			l.Every.Seconds(),
			l.Runs,
			l.Failures,
			l.At,
			l.Took.Milliseconds(),
			l.Report.Count,
			l.Report.Note,
			fault,
			l.FailedSince,
			l.SucceededAt,
		)
	}

	return view{table: t}, r.onlyFilters()
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
