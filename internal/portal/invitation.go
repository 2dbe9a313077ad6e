package portal

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
)

// invitation is an event that the home is invited to, which is not over.
type invitation struct {
	flex.Invitation
	Now time.Time
}

// MayJoin reports whether the home may say that it takes part.
func (v invitation) MayJoin() bool {
	return !v.TakesPart && v.Now.Before(v.AnswerBy)
}

// MayLeave reports whether the home may say that it does not take part. Who did not answer an event
// that needs an answer may say no as long as yes is possible.
func (v invitation) MayLeave() bool {
	return v.TakesPart || v.AnsweredAt.IsZero() && v.MayJoin()
}

// invitations are the events that the visitor's home is invited to, by when they begin. What was
// withdrawn, or failed, is none.
func (s *Server) invitations(r *request) ([]invitation, error) {
	found, now, err := s.Products.Invitations(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
	)

	var list []invitation
	for _, v := range found {
		switch v.State(now) {
		case flex.ProductOpen, flex.ProductSent:
			list = append(list, invitation{v, now})
		}
	}

	return list, err
}

// eventText says what an event asks for, and when.
func (l *speech) eventText(v invitation) string {
	when := l.span(v.Span)
	if v.Change < 0 {
		return l.say("{1}: your home is asked to draw less electricity.", when)
	}

	return l.say("{1}: your home is asked to draw more electricity.", when)
}

// paysText says what an event pays.
func (l *speech) paysText(v invitation) string {
	return l.say(
		"{1} p is paid for each kWh. Your share is in your balance once it is settled.",
		l.decimal(reward.PriceText(&v.Price)),
	)
}

// partText says whether the home takes part in an event.
func (l *speech) partText(v invitation) string {
	until := l.clock(v.AnswerBy)
	answered := !v.AnsweredAt.IsZero()

	switch {
	case v.TakesPart && answered:
		return l.say("You take part.")
	case v.TakesPart:
		return l.say("You take part, unless you say otherwise.")
	case answered:
		return l.say("You do not take part.")
	case v.MayJoin():
		return l.say("Please answer by {1}. Without an answer you do not take part.", until)
	}

	return l.say("Answers ended on {1}, so you do not take part.", until)
}

// answerEvent takes the home's answer to an invitation.
func (s *Server) answerEvent(r *request) error {
	var id flex.ProductID
	err := id.UnmarshalText([]byte(r.PostFormValue("event")))
	if err != nil {
		return flex.Fail(flex.NotFound, "this page is not known")
	}

	takesPart := r.PostFormValue("act") == "join"
	_, _, err = s.Products.Answer(
		r.Context(),
		r.visit.OrgID,
		id,
		r.visit.SiteID,
		takesPart,
		HouseholdName,
	)
	if flex.KindOf(err) == flex.Conflict {
		err = wrong(r.speech.say("it is too late for this answer"))
	}

	if err != nil {
		return s.again(r, err)
	}

	if takesPart {
		return s.back(r, "joined")
	}

	return s.back(r, "left")
}
