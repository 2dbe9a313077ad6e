package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"

	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/sim"
)

// simulateCommand is `flexd simulate`.
type simulateCommand struct {
	Homes    int    `help:"Homes, each with a charger." default:"3" placeholder:"N"`
	Days     int    `help:"How many days are simulated." default:"2" placeholder:"D"`
	From     string `help:"The first day; 2026-10-23 if it is not given, so that the clocks go back in the second night, or 2027-01-11 with --winter. From 2027-03-26 on they go forward in it." placeholder:"DATE"`
	Winter   bool   `help:"Give two of three homes a heat pump, two of three a hot-water tank, and each a main fuse, in winter weather that is made up."`
	Seed     uint64 `help:"The seed of the history: the same seed gives the same history and outcome." default:"0" placeholder:"S"`
	Seeds    int    `help:"Run so many seeds, from --seed on, as many at a time as there are processors." default:"1" placeholder:"K"`
	Postgres string `help:"Run on databases of its own of this PostgreSQL server, which it creates and drops, in place of SQLite's. The database of the URL itself is not touched." placeholder:"URL"`
	Replay   string `help:"Run the history of a file, as --json prints it, in place of one drawn from a seed." type:"existingfile" placeholder:"FILE"`
	Shrink   bool   `help:"If a rule is broken, reduce the history to the fewest events that still break it."`
	JSON     bool   `name:"json" help:"Print a line of JSON for each history: seed, events, broken rules, hash."`
}

// simulateGarbage makes the garbage collector run seldom, in per cent of the memory in use. A
// history leaves little garbage, and collecting it took a fifth of the time.
const simulateGarbage = 400

// The first simulated days if none are given.
const (
	autumn = "2026-10-23"
	winter = "2027-01-11"
)

// simulateMax bounds homes, days and seeds: more would not end today.
const simulateMax = 10_000

// playedHistory is a history and its result.
type playedHistory struct {
	Seed   uint64          `json:"seed"`
	Events []sim.Happening `json:"events"`
	sim.Outcome
}

// Run plays histories and fails if any broke a law.
func (s *simulateCommand) Run(ctx context.Context, c console) error {
	for _, n := range []int{s.Homes, s.Days, s.Seeds} {
		if n < 1 || n > simulateMax {
			return flex.Fail(
				flex.Invalid,
				"--homes, --days and --seeds are 1 to %d, not %d",
				simulateMax,
				n,
			)
		}
	}

	defer debug.SetGCPercent(debug.SetGCPercent(simulateGarbage))

	histories, err := s.histories()
	if err != nil {
		return err
	}

	play, end, err := s.stage(ctx)
	if err != nil {
		return err
	}

	defer end()
	failed, err := s.playAll(ctx, c, play, histories)

	if err == nil && failed > 0 {
		err = fmt.Errorf(
			"%d of %d histories broke a law",
			failed,
			len(histories),
		)
	}

	return err
}

// playAll plays histories, as many at a time as there are processors. It prints their results
// in order, and returns how many broke a rule. A history that cannot be played ends the
// others.
func (s *simulateCommand) playAll(
	ctx context.Context,
	c console,
	play playFunc,
	histories []playedHistory,
) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	failed, ended := 0, s.start(ctx, play, histories)

	var first error
	for i := range histories {
		h := &histories[i]
		if first == nil {
			fmt.Fprintf(
				c.err,
				"seed %d: %d events (%d of %d)\n",
				h.Seed,
				len(h.Events),
				i+1,
				len(histories),
			)
		}

		// Each is awaited, because the data that it plays on is removed afterwards.
		err := <-ended[i]
		if first != nil {
			continue
		}

		if err == nil {
			err = h.print(c, s.JSON)
		}
		if err != nil {
			first = fmt.Errorf("seed %d: %w", h.Seed, err)
			cancel()
		}

		if len(h.Broken) > 0 {
			failed++
		}
	}

	return failed, first
}

// start begins to play histories. How each ended is in its channel, once.
func (s *simulateCommand) start(
	ctx context.Context,
	play playFunc,
	histories []playedHistory,
) []chan error {
	ended := make([]chan error, len(histories))
	waiting := make(chan int, len(histories))
	for i := range histories {
		ended[i] = make(chan error, 1)
		waiting <- i
	}

	close(waiting)

	for range min(runtime.GOMAXPROCS(0), len(histories)) {
		go func() {
			for i := range waiting {
				ended[i] <- s.play(ctx, play, &histories[i])
			}
		}()
	}

	return ended
}

// histories are those to play: that of the file, or one for each seed.
func (s *simulateCommand) histories() ([]playedHistory, error) {
	if s.Replay != "" {
		text, err := readUnmarked(s.Replay)
		if err != nil {
			return nil, err
		}

		var h playedHistory
		if err := json.Unmarshal(text, &h); err != nil {
			return nil, flex.Fail(
				flex.Invalid,
				"%s is not a history as --json prints it: %s",
				s.Replay,
				err,
			)
		}

		return []playedHistory{{Seed: h.Seed, Events: h.Events}}, nil
	}

	from, draw := autumn, sim.DrawHistory
	if s.Winter {
		from, draw = winter, sim.DrawWinter
	}

	first, err := flex.ParseDay(cmp.Or(s.From, from))
	if err != nil {
		return nil, flex.Fail(
			flex.Invalid,
			"--from is a day like 2026-10-23, not %q",
			s.From,
		)
	}

	var out []playedHistory
	for i := range s.Seeds {
		seed := s.Seed + uint64(i)
		out = append(out, playedHistory{
			Seed:   seed,
			Events: draw(seed, first, s.Homes, s.Days),
		})
	}

	return out, nil
}

// playFunc plays a history on a database of its own.
type playFunc = func(context.Context, []sim.Happening) (sim.Outcome, error)

// stage prepares the environment for histories, which is removed after the last one.
func (s *simulateCommand) stage(ctx context.Context) (play playFunc, end func(), err error) {
	if s.Postgres == "" {
		return sim.PlayHistory, func() {}, nil
	}

	scratch, err := records.NewScratch(ctx, s.Postgres, sim.PrepareDatabase)
	if err != nil {
		return nil, nil, err
	}

	play = func(ctx context.Context, events []sim.Happening) (o sim.Outcome, err error) {
		url, err := scratch.Make(ctx)
		if err != nil {
			return o, err
		}

		defer func() { err = errors.Join(err, scratch.Drop(ctx, url)) }()

		return sim.PlayHistoryAt(ctx, url, events)
	}

	return play, func() { _ = scratch.Close(ctx) }, nil // a copy that stays holds no records
}

// play plays one history, and shrinks it if it is to be shrunk.
func (s *simulateCommand) play(
	ctx context.Context,
	play playFunc,
	h *playedHistory,
) error {
	if len(h.Events) == 0 {
		return nil
	}

	var err error
	h.Outcome, err = play(ctx, h.Events)
	if err == nil && s.Shrink && len(h.Broken) > 0 {
		err = h.shrink(ctx, play)
	}

	return err
}

// print prints the result of a history, as text or as JSON.
func (h *playedHistory) print(c console, asJSON bool) error {
	if len(h.Events) == 0 {
		fmt.Fprintf(c.err, "seed %d: nothing happens\n", h.Seed)
		return nil
	}

	if asJSON {
		return json.NewEncoder(c.out).Encode(h)
	}

	fmt.Fprintf(
		c.out,
		"seed %d: outcome %s, %d broken\n",
		h.Seed,
		h.Hash,
		len(h.Broken),
	)
	h.printHeat(c)

	for _, b := range h.Broken {
		fmt.Fprintln(c.out, "  "+b)
	}

	if len(h.Broken) > 0 {
		for _, e := range h.Events {
			fmt.Fprintf(
				c.out,
				"  %s %s %s to %s, %g kWh\n",
				e.From.Format("02 Jan 15:04"),
				e.Kind,
				e.Home,
				e.To.Format("02 Jan 15:04"),
				e.Need,
			)
		}
	}

	return nil
}

// printHeat prints the results of rooms and water, if any were heated.
func (h *playedHistory) printHeat(c console) {
	for _, measure := range slices.Sorted(maps.Keys(h.Heat)) {
		sum := h.Heat[measure]
		fmt.Fprintf(
			c.out,
			"  %s of %s: outside their band for %.1f h in all, %.0f kWh, £%.2f; by their thermostats alone %.1f h, %.0f kWh, £%.2f\n",
			measure,
			countOf(sum.Devices, "home"),
			sum.Outside,
			sum.Energy,
			sum.Cost,
			sum.FreeOutside,
			sum.FreeEnergy,
			sum.FreeCost,
		)
	}
}

// shrink reduces a history to the fewest events that break a law, with their results.
func (h *playedHistory) shrink(ctx context.Context, play playFunc) error {
	var err error
	h.Events, err = sim.ShrinkHistory(h.Events, func(events []sim.Happening) (bool, error) {
		o, err := play(ctx, events)
		return len(o.Broken) > 0, err
	})
	if err != nil {
		return err
	}

	h.Outcome, err = play(ctx, h.Events)

	return err
}
