package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

func TestIdempotencyKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		const key = "Idempotency-Key: 0d1e7f3a"
		body := onboarding(halfHourly, "a", "")
		first := h.want("POST", "/entities/site/onboard", body, 200, "", key)
		again := h.want("POST", "/entities/site/onboard", body, 200, first.body, key)
		if again.Header.Get("Idempotency-Replayed") != "true" || first.Header.Get("Idempotency-Replayed") != "" {
			t.Error("the second answer is not marked as replayed, or the first is")
		}

		h.want("POST", "/entities/site/onboard", body+" ", 409, "", key)
		h.want("POST", "/entities/site/initialise", body, 409, "", key)
		if plain := h.want("POST", "/entities/site/onboard", body, 200, ""); plain.body == first.body {
			t.Error("without a key the answer is that of the first request")
		}

		asset := text(t, first.body, "assets", 0, "asset_id")
		h.want("DELETE", "/entities/asset/"+asset, "", 204, "", "Idempotency-Key: d")
		h.want("DELETE", "/entities/asset/"+asset, "", 204, "", "Idempotency-Key: d")
		h.want("DELETE", "/entities/asset/"+asset, "", 404, "", "Idempotency-Key: e")
		h.want("POST", "/entities/site/onboard", "{}", 422, "", "Idempotency-Key: bad")
		h.want("POST", "/entities/site/onboard", "{}", 422, "", "Idempotency-Key: bad")

		h.want("POST", "/entities/site/onboard", body, 200, "", "Idempotency-Key: "+strings.Repeat("k", 255))
		h.want("POST", "/entities/site/onboard", body, 422, "", "Idempotency-Key: "+strings.Repeat("k", 256))
		h.want("POST", "/entities/site/onboard", body, 422, "", "Idempotency-Key: ké")
		h.want("DELETE", "/caps", "", 422, "", "Idempotency-Key: ké")
		h.want("POST", "/grid/instructions/stop", "", 422, "", "Idempotency-Key: ké")
		h.want("GET", "/entities/asset", "", 200, "", key)

		// Operations without a body take no notice of one, with a key or without.
		for _, field := range []string{"", "Idempotency-Key: with-a-body"} {
			h.want("DELETE", "/entities/asset/"+asset, "{}", 404, "", field)
		}
		site := text(t, first.body, "site", "site_id")
		left := h.want("POST", "/entities/site/"+site+"/offboard-site-and-assets", "{}", 200, "", "Idempotency-Key: leave")
		h.want("POST", "/entities/site/"+site+"/offboard-site-and-assets", "", 200, left.body, "Idempotency-Key: leave")

		long := `{"readings":[]}` + strings.Repeat(" ", 2<<20)
		h.want("POST", "/data/readings", long, 200, `{"responses":[]}`)
		h.want("POST", "/data/readings", long, 200, `{"responses":[]}`, "Idempotency-Key: long")
		h.want("POST", "/data/readings", long, 200, `{"responses":[]}`, "Idempotency-Key: long")
		h.want("POST", "/data/readings", long+" ", 409, "", "Idempotency-Key: long")

		other, token := h.newOrg("Other", "other")
		_ = other
		h.want("POST", "/entities/site/onboard", body, 200, "", key, "Authorization: Bearer "+token)
	})
}

// A body of more than 1 MiB is answered as its readings are kept, under its key too: they are kept once, and who repeats the
// request is told the same.
func TestIdempotencyKey_LongBody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		from := db.Now().Truncate(flex.HalfHour).Add(-flex.HalfHour).UTC()
		// so much that it is kept, and held back
		body := fmt.Sprintf(
			`{"readings":[{"asset_id":%q,"start_timestamp":%q,"end_timestamp":%q,"value":510,"label":"charger_consumption_energy_kwh"}]}`,
			h.charger(),
			from.Format(time.RFC3339),
			from.Add(flex.HalfHour).Format(time.RFC3339),
		) + strings.Repeat(" ", 2<<20)

		// A Go client repeats by itself a request with a key whose connection breaks, so that its answer alone shows nothing.
		first := h.want("POST", "/data/readings", body, 200, "", "Idempotency-Key: long")
		held := h.want("GET", "/data/readings/held", "", 200, "")
		if n := get(t, held.body, "num_total"); n != 1.0 {
			t.Errorf("%v readings are kept of the one that was answered", n)
		}

		h.want("POST", "/data/readings", body, 200, first.body, "Idempotency-Key: long")
		h.want("POST", "/data/readings", body+" ", 409, "", "Idempotency-Key: long")
		again := h.want("GET", "/data/readings/held", "", 200, "")
		if again.body != held.body {
			t.Errorf("a repeat changed what is kept:\n%s\n%s", held.body, again.body)
		}
	})
}

// An answer that is not kept is found again by running the request and undoing it: a request
// that comes late once more does not undo what somebody else did since. One that was refused is
// judged again, and done.
func TestIdempotencyKey_LateRepeat(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		const first, second = `{"fleet":{"cap_kw":10}}`, `{"fleet":{"cap_kw":20}}`
		answer := h.want("PUT", "/caps", first, 200, "", "Idempotency-Key: first").body
		h.want("PUT", "/caps", second, 200, "", "Idempotency-Key: second")
		h.want("PUT", "/caps", first, 200, answer, "Idempotency-Key: first")
		if got := h.want("GET", "/caps", "", 200, "").body; !strings.Contains(got, `"cap_kw":20`) {
			t.Errorf("a request that was repeated late was done again: %s", got)
		}

		h.want("PUT", "/endpoints/dispatch", `{"url":"https://first.example/"}`, 200, "", "Idempotency-Key: url")
		h.want("PUT", "/endpoints/dispatch", `{"url":"https://second.example/"}`, 200, "")
		h.want("PUT", "/endpoints/dispatch", `{"url":"https://first.example/"}`, 200, "", "Idempotency-Key: url")
		if got := h.want("GET", "/endpoints/dispatch", "", 200, "").body; !strings.Contains(got, "second.example") {
			t.Errorf("a request whose answer is not kept was done again: %s", got)
		}

		const group = `{"groups":[{"name":"feeder","cap_kw":5,"site_ids":["00000000-0000-7000-8000-000000000001"]}]}`
		status := h.ask("PUT", "/caps", group, "Idempotency-Key: group").StatusCode
		if again := h.ask("PUT", "/caps", group, "Idempotency-Key: group").StatusCode; status < 400 || again != status {
			t.Errorf("a refused request is answered with %d, and with %d when it is repeated", status, again)
		}
	})
}

// TestIdempotencyKey_AtOnce sends one request many times at once: it is done once, and
// whoever is not told to wait is told the same.
func TestIdempotencyKey_AtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := open(t, db)
		h.stock()
		body := `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`
		var wg sync.WaitGroup
		answers := make(chan reply, 20)
		for range cap(answers) {
			wg.Go(func() { answers <- h.ask("POST", "/entities/site", body, "Idempotency-Key: one") })
		}
		wg.Wait()
		close(answers)
		seen := map[string]int{}

		for a := range answers {
			switch a.StatusCode {
			case 200:
				seen[a.body]++
			case 409:
				if !strings.Contains(a.body, "under way") {
					t.Error(a.body)
				}
			default:
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		}

		if len(seen) != 1 {
			t.Errorf("answers: %v", seen)
		}
	})
}

// TestClaimKey_Abandoned shows that a key whose request never ended is free again after its
// lease, and one that was answered after a day.
func TestClaimKey_Abandoned(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		org, err := db.AddOrg(t.Context(), "Acme")
		if err != nil {
			t.Fatal(err)
		}

		claim := func(fresh bool) *store.KeyClaim {
			t.Helper()
			k, cl, err := db.ClaimKey(t.Context(), org.ID, "k", [32]byte{1})
			if fresh != (err == nil && k == nil) {
				t.Errorf("at %v: %v %v", now, k, err)
			}
			return cl
		}

		late := claim(true)
		now = now.Add(store.IdempotencyLease - 1e6)
		claim(false)
		now = now.Add(1e6)
		if err := db.StoreAnswer(t.Context(), claim(true), flex.StoredAnswer{Status: 200, Answer: []byte("x")}); err != nil {
			t.Fatal(err)
		}

		now = now.Add(store.IdempotencyLife - 1e6)
		claim(false)
		now = now.Add(1e6)
		if err := db.FreeKey(t.Context(), claim(true)); err != nil {
			t.Fatal(err)
		}
		claim(true)

		// A request that outlived its lease touches nothing of the one that has the key now.
		if err := errors.Join(db.StoreAnswer(t.Context(), late, flex.StoredAnswer{Status: 200}), db.FreeKey(t.Context(), late)); err != nil {
			t.Fatal(err)
		}
		if k, _, err := db.ClaimKey(t.Context(), org.ID, "k", [32]byte{1}); flex.KindOf(err) != flex.Conflict {
			t.Errorf("the key under way is %v %v after another request ended", k, err)
		}
	})
}

// A secret that is shown once is not shown again to whoever repeats the request, and the
// repetition makes no other.
func TestIdempotency_SecretIsShownOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Keys: storetest.Keys(t)})
		h := open(t, db)
		h.server.Push = &delivery.Service{DB: db, Out: egress.New(egress.Options{})}
		h.want("PUT", "/endpoints/schedule", `{"url":"https://example.com/"}`, 200, "")
		first := h.want("POST", "/endpoints/schedule/rotate", "", 200, "", "Idempotency-Key: turn")
		if !strings.Contains(first.body, "whsec_") {
			t.Fatalf("rotate answers %s", first.body)
		}

		again := h.want("POST", "/endpoints/schedule/rotate", "", 409, "", "Idempotency-Key: turn")
		if strings.Contains(again.body, "whsec_") || !strings.Contains(again.body, "shown once") {
			t.Errorf("repeated: %s", again.body)
		}
		if second := h.want("POST", "/endpoints/schedule/rotate", "", 200, "", "Idempotency-Key: turn-2"); second.body == first.body {
			t.Error("another key turned nothing")
		}
	})
}
