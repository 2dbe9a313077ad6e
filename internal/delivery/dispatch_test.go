package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// dispatchEndpoint sets the endpoint for dispatch events.
func (h *fixture) dispatchEndpoint(batch bool) *endpoint {
	h.Helper()
	set, _, err := h.service.SetEndpoint(context.Background(), h.Org, flex.DispatchEndpoint, delivery.Settings{URL: "http://grid.example/events", Batch: batch})
	if err != nil {
		h.Fatal(err)
	}
	e := &endpoint{h: h, secret: set.Secret}
	h.net.listen(h.T, "grid.example:80", e)
	return e
}

func object(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

func TestDispatch_Vector(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		b, err := os.ReadFile("testdata/dispatch-event-asset-level.json")
		if err != nil {
			h.Fatal(err)
		}

		want := object(h.T, string(b))["event"].(map[string]any)
		e := h.dispatchEndpoint(false)
		a := h.chargers(1)[0]
		from := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
		ds, err := h.service.Dispatch(context.Background(), h.Org, store.Dispatch{
			Market: "dno", Span: flex.Span{From: from, To: from.Add(30 * time.Minute)}, Assets: []store.DispatchedAsset{{ID: a, Power: -2000}},
		})

		if err != nil {
			h.Fatal(err)
		}

		h.settle()
		if len(e.all()) != 1 {
			h.Fatalf("%d came", len(e.all()))
		}

		id := ds[0].ID.String()
		want["asset_id"], want["event_id"] = a.String(), id
		want["issued_timestamp"], want["event_timestamp"] = "2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z"
		want["update_status_callback"] = "https://flexd.example/entities/asset/" + a.String() + "/callback/" + id
		if got := object(h.T, e.all()[0].body); !reflect.DeepEqual(got, want) || e.all()[0].id != id || e.all()[0].header.Get("Flexd-Kind") != "dispatch" {
			h.Errorf("got %v\nwant %v", got, want)
		}

		if s := h.state(ds[0].ID); s != flex.DeliveryAccepted {
			h.Errorf("state %s", s)
		}

		if err := h.service.Callback(context.Background(), h.Org, delivery.Callback{Asset: a.String(), Event: id, Status: flex.Executed}); err != nil {
			h.Error(err)
		}
	})
}

func TestDispatch_Batch(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		e := h.dispatchEndpoint(true)
		as := h.chargers(3)
		from := time.Now().Add(4 * time.Hour).UTC()
		order := store.Dispatch{Market: "dfs", Span: flex.Span{From: from, To: from.Add(time.Hour)}}
		for i, a := range as {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: flex.Watts(-2500 - i)})
		}

		ds, err := h.service.Dispatch(ctx, h.Org, order)
		if err != nil || len(ds) != 1 {
			h.Fatalf("%d dispatches, %v", len(ds), err)
		}

		h.settle()
		got := object(h.T, e.all()[0].body)
		if len(got) != 5 || got["event_id"] != ds[0].ID.String() || got["start_time"] != "2000-01-01T04:00:00Z" || got["end_time"] != "2000-01-01T05:00:00Z" ||
			len(got["assets"].([]any)) != 3 || got["assets"].([]any)[1].(map[string]any)["power_kw"] != -2.501 {
			h.Errorf("got %v", got)
		}

		for _, a := range as {
			if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: a.String(), Event: ds[0].ID.String(), Status: flex.Accepted}); err != nil {
				h.Error(err)
			}
		}

		other := h.chargers(1)[0]
		if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: other.String(), Event: ds[0].ID.String(), Status: flex.Accepted}); flex.KindOf(err) != flex.NotFound {
			h.Errorf("an asset that has no part in it: %v", err)
		}
	})
}

// Two events of one asset both arrive, and one whose time is over is not sent any more.
func TestDispatch_Events(t *testing.T) {
	one(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		e := h.dispatchEndpoint(false)
		e.say(status(503))
		a := h.chargers(1)[0]
		var ids []flex.EventID
		for i := range 2 {
			from := time.Now().Add(time.Duration(i) * 20 * time.Minute)
			ds, err := h.service.Dispatch(ctx, h.Org, store.Dispatch{Market: "cm", Span: flex.Span{From: from, To: from.Add(10 * time.Minute)},
				Assets: []store.DispatchedAsset{{ID: a, Power: 1000}}})

			if err != nil {
				t.Fatal(err)
			}

			ids = append(ids, ds[0].ID)
		}

		time.Sleep(15 * time.Minute)
		e.say(nil)
		time.Sleep(10 * time.Minute)
		if h.state(ids[0]) != flex.DeliveryExpired || h.state(ids[1]) != flex.DeliveryAccepted {
			t.Errorf("%s and %s", h.state(ids[0]), h.state(ids[1]))
		}
	})
}

func TestDispatch_Refused(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		a := h.chargers(1)[0]
		foreign := h.tenant("other").chargers(1)[0]
		now := time.Now().Truncate(time.Minute).Add(time.Minute)
		hour := flex.Span{From: now, To: now.Add(time.Hour)}
		many := make([]store.DispatchedAsset, delivery.DispatchMax+1)

		for name, c := range map[string]struct {
			order store.Dispatch
			words string
		}{
			"no asset":   {store.Dispatch{Span: hour}, "1 to 10000 assets, not 0"},
			"too many":   {store.Dispatch{Span: hour, Assets: many}, "not 10001"},
			"twice":      {store.Dispatch{Span: hour, Assets: []store.DispatchedAsset{{ID: a}, {ID: a}}}, "each asset once"},
			"no time":    {store.Dispatch{Span: flex.Span{From: now, To: now}, Assets: []store.DispatchedAsset{{ID: a}}}, "ends after it begins"},
			"over":       {store.Dispatch{Span: flex.Span{From: now.Add(-time.Hour), To: now.Add(-2 * time.Minute)}, Assets: []store.DispatchedAsset{{ID: a}}}, "over already"},
			"too long":   {store.Dispatch{Span: flex.Span{From: now, To: now.Add(store.DispatchLongest + time.Minute)}, Assets: []store.DispatchedAsset{{ID: a, Power: 1}}}, "lasts 2 days at most"},
			"no power":   {store.Dispatch{Span: hour, Assets: []store.DispatchedAsset{{ID: a}}}, "asked for no power"},
			"too much":   {store.Dispatch{Span: hour, Assets: []store.DispatchedAsset{{ID: a, Power: 7401}}}, "rated power of 7.4 kW, and is asked for 7.401 kW"},
			"gives more": {store.Dispatch{Span: hour, Assets: []store.DispatchedAsset{{ID: a, Power: -7401}}}, "asked for -7.401 kW"},
			"a second":   {store.Dispatch{Span: flex.Span{From: now, To: now.Add(61 * time.Second)}, Assets: []store.DispatchedAsset{{ID: a, Power: 1}}}, "whole minutes"},
			"of another": {store.Dispatch{Span: hour, Assets: []store.DispatchedAsset{{ID: foreign}}}, "not found or not authorized"},
		} {
			if _, err := h.service.Dispatch(ctx, h.Org, c.order); err == nil || !strings.Contains(err.Error(), c.words) || flex.KindOf(err) == flex.Internal {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// After the end the battery's own readings say whether it went back to what it did before.
func TestDispatch_Release(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(4)
		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		order := store.Dispatch{Market: "dfs", Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}}
		for _, a := range as {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
		}

		h.dispatchEndpoint(true)
		ds, err := h.service.Dispatch(ctx, h.Org, order)
		if err != nil {
			h.Fatal(err)
		}

		look := func(want ...delivery.Release) {
			h.Helper()
			out, err := h.service.Dispatches(ctx, h.Org, 10)
			if err != nil || len(out) != 1 || out[0].ID != ds[0].ID || len(out[0].Assets) != 4 || out[0].State != string(flex.DeliveryPending) {
				h.Fatalf("%+v, %v", out, err)
			}

			for i, a := range out[0].Assets {
				if a.Release != want[i] || a.Callback != map[bool]flex.CallbackStatus{true: flex.Executed}[i == 1] {
					h.Errorf("asset %d: %s and %q, want %s", i, a.Release, a.Callback, want[i])
				}
			}
		}

		if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: as[1].String(), Event: ds[0].ID.String(), Status: flex.Executed}); err != nil {
			h.Fatal(err)
		}

		look(delivery.ReleaseAhead, delivery.ReleaseAhead, delivery.ReleaseAhead, delivery.ReleaseAhead)
		reading := func(asset flex.AssetID, after time.Duration, kw float64) flex.Reading {
			at := order.To.Add(after)
			return flex.Reading{AssetID: asset, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: flex.Micro(kw * 1e6)}
		}

		time.Sleep(time.Until(order.To.Add(time.Minute)))
		h.write(func(ctx context.Context, tx *store.Tx) error {
			return tx.PutReadings(ctx, []flex.Reading{
				reading(as[0], -time.Minute, -2), reading(as[0], 10*time.Second, -2), reading(as[0], time.Minute, 0.3),
				reading(as[1], 10*time.Second, -1.9), reading(as[2], 2*time.Hour, 0),
			})
		})

		look(delivery.ReleaseDone, delivery.ReleaseMissing, delivery.ReleaseUnknown, delivery.ReleaseUnknown)
	})
}

// TestDispatch_Replaced: a dispatch says from when on a newer one has its place, in the list
// and by itself; whether its asset returned is seen of the one that was in force at the end.
func TestDispatch_Replaced(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(4)
		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		whole := flex.Span{From: from, To: from.Add(flex.HalfHour)}
		h.dispatchEndpoint(true)

		dispatch := func(span flex.Span, assets ...flex.AssetID) flex.EventID {
			h.Helper()
			order := store.Dispatch{Market: "dno", Span: span}
			for _, a := range assets {
				order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
			}

			ds, err := h.service.Dispatch(ctx, h.Org, order)
			if err != nil {
				h.Fatal(err)
			}
			time.Sleep(time.Minute)
			return ds[0].ID
		}

		middle := from.Add(10 * time.Minute)
		first := dispatch(whole, as...)
		dispatch(whole, as[0])
		dispatch(flex.Span{From: middle, To: whole.To}, as[1])
		dispatch(flex.Span{From: from, To: middle}, as[2])

		out, err := h.service.Dispatches(ctx, h.Org, 10)
		if err != nil || len(out) != 4 || out[3].ID != first {
			h.Fatalf("%+v, %v", out, err)
		}
		want := []struct {
			from    time.Time
			release delivery.Release
		}{{from, delivery.ReleaseReplaced}, {middle, delivery.ReleaseReplaced}, {from, delivery.ReleaseAhead}, {time.Time{}, delivery.ReleaseAhead}}

		for i, a := range out[3].Assets {
			if !a.ReplacedFrom().Equal(want[i].from) || a.Release != want[i].release {
				h.Errorf("asset %d: %v, %s", i, a.ReplacedFrom(), a.Release)
			}
		}

		for _, d := range out[:3] {
			if !d.Assets[0].ReplacedFrom().IsZero() {
				h.Errorf("the newest one is replaced: %+v", d)
			}
		}
		if d, err := h.service.Delivery(ctx, h.Org, first); err != nil || len(d.Replaced) != 3 || !d.Replaced[2].From.Equal(middle) {
			h.Errorf("%+v, %v", d.Replaced, err)
		}

		// Sent again, it would come after the newer ones; these may be.
		newest := out[0].ID
		if err := h.service.Replay(ctx, h.Org, first); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), newest.String()) {
			h.Errorf("sent again: %v", err)
		}
		if v, err := h.service.DeliveryView(ctx, first); err != nil || v.MayReplay {
			h.Errorf("it is said that it may be sent again: %v", err)
		}

		for _, d := range out[:3] {
			if err := h.service.Replay(ctx, h.Org, d.ID); err != nil {
				h.Errorf("the newest of its time is not sent again: %v", err)
			}
		}

		time.Sleep(time.Until(whole.To.Add(14 * time.Minute)))
		h.write(func(ctx context.Context, tx *store.Tx) error {
			var rs []flex.Reading
			for _, a := range as {
				rs = append(rs, flex.Reading{AssetID: a, Span: flex.Span{From: time.Now(), To: time.Now()}, Label: flex.BatteryInverterPower, Value: -2_000_000})
			}
			return tx.PutReadings(ctx, rs)
		})

		time.Sleep(time.Minute)
		if _, err := h.service.CheckReleases(ctx); err != nil {
			h.Fatal(err)
		}
		if got := h.Strings(`SELECT release FROM dispatch_asset WHERE event_id = $1 ORDER BY asset_id`, first.Bytes()); !slices.Equal(got, []string{"done", "done", "missing", "missing"}) {
			h.Errorf("%q", got)
		}
	})
}

// TestDispatch_NotReleased: an asset that goes on with what a dispatch asked for is sent it
// again, twice at most, until its readings say that it went back; one that goes on with the
// next dispatch is left alone.
func TestDispatch_NotReleased(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(4)
		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		first := flex.Span{From: from, To: from.Add(flex.HalfHour)}
		h.dispatchEndpoint(false)
		dispatch := func(span flex.Span, assets ...flex.AssetID) {
			order := store.Dispatch{Market: "dfs", Span: span}
			for _, a := range assets {
				order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
			}

			if _, err := h.service.Dispatch(ctx, h.Org, order); err != nil {
				h.Fatal(err)
			}
		}

		dispatch(first, as...)
		dispatch(flex.Span{From: first.To, To: first.To.Add(flex.HalfHour)}, as[3])

		// read has assets 0 to 3 run at some power some minutes after the end.
		read := func(after time.Duration, kw ...float64) {
			var rs []flex.Reading
			at := first.To.Add(after)
			for i, p := range kw {
				rs = append(rs, flex.Reading{AssetID: as[i], Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: flex.Micro(p * 1e6)})
			}

			h.write(func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
		}

		// check runs the job at a time after the end, and compares what is kept of each asset.
		check := func(after time.Duration, want ...string) {
			h.Helper()
			time.Sleep(time.Until(first.To.Add(after)))
			if _, err := h.service.CheckReleases(ctx); err != nil {
				h.Fatal(err)
			}

			got := h.Strings(`SELECT release || ' ' || release_tries FROM dispatch_asset a JOIN dispatch d ON d.event_id = a.event_id
				WHERE d.from_at = $1 ORDER BY a.asset_id`, first.From.UnixMicro())

			if !slices.Equal(got, want) {
				h.Errorf("after %s: %q, want %q", after, got, want)
			}
		}

		check(14*time.Minute, " 0", " 0", " 0", " 0")
		read(14*time.Minute, 0.3, -2, -2, -2)
		check(15*time.Minute, "done 0", "missing 1", "missing 1", "done 0")
		if n := h.Count(`SELECT count(*) FROM outbox WHERE generation = 2 AND turn_at IS NOT NULL`); n != 2 {
			h.Errorf("%d dispatches are sent again", n)
		}

		read(29*time.Minute, 0.3, 0.3, -2, -2)
		check(30*time.Minute, "done 0", "done 1", "missing 2", "done 0")
		check(45*time.Minute, "done 0", "done 1", "missing 2", "done 0")
		check(60*time.Minute, "done 0", "done 1", "missing 2", "done 0")
		if n := h.Count(`SELECT count(*) FROM dispatch_asset WHERE release_at IS NOT NULL`); n != 1 { // of the dispatch that followed
			h.Errorf("%d are still looked at", n)
		}

		listed := func() (n int) {
			err := h.db.ReadAll(ctx, func(all *store.All) (err error) {
				_, n, err = all.NotReleased(ctx, h.Org, 10)
				return err
			})

			if err != nil {
				h.Fatal(err)
			}

			return n
		}

		if n := listed(); n != 1 {
			h.Errorf("%d are listed", n)
		}

		time.Sleep(store.ReleaseKept)
		if n := listed(); n != 0 {
			h.Errorf("%d are listed a day later", n)
		}
	})
}

// TestDispatch_NotReleasedTogether: one message for two assets is sent again at each look at
// which one of them goes on, though the other was found to go on more often, and each attempt
// is kept.
func TestDispatch_NotReleasedTogether(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(2)
		slices.SortFunc(as, func(a, b flex.AssetID) int { return bytes.Compare(a.Bytes(), b.Bytes()) })
		h.dispatchEndpoint(true)
		defer h.work(h.service)()

		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		order := store.Dispatch{Market: "dfs", Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}}
		for _, a := range as {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
		}

		sent, err := h.service.Dispatch(ctx, h.Org, order)
		if err != nil {
			h.Fatal(err)
		}

		// Of the second there is no reading before the second look.
		for i, read := range [][]flex.AssetID{as[:1], as} {
			at := order.To.Add(time.Duration(i+1)*15*time.Minute - time.Minute)
			time.Sleep(time.Until(at.Add(time.Minute)))
			h.write(func(ctx context.Context, tx *store.Tx) error {
				var rs []flex.Reading
				for _, a := range read {
					rs = append(rs, flex.Reading{AssetID: a, Span: flex.Span{From: at, To: at}, Label: flex.BatteryInverterPower, Value: -2e6})
				}
				return tx.PutReadings(ctx, rs)
			})

			if _, err := h.service.CheckReleases(ctx); err != nil {
				h.Fatal(err)
			}

			time.Sleep(time.Second)
			d, err := h.service.Delivery(ctx, h.Org, sent[0].ID)
			if err != nil || d.Tries != i+2 || len(d.Attempts) != i+2 {
				h.Errorf("look %d: sent %d times, with %d attempts kept: %v", i+1, d.Tries, len(d.Attempts), err)
			}
		}
	})
}

// A schedule that cannot be read is given up and says why; those beside it are sent.
func TestPush_Unreadable(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		ids := h.plan(time.Hour, h.chargers(2)...)
		h.Exec(`UPDATE schedule SET steps = 'broken' WHERE event_id = $1`, ids[0].Bytes())
		defer h.work(h.service)()

		time.Sleep(time.Minute)
		d, err := h.service.Delivery(context.Background(), h.Org, ids[0])
		if err != nil || d.State != flex.DeliveryExpired || h.state(ids[1]) != flex.DeliveryAccepted {
			t.Errorf("%s, %v", d.State, err)
		}
	})
}
