package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// registrar is the service that enrols sites and takes consents.
func (h *home) registrar() *registry.Service { return &registry.Service{DB: h.db} }

// within does something ten minutes after the Monday's event began, and turns the clock back
// to a minute after it.
func (h *home) within(do func() error) {
	h.t.Helper()
	end := h.now
	h.now = h.monday.Period(homeSlot).Start().Add(10 * time.Minute)
	if err := do(); err != nil {
		h.t.Fatal(err)
	}
	h.now = end
}

// What changes while an event is under way: it is credited what was delivered, once, on the
// terms of its day, or not at all where the use of the meter was not consented to throughout.
// 2 kWh less at 100 £/MWh are 20 p.
func TestPlayed_ChangedInTheMiddle(t *testing.T) {
	const all = "market_receivable 20, rewards_payable -20"
	terms := func(h *home, values map[string]string) func() error {
		return func() error {
			_, err := h.service.SetTerms(h.t.Context(), h.org, values, h.monday.Add(1), "ann")
			return err
		}
	}

	consent := func(h *home, minutes int) func() error {
		return func() error {
			if _, err := h.registrar().WithdrawMeterConsent(h.t.Context(), h.org, h.site); err != nil || minutes < 0 {
				return err
			}
			h.now = h.now.Add(time.Duration(minutes) * time.Minute)
			_, err := h.registrar().GiveMeterConsent(h.t.Context(), h.org, h.site, h.now)
			return err
		}
	}

	moved := func(h *home, back bool) func() error {
		return func() error {
			ctx, r := h.t.Context(), h.registrar()
			if _, err := r.Unenrol(ctx, h.org, h.site, flex.Proposition(flex.LimitedPauseMethod)); err != nil {
				return err
			}
			next := flex.FullScheduleMethod
			if back {
				next = flex.LimitedPauseMethod
			}

			return h.db.Write(ctx, h.org, func(tx *store.Tx) error {
				if err := tx.AddMethod(ctx, h.site, next); err != nil {
					return err
				}
				return tx.SetEnrolment(ctx, h.site, flex.Proposition(next), flex.Enrolled)
			})
		}
	}

	cases := []struct {
		name string
		do   func(h *home) func() error
		want string
	}{
		{"the share, the baseline and the rounding", func(h *home) func() error {
			return terms(h, map[string]string{"user_share": "0.1", "baseline": "nominated", "loss_factor": "0.5", "claw_back": "true"})
		}, all},
		{"consent withdrawn", func(h *home) func() error { return consent(h, -1) }, ""},
		{"consent withdrawn and given again", func(h *home) func() error { return consent(h, 5) }, ""},
		{"moved to full control", func(h *home) func() error { return moved(h, false) }, all},
		{"unenrolled and enrolled again", func(h *home) func() error { return moved(h, true) }, all},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for i, tt := range cases {
			if storetest.LeftOut(url, i) {
				continue
			}

			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				h.write(t, func(ctx context.Context, tx *store.Tx) error {
					if err := tx.AddMethod(ctx, h.site, flex.LimitedPauseMethod); err != nil {
						return err
					}
					return tx.SetEnrolment(ctx, h.site, flex.Proposition(flex.LimitedPauseMethod), flex.Enrolled)
				})

				h.asked()
				h.within(tt.do(h))
				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q", got, tt.want)
				}
			})
		}

		h.sound(t)
	})
}
