package sim

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// autumnDay and springDay are first days of random homes: the clocks go back in the second night, or
// forward.
var (
	autumnDay = flex.Day{Year: 2026, Month: 10, Dom: 23}
	springDay = flex.Day{Year: 2027, Month: 3, Dom: 26}
)

func play(t *testing.T, history []Happening) Outcome {
	t.Helper()
	o, err := PlayHistory(t.Context(), history)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Homes drawn from seeds, over a night in which the clocks go back or, of every other seed, forward.
func TestRandomHomes(t *testing.T) {
	seeds := uint64(14)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 1000
	}

	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			first := autumnDay
			if seed%2 == 1 {
				first = springDay
			}

			for _, b := range play(t, DrawHistory(seed, first, 2, 2)).Broken {
				t.Error(b)
			}
		})
	}
}

// Each law finds its planted fault, a history that fails shrinks to the stay with the fault, and a history
// played again has the same outcome.
func TestRandomHomes_PlantedFault(t *testing.T) {
	history := DrawHistory(1, autumnDay, 2, 1)
	plant := slices.IndexFunc(history, func(h Happening) bool { return h.Kind == Stay })
	for law, fault := range map[string]Happening{"need": {Dead: true}, "sessions": {Skipped: true}} {
		planted := slices.Clone(history)
		planted[plant].Dead, planted[plant].Skipped = fault.Dead, fault.Skipped

		finds := func(h []Happening) (bool, error) {
			o, err := PlayHistory(t.Context(), h)
			return slices.ContainsFunc(o.Broken, func(b string) bool { return strings.HasPrefix(b, law+":") }), err
		}

		if found, err := finds(planted); !found || err != nil {
			t.Fatalf("%s: the planted fault was not found: %v", law, err)
		}

		if least, err := ShrinkHistory(planted, finds); len(least) != 1 || err != nil {
			t.Errorf("%s: shrunk to %d happenings: %v", law, len(least), err)
		}
	}

	if a, b := play(t, history), play(t, history); a.Hash != b.Hash {
		t.Errorf("played twice: %v and %v", a, b)
	}

	booked := []client.TransactionDatumResponse{{CreditPence: 3}, {CreditPence: 4}}
	if got := sumBroken("car0", booked, 8); len(got) != 1 {
		t.Errorf("a balance of 8 for 3 and 4: %q", got)
	}

	booked[0].CreditableKWh, booked[1].CreditableKWh = new(5.0), new(-1.0)
	if got := energyBroken("car0", 4, 8, booked); len(got) != 0 {
		t.Errorf("5 kWh, and 1 less, credited for 4: %q", got)
	}
	if got := energyBroken("car0", 3.9, 8, booked); len(got) != 1 {
		t.Errorf("4 kWh credited for 3.9: %q", got)
	}
}

// Two cars cannot be at one charger, nor can one be ready before it comes: such a history is refused and not begun.
func TestRandomHomes_Apart(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	stay := Happening{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}
	within, after, short := stay, stay, stay
	within.From, within.To = stay.From.Add(time.Hour), stay.To.Add(-2*time.Hour)
	after.From, after.To = stay.To, stay.To.Add(5*time.Hour)
	short.To = short.From.Add(time.Hour)

	for _, history := range [][]Happening{{stay, within}, {after, stay}, {short}} {
		if _, err := PlayHistory(t.Context(), history); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%+v is played: %v", history, err)
		}
	}

	beside := within
	beside.Charger = 1
	if err := valid([]Happening{stay, beside}); err != nil {
		t.Errorf("two cars at two chargers: %v", err)
	}
}

// The laws are held once for each noon, for one too before which flexd is killed and after which it is back.
func TestRandomHomes_KilledBeforeNoon(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	stay := Happening{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}
	noon := evening.Truncate(24 * time.Hour).Add(36 * time.Hour)
	death := Happening{Kind: Kill, From: noon.Add(-15 * time.Minute), To: noon.Add(-15 * time.Minute), Share: 0.5}

	for _, history := range [][]Happening{{stay}, {stay, death}} {
		noons := 0
		if _, err := playHistory(t.Context(), history, func(string) { noons++ }); err != nil {
			t.Fatal(err)
		}
		if noons != 3 {
			t.Errorf("of %d happenings the laws are held at %d noons of 3", len(history), noons)
		}
	}
}

// One seed has one outcome, of six homes too: with a cap, by which cars of one need come in the order of their
// ids, with an endpoint that is out of reach for an hour, and with a kill.
func TestRandomHomes_OneOutcome(t *testing.T) {
	history := DrawHistory(3, autumnDay, 6, 1)
	for _, kind := range []Kind{Cap, Outage, Kill} {
		if !slices.ContainsFunc(history, func(h Happening) bool { return h.Kind == kind }) {
			t.Fatalf("the history has no %s", kind)
		}
	}

	first := play(t, history)
	if again := play(t, history); again.Hash != first.Hash {
		t.Errorf("played again: %v and %v", first, again)
	}
}

// More pushes than a default endpoint takes at one instant are all tried in it, though the clock stands still until they were.
func TestRandomHomes_ManyPushesAtOnce(t *testing.T) {
	var history []Happening
	come := autumnDay.Start().Add(18 * time.Hour).Truncate(allJobs) // when all jobs run
	for n := range 110 {
		history = append(history, Happening{Kind: Stay, Home: homeName(n), KW: 7.4, From: come, To: come.Add(14 * time.Hour), Need: 1})
	}

	for _, b := range play(t, history).Broken {
		t.Error(b)
	}
}

// A home whose main fuse carries half of what flexd is given is found, and one whose fuse is what flexd is
// given is not: with two cars and a battery, a car that wants more and one that is charged at once.
func TestRandomHomes_Fuse(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	morning := evening.Add(13 * time.Hour)
	at := func(h Happening, hours, kw, need float64) Happening {
		h.Home, h.KW, h.Need, h.From = "home", kw, need, evening.Add(time.Duration(hours*float64(time.Hour)))
		if h.To.IsZero() {
			h.To = h.From
		}
		return h
	}

	history := []Happening{
		at(Happening{Kind: Fuse}, -18, 10, 0),
		at(Happening{Kind: Storage, CapacityKWh: 10}, -18, 3, 0),
		at(Happening{Kind: Stay, To: morning}, 0, 7.4, 20),
		at(Happening{Kind: Stay, To: morning, Charger: 1}, 1, 7.4, 10),
		at(Happening{Kind: Change, Charger: 1}, 2, 7.4, 25),
		at(Happening{Kind: Boost, To: evening.Add(4 * time.Hour)}, 3, 7.4, 0),
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[0].Weak = true
	over := func(b string) bool { return strings.HasPrefix(b, "fuse:") }
	if o := play(t, history); !slices.ContainsFunc(o.Broken, over) {
		t.Errorf("a fuse of half the power was not found to carry too much: %q", o.Broken)
	}
}

// A cap that is half of what flexd is given is found to be passed, and one that is what flexd is given is
// not, by three cars of which it lets two charge.
func TestRandomHomes_Cap(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	limit := Happening{Kind: Cap, KW: 8, From: evening.Add(time.Hour), To: evening.Add(11 * time.Hour)}
	history := []Happening{limit}
	for i := range 3 {
		history = append(history, Happening{Kind: Stay, Home: homeName(i), KW: 3.7, Need: 15, From: evening, To: evening.Add(14 * time.Hour)})
	}
	for _, b := range play(t, history).Broken {
		t.Error(b)
	}

	history[0].Weak = true
	over := func(b string) bool { return strings.HasPrefix(b, "cap:") }
	if o := play(t, history); !slices.ContainsFunc(o.Broken, over) {
		t.Errorf("a cap of half the power was not found to be passed: %q", o.Broken)
	}
}

// A record that breaks a law of the store for a day is found on that day, though it is mended before the
// end.
func TestRandomHomes_Store(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	stay := Happening{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}
	statements := []string{
		`INSERT INTO solar (site_id, org_id, source, given_at, from_at, energies) SELECT id, org_id, 'nobody', 0, 1, '' FROM site`,
		`DELETE FROM solar`,
	}

	noon := func(file string) {
		if len(statements) == 0 {
			return
		}

		db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}

		defer db.Close()
		if _, err := db.Exec(statements[0]); err != nil {
			t.Fatal(err)
		}
		statements = statements[1:]
	}

	o, err := playHistory(t.Context(), []Happening{stay}, noon)
	if err != nil || len(statements) > 0 {
		t.Fatal(err, statements)
	}

	if len(o.Broken) != 1 || !strings.HasPrefix(o.Broken[0], "store: a solar forecast begins with a half-hour") {
		t.Errorf("a forecast from the middle of a half-hour on was not found: %q", o.Broken)
	}
}

// A kill that takes away what was acknowledged is found; one that takes away what was being written
// only, at any share, is not.
func TestRandomHomes_Kill(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	stay := Happening{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}
	for _, share := range []float64{0, 0.3, 0.7, 1} {
		death := Happening{Kind: Kill, From: evening, To: evening, Share: share}
		for _, b := range play(t, []Happening{stay, death}).Broken {
			t.Errorf("killed with %g: %s", share, b)
		}
	}

	forgetful := Happening{Kind: Kill, From: evening, To: evening, Forgets: true}
	if o, err := PlayHistory(t.Context(), []Happening{stay, forgetful}); err == nil && len(o.Broken) == 0 {
		t.Error("a plug-in that was acknowledged and lost was not found")
	}
}

// Flexd may be killed more often than a path can have folders.
func TestRandomHomes_KilledOften(t *testing.T) {
	evening := autumnDay.Start().Add(18 * time.Hour)
	history := []Happening{{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}}
	for i := range 30 {
		at := evening.Add(time.Duration(i) * 20 * time.Minute)
		history = append(history, Happening{Kind: Kill, From: at, To: at, Share: 0.5})
	}

	for _, b := range play(t, history).Broken {
		t.Error(b)
	}
}
