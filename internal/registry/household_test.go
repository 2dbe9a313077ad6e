package registry_test

import (
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A consent that an enrolled home withdraws ends its enrolment; given again it enrols again,
// unless what else is asked for is missing.
func TestSetConsent_Enrolled(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 14, 17, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		d := &registry.Service{DB: db}
		knownPoint(t, db)
		org, site := party(t, db, "acme")
		if _, err := d.Enrol(t.Context(), org, site, registry.Enrolment{Proposition: flex.LimitedPause}); err != nil {
			t.Fatal(err)
		}

		set := func(kind string, give bool, want flex.Kind) {
			t.Helper()
			now = now.Add(time.Minute)
			err := d.SetConsent(t.Context(), org, site, kind, give)
			if want == flex.Internal && err != nil || want != flex.Internal && flex.KindOf(err) != want {
				t.Errorf("%s, give %v: %v, want %v", kind, give, err, want)
			}
		}

		stands := func(want flex.EnrolmentState, given ...string) {
			t.Helper()
			var state flex.EnrolmentState
			err := db.Read(t.Context(), org, func(tx *store.Tx) (err error) {
				state, err = tx.Enrolment(t.Context(), site, flex.LimitedPause)
				return err
			})

			if err != nil || state != want {
				t.Errorf("the site is %q, want %q: %v", state, want, err)
			}

			found, err := d.Consents(t.Context(), org, site)
			if err != nil {
				t.Fatal(err)
			}

			var holds []string
			for _, c := range found {
				if c.At.IsZero() {
					t.Errorf("%s has no instant", c.Kind)
				}

				if c.InForce {
					holds = append(holds, c.Kind)
				}
			}

			if !slices.Equal(holds, given) {
				t.Errorf("given are %q, want %q", holds, given)
			}
		}

		const none, pause = flex.Internal, string(flex.LimitedPauseMethod)
		stands(flex.Enrolled, registry.BoundaryMeter, pause)
		set(pause, false, none)
		stands(flex.Withdrawn, registry.BoundaryMeter)
		set(pause, true, none)
		stands(flex.Enrolled, registry.BoundaryMeter, pause)

		set(pause, false, none)
		set(registry.BoundaryMeter, false, none)
		set(pause, true, flex.Unmet)
		stands(flex.Withdrawn)
		set(registry.BoundaryMeter, true, none)
		set(pause, true, none)
		stands(flex.Enrolled, registry.BoundaryMeter, pause)

		set(string(flex.FullScheduleMethod), true, flex.NotFound)
	})
}
