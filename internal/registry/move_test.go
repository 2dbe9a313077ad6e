package registry_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const sharedMPAN = "1012345678900"

// party makes an organisation with a site at the metering point.
func party(t *testing.T, db *store.DB, name string) (flex.OrgID, flex.SiteID) {
	t.Helper()
	org, err := db.AddOrg(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	d := &registry.Service{DB: db}
	r, err := d.CreateSite(t.Context(), org.ID, registry.SiteInput{MPAN: sharedMPAN, Postcode: "YO1 7HH", ConsentAt: db.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return org.ID, r.ID
}

func knownPoint(t *testing.T, db *store.DB) {
	t.Helper()
	m := flex.Meter{MPAN: sharedMPAN, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "YO1 7HH", Address: "5 MILL LANE"}
	if err := db.WriteAll(t.Context(), func(all *store.All) error { return all.PutMeters(t.Context(), []flex.Meter{m}) }); err != nil {
		t.Fatal(err)
	}
}

// TestOneParty lets a metering point be with one organisation at a time: the second waits until
// the first ends it, by leaving or by a change of party that was decided.
func TestOneParty(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		knownPoint(t, db)
		d := &registry.Service{DB: db}
		first, atFirst := party(t, db, "acme")
		second, atSecond := party(t, db, "bravo")
		enrol := func(org flex.OrgID, site flex.SiteID, p flex.Proposition) error {
			_, err := d.Enrol(ctx, org, site, registry.Enrolment{Proposition: p, Override: true})
			return err
		}

		wants := func(what string, err error, kind flex.Kind) {
			t.Helper()
			if kind == flex.Internal && err != nil || kind != flex.Internal && flex.KindOf(err) != kind {
				t.Errorf("%s: %v", what, err)
			}
			if err != nil && (strings.Contains(err.Error(), "acme") || strings.Contains(err.Error(), first.String())) {
				t.Errorf("%s says who has the point: %v", what, err)
			}
		}

		wants("the first enrols", enrol(first, atFirst, flex.LimitedPause), flex.Internal)
		wants("and in the other proposition", enrol(first, atFirst, flex.FullAssetSchedule), flex.Internal)
		wants("the second enrols", enrol(second, atSecond, flex.LimitedPause), flex.Conflict)
		if _, err := d.Unenrol(ctx, first, atFirst, flex.LimitedPause); err != nil {
			t.Fatal(err)
		}
		wants("while the first is in one still", enrol(second, atSecond, flex.LimitedPause), flex.Conflict)
		if _, err := d.Unenrol(ctx, first, atFirst, flex.FullAssetSchedule); err != nil {
			t.Fatal(err)
		}
		wants("once it has left", enrol(second, atSecond, flex.LimitedPause), flex.Internal)
		wants("the first again", enrol(first, atFirst, flex.LimitedPause), flex.Conflict)

		// A change of party that is to come changes nothing yet; one from now on does.
		if _, _, err := d.MovePoint(ctx, sharedMPAN, first, db.Now().Add(-48*time.Hour)); flex.KindOf(err) != flex.Invalid {
			t.Errorf("a change in the past: %v", err)
		}
		if had, _, err := d.MovePoint(ctx, sharedMPAN, first, db.Now().Add(48*time.Hour)); err != nil || !had {
			t.Errorf("a change to come: %t, %v", had, err)
		}

		wants("before the day", enrol(first, atFirst, flex.LimitedPause), flex.Conflict)
		if had, _, err := d.MovePoint(ctx, sharedMPAN, first, db.Now()); err != nil || !had {
			t.Errorf("a change now: %t, %v", had, err)
		}
		wants("the second, which has lost it", enrol(second, atSecond, flex.LimitedPause), flex.Conflict)
		wants("the first, to which it moved", enrol(first, atFirst, flex.LimitedPause), flex.Internal)

		err := db.ReadAll(ctx, func(all *store.All) error {
			rs, err := all.Registrations(ctx, sharedMPAN)
			if len(rs) != 3 || rs[0].To.IsZero() || rs[1].To.IsZero() || !rs[2].To.IsZero() || rs[2].Org != first || rs[2].Site != atFirst {
				t.Errorf("%+v", rs)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if findings, err := db.Verify(ctx); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}

// TestOneParty_AtOnce has organisations enrol one point at the same time: one succeeds.
func TestOneParty_AtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		knownPoint(t, db)
		const parties = 8
		d := &registry.Service{DB: db}
		var orgs [parties]flex.OrgID
		var sites [parties]flex.SiteID
		for i := range parties {
			orgs[i], sites[i] = party(t, db, "party "+string(rune('a'+i)))
		}

		var errs [parties]error
		var wg sync.WaitGroup
		for i := range parties {
			wg.Go(func() {
				_, errs[i] = d.Enrol(t.Context(), orgs[i], sites[i], registry.Enrolment{Proposition: flex.LimitedPause})
			})
		}

		wg.Wait()
		enrolled := 0
		for i, err := range errs {
			switch {
			case err == nil:
				enrolled++
			case flex.KindOf(err) != flex.Conflict:
				t.Errorf("party %d: %v", i, err)
			}
		}

		if enrolled != 1 {
			t.Errorf("%d parties have the point", enrolled)
		}
	})
}

// Another change of party is decided while a process carries the first one out: the point goes
// where it was decided last.
func TestMovePoints_DecidedBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		knownPoint(t, db)
		d := &registry.Service{DB: db}
		first, atFirst := party(t, db, "acme")
		second, _ := party(t, db, "bravo")
		third, _ := party(t, db, "carol")
		if _, err := d.Enrol(t.Context(), first, atFirst, registry.Enrolment{Proposition: flex.LimitedPause}); err != nil {
			t.Fatal(err)
		}

		decide := func(all *store.All, to flex.OrgID, at time.Time) error {
			_, _, err := all.DecideMove(t.Context(), sharedMPAN, to, at)
			return err
		}
		if err := db.WriteAll(t.Context(), func(all *store.All) error { return decide(all, second, db.Now()) }); err != nil {
			t.Fatal(err)
		}

		done := make(chan error, 1)
		locks := storetest.At(t, db, url)
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			tx, err := all.For(t.Context(), first)
			if err != nil {
				return err
			}

			if _, err := tx.LockedSite(t.Context(), atFirst); err != nil {
				return err
			}
			go func() {
				_, err := d.MovePoints(context.Background())
				done <- err
			}()

			for db.Engine() == "postgres" && len(done) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			return decide(all, third, db.Now().Add(48*time.Hour))
		})

		if err = errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		err = db.ReadAll(t.Context(), func(all *store.All) error {
			rs, err := all.Registrations(t.Context(), sharedMPAN)
			if err == nil && (len(rs) != 1 || rs[0].Org != first || !rs[0].To.IsZero() || rs[0].NextOrg != third) {
				t.Errorf("the point was with %+v", rs)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A change of party is decided while another process carries out an earlier one: it is decided
// of who has the point then.
func TestMovePoint_DecidedBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		knownPoint(t, db)
		d := &registry.Service{DB: db}
		first, atFirst := party(t, db, "acme")
		second, _ := party(t, db, "bravo")
		third, _ := party(t, db, "carol")
		if _, err := d.Enrol(t.Context(), first, atFirst, registry.Enrolment{Proposition: flex.LimitedPause}); err != nil {
			t.Fatal(err)
		}

		if err := db.WriteAll(t.Context(), func(all *store.All) error {
			_, _, err := all.DecideMove(t.Context(), sharedMPAN, second, db.Now())
			return err
		}); err != nil {
			t.Fatal(err)
		}

		done := make(chan error, 1)
		had := false
		locks := storetest.At(t, db, url)
		err := db.WriteAll(t.Context(), func(all *store.All) error {
			due, err := all.DueMoves(t.Context())
			if err != nil || len(due) != 1 {
				t.Fatal(due, err)
			}

			if err := all.CompleteMove(t.Context(), due[0]); err != nil {
				return err
			}
			go func() {
				var err error
				had, _, err = d.MovePoint(context.Background(), sharedMPAN, third, db.Now().Add(48*time.Hour))
				done <- err
			}()

			for db.Engine() == "postgres" && len(done) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			return nil
		})
		if err = errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}

		err = db.ReadAll(t.Context(), func(all *store.All) error {
			rs, err := all.Registrations(t.Context(), sharedMPAN)
			if err == nil && (!had || len(rs) != 2 || rs[1].Org != second || rs[1].NextOrg != third) {
				t.Errorf("had %t; the point was with %+v", had, rs)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The party that has a point leaves it while a change of party is carried out, or before one
// that was decided is due: the next party has it from then, and nothing fails.
func TestMovePoints_LeftBefore(t *testing.T) {
	for _, name := range []string{"at once", "before"} {
		t.Run(name, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				now := time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)
				db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
				knownPoint(t, db)
				d := &registry.Service{DB: db}

				first, atFirst := party(t, db, "acme")
				second, atSecond := party(t, db, "bravo")
				third, atThird := party(t, db, "carol")
				enrol := func(org flex.OrgID, site flex.SiteID) error {
					_, err := d.Enrol(t.Context(), org, site, registry.Enrolment{Proposition: flex.LimitedPause})
					return err
				}

				if err := enrol(first, atFirst); err != nil {
					t.Fatal(err)
				}
				leave := func() error {
					_, _, err := d.Offboard(context.Background(), first, atFirst)
					return err
				}

				if name == "before" {
					if _, _, err := d.MovePoint(t.Context(), sharedMPAN, second, now.Add(time.Hour)); err != nil {
						t.Fatal(err)
					}
					if err := leave(); err != nil {
						t.Fatal(err)
					}

					now = now.Add(time.Hour)
					if _, err := d.MovePoints(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else {
					besides(t, db, url, "registration", leave, func() error {
						_, _, err := d.MovePoint(context.Background(), sharedMPAN, second, now)
						return err
					})
				}

				if err := enrol(third, atThird); flex.KindOf(err) != flex.Conflict {
					t.Errorf("another party takes the point: %v", err)
				}
				if err := enrol(second, atSecond); err != nil {
					t.Errorf("the next party: %v", err)
				}
				if report, err := d.MovePoints(t.Context()); err != nil || report.Count != 0 {
					t.Errorf("%d changes are due still: %v", report.Count, err)
				}
			})
		})
	}
}

// A change of party of a release that forgot it is carried out late: who had the point
// meanwhile keeps that time. One that was taken in with its organisation's file, which names
// no next party, is nobody's, and holds up no other.
func TestMovePoints_Late(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		knownPoint(t, db)
		d := &registry.Service{DB: db}
		first, atFirst := party(t, db, "acme")
		second, _ := party(t, db, "bravo")
		third, atThird := party(t, db, "carol")

		turn := func(org flex.OrgID, site flex.SiteID) {
			t.Helper()
			if _, err := d.Enrol(t.Context(), org, site, registry.Enrolment{Proposition: flex.LimitedPause}); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Hour)
			if _, err := d.Unenrol(t.Context(), org, site, flex.LimitedPause); err != nil {
				t.Fatal(err)
			}
		}

		turn(first, atFirst)
		due := now.Add(time.Minute)
		now = now.Add(time.Hour)
		turn(third, atThird)
		left := now
		now = now.Add(time.Hour)

		seed := storetest.At(t, db, url)
		seed.Exec(`UPDATE registration SET next_at = $2 WHERE org_id = $1`, first.Bytes(), due.UnixMicro())
		if report, err := d.MovePoints(t.Context()); err != nil || report.Count != 0 {
			t.Errorf("%d changes to nobody: %v", report.Count, err)
		}
		seed.Exec(`UPDATE registration SET next_org = $2 WHERE org_id = $1`, first.Bytes(), second.Bytes())
		if report, err := d.MovePoints(t.Context()); err != nil || report.Count != 1 {
			t.Errorf("%d changes: %v", report.Count, err)
		}

		err := db.ReadAll(t.Context(), func(all *store.All) error {
			rs, err := all.Registrations(t.Context(), sharedMPAN)
			if n := len(rs); n != 3 || rs[n-1].Org != second || rs[n-1].From.Before(left) {
				t.Errorf("the next party has it before the one between left, at %v: %+v", left, rs)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// parties are an organisation's and others' times with the point, as text, with the minutes
// since an instant.
func parties(t *testing.T, db *store.DB, since time.Time, names map[flex.OrgID]string) string {
	t.Helper()
	var lines []string
	err := db.ReadAll(t.Context(), func(all *store.All) error {
		rs, err := all.Registrations(t.Context(), sharedMPAN)

		for _, r := range rs {
			line := fmt.Sprintf("%s %.0f-", names[r.Org], r.From.Sub(since).Minutes())
			if !r.To.IsZero() {
				line += fmt.Sprintf("%.0f", r.To.Sub(since).Minutes())
			}
			if !r.NextAt.IsZero() {
				line += fmt.Sprintf(", %s %.0f", names[r.NextOrg], r.NextAt.Sub(since).Minutes())
			}
			lines = append(lines, line)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "; ")
}

// moved are three parties' sites at one point, at a time of the test's own.
type moved struct {
	*testing.T
	db    *store.DB
	d     *registry.Service
	start time.Time
	now   *time.Time
	orgs  map[string]flex.OrgID
	sites map[string]flex.SiteID
	names map[flex.OrgID]string
}

func eachMoved(t *testing.T, do func(m *moved)) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		start := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
		now := start.Add(9 * time.Hour)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		knownPoint(t, db)
		m := &moved{t, db, &registry.Service{DB: db}, start, &now, map[string]flex.OrgID{}, map[string]flex.SiteID{}, map[flex.OrgID]string{}}
		for _, name := range []string{"acme", "bravo", "carol"} {
			org, site := party(t, db, name)
			m.orgs[name], m.sites[name], m.names[org] = org, site, name
		}
		do(m)
	})
}

// at sets the clock to so many minutes after the day began.
func (m *moved) at(minutes int) { *m.now = m.start.Add(time.Duration(minutes) * time.Minute) }

func (m *moved) enrol(name string) error {
	_, err := m.d.Enrol(m.Context(), m.orgs[name], m.sites[name], registry.Enrolment{Proposition: flex.LimitedPause, Override: true})
	return err
}

func (m *moved) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *moved) leave(name string) {
	m.Helper()
	_, err := m.d.Unenrol(m.Context(), m.orgs[name], m.sites[name], flex.LimitedPause)
	m.must(err)
}

// move decides a change, and returns from which minute on the next party has the point.
func (m *moved) move(to string, minutes int) (had bool, from int) {
	m.Helper()
	had, at, err := m.d.MovePoint(m.Context(), sharedMPAN, m.orgs[to], m.start.Add(time.Duration(minutes)*time.Minute))
	m.must(err)
	return had, int(at.Sub(m.start).Minutes())
}

func (m *moved) run() {
	m.Helper()
	_, err := m.d.MovePoints(m.Context())
	m.must(err)
}

func (m *moved) wants(when, want string) {
	m.Helper()
	if got := parties(m.T, m.db, m.start, m.names); got != want {
		m.Errorf("%s: %s; want %s", when, got, want)
	}
	findings, err := m.db.Verify(m.Context())
	if err != nil || len(findings) > 0 {
		m.Errorf("%s: %v, %v", when, findings, err)
	}
}

// A party that leaves a point and comes back before the change of party that was decided keeps
// it until then, and no longer.
func TestMovePoints_LeftAndBack(t *testing.T) {
	ways := map[string]func(m *moved){
		"unenrolled": func(m *moved) { m.leave("acme") },
		"offboarded": func(m *moved) {
			_, _, err := m.d.Offboard(m.Context(), m.orgs["acme"], m.sites["acme"])
			m.must(err)
			r, err := m.d.CreateSite(m.Context(), m.orgs["acme"], registry.SiteInput{MPAN: sharedMPAN, Postcode: "YO1 7HH", ConsentAt: m.now.Add(-time.Hour)})
			m.must(err)

			m.sites["acme"] = r.ID
		},
		"twice": func(m *moved) {
			m.leave("acme")
			m.must(m.enrol("acme"))
			m.leave("acme")
		},
	}

	for name, leave := range ways {
		t.Run(name, func(t *testing.T) {
			eachMoved(t, func(m *moved) {
				m.must(m.enrol("acme"))
				m.move("bravo", 2880)
				m.at(600)
				leave(m)

				m.at(660)
				m.must(m.enrol("acme"))
				m.at(2879)
				m.run()
				if err := m.enrol("bravo"); flex.KindOf(err) != flex.Conflict {
					m.Errorf("before the day: %v", err)
				}

				m.at(2890)
				m.run()
				if err := m.enrol("acme"); flex.KindOf(err) != flex.Conflict {
					m.Errorf("the former party takes it again: %v", err)
				}
				m.must(m.enrol("bravo"))
				want := "acme 540-600; acme 660-2880; bravo 2880-"
				if name == "twice" {
					want = "acme 540-600; acme 600-600; acme 660-2880; bravo 2880-"
				}
				m.wants("at the end", want)
			})
		})
	}
}

// A party that left and comes back once the change is due finds the point with the next party,
// carried out or not.
func TestMovePoints_BackTooLate(t *testing.T) {
	eachMoved(t, func(m *moved) {
		m.must(m.enrol("acme"))
		m.move("bravo", 2880)
		m.at(600)
		m.leave("acme")
		m.at(2880)
		if err := m.enrol("acme"); flex.KindOf(err) != flex.Conflict {
			m.Errorf("before the change is carried out: %v", err)
		}
		m.run()
		m.wants("at the end", "acme 540-600; bravo 2880-")
	})
}

// A change of party dated to a day's beginning takes no time from a party that left on that
// day, and none of one that began on it lies before it.
func TestMovePoint_Today(t *testing.T) {
	eachMoved(t, func(m *moved) {
		m.must(m.enrol("acme"))
		m.at(600)
		m.leave("acme")
		m.at(660)
		if had, from := m.move("bravo", 0); had || from != 600 {
			m.Errorf("to a party after one that left: %t, from %d", had, from)
		}

		m.wants("after one that left", "acme 540-600; bravo 600-")
		m.must(m.enrol("bravo"))
		m.leave("bravo")
		m.must(m.enrol("carol"))
		m.at(720)
		if had, from := m.move("acme", 0); !had || from != 660 {
			m.Errorf("to a party after one that began: %t, from %d", had, from)
		}
		m.wants("after one that began", "acme 540-600; bravo 600-660; carol 660-660; acme 660-")
	})
}

// What is decided last counts: also of a point that was left meanwhile, and to the party that
// has it or may enrol it already.
func TestMovePoint_DecidedLast(t *testing.T) {
	eachMoved(t, func(m *moved) {
		m.must(m.enrol("acme"))
		m.move("bravo", 2880)
		m.move("acme", 1440)
		m.wants("to the party that has it", "acme 540-")
		m.move("bravo", 2880)
		m.at(600)
		m.leave("acme")
		m.move("carol", 1440)
		m.wants("after it was left", "acme 540-600; carol 1440-")
		m.move("carol", 2000)

		m.wants("to the same party on a later day", "acme 540-600; carol 2000-")
		m.move("carol", 1000)
		m.wants("to the same party on an earlier day", "acme 540-600; carol 1000-")
		m.at(660)
		m.must(m.enrol("carol"))
		m.wants("once it is enrolled before the day", "acme 540-600; carol 660-")
		m.at(700)
		m.leave("carol")
		m.at(2880)
		m.run()
		m.wants("on the day of the first", "acme 540-600; carol 660-700")
	})
}

// A party that was to have the point later, and has it no longer, keeps nobody else from it
// until then.
func TestMovePoint_BeforeReserved(t *testing.T) {
	eachMoved(t, func(m *moved) {
		m.move("carol", 2880)
		if _, from := m.move("bravo", 1440); from != 1440 {
			m.Errorf("before the day of the first: from %d", from)
		}

		m.at(1500)
		m.run()
		m.wants("on the day of the second", "bravo 1440-; carol 2880-2880")
		if _, from := m.move("acme", 1500); from != 1500 {
			m.Errorf("once more: from %d", from)
		}
		m.must(m.enrol("acme"))
		m.wants("at the end", "bravo 1440-1500; acme 1500-; carol 2880-2880")
	})
}

// besides does two things at once: the first has come to where it writes a table when the
// second begins. On SQLite they follow each other.
func besides(t *testing.T, db *store.DB, url, table string, first, second func() error) {
	t.Helper()
	done := make(chan error, 2)
	if db.Engine() != "postgres" {
		done <- first()
		done <- second()
	} else {
		gate := storetest.At(t, db, url).ShutGate(table)
		defer gate.Open()

		for i, do := range []func() error{first, second} {
			go func() { done <- do() }()
			for len(done)+gate.Waiting() <= i {
				runtime.Gosched()
			}
		}
		gate.Open()
	}

	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
}

// A change of party that fails holds up none that is due after it, and nobody who decides
// another one.
func TestMovePoints_OneFails(t *testing.T) {
	ctx, url := t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "flexd.db")
	db := storetest.Open(t, url, store.Options{})
	knownPoint(t, db)
	d := &registry.Service{DB: db}
	first, atFirst := party(t, db, "acme")
	second, atSecond := party(t, db, "bravo")
	third, _ := party(t, db, "carol")

	const other = "1012345678901"
	m := flex.Meter{MPAN: other, Import: true, Energised: true, HalfHourly: true, Domestic: true, Postcode: "YO1 7HH", Address: "6 MILL LANE"}
	if err := db.WriteAll(ctx, func(all *store.All) error { return all.PutMeters(ctx, []flex.Meter{m}) }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ChangeSite(ctx, second, atSecond, registry.SiteChange{MPAN: new(other)}); err != nil {
		t.Fatal(err)
	}

	for org, site := range map[flex.OrgID]flex.SiteID{first: atFirst, second: atSecond} {
		if _, err := d.Enrol(ctx, org, site, registry.Enrolment{Proposition: flex.LimitedPause}); err != nil {
			t.Fatal(err)
		}
	}

	storetest.At(t, db, url).Exec(fmt.Sprintf(
		`CREATE TRIGGER faulty BEFORE INSERT ON enrolment_change WHEN NEW.site_id = X'%x' BEGIN SELECT RAISE(ABORT, 'planted'); END`,
		atFirst.Bytes(),
	))
	if _, _, err := d.MovePoint(ctx, sharedMPAN, third, db.Now()); err == nil {
		t.Error("a change that fails is said to be carried out")
	}
	if _, _, err := d.MovePoint(ctx, other, third, db.Now()); err != nil {
		t.Errorf("a change beside one that fails: %v", err)
	}
	if r, err := d.MovePoints(ctx); err == nil || r.Count != 0 {
		t.Errorf("the job did %d, %v", r.Count, err)
	}

	err := db.Read(ctx, second, func(tx *store.Tx) error {
		state, err := tx.Enrolment(ctx, atSecond, flex.LimitedPause)
		if state != flex.Withdrawn {
			t.Errorf("the site whose point moved is %q", state)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
