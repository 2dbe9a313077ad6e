package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Two assets have a second dispatch after their first one, and both go on at its power. The
// client rejected the second one for one of them: that one goes on with the first, and is sent
// it again.
func TestDispatch_NotReleasedIntoRefused(t *testing.T) {
	for _, status := range []flex.CallbackStatus{flex.Rejected, flex.Failed} {
		each(t, func(h *fixture) { h.releaseIntoRefused(status) })
	}
}

// releaseIntoRefused plays two dispatches in a row, the second with a report of one asset.
func (h *fixture) releaseIntoRefused(status flex.CallbackStatus) {
	ctx := context.Background()
	as := h.chargers(2)
	h.dispatchEndpoint(false)
	from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
	first := flex.Span{From: from, To: from.Add(flex.HalfHour)}

	var newest []store.Dispatch
	for _, span := range []flex.Span{first, {From: first.To, To: first.To.Add(flex.HalfHour)}} {
		order := store.Dispatch{Market: "dfs", Span: span}
		for _, a := range as {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
		}

		var err error
		newest, err = h.service.Dispatch(ctx, h.Org, order)
		if err != nil {
			h.Fatal(err)
		}
	}

	for _, d := range newest {
		if d.Assets[0].ID != as[1] {
			continue
		}

		report := delivery.Callback{Asset: as[1].String(), Event: d.ID.String(), Status: status, ReportedAt: time.Now()}
		if err := h.service.Callback(ctx, h.Org, report); err != nil {
			h.Fatal(err)
		}
	}

	at := first.To.Add(10 * time.Minute)
	time.Sleep(time.Until(at))
	h.write(func(ctx context.Context, tx *store.Tx) error {
		var rs []flex.Reading
		for _, a := range as {
			rs = append(rs, flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: -2e6})
		}

		return tx.PutReadings(ctx, rs)
	})

	time.Sleep(time.Until(first.To.Add(15 * time.Minute)))
	if _, err := h.service.CheckReleases(ctx); err != nil {
		h.Fatal(err)
	}

	for i, want := range []string{"done 0", "missing 1"} {
		got := h.Strings(`SELECT a.release || ' ' || a.release_tries FROM dispatch_asset a JOIN dispatch d ON d.event_id = a.event_id
			WHERE d.from_at = $1 AND a.asset_id = $2`, first.From.UnixMicro(), as[i].Bytes())
		if len(got) != 1 || got[0] != want {
			h.Errorf("%s, asset %d: %q, want %q", status, i, got, want)
		}
	}
}
