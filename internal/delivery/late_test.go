package delivery_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"flexd/internal/delivery"
	laws "flexd/internal/engine/check"
	"flexd/internal/flex"
)

// jump is the largest change in a minute of chargers that begin to draw when a schedule
// reaches them, from an instant of the test on: by what arrived alone.
func jump(arrived []received, since time.Duration) flex.Watts {
	var sent []laws.Sent
	zero := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, r := range arrived {
		if r.after < since {
			continue
		}

		at := zero.Add(r.after)
		end := at.Add(time.Duration(1000+i) * time.Hour) // one by one
		asset, _ := flex.ParseID[struct{}](r.asset)
		sent = append(sent, laws.Sent{Asset: asset, At: at, Power: 7400, Steps: []flex.Step{{Span: flex.Span{From: at, To: end}, Limit: flex.NoLimit}}})
	}

	return laws.LargestChange(sent).Power
}

// TestLateSchedules has 60 chargers, 444 kW, get what was held for them after a halt and after
// their endpoint was down: by at most 100 kW a minute, all of it within six minutes. Without a
// ramp all of it comes in a second.
func TestLateSchedules(t *testing.T) {
	const cars, most = 60, flex.Watts(100_000)
	story := func(h *fixture) {
		ctx := context.Background()
		limit := max(h.service.Ramp.All, h.service.Ramp.Group)
		e := h.endpoint(nil)
		defer h.work(h.service)()
		chargers := h.chargers(cars)

		count := func(what string, since time.Duration) {
			h.Helper()
			time.Sleep(7 * time.Minute)
			if n := len(e.all()); n != cars {
				h.Errorf("%s: %d of %d have arrived", what, n, cars)
			}

			got := jump(e.all(), since)
			if limit > 0 && got > most || limit == 0 && got < cars*7400 {
				h.Errorf("%s: %d W in a minute, with a ramp of %d", what, got, limit)
			}

			e.mu.Lock()
			e.got = nil
			e.mu.Unlock()
		}

		if err := h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}); err != nil {
			h.Fatal(err)
		}

		h.plan(10*time.Hour, chargers...)
		time.Sleep(10 * time.Minute)
		if err := h.service.Resume(ctx, delivery.HaltScope{}); err != nil {
			h.Fatal(err)
		}
		count("after a halt", 0)

		e.say(status(http.StatusServiceUnavailable))
		h.plan(10*time.Hour, chargers...)
		time.Sleep(30 * time.Minute)
		e.mu.Lock()
		e.got = nil
		e.mu.Unlock()
		e.say(status(http.StatusOK))
		back := time.Since(h.start)
		time.Sleep(6 * time.Minute) // until the next attempt finds out
		count("after the endpoint was down", back)
	}

	each(t, func(h *fixture) {
		h.service.Ramp.All = most
		story(h)
	})
	one(t, func(h *fixture) {
		h.service.Ramp.Group = most
		h.Exec(`INSERT INTO meter (mpan, import, address, postcode, energised, half_hourly, domestic, gsp_group) VALUES ('1012345678901', TRUE, '', '', TRUE, TRUE, TRUE, '_C')`)
		h.Exec(`UPDATE site SET mpan = '1012345678901' WHERE id = $1`, h.site.Bytes())
		story(h)
	})
	one(t, story)
}

// TestLateSchedules_HaltedAgain has 60 chargers get what was held for them under a ramp, and a
// second halt in the middle of it: those that have missed their turns and those whose turns
// are still to come share the ramp.
func TestLateSchedules_HaltedAgain(t *testing.T) {
	const cars, most = 60, flex.Watts(100_000)
	each(t, func(h *fixture) {
		h.service.Ramp.All = most
		ctx := context.Background()
		e := h.endpoint(nil)
		defer h.work(h.service)()
		chargers := h.chargers(cars)

		halt := func(lasts time.Duration, meanwhile func()) {
			h.Helper()
			check(h.T, h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}))
			meanwhile()
			time.Sleep(lasts)
			check(h.T, h.service.Resume(ctx, delivery.HaltScope{}))
		}

		halt(10*time.Minute, func() { h.plan(10*time.Hour, chargers...) })
		time.Sleep(time.Minute)
		halt(2*time.Minute, func() {})
		time.Sleep(7 * time.Minute)

		if n := len(e.all()); n != cars {
			h.Errorf("%d of %d have arrived", n, cars)
		}
		if got := jump(e.all(), 0); got > most {
			h.Errorf("%d W in a minute, with a ramp of %d", got, most)
		}
	})
}

// TestLateSchedules_Started has processes start one after the other while schedules wait for
// their turns: none comes earlier for it.
func TestLateSchedules_Started(t *testing.T) {
	const cars, most = 60, flex.Watts(100_000)
	each(t, func(h *fixture) {
		h.service.Ramp.All = most
		ctx := context.Background()
		e := h.endpoint(nil)
		defer h.work(h.service)()

		check(h.T, h.service.Halt(ctx, delivery.HaltOrder{Operator: "ada", Reason: "a firmware fault"}))
		h.plan(10*time.Hour, h.chargers(cars)...)
		time.Sleep(10 * time.Minute)
		check(h.T, h.service.Resume(ctx, delivery.HaltScope{}))

		time.Sleep(1300 * time.Millisecond) // between turns, and so are those after it
		for range 16 {
			check(h.T, h.service.Recover(ctx))
			time.Sleep(2500 * time.Millisecond)
		}

		time.Sleep(7 * time.Minute)
		if n := len(e.all()); n != cars {
			h.Errorf("%d of %d have arrived", n, cars)
		}
		if got := jump(e.all(), 0); got > most {
			h.Errorf("%d W in a minute, with a ramp of %d", got, most)
		}
	})
}
