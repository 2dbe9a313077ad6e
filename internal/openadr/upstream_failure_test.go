package openadr_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// TestUpstream_OwnFailure: a server that answered is heard, known and subscribed to once,
// though flexd fails to make the reports that it asks for.
func TestUpstream_OwnFailure(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		if err := u.adr.RemoveUpstream(t.Context(), u.mine, u.up.Program); err != nil {
			t.Fatal(err)
		}
		u.up.Callback = u.away.URL
		if err := u.adr.AddUpstream(t.Context(), u.mine, &u.up); err != nil {
			t.Fatal(err)
		}

		b := flex.ADRBinding{Program: u.up.Program, Kind: flex.ADRImportLimit, Service: "dno", Scope: flex.Scope{Group: "feeder"}}
		if _, err := u.adr.Bind(t.Context(), u.mine, &b, true); err != nil {
			t.Fatal(err)
		}

		failed := 0
		broken := errors.New("the disk is broken")
		u.adr.Fleet = func(context.Context, flex.OrgID, flex.Scope, []flex.Span) ([]adr.FleetUse, error) {
			failed++
			return nil, broken
		}

		now := strings.Replace(u.limit("9"), "T18:00", "T17:00", 1)
		u.want(201, u.bl, "POST", "/events", strings.Replace(now, "{",
			`{"reportDescriptors":[{"payloadType":"USAGE_FORECAST","startInterval":0,"numIntervals":1,"historical":false}],`, 1))

		for range 3 {
			u.now = u.now.Add(30 * time.Second)
			if _, err := u.adr.PollUpstreams(t.Context()); !errors.Is(err, broken) {
				t.Errorf("asked: %v", err)
			}
		}

		asked, err := u.adr.Upstreams(t.Context(), u.mine)
		if err != nil || !asked[0].HeardAt.Equal(u.now) || asked[0].KnownAt.IsZero() || asked[0].Error != "" {
			t.Errorf("%+v: %v", asked, err)
		}
		if n := len(u.want(200, u.bl, "GET", "/subscriptions", "").ids()); n != 1 || failed != 3 {
			t.Errorf("%d subscriptions, %d failures", n, failed)
		}
	})
}

// TestUpstream_CalledAgain: a server that calls while it is being asked is asked again
// afterwards, and not beside, where its first answer would not be taken.
func TestUpstream_CalledAgain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm)
		began, beside := false, -1
		u.broken = func(_ http.ResponseWriter, r *http.Request) bool {
			if began || !strings.HasSuffix(r.URL.Path, "/events") {
				return false
			}

			began = true
			if err := storetest.Exec(t, url, `UPDATE adr_upstream SET called_at = 1`); err != nil {
				t.Error(err)
			}
			again, err := u.adr.PollUpstreams(t.Context())
			if err != nil {
				t.Error(err)
			}
			beside = again.Count
			return false
		}

		u.polled("called while it is asked", 1, false, "")
		if beside != 0 {
			t.Errorf("asked %d times beside", beside)
		}
		if again, err := u.adr.PollUpstreams(t.Context()); err != nil || again.Count != 1 {
			t.Errorf("asked %d times afterwards: %v", again.Count, err)
		}
	})
}

// TestUpstream_ReportAnswerLost: a report whose answer was lost is found, and the next one
// goes in its place; a server that does not let its VENs read reports, or answers without any
// JSON, is sent it again.
func TestUpstream_ReportAnswerLost(t *testing.T) {
	for _, c := range []struct {
		reads int // 0 answers as it is
		want  int
	}{{0, 1}, {http.StatusForbidden, 2}, {http.StatusOK, 2}} {
		storetest.EachURL(t, func(t *testing.T, url string) {
			u := newUtility(t, url)
			event := u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm).field("id")
			lost := false
			u.broken = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/reports") {
					return false
				}

				if r.Method == http.MethodGet && c.reads != 0 {
					w.WriteHeader(c.reads)
					return true
				}
				if r.Method != http.MethodPost || lost {
					return false
				}

				lost = true
				u.handler.ServeHTTP(httptest.NewRecorder(), r)
				w.WriteHeader(http.StatusBadGateway)
				return true
			}

			u.polled("an event", 1, false, "")
			u.polled("the answer is lost", 1, false, "it answered 502")
			u.polled("sent again", 1, false, "")
			if n := len(u.want(200, u.bl, "GET", "/reports?eventID="+event, "").ids()); n != c.want || !lost {
				t.Errorf("reading answers %d: %d reports, want %d", c.reads, n, c.want)
			}
		})
	}
}

// TestUpstream_ReportSearchCutOff: a report whose answer was lost is searched for, and the answer to
// the search breaks off. It is not sent again before an answer came whole.
func TestUpstream_ReportSearchCutOff(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		u := newUtility(t, url)
		event := u.ask(u.bl, "POST", "/events", u.limit("9"), jsonForm).field("id")
		posts, searches := 0, 0
		u.broken = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/reports") {
				return false
			}

			if r.Method == http.MethodPost {
				posts++
				u.handler.ServeHTTP(httptest.NewRecorder(), r)
				w.WriteHeader(http.StatusBadGateway)
				return true
			}

			searches++
			if searches != 2 {
				return false
			}

			w.Header().Set("Content-Length", "1000")
			w.Write([]byte(`[{"id":`))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}

		u.polled("an event", 1, false, "")
		u.polled("the answer to the report is lost", 1, false, "it answered 502")
		u.polled("the answer to the search breaks off", 1, false, "while its answer was read")
		u.polled("the report is found", 1, false, "")
		if n := len(u.want(200, u.bl, "GET", "/reports?eventID="+event, "").ids()); n != 1 || posts != 1 {
			t.Errorf("%d reports, sent %d times", n, posts)
		}
	})
}
