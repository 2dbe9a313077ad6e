package grid_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/grid"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// TestService_Offers offers, lists, accepts and judges, each organisation's own.
func TestService_Offers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		service := &grid.Service{DB: db}
		steer := &control.Service{DB: db}
		pastEvenings(seed, flex.DayAt(now), 60, 10)

		night := now.Add(13 * time.Hour) // 01:00 to 02:00 tomorrow
		asked := flex.Offer{Span: flex.Span{From: night, To: night.Add(time.Hour)}, Service: "dfs", Confidence: 90, Who: "test"}
		k, err := service.Stack(t.Context(), seed.Org, asked)
		if err != nil || len(k.Rungs) != 5 || math.Abs(k.Rungs[2].Power.KW()-66.6) > 4 || !k.ID.IsZero() {
			t.Fatalf("%v %+v", err, k.Rungs)
		}

		k, err = service.MakeOffer(t.Context(), seed.Org, asked)
		if err != nil || k.ID.IsZero() || k.Power != k.Rungs[2].Power {
			t.Fatalf("%v %+v", err, k.Offer)
		}

		wrong := asked
		wrong.Confidence = 91
		if _, err := service.MakeOffer(t.Context(), seed.Org, wrong); flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "50 80 90 95 99") {
			t.Errorf("with a confidence of 91 %%: %v", err)
		}

		asked.Up = true // nothing is free to be drawn more: all draw
		if _, err := service.MakeOffer(t.Context(), seed.Org, asked); flex.KindOf(err) != flex.Conflict {
			t.Error(err)
		}

		accept(t, service, steer, seed.Org, k)

		now = now.Add(48 * time.Hour)
		p, err := service.Offers(t.Context(), seed.Org, flex.OfferID{}, 10)
		if err != nil || p.Total != 1 || p.Judged != 1 || p.Met != 0 || p.Offers[0].Actual != 0 || p.Offers[0].Accepted != 30_000 {
			t.Errorf("%v %+v", err, p) // nobody came
		}

		if last, err := service.Offers(t.Context(), seed.Org, flex.OfferID{}, 1); err != nil || len(last.Offers) != 1 || !last.Next.IsZero() {
			t.Errorf("a page that ends with the last offer: %v %+v", err, last)
		}

		var text bytes.Buffer
		if err := p.WriteCSV(&text); err != nil || !strings.Contains(text.String(), "dfs,down,2026-01-16T01:00:00Z,2026-01-16T02:00:00Z") {
			t.Errorf("%v %s", err, text.String())
		}
	})
}

// accept accepts a part of an offer, once, and not more than was offered.
func accept(t *testing.T, service *grid.Service, steer *control.Service, org flex.OrgID, k *grid.Stack) {
	t.Helper()
	o, err := service.Offer(t.Context(), org, k.ID)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := grid.Accepted(&o, o.Power+1, "", ""); flex.KindOf(err) != flex.Malformed {
		t.Error(err)
	}

	in, err := grid.Accepted(&o, 30_000, "accepted", "test")
	if err != nil || in.Change != -30_000 {
		t.Fatal(err, in)
	}

	if _, err := steer.SendInstruction(t.Context(), org, in); err != nil {
		t.Fatal(err)
	}
	if _, err := steer.SendInstruction(t.Context(), org, in); flex.KindOf(err) != flex.Conflict {
		t.Errorf("accepted twice: %v", err)
	}
}

// TestService_MakeOfferWhileOthersWrite: while it is worked out what can be offered, others write.
func TestService_MakeOfferWhileOthersWrite(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		pastEvenings(seed, flex.DayAt(now), 60, 10)

		wrote := false
		service := &grid.Service{DB: db, DeviceMoves: func(ctx context.Context, _ *store.Tx, _ *flex.Instruction) ([]forecast.Moved, error) {
			done := make(chan error, 1)
			go func() {
				_, err := db.AddOrg(ctx, "Other")
				done <- err
			}()

			select {
			case err := <-done:
				wrote = err == nil
			case <-time.After(time.Minute): // it waits for the offer
			}
			return nil, nil
		}}

		night := now.Add(13 * time.Hour)
		asked := flex.Offer{Span: flex.Span{From: night, To: night.Add(time.Hour)}, Service: "dfs", Confidence: 90, Who: "test"}
		k, err := service.MakeOffer(t.Context(), seed.Org, asked)
		if err != nil || k.ID.IsZero() || !wrote {
			t.Errorf("%v, another wrote meanwhile: %v", err, wrote)
		}
	})
}

// TestService_OffersRefuses: windows that are none.
func TestService_OffersRefuses(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		org, err := db.AddOrg(t.Context(), "New")
		if err != nil {
			t.Fatal(err)
		}

		service := &grid.Service{DB: db}
		tomorrow := flex.DayAt(time.Now()).Add(1).Start()
		for name, w := range map[string]flex.Span{
			"it has begun":   {From: tomorrow.Add(-26 * time.Hour), To: tomorrow.Add(-25 * time.Hour)},
			"no half-hour":   {From: tomorrow.Add(time.Minute), To: tomorrow.Add(time.Hour)},
			"it ends before": {From: tomorrow.Add(time.Hour), To: tomorrow},
			"over midnight":  {From: tomorrow.Add(20 * time.Hour), To: tomorrow.Add(30 * time.Hour)},
			"after tomorrow": {From: tomorrow.Add(40 * time.Hour), To: tomorrow.Add(41 * time.Hour)},
		} {
			if _, err := service.Stack(t.Context(), org.ID, flex.Offer{Span: w, Service: "dfs"}); flex.KindOf(err) != flex.Malformed {
				t.Errorf("%s: %v", name, err)
			}
		}

		asked := flex.Offer{Span: flex.Span{From: tomorrow, To: tomorrow.Add(time.Hour)}, Service: "dfs", Confidence: 90}
		if _, err := service.MakeOffer(t.Context(), org.ID, asked); flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), "0 days") {
			t.Errorf("without a past: %v", err)
		}
		if _, err := service.Offer(t.Context(), org.ID, flex.OfferID{1}); flex.KindOf(err) != flex.NotFound {
			t.Error(err)
		}
	})
}
