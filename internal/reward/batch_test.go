package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// meteredByRegister has the main device read the import register in all of two weeks, and the
// export register from a day on: 2 kWh come in each half-hour, 1.3 on days of events.
func (h *home) meteredByRegister(events map[int]bool, exportsFrom int) {
	at, out := 1000.0, 10.0
	for back := 30; back >= -10; back-- {
		for end := range 2 {
			if end == 1 && events[back] {
				at, out = at+1.3, out+0.1
			} else if end == 1 {
				at, out = at+2, out+0.1
			}

			h.register(h.asset, back, end, at)
			if back <= exportsFrom {
				i := h.monday.Add(-back).Period(homeSlot + end).Start()
				h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: flex.Span{From: i, To: i}, Label: flex.BoundaryExportRegister, Value: flex.Micro(out * 1e6)})
			}
		}
	}
	h.flush()
}

// A device that reads exports from a later day on changes nothing of an event before it, whatever
// is settled together with it. Found with settlement of a month again: the event became missing.
func TestSettleAgain_ExportsBegin(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		later := h.monday.Add(8) // a Tuesday
		h.prices(t, later.Span(), 100)
		h.meteredByRegister(map[int]bool{0: true, -8: true}, -1)
		if got := h.pause(h.asset); got != "-700 Wh: 7p" {
			t.Fatalf("alone: %s", got)
		}
		known := h.now
		alone := h.again(t, h.monday, known)

		h.now = later.Period(homeSlot).Start().Add(-time.Hour)
		h.write(t, func(ctx context.Context, tx *store.Tx) error {
			a, err := tx.Asset(ctx, h.asset)
			if err != nil {
				return err
			}
			return tx.SetPause(ctx, a, later.Period(homeSlot).Span(), 0)
		})

		h.now = later.Period(homeSlot).End().Add(time.Minute)
		h.fixture.events(t)
		again := reward.Resettlement{From: h.monday, To: later}
		if r, err := h.service.Repair(t.Context(), h.org, again); err != nil || r.Transactions != 0 {
			t.Errorf("a repair of both: %+v, %v", r, err)
		}

		both, err := h.service.Resettle(t.Context(), h.org, again)
		if err != nil || both.Events != 2 {
			t.Fatalf("both: %+v, %v", both, err)
		}

		changes, err := h.service.Compare(t.Context(), h.org, alone.ID, both.ID)
		for _, c := range changes {
			if c.What != "event" {
				t.Errorf("%s: %q alone, %q with the later event", c.What, c.Before, c.After)
			}
		}
		if err != nil || len(changes) != 1 {
			t.Errorf("%d changes, %v", len(changes), err)
		}
	})
}

// The label by which a home is settled is chosen by the days that are left to compare with, not
// by those that held events.
func TestSettleEvents_LabelOfDaysThatAreLeft(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		for back := range 31 {
			used := 2.0
			if back == 0 {
				used = 1.3
			}
			if back <= 14 { // provisional consumption is read on days of events alone
				h.energy(h.asset, flex.ProvisionalConsumption, back, used)
			}
			h.power(h.asset, back, 30, func(int) float64 { return 2 * used })
		}

		for back := 1; back <= 14; back++ {
			p := h.monday.Add(-back).Period(homeSlot)
			h.exec(t, `INSERT INTO flex_event (id, org_id, site_id, asset_id, day, first, last, from_at, to_at, meant, nominated, detected_at, estimated)
				VALUES ($1, $2, $3, $4, $5, 36, 36, $6, $7, '-1000', '1000', 0, 0)`,
				flex.FlexEventID{byte(back), 7}.Bytes(), h.org.Bytes(), h.site.Bytes(), h.asset.Bytes(), h.monday.Add(-back).String(), p.Start().UnixMicro(), p.End().UnixMicro())
		}
		h.pause(h.asset)
		if got := h.history(t); got != "flex event 7p" {
			t.Errorf("credited %q, where nothing was before", got)
		}
	})
}
