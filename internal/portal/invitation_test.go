package portal_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/reward"
)

// invite imports an event from 20:00 to 21:00 of the next evening, until 12:00 of which homes answer.
func (e *evening) invite(t *testing.T, reference string, change flex.Watts, optOut bool) flex.ProductID {
	t.Helper()
	from := time.Date(2026, 1, 16, 20, 0, 0, 0, time.UTC)
	events := &product.Service{DB: e.db, Control: e.control}
	done, err := events.Import(t.Context(), e.org, []flex.Product{{
		Span: flex.Span{From: from, To: from.Add(time.Hour)}, Reference: reference, Service: "dfs", Change: change,
		Price: flex.FromGBPPerMWh(300), OptOut: optOut, AnswerBy: from.Add(-8 * time.Hour), Who: "a test",
	}})
	if err != nil || len(done) != 1 || done[0].Invited != 1 {
		t.Fatal(done, err)
	}
	return done[0].ID
}

// TestHousehold_Invitation has a home answer an event that it must accept to take part, until answers end and
// after that, on the page.
func TestHousehold_Invitation(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "Your home")
		refuse(t, page, "Invitations")

		id := e.invite(t, "DFS-1", -5_000, false).String()
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "Invitations", "16 January, 20:00 to 21:00: your home is asked to draw less electricity.",
			"30 p is paid for each kWh.", "Please answer by 16 January, 12:00. Without an answer you do not take part.", ">Take part<", ">Do not take part<")

		event := e.page + "/event"
		status, page = e.post(t, event, "event", id, "act", "join")
		want(t, status, page, 200, "Thank you. You take part in it.", "You take part.", ">Do not take part<")
		refuse(t, page, ">Take part<")
		status, page = e.post(t, event, "event", id, "act", "leave")
		want(t, status, page, 200, "Thank you. You do not take part in it.", "You do not take part.", ">Take part<")
		refuse(t, page, ">Do not take part<")

		e.post(t, event, "event", id, "act", "join")
		e.now = time.Date(2026, 1, 16, 13, 0, 0, 0, time.UTC)
		e.page = e.link(t, reward.LinkOptions{})
		status, page = e.get(t, e.page)
		want(t, status, page, 200, "You take part.", ">Do not take part<")
		event = e.page + "/event"

		status, page = e.post(t, event, "event", id, "act", "leave")
		want(t, status, page, 200, "You do not take part.")
		refuse(t, page, ">Take part<")
		status, page = e.post(t, event, "event", id, "act", "join")
		want(t, status, page, 422, "It is too late for this answer.")
		status, page = e.post(t, event, "event", "x", "act", "join")
		want(t, status, page, 404)

		e.now = time.Date(2026, 1, 16, 21, 0, 0, 0, time.UTC)
		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		refuse(t, page, "Invitations")
	})
}

// TestHousehold_InvitationUnanswered tells a home that said nothing to an event that it takes part in unless it
// refuses, and one that is withdrawn is told no more.
func TestHousehold_InvitationUnanswered(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		id := e.invite(t, "DNO-1", 5_000, true)
		e.invite(t, "DNO-2", -5_000, false)
		e.now = e.now.Add(19 * time.Hour) // answers ended
		status, page := e.get(t, e.link(t, reward.LinkOptions{}))
		want(t, status, page, 200, "asked to draw more electricity.", "You take part, unless you say otherwise.",
			"Answers ended on 16 January, 12:00, so you do not take part.")

		events := &product.Service{DB: e.db, Control: e.control}
		_, err := events.Withdraw(t.Context(), e.org, id, "a test")
		if err != nil {
			t.Fatal(err)
		}

		_, page = e.get(t, e.link(t, reward.LinkOptions{}))
		refuse(t, page, "asked to draw more electricity.")
		want(t, status, page, 200, "so you do not take part.")
	})
}
