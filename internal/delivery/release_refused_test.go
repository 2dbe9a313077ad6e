package delivery_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Four assets discharge after their dispatches by their own plans, at the power of these. The client refused the message of the first,
// and rejected the part of the second: these never followed their dispatch, and are neither sent it again nor listed. One that failed may
// have begun.
func TestDispatch_NotReleasedRefused(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(4)
		e := h.dispatchEndpoint(false)
		defer h.work(h.service)()

		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		span := flex.Span{From: from, To: from.Add(flex.HalfHour)}
		var ids []flex.EventID
		for i, a := range as {
			e.say(status([]int{400, 200, 200, 200}[i]))
			order := store.Dispatch{Market: "dfs", Span: span, Assets: []store.DispatchedAsset{{ID: a, Power: -2000}}}
			sent, err := h.service.Dispatch(ctx, h.Org, order)
			if err != nil {
				h.Fatal(err)
			}

			ids = append(ids, sent[0].ID)
			time.Sleep(time.Minute)
		}

		e.say(status(200))
		for i, s := range map[int]flex.CallbackStatus{1: flex.Rejected, 2: flex.Failed} {
			report := delivery.Callback{Asset: as[i].String(), Event: ids[i].String(), Status: s, ReportedAt: time.Now()}
			if err := h.service.Callback(ctx, h.Org, report); err != nil {
				h.Fatal(err)
			}
		}

		h.goesOnAfter(span, as...)
		before := len(e.all())
		if _, err := h.service.CheckReleases(ctx); err != nil {
			h.Fatal(err)
		}

		time.Sleep(time.Minute)
		if n := len(e.all()) - before; n != 2 {
			h.Errorf("%d dispatches are sent again", n)
		}
		h.releasesAre(ids, "done", "done", "missing", "missing")
	})
}

// goesOnAfter has assets discharge 2 kW until 15 minutes after a dispatch.
func (h *fixture) goesOnAfter(span flex.Span, as ...flex.AssetID) {
	h.Helper()
	at := span.To.Add(14 * time.Minute)
	time.Sleep(time.Until(at))

	var rs []flex.Reading
	for _, a := range as {
		rs = append(rs, flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: -2e6})
	}

	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
	time.Sleep(time.Minute)
}

// releasesAre compares what is stored and listed of the releases of dispatches of one asset each.
func (h *fixture) releasesAre(ids []flex.EventID, want ...string) {
	h.Helper()
	listed, err := h.service.Dispatches(context.Background(), h.Org, len(ids))
	if err != nil || len(listed) != len(ids) {
		h.Fatalf("%d are listed: %v", len(listed), err)
	}

	for i, id := range ids {
		got := h.Strings(`SELECT release FROM dispatch_asset WHERE event_id = $1`, id.Bytes())
		k := slices.IndexFunc(listed, func(d delivery.Dispatched) bool { return d.ID == id })
		if shown := string(listed[k].Assets[0].Release); got[0] != want[i] || shown != want[i] {
			h.Errorf("dispatch %d: stored %s, listed %s, want %s", i, got[0], shown, want[i])
		}
	}
}
