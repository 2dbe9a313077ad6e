package portal

import (
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// skip has a car charge nothing until the deadline of its plan.
func (s *Server) skip(r *request, asset flex.AssetID) error {
	err := s.Control.SkipNight(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
		asset,
	)
	if flex.KindOf(err) == flex.NotFound {
		err = wrong(r.speech.say("there is no plan to skip: no car is plugged in"))
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "skipped")
}

// endAway has one car of several charge as usual again.
func (s *Server) endAway(r *request, asset flex.AssetID) error {
	err := s.Control.EndAway(
		r.Context(),
		r.visit.OrgID,
		r.visit.SiteID,
		asset,
	)
	if flex.KindOf(err) == flex.NotFound {
		err = wrong(r.speech.say("no such car or charger is at this home any more"))
	}

	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "home")
}

// away takes from when to when nobody needs a car, or that somebody is back.
func (s *Server) away(r *request) error {
	if r.PostFormValue("act") == "back" {
		err := s.Control.SetAway(
			r.Context(),
			r.visit.OrgID,
			r.visit.SiteID,
			flex.Span{},
		)
		if err != nil {
			return s.again(r, err)
		}
		return s.back(r, "home")
	}

	leaves, err := flex.ParseDay(r.PostFormValue("from"))
	back, unread := flex.ParseDay(r.PostFormValue("back"))
	if err != nil || unread != nil {
		return s.again(
			r,
			wrong(r.speech.say("give both days, as in 2026-01-31")),
		)
	}

	span := flex.Span{From: leaves.Start(), To: back.Start()}
	err = s.Control.SetAway(r.Context(), r.visit.OrgID, r.visit.SiteID, span)
	if err != nil {
		return s.again(r, err)
	}

	return s.back(r, "away")
}

// awayText says until when nothing is needed of a car, if it is so already or will be.
func (l *speech) awayText(c control.HouseholdCar, now time.Time) string {
	if c.Away.IsZero() {
		return ""
	}

	until := l.when(c.Away, c.Zone, "15:04 on Monday, 2 January")
	if c.Leaves.After(now) {
		return l.say(
			"From {1} until {2} nothing is asked for.",
			l.when(c.Leaves, c.Zone, "Monday, 2 January"),
			until,
		)
	}

	return l.say("Nothing is asked for until {1}.", until)
}
