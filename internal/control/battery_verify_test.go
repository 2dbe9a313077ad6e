package control_test

import (
	"fmt"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestBatteryPlan_Verified: what a plan read is checked against the consent as it is, against the site's
// devices and the boundary's labels. Each planted fault is found, and named.
func TestBatteryPlan_Verified(t *testing.T) {
	const now = "2026-01-14T00:05:00Z"
	day := flex.DayAt(at(now))
	one(t, now, func(h *fixture) {
		h.battery()
		h.Consent(day.Add(-4).Start())
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		var rs []flex.Reading
		for k := 1; k <= 6; k++ {
			for n := 1; n <= 48; n++ {
				rs = append(rs, flex.Reading{AssetID: meter, Span: day.Add(-k).Period(n).Span(), Label: flex.BoundaryImportPower, Value: 200_000})
			}
		}

		if err := h.db.Write(h.Context(), h.Org, func(tx *store.Tx) error { return tx.PutReadings(h.Context(), rs) }); err != nil {
			t.Fatal(err)
		}
		h.runBatteries()

		finds := func(want string) {
			t.Helper()
			found, err := h.db.Verify(h.Context())
			if err != nil || (want == "") != (len(found) == 0) || want != "" && !strings.Contains(strings.Join(found, "\n"), want) {
				t.Errorf("%v, %v, want %q", found, err, want)
			}
		}

		finds("")
		first, second := day.Add(-4).Start().Unix(), day.Add(-4).Start().Add(flex.HalfHour).Unix()
		for _, planted := range []struct{ set, back, want string }{
			{`UPDATE consent_span SET from_at = from_at + 1`, `UPDATE consent_span SET from_at = from_at - 1`, "2026-01-10T00:00:00Z to 2026-01-14T00:00:00Z"},
			{
				fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '[%d,', '[%d,')`, first, first-1800),
				fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '[%d,', '[%d,')`, first-1800, first),
				"2026-01-09T23:30:00Z to",
			},
			{
				`UPDATE battery_plan SET guess_read = REPLACE(guess_read, 'boundary_import_kw', 'solar_power_kw')`,
				`UPDATE battery_plan SET guess_read = REPLACE(guess_read, 'solar_power_kw', 'boundary_import_kw')`, "solar_power_kw is no label of the boundary",
			},
			{
				fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '%s', '%s')`, meter, flex.AssetID{7}),
				fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '%s', '%s')`, flex.AssetID{7}, meter), "is none of the site",
			},
			{fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '[%d,', '[%d,')`, first, second), `SELECT 1`, ""},
		} {
			h.Exec(planted.set)
			finds(planted.want)
			h.Exec(planted.back)
		}
		finds("")
	})
}

// TestBatteryPlan_VerifiedReplaced: where the meter was replaced, a plan is made of what both meters counted, and each is checked.
func TestBatteryPlan_VerifiedReplaced(t *testing.T) {
	const now = "2026-01-14T00:05:00Z"
	day := flex.DayAt(at(now))
	each(t, now, func(h *fixture) {
		id := h.battery()
		h.Consent(day.Add(-10).Start())
		old := h.Asset(h.site, flex.BoundaryMeter, 0)
		h.reads(old, flex.BoundaryImportPower, day, func(back, _ int) (float64, bool) { return 0.2, back > 2 && back < 8 })
		h.drop(old)
		meter := h.Asset(h.site, flex.BoundaryMeter, 0)
		h.reads(meter, flex.BoundaryImportPower, day, func(back, _ int) (float64, bool) { return 0.2, back <= 2 })
		h.runBatteries()

		err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
			b, err := tx.Battery(h.Context(), id)
			r := b.Plan.Read
			if r.Device != old || len(r.Others) != 1 || r.Others[0].Device != meter {
				t.Errorf("it says that it read %+v", r)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h.clean()

		h.Exec(fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '%s', '%s')`, meter, flex.AssetID{7}))
		found, err := h.db.Verify(h.Context())
		if err != nil || !strings.Contains(strings.Join(found, "\n"), "is none of the site") {
			t.Errorf("%v, %v", found, err)
		}
		h.Exec(fmt.Sprintf(`UPDATE battery_plan SET guess_read = REPLACE(guess_read, '%s', '%s')`, flex.AssetID{7}, meter))
	})
}
