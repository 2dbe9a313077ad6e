package console

import (
	"fmt"
	"slices"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// enginePage is how planning does.
type enginePage struct {
	ofOrg
	Sample          []control.Sampled
	P50, P99, Most  time.Duration
	Buckets         []bucket
	Short           int
	GapMost         flex.MicroPounds
	Proven          int // plans whose cost is the proven least, to the penny
	Causes          []causeLine
	Looked, Changed int64
	Saved           int64
	Jobs            []jobLine
	Export          Export
}

// bucket is a bar of the histogram of solve times.
type bucket struct {
	Upto  string
	Count int
}

type causeLine struct {
	Text  string
	Count int
}

type jobLine struct {
	Name  string
	Every time.Duration
	worker.Last
}

// bucketEnds cut the histogram of solve times; the last bar has no end.
var bucketEnds = []time.Duration{10 * time.Microsecond, 20 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	200 * time.Microsecond, 500 * time.Microsecond, time.Millisecond}

func (s *Server) engine(r *request) (view, error) {
	p := &enginePage{Export: r.exports()}
	if err := readFilter(&p.Org, r.URL.Query().Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	ctx := r.Context()
	err := s.DB.ReadAll(ctx, func(all *store.All) (err error) {
		tx, err := p.choose(ctx, all)
		if tx == nil || err != nil {
			return err
		}

		causes, err := tx.SchedulesSince(ctx, all.Now().Add(-24*time.Hour))
		for _, c := range causes {
			p.Causes = append(p.Causes, causeLine{causeText[c.Cause], c.Count})
		}

		return err
	})
	if err != nil {
		return view{}, err
	}

	if len(p.Orgs) > 0 {
		p.Sample, err = s.Control.Sample(ctx, p.Org, control.SampleMax)
		if err != nil {
			return view{}, err
		}
	}

	p.figures()
	p.Looked, p.Changed = s.Control.Weighed()
	p.Saved = p.Looked - p.Changed

	if s.Jobs != nil {
		for _, w := range s.Jobs() {
			p.Jobs = append(p.Jobs, jobLine{w.Name, w.Every, w.Last()})
		}
	}

	t := &table{Name: "engine", Columns: []string{"asset_id", "took_us", "energy_kwh", "shortfall_kwh", "cost_gbp", "gap_gbp"}}
	for _, v := range p.Sample {
		t.add(v.Asset.String(), float64(v.Took.Nanoseconds())/1000, v.Energy.KWh(), v.Shortfall.KWh(), v.Cost.GBP(), v.Gap.GBP())
	}

	return view{page: "engine", title: "Engine", data: p, table: t}, nil
}

// figures sums the sample up.
func (p *enginePage) figures() {
	const penny flex.MicroPounds = 10_000
	took := make([]time.Duration, 0, len(p.Sample))
	counts := make([]int, len(bucketEnds)+1)

	for _, v := range p.Sample {
		took = append(took, v.Took)
		i, _ := slices.BinarySearch(bucketEnds, v.Took)
		counts[i]++

		if v.Shortfall > 0 {
			p.Short++
		}

		p.GapMost = max(p.GapMost, v.Gap)
		if v.Gap < penny {
			p.Proven++
		}
	}

	slices.Sort(took)
	p.P50, p.P99 = quantile(took, 50), quantile(took, 99)

	if len(took) > 0 {
		p.Most = took[len(took)-1]
	}

	for i, n := range counts {
		text := "longer"
		if i < len(bucketEnds) {
			text = fmt.Sprintf("up to %d\u00a0µs", bucketEnds[i].Microseconds())
		}
		p.Buckets = append(p.Buckets, bucket{text, n})
	}
}
