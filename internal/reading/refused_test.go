package reading_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func (h *fixture) refused(t *testing.T) (found []store.RefusedReading) {
	t.Helper()
	err := h.db.Read(t.Context(), h.org, func(tx *store.Tx) (err error) {
		found, err = tx.RefusedSince(t.Context(), flex.Day{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRefused_IsCountedByReason(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, 2)
		good := flex.Span{From: now.Add(-time.Hour).Truncate(flex.HalfHour), To: now.Add(-time.Hour).Truncate(flex.HalfHour).Add(flex.HalfHour)}
		batch := []reading.Input{
			{AssetID: asset(1), Span: good, Label: flex.ChargerEnergy, Value: 1},
			{AssetID: asset(1), Span: good, Label: flex.ChargerEnergy, Value: -1},
			{AssetID: asset(2), Span: good, Label: flex.ChargerEnergy, Value: -2.5},
			{AssetID: asset(9), Span: good, Label: flex.ChargerEnergy, Value: 1},
		}
		for range 2 {
			if _, err := h.service.Store(t.Context(), h.org, batch); err != nil {
				t.Fatal(err)
			}
		}

		got := h.refused(t)
		if len(got) != 2 || got[0].Count != 4 || !strings.HasPrefix(got[0].Reason, "value … is below …") || !strings.HasPrefix(got[0].Example, "value -2.5 is below 0") || got[0].AssetID != asset(2) {
			t.Errorf("%+v", got)
		}
		if len(got) == 2 && (got[1].Count != 2 || got[1].Reason != string(reading.NotFound)) {
			t.Errorf("%+v", got[1])
		}

		h.now = h.now.Add(63 * 24 * time.Hour)
		if _, err := h.service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.refused(t); len(got) != 0 {
			t.Errorf("kept for ever: %+v", got)
		}
	})
}

func TestRefused_IsBounded(t *testing.T) {
	h := open(t, storetest.SQLite(t), 1)
	for round := range 8 {
		var batch []reading.Input
		for i := range 30 {
			batch = append(batch, reading.Input{AssetID: asset(1), Span: flex.Span{From: now, To: now}, Label: flex.Label(fmt.Sprintf("made-up-%c%c", 'a'+round, 'a'+i)), Value: 1})
		}
		if _, err := h.service.Store(t.Context(), h.org, batch); err != nil {
			t.Fatal(err)
		}
	}

	got, all := h.refused(t), int64(0)
	for _, r := range got {
		all += r.Count
	}
	if len(got) > 101 || all != 240 {
		t.Errorf("%d reasons, %d refused", len(got), all)
	}
}
