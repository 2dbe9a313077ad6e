package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"flexd/internal/engine/fleet"
	"flexd/internal/engine/random"
	"flexd/internal/flex"
	"flexd/internal/lab/problem"
	"flexd/internal/lab/sample"
	"flexd/internal/lab/verify"
	"flexd/internal/lab/wave"
)

// Planners plans samples of every family, a wave and coupled fleets, and holds excess, time
// and memory against their targets. The prices are half-hours of GBP/MWh over a year, which
// the choice of pushes is replayed on; large adds a coupled fleet of a million cars.
func Planners(prices []float64, large bool) ([]Row, error) {
	rows, err := families()
	if err != nil {
		return nil, err
	}

	rows = append(rows, replan(1_000_000))

	coupled := []fleetTarget{{
		cars:      100_000,
		seconds:   1,
		gap:       0.001,
		warm:      0.150,
		warmGap:   0.002,
		megabytes: 64,
	}}

	if large {
		coupled = append(coupled, fleetTarget{
			cars:    1_000_000,
			seconds: 6,
			gap:     0.002,
		})
	}

	for _, f := range coupled {
		r, err := f.run()
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}

	mixed, err := mixedFleets()
	if err != nil {
		return nil, err
	}

	rows = append(rows, mixed...)

	return append(rows, pushChoice(prices)), nil
}

// Row is a target beside what was measured.
type Row struct {
	What   string `json:"what"`
	Target string `json:"target"`
	Here   string `json:"here"`
	Met    bool   `json:"met"`
}

// familyTarget is what a family of problems must reach: excess in pence over the optimum,
// or as a share of a fleet's turnover, and microseconds.
type familyTarget struct {
	family     string
	meanExcess float64
	excess     float64
	median     float64
	worst      float64
}

var familyTargets = []familyTarget{
	{family: "ev-plain", median: 0.5},
	{family: "ev-tiers", median: 0.5},
	{family: "ev-minpower", median: 3},
	{family: "ev-switch", median: 100, worst: 5000},
	{family: "pause", worst: 2},
	{family: "battery-convex", median: 4},
	{family: "battery-nonconvex", median: 300, worst: 5000},
	{family: "battery-modes", meanExcess: 0.03, excess: 0.25, median: 250},
}

// Print writes the rows as a table.
func Print(out io.Writer, rows []Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(
		w,
		"on %d cores, %s %s/%s\ttarget\there\t\n",
		runtime.GOMAXPROCS(0),
		runtime.Version(),
		runtime.GOOS,
		runtime.GOARCH,
	)

	for _, r := range rows {
		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.What, r.Target, r.Here, verdict)
	}

	return w.Flush()
}

// timedRun is one sample problem, planned.
type timedRun struct {
	excess float64
	micros float64
	allocs float64
}

// families plans every sample of every family.
func families() ([]Row, error) {
	samples, err := problem.Samples()
	if err != nil {
		return nil, err
	}

	byFamily := map[string][]timedRun{}
	var w problem.Scratch
	for _, s := range samples {
		p, err := problem.Decode(s.Line)
		if err != nil {
			return nil, err
		}

		// the samples of two days are beside what the target speaks of
		if p.Family == "fleet" ||
			p.Family == "battery-convex" && p.Slots() > 48 {
			continue
		}
		t := timedRun{micros: math.Inf(1)}
		p.Plan(&w)
		if err := p.Check(&w); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ID, err)
		}

		t.excess = p.Answer().Cost - s.Optimum
		t.micros, t.allocs = clock(func() { p.Plan(&w) })
		byFamily[p.Family] = append(byFamily[p.Family], t)
	}

	var rows []Row
	for _, target := range familyTargets {
		rows = append(rows, target.rows(byFamily[target.family])...)
	}

	return rows, nil
}

// clock is how many microseconds a call takes, in the fastest of some batches, and how
// often it allocates.
func clock(f func()) (micros, allocs float64) {
	const batches, batch = 7, 5 * time.Millisecond
	n := 1
	for start := time.Now(); time.Since(start) < batch; n++ {
		f()
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	micros = math.Inf(1)

	for range batches {
		start := time.Now()
		for range n {
			f()
		}
		micros = min(
			micros,
			float64(time.Since(start).Nanoseconds())/1000/float64(n),
		)
	}

	runtime.ReadMemStats(&after)

	return micros, math.Floor(
		float64(after.Mallocs-before.Mallocs) / float64(batches*n),
	) // the runtime's own are left out
}

// rows holds a family's target against its samples.
func (f *familyTarget) rows(runs []timedRun) []Row {
	if len(runs) == 0 {
		return nil
	}

	worst := slices.MaxFunc(runs, func(a, b timedRun) int {
		return cmp.Compare(a.excess, b.excess)
	}).excess

	mean, allocs := 0.0, 0.0
	for _, t := range runs {
		mean += max(0, t.excess) / float64(len(runs))
		allocs = max(allocs, t.allocs)
	}

	slices.SortFunc(runs, func(a, b timedRun) int {
		return cmp.Compare(a.micros, b.micros)
	})

	median, slowest := runs[len(runs)/2].micros, runs[len(runs)-1].micros

	var rows []Row
	rows = append(rows, f.exactness(len(runs), mean, worst))
	if f.median > 0 {
		rows = append(rows, Row{
			f.family + ": median",
			fmt.Sprintf("<= %g µs", f.median),
			fmt.Sprintf("%.2f µs", median),
			median <= f.median,
		})
	}

	if f.worst > 0 {
		rows = append(rows, Row{
			f.family + ": worst",
			fmt.Sprintf("<= %g µs", f.worst),
			fmt.Sprintf("%.2f µs", slowest),
			slowest <= f.worst,
		})
	}

	return append(rows, Row{
		f.family + ": allocations",
		"0",
		fmt.Sprintf("%.2f", allocs),
		allocs < 0.01,
	})
}

// exactness is the row on how far samples are above their optimum, in pence.
func (f *familyTarget) exactness(samples int, mean, worst float64) Row {
	label := fmt.Sprintf("%s, %d samples: excess", f.family, samples)
	if f.excess > 0 {
		return Row{
			What: label,
			Target: fmt.Sprintf(
				"mean <= %g p, worst <= %g p",
				f.meanExcess,
				f.excess,
			),
			Here: fmt.Sprintf("mean %.4f p, worst %.4f p", mean, max(0, worst)),
			Met:  mean <= f.meanExcess && worst <= f.excess,
		}
	}

	return Row{
		What: label, Target: "every one optimal to 1e-6 p",
		Here: fmt.Sprintf("at most %.1e p", max(0, worst)), Met: worst <= 1e-6,
	}
}

// replan re-plans an uncoupled fleet after every price has moved.
func replan(n int) Row {
	d := random.Source(7)
	prices := wave.SamplePrices(&d, 48)
	before := wave.SampleCurves(prices)

	for i := range prices {
		prices[i] += flex.FromGBPPerMWh(d.Between(-8, 8))
	}
	after := wave.SampleCurves(prices)
	cars := wave.SampleCars(&d, n)
	current, changes := make([]wave.Plan, n), make([]wave.Change, 0, n)

	for i := range cars {
		current[i] = before[cars[i].Class].Plan(&cars[i])
	}
	best := time.Duration(math.MaxInt64)
	for range 5 {
		start := time.Now()
		changes = wave.Replan(after, cars, current, changes[:0])
		best = min(best, time.Since(start))
	}

	bytes := reflect.TypeFor[wave.Asset]().Size() +
		reflect.TypeFor[wave.Plan]().Size()

	return Row{
		What:   fmt.Sprintf("%d cars re-planned after a price change, with the changes, on one core", n),
		Target: "<= 50 ms, <= 64 bytes a car",
		Here: fmt.Sprintf(
			"%.1f ms, %d bytes, %d changed",
			best.Seconds()*1000,
			bytes,
			len(changes),
		),
		Met: best <= 50*time.Millisecond && bytes <= 64,
	}
}

// fleetTarget is a coupled fleet and what its plan must reach.
type fleetTarget struct {
	cars      int
	seconds   float64
	gap       float64
	warm      float64
	warmGap   float64
	megabytes float64 // zero: as much as it takes
}

// run plans the fleet, and again after the price of one half-hour has moved.
func (f *fleetTarget) run() ([]Row, error) {
	d := random.Source(1)
	p := sample.Fleet(&d, sample.Shape{
		EVs:      f.cars,
		Cap:      0.35,
		Groups:   20,
		GroupCap: 0.45,
	})

	cold, err := f.measure(
		p,
		fmt.Sprintf("%d coupled cars, fleet and group caps", f.cars),
		f.seconds,
		f.gap,
		f.megabytes,
	)
	if err != nil {
		return nil, err
	}

	var rows []Row
	rows = append(rows, cold)
	if f.warm == 0 {
		return rows, nil
	}

	p.Price[20] += 3
	warm, err := f.measure(
		p,
		"the same again, the price of one half-hour moved",
		f.warm,
		f.warmGap,
		0,
	)
	if err != nil {
		return nil, err
	}

	return append(rows, warm), nil
}

// measure plans the fleet once, checks the plan and says how it did against the target. The
// next plan starts from this one's prices.
func (f *fleetTarget) measure(
	p *fleet.Problem,
	label string,
	seconds, gap, megabytes float64,
) (Row, error) {
	runtime.GC()
	heap := watchHeap()
	start := time.Now()
	a, err := fleet.Solve(p)
	took := time.Since(start).Seconds()
	used := heap()

	if err != nil {
		return Row{}, err
	}
	if err := verify.Fleet(p, &a); err != nil {
		return Row{}, err
	}

	p.Start = a.Prices
	relativeGap := (a.Cost - a.Bound) / a.Turnover
	r := Row{
		What:   label,
		Target: fmt.Sprintf("<= %g s, gap <= %g %%", seconds, 100*gap),
		Here: fmt.Sprintf(
			"%.2f s, gap %.3f %%, %.0f MB, no cap exceeded",
			took,
			100*relativeGap,
			used,
		),
		Met: took <= seconds && relativeGap <= gap && (megabytes == 0 || used <= megabytes),
	}

	if megabytes > 0 {
		r.Target += fmt.Sprintf(", <= %g MB", megabytes)
	}

	return r, nil
}

// watchHeap looks at the heap until the function that it returns is called, which tells by
// how many megabytes it grew at most.
func watchHeap() func() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	stop, done := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()

	return func() float64 {
		close(stop)
		<-done
		runtime.ReadMemStats(&m)
		return float64(max(most, m.HeapAlloc)-before) / 1e6
	}
}
