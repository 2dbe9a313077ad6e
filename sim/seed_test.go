package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// streetDay is the first day of random streets; the clocks go back in its second night.
var streetDay = flex.Day{Year: 2026, Month: 10, Dom: 23}

func playHistory(t *testing.T, history []Happening) Outcome {
	t.Helper()
	o, err := PlayHistory(t.Context(), history)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Streets drawn from seeds, over the night in which the clocks go back.
func TestRandomStreets(t *testing.T) {
	seeds := uint64(20)
	if os.Getenv("FLEXD_LONG") != "" {
		seeds = 1000
	}

	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, b := range playHistory(t, DrawHistory(seed, streetDay, 3, 2)).Broken {
				t.Error(b)
			}
		})
	}
}

// Each law finds its planted fault, a history that fails shrinks to the stay with the fault, and a history
// played again has the same outcome.
func TestRandomStreets_PlantedFault(t *testing.T) {
	history := DrawHistory(1, streetDay, 2, 1)
	plant := slices.IndexFunc(history, func(h Happening) bool { return h.Kind == Stay })
	for law, fault := range map[string]Happening{"need": {Dead: true}, "stays": {Skipped: true}} {
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

	if a, b := playHistory(t, history), playHistory(t, history); a.Hash != b.Hash {
		t.Errorf("played twice: %v and %v", a, b)
	}

	booked := []client.TransactionDatumResponse{{CreditPence: 3}, {CreditPence: 4}}
	if got := booksBroken("car0", 0, booked, 8); len(got) != 1 {
		t.Errorf("a balance of 8 for 3 and 4: %q", got)
	}
}

// A kill that takes away what was acknowledged is found; one that takes away what was being written
// only, at any share, is not.
func TestRandomStreets_Kill(t *testing.T) {
	evening := streetDay.Start().Add(18 * time.Hour)
	stay := Happening{Kind: Stay, Home: "car0", KW: 7.4, Need: 10, From: evening, To: evening.Add(14 * time.Hour)}
	for _, share := range []float64{0, 0.3, 0.7, 1} {
		death := Happening{Kind: Kill, From: evening, To: evening, Share: share}
		for _, b := range playHistory(t, []Happening{stay, death}).Broken {
			t.Errorf("killed with %g: %s", share, b)
		}
	}

	forgetful := Happening{Kind: Kill, From: evening, To: evening, Forgets: true}
	if o, err := PlayHistory(t.Context(), []Happening{stay, forgetful}); err == nil && len(o.Broken) == 0 {
		t.Error("a plug-in that was acknowledged and lost was not found")
	}
}
