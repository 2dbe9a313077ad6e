package openadr_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/adr"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// hook is a subscriber's server, and what it was sent: "path token: operation kind", of each
// path in the order in which it came.
type hook struct {
	*httptest.Server
	lock sync.Mutex
	sent []string
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n struct{ Operation, ObjectType string }
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}

		h.lock.Lock()
		defer h.lock.Unlock()
		h.sent = append(h.sent, r.URL.Path+" "+r.Header.Get("Authorization")+": "+n.Operation+" "+n.ObjectType)
	}))
	t.Cleanup(h.Close)
	return h
}

// received holds what was sent since the last time against what should be.
func (h *hook) received(t *testing.T, step string, want ...string) {
	t.Helper()
	h.lock.Lock()
	defer h.lock.Unlock()
	slices.SortStableFunc(h.sent, func(a, b string) int { // addresses are called at the same time
		return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
	})
	if !slices.Equal(h.sent, want) {
		t.Errorf("%s: %q, want %q", step, h.sent, want)
	}
	h.sent = nil
}

// TestNotices_ProgramGone: who subscribed to one program is notified that its events are
// cancelled, and that it is deleted, though the subscription ends with it. Nothing is notified
// after that, and the bearer token is deleted a day later.
func TestNotices_ProgramGone(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		f := open(t, storetest.Open(t, url, store.Options{Now: func() time.Time { return now }}))
		own := f.client(f.org, "own", flex.OpenADRNode)
		h := newHook(t)

		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`)).field("id")
		sub := f.want(201, own, "POST", "/subscriptions", fmt.Sprintf(
			`{"clientName":"c","programID":%q,"objectOperations":[{"objects":["EVENT","PROGRAM"],"operations":["CREATE","DELETE"],"callbackUrl":%q,"bearerToken":"t"}]}`,
			program, h.URL+"/own")).field("id")
		event := f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `null`)).field("id")
		send := func() {
			t.Helper()
			if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		send()
		h.received(t, "an event", "/own Bearer t: CREATE EVENT")
		f.want(200, f.bl, "DELETE", "/events/"+event, "")
		f.want(200, f.bl, "DELETE", "/programs/"+program, "")
		f.want(404, own, "GET", "/subscriptions/"+sub, "")
		if ids := f.want(200, f.bl, "GET", "/subscriptions", "").ids(); len(ids) != 0 {
			t.Errorf("listed: %v", ids)
		}

		send()
		h.received(t, "cancelled", "/own Bearer t: DELETE EVENT", "/own Bearer t: DELETE PROGRAM")
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`))
		send()
		h.received(t, "another program")

		rows := storetest.At(t, f.db, url)
		for _, left := range []int{1, 0} {
			if _, err := f.server.ADR.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := rows.Count(`SELECT count(*) FROM adr_object WHERE sealed IS NOT NULL`); n != left {
				t.Errorf("%d subscriptions are left, want %d", n, left)
			}
			now = now.Add(25 * time.Hour)
		}
	})
}

// TestNotices_Silent: an address that does not answer is called once in a run, however many
// notices it is to have; one that answers with an error is sent each.
func TestNotices_Silent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		var silent, wrong atomic.Int32 // calls; each of a server, as a connection that is used again may repeat one
		for _, answer := range []http.HandlerFunc{
			func(http.ResponseWriter, *http.Request) {
				silent.Add(1)
				panic(http.ErrAbortHandler)
			},

			func(w http.ResponseWriter, _ *http.Request) {
				wrong.Add(1)
				w.WriteHeader(503)
			},
		} {
			hook := httptest.NewServer(answer)
			t.Cleanup(hook.Close)
			f.want(201, f.bl, "POST", "/subscriptions", fmt.Sprintf(
				`{"clientName":"c","objectOperations":[{"objects":["PROGRAM"],"operations":["CREATE"],"callbackUrl":%q}]}`, hook.URL))
		}

		for i := range 3 {
			f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, fmt.Sprint("p", i), `null`))
		}
		if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
			t.Fatal(err)
		}

		if silent.Load() != 1 || wrong.Load() != 3 {
			t.Errorf("the silent one was called %d times, the other %d", silent.Load(), wrong.Load())
		}

		for i := range 18 { // more than one run takes
			f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, fmt.Sprint("q", i), `null`))
		}

		for more := true; more; {
			r, err := f.server.ADR.SendNotices(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			more = r.More
		}
		if silent.Load() > 2 { // twice if all that took 10 s
			t.Error("the silent one was called in each run")
		}

		one := `{"objects":["PROGRAM"],"operations":["CREATE"],"callbackUrl":"https://example.com/"}`
		for n, status := range map[int]int{adr.OperationsMax: 201, adr.OperationsMax + 1: 400} {
			f.want(status, f.bl, "POST", "/subscriptions", `{"clientName":"c","objectOperations":[`+strings.TrimSuffix(strings.Repeat(one+",", n), ",")+`]}`)
		}
	})
}

// TestNotices_Beside: an address that hangs keeps no other waiting: it is itself answered only
// once the other was called.
func TestNotices_Beside(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := open(t, db)
		called := make(chan struct{})
		hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			if r.URL.Path == "/other" {
				close(called)
				return
			}

			select {
			case <-called:
			case <-r.Context().Done():
				t.Error("the other address waited for the one that hangs")
			}
		}))
		defer hook.Close()

		for _, path := range []string{"/hangs", "/other"} {
			f.want(201, f.bl, "POST", "/subscriptions", fmt.Sprintf(
				`{"clientName":"c","objectOperations":[{"objects":["PROGRAM"],"operations":["CREATE"],"callbackUrl":%q}]}`, hook.URL+path))
		}
		f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "p", `null`))
		if _, err := f.server.ADR.SendNotices(t.Context()); err != nil {
			t.Fatal(err)
		}

		err := db.Read(t.Context(), f.org.ID, func(tx *store.Tx) error {
			sent, err := tx.ADRNotices(t.Context(), 10)
			if len(sent) != 2 || sent[0].SentAt.IsZero() || sent[1].SentAt.IsZero() {
				t.Errorf("not both were sent: %+v", sent)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestPurge_Reports: flexd's own report of an event that is gone is deleted 90 days later, and
// no other.
func TestPurge_Reports(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		f := open(t, storetest.Open(t, url, store.Options{Now: func() time.Time { return now }}))
		program := f.want(201, f.bl, "POST", "/programs", fmt.Sprintf(aProgram, "a", `null`)).field("id")
		for _, name := range []string{"stays", "goes"} {
			event := f.want(201, f.bl, "POST", "/events", fmt.Sprintf(anEvent, program, `null`)).field("id")
			id, err := adr.ParseID(event)
			if err != nil {
				t.Fatal(err)
			}

			err = f.db.Write(t.Context(), f.org.ID, func(tx *store.Tx) error {
				for _, client := range []string{adr.Reporter, "own"} {
					o := flex.ADRObject{Kind: flex.ADRReport, Client: client, ClientName: name, Event: id, Document: "{}"}
					if err := tx.AddADRObject(t.Context(), &o); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}

			if name == "goes" {
				f.want(200, f.bl, "DELETE", "/events/"+event, "")
			}
		}

		rows := storetest.At(t, f.db, url)
		for _, left := range []int{4, 3} {
			if _, err := f.server.ADR.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := rows.Count(`SELECT count(*) FROM adr_object WHERE kind = 'REPORT'`); n != left {
				t.Errorf("%d reports are left, want %d", n, left)
			}
			now = now.Add(91 * 24 * time.Hour)
		}

		if n := rows.Count(`SELECT count(*) FROM adr_object WHERE kind = 'REPORT' AND client_id = 'flexd' AND client_name = 'goes'`); n != 0 {
			t.Errorf("%d of the event that is gone", n)
		}
	})
}
