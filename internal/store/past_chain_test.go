package store_test

import (
	"fmt"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestSchedulesBefore reads what a schedule replaced: back to the first that began before the
// instant, which is one of them, and no more than asked for.
func TestSchedulesBefore(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox})
		seed := storetest.NewSeed(t, db, url)
		putChain(seed, 5)

		for _, c := range []struct {
			newest, most int
			since        time.Time
			want         string
		}{
			{5, 10, time.Time{}, "4321"},
			{5, 10, hourOf(1), "4321"},
			{5, 10, hourOf(3), "432"},
			{5, 10, hourOf(3).Add(time.Second), "43"},
			{5, 10, hourOf(5), "4"},
			{5, 10, hourOf(5).Add(time.Second), ""},
			{5, 2, time.Time{}, "43"},
			{5, 0, time.Time{}, ""},
			{1, 10, time.Time{}, ""},
		} {
			if got := chainOf(t, db, seed.Org, c.newest, c.since, c.most); got != c.want {
				t.Errorf("before %d since %v, at most %d: %q, want %q", c.newest, c.since, c.most, got, c.want)
			}
		}
	})
}

// hourOf is when the schedule of a generation begins.
func hourOf(generation int) time.Time { return time.Unix(int64(3600*generation), 0).UTC() }

// putChain adds schedules of one session, an hour apart, each in the place of the one before.
func putChain(seed *storetest.Seed, n int) {
	for i := 1; i <= n; i++ {
		var before any
		if i > 1 {
			before = flex.EventID{byte(i - 1)}.Bytes()
		}

		from := hourOf(i)

		seed.Exec(
			`INSERT INTO schedule (event_id, org_id, asset_id, session_id, generation, cause, made_at, from_at, to_at, steps,
				ready_by, need_wh, delivered_wh, count_from, power_w, running, may_charge_peak, mode, off_peak, zone, tariff_type, origins, before_id, value)
			VALUES ($1, $2, $3, $4, $5, 'plugged_in', 0, $6, $7, '3600x7000', $7, 0, 0, 0, 7000, FALSE, FALSE, 'smart', '', '', '', '', $8, 0)`,
			flex.EventID{byte(i)}.Bytes(),
			seed.Org.Bytes(),
			flex.AssetID{1}.Bytes(),
			flex.SessionID{1}.Bytes(),
			i,
			from.UnixMicro(),
			from.Add(time.Hour).UnixMicro(),
			before,
		)
	}
}

// chainOf is the generations of what a schedule replaced.
func chainOf(
	t *testing.T,
	db *store.DB,
	org flex.OrgID,
	newest int,
	since time.Time,
	most int,
) string {
	t.Helper()

	var got string
	err := db.Read(t.Context(), org, func(tx *store.Tx) error {
		s, err := tx.Schedule(t.Context(), flex.EventID{byte(newest)})
		if err != nil {
			return err
		}

		before, err := tx.SchedulesBefore(t.Context(), &s, since, most)
		for _, b := range before {
			got += fmt.Sprint(b.Generation)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return got
}
