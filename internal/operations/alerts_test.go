package operations_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// receiver keeps what is sent to it.
type receiver struct {
	mu     sync.Mutex
	got    []received
	status int
	before func(*http.Request) // an answer, if it is set
}

type received struct {
	path   string
	header http.Header
	body   string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	if r.before != nil {
		r.before(q)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, received{q.URL.Path, q.Header, string(b)})
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// take returns what came since the last call, in the order of the paths.
func (r *receiver) take() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	slices.SortStableFunc(got, func(a, b received) int { return strings.Compare(a.path, b.path) })
	return got
}

// watch is two processes on one store, and somebody to be woken.
type watch struct {
	*testing.T
	*receiver
	services [2]*operations.Service
	micro    atomic.Int64
	url      string
	emails   atomic.Int64
	routes   []*store.AlertRoute
}

func eachWatch(t *testing.T, test func(w *watch)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) { test(newWatch(t, url)) })
}

// alertsPage is where the console of these tests lists alerts.
const alertsPage = "https://flexd.example/console/alerts"

func newWatch(t *testing.T, url string) *watch {
	t.Helper()
	w := &watch{T: t, receiver: &receiver{status: http.StatusAccepted}}
	w.micro.Store(time.Date(2026, 1, 14, 3, 0, 0, 0, time.UTC).UnixMicro())
	server := httptest.NewServer(w.receiver)
	t.Cleanup(server.Close)
	w.url = server.URL

	for i := range w.services {
		out := egress.New(egress.Options{Allow: egress.Private})
		t.Cleanup(out.Close)
		w.services[i] = &operations.Service{
			DB:  storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: w.now}),
			Out: out, PlainHTTP: true, BaseURL: "https://flexd.example/",
			Mail: func(_ context.Context, _ flex.Personal, _, text string) error {
				w.emails.Add(1)
				if !strings.HasSuffix(text, "\n"+alertsPage+"\n") {
					w.Errorf("an e-mail without the page: %s", text)
				}
				return nil
			},
		}
	}

	return w
}

func (w *watch) now() time.Time { return time.UnixMicro(w.micro.Load()).UTC() }

func (w *watch) wait(by time.Duration) { w.micro.Add(by.Microseconds()) }

func (w *watch) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run has both processes look and send, side by side.
func (w *watch) run() []received {
	w.Helper()
	for range 2 { // what one finds the other may send
		var both sync.WaitGroup
		var errs [2]error
		for i, s := range w.services {
			both.Go(func() {
				if _, errs[i] = s.WatchAlerts(w.Context()); errs[i] == nil {
					_, errs[i] = s.SendAlerts(w.Context())
				}
			})
		}

		both.Wait()
		w.check(errs[0])
		w.check(errs[1])
	}

	return w.take()
}

func (w *watch) halt() {
	w.Helper()
	w.check(w.services[0].DB.WriteAll(w.Context(), func(all *store.All) error {
		return all.Halt(w.Context(), store.Halt{Who: "ada", Reason: "a firmware fault"})
	}))
}

func (w *watch) resume() {
	w.Helper()
	w.check(w.services[0].DB.WriteAll(w.Context(), func(all *store.All) error { return all.Resume(w.Context(), store.HaltScope{}) }))
}

func (w *watch) addRoutes() {
	w.Helper()
	w.routes = []*store.AlertRoute{
		{Name: "a", Kind: operations.RouteAlertmanager, Target: w.url + "/a/api/v2/alerts"},
		{Name: "h", Kind: operations.RouteWebhook, Target: w.url + "/hook"},
		{Name: "m", Kind: operations.RouteEmail, Target: "night@flexd.example"},
		{Name: "p", Kind: operations.RoutePagerDuty, Target: w.url + "/pager", Secret: "a-key"},
	}
	for _, r := range w.routes {
		w.check(w.services[0].AddRoute(w.Context(), r))
	}
}

func (w *watch) alert() flex.Alert {
	w.Helper()
	p, err := w.services[1].AlertList(w.Context(), true)
	w.check(err)
	if len(p.Alerts) != 1 {
		w.Fatalf("%d alerts fire", len(p.Alerts))
	}
	return p.Alerts[0]
}

// TestAlerts plays a night: an alert is sent once by each route, whoever looks; it rests with a
// note, comes again, is looked after, and ends.
func TestAlerts(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.addRoutes()
		if got := w.run(); len(got) != 0 {
			w.Fatalf("nothing is wrong, and %v was sent", got)
		}

		w.halt()
		got := w.run()
		w.shapes(got, "firing", "trigger")
		if got := append(w.run(), w.run()...); len(got) != 0 || w.emails.Load() != 1 {
			w.Errorf("sent again: %v, and %d e-mails", got, w.emails.Load())
		}

		a := w.alert()
		if _, err := w.services[1].Snooze(w.Context(), operations.AlertNote{Alert: a.ID, Who: "bea", Text: " "}, time.Hour); flex.KindOf(err) != flex.Malformed {
			w.Errorf("a rest without a word: %v", err)
		}

		_, err := w.services[1].Snooze(w.Context(), operations.AlertNote{Alert: a.ID, Who: "bea", Text: "the supplier mends it"}, time.Hour)
		w.check(err)
		w.wait(59 * time.Minute)
		if got := w.run(); len(got) != 0 {
			w.Errorf("sent while it rests: %v", got)
		}

		w.wait(2 * time.Minute)
		if got := w.run(); len(got) != 3 {
			w.Errorf("%d messages after the rest", len(got))
		}

		_, err = w.services[0].Acknowledge(w.Context(), operations.AlertNote{Alert: a.ID, Who: "ada", Text: "on it"})
		w.check(err)
		if a := w.alert(); a.AcknowledgedBy != "ada" || a.Note != "on it" || a.Round != 2 {
			w.Errorf("%+v", a)
		}

		w.resume()
		w.wait(30 * time.Second)
		if got := w.run(); len(got) != 0 {
			w.Errorf("ended at once: %v", got)
		}

		w.wait(2 * time.Minute)
		w.shapes(w.run(), "resolved", "resolve")
		if _, err := w.services[0].Acknowledge(w.Context(), operations.AlertNote{Alert: a.ID, Who: "ada"}); flex.KindOf(err) != flex.NotFound {
			w.Errorf("an alert that ended: %v", err)
		}

		if w.emails.Load() != 3 {
			w.Errorf("%d e-mails", w.emails.Load())
		}
	})
}

// shapes holds what each route was sent against its form.
func (w *watch) shapes(got []received, what, action string) {
	w.Helper()
	if len(got) != 3 || got[0].path != "/a/api/v2/alerts" || got[1].path != "/hook" || got[2].path != "/pager" {
		w.Fatalf("%d messages: %v", len(got), got)
	}

	var posted []struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
		GeneratorURL        string
	}
	w.check(json.Unmarshal([]byte(got[0].body), &posted))
	if p := posted[0]; p.Labels["kind"] != "halted" || p.Labels["severity"] != "critical" || p.GeneratorURL != alertsPage || !p.EndsAt.After(p.StartsAt) ||
		(what == "resolved") != p.EndsAt.Before(time.UnixMicro(w.micro.Load()).Add(time.Second)) {
		w.Errorf("Alertmanager got %s", got[0].body)
	}

	// The library takes messages of these minutes alone; the signature does not depend on it.
	hook, err := standard.NewWebhook(w.routes[1].Secret.Reveal())
	w.check(err)
	w.check(hook.VerifyIgnoringTimestamp([]byte(got[1].body), got[1].header))
	for _, part := range []string{`"type":"alert.` + what + `"`, `"kind":"halted"`, `"level":"critical"`, "a firmware fault", `"page":"` + alertsPage + `"`} {
		if !strings.Contains(got[1].body, part) {
			w.Errorf("%s is not in %s", part, got[1].body)
		}
	}

	for _, part := range []string{`"routing_key":"a-key"`, `"event_action":"` + action + `"`, `"dedup_key":"`, `"client_url":"` + alertsPage + `"`} {
		if !strings.Contains(got[2].body, part) {
			w.Errorf("%s is not in %s", part, got[2].body)
		}
	}
}

// TestAlerts_Patience has an exception last too short a time, then long enough, and be of too few.
func TestAlerts_Patience(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.addRoutes()
		s := w.services[0]
		w.check(s.SetAlertRule(w.Context(), operations.AlertRule{Kind: operations.Halted, Enabled: true, Threshold: 1, For: 5 * time.Minute}))
		w.halt()
		w.run()
		w.resume()

		w.wait(3 * time.Minute)
		w.run()
		w.halt()
		w.run()
		w.wait(4 * time.Minute)
		if got := w.run(); len(got) != 0 {
			w.Errorf("too soon: %v", got)
		}

		w.wait(time.Minute)
		if got := w.run(); len(got) != 3 {
			w.Errorf("%d messages after five minutes", len(got))
		}

		w.resume()
		w.wait(2 * time.Minute)
		w.run()
		w.check(s.SetAlertRule(w.Context(), operations.AlertRule{Kind: operations.Halted, Enabled: true, Threshold: 2}))
		w.halt()
		if got := w.run(); len(got) != 0 {
			w.Errorf("below the threshold: %v", got)
		}

		for _, bad := range []operations.AlertRule{{Kind: "x", Threshold: 1}, {Kind: operations.Halted}, {Kind: operations.Halted, Threshold: 1, For: -1}} {
			if err := s.SetAlertRule(w.Context(), bad); flex.KindOf(err) != flex.Malformed {
				w.Errorf("%+v: %v", bad, err)
			}
		}
	})
}

// TestAlerts_Retried has the receiver fail: the message comes again as the same, what follows it
// waits for it, and after two hours it is given up, and said to be.
func TestAlerts_Retried(t *testing.T) {
	eachWatch(t, func(w *watch) {
		r := &store.AlertRoute{Name: "h", Kind: operations.RouteWebhook, Target: w.url + "/hook", Heartbeat: 5 * time.Minute}
		w.check(w.services[0].AddRoute(w.Context(), r))
		if got := w.run(); len(got) != 1 || !strings.Contains(got[0].body, `"type":"alert.heartbeat"`) {
			w.Errorf("the first heartbeat: %v", got)
		}

		w.answer(http.StatusInternalServerError)
		w.halt()
		first := w.run()
		if len(first) != 1 {
			w.Fatalf("%d attempts", len(first))
		}

		w.resume()
		w.wait(2 * time.Minute)
		again := w.run()
		if len(again) != 1 || again[0].header.Get("Webhook-Id") != first[0].header.Get("Webhook-Id") {
			w.Errorf("the second attempt: %v", again)
		}

		w.answer(http.StatusNoContent)
		w.wait(time.Minute)
		if got := w.run(); len(got) != 1 || !strings.Contains(got[0].body, "alert.firing") {
			w.Errorf("once it answers: %v", got)
		}

		w.wait(time.Minute)
		if got := w.run(); len(got) != 1 || !strings.Contains(got[0].body, "alert.resolved") {
			w.Errorf("then: %v", got)
		}

		w.answer(http.StatusNotFound)
		w.check(w.services[0].TestRoute(w.Context(), "h"))
		n := 0
		for range 60 {
			for _, g := range w.run() {
				if strings.Contains(g.body, "alert.test") {
					n++
				}
			}

			w.wait(5 * time.Minute)
		}

		p, err := w.services[0].AlertList(w.Context(), false)
		w.check(err)
		i := slices.IndexFunc(p.Sent, func(m store.SentAlert) bool { return m.What == "test" })
		if n != 12 || p.Sent[i].Tries != 12 || p.Sent[i].Error != "it answered 404" || p.Routes[0].Secret != "" {
			w.Errorf("%d attempts; %+v", n, p.Sent[i])
		}
	})
}

// TestWarnOfMail has a process without a mail relay say by which routes it sends nothing.
func TestWarnOfMail(t *testing.T) {
	eachWatch(t, func(w *watch) {
		for _, r := range []*store.AlertRoute{
			{Name: "mails", Kind: operations.RouteEmail, Target: "night@flexd.example"},
			{Name: "hooks", Kind: operations.RouteWebhook, Target: w.url + "/h"},
		} {
			w.check(w.services[0].AddRoute(w.Context(), r))
		}

		var text bytes.Buffer
		s := w.services[0]
		s.Log = slog.New(slog.NewTextHandler(&text, nil))
		w.check(s.WarnOfMail(w.Context()))
		if text.Len() > 0 {
			w.Errorf("with a relay: %s", text.String())
		}

		s.Mail = nil
		w.check(s.WarnOfMail(w.Context()))
		if said := text.String(); !strings.Contains(said, "route=mails") || strings.Contains(said, "hooks") {
			w.Errorf("without a relay: %s", said)
		}
	})
}

// TestAlerts_SlowRoute has a route answer only once another was sent its alert.
func TestAlerts_SlowRoute(t *testing.T) {
	eachWatch(t, func(w *watch) {
		arrived := make(chan struct{})
		w.before = func(q *http.Request) {
			if q.URL.Path == "/quick" {
				close(arrived)
				return
			}

			select {
			case <-arrived:
			case <-q.Context().Done():
				w.Error("it was sent nothing else before it answered")
			}
		}

		for _, name := range []string{"slow", "quick"} {
			r := &store.AlertRoute{Name: name, Kind: operations.RouteWebhook, Target: w.url + "/" + name}
			w.check(w.services[0].AddRoute(w.Context(), r))
			w.check(w.services[0].TestRoute(w.Context(), name))
		}

		_, err := w.services[0].SendAlerts(w.Context())
		w.check(err)
		if got := w.take(); len(got) != 2 {
			w.Errorf("%d arrived", len(got))
		}
	})
}

// TestAddRoute_Faults says what is wrong with a route.
func TestAddRoute_Faults(t *testing.T) {
	eachWatch(t, func(w *watch) {
		for want, r := range map[string]store.AlertRoute{
			"1 to 60 bytes":   {Kind: operations.RouteWebhook, Target: w.url},
			"no kind":         {Name: "x", Kind: "pigeon", Target: w.url},
			"critical or":     {Name: "x", Kind: operations.RouteWebhook, Target: w.url, Level: "high"},
			"once a minute":   {Name: "x", Kind: operations.RouteWebhook, Target: w.url, Heartbeat: time.Second},
			"by webhook":      {Name: "x", Kind: operations.RoutePagerDuty, Secret: "k", Heartbeat: time.Hour},
			"no e-mail":       {Name: "x", Kind: operations.RouteEmail, Target: "nobody"},
			"no URL":          {Name: "x", Kind: operations.RouteWebhook, Target: "https://"},
			"https://":        {Name: "x", Kind: operations.RouteWebhook, Target: "ftp://example.com/"},
			"integration":     {Name: "x", Kind: operations.RoutePagerDuty},
			"has no secret":   {Name: "x", Kind: operations.RouteAlertmanager, Target: w.url, Secret: "s"},
			"a secret begins": {Name: "x", Kind: operations.RouteWebhook, Target: w.url, Secret: "s"},
		} {
			if err := w.services[0].AddRoute(w.Context(), &r); flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), want) {
				w.Errorf("%+v: %v, want %s", r, err, want)
			}
		}

		w.addRoutes()
		if err := w.services[0].AddRoute(w.Context(), w.routes[0]); flex.KindOf(err) != flex.Conflict {
			w.Errorf("twice: %v", err)
		}

		w.halt()
		w.check(w.services[0].DropRoute(w.Context(), "a"))
		if got := w.run(); len(got) != 2 {
			w.Errorf("without a route that is gone: %v", got)
		}

		if err := w.services[0].DropRoute(w.Context(), "a"); flex.KindOf(err) != flex.NotFound {
			w.Errorf("gone: %v", err)
		}
	})
}

// What ended more than 90 days ago is forgotten in steps of a bounded number, by either process, and nothing younger.
func TestAlerts_Purged(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.check(w.services[0].AddRoute(w.Context(), &store.AlertRoute{Name: "h", Kind: operations.RouteWebhook, Target: w.url + "/hook"}))
		w.halt()
		w.run()
		w.resume()
		w.wait(2 * time.Minute)
		w.run()

		drop := func(limit int) (n int64) {
			w.check(w.services[1].DB.WriteAll(w.Context(), func(all *store.All) (err error) {
				n, err = all.DropAlerts(w.Context(), all.Now().Add(-operations.AlertRetention), limit)
				return err
			}))
			return n
		}

		w.wait(operations.AlertRetention - 3*time.Minute)
		if n := drop(10); n != 0 {
			w.Errorf("%d records of less than 90 days are forgotten", n)
		}

		w.wait(4 * time.Minute)
		if n := drop(1); n != 2 {
			w.Errorf("%d of a message and an alert are forgotten", n)
		}

		for i, want := range []int{1, 0} {
			r, err := w.services[i].PurgeAlerts(w.Context())
			if err != nil || r.Count != want || r.More {
				w.Errorf("run %d: %+v, %v", i, r, err)
			}
		}
	})
}

// An alert that lasts is listed though more came and went since than a list has.
func TestAlertList_Lasting(t *testing.T) {
	eachWatch(t, func(w *watch) {
		note := func(kind operations.Kind) {
			w.Helper()
			w.check(w.services[0].DB.WriteAll(w.Context(), func(all *store.All) error {
				a, err := all.NoteAlert(w.Context(), flex.Alert{Kind: string(kind), Level: "critical", Count: 1, Title: "planted"})
				if err != nil || !a.FiredAt.IsZero() {
					return err
				}
				_, err = all.FireAlert(w.Context(), a)
				return err
			}))
		}

		note(operations.LimitLinkLost)
		for range 200 {
			w.wait(time.Second)
			note(operations.Waiting)
			w.wait(time.Second)
			note(operations.LimitLinkLost)
			w.check(w.services[0].DB.WriteAll(w.Context(), func(all *store.All) error {
				_, err := all.EndAlerts(w.Context(), all.Now())
				return err
			}))
		}

		p, err := w.services[1].AlertList(w.Context(), false)
		w.check(err)
		if n := len(p.Alerts); n != 201 || p.Alerts[n-1].Kind != string(operations.LimitLinkLost) {
			w.Errorf("%d alerts, and the one that fires is not the last of them", n)
		}
	})
}

// The end of an alert that fired longer than messages are kept is sent all the same.
func TestAlerts_PurgedWhileFiring(t *testing.T) {
	eachWatch(t, func(w *watch) {
		w.check(w.services[0].AddRoute(w.Context(), &store.AlertRoute{Name: "h", Kind: operations.RouteWebhook, Target: w.url + "/hook"}))
		w.halt()
		w.run()
		w.wait(operations.AlertRetention + time.Minute)
		if got := w.run(); len(got) != 0 {
			w.Errorf("sent again: %v", got)
		}

		if r, err := w.services[0].PurgeAlerts(w.Context()); err != nil || r.Count != 0 {
			w.Errorf("%+v, %v", r, err)
		}

		w.resume()
		w.wait(2 * time.Minute)
		if got := w.run(); len(got) != 1 || !strings.Contains(got[0].body, "alert.resolved") {
			w.Errorf("at the end: %v", got)
		}
	})
}
