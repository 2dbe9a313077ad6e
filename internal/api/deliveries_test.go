package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// inbox is a client's endpoint that remembers what came.
type inbox struct {
	mu     sync.Mutex
	secret string
	got    []string // the webhook-ids
	bodies []string
	fails  []string
	status int
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var body strings.Builder
	buf := make([]byte, 1<<16)
	for n, err := r.Body.Read(buf); n > 0 || err == nil; n, err = r.Body.Read(buf) {
		body.Write(buf[:n])
	}

	id, err := client.VerifyWebhook(b.secret, r.Header, []byte(body.String()), time.Now())
	if err != nil {
		b.fails = append(b.fails, err.Error())
	}
	b.got, b.bodies = append(b.got, id), append(b.bodies, body.String())
	if b.status != 0 {
		w.WriteHeader(b.status)
	}
}

// await returns the webhook-ids once there are n of them.
func (b *inbox) await(t *testing.T, n int) []string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		got, fails := append([]string(nil), b.got...), b.fails
		b.mu.Unlock()
		if len(fails) > 0 {
			t.Fatalf("signatures: %v", fails)
		}
		if len(got) >= n {
			return got
		}

		if time.Now().After(end) {
			t.Fatalf("%d pushes came, want %d", len(got), n)
		}
	}
}

// posting is a fixture with its delivery service at work, and an inbox.
func posting(t *testing.T, db *store.DB) (*fixture, *inbox, string) {
	h := open(t, db)
	out := egress.New(egress.Options{Allow: egress.Private})
	h.server.Control = &control.Service{DB: db}
	h.server.Push = &delivery.Service{DB: db, Out: out, PlainHTTP: true, BaseURL: h.url}
	w := &worker.Worker{Name: "push", Every: time.Second, Wake: db.Waker(store.WakePush), Job: h.server.Push.DispatchDue}
	done := make(chan struct{})
	go func() { defer close(done); w.Run(t.Context()) }()
	t.Cleanup(func() { <-done; h.server.Push.Close(); out.Close() })
	in := &inbox{}
	l := httptest.NewServer(in)
	t.Cleanup(l.Close)
	return h, in, l.URL
}

// charger onboards a charger under full control and returns its id.
func (h *fixture) charger() string {
	h.Helper()
	h.stock()
	r := h.want("POST", "/entities/site/onboard", onboarding(halfHourly, "charger-001", `,"properties":{"power_kw":7.4}`), 200, "")
	return get(h.T, r.body, "assets", 0, "asset_id").(string)
}

// What waits goes no earlier than it was queued, however urgent it is.
func TestDeliveries_Waiting(t *testing.T) {
	h, _, _ := posting(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	asset := h.charger()
	h.want("POST", "/entities/asset/"+asset+"/event/plug-in", `{"tariff":{"off_peak_times":"00:00-05:30","timezone":"Europe/London"}}`, 200, "null")
	r := h.want("GET", "/deliveries?status=pending", "", 200, "")
	if next, made := get(t, r.body, "deliveries", 0, "next_attempt_at"), get(t, r.body, "deliveries", 0, "created_at"); next != made {
		t.Errorf("queued at %v, to go at %v", made, next)
	}
}

func TestDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h, in, url := posting(t, db)
		h.want("GET", "/endpoints/schedule", "", 404, `{"detail":"no schedule endpoint is set: PUT /endpoints/schedule sets one"}`)
		r := h.want("PUT", "/endpoints/schedule", `{"url":"`+url+`/chargers/{external_id}","headers":[{"name":"X-Api-Key","value":"k3y"}]}`, 200, "")
		in.secret = get(t, r.body, "secret").(string)
		if r = h.want("GET", "/endpoints/schedule", "", 200, ""); strings.Contains(r.body, "k3y") || strings.Contains(r.body, in.secret) || !strings.Contains(r.body, `"header_names":["X-Api-Key"]`) {
			t.Errorf("the endpoint shows %s", r.body)
		}
		r = h.want("POST", "/endpoints/schedule/test", "", 200, "")
		if get(t, r.body, "accepted") != true || get(t, r.body, "delivery", "kind") != "test" {
			t.Errorf("test: %s", r.body)
		}

		asset := h.charger()
		h.want("POST", "/entities/asset/"+asset+"/event/plug-in", `{"tariff":{"off_peak_times":"00:00-05:30, 23:30-24:00","timezone":"Europe/London"}}`, 200, "null")
		id := in.await(t, 2)[1]
		callback := "/entities/asset/" + asset + "/callback/" + id
		h.want("POST", callback, `{"timestamp":"2026-01-15T10:10:02Z","status":"RECEIVED"}`, 200, "null")
		h.want("POST", callback, `{"timestamp":"2026-01-15T10:10:02Z","status":"EXECUTED"}`, 200, "null")
		h.want("POST", callback, `{"timestamp":"2026-01-15T10:10:02Z","status":"ACCEPTED"}`, 200, "null") // late: nothing changes
		h.want("POST", callback, `{"timestamp":"2026-01-15T10:10:02Z","status":"DONE"}`, 422, "")
		h.want("POST", "/entities/asset/"+asset+"/callback/nothing", `{"timestamp":"2026-01-15T10:10:02Z","status":"RECEIVED"}`, 404, `{"detail":"event not found or not authorized"}`)
		h.want("POST", "/entities/asset/"+asset+"/callback/"+asset, `{"timestamp":"2026-01-15T10:10:02Z","status":"RECEIVED"}`, 404, `{"detail":"event not found or not authorized"}`)
		h.want("POST", "/entities/asset/not-a-uuid/callback/x?asset_id_is_external=true", `{"timestamp":"2026-01-15T10:10:02Z","status":"RECEIVED"}`, 422, "")

		if err := h.server.Push.Drain(t.Context(), h.org.ID); err != nil {
			t.Fatal(err)
		}
		r = h.want("GET", "/deliveries/"+id, "", 200, "")
		var payload any
		json.Unmarshal([]byte(in.bodies[1]), &payload)
		want, _ := json.Marshal(payload)
		got, _ := json.Marshal(get(t, r.body, "payload"))
		if string(got) != string(want) || get(t, r.body, "status") != "accepted" || get(t, r.body, "callback_status") != "EXECUTED" ||
			get(t, r.body, "url") != url+"/chargers/charger-001" || get(t, r.body, "attempts", 0, "status_code") != 200.0 {
			t.Errorf("delivery: %s", r.body)
		}

		r = h.want("GET", "/deliveries?limit=1", "", 200, "")
		if get(t, r.body, "deliveries", 0, "id") != id || get(t, r.body, "next") != id {
			t.Errorf("list: %s", r.body)
		}
		r = h.want("GET", "/deliveries?limit=1&before="+id, "", 200, "")
		if get(t, r.body, "deliveries", 0, "kind") != "test" || strings.Contains(r.body, "next") {
			t.Errorf("list: %s", r.body)
		}

		h.want("GET", "/deliveries?asset_id="+asset+"&status=rejected", "", 200, `{"deliveries":[]}`)
		h.want("POST", "/deliveries/"+id+"/replay", "", 200, "")
		if got := in.await(t, 3); got[2] != id {
			t.Errorf("the replay has the id %s", got[2])
		}
		h.want("POST", "/entities/asset/"+asset+"/event/plug-out", "", 200, "null")
		h.want("POST", "/deliveries/"+id+"/replay", "", 409, "")

		r = h.want("POST", "/endpoints/schedule/rotate", "", 200, "")
		if s := get(t, r.body, "secret").(string); s == in.secret || !strings.HasPrefix(s, "whsec_") {
			t.Errorf("rotated to %s", s)
		}
		h.want("DELETE", "/endpoints/schedule", "", 204, "")
		h.want("POST", "/endpoints/schedule/test", "", 404, "")

		_, other := h.newOrg("Other", "other")
		h.want("GET", "/deliveries/"+id, "", 404, `{"detail":"delivery not found or not authorized"}`, "Authorization: Bearer "+other)
		h.want("POST", "/deliveries/"+id+"/replay", "", 404, `{"detail":"delivery not found or not authorized"}`, "Authorization: Bearer "+other)
		h.want("POST", callback, `{"timestamp":"2026-01-15T10:10:02Z","status":"RECEIVED"}`, 404, `{"detail":"event not found or not authorized"}`, "Authorization: Bearer "+other)
		h.want("GET", "/deliveries", "", 200, `{"deliveries":[]}`, "Authorization: Bearer "+other)
	})
}

func TestEndpoint_Faults(t *testing.T) {
	h, _, url := posting(t, storetest.Open(t, storetest.SQLite(t), store.Options{}))
	for body, want := range map[string]string{
		`{}`:                                          `"loc":["body","url"]`,
		`{"url":"gopher://x"}`:                        "it must begin with https://",
		`{"url":"nonsense"}`:                          "it must begin with https://",
		`{"url":"https://"}`:                          "it names no host",
		`{"url":"https://a/{asset}"}`:                 "{asset} is no placeholder: there are {asset_id}, {external_id}, {site_id}",
		`{"url":"https://{asset_id}.example"}`:        "not into the host",
		`{"url":"HTTPS://{asset_id}.example"}`:        "not into the host",
		`{"url":"https://a.example:65536/"}`:          "from 1 to 65535",
		`{"url":"https://a.example:0"}`:               "from 1 to 65535",
		`{"url":"https://u:p@a.example"}`:             "put credentials into a header field",
		`{"url":"https://a.example/#x"}`:              "from # on",
		`{"url":"https://169.254.169.254/"}`:          "169.254.169.254 is a link-local address",
		`{"url":"` + url + `","secret":"x"}`:          "a secret begins with",
		`{"url":"` + url + `","secret":"whsec_AAAA"}`: "24 to 64 bytes, this one for 3",
		`{"url":"` + url + `","headers":[{"name":"Webhook-Id","value":"x"}]}`: "Webhook-Id is set by flexd itself",
		`{"url":"` + url + `","headers":[{"name":"a b","value":"x"}]}`:        "is not the name of a header field",
		`{"url":"` + url + `","headers":[{"name":"A","value":"x\r\nB: y"}]}`:  "holds a character",
		`{"url":"` + url + `","rate":100001}`:                                 `"loc":["body","rate"]`,
		`{"url":"` + url + `","concurrency":513}`:                             `"loc":["body","concurrency"]`,
	} {
		if r := h.want("PUT", "/endpoints/schedule", body, 422, ""); !strings.Contains(r.body, want) {
			t.Errorf("%s: %s, want %s", body, r.body, want)
		}
	}
	h.want("PUT", "/endpoints/schedule", `{"url":"`+url+`?car={external_id}"}`, 200, "")
	h.want("PUT", "/endpoints/else", `{"url":"`+url+`"}`, 422, "")
	h.server.Push.PlainHTTP = false
	if r := h.want("PUT", "/endpoints/schedule", `{"url":"http://example.com"}`, 422, ""); !strings.Contains(r.body, "must begin with https://; http:// is for private networks") {
		t.Error(r.body)
	}
}
