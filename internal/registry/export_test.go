package registry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestExportLimit enrols a site by its point's largest half-hourly export: at the limit it is
// eligible, a watt-hour above it is not, nor by the operator's word on a model; without a limit,
// a figure, or a pair that holds now nothing is in the way.
func TestExportLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, largest int64 // -1: none
		ended          bool  // whether the pair is over
		want           bool
	}{
		"no limit":            {-1, 100_000_000, false, true},
		"at the limit":        {1500, 1500, false, true},
		"a watt-hour above":   {1500, 1501, false, false},
		"a limit of 0, none":  {0, 0, false, true},
		"a limit of 0, a Wh":  {0, 1, false, false},
		"a figure not told":   {0, -1, false, true},
		"a pair that is over": {0, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				knownPoint(t, db)
				org, site := party(t, db, "acme")

				err := db.Write(t.Context(), org, func(tx *store.Tx) error {
					p := flex.MeterPair{Import: sharedMPAN, From: tx.Now().Add(-time.Hour)}
					if tt.largest >= 0 {
						p.LargestExport = flex.Some(flex.WattHours(tt.largest))
					}
					if tt.ended {
						p.To = tx.Now()
					}

					if err := tx.PutPairs(t.Context(), []flex.MeterPair{p}); err != nil {
						return err
					}
					o, err := tx.OrgRecord(t.Context())
					if err != nil {
						return err
					}

					if tt.limit >= 0 {
						o.Settings.ExportLimit = flex.Some(flex.WattHours(tt.limit))
					}
					return tx.SetSettings(t.Context(), o.Settings)
				})
				if err != nil {
					t.Fatal(err)
				}
				d := &registry.Service{DB: db}
				check, err := d.CheckEligibility(t.Context(), org, sharedMPAN, "")
				if err != nil {
					t.Fatal(err)
				}

				for _, v := range check.Propositions {
					if v.Eligible != tt.want || slices.Contains(v.Issues, registry.ExportAboveLimit) == tt.want {
						t.Errorf("%+v, want %v", v, tt.want)
					}
				}
				_, err = d.Enrol(t.Context(), org, site, registry.Enrolment{Proposition: flex.LimitedPause, Override: true})
				if (err == nil) != tt.want || err != nil && (flex.KindOf(err) != flex.Unmet || !strings.Contains(err.Error(), registry.ExportAboveLimit)) {
					t.Errorf("enrolling: %v, want %v", err, tt.want)
				}
			})
		})
	}
}
