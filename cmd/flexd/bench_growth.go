package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/sim"
)

// benchGrowthCommand shows how costs grow with the fleet. Each fleet has a store of its own.
type benchGrowthCommand struct {
	Sites    []int    `help:"Sites of the fleets, of a plugged-in car each, the smallest fleet first." default:"1000,10000,100000" placeholder:"N"`
	Database []string `help:"An empty store for each fleet, in the order of --sites, such as PostgreSQL databases; temporary SQLite files if not given." placeholder:"URL"`
	Plot     string   `help:"Also draw the table, as SVG, into a new file." placeholder:"FILE"`
	JSON     bool     `name:"json" help:"Print JSON instead of a table."`
}

const (
	growthRounds = 5   // of which the shortest counts
	growthCars   = 100 // of a round
	growthSites  = 20  // of a round, enrolled beside the fleet
	growthPage   = 100 // sites
)

// What a cost may be in the largest fleet, as a multiple of that in the smallest.
const growthMost = 2

// growthRow is a cost by fleet.
type growthRow struct {
	What   string    `json:"what"`
	Micros []float64 `json:"micros"` // by fleet
	Growth float64   `json:"growth"` // from the smallest to the largest
	Most   float64   `json:"most"`
	Met    bool      `json:"met"`
}

// growthCosts has the times that are measured for a fleet.
type growthCosts struct {
	enrolled            time.Duration // of a site
	plugIn, settled     time.Duration // of a car
	firstPage, lastPage time.Duration
	planned             time.Duration // of a car, in a wave
}

// rising reports whether there are two fleets or more, each larger than the one before.
func (b *benchGrowthCommand) rising() bool {
	sizes := len(slices.Compact(slices.Clone(b.Sites)))
	return slices.IsSorted(b.Sites) && sizes >= 2 && sizes == len(b.Sites)
}

// Run prints the table.
func (b *benchGrowthCommand) Run(ctx context.Context, c console) error {
	if !b.rising() || b.Sites[0] < growthCars || b.Sites[len(b.Sites)-1] > 1_000_000 {
		return flex.Fail(
			flex.Invalid,
			"--sites names two fleets or more, each larger than the one before, of %d to 1000000 sites",
			growthCars,
		)
	}

	if len(b.Database) > 0 && len(b.Database) != len(b.Sites) {
		return flex.Fail(
			flex.Invalid,
			"--database names %d stores for %d fleets: each fleet needs an empty one",
			len(b.Database),
			len(b.Sites),
		)
	}

	if _, err := os.Stat(b.Plot); b.Plot != "" && err == nil {
		return flex.Fail(flex.Invalid, "%s exists already: --plot names a new file", b.Plot)
	}

	var costs []growthCosts
	for i, n := range b.Sites {
		database := ""
		if len(b.Database) > 0 {
			database = b.Database[i]
		}

		one, err := measureGrowth(ctx, n, database, c)
		if err != nil {
			return fmt.Errorf("%d sites: %w", n, err)
		}
		costs = append(costs, one)
	}

	rows := b.rows(costs)
	if err := b.draw(rows); err != nil {
		return err
	}
	if b.JSON {
		return c.json(rows)
	}

	return b.print(c, rows)
}

// growthTable lists the costs. The cost of a page of sites may grow with the fleet, because
// the page gives the number of sites, and is found by counting those before it.
var growthTable = []struct {
	what   string
	counts bool // what it costs may grow as the fleet does
	of     func(growthCosts) time.Duration
}{
	{"a site registered with its charger, and enrolled", false, func(c growthCosts) time.Duration { return c.enrolled }},
	{"a plug-in, planned and stored", false, func(c growthCosts) time.Duration { return c.plugIn }},
	{"the first page of 100 sites", true, func(c growthCosts) time.Duration { return c.firstPage }},
	{"the last page of 100 sites", true, func(c growthCosts) time.Duration { return c.lastPage }},
	{"a wave, for each car", false, func(c growthCosts) time.Duration { return c.planned }},
	{"a session settled, of no energy", false, func(c growthCosts) time.Duration { return c.settled }},
}

// rows is the table.
func (b *benchGrowthCommand) rows(costs []growthCosts) []growthRow {
	fleet := float64(b.Sites[len(b.Sites)-1]) / float64(b.Sites[0])

	var rows []growthRow
	for _, r := range growthTable {
		row := growthRow{What: r.what, Most: growthMost}
		if r.counts {
			row.Most = fleet
		}

		for _, c := range costs {
			row.Micros = append(row.Micros, float64(r.of(c).Nanoseconds())/1000)
		}

		row.Growth = row.Micros[len(costs)-1] / row.Micros[0]
		row.Met = row.Growth <= row.Most
		rows = append(rows, row)
	}

	return rows
}

// draw writes the plot, if one is asked for. A file that exists is left as it is.
func (b *benchGrowthCommand) draw(rows []growthRow) error {
	if b.Plot == "" {
		return nil
	}

	file, err := os.OpenFile(b.Plot, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}

	return errors.Join(newGrowthPlot(b.Sites, rows).write(file), file.Close())
}

func (b *benchGrowthCommand) print(c console, rows []growthRow) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "ms\t")
	for _, n := range b.Sites {
		fmt.Fprintf(w, "%d sites\t", n)
	}
	fmt.Fprintln(w, "growth\tat most\t\t")

	for _, r := range rows {
		fmt.Fprintf(w, "%s\t", r.What)
		for _, micros := range r.Micros {
			fmt.Fprintf(w, "%.3f\t", micros/1000)
		}

		verdict := "met"
		if !r.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%.2f\t%.0f\t%s\t\n", r.Growth, r.Most, verdict)
	}

	return w.Flush()
}

// measureGrowth measures a fleet of n sites on its own store, which is temporary if none is
// named.
func measureGrowth(ctx context.Context, n int, database string, c console) (growthCosts, error) {
	h, done, err := openEmptyBench(ctx, database, c)

	var costs growthCosts
	if err != nil {
		return costs, err
	}
	defer done()

	w := &waveBench{ownWorker: ownWorker{App: h}}
	if err := w.fill(ctx, n); err != nil {
		return costs, err
	}

	costs.enrolled, err = w.enrolMore(ctx)
	if err != nil {
		return costs, err
	}

	if err := w.rest(ctx); err != nil {
		return costs, err
	}
	if err := w.publish(ctx, func(i int) float64 { return 100 - float64(i) }); err != nil {
		return costs, err
	}

	costs.planned, err = w.timeWave(ctx)
	if err != nil {
		return costs, err
	}

	costs.firstPage, err = w.pages(ctx, 0)
	if err != nil {
		return costs, err
	}
	costs.lastPage, err = w.pages(ctx, n-growthPage)
	if err != nil {
		return costs, err
	}

	err = w.rounds(ctx, &costs)

	return costs, err
}

// timeWave returns the time per car of a wave that changes every schedule.
func (w *waveBench) timeWave(ctx context.Context) (time.Duration, error) {
	n := len(w.cars)
	start := time.Now()
	share, err := w.plan(ctx)
	each := time.Since(start) / time.Duration(n)

	if err == nil && share.Changed != n {
		err = fmt.Errorf("the wave changed %d schedules of %d", share.Changed, n)
	}

	return each, err
}

// fill registers n sites and plugs in a car at each. A few more metering points are known.
func (w *waveBench) fill(ctx context.Context, n int) error {
	org, _, err := w.Access.AddOrg(ctx, "Bench", benchUser, benchPassword)
	if err != nil {
		return err
	}

	w.org = org.ID
	var file strings.Builder
	file.WriteString("mpan,direction,address,postcode,energised,half_hourly_settled,domestic\n")
	for i := range n + growthRounds*growthSites {
		fmt.Fprintf(
			&file,
			"%s,import,%d High Street,SW1A 1AA,true,true,true\n",
			sim.MPANOf(i),
			i+1,
		)
	}
	if _, err := w.ImportMeters(ctx, strings.NewReader(file.String()), nil); err != nil {
		return err
	}

	w.cars = make([]flex.AssetID, n)
	if err := w.onboardEach(ctx); err != nil {
		return err
	}
	if err := w.publish(ctx, func(int) float64 { return 60 }); err != nil {
		return err
	}

	return w.plugIn(ctx)
}

// onboardEach registers the sites.
func (w *waveBench) onboardEach(ctx context.Context) error {
	return w.eachCar(func(i int) error {
		var err error
		w.cars[i], err = w.onboardOne(ctx, i)
		return err
	})
}

// enrolMore returns the shortest time for registering and enrolling one more site.
func (w *waveBench) enrolMore(ctx context.Context) (time.Duration, error) {
	var least time.Duration
	least = math.MaxInt64

	for round := range growthRounds {
		first := len(w.cars) + round*growthSites
		start := time.Now()

		for i := range growthSites {
			if _, err := w.onboardOne(ctx, first+i); err != nil {
				return 0, err
			}
		}

		least = min(least, time.Since(start)/growthSites)
	}

	return least, nil
}

// onboardOne registers the i-th site with a charger, and enrols it.
func (w *waveBench) onboardOne(ctx context.Context, i int) (flex.AssetID, error) {
	out, err := w.Registry.Onboard(
		ctx,
		w.org,
		registry.SiteInput{
			MPAN:      sim.MPANOf(i),
			Postcode:  "SW1A 1AA",
			ConsentAt: time.Now().Add(-time.Minute),
		},
		[]registry.AssetInput{{
			ExternalID: fmt.Sprintf("car-%d", i),
			Type:       flex.Charger,
		}},
		registry.Enrolment{Proposition: flex.FullAssetSchedule},
	)

	var car flex.AssetID
	if err != nil {
		return car, err
	}

	return out.Assets[0].ID, nil
}

// pages returns the shortest time for a page of sites. Each round asks for one site less,
// because the same page would be answered from memory.
func (w *waveBench) pages(ctx context.Context, offset int) (time.Duration, error) {
	var least time.Duration
	least = math.MaxInt64
	for round := range growthRounds {
		limit := growthPage - round
		start := time.Now()
		found, err := w.Registry.Sites(
			ctx,
			w.org,
			registry.SiteQuery{Limit: limit, Offset: offset},
		)

		if err == nil && len(found.Sites) != limit {
			err = fmt.Errorf("%d sites on a page of %d", len(found.Sites), limit)
		}
		if err != nil {
			return 0, err
		}

		least = min(least, time.Since(start))
	}

	return least, nil
}

// rounds unplugs some cars, settles their sessions, and plugs the cars in again.
func (w *waveBench) rounds(ctx context.Context, costs *growthCosts) error {
	costs.plugIn, costs.settled = math.MaxInt64, math.MaxInt64
	for range growthRounds {
		settled, err := w.leave(ctx)
		if err != nil {
			return err
		}

		start := time.Now()
		for i := range growthCars {
			if err := w.plugInCar(ctx, w.sampled(i)); err != nil {
				return err
			}
		}

		costs.settled = min(costs.settled, settled)
		costs.plugIn = min(costs.plugIn, time.Since(start)/growthCars)
	}

	return nil
}

// sampled is which car is the i-th of a round's, evenly spread.
func (w *waveBench) sampled(i int) int { return i * (len(w.cars) / growthCars) }

// leave unplugs a round's cars, and returns how long it took to settle each session.
func (w *waveBench) leave(ctx context.Context) (time.Duration, error) {
	for i := range growthCars {
		err := w.Control.Event(
			ctx,
			w.org,
			w.cars[w.sampled(i)],
			control.Event{Kind: control.PlugOut},
		)
		if err != nil {
			return 0, err
		}
	}

	start := time.Now()
	report, err := w.Reward.SettleSessionsOf(ctx, w.org)
	if err != nil {
		return 0, err
	}
	if report.Count == 0 {
		return 0, errors.New("no session was settled")
	}

	return time.Since(start) / time.Duration(report.Count), nil
}
