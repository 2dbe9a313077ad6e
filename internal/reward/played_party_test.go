package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Two organisations have a device each at one metering point. What the home leaves out is the
// party's that has the point; the other one's event is not credited, nor is either's of a
// half-hour in which the point changed hands.
func TestPlayed_TwoParties(t *testing.T) {
	const earned = "market_receivable 20, rewards_payable -20"
	cases := []struct {
		name    string
		mpan    string
		enrol   int // minutes from the event's beginning until the first organisation enrols the point; it ends at the other
		leave   int
		first   string
		second  string
		another bool // the second has a point of its own
		after   bool // the second's event is in the half-hour after the first's
	}{
		{"the first has the point all the time", "1200023305967", -600, 6000, earned, "", false, false},
		{"the first left before", "1200023305968", -600, -30, earned, earned, false, false},
		{"the first left within the event", "1200023305970", -600, 10, earned, "", false, false},
		{"the second has another point", "1200023305971", -600, 6000, earned, earned, true, false},
		// a site goes from one organisation to the other in the middle of an evening, with an
		// event of each
		{"it moves within the first's event", "1200023305972", -600, 10, earned, earned, false, true},
		{"it moves between the events", "1200023305973", -600, 30, earned, earned, false, true},
		{"it moves within the second's event", "1200023305974", -600, 31, earned, "", false, true},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)
		begin := h.monday.Period(homeSlot).Start()

		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				enrolment := func(state flex.EnrolmentState) {
					t.Helper()
					h.write(t, func(ctx context.Context, tx *store.Tx) error {
						return tx.SetEnrolment(ctx, h.site, flex.Proposition(flex.LimitedPauseMethod), state)
					})
				}

				var point string
				for _, name := range []string{"first", "second"} {
					h.another(tt.name + ", the " + name)
					mpan := tt.mpan
					if name == "second" && tt.another {
						mpan = "1200023305999"
					}

					h.exec(t, `UPDATE site SET mpan = $2 WHERE id = $1`, h.site.Bytes(), mpan)
					h.exec(t, `INSERT INTO dispatch_method (org_id, site_id, method, consented_at) VALUES ($1, $2, 'limited_pause', 0)`, h.org.Bytes(), h.site.Bytes())
					if name == "first" {
						h.now = begin.Add(time.Duration(tt.enrol) * time.Minute)
						enrolment(flex.Enrolled)
						h.now = begin.Add(time.Duration(tt.leave) * time.Minute)
						enrolment(flex.Withdrawn)
						h.now = h.monday.Start()

						// as the database keeps it, which may be sealed
						point = storetest.At(t, h.db, url).Strings(`SELECT mpan FROM registration WHERE site_id = $1`, h.site.Bytes())[0]
						h.exec(t, `UPDATE site SET mpan = $2 WHERE id = $1`, h.site.Bytes(), point)
					} else if !tt.another {
						h.exec(t, `UPDATE site SET mpan = $2 WHERE id = $1`, h.site.Bytes(), point)
					}
					if name == "second" && tt.after {
						h.askedAfter()
					} else {
						h.asked()
					}

					h.jobs()
					h.now = clock("2025-04-01 00:00")
					h.jobs()
					want := tt.first
					if name == "second" {
						want = tt.second
					}
					if got := h.owes(); got != want {
						t.Errorf("the %s: in the books %q, want %q", name, got, want)
					}
				}
			})
		}

		h.sound(t)
	})
}

// askedAfter is asked for the half-hour after.
func (h *home) askedAfter() {
	h.t.Helper()
	slot := h.monday.Period(homeSlot + 1).Span()
	for back := range homeDays + 1 {
		kwh := 4.0
		if back == 0 {
			kwh = 2
		}
		then := h.monday.Add(-back).Period(homeSlot + 1).Span()
		h.put = append(h.put, flex.Reading{AssetID: h.asset, Span: then, Label: flex.ProvisionalConsumption, Value: flex.Micro(kwh * 1e6)})
	}

	h.flush()
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		a, err := tx.Asset(ctx, h.asset)
		if err != nil {
			return err
		}
		return tx.SetPause(ctx, a, slot, 0)
	})
	h.now = slot.To.Add(time.Minute)
}
