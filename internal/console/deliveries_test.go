package console_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// client is an organisation's endpoint. It accepts every push except those of one asset.
type client struct {
	mu       sync.Mutex
	dislikes string
	status   int // that it is answered with; 503 if not set
	got      []string
}

func (c *client) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, r.URL.Path)
	if c.dislikes != "" && strings.HasSuffix(r.URL.Path, c.dislikes) {
		w.WriteHeader(cmp.Or(c.status, http.StatusServiceUnavailable))
		io.WriteString(w, `{"error": "charger offline <b>"}`)
		return
	}
	io.WriteString(w, `{"ok": true}`)
}

func (c *client) dislike(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dislikes = name
}

// serve sets the organisation's endpoint and sends what is due, like flexd's job.
func (s *scene) serve() *client {
	s.Helper()
	c := &client{dislikes: "CP-2058"}
	server := httptest.NewServer(c)
	s.Cleanup(server.Close)
	if _, _, err := s.push.SetEndpoint(s.Context(), s.Org, flex.ScheduleEndpoint, delivery.Settings{URL: server.URL + "/chargers/{external_id}"}); err != nil {
		s.Fatal(err)
	}
	s.send()
	return c
}

func (s *scene) send() {
	s.Helper()
	if err := s.push.Drain(s.Context(), s.Org); err != nil {
		s.Fatal(err)
	}
}

// post submits a form and follows where it leads.
func (d *service) post(path string, form url.Values) string {
	d.Helper()
	if form == nil {
		form = url.Values{}
	}
	a := d.do("POST", path, form)
	if a.status != http.StatusSeeOther {
		d.Fatalf("POST %s: %d %s", path, a.status, a.body)
	}
	to, _, _ := strings.Cut(a.header.Get("Location"), "#")
	return d.page(to)
}

// link returns the first address on a page that begins with a prefix.
func (d *service) link(page, prefix string) string {
	d.Helper()
	_, rest, found := strings.Cut(page, `href="`+prefix)
	if !found {
		d.Fatalf("no link to %s", prefix)
	}
	rest, _, _ = strings.Cut(rest, `"`)
	return strings.ReplaceAll(prefix+rest, "&amp;", "&")
}

func TestDeliveries(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/deliveries"), "No endpoint is set.")
		client := s.serve()
		page := d.page("/console/deliveries")
		d.wants(page, "Moorland Energy · schedule", "91.7 %", "11 of 12 pushes in 24 h", ">1 000/s<", `<span class="tag bad">503</span>`, `>schedule 2</a>`)
		waiting := d.page("/console/deliveries?state=pending")
		const row = `<th scope="row"><a href="/console/deliveries/0`
		if n := strings.Count(waiting, row); n != 1 {
			t.Errorf("%d pushes wait", n)
		}

		// The failures, by each thing that may be their cause, and the pushes behind a row.
		d.wants(page, "Failures of the last 24 hours", `<a href="/console/deliveries?status=503">HTTP 503</a>`, `<a href="/console/deliveries?endpoint=schedule">schedule</a>`)
		s.Exec(`UPDATE asset SET firmware = '1.4b' WHERE id = $1`, s.assets[shortfall].Bytes())
		d.wants(d.page("/console/deliveries"), `<a href="/console/deliveries?firmware=1.4b">1.4b</a>`)

		for query, want := range map[string]int{"status=503": 1, "status=200": 11, "status=0": 0, "model=nobody": 0, "firmware=1.4B": 1, "firmware=2": 0, "gsp_group=_Z": 0} {
			if n := strings.Count(d.page("/console/deliveries?"+query), row); n != want {
				t.Errorf("%s: %d pushes, want %d", query, n, want)
			}
			var list struct{ Total int }
			if err := json.Unmarshal([]byte(d.do("GET", "/console/deliveries?"+query, nil, asJSON).body), &list); err != nil || list.Total != want {
				t.Errorf("%s: %d in total, want %d, %v", query, list.Total, want, err)
			}
		}

		if a := d.get("/console/deliveries?status=five"); a.status != 422 {
			t.Errorf("a status that is no number: %d", a.status)
		}
		var whole struct{ Failures delivery.Failures }
		if err := json.Unmarshal([]byte(d.do("GET", "/console/deliveries", nil, asJSON).body), &whole); err != nil || whole.Failures.Pushes != 1 || whole.Failures.Cause[0].Name != "HTTP 503" {
			t.Errorf("failures %+v, %v", whole.Failures, err)
		}

		one := d.page(d.link(waiting, "/console/deliveries/0"))
		d.wants(one, "Schedule 1 of CP-2058", "charger offline &lt;b&gt;", "&#34;stackLevel&#34;: 1100", "Send it again", "/chargers/CP-2058")
		client.dislike("")
		path := d.link(waiting, "/console/deliveries/0")
		if a := d.do("POST", path+"/replay", url.Values{}); a.status != 303 {
			t.Fatalf("replay: %d %s", a.status, a.body)
		}

		s.send()
		d.wants(d.page(path+"?done=replayed"), "It is sent once more.", `<span class="tag good">accepted</span>`, `<span class="tag good">200</span>`)
		d.wants(d.page("/console/audit?act=replay+push"), strings.TrimPrefix(path, "/console/deliveries/"), "Moorland Energy")
		var list []map[string]any
		if err := json.Unmarshal([]byte(d.page("/console/deliveries.json?state=accepted")), &list); err != nil || len(list) != 12 || list[0]["state"] != "accepted" {
			t.Errorf("%d deliveries: %v", len(list), err)
		}

		old := d.page("/console/deliveries?asset=" + s.assets[plain].String())
		s.event(plain, control.Event{Kind: control.PlugOut})
		d.wants(old, ">schedule 2</a>")
		if strings.Contains(old, ">schedule 1</a>") {
			t.Error("a schedule that was replaced before it was tried is in the list of attempts")
		}
		if a := d.get("/console/deliveries/" + s.assets[plain].String()); a.status != 404 {
			t.Errorf("no push of that id: %d", a.status)
		}
	})
}

// If the organisation's clock is advanced, the page of a push says which clock each time is
// by. The times in the push's body, and in a newer dispatch that replaced it, are the
// organisation's. The times of queuing and of attempts are real time.
func TestDelivery_Turned(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		battery := s.charged()
		if _, _, err := s.push.SetEndpoint(t.Context(), s.Org, flex.DispatchEndpoint, delivery.Settings{URL: "http://127.0.0.1:1/"}); err != nil {
			t.Fatal(err)
		}

		from := d.db.Now().Truncate(time.Hour).Add(2 * time.Hour)
		var sent []store.Dispatch
		for range 2 {
			err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
				one, err := tx.AddDispatch(t.Context(), store.Dispatch{
					Market: "dno",
					Span:   flex.Span{From: from, To: from.Add(time.Hour)},
					Assets: []store.DispatchedAsset{{ID: battery, Power: -1000}},
				})
				sent = append(sent, one)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		d.login()
		const turned = "by the organisation's turned clock"
		older := "/console/deliveries/" + sent[0].ID.String()
		newer := "/console/deliveries/" + sent[1].ID.String()
		page := d.page(older)
		d.wants(page, "by a newer dispatch, from")
		if strings.Contains(page, turned) {
			t.Error("a clock that was never turned is named")
		}

		err := (turner{d}).Advance(t.Context(), d.Org, d.db.Now().Add(30*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		d.wants(d.page(older), turned+"</dd>", "Its times are "+turned+", and those above are real time.")
		if page := d.page(newer); strings.Contains(page, turned+"</dd>") || !strings.Contains(page, "Its times are "+turned) {
			t.Error("the newer dispatch's clocks")
		}
	})
}

// A push that was not tried says why, by its kind and its state.
func TestDelivery_Untried(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		battery := s.charged()
		from := d.db.Now().Truncate(time.Hour).Add(2 * time.Hour)
		var sent store.Dispatch
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			var err error
			sent, err = tx.AddDispatch(t.Context(), store.Dispatch{
				Market: "dno",
				Span:   flex.Span{From: from, To: from.Add(time.Hour)},
				Assets: []store.DispatchedAsset{{ID: battery, Power: -1000}},
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		d.login()
		path := "/console/deliveries/" + sent.ID.String()
		pending := d.page(path)
		d.wants(pending, "It was not tried yet.", "No dispatch endpoint is set", "Once its time is over it is not sent any more.")
		if strings.Contains(pending, "newer") {
			t.Error("a dispatch that waits is said to be replaced")
		}

		if _, _, err := s.push.SetEndpoint(t.Context(), s.Org, flex.DispatchEndpoint, delivery.Settings{URL: "http://127.0.0.1:1/"}); err != nil {
			t.Fatal(err)
		}
		d.wants(d.page(path), "It waits for its endpoint, or for its turn there. Once its time is over")
		d.wait(4 * time.Hour)
		s.send()
		d.wants(d.page(path), "There is no record of an attempt.", "Its time was over before it could be sent.")
	})
}

func TestDeliveries_WhileSending(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		client := s.serve()
		d.login()
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		w := &worker.Worker{Name: "push", Every: time.Minute, Wake: d.db.Waker(store.WakePush), Job: d.push.DispatchDue}

		done.Go(func() { w.Run(ctx) })
		defer done.Wait()
		defer cancel()
		path := "/console/endpoints/" + d.Org.String() + "/schedule/"
		d.wants(d.post(path+"test", nil), "<h1>Test</h1>", `<span class="tag good">accepted</span>`)
		if a := d.do("POST", path+"rotate", url.Values{"typed": {"secret"}}); a.status != 400 {
			t.Errorf("a new secret that nobody typed for: %d", a.status)
		}

		a := d.do("POST", path+"rotate", url.Values{"typed": {"new secret"}})
		if _, secret, ok := strings.Cut(a.body, `id="secret">whsec_`); !ok || len(secret) < 40 || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("new secret: %d %q", a.status, a.header.Get("Cache-Control"))
		}
		d.wants(d.page("/console/deliveries"), "The secret before this one signs as well until")
		if a := d.do("POST", path+"explode", url.Values{}); a.status != 404 {
			t.Errorf("no such act: %d", a.status)
		}

		if a := d.do("POST", "/console/endpoints/"+d.Org.String()+"/dispatch/test", url.Values{}); a.status != 404 {
			t.Errorf("no such endpoint: %d", a.status)
		}
		d.wants(d.page("/console/audit"), "rotate secret", "send test push", `<span class="tag bad">refused</span> no dispatch endpoint is set`)
		_ = client
	})
}

func TestSafety(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		client := s.serve()
		d.login()
		client.dislike("")
		if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {" "}}); a.status != 400 {
			t.Errorf("halted without a reason: %d", a.status)
		}

		d.wants(d.post("/console/safety/halt", url.Values{"reason": {"chargers misread <limits>"}}), "All pushes are halted.", "chargers misread &lt;limits&gt;", "Resume all pushes")
		n := len(client.got)
		s.event(plain, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-14T23:00:00Z")})
		s.send()
		if len(client.got) != n {
			t.Error("a push left while they are halted")
		}

		d.wants(d.page("/console/fleet"), "All pushes are halted: chargers misread &lt;limits&gt;")
		d.wants(d.page("/console/safety"), "2 pushes held back.")
		if a := d.do("POST", "/console/safety/halt", url.Values{"reason": {"again"}}); a.status != 409 {
			t.Errorf("halted twice: %d", a.status)
		}
		d.wants(d.post("/console/safety/resume", nil), "Pushes leave again.", "going out")
		s.send()
		if len(client.got) == n {
			t.Error("what was held was not sent")
		}

		d.wants(d.page("/console/audit"), "halt pushes", "resume pushes", "pushes are halted already")
		file := "start,price_gbp_per_mwh\n2026-01-15T01:00:00Z,-400\n2026-01-15T04:30:00Z,900\n"
		if a := d.do("POST", "/console/safety/prices", url.Values{"prices": {file}}); a.status != 200 || !strings.Contains(a.body, "Moorland Energy") || strings.Contains(a.body, ">0\u00a0schedules would change") {
			t.Errorf("dry run: %d %s", a.status, a.body)
		}
		caps := func(kw, starts string) url.Values {
			return url.Values{"org": {d.Org.String()}, "kw": {kw}, "starts": {starts}}
		}
		if a := d.do("POST", "/console/safety/caps", caps("", "")); a.status != 400 {
			t.Errorf("no caps were set where there are none: %d", a.status)
		}

		for _, bad := range []url.Values{caps("-1", ""), caps("NaN", ""), caps("many", ""), caps("1", "0"), caps("1", "1.5")} {
			if a := d.do("POST", "/console/safety/caps", bad); a.status != 400 {
				t.Errorf("caps %v: %d", bad, a.status)
			}
		}
		d.wants(d.post("/console/safety/caps", caps("11.5", "3")), "The cap is set", `value="11.5"`, `value="3"`)
		d.wants(d.page("/console/audit"), "set caps", "fleet: 11.5 kW, 3 starts a minute")
		d.wants(d.post("/console/safety/caps", caps("", "")), `name="kw" inputmode="decimal" size="8" value=""`)
		if a := d.do("POST", "/console/safety/prices", url.Values{"prices": {"start\n"}}); a.status != 422 {
			t.Errorf("no file of prices: %d", a.status)
		}
	})
}

// A group's row sets its cap and the group that it lies in; other groups, and all sites, stay.
func TestSafety_Groups(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		sites := []flex.SiteID{d.Site(), d.Site()}
		kw := func(n float64) flex.Cap { return flex.Cap{Power: new(flex.FromKW(n))} }
		err := d.control.SetCaps(t.Context(), d.Org, flex.Caps{Groups: []flex.CapGroup{
			{Name: "feeder 1", Cap: kw(20), Sites: sites[:1]},
			{Name: "feeder <2>", Cap: kw(30), Sites: sites[1:]},
			{Name: "substation", Cap: kw(40)},
		}})
		if err != nil {
			t.Fatal(err)
		}

		group := func(name, parent, kw, starts string) url.Values {
			return url.Values{"org": {d.Org.String()}, "group": {name}, "parent": {parent}, "kw": {kw}, "starts": {starts}}
		}
		page := d.post("/console/safety/caps", group("feeder 1", " substation ", "12.5", "3"))
		d.wants(page, "The cap is set", `value="substation" aria-label="Group that feeder 1 lies in"`, `value="12.5" aria-label="kW of feeder 1"`, `aria-label="Set feeder &lt;2&gt;"`)
		d.wants(d.page("/console/audit"), "set caps", "group feeder 1: 12.5 kW, 3 starts a minute, in substation")

		for want, form := range map[int]url.Values{404: group("feeder 9", "", "1", ""), 400: group("feeder 1", "nowhere", "1", "")} {
			if a := d.do("POST", "/console/safety/caps", form); a.status != want {
				t.Errorf("%v: %d %s", form, a.status, a.body)
			}
		}
		if a := d.do("POST", "/console/safety/caps", group("substation", "feeder 1", "40", "")); a.status != 400 || !strings.Contains(a.body, "substation") {
			t.Errorf("two groups in each other: %d", a.status)
		}

		d.post("/console/safety/caps", group("feeder <2>", "", "", ""))
		caps, err := d.control.Caps(t.Context(), d.Org)
		if err != nil || len(caps.Groups) != 3 {
			t.Fatalf("%+v: %v", caps, err)
		}
		one, two, all := caps.Groups[0], caps.Groups[1], caps.Groups[2]
		if one.Parent != "substation" || one.StartsPerMinute != 3 || len(one.Sites) != 1 || one.Power.KW() != 12.5 {
			t.Errorf("%+v", one)
		}
		if two.Power != nil || len(two.Sites) != 1 || all.Power.KW() != 40 || all.Parent != "" {
			t.Errorf("%+v, %+v", two, all)
		}
	})
}

// A group that somebody adds while the last cap of the fleet is removed is not lost: the
// removal is one transaction.
func TestSafety_CapsAtOnce(t *testing.T) {
	each(t, "2026-01-10T18:00:00Z", func(d *service) {
		d.login()
		site := d.Site()
		fleet := flex.Cap{Power: new(flex.Watts(20_000))}

		for range 20 {
			if err := d.control.SetCaps(d.Context(), d.Org, flex.Caps{Fleet: fleet}); err != nil {
				d.Fatal(err)
			}

			var both sync.WaitGroup
			both.Go(func() {
				form := url.Values{"org": {d.Org.String()}, "kw": {""}, "starts": {""}}
				if a := d.do("POST", "/console/safety/caps", form); a.status != http.StatusSeeOther {
					d.Errorf("%d: %s", a.status, a.body)
				}
			})

			both.Go(func() {
				err := d.control.ChangeCaps(d.Context(), d.Org, func(c *flex.Caps) error {
					c.Groups = append(c.Groups, flex.CapGroup{Name: "feeder", Cap: fleet, Sites: []flex.SiteID{site}})
					return nil
				})
				if err != nil {
					d.Error(err)
				}
			})
			both.Wait()

			c, err := d.control.Caps(d.Context(), d.Org)
			if err != nil || len(c.Groups) != 1 || c.Fleet.Power != nil {
				d.Fatalf("the group is lost: %+v, %v", c, err)
			}
		}
	})
}

// A part is halted after a preview of what that stops, while another one is halted, and each
// is ended separately.
func TestSafety_Parts(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.login()
	preview := func(kind, org, name string) answer {
		return d.do("POST", "/console/safety/halt/preview", url.Values{"kind": {kind}, "org": {org}, "name": {name}})
	}

	org := d.Org.String()
	d.wants(preview("organisation", org, "").body, "Halt organisation/"+org, "Nothing is halted yet.", "Halt it")
	d.wants(preview("model", org, " No Such Model ").body, "Halt model/no such model", "No asset is in it now.")
	for _, wrong := range []struct {
		kind, org, name string
		status          int
	}{{"organisation", "", "", 400}, {"endpoint", org, "schedule", 404}, {"gsp-group", "", "C", 400}, {"street", "", "x", 400}} {
		if a := preview(wrong.kind, wrong.org, wrong.name); a.status != wrong.status {
			t.Errorf("%+v: %d", wrong, a.status)
		}
	}
	d.wants(d.page("/console/safety"), "No part is halted.")

	d.wants(d.post("/console/safety/halt", url.Values{"scope": {"organisation/" + org}, "reason": {"a new release"}}), "A part of the pushes is halted.", "a new release")
	d.wants(d.post("/console/safety/halt", url.Values{"scope": {"gsp-group/_C"}, "reason": {"a storm"}, "two": {"1"}}), "2 parts of the pushes are halted.", "GSP group _C", "Ask to resume")
	d.wants(d.do("GET", "/console/fleet", nil).body, "2 parts of the pushes are halted.")
	d.wants(d.do("GET", "/console/safety", nil, asJSON).body, `"scope":"gsp-group/_C"`, `"halted":null`)

	d.wants(d.post("/console/safety/resume", url.Values{"scope": {"organisation/" + org}}), "A part of the pushes is halted.")
	d.wants(d.post("/console/safety/resume", url.Values{"scope": {"gsp-group/_C"}}), "Somebody else ends it now.")
	d.wants(d.page("/console/audit"), "halt pushes", "gsp-group/_C", "organisation/"+org)
}

// If two operators are needed for a halt, two end it. Resuming asks for the password again
// after a while.
func TestSafety_Two(t *testing.T) {
	d := newConsole(t, "2026-01-10T18:00:00Z")
	d.login()
	if _, err := d.access.AddOperator(t.Context(), bea, beasPassword, access.OnDuty); err != nil {
		t.Fatal(err)
	}

	d.wants(d.post("/console/safety/halt", url.Values{"reason": {"a fault"}, "two": {"1"}}), "Two people end this halt.")
	d.wants(d.post("/console/safety/resume", nil), "The end of the halt is asked for.", "Somebody else ends it now.")
	if a := d.do("POST", "/console/safety/resume", url.Values{}); a.status != 409 {
		t.Errorf("ended by one: %d", a.status)
	}

	d.loginAs(bea, beasPassword)
	d.wait(access.ConfirmedFor)
	if a := d.do("POST", "/console/safety/resume", url.Values{}); a.status != 403 {
		t.Errorf("ended a while after the password: %d", a.status)
	}

	d.wants(d.post("/console/safety/resume", url.Values{"confirm_password": {beasPassword}}), "Pushes leave again.")
	d.loginAs(operator, password)
	d.server.ResumeByTwo = true
	d.wants(d.post("/console/safety/halt", url.Values{"reason": {"a fault"}}), "Two people end this halt.")
	d.wants(d.page("/console/audit"), "asked for: somebody else ends the halt")
}

func TestBrowser_Deliveries(t *testing.T) {
	s := testScene(t)
	d := s.service
	s.serve()
	d.login()
	b := browse(d)
	b.screen("deliveries", "/console/deliveries")

	// A phone shows the state of a push without scrolling the table.
	b.truth(`innerWidth === 390 && [...document.querySelectorAll("[aria-label=Pushes] td:nth-child(3)")].every((td) => td.getBoundingClientRect().right <= innerWidth)`)
	b.screen("delivery", d.link(d.page("/console/deliveries?state=pending"), "/console/deliveries/0"))
	b.screen("safety", "/console/safety")
	if err := d.push.Halt(t.Context(), delivery.HaltOrder{Operator: operator, Reason: "a firmware fault at Moorland"}); err != nil {
		t.Fatal(err)
	}
	b.screen("safety-halted", "/console/safety")
	b.screen("audit", "/console/audit")
}
