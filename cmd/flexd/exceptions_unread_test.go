package main

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store/storetest"
)

// TestExceptions_OneKindUnread: exceptions of one kind cannot be read. Every place where an
// operator or a program may look names the kind, does not say that nothing is wrong, and lists
// what is found of another kind.
func TestExceptions_OneKindUnread(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := &troubles{T: t, database: database, now: time.Now().Truncate(time.Second), kinds: []operations.Kind{operations.Excluded}}
		h := s.serve()
		defer h.Close()
		s.Seed = storetest.NewSeed(t, h.DB, database)
		asset := s.Asset(s.Site(), flex.Charger, 7000)
		page, program := s.browse(h)
		if text := page("/console/fleet"); !strings.Contains(text, `data-unread role="status" hidden>`) {
			t.Errorf("every kind is read, and the page says %s", text)
		}

		s.Exec(`ALTER TABLE adr_order RENAME COLUMN to_at TO planted`)
		if text := page("/console/fleet"); !strings.Contains(text, `data-unread role="status">flexd could not look for these kinds: <span>order_unmet</span>`) ||
			strings.Contains(text, nothing) {
			t.Errorf("the page says %s", text)
		}
		if text := strings.TrimSpace(program("/operations/exceptions")); text != `{"exceptions":[],"unread":["order_unmet"]}` {
			t.Errorf("a program reads %s", text)
		}

		if text := program("/operations/fleet"); !strings.Contains(text, `"unread":["order_unmet"]`) {
			t.Errorf("of the fleet a program reads %s", text)
		}
		if text := page("/console/fleet.json"); !strings.Contains(text, `"unread"`) {
			t.Errorf("the page's numbers are %s", text)
		}

		s.Exec(`UPDATE asset SET excluded_at = $2 WHERE id = $1`, asset.Bytes(), s.now.UnixMicro())
		s.inConsole(page)
		s.inInterface(program("/operations/exceptions"))

		text := program("/metrics")
		s.inMetrics(text)
		if strings.Contains(text, `{kind="order_unmet"}`) || !strings.Contains(text, "\nflexd_exceptions_unread 1\n") {
			t.Errorf("the metrics are %s", text)
		}

		s.inDoctor()
		s.doctorCannot("order_unmet")
	})
}

// doctorCannot wants flexd doctor to say that a kind could not be looked for.
func (s *troubles) doctorCannot(kind string) {
	s.Helper()
	code, said := commandLineOf(s.T, s.database)("doctor")
	for line := range strings.Lines(said) {
		ill := strings.HasPrefix(line, "NOT WELL") && strings.Contains(line, " "+kind+" ")
		if ill && strings.Contains(line, "could not look for exceptions of this kind") {
			return
		}
	}

	s.Errorf("flexd doctor ends with %d and says %s", code, said)
}
