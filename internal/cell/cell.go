package cell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// How soon each flexd knows of a decision.
const (
	// LookEvery is how often a flexd that serves cells looks which organisations they have.
	LookEvery = 500 * time.Millisecond
	// KnownFor is how long it goes by what it saw; then it serves nothing of a cell that it cannot look at.
	KnownFor = 3 * time.Second
	// Grace is how long a mover waits from the decision to the first write in the new cell: longer
	// than KnownFor, and a second more for clocks that run at unlike speeds.
	Grace = KnownFor + time.Second
)

// Late is how long after its beginning, or its decision, a move is taken for one that was stopped.
const Late = 10 * time.Minute

// Cell is a database with the name by which operators call it.
type Cell struct {
	Name string
	DB   *store.DB
}

// State is how far an organisation is on its way between two cells.
type State string

// The states, as the store has them. Without one an organisation is served and stays.
const (
	Leaving  State = State(store.CellLeaving)
	Arriving State = State(store.CellArriving)
	Gone     State = State(store.CellGone)
)

// Place is an organisation in a cell.
type Place struct {
	Org  flex.Org
	Cell string
	// on the way between two cells, else ""
	State  State
	Other  string // the other one
	Number int64  // of the attempt, the same in both
}

// Served reports whether the organisation is served from the cell.
func (p Place) Served() bool {
	return p.State == "" || p.State == Leaving
}

// Places returns the organisations of a cell, those that are gone but for their records too.
func (c Cell) Places(ctx context.Context) ([]Place, error) {
	var places []Place
	err := c.DB.ReadAll(ctx, func(all *store.All) error {
		places = nil
		moves, err := all.CellMoves(ctx)
		if err != nil {
			return err
		}

		on := map[flex.OrgID]store.CellMove{}
		for _, m := range moves {
			on[m.Org] = m
		}

		orgs, err := all.Orgs(ctx)
		for _, o := range orgs {
			m := on[o.ID]
			delete(on, o.ID)
			places = append(places, c.place(o, m))
		}

		for _, m := range on { // its records are deleted, the mark is not
			places = append(places, c.place(flex.Org{ID: m.Org}, m))
		}

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cell %s: %w", c.Name, err)
	}

	return places, nil
}

func (c Cell) place(o flex.Org, m store.CellMove) Place {
	return Place{
		Org:    o,
		Cell:   c.Name,
		State:  State(m.State),
		Other:  m.Other,
		Number: m.Number,
	}
}

// Mover moves organisations between cells.
type Mover struct {
	Cells []Cell
	// Wait waits until every flexd knows of a decision; Pause, if nil.
	Wait func(context.Context) error
	// Done hears of each step that was done; nil for nobody.
	Done func(Step)
}

// Step is a part of a move that is committed.
type Step string

// The steps, in their order.
const (
	Left      Step = "writes are refused"
	Undone    Step = "an earlier attempt is undone"
	Copied    Step = "the new cell has all of it"
	Decided   Step = "it is the new cell's"
	Known     Step = "every flexd knows"
	Opened    Step = "the new cell serves it"
	Forgotten Step = "the old cell has nothing of it"
)

func (m *Mover) done(s Step) {
	if m.Done != nil {
		m.Done(s)
	}
}

// Pause waits for the time that every flexd needs to know of a decision.
func Pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(Grace):
		return nil
	}
}

// Move has an organisation live in the cell of a name. A move that was left is brought to its end
// first. To the cell that it is served from, it takes back a move that was not decided. One that several cells serve is a
// Conflict. It returns where the organisation is afterwards, also with an error.
func (m *Mover) Move(
	ctx context.Context,
	org flex.OrgID,
	to string,
) (string, error) {
	next, err := m.named(to)
	if err != nil {
		return "", err
	}

	places, err := m.places(ctx, org)
	if err != nil {
		return "", err
	}

	p, ok := find(places, func(p Place) bool {
		return p.State == Gone
	})
	if ok {
		if err := m.finish(ctx, p, places); err != nil {
			return "", err
		}
		return m.Move(ctx, org, to)
	}

	from, ok := find(places, Place.Served)
	if !ok {
		return "", nowhere(org)
	}
	if err := onlyServed(org, places); err != nil {
		return "", err
	}

	home, err := m.named(from.Cell)
	if err != nil {
		return "", err
	}

	if err := m.undo(ctx, from, places); err != nil {
		return from.Cell, err
	}

	if from.Cell == to {
		return to, home.DB.Stay(ctx, org, 0)
	}

	return m.move(ctx, org, home, next)
}

// nowhere is said of an organisation that none of the named cells serves.
func nowhere(org flex.OrgID) error {
	return flex.Fail(
		flex.NotFound,
		"no cell has the organisation %s, as far as they were named: name each with --cell",
		org,
	)
}

// onlyServed fails if several cells serve an organisation, as after one of them was restored from a copy that was made before
// the organisation left it. Which of them has what clients and banks go by cannot be known here.
func onlyServed(org flex.OrgID, places []Place) error {
	var in []string
	for _, p := range places {
		if p.Served() {
			in = append(in, p.Cell)
		}
	}

	if len(in) < 2 {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"the organisation %s is in several cells (%s): another flexd cell move is at work, or one of them was restored from an older copy; "+
			"for that see docs/cells.md, Restoring a cell",
		org,
		strings.Join(in, ", "),
	)
}

// startMove begins a move, or takes back what of it was done before it failed: an organisation that is marked has its writes
// refused, and nothing else would end that.
func startMove(
	ctx context.Context,
	org flex.OrgID,
	from, to Cell,
) (int64, error) {
	number, err := from.DB.Leave(ctx, org, to.Name)
	if err == nil {
		return number, nil
	}

	err = fmt.Errorf("leave %s: %w", from.Name, err)
	if number != 0 && ctx.Err() == nil {
		err = errors.Join(err, from.DB.Stay(ctx, org, number))
	}

	return 0, err
}

// move moves an organisation of which no cell has a mark.
func (m *Mover) move(
	ctx context.Context,
	org flex.OrgID,
	from, to Cell,
) (string, error) {
	number, err := startMove(ctx, org, from, to)
	if err != nil {
		return from.Name, err
	}
	m.done(Left)

	mark := store.CellMove{Org: org, Other: from.Name, Number: number}
	went, err := to.DB.Arrive(ctx, mark, from.DB)
	if err != nil {
		return from.Name, errors.Join(
			fmt.Errorf("arrive in %s: %w", to.Name, err),
			m.back(ctx, mark, from, to),
		)
	}
	m.done(Copied)

	if err := from.DB.Go(ctx, mark, went); err != nil {
		if flex.KindOf(err) == flex.Conflict {
			err = errors.Join(err, m.back(ctx, mark, from, to))
		}
		return from.Name, err
	}
	m.done(Decided)

	return to.Name, m.open(ctx, org, from, to)
}

// back undoes a move that could not be decided, as far as that is possible now. What another
// mover has done since is left to it.
func (m *Mover) back(
	ctx context.Context,
	mark store.CellMove,
	from, to Cell,
) error {
	if ctx.Err() != nil {
		return nil // the next call does it
	}

	return errors.Join(
		from.DB.Stay(ctx, mark.Org, mark.Number),
		to.DB.Discard(ctx, mark.Org, mark.Number),
	)
}

// undo takes back what an earlier attempt has done before its decision. The old cell's mark goes
// first: as long as it stands, a mover that is at work still may decide, and what it has copied
// must be there.
func (m *Mover) undo(ctx context.Context, from Place, places []Place) error {
	home, err := m.named(from.Cell)
	if err != nil {
		return err
	}

	if from.State == Leaving {
		if err := home.DB.Stay(ctx, from.Org.ID, from.Number); err != nil {
			return err
		}
	}

	for _, p := range places {
		if p.State != Arriving {
			continue
		}

		c, err := m.named(p.Cell)
		if err != nil {
			return err
		}

		// Its mark may have come after the old cell was looked at.
		if p.Number != from.Number {
			if err := home.DB.Stay(ctx, from.Org.ID, p.Number); err != nil {
				return err
			}
		}

		if err := c.DB.Discard(ctx, from.Org.ID, p.Number); err != nil {
			return err
		}
	}

	if from.State == Leaving {
		m.done(Undone)
	}

	return nil
}

// finish brings a move to its end whose decision, or whose undoing, is made. What is gone without
// being about to arrive by the same attempt was discarded, or is served from the new cell by now.
// If no cell is seen to serve it, the one that has it was not named, and nothing is deleted.
func (m *Mover) finish(ctx context.Context, gone Place, places []Place) error {
	from, err := m.named(gone.Cell)
	if err != nil {
		return err
	}

	p, ok := find(places, func(p Place) bool {
		return p.State == Arriving && p.Number == gone.Number
	})
	if !ok {
		if _, served := find(places, Place.Served); !served {
			return nowhere(gone.Org.ID)
		}

		return from.DB.Forget(ctx, gone.Org.ID)
	}

	to, err := m.named(p.Cell)
	if err != nil {
		return err
	}

	return m.open(ctx, gone.Org.ID, from, to)
}

// open has the new cell serve an organisation after the decision, and deletes it in the old one.
func (m *Mover) open(
	ctx context.Context,
	org flex.OrgID,
	from, to Cell,
) error {
	wait := m.Wait
	if wait == nil {
		wait = Pause
	}

	if err := wait(ctx); err != nil {
		return err
	}
	m.done(Known)

	if err := to.DB.Arrived(ctx, org); err != nil {
		return err
	}
	m.done(Opened)

	if err := from.DB.Forget(ctx, org); err != nil {
		return err
	}
	m.done(Forgotten)

	return nil
}

func (m *Mover) named(name string) (Cell, error) {
	for _, c := range m.Cells {
		if c.Name == name {
			return c, nil
		}
	}

	return Cell{}, flex.Fail(
		flex.NotFound,
		"no cell is named %q: name its database with --cell %s=URL",
		name,
		name,
	)
}

// places returns the cells that have something of an organisation.
func (m *Mover) places(ctx context.Context, org flex.OrgID) ([]Place, error) {
	var found []Place
	for _, c := range m.Cells {
		places, err := c.Places(ctx)
		if err != nil {
			return nil, err
		}

		for _, p := range places {
			if p.Org.ID == org {
				found = append(found, p)
			}
		}
	}

	return found, nil
}

func find(places []Place, is func(Place) bool) (Place, bool) {
	if i := slices.IndexFunc(places, is); i >= 0 {
		return places[i], true
	}
	return Place{}, false
}
