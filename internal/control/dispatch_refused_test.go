package control_test

import (
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// markDispatched has what is beside the newest dispatch of an asset planned again, as the service does that delivers it.
func (h *fixture) markDispatched(id flex.AssetID) {
	h.Helper()
	newest := h.newestDispatch(id)
	h.write(func(tx *store.Tx) error { return tx.MarkDispatched(h.Context(), id, newest) })
}

// newestDispatch is the newest dispatch of an asset.
func (h *fixture) newestDispatch(id flex.AssetID) (newest flex.EventID) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) error {
		all, err := tx.Dispatches(h.Context(), 100)
		for _, d := range all {
			if newest.IsZero() && d.Assets[0].ID == id {
				newest = d.ID
			}
		}
		return err
	})
	if err != nil || newest.IsZero() {
		h.Fatal(newest, err)
	}

	return newest
}

// refuse has the client refuse the newest dispatch of an asset for good.
func (h *fixture) refuse(id flex.AssetID) {
	h.Helper()
	newest := h.newestDispatch(id)
	h.Exec(`UPDATE outbox SET turn_at = NULL, tries = 1 WHERE subject = $1`, newest.Bytes())
	h.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT d.org_id, d.event_id, 'dispatch', 'dispatch', 1, d.issued_at, 'rejected', 1, d.issued_at, 0, 400, '', '' FROM dispatch d
		WHERE d.event_id = $1`, newest.Bytes())
	h.markDispatched(id)
}

// report has the client report an asset's part in its newest dispatch.
func (h *fixture) report(id flex.AssetID, status flex.CallbackStatus) {
	h.Helper()
	newest := h.newestDispatch(id)
	h.write(func(tx *store.Tx) error {
		return tx.AddCallback(h.Context(), flex.Callback{EventID: newest, AssetID: id, Status: status})
	})
	h.markDispatched(id)
}

// asked is what an asset's page says that dispatches asked it for, and how many of all that were sent are not followed.
func (h *fixture) asked(id flex.AssetID) (asked []control.PastDispatch, lost int) {
	h.Helper()
	today := flex.DayAt(h.db.Now())
	past, err := h.service.Past(h.Context(), control.PastQuery{
		Org:   h.Org,
		Asset: id,
		Show:  "dates",
		From:  today,
		To:    today.Add(1),
	})
	if err != nil {
		h.Fatal(err)
	}

	for _, d := range past.Dispatches {
		if d.NotFollowed {
			lost++
		}
	}

	return past.Asked(), lost
}

// TestDispatch_Refused has a dispatch be refused, in each way that a client has, and be followed after all: the plan, the schedule, the page
// and the report have the battery go on by its own plan, and only as long as it is refused.
func TestDispatch_Refused(t *testing.T) {
	for _, how := range []string{"refused", "rejected", "failed"} {
		t.Run(how, func(t *testing.T) {
			eachOf(t, "2026-01-14T22:40:00Z", func(h *fixture) {
				id := h.nightBattery()
				before := h.sentTo(id)
				h.order(-2000, "2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", id)
				h.runBatteries()
				around := h.sentTo(id)
				if around == before {
					t.Fatalf("planned %s with and without the dispatch: nothing is shown", before)
				}

				switch how {
				case "refused":
					h.refuse(id)
				case "rejected":
					h.acceptDispatches()
					h.report(id, flex.Rejected)
				case "failed":
					h.acceptDispatches()
					h.report(id, flex.Failed)
				}

				if n := h.runBatteries(); n != 1 || h.sentTo(id) != before {
					t.Errorf("%d batteries are planned again: %s, not %s", n, h.sentTo(id), before)
				}
				if asked, lost := h.asked(id); len(asked) != 0 || lost != 1 {
					t.Errorf("the page says that it was asked for %v, and %d are not followed", asked, lost)
				}

				in, _ := h.newest()
				r, err := h.service.ReportInstruction(h.Context(), h.Org, in.ID)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range r.Slots[:2] {
					if farFrom(s.Expected, s.Baseline) || farFrom(r.Short(&s), max(s.Asked, -s.Asked)) {
						t.Errorf("%d Wh are expected, %d short: %+v", s.Expected, r.Short(&s), s)
					}
				}

				if how != "failed" {
					return
				}
				h.report(id, flex.Executed)
				h.runBatteries()
				if got := h.sentTo(id); got != around {
					t.Errorf("it follows after all, and is planned %s, not %s", got, around)
				}
			})
		})
	}
}

// TestInstruction_Refused has the battery that an instruction called report that it does not follow: another one is called in its place.
func TestInstruction_Refused(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		h.nightBattery()
		h.nightBattery()
		h.until("2026-01-15T02:31:00Z")
		h.acceptDispatches()

		in := h.send(asks("2026-01-15T03:00:00Z", "2026-01-15T04:00:00Z", -1800))
		if len(in.Assets) != 1 {
			t.Fatalf("%d are called", len(in.Assets))
		}
		h.acceptDispatches()
		h.wait(30 * time.Second)
		if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || r.Count != 0 {
			t.Fatalf("%d are called or released while it follows: %v", r.Count, err)
		}

		h.report(in.Assets[0].AssetID, flex.Rejected)
		h.runBatteries()
		h.wait(30 * time.Second)
		if r, err := h.service.FollowInstructionsOf(h.Context(), h.Org); err != nil || r.Count == 0 {
			t.Errorf("nobody is called in its place: %v", err)
		}
	})
}

// TestBattery_OwnRefused has the client refuse what the battery's own plan sent: in that half-hour the battery covers the home, and the
// same is not sent again.
func TestBattery_OwnRefused(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		h.until("2026-01-15T02:31:00Z")
		sent := h.dispatches(id)
		soon := "2026-01-15T03:30:00Z"
		if m := modeAt(h.modes(id), soon); m != battery.ModeCharge || !strings.HasSuffix(sent, "03:30 in") {
			h.Fatalf("planned to %s, sent %s: nothing is shown", m, sent)
		}

		h.refuse(id)
		h.runBatteries()
		if m := modeAt(h.modes(id), soon); m != battery.ModeSelfUse || h.dispatches(id) != sent {
			h.Errorf("planned to %s, sent %s", m, h.dispatches(id))
		}
	})
}

// TestBattery_Unsent has a battery be planned again for a half-hour soon, of which nothing was sent: the newer plan counts, and is sent.
func TestBattery_Unsent(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		soon := "2026-01-14T23:30:00Z"
		if m := modeAt(h.modes(id), soon); m != battery.ModeSelfUse || h.dispatches(id) != "" {
			t.Fatalf("planned to %s, sent %s: nothing is shown", m, h.dispatches(id))
		}

		h.charged(id, "2026-01-14T23:00:00Z", 60)
		h.runBatteries()
		if m := modeAt(h.modes(id), soon); m != battery.ModeCharge || h.dispatches(id) != "23:30 in" {
			t.Errorf("planned to %s, sent %s", m, h.dispatches(id))
		}
	})
}

// TestDispatch_MarketAsked: a dispatch that is taken back is of the market of the newest one that the battery follows, not of one that
// its client refused.
func TestDispatch_MarketAsked(t *testing.T) {
	each(t, "2026-01-14T22:40:00Z", func(h *fixture) {
		id := h.nightBattery()
		span := flex.Span{From: at("2026-01-15T03:00:00Z"), To: at("2026-01-15T04:00:00Z")}
		asked := func(want string) {
			h.Helper()
			h.write(func(tx *store.Tx) error {
				got, err := tx.MarketAsked(h.Context(), id, span)
				if got != want {
					t.Errorf("the market is %q, not %q", got, want)
				}

				return err
			})
		}

		for _, market := range []string{"dno", "dfs"} {
			h.write(func(tx *store.Tx) error {
				_, err := tx.AddDispatch(h.Context(), store.Dispatch{
					Market: market,
					Span:   span,
					Batch:  true,
					Assets: []store.DispatchedAsset{{ID: id, Power: -2000, Without: []flex.Watts{0, 0}}},
				})
				return err
			})
			asked(market)
		}

		h.refuse(id)
		asked("dno")
	})
}
