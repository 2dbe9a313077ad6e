package reward_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const (
	ownPoint   = "own"
	otherPoint = "other"
)

// hasPoint gives the site a metering point, of this test's alone, at so many minutes from the
// beginning of the event.
func (h *home) hasPoint(mpan string, minutes int) {
	h.t.Helper()
	h.now = h.monday.Period(homeSlot).Start().Add(time.Duration(minutes) * time.Minute)
	h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
		s, err := tx.Site(ctx, h.site)
		if err != nil {
			return err
		}
		s.MPAN = flex.Personal(mpan + " " + h.t.Name())
		return tx.UpdateSite(ctx, s, "")
	})
}

// neighbour goes on with another site of the same organisation, with a charger of its own.
func (h *home) neighbour() {
	h.t.Helper()
	h.site[15]++
	h.asset[15]++
	h.exec(h.t, `INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, 1, 0)`, h.site.Bytes(), h.org.Bytes())
	h.exec(h.t, `INSERT INTO asset (id, org_id, site_id, external_id, type, power_w, created_at) VALUES ($1, $2, $3, 'b', 'electric_vehicle', 7400, 0)`,
		h.asset.Bytes(), h.org.Bytes(), h.site.Bytes())
	h.exec(h.t, `INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, 1, 1)`, h.site.Bytes(), h.org.Bytes())
}

// party has another organisation enrol a point from a day before the event until minutes from
// its beginning.
func (h *home) party(name, mpan string, until int) {
	h.t.Helper()
	org, site, asset := h.org, h.site, h.asset
	h.another(name)
	h.hasPoint(mpan, -1500)
	enrol := func(state flex.EnrolmentState) {
		h.write(h.t, func(ctx context.Context, tx *store.Tx) error {
			return tx.SetEnrolment(ctx, h.site, flex.Proposition(flex.LimitedPauseMethod), state)
		})
	}

	enrol(flex.Enrolled)
	h.now = h.monday.Period(homeSlot).Start().Add(time.Duration(until) * time.Minute)
	enrol(flex.Withdrawn)
	h.org, h.site, h.asset = org, site, asset
	h.now = h.monday.Start().Add(time.Hour)
}

// An event is settled with the metering point that its site had then, whatever became of the point
// and of the site before it is settled: what was metered at a point is one home's.
func TestPlayed_PointOfThen(t *testing.T) {
	const earned = "market_receivable 20, rewards_payable -20"
	cases := []struct {
		name string
		play func(h *home)
		want string
	}{
		{"another site has the point after it", func(h *home) {
			h.hasPoint(ownPoint, -6000)
			h.asked()
			h.hasPoint(otherPoint, 31)

			h.neighbour()
			h.hasPoint(ownPoint, 32)
		}, earned},
		{"it has a point after it that was another party's", func(h *home) {
			h.party("party A", otherPoint, 60)
			h.hasPoint(ownPoint, -6000)
			h.asked()
			h.hasPoint(otherPoint, 90)
		}, earned},
		{"its point was another party's, and it has another one after it", func(h *home) {
			h.party("party B", ownPoint, 60)
			h.hasPoint(ownPoint, -6000)
			h.asked()

			h.hasPoint(otherPoint, 90)
		}, ""},
		{"its point was another party's, and it leaves after it", func(h *home) {
			h.party("party C", ownPoint, 60)
			h.hasPoint(ownPoint, -6000)
			h.asked()
			h.leaves()
		}, ""},
		{"another site takes the point within it, and both are asked", func(h *home) {
			h.hasPoint(ownPoint, -6000)
			h.asked()
			h.hasPoint(otherPoint, 10)
			h.neighbour()

			h.hasPoint(ownPoint, 10)
			h.asked()
		}, ""},
		{"it leaves within it, and is onboarded anew", func(h *home) {
			h.hasPoint(ownPoint, -6000)
			h.asked()
			h.hasPoint(ownPoint, 10)
			h.leaves()
			h.neighbour()
			h.hasPoint(ownPoint, 11)
			h.asked()
		}, ""},
		{"another site had the point before it", func(h *home) {
			h.hasPoint(ownPoint, -6000)

			h.hasPoint(otherPoint, -1)
			h.neighbour()
			h.hasPoint(ownPoint, -1)
			h.asked()
		}, earned},
		{"an earlier release took the point from another site, and did not note it", func(h *home) {
			h.hasPoint(ownPoint, -6000)
			h.exec(h.t, `UPDATE site SET mpan = NULL WHERE id = $1`, h.site.Bytes())

			h.neighbour()
			h.hasPoint(ownPoint, -5000)
			h.asked()
		}, earned},
		{"an earlier release deleted another site that had the point, and did not note it", func(h *home) {
			h.hasPoint(ownPoint, -6000)
			h.exec(h.t, `DELETE FROM asset WHERE id = $1`, h.asset.Bytes())
			h.exec(h.t, `DELETE FROM site WHERE id = $1`, h.site.Bytes())
			h.neighbour()

			h.hasPoint(ownPoint, -5000)
			h.asked()
		}, earned},
		{"an earlier release gave it another party's point, and did not note it", func(h *home) {
			h.party("party D", ownPoint, 60)
			h.hasPoint(otherPoint, -6000)
			h.exec(h.t, `UPDATE site SET mpan = (SELECT mpan FROM registration ORDER BY from_at DESC LIMIT 1) WHERE id = $1`, h.site.Bytes())

			h.asked()
		}, ""},
		{"its days of before are another point's", func(h *home) {
			h.hasPoint(otherPoint, -60000)
			h.hasPoint(ownPoint, -1440)
			h.asked()
		}, ""},
		{"it had another point before those days", func(h *home) {
			h.hasPoint(otherPoint, -60000)
			h.hasPoint(ownPoint, -homeDays*1440-1440)
			h.asked()
		}, earned},
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := newHome(t, url, 1, 100)

		for _, tt := range cases {
			t.Run(tt.name, func(t *testing.T) {
				h.t = t
				h.another(tt.name)
				tt.play(h)
				h.jobs()
				h.now = clock("2025-04-01 00:00")
				h.jobs()
				if got := h.owes(); got != tt.want {
					t.Errorf("in the books %q, want %q; %s", got, tt.want, h.said())
				}
			})
		}

		h.sound(t)
	})
}
