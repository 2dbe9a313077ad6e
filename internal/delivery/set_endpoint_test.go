package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// set sets the schedule endpoint.
func (h *fixture) set(s delivery.Settings) {
	h.Helper()
	if _, _, err := h.service.SetEndpoint(context.Background(), h.Org, flex.ScheduleEndpoint, s); err != nil {
		h.Fatal(err)
	}
}

// An answer of the endpoint as it was before says nothing of the endpoint as it is now: it
// stays enabled, and what left for the former one is sent to it as soon as that has ended.
func TestSetEndpoint_UnderWay(t *testing.T) {
	for _, code := range []int{404, 410, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			each(t, func(h *fixture) {
				defer h.work(h.service)()
				e := h.endpoint(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/new" {
						time.Sleep(5 * time.Second)
						w.WriteHeader(code)
					}
				})

				id := h.plan(time.Hour, h.chargers(1)...)[0]
				time.Sleep(time.Second)
				h.set(delivery.Settings{URL: "http://client.example/new"})
				time.Sleep(5 * time.Second)
				got := e.all()
				if len(got) != 2 || got[1].path != "/new" || got[1].after.Round(time.Millisecond) != 5*time.Second || h.state(id) != flex.DeliveryAccepted {
					h.Errorf("%d attempts, %s", len(got), h.state(id))
				}

				if set, err := h.service.Endpoint(context.Background(), h.Org, flex.ScheduleEndpoint); err != nil || !set.Enabled {
					h.Errorf("the endpoint is not enabled: %s, %v", set.Reason, err)
				}
			})
		})
	}
}

// An endpoint that was set anew is not left alone for what it failed at before, and what
// waited for another try is sent at once.
func TestSetEndpoint_Resting(t *testing.T) {
	each(t, func(h *fixture) {
		defer h.work(h.service)()
		e := h.endpoint(status(500))
		h.plan(10*time.Hour, h.chargers(20)...)
		time.Sleep(time.Hour)
		if n := h.metric("flexd_push_endpoints_resting"); n != 1 {
			h.Fatalf("%v endpoints rest", n)
		}

		before := len(e.all())
		e.say(nil)
		h.set(delivery.Settings{URL: "http://client.example/new"})
		time.Sleep(time.Second)
		if n := len(e.all()) - before; n != 20 {
			h.Errorf("%d of 20 were sent at once", n)
		}
	})
}

// While one attempt hangs, pushes are stopped and then may go on: they go on at once, not
// when it ends.
func TestPush_StoppedWhileUnderWay(t *testing.T) {
	ctx, off := context.Background(), false
	const url = "http://client.example/p"

	for name, stop := range map[string]func(h *fixture) error{
		"halted": func(h *fixture) error {
			return h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a fault"})
		},
		"disabled": func(h *fixture) error { h.set(delivery.Settings{URL: url, Enabled: &off}); return nil },
		"deleted":  func(h *fixture) error { return h.service.DeleteEndpoint(ctx, h.Org, flex.ScheduleEndpoint) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(h *fixture) {
				defer h.work(h.service)()

				cars := h.chargers(2)
				hangs := cars[0].String()
				e := h.endpoint(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Flexd-Asset-Id") == hangs {
						time.Sleep(12 * time.Second)
					} else if time.Since(h.start) < time.Second {
						w.WriteHeader(500)
					}
				})

				other := h.plan(time.Hour, cars...)[1] // is due again after 5 s
				time.Sleep(2 * time.Second)
				if err := stop(h); err != nil {
					h.Fatal(err)
				}

				time.Sleep(4 * time.Second)
				if n := len(e.all()); n != 2 {
					h.Errorf("%d attempts while pushes were stopped", n-2)
				}

				if name != "halted" {
					h.set(delivery.Settings{URL: url, Secret: e.secret})
				} else if err := h.service.Resume(ctx, delivery.HaltScope{}); err != nil {
					h.Fatal(err)
				}

				time.Sleep(time.Second)
				if got := e.all(); len(got) != 3 || got[2].after.Round(time.Millisecond) != 6*time.Second || h.state(other) != flex.DeliveryAccepted {
					h.Errorf(
						"%d attempts one second after they could go on, %s",
						len(got),
						h.state(other),
					)
				}
			})
		})
	}
}

// A claim whose answer was lost is taken back also while nothing may be sent.
func TestPush_LostClaimHalted(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		h.plan(time.Hour, h.chargers(1)...)
		ctx := context.Background()
		claim := func(lost bool) int {
			c, err := h.db.ClaimPushes(
				ctx,
				h.Org,
				store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: 7, Most: 10, Lease: 30 * time.Second, Lost: lost},
			)
			if err != nil {
				h.Fatal(err)
			}

			return len(c.Pushes)
		}

		if n := claim(false); n != 1 {
			h.Fatalf("claimed %d", n)
		}

		if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a fault"}); err != nil {
			h.Fatal(err)
		}

		if n := claim(true); n != 0 {
			h.Errorf("claimed %d while pushes are halted", n)
		}

		if err := h.service.Resume(ctx, delivery.HaltScope{}); err != nil {
			h.Fatal(err)
		}

		if n := claim(false); n != 1 {
			h.Errorf("claimed %d after pushes were resumed", n)
		}
	})
}

// What a process had under way that died is nothing to wait for while pushes are halted.
func TestDrain_DeadProcessWhileHalted(t *testing.T) {
	each(t, func(h *fixture) {
		h.endpoint(nil)
		h.plan(time.Hour, h.chargers(1)...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := h.db.ClaimPushes(ctx, h.Org, store.ClaimOrder{Name: flex.ScheduleEndpoint, Holder: 99, Most: 10, Lease: 30 * time.Second}); err != nil {
			h.Fatal(err)
		}

		if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a fault"}); err != nil {
			h.Fatal(err)
		}

		time.Sleep(31 * time.Second)
		defer h.service.Close()
		if err := h.service.Drain(ctx, h.Org); err != nil {
			h.Error(err)
		}
	})
}

// An endpoint is made by two at once: the second gets the secret that the first was given, and
// pushes are signed with it.
func TestSetEndpoint_MadeAtOnce(t *testing.T) {
	each(t, func(h *fixture) {
		const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		const url = "http://client.example/chargers/{external_id}"
		secret := egress.NewSecret(make([]byte, egress.SecretMade))
		set := make(chan flex.Endpoint, 1)
		second := func() {
			e, made, err := h.service.SetEndpoint(
				context.Background(),
				h.Org,
				flex.ScheduleEndpoint,
				delivery.Settings{URL: url},
			)
			if err != nil || made {
				h.Errorf("the second: a secret was made: %t, %v", made, err)
			}
			set <- e
		}

		h.write(func(ctx context.Context, tx *store.Tx) error {
			if err := tx.LockOrg(ctx); err != nil {
				return err
			}

			go second()
			for h.db.Engine() == "postgres" && len(set) == 0 && h.Count(waiting) == 0 {
				runtime.Gosched()
			}

			_, err := tx.PutEndpoint(ctx, flex.Endpoint{
				Name:        flex.ScheduleEndpoint,
				URL:         url,
				Secret:      secret,
				Enabled:     true,
				Rate:        delivery.RateDefault,
				Concurrency: delivery.ConcurrencyDefault,
			})
			return err
		})

		if e := <-set; e.Secret != secret {
			t.Error("the second has another secret than the first")
		}
		if e, err := h.service.Endpoint(context.Background(), h.Org, flex.ScheduleEndpoint); err != nil || e.Secret != secret {
			t.Errorf("pushes are signed with another secret than the first has (%v)", err)
		}
	})
}
