package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	records "flexd/internal/store"
	"flexd/internal/store/storetest"
)

// repairStory is a store with an event of a closed month, credited with 40 p. One of its
// readings is 1 kWh too high, which no background job notices.
type repairStory struct {
	*bookkeeping
	seed  *storetest.Seed
	event flex.Day
}

func newRepairStory(t *testing.T) *repairStory {
	b := &bookkeeping{T: t, url: freshDatabase(t)}
	at := store{Database: b.url, Environment: "sandbox"}
	h, err := at.openOrCreate(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { h.Close() })
	s := &repairStory{bookkeeping: b, seed: storetest.NewSeed(t, h.DB, b.url)}
	s.site = s.seed.Site()
	asset := s.seed.Asset(s.site, flex.Charger, 22_000)
	s.seed.Consent(time.UnixMicro(1))
	today := flex.DayAt(time.Now())
	b.last = flex.Day{Year: today.Year, Month: today.Month, Dom: 1}.Add(-1)
	s.event = b.last.Add(-3)

	err = h.DB.Write(t.Context(), s.seed.Org, func(tx *records.Tx) error {
		for name, value := range map[string]string{"user_share": "1", "certainty": "0", "credit_pence_per_kwh": "0"} {
			if err := tx.PutTerm(t.Context(), flex.Term{Name: name, Value: value}); err != nil {
				return err
			}
		}
		var rs []flex.Reading
		rs = append(rs, flex.Reading{AssetID: asset, Span: s.event.Period(36).Span(), Label: flex.ChargerEnergy, Value: 5_000_000})

		for back := 1; back <= 40; back++ {
			for n := 34; n <= 38; n++ { // the event's day may be one of a clock change
				rs = append(rs, flex.Reading{AssetID: asset, Span: s.event.Add(-back).Period(n).Span(), Label: flex.ChargerEnergy, Value: 9_000_000})
			}
		}
		return tx.PutReadings(t.Context(), rs)
	})
	if err != nil {
		t.Fatal(err)
	}

	err = h.DB.WriteAll(t.Context(), func(all *records.All) error {
		p := flex.PricedPeriod{Period: s.event.Period(36), Price: flex.FromGBPPerMWh(100), Known: true}
		_, err := all.AddPublication(t.Context(), records.Publication{Source: "test", PublishedAt: s.event.Start(), Span: p.Period.Span()}, []flex.PricedPeriod{p})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	s.seed.Events(s.event, 36, 36)
	s.seed.Exec(`UPDATE flex_event SET meant = '-11000', nominated = '11000', look_at = 0`)
	if _, err := h.Reward.SettleEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// credits lists what the site was credited, and where each was booked and why.
func (s *repairStory) credits() string {
	s.Helper()
	return strings.Join(s.seed.Strings(`SELECT l.kind || ' ' || l.credit || ' on ' || l.booked_on || ' about ' || l.settled_on FROM ledger l ORDER BY l.recorded_at, l.id`), ", ")
}

// A repair by the command line. A preview posts nothing. Posting posts the difference, with
// its cause, in the open month. Posting again posts nothing, and the closed month stays as it
// was.
func TestSettleAgain_Post(t *testing.T) {
	s := newRepairStory(t)
	first := "flex event 40 on " + s.event.String() + " about " + s.event.String()
	if got := s.credits(); got != first {
		t.Fatalf("credited %q, want %q", got, first)
	}
	month := s.event.String()[:7]
	s.run(0, "books", "close", "seeded", month)
	closed := s.run(0, "books", "balance", "seeded", "--as-of", s.last.String())
	months := s.run(0, "books", "months", "seeded", "--json")

	s.seed.Exec(`UPDATE reading SET value = 4000000 WHERE value = 5000000`) // past the store: no job notices
	again := []string{"settle", "again", "--org", "seeded", "--from", s.event.String(), "--to", s.event.String()}
	if out := s.run(0, again...); !strings.Contains(out, "events  1\n") || s.credits() != first {
		t.Errorf("a look says %s, and the books %s", out, s.credits())
	}
	if out := s.run(0, "settle", "runs", "--org", "seeded"); strings.Count(out, "again") != 1 {
		t.Errorf("the runs: %s", out)
	}

	posted := regexp.MustCompile(`events +1\nsessions +0\ntransactions +1\ncredited +£0\.10\n`)
	if out := s.run(0, append(again, "--post")...); !posted.MatchString(out) {
		t.Errorf("posted: %s", out)
	}

	today := flex.DayAt(time.Now()).String()
	want := first + ", flex period top-up 10 on " + today + " about " + s.event.String()
	if got := s.credits(); got != want {
		t.Errorf("the books say %q, want %q", got, want)
	}
	journal := s.run(0, "books", "export", "seeded", "--from", today, "--to", today)
	if strings.Count(journal, s.site.String()) == 0 || !strings.Contains(journal, "flex event:") || !strings.Contains(journal, ","+s.event.String()+",") {
		t.Errorf("the open month's journal does not name the event and its day:\n%s", journal)
	}

	nothing := regexp.MustCompile(`events +1\nsessions +0\ntransactions +0\ncredited +£0\.00\n`)
	if out := s.run(0, append(again, "--post")...); !nothing.MatchString(out) || s.credits() != want {
		t.Errorf("posted again: %s, %s", out, s.credits())
	}
	if now := s.run(0, "books", "balance", "seeded", "--as-of", s.last.String()); now != closed {
		t.Errorf("the closed month was\n%s\nand is\n%s", closed, now)
	}

	if now := s.run(0, "books", "months", "seeded", "--json"); now != months {
		t.Errorf("the closed months were\n%s\nand are\n%s", months, now)
	}
	if out := s.run(0, "audit", "list"); strings.Count(out, "settle again and post") != 2 {
		t.Errorf("the audit log does not have both: %s", out)
	}
	if out := s.run(2, append(again, "--post", "--known-at", "2026-01-01T00:00:00Z")...); !strings.Contains(out, "as it is known now") {
		t.Errorf("posted as of an earlier instant: %s", out)
	}
}
