package portal_test

import (
	"net/url"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// give credits the home with a bonus.
func (h *home) give(t *testing.T, key string, pence flex.Pence) {
	t.Helper()
	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
		tr := ledger.Booked{}
		tr.Key, tr.Kind, tr.SiteID, tr.Time = key, ledger.SignupBonus, h.site, flex.Span{From: h.now}
		tr.Cause, tr.Postings = ledger.Cause{By: "test"}, ledger.Given(pence)
		_, err := tx.Post(t.Context(), &tr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The page says what came lately, what is to go, and when an open withdrawal is expected.
func TestPortal_Progress(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.now = time.Date(2025, 12, 30, 12, 0, 0, 0, time.UTC)
		e.give(t, "december", 100)
		e.now = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
		e.give(t, "january", 60)
		e.page = e.link(t, reward.LinkOptions{})

		status, page := e.get(t, e.page)
		want(t, status, page, 200, "£8.40 to go until you can withdraw.", `<progress max="1000" value="160"`,
			"<dt>Earned this month</dt><dd>£0.60</dd>", "<dt>This year</dt><dd>£0.60</dd>", "<dt>In total</dt><dd>£1.60</dd>")

		e.now = time.Date(2026, 2, 6, 12, 0, 0, 0, time.UTC) // a Friday
		e.give(t, "february", 2000)
		e.withoutCode(t)
		e.page = e.link(t, reward.LinkOptions{})
		e.post(
			t,
			e.page+"/account",
			"name",
			"Ann Other",
			"sort_code",
			"12-34-56",
			"account_number",
			"12345678",
		)
		_, page = e.get(t, e.page)
		status, page = e.post(
			t,
			e.page+"/withdraw",
			"amount",
			"20",
			"form",
			formOf(t, page),
		)
		want(t, status, page, 200, "£20.00, asked for on 6 February 2026: waits for approval, expected at your bank on 9 February 2026 if it is approved in time.",
			"<dt>Earned this month</dt><dd>£20.00</dd>", "<dt>This year</dt><dd>£20.60</dd>", "£8.40 to go")

		err := e.db.Write(t.Context(), e.org, func(tx *store.Tx) error {
			return tx.SetSettings(t.Context(), flex.OrgSettings{Payout: flex.PayoutSettings{WithoutCode: true, FileFormat: "bacs18"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		status, page = e.get(t, e.page) // sent on Monday, processed on Tuesday
		want(
			t,
			status,
			page,
			200,
			"expected at your bank on 11 February 2026 if it is approved in time.",
		)
	})
}

// withoutCode has the links of the home ask for no code.
func (h *home) withoutCode(t *testing.T) {
	t.Helper()
	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
		return tx.SetSettings(t.Context(), flex.OrgSettings{Payout: flex.PayoutSettings{WithoutCode: true}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A link that has ended names the way back; one that never was says nothing.
func TestPortal_WayBack(t *testing.T) {
	h := open(t)
	link := h.link(t, reward.LinkOptions{})
	err := h.db.Write(t.Context(), h.org, func(tx *store.Tx) error {
		return tx.SetSettings(t.Context(), flex.OrgSettings{Books: flex.BooksSettings{PayerName: "Acme Energy"}})
	})
	if err != nil {
		t.Fatal(err)
	}

	h.now = h.now.Add(time.Hour)
	status, page := h.get(t, link)
	want(
		t,
		status,
		page,
		404,
		"its time is over",
		"the app or the site of Acme Energy.",
		`href="app://rewards?x=1&amp;y=2"`,
	)

	never, err := url.JoinPath(h.server.URL, "balance", "never")
	if err != nil {
		t.Fatal(err)
	}

	status, page = h.get(t, never)
	want(t, status, page, 404, "its time is over")
	refuse(t, page, "Acme")

	// A day later it is as if it had never been, although no other link was made.
	h.now = h.now.Add(24*time.Hour + time.Second)
	status, page = h.get(t, link)
	want(t, status, page, 404, "its time is over")
	refuse(t, page, "Acme")
}
