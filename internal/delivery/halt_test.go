package delivery_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

func TestHalt(t *testing.T) {
	each(t, func(h *fixture) {
		e := h.endpoint(nil)
		other := h.newService() // as of another process
		defer h.work(h.service)()
		defer h.work(other)()
		ctx := context.Background()
		cars := h.chargers(3)
		h.plan(time.Hour, cars...)
		time.Sleep(time.Second)
		if err := other.Halt(ctx, "ada", "a firmware fault"); err != nil {
			t.Fatal(err)
		}

		if err := h.service.Halt(ctx, "bea", "the same"); flex.KindOf(err) != flex.Conflict {
			t.Errorf("halted twice: %v", err)
		}

		old := h.plan(time.Hour, cars...)
		held := h.plan(time.Hour, cars[:2]...)
		short := h.plan(time.Minute, cars[2])
		time.Sleep(10 * time.Minute)
		if n := len(e.all()); n != 3 {
			t.Errorf("%d pushes arrived, 3 of them before the halt", n)
		}

		if err := h.service.Drain(ctx, h.Org); err != nil { // does not wait for what is held
			t.Error(err)
		}

		if err := h.service.Resume(ctx); err != nil {
			t.Fatal(err)
		}

		if err := other.Resume(ctx); flex.KindOf(err) != flex.Conflict {
			t.Errorf("resumed twice: %v", err)
		}

		time.Sleep(time.Second)
		if n := len(e.all()); n != 5 {
			t.Errorf("%d pushes arrived, the newest of two cars and nothing else after the halt", n)
		}

		for id, want := range map[flex.EventID]store.DeliveryState{held[0]: store.Delivered, old[1]: store.Superseded, short[0]: store.Lapsed} {
			if got := h.state(id); got != want {
				t.Errorf("a push is %s, want %s", got, want)
			}
		}
	})
}

// A halt that two people end is ended by the second, within an hour of the first, whoever began it.
func TestHalt_Two(t *testing.T) {
	each(t, func(h *fixture) {
		ctx := context.Background()
		if err := h.service.HaltForTwo(ctx, "ada", "a firmware fault"); err != nil {
			t.Fatal(err)
		}

		for i, step := range []struct {
			who   string
			wait  time.Duration
			ended bool
			kind  flex.Kind
		}{
			{"ada", 0, false, flex.Internal}, {"ada", 0, false, flex.Conflict}, {"bea", delivery.ResumeAskedFor, false, flex.Internal},
			{"bea", 0, false, flex.Conflict}, {"cid", time.Minute, true, flex.Internal}, {"cid", 0, false, flex.Conflict},
		} {
			time.Sleep(step.wait)
			ended, err := h.service.ResumeBy(ctx, step.who)
			if ended != step.ended || flex.KindOf(err) != step.kind {
				t.Errorf("step %d, %s: ended %t, %v", i, step.who, ended, err)
			}
		}

		// Any other ends at once, and the machine's own people end any.
		for _, end := range []func() error{
			func() error { _, err := h.service.ResumeBy(ctx, "ada"); return err }, func() error { return h.service.Resume(ctx) },
		} {
			if err := h.service.Halt(ctx, "ada", "a fault"); err != nil {
				t.Fatal(err)
			}

			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestHalt_Reason(t *testing.T) {
	one(t, func(h *fixture) {
		ctx := context.Background()
		for length, ok := range map[int]bool{0: false, 1: true, delivery.ReasonMax: true, delivery.ReasonMax + 1: false} {
			err := h.service.Halt(ctx, "ada", strings.Repeat("x", length))
			if (err == nil) != ok {
				t.Errorf("a reason of %d bytes: %v", length, err)
			}

			if ok {
				if err := h.service.Resume(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
