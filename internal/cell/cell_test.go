package cell_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"flexd/internal/cell"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// world is some cells with organisations, and what an observer knows of them: which writes were
// acknowledged, and nothing of how organisations move.
type world struct {
	*testing.T
	mover *cell.Mover
	at    map[string]*storetest.Seed // by cell
	// the ids of the sites that were acknowledged
	known map[flex.OrgID][]string
	orgs  []flex.OrgID
	n     int
}

func newWorld(t *testing.T, orgs int, urls ...string) *world {
	t.Helper()
	w := &world{
		T: t, known: map[flex.OrgID][]string{}, at: map[string]*storetest.Seed{},
		mover: &cell.Mover{Wait: func(context.Context) error { return nil }},
	}
	for i, url := range urls {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Disposable: true})
		c := cell.Cell{Name: fmt.Sprintf("c%d", i), DB: db}
		w.mover.Cells = append(w.mover.Cells, c)
		w.at[c.Name] = storetest.At(t, db, url)
	}

	for i := range orgs {
		org, err := w.mover.Cells[0].DB.AddOrg(t.Context(), fmt.Sprintf("org %d", i))
		if err != nil {
			t.Fatal(err)
		}
		w.orgs = append(w.orgs, org.ID)
		w.at["c0"].Exec(`INSERT INTO cap_change (org_id, id, asset_id) VALUES ($1, $1, $1)`, org.ID.Bytes()) // stays, and is deleted
	}
	return w
}

// write adds a site in every cell that takes it: as many as do.
func (w *world) write(org flex.OrgID) (taken int) {
	w.Helper()
	for _, c := range w.mover.Cells {
		w.n++
		s := flex.Site{Address: flex.Personal(fmt.Sprint(w.n)), Email: "a@example.com"}
		err := c.DB.Write(context.Background(), org, func(tx *store.Tx) error {
			if err := tx.AddSite(context.Background(), &s, fmt.Sprint(w.n)); err != nil {
				return err
			}
			return tx.AddMail(context.Background(), store.Mail{SiteID: s.ID, To: "a@example.com", Subject: "x", Text: "y"})
		})

		switch flex.KindOf(err) {
		case flex.Unavailable, flex.NotFound:
		default:
			if err != nil {
				w.Fatalf("a write in %s: %v", c.Name, err)
			}
			taken++
			w.known[org] = append(w.known[org], hex.EncodeToString(s.ID.Bytes()))
		}
	}

	if taken > 1 {
		w.Errorf("%d cells took a write of one organisation", taken)
	}
	return taken
}

// has returns the sites of an organisation in a cell, in order.
func (w *world) has(name string, org flex.OrgID) []string {
	id := "lower(hex(id))"
	if w.engine(name) == "postgres" {
		id = "replace(CAST(id AS text), '-', '')"
	}
	found := w.at[name].Strings(`SELECT `+id+` FROM site WHERE org_id = $1`, org.Bytes())
	slices.Sort(found)
	return found
}

// check compares an organisation with what is known of it, when nothing of it is under way.
func (w *world) check(org flex.OrgID, in string) {
	w.Helper()
	if n := w.write(org); n != 1 {
		w.Errorf("%d cells take writes of an organisation that rests in %s", n, in)
	}
	want := slices.Sorted(slices.Values(w.known[org]))
	if got := w.has(in, org); !slices.Equal(got, want) {
		w.Errorf("the organisation has %d sites in %s, of %d that were acknowledged", len(got), in, len(want))
	}
	if n := w.at[in].Count(`SELECT count(*) FROM mail WHERE org_id = $1`, org.Bytes()); n != len(want) {
		w.Errorf("%d mails wait, of %d", n, len(want))
	}

	for name, at := range w.at {
		if name != in {
			w.empty(name, org)
		}
		if n := at.Count(`SELECT count(*) FROM cell_move`); n > 0 {
			w.Errorf("%s has marks of %d moves, and none is under way", name, n)
		}
		if left := w.fences(name); len(left) > 0 {
			w.Errorf("%s has fences left: %s", name, left)
		}
	}
}

// empty looks for rows of an organisation in every table of a cell.
func (w *world) empty(name string, org flex.OrgID) {
	w.Helper()
	for _, table := range w.withOrg(name) {
		if n := w.at[name].Count(`SELECT count(*) FROM `+table+` WHERE org_id = $1`, org.Bytes()); n > 0 && table != "cell_move" {
			w.Errorf("%s has %d rows of %s of an organisation that is elsewhere", name, n, table)
		}
	}
}

func (w *world) engine(name string) string {
	for _, c := range w.mover.Cells {
		if c.Name == name {
			return c.DB.Engine()
		}
	}
	return ""
}

func (w *world) withOrg(name string) []string {
	query := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) p ON p.name = 'org_id' WHERE m.type = 'table'`
	if w.engine(name) == "postgres" {
		query = `SELECT CAST(table_name AS text) FROM information_schema.columns WHERE column_name = 'org_id' AND table_schema = 'public'`
	}
	return w.at[name].Strings(query)
}

// fences are the triggers that are left of a move.
func (w *world) fences(name string) []string {
	query := `SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'cell_%'`
	if w.engine(name) == "postgres" {
		query = `SELECT CAST(tgname AS text) FROM pg_trigger WHERE tgname LIKE 'cell_%'`
	}
	return w.at[name].Strings(query)
}

// killed is a context that ends when it was asked for something so often: every transaction and
// statement asks, so that a mover stops at any point, as if its process were killed.
type killed struct {
	context.Context
	end  context.CancelFunc
	left *atomic.Int64
}

func killedAfter(ctx context.Context, n int64) killed {
	ctx, end := context.WithCancel(ctx)
	left := &atomic.Int64{}
	left.Store(n)
	return killed{ctx, end, left}
}

func (k killed) Value(key any) any {
	if k.left.Add(-1) == 0 {
		k.end()
	}
	return k.Context.Value(key)
}

// engines are the databases of three cells.
var engines = map[string][3]func(testing.TB) string{
	"sqlite":   {storetest.SQLite, storetest.SQLite, storetest.SQLite},
	"postgres": {storetest.Postgres, storetest.Postgres, storetest.SQLite},
}

// Organisations move to and fro between three cells, movers are killed at every kind of point,
// and somebody writes all the while, in every cell that lets them: no two cells ever take a write,
// what was acknowledged is in the one cell that serves it, and nothing is left in the others.
func TestMover_Histories(t *testing.T) {
	const moves = 9
	steps := []cell.Step{cell.Left, cell.Copied, cell.Decided, cell.Known, cell.Opened}

	for name, urls := range engines {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, urls[0](t), urls[1](t), urls[2](t))
			draw := rand.New(rand.NewPCG(18, 2026))
			resting := w.orgs[0] // moves once, and is then let be
			whole := killedAfter(t.Context(), 1<<40)
			if in, err := w.mover.Move(whole, resting, "c1"); in != "c1" || err != nil {
				t.Fatal(in, err)
			}

			length := 1<<40 - whole.left.Load() // of a move, in questions to its context
			var last cell.Step
			var dying killed
			w.mover.Done = func(s cell.Step) {
				w.write(w.orgs[1])
				if w.write(resting) != 1 {
					t.Errorf("%s: the organisation that rests is not served", s)
				}
				if s == last {
					dying.end()
				}
			}

			for n := range moves {
				to := fmt.Sprintf("c%d", draw.IntN(3))
				dying, last = killedAfter(t.Context(), 1+draw.Int64N(length)), ""
				if n%2 == 0 { // between two steps, of which there are few
					dying, last = killedAfter(t.Context(), 1<<40), steps[n/2%len(steps)]
				}

				in, err := w.mover.Move(dying, w.orgs[1], to)
				last = ""
				w.write(w.orgs[1])
				if err != nil {
					t.Logf("killed on the way to %s: %v", to, err)
					if draw.IntN(2) == 0 { // whoever comes next may want something else
						to = fmt.Sprintf("c%d", draw.IntN(3))
					}

					in, err = w.mover.Move(t.Context(), w.orgs[1], to)
				}
				if in != to || err != nil {
					t.Fatalf("it is in %q, not in %q: %v", in, to, err)
				}

				w.check(w.orgs[1], to)
			}

			w.check(resting, "c1")
		})
	}
}

// A mover that takes back what another is at, and is killed at any point of that, loses nothing: either
// the other decides nothing, or the new cell has all of it.
func TestMover_Beside(t *testing.T) {
	const parts = 8
	w := newWorld(t, 1, storetest.SQLite(t), storetest.SQLite(t))
	org, in := w.orgs[0], "c1"
	beside := &cell.Mover{Cells: w.mover.Cells, Wait: w.mover.Wait}
	whole := killedAfter(t.Context(), 1<<40)
	if _, err := beside.Move(whole, org, in); err != nil {
		t.Fatal(err)
	}
	length := 1<<40 - whole.left.Load()

	for part := range int64(parts) {
		to := map[string]string{"c0": "c1", "c1": "c0"}[in]
		w.mover.Done = func(s cell.Step) {
			if s == cell.Copied {
				_, err := beside.Move(killedAfter(t.Context(), 1+part*length/parts), org, in)
				t.Logf("taken back, and killed: %v", err)
			}
		}
		_, err := w.mover.Move(t.Context(), org, to)
		t.Logf("beside it: %v", err)

		w.mover.Done = nil
		if got, err := w.mover.Move(t.Context(), org, to); got != to || err != nil {
			t.Fatalf("it is in %q, not in %q: %v", got, to, err)
		}
		w.check(org, to)
		in = to
	}
}

// Whoever continues with a move without naming the cell in which the organisation is about to arrive is
// told so, and deletes nothing.
func TestMover_Unnamed(t *testing.T) {
	w := newWorld(t, 1, storetest.SQLite(t), storetest.SQLite(t), storetest.SQLite(t))
	org := w.orgs[0]
	w.write(org)
	dying, end := context.WithCancel(t.Context())
	defer end()
	w.mover.Done = func(s cell.Step) {
		if s == cell.Decided {
			end()
		}
	}

	if _, err := w.mover.Move(dying, org, "c1"); err == nil {
		t.Fatal("the mover was not stopped")
	}

	w.mover.Done = nil
	others := &cell.Mover{Cells: []cell.Cell{w.mover.Cells[0], w.mover.Cells[2]}, Wait: w.mover.Wait}
	if _, err := others.Move(t.Context(), org, "c2"); flex.KindOf(err) != flex.NotFound {
		t.Errorf("the cell that has it is not named: %v", err)
	}
	if in, err := w.mover.Move(t.Context(), org, "c1"); in != "c1" || err != nil {
		t.Fatalf("it is in %q: %v", in, err)
	}
	w.check(org, "c1")
}

// An organisation that two cells have, as after one of them was restored from an older copy, is neither moved nor said to be
// in one of them. Once one cell is marked as left, as docs/cells.md says, nothing of it stays there.
func TestMover_InTwoCells(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, 1, storetest.SQLite(t), storetest.SQLite(t))
	org := w.orgs[0]
	w.write(org)

	var file bytes.Buffer
	err := w.mover.Cells[0].DB.ReadAll(ctx, func(all *store.All) error {
		file.Reset()
		_, err := all.ExportOrg(ctx, org, &file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	read := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
	if _, err := w.mover.Cells[1].DB.ImportOrg(ctx, read, false); err != nil {
		t.Fatal(err)
	}

	for _, to := range []string{"c0", "c1"} {
		in, err := w.mover.Move(ctx, org, to)
		if in != "" || flex.KindOf(err) != flex.Conflict || !strings.Contains(fmt.Sprint(err), "(c0, c1)") {
			t.Errorf("to %s: it is in %q: %v", to, in, err)
		}
	}

	w.at["c0"].Exec(`INSERT INTO cell_move (org_id, state, other, number, at) VALUES ($1, 'gone', 'c1', 0, 0)`, org.Bytes())
	if in, err := w.mover.Move(ctx, org, "c1"); in != "c1" || err != nil {
		t.Fatalf("it is in %q: %v", in, err)
	}
	w.empty("c0", org)

	if got := w.has("c1", org); !slices.Equal(got, w.known[org]) {
		t.Errorf("it has %d sites of %d", len(got), len(w.known[org]))
	}
}

// A row that was written in a cell after its organisation had left it, as the outcome of a push that was under way, does not keep the
// organisation from coming back.
func TestMover_Leftover(t *testing.T) {
	for name, urls := range engines {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, urls[0](t), urls[1](t))
			org := w.orgs[0]
			w.write(org)
			if in, err := w.mover.Move(t.Context(), org, "c1"); in != "c1" || err != nil {
				t.Fatalf("it is in %q: %v", in, err)
			}

			w.at["c0"].Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
				VALUES ($1, $1, 'schedule', 'schedule', 1, 1, 'accepted', 1, 1, 1, 200, '', '')`, org.Bytes())
			if in, err := w.mover.Move(t.Context(), org, "c0"); in != "c0" || err != nil {
				t.Fatalf("it is in %q: %v", in, err)
			}
			if n := w.at["c0"].Count(`SELECT count(*) FROM delivery`); n != 0 {
				t.Errorf("%d deliveries of an organisation that has none", n)
			}

			w.check(org, "c0")
		})
	}
}
