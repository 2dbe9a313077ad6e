package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"flexd/internal/cell"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/web"
)

// CellSettings are the settings of one cell, by its name.
type CellSettings struct {
	Name string
	Settings
}

// Cells is a flexd with several databases: an App for each, with its own background jobs,
// behind one listener. A request is answered by the App of the cell that has its organisation
// (docs/cells.md). The first cell is home: it answers requests without an organisation.
type Cells struct {
	cells []*ownCell
	now   func() time.Time // the process's own clock, by which the age of a snapshot is measured
	log   *slog.Logger
	orgs  tokenOrgs
	end   func() // ends the streams of every cell
}

// ownCell is the state of one cell in this process.
type ownCell struct {
	name     string
	settings Settings
	done     <-chan struct{}     // closed to end its streams
	app      atomic.Pointer[App] // nil until its database was opened
	snapshot atomic.Pointer[cellSnapshot]
	missed   atomic.Bool // an organisation was found that the snapshot does not have, because it is new
}

// cellSnapshot has a cell's organisations and moves as last read.
type cellSnapshot struct {
	at     time.Time // before the moves were read
	states map[flex.OrgID]cell.State
	moves  []store.CellMove // before the organisations were read
	whole  time.Time        // when the organisations were read, by the clock before
	wholes int              // how often the organisations were read since the process began
}

// wholeEvery is how old the list of a cell's organisations may be. It is read earlier whenever
// a move begins or continues, or an organisation is found by its key that is not on it.
const wholeEvery = time.Minute

// asOf returns the snapshot for a later instant, or nil if the organisations must be read
// again. A move is marked in both of its cells for longer than cell.KnownFor, so that none can
// begin and end unnoticed within that time.
func (v *cellSnapshot) asOf(
	at, now time.Time,
	moves []store.CellMove,
) *cellSnapshot {
	if v == nil || !slices.Equal(v.moves, moves) {
		return nil
	}
	if now.Sub(v.at) > cell.KnownFor || at.Sub(v.whole) > wholeEvery {
		return nil
	}

	later := *v
	later.at = at

	return &later
}

// cellWait bounds a read of a cell's database, so that one that hangs delays no other.
const cellWait = 2 * time.Second

// OpenCells opens home, which must answer, and prepares the others, which Serve opens as soon
// as they answer.
func OpenCells(ctx context.Context, settings []CellSettings) (*Cells, error) {
	done := make(chan struct{})
	c := &Cells{
		now: time.Now,
		log: settings[0].Log,
		end: sync.OnceFunc(func() { close(done) }),
	}
	if c.log == nil {
		c.log = slog.Default()
	}

	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}

	for _, s := range settings {
		s.Log = c.log.With("cell", s.Name)
		s.Cell, s.Cells = s.Name, names
		s.Elsewhere = c.elsewhere(s.Name)
		if len(c.cells) > 0 {
			s.Home = c.Home().DB
			s.PriceSources = nil
		}

		o := &ownCell{name: s.Name, settings: s.Settings, done: done}
		c.cells = append(c.cells, o)

		if len(c.cells) > 1 {
			continue
		}
		if err := o.open(ctx); err != nil {
			return nil, err
		}
	}

	return c, nil
}

// elsewhere returns a function that calls its argument with the database of each cell except
// the named one.
func (c *Cells) elsewhere(
	name string,
) func(context.Context, func(*store.DB) error) error {
	return func(_ context.Context, fn func(*store.DB) error) error {
		for _, o := range c.cells {
			if o.name == name {
				continue
			}

			a := o.app.Load()
			if a == nil {
				return errCellDown
			}
			if err := fn(a.DB); err != nil {
				return err
			}
		}

		return nil
	}
}

// open opens the cell's database, unless it is open.
func (o *ownCell) open(ctx context.Context) error {
	if o.app.Load() != nil {
		return nil
	}

	a, err := Open(ctx, o.settings)
	if err != nil {
		return fmt.Errorf("cell %s: %w", o.name, err)
	}

	if err := a.DB.KeepEnvironment(ctx); err != nil {
		a.Close()
		return fmt.Errorf("cell %s: %w", o.name, err)
	}

	a.Console.Done, a.API.Done = o.done, o.done
	o.app.Store(a)

	return nil
}

// Home returns the App of the first cell.
func (c *Cells) Home() *App { return c.cells[0].app.Load() }

// Look reads the organisations of each cell once, all cells at the same time.
func (c *Cells) Look(ctx context.Context) error {
	failed := make([]error, len(c.cells))
	var looks sync.WaitGroup
	for i, o := range c.cells {
		looks.Go(func() { failed[i] = o.look(ctx, c.now) })
	}
	looks.Wait()

	return errors.Join(failed...)
}

func (o *ownCell) look(ctx context.Context, now func() time.Time) error {
	if err := o.open(ctx); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, cellWait)
	defer cancel()

	at := now()
	var moves []store.CellMove
	err := o.app.Load().DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		moves, err = all.CellMoves(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cell %s: %w", o.name, err)
	}

	later := o.snapshot.Load().asOf(at, now(), moves)
	if missed := o.missed.Swap(false); later != nil && !missed {
		o.snapshot.Store(later)
		return nil
	}

	return o.readOrgs(ctx, at, moves)
}

// readOrgs reads the cell's organisations.
func (o *ownCell) readOrgs(
	ctx context.Context,
	at time.Time,
	moves []store.CellMove,
) error {
	db := o.app.Load().DB
	places, err := cell.Cell{Name: o.name, DB: db}.Places(ctx)
	if err != nil {
		return err
	}

	snapshot := &cellSnapshot{
		at:     at,
		states: map[flex.OrgID]cell.State{},
		moves:  moves,
		whole:  at,
		wholes: 1,
	}
	if last := o.snapshot.Load(); last != nil {
		snapshot.wholes += last.wholes
	}

	for _, p := range places {
		snapshot.states[p.Org.ID] = p.State
	}
	o.snapshot.Store(snapshot)

	return nil
}

// known returns the organisations of a cell, or nil if the snapshot is too old.
func (c *Cells) known(o *ownCell) map[flex.OrgID]cell.State {
	v := o.snapshot.Load()
	if v == nil || c.now().Sub(v.at) > cell.KnownFor {
		return nil
	}

	return v.states
}

// Serve runs the background jobs of every cell and answers on the listener until the context
// ends. A cell whose database does not answer is opened once it does.
func (c *Cells) Serve(ctx context.Context, l net.Listener) error {
	running, stop := context.WithCancel(ctx)
	defer stop()

	defer context.AfterFunc(ctx, c.end)()

	home := c.Home()
	var kept sync.WaitGroup
	for _, o := range c.cells {
		kept.Go(func() { c.maintain(running, o) })
	}

	server := &web.Server{
		Handler: web.Traced(home.showCertificates(c.Handler())),
		Proxies: home.API.TrustedProxies,
		Limits:  home.limits,
		TLS:     home.tls,
		Log:     c.log,
	}

	err := server.Serve(ctx, l)
	stop()
	kept.Wait()

	return err
}

// maintain opens a cell, runs its background jobs, and renews its snapshot every
// cell.LookEvery, until the context ends.
func (c *Cells) maintain(ctx context.Context, o *ownCell) {
	begun := false
	down := &outage{log: c.log, cell: o.name}
	wait := func() {}
	defer func() { wait() }()

	for ctx.Err() == nil {
		err := o.look(ctx, c.now)
		if err == nil && !begun {
			wait, err = o.app.Load().begin(ctx)
			begun = err == nil
			if !begun {
				wait = func() {} // nothing runs
			}
		}

		if ctx.Err() == nil {
			down.saw(c.now(), err)
		}

		select {
		case <-ctx.Done():
		case <-time.After(cell.LookEvery):
		}
	}
}

// Close closes every cell.
func (c *Cells) Close() error {
	var err error
	for _, o := range c.cells {
		if a := o.app.Load(); a != nil {
			err = errors.Join(err, a.Close())
		}
	}

	return err
}
