package openadr_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/control"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/openadr"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// utility is another party's VTN, a second flexd, and this flexd's service that asks it.
type utility struct {
	*fixture
	program, secret string
	away            *httptest.Server
	broken          func(w http.ResponseWriter, r *http.Request) bool // answers in its place; nil never does

	now     time.Time
	db      *store.DB
	mine    flex.OrgID
	adr     *adr.Service
	control *control.Service
	up      store.ADRUpstream
}

func newUtility(t *testing.T, url string) *utility {
	t.Helper()
	return newUtilityWith(t, url, false)
}

// newUtilityWith is newUtility with a server that is to have what each asset draws, or is not.
func newUtilityWith(t *testing.T, url string, perAsset bool) *utility {
	t.Helper()
	u := &utility{now: time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)}
	clock := store.Options{Environment: flex.Sandbox, Now: func() time.Time { return u.now }}
	u.fixture = open(t, storetest.Open(t, "sqlite:"+t.TempDir()+"/utility.db", clock))
	u.program = u.ask(u.bl, "POST", "/programs", `{"programName":"demand response"}`, jsonForm).field("id")
	secret, err := u.server.Access.AddCredential(t.Context(), u.org.ID, "ven-7", "", []flex.Role{flex.OpenADRNode}, store.CredentialLimits{})
	if err != nil {
		t.Fatal(err)
	}

	u.secret = secret.Reveal()
	u.away = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if said := requestFault(specification(), r, body); said != "" || err != nil {
			t.Errorf("%s %s is off the specification: %s %v\n%s", r.Method, r.URL, said, err, body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))

		if u.broken == nil || !u.broken(w, r) {
			u.handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(u.away.Close)

	u.db = storetest.Open(t, url, clock)
	u.mine = storetest.NewSeed(t, u.db, url).Org
	u.control = &control.Service{DB: u.db}
	u.adr = &adr.Service{DB: u.db, Out: egress.New(egress.Options{Allow: egress.Private}), PlainHTTP: true}
	if err := u.control.SetCaps(t.Context(), u.mine, flex.Caps{Groups: []flex.CapGroup{{Name: "feeder"}}}); err != nil {
		t.Fatal(err)
	}
	if err := u.control.SetLink(t.Context(), u.mine, flex.CapLink{Group: "feeder", Fallback: new(flex.Watts(1000)), Silence: 2 * time.Minute}); err != nil {
		t.Fatal(err)
	}

	u.up = store.ADRUpstream{
		Name: "the utility", URL: u.away.URL + openadr.Root, Client: "ven-7", Secret: secret, Remote: u.program, Poll: 30 * time.Second, Silence: 5 * time.Minute, PerAsset: perAsset,
	}
	if err := u.adr.AddUpstream(t.Context(), u.mine, &u.up); err != nil {
		t.Fatal(err)
	}
	b := flex.ADRBinding{Program: u.up.Program, Kind: flex.ADRImportLimit, Service: "dno", Scope: flex.Scope{Group: "feeder"}}
	if _, err := u.adr.Bind(t.Context(), u.mine, &b, true); err != nil {
		t.Fatal(err)
	}
	return u
}

const jsonForm = "application/json"

// polled asks the server, half a minute later, and holds what limits the feeder, whether it is the
// fallback, and what is wrong, against what should be.
func (u *utility) polled(step string, limits int, lost bool, wrong string) {
	u.Helper()
	u.now = u.now.Add(30 * time.Second)
	ctx := u.Context()
	for _, job := range []func() error{
		func() error { _, err := u.adr.PollUpstreams(ctx); return err },
		func() error { _, err := u.control.SendOrders(ctx); return err },
		func() error { _, err := u.control.WatchLinks(ctx); return err },
		func() error { _, err := u.adr.ReportOrders(ctx); return err },
	} {
		if err := job(); err != nil {
			u.Fatalf("%s: %v", step, err)
		}
	}

	found, links, err := u.control.Limits(ctx, u.mine)
	if err != nil || len(found) != limits || links[0].LostAt.IsZero() == lost {
		u.Errorf("%s: %d limits, %+v: %v", step, len(found), links, err)
	}
	asked, err := u.adr.Upstreams(ctx, u.mine)
	if err != nil || !strings.Contains(asked[0].Error, wrong) || (asked[0].Error == "") != (wrong == "") {
		u.Errorf("%s: %q is wrong, not %q: %v", step, asked[0].Error, wrong, err)
	}
}

// silent holds how many servers are an exception, and why.
func (u *utility) silent(step string, want int, text string) {
	u.Helper()
	err := u.db.ReadAll(u.Context(), func(all *store.All) error {
		n, first, err := all.SilentADRUpstreams(u.Context(), u.mine)
		if n != want || !strings.Contains(first.Problem, text) {
			u.Errorf("%s: %d servers, %+v", step, n, first)
		}
		return err
	})
	if err != nil {
		u.Fatal(err)
	}
}

func (u *utility) limit(kw string) string {
	return `{"programID":"` + u.program + `","intervalPeriod":{"start":"2026-01-15T18:00:00Z","duration":"PT1H"},"intervals":[{"id":0,"payloads":[{"type":"IMPORT_CAPACITY_LIMIT","values":[` + kw + `]}]}]}`
}

// TestUpstream has an event of a utility's server limit a feeder here, change and go; the
// utility has the report; a server that is silent, or wrong, leaves what was said until the
// link is lost.
func TestUpstream(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		u.polled("nothing yet", 0, false, "")
		event := u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm).field("id")
		u.polled("an event", 1, false, "")
		u.polled("the report is sent", 1, false, "")
		if r := u.ask(u.bl, "GET", "/reports?eventID="+event, "", ""); !strings.Contains(r.body, `"limited"`) || !strings.Contains(r.body, `"clientName":"the utility"`) {
			t.Errorf("the utility was reported %s", r.body)
		}
		if r := u.ask(u.bl, "GET", "/vens", "", ""); !strings.Contains(r.body, `"the utility"`) {
			t.Errorf("the VEN is not known: %s", r.body)
		}

		u.ask(u.bl, "PUT", "/events/"+event, u.limit("7"), jsonForm)
		u.polled("changed", 1, false, "")
		if found, _, _ := u.control.Limits(t.Context(), u.mine); len(found) != 1 || found[0].Power != 7000 {
			t.Errorf("changed: %+v", found)
		}

		c := adr.Client{Org: u.mine, ID: "bl", Business: true}
		if _, err := u.adr.Delete(t.Context(), c, flex.ADRProgram, u.up.Program); flex.KindOf(err) != flex.Forbidden {
			t.Errorf("its program is deleted by another: %v", err)
		}

		u.misbehaves(event)

		u.ask(u.bl, "DELETE", "/events/"+event, "", "")
		u.polled("cancelled", 0, false, "")
		u.ask(u.bl, "POST", "/events", u.limit("5"), jsonForm)
		u.polled("another", 1, false, "")
		if err := u.adr.RemoveUpstream(t.Context(), u.mine, u.up.Program); err != nil {
			t.Fatal(err)
		}

		if _, err := u.control.SendOrders(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, _, err := u.control.Limits(t.Context(), u.mine); err != nil || len(found) != 0 {
			t.Errorf("removed: %+v, %v", found, err)
		}
	})
}

// misbehaves has the server do all that it should not.
func (u *utility) misbehaves(event string) {
	u.Helper()
	answers := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/events") {
				return false
			}
			w.WriteHeader(status)
			_, err := w.Write([]byte(body))
			return err == nil
		}
	}

	for _, bad := range []struct{ body, wrong string }{
		{`[{"id":"x","programID":"another"}]`, "of another program"},
	} {
		u.broken = answers(200, bad.body)
		u.polled(bad.body, 1, false, bad.wrong)
		u.broken = nil
		u.polled("well again", 1, false, "")
	}

	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusBadGateway} {
		u.broken = answers(status, `{"status":1}`)
		u.polled("a refusal", 1, false, fmt.Sprint("it answered ", status))
		u.broken = nil
		u.polled("well again", 1, false, "")
	}

	one := u.ask(u.bl, "GET", "/events/"+event, "", "").body
	u.broken = answers(200, "["+one+","+one+"]")
	u.polled("the same event twice", 1, false, "")

	// An event that cannot be read leaves what it said before; others are carried out.
	planted, err := json.Marshal([]any{map[string]any{"id": event, "programID": u.program, "intervals": "none"}})
	if err != nil {
		u.Fatal(err)
	}
	u.broken = answers(200, string(planted))
	u.polled("an event that cannot be read", 1, false, "cannot be kept")
	u.silent("an event that cannot be read", 1, "cannot be kept")

	u.broken = answers(500, "")
	u.polled("500", 1, false, "it answered 500")
	u.silent("500 once", 0, "")
	for range 2 {
		u.polled("500 again", 1, false, "it answered 500")
	}
	u.polled("the link is lost", 1, true, "it answered 500")
	for range 8 {
		u.polled("still", 1, true, "it answered 500")
	}
	u.silent("for long", 1, "it answered 500")

	u.broken = nil
	u.polled("back", 1, false, "")
	u.silent("back", 0, "")

	refused := 0
	u.broken = func(w http.ResponseWriter, r *http.Request) bool { // the token is replaced
		if refused > 0 || r.Header.Get("Authorization") == "" {
			return false
		}
		refused++
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}

	u.polled("a replaced token", 1, false, "")
	if refused != 1 {
		u.Error("no token was refused")
	}
	u.broken = nil
}

// delayed has the server's first answer to a method and path come late: meanwhile, other is called.
// It returns what each of those requests was answered, in the order in which the server made it.
func (u *utility) delayed(method, path string, other func()) *[]string {
	var answers []string
	u.broken = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.HasSuffix(r.URL.Path, path) {
			return false
		}

		made := httptest.NewRecorder()
		u.handler.ServeHTTP(made, r)
		answers = append(answers, made.Body.String())
		if len(answers) == 1 {
			other()
		}

		w.WriteHeader(made.Code)
		_, err := w.Write(made.Body.Bytes())
		return err == nil
	}

	return &answers
}

// What a server answers to who asked it a turn ago, and was stopped meanwhile, is not kept
// over what it answered in the next: neither its events nor the report that it has.
func TestUpstream_LateAnswer(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		event := u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm).field("id")
		u.polled("an event", 1, false, "")

		inTime := func() { // another process, when the next turn has come
			u.now = u.now.Add(30 * time.Second)
			if _, err := u.adr.PollUpstreams(u.Context()); err != nil {
				u.Error(err)
			}
		}

		reports := u.delayed("POST", "/reports", inTime)
		u.polled("a late report", 1, false, "")
		err := u.db.Read(t.Context(), u.mine, func(tx *store.Tx) error {
			kept, err := tx.ADRMirrors(t.Context(), u.up.Program)
			if len(kept) != 1 || len(*reports) != 1 || !strings.Contains((*reports)[0], kept[0].Report) {
				t.Errorf("kept %+v of %d reports, want one", kept, len(*reports))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		answers := u.delayed("GET", "/events", func() {
			u.ask(u.bl, "PUT", "/events/"+event, u.limit("7"), jsonForm)
			inTime()
		})
		u.polled("late events", 1, false, "")
		found, _, err := u.control.Limits(t.Context(), u.mine)
		if len(*answers) != 2 || len(found) != 1 || found[0].Power != 7000 {
			t.Errorf("%d answers make %+v, %v, want a limit of 7 kW", len(*answers), found, err)
		}
	})
}

// TestUpstream_Beside: a server that hangs does not delay the others, and the limits that
// both set for a feeder apply together.
func TestUpstream_Beside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		hangs, done := false, make(chan struct{})
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hangs {
				<-done
			}
			u.handler.ServeHTTP(w, r)
		}))
		t.Cleanup(other.Close)
		t.Cleanup(func() { close(done) })

		second := u.up
		second.Name, second.URL, second.TokenURL = "another utility", other.URL+openadr.Root, ""
		if err := u.adr.AddUpstream(t.Context(), u.mine, &second); err != nil {
			t.Fatal(err)
		}
		b := flex.ADRBinding{Program: second.Program, Kind: flex.ADRImportLimit, Service: "dno", Scope: flex.Scope{Group: "feeder"}}
		if _, err := u.adr.Bind(t.Context(), u.mine, &b, true); err != nil {
			t.Fatal(err)
		}

		u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm)
		if _, err := u.adr.PollUpstreams(t.Context()); err != nil { // the second cannot be the same VEN: its name differs
			t.Fatal(err)
		}
		u.both("both answer", 2, false)

		hangs = true
		u.ask(u.bl, "POST", "/events", u.limit("8"), jsonForm)
		if err := storetest.Exec(t, url, `UPDATE adr_upstream SET poll_s = 1 WHERE name = $1`, second.Name); err != nil { // so long it may take
			t.Fatal(err)
		}
		u.now = u.now.Add(30 * time.Second)
		if _, err := u.adr.PollUpstreams(t.Context()); err != nil {
			t.Fatal(err)
		}
		u.both("one hangs", 2, true)
	})
}

// TestUpstream_ReportThere: a report that a server does not take, for it says that it has it,
// is sent again when it has changed only.
func TestUpstream_ReportThere(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm)
		sent := 0
		u.broken = func(w http.ResponseWriter, r *http.Request) bool {
			report := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/reports")
			if report {
				sent++
				w.WriteHeader(http.StatusConflict)
			}
			return report
		}

		u.polled("an event", 1, false, "")
		u.polled("the report", 1, false, "it answered 409")
		for range 3 {
			u.polled("again", 1, false, "")
		}
		if sent != 1 {
			t.Errorf("the report was sent %d times", sent)
		}
	})
}

// TestUpstream_GoneAtItsEnd: an event that a server no longer has a few seconds before its
// end, by the clock here, is over there, and is carried out to its end.
func TestUpstream_GoneAtItsEnd(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		at := func(start string) string {
			return strings.NewReplacer("T18:00", "T"+start, "PT1H", "PT10M").Replace(u.limit("9"))
		}

		event := u.ask(u.bl, "POST", "/events", at("17:20"), jsonForm).field("id")
		u.polled("an event", 1, false, "")
		u.now = time.Date(2026, 1, 15, 17, 28, 50, 0, time.UTC)
		u.polled("before its end", 1, false, "")
		u.ask(u.bl, "DELETE", "/events/"+event, "", "")
		u.polled("gone", 1, false, "")

		u.now = time.Date(2026, 1, 15, 17, 30, 0, 0, time.UTC)
		event = u.ask(u.bl, "POST", "/events", at("17:40"), jsonForm).field("id")
		u.now = time.Date(2026, 1, 15, 17, 48, 0, 0, time.UTC)
		u.polled("another", 1, false, "")
		u.ask(u.bl, "DELETE", "/events/"+event, "", "")
		u.polled("cancelled", 0, false, "")
	})
}

// TestUpstream_WhileOneHangs: a server that becomes due while another one hangs is asked at once.
func TestUpstream_WhileOneHangs(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		began, asked, done := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
		said := func(to chan struct{}) {
			select {
			case to <- struct{}{}:
			default:
			}
		}

		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said(began)
			<-done
			u.handler.ServeHTTP(w, r)
		}))
		t.Cleanup(other.Close)
		u.broken = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/events") {
				said(asked)
			}
			return false
		}

		second := u.up
		second.Name, second.URL, second.TokenURL = "another utility", other.URL+openadr.Root, ""
		second.Poll, second.Silence = 10*time.Minute, time.Hour // so that it may take a minute
		if err := u.adr.AddUpstream(t.Context(), u.mine, &second); err != nil {
			t.Fatal(err)
		}

		ended := make(chan int)
		go func() {
			r, err := u.adr.PollUpstreams(t.Context())
			if err != nil {
				t.Error(err)
			}
			ended <- r.Count
		}()

		await := func(what string, from chan struct{}) {
			select {
			case <-from:
			case <-time.After(50 * time.Second):
				t.Errorf("%s is not asked", what)
			}
		}

		await("the second", began)
		await("the first", asked)
		if err := storetest.Exec(t, url, `UPDATE adr_upstream SET due_at = 1 WHERE name = $1`, u.up.Name); err != nil {
			t.Fatal(err)
		}
		await("the first, once more,", asked)
		close(done)
		if did := <-ended; did != 3 {
			t.Errorf("%d times a server was asked", did)
		}
	})
}

// both sends what two servers ask for, and holds how many limits stand and whether the first
// in the list is wrong.
func (u *utility) both(step string, limits int, wrong bool) {
	u.Helper()
	if _, err := u.control.SendOrders(u.Context()); err != nil {
		u.Fatal(err)
	}
	found, _, err := u.control.Limits(u.Context(), u.mine)
	if err != nil || len(found) != limits {
		u.Errorf("%s: %d limits, want %d: %+v, %v", step, len(found), limits, found, err)
	}
	asked, err := u.adr.Upstreams(u.Context(), u.mine)
	if err != nil || len(asked) != 2 || strings.Contains(asked[0].Error, "GET /events") != wrong {
		u.Errorf("%s: %+v: %v", step, asked, err)
	}
}
