package operations_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// broken is a service whose database has a halt and an excluded asset, and lost the columns of a table.
func broken(t *testing.T, url, table string, columns ...string) (*operations.Service, *storetest.Seed) {
	t.Helper()
	now := time.Date(2026, 1, 15, 18, 0, 0, 0, time.UTC)
	db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
	seed := storetest.NewSeed(t, db, url)
	seed.Exec(`UPDATE asset SET excluded_at = 1 WHERE id = $1`, seed.Asset(seed.Site(), flex.Charger, 7000).Bytes())
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		return all.Halt(t.Context(), store.Halt{Scope: store.HaltScope{Kind: store.HaltAll}, Who: "ada", At: now, Reason: "a fault of the client"})
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range columns {
		seed.Exec(`ALTER TABLE ` + table + ` RENAME COLUMN ` + c + ` TO planted_` + c)
	}

	return &operations.Service{DB: db}, seed
}

// kindsOf are the kinds that were found, and those that could not be looked for.
func kindsOf(found []operations.Exception, unread []operations.Unread) (is, not []operations.Kind) {
	for _, e := range found {
		is = append(is, e.Kind)
	}
	for _, u := range unread {
		not = append(not, u.Kind)
	}

	return is, not
}

// Finders that fail hide what they find alone: those between and after them are run, of all organisations, of one, and for a reader of
// some.
func TestExceptions_FinderFails(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, seed := broken(t, url, "adr_order", "to_at")
		seed.Exec(`ALTER TABLE held_reading RENAME COLUMN decision TO planted_decision`)
		want := []operations.Kind{operations.OrderUnmet, operations.ReadingsHeld}
		some := store.Within(t.Context(), []flex.OrgID{seed.Org})

		for _, org := range []flex.OrgID{{}, seed.Org} {
			found, unread, err := s.Exceptions(t.Context(), org)
			is, not := kindsOf(found, unread)
			if err != nil || !slices.Equal(not, want) {
				t.Errorf("unread: %v, %v", not, err)
			}
			if !slices.Equal(is, []operations.Kind{operations.Halted, operations.Excluded}) {
				t.Errorf("found %v", is)
			}

			found, unread, err = s.Exceptions(some, org)
			bounded, boundedNot := kindsOf(found, unread)
			if err != nil || !slices.Equal(bounded, is) || !slices.Equal(boundedNot, want) {
				t.Errorf("a reader of some organisations: %v, %v, %v", bounded, boundedNot, err)
			}
		}

		if _, err := s.WatchAlerts(t.Context()); err == nil || !strings.Contains(err.Error(), "of the kind order_unmet") {
			t.Errorf("the alerts' job says %v", err)
		}
	})
}

// A fleet that cannot be read hides what is found in it alone.
func TestExceptions_FleetUnread(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, seed := broken(t, url, "session", "plugged_in_at")
		if _, err := s.Look(t.Context()); err == nil {
			t.Fatal("the fleet is read")
		}

		found, unread, err := s.Exceptions(t.Context(), seed.Org)
		is, not := kindsOf(found, unread)
		if err != nil || !slices.Equal(is, []operations.Kind{operations.Halted, operations.Excluded}) {
			t.Errorf("found %v, %v", is, err)
		}

		for _, k := range []operations.Kind{operations.ShortTime, operations.EndpointMissing, operations.Unplanned, operations.SiteCutShort} {
			if !slices.Contains(not, k) {
				t.Errorf("%s is not among the unread: %v", k, not)
			}
		}
		if slices.Contains(not, operations.PayoutWaiting) {
			t.Errorf("what is not found in the fleet is among the unread: %v", not)
		}

		figures := gauges(t, s)
		if _, there := figures["flexd_short_watt_hours short_of_time"]; there {
			t.Errorf("a figure of an unread kind: %v", figures)
		}
		if n := figures["flexd_exceptions_unread"]; n != float64(len(not)) {
			t.Errorf("%v kinds are unread by the metrics, %d by the list", n, len(not))
		}
	})
}

// The metrics leave out the kinds that could not be looked for, and no other.
func TestMetrics_FinderFails(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, _ := broken(t, url, "adr_order", "to_at")
		figures := gauges(t, s)
		for _, k := range operations.Kinds {
			_, there := figures["flexd_exceptions "+string(k)]
			if there == (k == operations.OrderUnmet) {
				t.Errorf("%s is there: %t", k, there)
			}
		}

		for name, want := range map[string]float64{
			"flexd_exceptions_unread": 1, "flexd_exceptions halted": 1, "flexd_exceptions excluded": 1, "flexd_short_watt_hours short_of_time": 0, "flexd_plugged_in": 0,
		} {
			if got, there := figures[name]; !there || got != want {
				t.Errorf("%s: %v, %t", name, got, there)
			}
		}
	})
}

// gauges are the metrics by their names, with the kind if there is one.
func gauges(t *testing.T, s *operations.Service) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(operations.Metrics{Service: s})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	figures := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			figures[name] = m.GetGauge().GetValue()
		}
	}

	return figures
}
