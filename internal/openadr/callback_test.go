package openadr_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/openadr"
	"flexd/internal/store/storetest"
)

// notify has the utility call its subscribers, and flexd ask it, without any time that passes.
func (u *utility) notify() {
	u.Helper()
	if _, err := u.server.ADR.SendNotices(u.Context()); err != nil {
		u.Fatal(err)
	}
	if _, err := u.adr.PollUpstreams(u.Context()); err != nil {
		u.Fatal(err)
	}
}

// events is how many of the utility's events are kept.
func (u *utility) events() int {
	u.Helper()
	asked, err := u.adr.Upstreams(u.Context(), u.mine)
	if err != nil || asked[0].Error != "" {
		u.Errorf("%q is wrong: %v", asked[0].Error, err)
	}
	return asked[0].NumEvents
}

// TestCallback: a utility that calls when something changes is asked at once; who calls with
// another token is not heard, a subscription that the utility lost is made anew, and one that
// is not wanted any more ends.
func TestCallback(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		var u *utility
		here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := &openadr.Server{ADR: u.adr, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
			s.Callback().ServeHTTP(w, r)
		}))

		t.Cleanup(here.Close)
		u = newUtility(t, url)
		if err := u.adr.RemoveUpstream(t.Context(), u.mine, u.up.Program); err != nil {
			t.Fatal(err)
		}
		u.up.Callback = here.URL
		if err := u.adr.AddUpstream(t.Context(), u.mine, &u.up); err != nil {
			t.Fatal(err)
		}

		u.notify()
		if n := len(u.ask(u.bl, "GET", "/subscriptions", "", "").ids()); n != 1 {
			t.Fatalf("%d subscriptions", n)
		}
		if r := u.ask(u.bl, "GET", "/resources", "", ""); len(r.ids()) != 1 || !strings.Contains(r.body, `"the utility"`) {
			t.Errorf("resources: %s", r.body)
		}

		first := u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm).field("id")
		if _, err := u.adr.PollUpstreams(t.Context()); err != nil || u.events() != 0 {
			t.Errorf("asked before it called: %v", err)
		}
		u.notify()
		if u.events() != 1 {
			t.Error("it called, and was not asked")
		}

		second := u.ask(u.bl, "POST", "/events", u.limit("7"), jsonForm).field("id")
		u.callsUnasked(here.URL)
		u.ask(u.bl, "DELETE", "/events/"+second, "", "")
		u.ask(u.bl, "DELETE", "/events/"+first, "", "")
		u.notify()
		if u.events() != 0 {
			t.Error("a call that an event is cancelled was not heard")
		}

		u.ask(u.bl, "DELETE", "/subscriptions/"+u.ask(u.bl, "GET", "/subscriptions", "", "").ids()[0], "", "")
		u.now = u.now.Add(59 * time.Minute)
		u.notify()
		u.bl = u.client(u.org, "bl-2", flex.OpenADRBusiness)
		u.now = u.now.Add(2 * time.Minute)
		u.notify()
		if n := len(u.ask(u.bl, "GET", "/subscriptions", "", "").ids()); n != 1 {
			t.Errorf("%d subscriptions after one was lost", n)
		}

		if err := u.adr.RemoveUpstream(t.Context(), u.mine, u.up.Program); err != nil {
			t.Fatal(err)
		}
		if n := len(u.ask(u.bl, "GET", "/subscriptions", "", "").ids()); n != 0 {
			t.Errorf("%d subscriptions of a server that was removed", n)
		}
	})
}

// callsUnasked has others call: nobody is asked for it.
func (u *utility) callsUnasked(here string) {
	u.Helper()
	path := adr.CallbackRoot + u.up.Program.String()
	for _, call := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", path, "", http.StatusUnauthorized},
		{"POST", path, "Bearer guessed", http.StatusUnauthorized},
		{"POST", path, "Bearer " + u.secret, http.StatusUnauthorized},
		{"POST", adr.CallbackRoot + "none", "Bearer guessed", http.StatusUnauthorized},
		{"GET", path, "Bearer guessed", http.StatusMethodNotAllowed},
	} {
		r, err := http.NewRequestWithContext(u.Context(), call.method, here+call.path, strings.NewReader("{}"))
		if err != nil {
			u.Fatal(err)
		}

		r.Header.Set("Authorization", call.token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			u.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != call.want {
			u.Errorf("%s %s %q: %d, not %d", call.method, call.path, call.token, a.StatusCode, call.want)
		}
	}

	if _, err := u.adr.PollUpstreams(u.Context()); err != nil || u.events() != 1 {
		u.Errorf("asked though nobody may call: %v", err)
	}
}
