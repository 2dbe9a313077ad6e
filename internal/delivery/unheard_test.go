package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// TestUnheard: a charger that its client does not reach is listed until a report shows that it
// was, or the car has gone; an asset whose readings stopped, until others come. A charger's
// are due only once a car was plugged in.
func TestUnheard(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := append(
			h.chargers(4),
			h.Asset(h.site, flex.Battery, 5000),
			h.Asset(h.site, flex.Battery, 5000),
		)
		report := func(asset flex.AssetID, event flex.EventID, s flex.CallbackStatus) {
			h.Helper()
			if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: asset.String(), Event: event.String(), Status: s}); err != nil {
				h.Fatal(err)
			}
		}

		read := func(label flex.Label, assets ...flex.AssetID) {
			h.Helper()
			h.write(func(ctx context.Context, tx *store.Tx) error {
				to := tx.Now().Truncate(flex.HalfHour)
				var rs []flex.Reading
				for _, a := range assets {
					rs = append(rs, flex.Reading{AssetID: a, Label: label, Span: flex.Span{From: to.Add(-flex.HalfHour), To: to}, Value: 1})
				}

				return tx.PutReadings(ctx, rs)
			})
		}

		listed := func(unreached, missing int) {
			h.Helper()
			err := h.db.ReadAll(ctx, func(all *store.All) error {
				_, u, err := all.Unreached(ctx, h.Org, 15*time.Minute, 10)
				if err != nil {
					return err
				}

				_, m, err := all.ReadingsMissing(ctx, flex.OrgID{}, 10)
				if u != unreached || m != missing {
					h.Errorf(
						"%s after the start %d chargers are not reached and the readings of %d are missing, not %d and %d",
						time.Since(h.start),
						u,
						m,
						unreached,
						missing,
					)
				}

				return err
			})

			if err != nil {
				h.Fatal(err)
			}
		}

		read(flex.ChargerEnergy, as[0], as[1], as[3])
		read(flex.BoundaryImportPower, as[2])
		read(flex.BatteryStateOfCharge, as[4], as[5])
		events := h.plan(8*time.Hour, as...)
		report(as[0], events[0], flex.Received)
		report(as[1], events[1], flex.Received)
		report(as[2], events[2], flex.Received)
		report(as[2], events[2], flex.Accepted)
		report(as[3], events[3], flex.Accepted)

		listed(0, 0)
		time.Sleep(16 * time.Minute)
		listed(2, 0)
		again := h.plan(8*time.Hour, as[0])
		report(as[0], again[0], flex.Received)
		listed(2, 0) // since the first
		report(as[0], events[0], flex.Executed)
		h.unplug(as[1])
		listed(0, 0)

		time.Sleep(time.Hour)
		read(flex.ChargerEnergy, as[3]) // soon after the one before, and all that its stay needs

		time.Sleep(22 * time.Hour)
		read(flex.BoundaryImportPower, as[5]) // any of its steady readings shows that a battery is heard
		listed(0, 0)
		time.Sleep(2 * time.Hour)
		read(flex.ChargerEnergy, as[1])
		listed(0, 1) // of a battery, half as long is too long
		read(flex.BatteryStoredEnergy, as[4], as[5])
		listed(0, 0)

		time.Sleep(23 * time.Hour)
		read(flex.BatteryStateOfCharge, as[4], as[5])
		time.Sleep(2 * time.Hour)
		listed(0, 2)
		read(flex.BoundaryImportPower, as[2])
		listed(0, 1)
		h.unplug(as[0])
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, as[0]) })
		listed(0, 0)

		// The state of charge of one stops while its inverter and its meter still report.
		charge := func(want ...flex.AssetID) {
			h.Helper()
			err := h.db.ReadAll(ctx, func(all *store.All) error {
				for _, org := range []flex.OrgID{h.Org, {}} {
					found, n, err := all.ChargeMissing(ctx, org, 10)
					if err != nil || n != len(want) || len(found) != n || n == 1 && found[0].AssetID != want[0] {
						h.Errorf(
							"%s after the start %v is listed, not %v: %v",
							time.Since(h.start),
							found,
							want,
							err,
						)
					}
				}

				return nil
			})
			if err != nil {
				h.Fatal(err)
			}
		}

		read(flex.BatteryStateOfCharge, as[4], as[5], as[1]) // as[1] is a charger, whose car has gone
		for range 3 {
			charge()
			time.Sleep(8*time.Hour + time.Minute)
			read(flex.BatteryInverterPower, as[4], as[5], as[1])
			read(flex.BatteryStoredEnergy, as[5])
		}

		charge(as[4])
		time.Sleep(25 * time.Hour)
		charge() // of neither any reading comes
		read(flex.BatteryInverterPower, as[4])
		charge(as[4])
		read(flex.BatteryStateOfCharge, as[4])
		charge()
	})
}

// TestUnheard_LateReading: a reading of before a car was plugged in, which came late, is not
// the one that is waited for since.
func TestUnheard_LateReading(t *testing.T) {
	each(t, func(h *fixture) {
		as := h.chargers(1)
		read := func(to time.Time) {
			h.Helper()
			h.write(func(ctx context.Context, tx *store.Tx) error {
				return tx.PutReadings(ctx, []flex.Reading{{
					AssetID: as[0],
					Label:   flex.ChargerEnergy,
					Span:    flex.Span{From: to.Add(-flex.HalfHour), To: to},
					Value:   1,
				}})
			})
		}

		first := time.Now().Truncate(flex.HalfHour)
		read(first)
		time.Sleep(24 * time.Hour)
		h.plan(8*time.Hour, as...)
		read(first.Add(12 * time.Hour))

		time.Sleep(49 * time.Hour)
		err := h.db.ReadAll(context.Background(), func(all *store.All) error {
			_, n, err := all.ReadingsMissing(context.Background(), h.Org, 10)
			if n != 1 {
				h.Errorf("the readings of %d chargers are missing, not of 1", n)
			}
			return err
		})
		if err != nil {
			h.Fatal(err)
		}
	})
}
