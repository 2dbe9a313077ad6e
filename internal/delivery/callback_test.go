package delivery_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
	_ "flexd/test/seed"
)

// Whatever is reported, in whatever order, the event's status never goes back, and a final
// one stays.
func TestCallback_OnlyForward(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		a := h.chargers(1)[0]
		rapid.Check(t, func(rt *rapid.T) {
			id := h.plan(time.Hour, a)[0]
			reports := rapid.SliceOfN(rapid.SampledFrom([]flex.CallbackStatus{flex.Received, flex.Accepted, flex.Rejected, flex.Failed, flex.Executed}), 1, 8).Draw(rt, "reports")
			var want flex.CallbackStatus
			var kept []flex.CallbackStatus
			for _, s := range reports {
				if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: a.String(), Event: id.String(), Status: s, ReportedAt: time.Now()}); err != nil {
					rt.Fatal(err)
				}

				if s.Stage() > want.Stage() {
					want, kept = s, append(kept, s)
				}

				time.Sleep(time.Second)
				d, err := h.service.Delivery(ctx, h.Org, id)
				if err != nil || d.Callback.Stage() != want.Stage() {
					rt.Fatalf("%s after %v, want %s, %v", d.Callback, reports, want, err)
				}

				for i, c := range d.Callbacks {
					if c.Status != kept[i] {
						rt.Fatalf("kept %v, want %v", d.Callbacks, kept)
					}
				}
			}
		})
	})
}

func TestCallback_Unknown(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := h.chargers(2)
		id := h.plan(time.Hour, as...)[0]
		other := h.tenant("other")
		report := func(org flex.OrgID, asset, event string, external bool, status flex.CallbackStatus) flex.Kind {
			return flex.KindOf(h.service.Callback(ctx, org, delivery.Callback{Asset: asset, Event: event, External: external, Status: status}))
		}

		for name, got := range map[string]flex.Kind{
			"of another asset":         report(h.Org, as[1].String(), id.String(), false, flex.Received),
			"of no event":              report(h.Org, as[0].String(), as[0].String(), false, flex.Received),
			"of no id":                 report(h.Org, as[0].String(), "x", false, flex.Received),
			"of another organisation":  report(other.Org, as[0].String(), id.String(), false, flex.Received),
			"of an unknown asset":      report(h.Org, flex.AssetID{9}.String(), id.String(), false, flex.Received),
			"of an unknown name":       report(h.Org, "nobody", id.String(), true, flex.Received),
			"of an id that is no uuid": report(h.Org, "x", id.String(), false, flex.Received),
		} {
			if got != flex.NotFound {
				h.Errorf("%s: kind %d", name, got)
			}
		}

		if got := report(h.Org, as[0].String(), id.String(), false, "DONE"); got != flex.Invalid {
			h.Errorf("an unknown status: kind %d", got)
		}

		// By the vendor's own id, and still after a newer schedule has taken its place.
		h.plan(time.Hour, as...)
		if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: "x" + as[0].String(), External: true, Event: id.String(), Status: flex.Rejected}); err != nil {
			h.Error(err)
		}

		d, err := h.service.Delivery(ctx, h.Org, id)
		if err != nil || d.Callback != flex.Rejected || d.State != flex.DeliverySuperseded {
			h.Errorf("%+v, %v", d, err)
		}
	})
}

// Deliveries, attempts and callbacks are deleted when they are past their retention, and no
// sooner: those of a session once its flex events were looked for.
func TestPurge(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		stop := h.work(h.service)
		e := h.endpoint(status(500))
		a := h.chargers(1)[0]
		old := h.plan(10*time.Second, a)[0]
		time.Sleep(time.Minute)
		if err := h.service.Callback(ctx, h.Org, delivery.Callback{Asset: a.String(), Event: old.String(), Status: flex.Failed}); err != nil {
			h.Fatal(err)
		}

		stop()
		h.unplug(a)
		h.Exec(`UPDATE reckoning SET detect_at = NULL`)
		time.Sleep(29 * 24 * time.Hour)
		e.say(nil)
		young := h.plan(time.Hour, a)[0]
		next := h.newService()
		if err := next.Drain(ctx, h.Org); err != nil {
			h.Fatal(err)
		}

		next.Close()
		for i, wait := range []time.Duration{0, 25 * time.Hour} {
			time.Sleep(wait)
			h.service.Retain = 60 * 24 * time.Hour
			if r, err := h.service.Purge(ctx); err != nil || r.Count != 0 {
				h.Errorf("after %v: %d deleted that are to be kept for 60 days, %v", wait, r.Count, err)
			}

			h.service.Retain = 0
			r, err := h.service.Purge(ctx)
			n := h.Count(`SELECT (SELECT count(*) FROM delivery) * 100 + (SELECT count(*) FROM attempt) * 10 + (SELECT count(*) FROM callback)`)
			if err != nil || r.Count != i || n != []int{211, 100}[i] {
				h.Errorf("after %v: %d deleted, %d left, %v", wait, r.Count, n, err)
			}
		}

		if s := h.state(young); s != flex.DeliveryAccepted {
			h.Errorf("the young one is %s", s)
		}
	})
}

// A client reports of one of the assets of a dispatch that the asset does not follow: what is at its site is planned again, and nothing
// at the others'.
func TestCallback_PlansOneSite(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		as := []flex.AssetID{h.Asset(h.site, flex.Battery, 3000), h.Asset(h.Site(), flex.Battery, 3000)}
		h.dispatchEndpoint(true)

		from := time.Now().Truncate(flex.HalfHour).Add(flex.HalfHour)
		order := store.Dispatch{Market: "dfs", Span: flex.Span{From: from, To: from.Add(flex.HalfHour)}}
		for _, a := range as {
			order.Assets = append(order.Assets, store.DispatchedAsset{ID: a, Power: -2000})
		}

		sent, err := h.service.Dispatch(ctx, h.Org, order)
		if err != nil || len(sent) != 1 {
			h.Fatal(len(sent), err)
		}

		for _, a := range as {
			h.Exec(`INSERT INTO battery_plan (asset_id, org_id, from_at, modes, planned_at, seen_at, changed_at, stored_at, stored_wh, guess_at, guess, again)
				VALUES ($1, $2, 0, '', 0, 0, 0, 0, 0, 0, '', FALSE)`, a.Bytes(), h.Org.Bytes())
		}

		report := delivery.Callback{Asset: as[1].String(), Event: sent[0].ID.String(), Status: flex.Failed, ReportedAt: time.Now()}
		if err := h.service.Callback(ctx, h.Org, report); err != nil {
			h.Fatal(err)
		}
		if n := h.Count(`SELECT count(*) FROM battery_plan WHERE again AND asset_id = $1`, as[1].Bytes()); n != 1 {
			h.Error("its own site is not planned again")
		}
		if n := h.Count(`SELECT count(*) FROM battery_plan WHERE again`); n != 1 {
			h.Errorf("of two sites %d are planned again", n)
		}
	})
}
