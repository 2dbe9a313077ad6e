package delivery_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func TestPush_Arrives(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(nil)
		a := h.chargers(1)[0]
		id := h.plan(9*time.Hour, a)[0]
		h.settle()
		got := e.all()
		if len(got) != 1 {
			h.Fatalf("%d pushes arrived", len(got))
		}

		g := got[0]
		want := `{"connectorId":1,"csChargingProfiles":{"chargingProfileId":`
		if g.id != id.String() || g.asset != a.String() || g.generation != 1 || g.path != "/chargers/x"+a.String()+"?id="+a.String() ||
			!strings.HasPrefix(g.body, want) || g.header.Get("Content-Type") != "application/json" || g.header.Get("Flexd-Kind") != "schedule" {
			h.Errorf("got %+v", g)
		}

		if g.after != 0 {
			h.Errorf("it left after %v", g.after)
		}

		d, err := h.service.Delivery(context.Background(), h.Org, id)
		if err != nil || d.State != flex.DeliveryAccepted || string(d.Body) != g.body || len(d.Attempts) != 1 || d.Attempts[0].Status != 200 {
			h.Errorf("delivery %+v, %v", d, err)
		}
	})
}

// Attempts leave at exact instants: at once, then 5 s, 10 s ... 5 min after each other, with
// the same id and the same bytes, as long as the schedule lives.
func TestPush_Retries(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500": status(500), "503": status(503), "429": status(429), "408": status(408), "302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one(t, func(h *fixture) {
				defer h.work(h.service)()
				e := h.endpoint(answer)
				id := h.plan(20*time.Minute, h.chargers(1)...)[0]

				time.Sleep(time.Hour)
				var at []string
				for _, g := range e.all() {
					at = append(at, g.after.String())
					if g.id != id.String() || g.body != e.all()[0].body {
						t.Errorf("a retry differs: %+v", g)
					}
				}

				if got, want := strings.Join(at, " "), "0s 5s 15s 35s 1m15s 2m35s 5m15s 10m15s 15m15s"; got != want {
					t.Errorf("attempts after %s, want %s", got, want)
				}

				d, err := h.service.Delivery(context.Background(), h.Org, id)
				if err != nil || d.State != flex.DeliveryExpired || len(d.Attempts) != 9 || d.Tries != 9 || !strings.Contains(d.Last.Error, name) {
					t.Errorf("delivery %+v, %v", d, err)
				}
			})
		})
	}
}

// An endpoint that asks for more time is given it, up to twice the planned delay.
func TestPush_RetryAfter(t *testing.T) {
	for asked, want := range map[string]time.Duration{"1": 5 * time.Second, "8": 8 * time.Second, "3600": 10 * time.Second} {
		one(t, func(h *fixture) {
			defer h.work(h.service)()
			e := h.endpoint(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", asked)
				w.WriteHeader(503)
			})

			h.plan(time.Hour, h.chargers(1)...)
			time.Sleep(11 * time.Second)
			if got := e.all(); len(got) != 2 || got[1].after != want {
				t.Errorf("asked for %s s: %d attempts, the last after %v", asked, len(got), got[len(got)-1].after)
			}
		})
	}
}

// An endpoint that never answers costs one attempt of 15 s, and is tried again.
func TestPush_Silence(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"never answers": func(c net.Conn) { io.Copy(io.Discard, c) },
		"never reads":   func(net.Conn) {},
		"one byte a second": func(c net.Conn) {
			go io.Copy(io.Discard, c)
			time.Sleep(time.Millisecond)

			for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); err == nil; _, err = c.Write([]byte("x")) {
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			one(t, func(h *fixture) {
				stop := h.work(h.service)
				h.endpoint(nil)

				h.net.handle("client.example:80", serve)
				id := h.plan(time.Hour, h.chargers(1)...)[0]
				time.Sleep(30 * time.Second)
				d, err := h.service.Delivery(context.Background(), h.Org, id)
				if err != nil || d.Tries != 1 || d.Last.Took != 15*time.Second || d.State != flex.DeliveryPending ||
					!strings.Contains(d.Last.Error, "did not answer within 15s") {
					t.Errorf("delivery %+v, %v", d, err)
				}

				stop()
				time.Sleep(time.Second)
			})
		})
	}
}

// A 2xx takes the push, even if the rest of the answer never comes.
func TestPush_EndlessAnswer(t *testing.T) {
	one(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(func(w http.ResponseWriter, _ *http.Request) {
			for _, err := w.Write(make([]byte, 4096)); err == nil; {
				_, err = w.Write(make([]byte, 4096))
			}
		})

		id := h.plan(time.Hour, h.chargers(1)...)[0]
		time.Sleep(time.Minute)
		d, err := h.service.Delivery(context.Background(), h.Org, id)
		if err != nil || d.State != flex.DeliveryAccepted || len(d.Last.Answer) > 1000 || len(e.all()) != 1 {
			t.Errorf("delivery %+v, %v", d, err)
		}
	})
}

func TestPush_Refused(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(status(404))
		a := h.chargers(1)[0]
		id := h.plan(24*time.Hour, a)[0]
		time.Sleep(time.Hour)
		if n := len(e.all()); n != 1 || h.state(id) != flex.DeliveryRejected {
			h.Errorf("%d attempts, %s", n, h.state(id))
		}

		// A newer generation is tried again.
		second := h.plan(24*time.Hour, a)[0]
		time.Sleep(time.Hour)
		if n := len(e.all()); n != 2 || h.state(second) != flex.DeliveryRejected || h.state(id) != flex.DeliveryRejected {
			h.Errorf("%d attempts, %s", n, h.state(second))
		}

		// Once the endpoint is set anew it is offered again what still matters.
		e.say(nil)
		if _, _, err := h.service.SetEndpoint(context.Background(), h.Org, flex.ScheduleEndpoint, delivery.Settings{URL: "http://client.example/new"}); err != nil {
			h.Fatal(err)
		}

		h.settle()
		if got := e.all(); len(got) != 3 || got[2].id != second.String() || got[2].path != "/new" || h.state(second) != flex.DeliveryAccepted {
			h.Errorf("%d attempts, %s", len(got), h.state(second))
		}

		h.settle()
	})
}

func TestPush_Gone(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		e := h.endpoint(status(410))
		as := h.chargers(3)
		id := h.plan(24*time.Hour, as[0])[0]

		h.settle()
		h.plan(24*time.Hour, as[1:]...)
		time.Sleep(time.Hour)
		set, err := h.service.Endpoint(ctx, h.Org, flex.ScheduleEndpoint)
		if err != nil || set.Enabled || !strings.Contains(set.Reason, "410") || len(e.all()) != 1 || h.state(id) != flex.DeliveryPending {
			h.Errorf("%d attempts, %s, endpoint %+v, %v", len(e.all()), h.state(id), set, err)
		}

		if _, err := h.service.Test(ctx, h.Org, flex.ScheduleEndpoint); flex.KindOf(err) != flex.Conflict {
			h.Errorf("a test of a disabled endpoint: %v", err)
		}

		e.say(nil)
		if _, _, err := h.service.SetEndpoint(ctx, h.Org, flex.ScheduleEndpoint, delivery.Settings{URL: set.URL}); err != nil {
			h.Fatal(err)
		}

		h.settle()
		if len(e.all()) != 4 || h.state(id) != flex.DeliveryAccepted {
			h.Errorf("%d attempts, %s", len(e.all()), h.state(id))
		}
	})
}

// A newer schedule waits for the attempt at the older one, and then goes at once.
func TestPush_Supersedes(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		older flex.DeliveryState
	}{"taken": {200, flex.DeliveryAccepted}, "failed": {500, flex.DeliverySuperseded}, "refused": {400, flex.DeliveryRejected}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(h *fixture) {
				defer h.work(h.service)()
				e := h.endpoint(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Flexd-Generation") == "1" {
						time.Sleep(10 * time.Second)
						w.WriteHeader(c.code)
					}
				})

				a := h.chargers(1)[0]
				first := h.plan(time.Hour, a)[0]
				time.Sleep(time.Second)
				h.plan(time.Hour, a) // never leaves: the next one replaces it
				time.Sleep(time.Second)
				third := h.plan(time.Hour, a)[0]
				time.Sleep(20 * time.Second)
				got := e.all()
				if len(got) != 2 || got[1].generation != 3 || got[1].after.Round(time.Millisecond) != 10*time.Second {
					h.Fatalf("got %+v", got)
				}

				if h.state(first) != c.older || h.state(third) != flex.DeliveryAccepted {
					h.Errorf("states %s and %s", h.state(first), h.state(third))
				}
			})
		})
	}
}

// Nothing is sent for a car that was unplugged.
func TestPush_Retracted(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(status(500))
		as := h.chargers(2)
		ids := h.plan(time.Hour, as...)
		time.Sleep(7 * time.Second) // two attempts each
		h.unplug(as[0])
		e.say(nil)
		time.Sleep(time.Minute)
		sent := map[string]int{}

		for _, g := range e.all() {
			sent[g.asset]++
		}

		if sent[as[0].String()] != 2 || sent[as[1].String()] != 3 || h.state(ids[0]) != flex.DeliveryRetracted || h.state(ids[1]) != flex.DeliveryAccepted {
			h.Errorf("%v, %s and %s", sent, h.state(ids[0]), h.state(ids[1]))
		}

		if err := h.service.Replay(context.Background(), h.Org, ids[0]); flex.KindOf(err) != flex.Conflict {
			h.Errorf("a replay of what was retracted: %v", err)
		}

		// Unplugged while an attempt is under way, and plugged in again: in order.
		e.say(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Second) })
		h.plan(time.Hour, as[1])
		time.Sleep(time.Second)
		h.unplug(as[1])
		last := h.plan(time.Hour, as[1])[0]
		time.Sleep(time.Minute)
		got := e.all()
		if g := got[len(got)-1]; g.id != last.String() || g.after-got[len(got)-2].after < 5*time.Second {
			h.Errorf("the last is %+v", g)
		}
	})
}

// One endpoint that hangs delays nobody else.
func TestPush_TarPit(t *testing.T) {
	one(t, func(h *fixture) {
		stop := h.work(h.service)
		type client struct {
			org   *fixture
			e     *endpoint
			asset []flex.AssetID
		}

		var clients []client
		for i := range 10 {
			o := h.tenant(fmt.Sprintf("org%d", i))
			host := fmt.Sprintf("client%d", i)
			c := client{org: o, e: o.endpointOf(o.Org, host, delivery.Settings{}, nil), asset: o.chargers(10)}
			if i == 0 {
				h.net.handle(host+".example:80", func(net.Conn) {})
			}

			clients = append(clients, c)
		}

		const rounds = 20 / scale
		for range rounds {
			for _, c := range clients {
				c.org.plan(time.Hour, c.asset...)
			}

			time.Sleep(time.Second)
		}

		for i, c := range clients[1:] {
			got := c.e.all()
			for _, g := range got {
				if late := g.after % time.Second; late > 500*time.Millisecond {
					t.Errorf("client %d: a push left %v late", i+1, late)
				}
			}

			if len(got) != rounds*10 {
				t.Errorf("client %d has %d pushes, want %d", i+1, len(got), rounds*10)
			}
		}

		stop()
		time.Sleep(time.Second)
	})
}

// An endpoint that is down for a day: as many rows wait as there are assets, few attempts
// are made, and once it is back each asset is sent its newest schedule, once, at the rate.
func TestPush_DownForADay(t *testing.T) {
	assets, rate := 1000/scale, 50/scale
	if os.Getenv("FLEXD_LONG") != "" {
		assets, rate = 10_000, 50
	}

	one(t, func(h *fixture) {
		defer h.work(h.service)()
		s := delivery.Settings{URL: "http://client.example/p", Rate: rate}
		e := h.endpointOf(h.Org, "client", s, status(503))
		as := h.chargers(assets)
		var last []flex.EventID
		var held [8]uint64
		for i := range held {
			last = h.plan(48*time.Hour, as...)
			time.Sleep(3 * time.Hour)
			held[i] = heap()
		}

		if most := held[0] + 4<<20; held[7] > most {
			t.Errorf("the heap grew in the day from %d to %d bytes", held[0], held[7])
		}

		pending := h.Count(`SELECT count(*) FROM outbox WHERE turn_at IS NOT NULL`)
		deliveries := h.Count(`SELECT count(*) FROM delivery`)
		down := len(e.all())
		if pending != assets || down > 8*64+24*60/5*2 || deliveries > down {
			t.Errorf("%d rows wait, %d attempts, %d deliveries", pending, down, deliveries)
		}

		if n := h.metric("flexd_push_endpoints_resting"); n != 1 {
			t.Errorf("%v endpoints rest", n)
		}

		e.say(nil)
		back := time.Since(h.start)
		time.Sleep(10 * time.Minute)
		got := e.all()[down:]
		if len(got) != assets {
			t.Errorf("%d pushes in ten minutes", len(got))
		}

		if rest, tries := h.metric("flexd_push_endpoints_resting"), h.metric("flexd_push_attempts_total"); rest != 0 || int(tries) != len(e.all()) {
			t.Errorf("%v endpoints rest, %v attempts are counted of %d", rest, tries, len(e.all()))
		}

		seen := map[string]bool{}
		for i, g := range got {
			if seen[g.id] || !slices.ContainsFunc(last, func(id flex.EventID) bool { return id.String() == g.id }) {
				t.Errorf("%s came twice or is old", g.id)
			}

			seen[g.id] = true
			if i >= rate+rate/10+1 && g.after-got[i-rate-rate/10-1].after < time.Second {
				t.Fatalf("more than the rate in the second before %v", g.after-back)
			}
		}
	})
}

// heap is what the process holds, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Two processes on one store share the work, and nothing is sent twice.
func TestPush_TwoProcesses(t *testing.T) {
	each(t, func(h *fixture) {
		other := h.newService()
		defer h.work(h.service)()
		defer h.work(other)()
		e := h.endpoint(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Millisecond) })
		const assets = 300 / scale
		as := h.chargers(assets)
		for range 3 {
			h.plan(time.Hour, as...)
			time.Sleep(5 * time.Second)
		}

		seen := map[string]int{}
		for _, g := range e.all() {
			seen[g.id]++
		}

		for id, n := range seen {
			if n > 1 {
				h.Errorf("%s was sent %d times", id, n)
			}
		}

		if len(seen) != 3*assets {
			h.Errorf("%d pushes, want %d", len(seen), 3*assets)
		}
	})
}

// A process that dies with pushes in its hands leaves them to others when its leases end.
func TestPush_DeadProcess(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpoint(nil)
		id := h.plan(time.Hour, h.chargers(1)...)[0]
		c, err := h.db.ClaimPushes(context.Background(), h.Org, store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: 99, Most: 10, Lease: 30 * time.Second})
		if err != nil || len(c.Pushes) != 1 {
			h.Fatalf("claimed %d, %v", len(c.Pushes), err)
		}

		defer h.service.Close()
		for _, wait := range []time.Duration{29 * time.Second, 2 * time.Second} {
			time.Sleep(wait)
			if _, err := h.service.DispatchDue(context.Background()); err != nil {
				h.Fatal(err)
			}

			synctest.Wait()
		}

		h.settle()
		if got := e.all(); len(got) != 1 || got[0].after < 30*time.Second || h.state(id) != flex.DeliveryAccepted {
			h.Errorf("got %+v, %s", got, h.state(id))
		}
	})
}

// What was tried under a lease that ran out is recorded late, and moves nothing: not what
// another holds by now, nor what is due again. That the client has it is recorded.
func TestPush_LateRecord(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		car := h.chargers(1)[0]
		ctx := context.Background()
		claim := func(holder int64) store.ClaimedPush {
			c, err := h.db.ClaimPushes(ctx, h.Org, store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: holder, Most: 10, Lease: 30 * time.Second})
			if err != nil || len(c.Pushes) != 1 {
				h.Fatalf("claimed %d, %v", len(c.Pushes), err)
			}

			return c.Pushes[0]
		}

		accept := func(l store.ClaimedPush) {
			h.write(func(ctx context.Context, tx *store.Tx) error {
				return tx.FinishPushes(ctx, []store.Outcome{{Push: l, State: store.PushAccepted, Attempt: store.Attempt{At: tx.Now(), Status: 200}}})
			})
		}

		h.plan(time.Hour, car)
		older := claim(1)
		newer := h.plan(time.Hour, car)[0]
		time.Sleep(31 * time.Second)
		if l := claim(2); l.EventID != newer {
			h.Fatalf("claimed %v, want the newer %v", l.EventID, newer)
		}

		accept(older)
		if s := h.state(newer); s == flex.DeliveryAccepted {
			h.Errorf("the newer schedule is %s after the older was accepted", s)
		}

		h.write(func(ctx context.Context, tx *store.Tx) error {
			if g, err := tx.Accepted(ctx, car); g != older.Generation || err != nil {
				h.Errorf("generation %d is recorded as accepted, %v, want %d", g, err, older.Generation)
			}

			return nil
		})

		time.Sleep(31 * time.Second)
		accept(claim(3)) // it is due again, as its own outcome never came
		if s := h.state(newer); s != flex.DeliveryAccepted {
			h.Errorf("the newer schedule is %s after it was accepted", s)
		}
	})
}

// A process that was stopped past its lease, and whose attempt failed, changes nothing of what
// another did with the push meanwhile.
func TestPush_StoppedProcess(t *testing.T) {
	for _, failed := range []store.PushState{store.PushPending, store.PushRejected, store.PushExpired} {
		t.Run(string(failed), func(t *testing.T) {
			each(t, func(h *fixture) {
				h.endpoint(nil)
				id := h.plan(time.Hour, h.chargers(1)...)[0]
				ctx := context.Background()
				claim := func(holder int64) store.ClaimedPush {
					c, err := h.db.ClaimPushes(ctx, h.Org, store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: holder, Most: 10, Lease: 30 * time.Second})
					if err != nil || len(c.Pushes) != 1 {
						h.Fatalf("claimed %d, %v", len(c.Pushes), err)
					}

					return c.Pushes[0]
				}

				finish := func(l store.ClaimedPush, state store.PushState) {
					h.write(func(ctx context.Context, tx *store.Tx) error {
						tried := store.Attempt{At: tx.Now(), Error: string(state)}
						if state == store.PushAccepted {
							tried = store.Attempt{At: tx.Now(), Status: 200}
						}

						return tx.FinishPushes(ctx, []store.Outcome{{Push: l, State: state, Again: tx.Now().Add(time.Minute), Attempt: tried}})
					})
				}

				const notes = `SELECT state || tries || error FROM delivery UNION ALL SELECT 'queued ' || COALESCE(turn_at, 0) || ' ' || holder || ' ' || tries FROM outbox`
				mine := claim(1)
				time.Sleep(31 * time.Second)
				theirs := claim(2)
				claimed := h.Strings(notes)
				finish(mine, failed)
				if got := h.Strings(notes); !slices.Equal(got, claimed) {
					h.Errorf("while another sends it the late one made of %q: %q", claimed, got)
				}

				finish(theirs, store.PushAccepted)
				done := h.Strings(notes)
				finish(mine, failed)
				if got := h.Strings(notes); !slices.Equal(got, done) || h.state(id) != flex.DeliveryAccepted {
					h.Errorf("after another sent it the late one made of %q: %q", done, got)
				}
			})
		})
	}
}

// A process that lost the answer to a claim has what it leased again at once, but not what
// it has under way, nor what others hold.
func TestPush_LostClaim(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		h.plan(time.Hour, h.chargers(3)...)
		claim := func(o store.ClaimOrder) (subjects []flex.EventID) {
			o.Name, o.Lease = flex.ScheduleEndpoint, 30*time.Second
			c, err := h.db.ClaimPushes(context.Background(), h.Org, o)
			if err != nil {
				h.Fatal(err)
			}

			for _, l := range c.Pushes {
				subjects = append(subjects, l.Subject)
			}

			return subjects
		}

		under, lost, others := claim(store.ClaimOrder{Holder: 6, Most: 1}), claim(store.ClaimOrder{Holder: 7, Most: 1}), claim(store.ClaimOrder{Holder: 8, Most: 1})
		if len(under)+len(lost)+len(others) != 3 {
			h.Fatalf("claimed %v, %v and %v", under, lost, others)
		}

		time.Sleep(time.Second)
		if again := claim(store.ClaimOrder{Holder: 7, Most: 10}); len(again) != 0 {
			h.Errorf("%v, which are leased, were claimed twice", again)
		}

		if again := claim(store.ClaimOrder{Holder: 7, Most: 10, Lost: true}); !slices.Equal(again, lost) {
			h.Errorf("a lost claim was of %v, and taken again was %v", lost, again)
		}
	})
}

// An asset waits since its first schedule that was not taken, however often it is planned
// anew.
func TestPush_WaitingSince(t *testing.T) {
	each(t, func(h *fixture) {
		asset := h.chargers(1)[0]
		waiting := func() (since []time.Duration) {
			err := h.db.ReadAll(context.Background(), func(all *store.All) error {
				found, _, err := all.WaitingSince(context.Background(), h.Org, all.Now().Add(time.Second), 10)
				for _, w := range found {
					since = append(since, w.Since.Sub(h.start).Round(time.Second))
				}

				return err
			})

			if err != nil {
				h.Fatal(err)
			}

			return since
		}

		h.plan(time.Hour, asset)
		time.Sleep(time.Minute)
		h.plan(time.Hour, asset)
		if got := waiting(); len(got) != 1 || got[0] != 0 {
			h.Errorf("waits since %v, want the first schedule", got)
		}

		h.endpoint(nil)
		h.settle()
		if got := waiting(); len(got) != 0 {
			h.Errorf("waits since %v, and the client has taken it", got)
		}

		h.service.Close()
		time.Sleep(time.Minute)
		h.plan(time.Hour, asset)
		if got := waiting(); len(got) != 1 || got[0] < 2*time.Minute {
			h.Errorf("waits since %v, want the schedule after the one that was taken", got)
		}
	})
}

// Closing lets attempts under way end and records them; the next process has the rest.
func TestPush_Close(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpoint(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Second) })
		stop := h.work(h.service)
		ids := h.plan(time.Hour, h.chargers(200)...)
		time.Sleep(time.Second)
		stop()
		took := time.Since(h.start)
		sent := len(e.all())
		delivered := 0

		for _, id := range ids {
			if h.state(id) == flex.DeliveryAccepted {
				delivered++
			}
		}

		if took > 6*time.Second || sent != 64 || delivered != sent {
			h.Errorf("closed after %v with %d sent and %d recorded", took, sent, delivered)
		}

		e.say(nil)
		next := h.newService()
		defer h.work(next)()
		time.Sleep(time.Second)
		if n := len(e.all()); n != 200 {
			h.Errorf("%d in all", n)
		}
	})
}

func TestPush_Rotation(t *testing.T) {
	one(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		e := h.endpoint(nil) // it goes on verifying with the old secret
		a := h.chargers(1)[0]
		set, err := h.service.Rotate(ctx, h.Org, flex.ScheduleEndpoint)
		if err != nil || set.Secret == e.secret {
			t.Fatalf("rotated to the same: %v", err)
		}

		h.plan(100*time.Hour, a)
		h.settle()
		g := e.all()[0]
		if _, err := client.VerifyWebhook(set.Secret.Reveal(), g.header, []byte(g.body), time.Now()); err != nil {
			t.Errorf("by the new secret: %v", err)
		}

		time.Sleep(delivery.RotationTime)
		e.secret = set.Secret
		h.plan(100*time.Hour, a)
		h.settle()
		if g := e.all()[1]; strings.Contains(g.header.Get("webhook-signature"), " ") {
			t.Error("after a day the old secret still signs")
		}
	})
}

// A rotation whose answer is lost is made again: the secret that the receiver has signs for
// its whole day all the same.
func TestPush_RotatedTwice(t *testing.T) {
	one(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		e := h.endpoint(nil) // it goes on verifying with the first secret
		a := h.chargers(1)[0]
		var last flex.Endpoint

		for range 2 {
			var err error
			last, err = h.service.Rotate(ctx, h.Org, flex.ScheduleEndpoint)
			if err != nil {
				t.Fatal(err)
			}
		}

		h.plan(100*time.Hour, a)
		h.settle()
		g := e.all()[0]
		for name, secret := range map[string]flex.Secret{"first": e.secret, "second": last.OldSecret, "last": last.Secret} {
			if _, err := client.VerifyWebhook(secret.Reveal(), g.header, []byte(g.body), time.Now()); err != nil {
				t.Errorf("by the %s secret: %v", name, err)
			}
		}

		time.Sleep(delivery.RotationTime)
		e.secret = last.Secret
		h.plan(100*time.Hour, a)
		h.settle()
		if g := e.all()[1]; strings.Contains(g.header.Get("webhook-signature"), " ") {
			t.Error("after a day a former secret still signs")
		}
	})
}

// The most valuable go first.
func TestPush_Order(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpointOf(h.Org, "client", delivery.Settings{Concurrency: 1}, nil)
		as := h.chargers(20)
		ids := h.plan(time.Hour, as...)
		h.write(func(ctx context.Context, tx *store.Tx) error {
			for i, a := range as {
				s, err := schedule(ctx, tx, a, time.Hour)
				if err != nil {
					return err
				}

				p := store.Push{AssetID: a, EventID: s.EventID, Kind: store.SchedulePush, Generation: s.Generation, ExpiresAt: s.End(),
					Value: flex.MicroPounds(1000 * (i * 7 % 20))}

				if i == 5 {
					p.Value = store.Urgent
				}

				if err := tx.Enqueue(ctx, p); err != nil {
					return err
				}
			}

			return nil
		})

		_ = ids
		defer h.work(h.service)()
		time.Sleep(10 * time.Second)
		got := e.all()
		if len(got) != 20 || got[0].asset != as[5].String() {
			h.Fatalf("%d came, the urgent one not first", len(got))
		}

		last := 1 << 30
		for _, g := range got[1:] {
			i := slices.IndexFunc(as, func(a flex.AssetID) bool { return a.String() == g.asset })
			if v := i * 7 % 20; v > last {
				h.Errorf("value %d after %d", v, last)
			} else {
				last = v
			}
		}
	})
}

// By a sandbox organisation's own clock a schedule is over sooner; the delays between
// attempts are those of the true clock.
func TestPush_SandboxClock(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(status(500))
		id := h.plan(time.Hour, h.chargers(1)...)[0]
		time.Sleep(16 * time.Second) // attempts after 0, 5 and 15 s
		h.write(func(ctx context.Context, tx *store.Tx) error { return tx.SetClock(ctx, 2*time.Hour) })
		time.Sleep(time.Hour)
		d, err := h.service.Delivery(context.Background(), h.Org, id)
		if n := len(e.all()); err != nil || n != 3 || d.State != flex.DeliveryExpired || len(d.Attempts) != 3 || d.Last.Status != 500 {
			h.Errorf("%d attempts, %+v, %v", n, d, err)
		}
	})
}

func TestDrain(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		e := h.endpoint(func(http.ResponseWriter, *http.Request) { time.Sleep(3 * time.Second) })
		h.plan(time.Hour, h.chargers(100)...)
		if err := h.service.Drain(ctx, h.Org); err != nil {
			h.Fatal(err)
		}

		if n := len(e.all()); n != 100 {
			h.Errorf("%d sent when it settled", n)
		}

		e.say(status(500)) // what waits for its retry is not waited for
		h.plan(time.Hour, h.chargers(100)...)
		start := time.Now()
		if err := h.service.Drain(ctx, h.Org); err != nil || time.Since(start) > 10*time.Second {
			h.Errorf("settled after %v: %v", time.Since(start), err)
		}

		h.service.Close()
	})
}

func TestPush_Test(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		ctx := context.Background()
		if _, err := h.service.Test(ctx, h.Org, flex.ScheduleEndpoint); flex.KindOf(err) != flex.NotFound {
			h.Errorf("without an endpoint: %v", err)
		}

		e := h.endpoint(nil)
		id, err := h.service.Test(ctx, h.Org, flex.ScheduleEndpoint)
		if err != nil {
			h.Fatal(err)
		}

		d, err := h.service.Await(ctx, h.Org, id, 20*time.Second)
		if err != nil || d.State != flex.DeliveryAccepted || d.Kind != string(store.TestPush) {
			h.Errorf("test %+v, %v", d, err)
		}

		if g := e.all()[0]; g.id != id.String() || g.header.Get("Flexd-Kind") != "test" || !strings.Contains(g.body, `"limit":99999.0`) {
			h.Errorf("got %+v", g)
		}

		err = h.service.Callback(ctx, h.Org, delivery.Callback{Asset: flex.AssetID{}.String(), Event: id.String(), Status: flex.Received, ReportedAt: time.Now()})
		if err != nil {
			h.Error(err)
		}

		synctest.Wait()
	})
}
