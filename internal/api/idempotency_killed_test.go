package api_test

import (
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A request whose process ended after its commit, and before its answer was kept, is repeated: it is answered
// as done, with what it made, and nothing is done twice.
func TestIdempotencyKey_AnswerLost(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		db := storetest.Open(t, url, store.Options{})
		h := open(t, db)
		h.stock()
		seed := storetest.At(t, db, url)

		repeat := func(method, path, body string, want int) string {
			t.Helper()
			first := h.want(method, path, body, want, "", "Idempotency-Key: "+method+path).body
			seed.Exec(`UPDATE idempotency SET status = 0, answer = NULL, sealed = NULL, holder = 0, committed = 1`)
			again := h.want(method, path, body, want, "", "Idempotency-Key: "+method+path)
			if again.body != first {
				t.Errorf("%s %s: answered with\n%s\nand, repeated, with\n%s", method, path, first, again.body)
			}
			return first
		}

		const site = `{"mpan":"1234567890126","postcode":"SW1A 2AA","street_address":"10 Downing Street"}`
		id := text(t, repeat("POST", "/entities/site", site, 200), "id")
		asset := repeat("POST", "/entities/asset", `{"site_id":"`+id+`","external_id":"charger-1","type":"charger"}`, 200)
		repeat("DELETE", "/entities/asset/"+text(t, asset, "id"), "", 204)
		repeat("DELETE", "/entities/site/"+id, "", 204)

		repeat("POST", "/entities/site/onboard-site-and-asset", `{"site":`+site[:len(site)-1]+`,`+consent+`},"asset":{"external_id":"charger-2","type":"charger"},"dispatch_consent":{"dispatch_methods":[]}}`, 200)

		// Under another key it is another request.
		h.want("POST", "/entities/site", site, 409, "", "Idempotency-Key: a third")
	})
}
