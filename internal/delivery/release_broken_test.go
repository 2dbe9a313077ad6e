package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Of three dispatches to assets that go on with them what is found of one cannot be stored.
// The others are sent again at once; that one is looked at again after 15 minutes, and nothing
// of it is sent once it is long over.
func TestDispatch_ReleaseBroken(t *testing.T) {
	for broken := range 3 {
		for _, mended := range []time.Duration{30 * time.Minute, 3 * time.Hour} {
			each(t, func(h *fixture) { h.breakRelease(broken, mended) })
		}
	}
}

// breakRelease plays three dispatches of which what is found of one cannot be stored until a
// time after their end.
func (h *fixture) breakRelease(broken int, mended time.Duration) {
	ctx := context.Background()
	as := h.chargers(3)
	h.dispatchEndpoint(false)
	from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
	order := store.Dispatch{Market: "dfs", Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}}
	for _, a := range as {
		order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
	}

	sent, err := h.service.Dispatch(ctx, h.Org, order)
	if err != nil || len(sent) != 3 {
		h.Fatal(len(sent), err)
	}

	id := sent[broken].ID
	allow := h.Refuse("UPDATE OF release ON dispatch_asset", "event_id", id.Bytes())

	var rs []flex.Reading
	at := order.To.Add(10 * time.Minute)
	for _, a := range as {
		rs = append(rs, flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: -2e6})
	}

	check := func(after time.Duration, fails bool) {
		h.Helper()
		time.Sleep(time.Until(order.To.Add(after)))
		_, err := h.service.CheckReleases(ctx)
		if flex.Only[*worker.PutOff](err) != fails || err != nil && !fails {
			h.Errorf("after %s: %v", after, err)
		}
	}
	again := func(which string) int {
		return h.Count(`SELECT count(*) FROM outbox WHERE generation > 1 AND event_id `+which+` $1`, id.Bytes())
	}

	time.Sleep(time.Until(at))
	h.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })

	check(15*time.Minute, true)
	check(29*time.Minute, true)
	if n := again("<>"); n != 2 {
		h.Errorf("beside the broken dispatch %d are sent again", n)
	}
	if n := h.Count(`SELECT count(*) FROM put_off WHERE tries = 1`); n != 1 {
		h.Errorf("%d are put off, or were tried too soon", n)
	}

	want := 1
	if mended > 2*time.Hour {
		want = 0
		check(mended-time.Minute, true)
	}

	allow()
	check(mended+14*time.Minute, false)
	if n := again("="); n != want {
		h.Errorf("mended after %s: the dispatch is sent again %d times, want %d", mended, n, want)
	}
}
