package app

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// A flex event that cannot be read ends no advance of a sandbox clock: it is tried on the way, each
// hour at first, and the other work is done.
func TestAdvance_PutOff(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, id := openBroken(t, url)
		to := s.at.Add(3*time.Hour + 30*time.Minute)
		if err := s.app.Advance(t.Context(), s.Org, to); err != nil {
			t.Fatal(err)
		}

		now, _, err := s.app.Clock(t.Context(), s.Org)
		if err != nil || now.Before(to) {
			t.Errorf("the clock reads %s: %v", now, err)
		}
		if n := s.Count(`SELECT tries FROM put_off`); n != 4 {
			t.Errorf("it was tried %d times", n)
		}
		if _, err := s.app.Reward.SettleEvents(t.Context()); err == nil {
			t.Error("the job does not fail")
		}

		s.Exec(`UPDATE flex_event SET look_at = NULL, meant = '-1' WHERE id = $1`, id.Bytes())
		if _, err := s.app.Reward.SettleEvents(t.Context()); err != nil {
			t.Errorf("once it can be read: %v", err)
		}
	})
}

// A clock that is advanced by half a year tries a flex event that cannot be read once a day in the
// end, and not each hour.
func TestAdvance_PutOffHalfYear(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s, _ := openBroken(t, url)
		s.Exec(`UPDATE asset SET excluded_at = 1`) // nothing else is due each half-hour
		began := time.Now()
		if err := s.app.Advance(t.Context(), s.Org, s.at.AddDate(0, 0, 182)); err != nil {
			t.Fatal(err)
		}

		n := s.Count(`SELECT tries FROM put_off`)
		if n < 182 || n > 200 {
			t.Errorf("it was tried %d times", n)
		}
		t.Logf("%d tries in %s", n, time.Since(began))
	})
}

// openBroken opens an app whose sandbox clock is advanced, with a flex event that cannot be read.
func openBroken(t *testing.T, url string) (*clocked, flex.FlexEventID) {
	t.Helper()
	s := openClocked(t, url, time.Date(2026, time.March, 27, 9, 10, 0, 0, time.UTC), "")
	t.Cleanup(func() {
		s.app.Push.Close()
		storetest.Close(t, s.app.DB)
	})

	id, day := flex.FlexEventID{100}, flex.DayAt(s.at).Add(-1)
	first := day.Period(1)
	s.Exec(`INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated, look_at)
		VALUES ($1, $2, $3, $4, $5, 1, 1, $6, $7, 'broken', '1', 0, 0, $6)`, id.Bytes(), s.Org.Bytes(), flex.SiteID{8}.Bytes(),
		flex.AssetID{8}.Bytes(), day.String(), first.Start().UnixMicro(), first.End().UnixMicro())

	return s, id
}
