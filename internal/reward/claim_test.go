package reward

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// TestRevision posts what is owed now less what was posted, under a key of its own, and
// nothing where nothing changed.
func TestRevision(t *testing.T) {
	credited := func(p flex.Pence) []ledger.Posting { return ledger.Credited(p) }
	for name, c := range map[string]struct {
		posted    int
		was, owed flex.Pence
		more      flex.WattHours
		listed    bool

		kind   ledger.Kind // empty: nothing is posted
		key    string
		credit flex.Pence
	}{
		"the first":                     {0, 0, 80, 1000, true, ledger.FlexEvent, "a", 80},
		"the first, worth nothing":      {0, 0, 0, 0, true, ledger.FlexEvent, "a", 0},
		"the first, nobody's":           {0, 0, 0, 0, false, "", "", 0},
		"the same again":                {1, 80, 80, 0, true, "", "", 0},
		"more":                          {1, 80, 100, 10, true, ledger.FlexPeriodTopUp, "a:1", 20},
		"less":                          {2, 80, 30, -10, true, ledger.Correction, "a:2", -50},
		"energy alone, more":            {1, 80, 80, 1, true, ledger.FlexPeriodTopUp, "a:1", 0},
		"energy alone, less":            {1, 80, 80, -1, true, ledger.Correction, "a:1", 0},
		"energy alone that nobody sees": {1, 80, 80, 1, false, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := bookingTarget{subject: "a", posted: credited(c.was), target: credited(c.owed), energy: 7, more: c.more, visible: c.listed, changed: c.more != 0}
			p := store.Progress{Posted: c.posted, PostedWh: 5}
			got := o.revision(&p)

			if c.kind == "" {
				if got != nil || p.Posted != c.posted || p.PostedWh != 5 {
					t.Fatalf("posts %+v and counts %+v, want nothing", got, p)
				}
				return
			}

			if got == nil {
				t.Fatal("posts nothing")
			}
			if got.Kind != c.kind || got.Key != c.key || got.Credit() != c.credit {
				t.Errorf("posts a %s %q of %d, want a %s %q of %d", got.Kind, got.Key, got.Credit(), c.kind, c.key, c.credit)
			}

			if p.Posted != c.posted+1 || p.PostedWh != 7 {
				t.Errorf("counts %+v", p)
			}
			if rest := ledger.Revised(credited(c.owed), append(credited(c.was), got.Postings...)); len(rest) > 0 {
				t.Errorf("the books are off by %v", rest)
			}
		})
	}
}

// TestWait holds what a claim waits for next: the reading that is missing, or an hour if that
// came and was not enough, or nothing once it is final.
func TestWait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	missing, other := now.Add(-3*time.Hour), now.Add(-2*time.Hour)
	soon, late := now.Add(10*time.Minute), now.Add(24*time.Hour)

	for name, c := range map[string]struct {
		outlook
		waits, next time.Time
	}{
		"missing still":                {outlook{missing, late, false}, missing, late},
		"came, and not enough":         {outlook{missing, late, true}, time.Time{}, now.Add(recheck)},
		"came, and is due before":      {outlook{missing, soon, true}, time.Time{}, soon},
		"came, and another is missing": {outlook{other, late, true}, other, late},
		"came, and is complete":        {outlook{time.Time{}, late, true}, time.Time{}, late},
		"final":                        {outlook{missing, time.Time{}, false}, time.Time{}, time.Time{}},
		"came, not enough, final":      {outlook{missing, time.Time{}, true}, time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := store.Progress{WaitsAt: missing, LookAt: late}
			c.wait(&p, now)
			if got := []time.Time{p.WaitsAt, p.LookAt}; !slices.Equal(got, []time.Time{c.waits, c.next}) {
				t.Errorf("waits for, and looks again at, %v, want %v and %v", got, c.waits, c.next)
			}
		})
	}
}
