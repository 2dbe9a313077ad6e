package api

import (
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/wire"
	"time"
)

// exceptions answers GET /operations/exceptions.
func (s *Server) exceptions(r *request) (answer, error) {
	found, unread, err := s.Operations.Exceptions(r.Context(), r.who.Org)
	if err != nil {
		return answer{}, err
	}

	return ok(wire.ExceptionsResponse{
		Exceptions: contract.Exceptions(found),
		Unread:     contract.Unread(unread),
	}), nil
}

// alerts answers GET /operations/alerts.
func (s *Server) alerts(r *request) (answer, error) {
	q := query[wire.AlertListQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	found, next, err := s.Operations.AlertsOf(
		r.Context(),
		r.who.Org,
		q.Firing,
		q.Before,
		q.Limit,
	)

	if err != nil {
		return answer{}, err
	}

	out := wire.AlertListResponse{
		Alerts: make([]wire.Alert, len(found)),
		Next:   next,
	}

	for i := range found {
		out.Alerts[i] = alertOf(&found[i])
	}

	return ok(out), nil
}

func alertOf(a *flex.Alert) wire.Alert {
	return wire.Alert{
		ID:             a.ID,
		Kind:           a.Kind,
		Level:          a.Level,
		Count:          a.Count,
		Title:          a.Title,
		Text:           a.Text,
		SinceAt:        wire.At(a.SinceAt),
		FiredAt:        wire.At(a.FiredAt),
		ResolvedAt:     wire.At(a.ResolvedAt),
		AcknowledgedAt: wire.At(a.AcknowledgedAt),
		SnoozedUntil:   wire.At(a.SnoozedTo),
	}
}

// acknowledgeAlert answers POST /operations/alerts/{id}/acknowledge.
func (s *Server) acknowledgeAlert(r *request) (answer, error) {
	at, b := path[wire.AlertPath](r), body[wire.AlertAcknowledgement](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return s.answerAlert(r, "acknowledge alert", at.ID, b.Note, func(n operations.AlertNote) (flex.Alert, error) {
		return s.Operations.Acknowledge(r.Context(), n)
	})
}

// snoozeAlert answers POST /operations/alerts/{id}/snooze.
func (s *Server) snoozeAlert(r *request) (answer, error) {
	at, b := path[wire.AlertPath](r), body[wire.AlertSnooze](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	rest := time.Duration(b.Minutes) * time.Minute

	return s.answerAlert(r, "snooze alert", at.ID, b.Note, func(n operations.AlertNote) (flex.Alert, error) {
		return s.Operations.Snooze(r.Context(), n, rest)
	})
}

// answerAlert keeps what an operator notes on an alert, and writes it to the audit log first.
func (s *Server) answerAlert(
	r *request,
	what string,
	id flex.AlertID,
	note string,
	keep func(operations.AlertNote) (flex.Alert, error),
) (answer, error) {
	act := r.auditEntry(what, id.String(), note)
	var a flex.Alert
	err := s.Access.Act(r.Context(), act, func() error {
		var err error
		a, err = keep(operations.AlertNote{
			Alert: id,
			Org:   r.who.Org,
			Who:   act.Who,
			Text:  note,
		})

		return err
	})
	if err != nil {
		return answer{}, err
	}

	return ok(alertOf(&a)), nil
}

// assetView answers GET /operations/asset/{asset_id}: what the console's page of the asset shows.
func (s *Server) assetView(r *request) (answer, error) {
	at, q := path[wire.AssetPath](r), query[wire.AssetViewQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	asked := control.PastQuery{
		Org:     r.who.Org,
		Asset:   at.AssetID,
		Explain: true,
		Chosen:  q.Schedule,
	}

	if err := asked.Between(
		(*flex.Day)(q.From),
		(*flex.Day)(q.To),
	); err != nil {
		return answer{}, err
	}

	p, err := s.Control.Past(r.Context(), asked)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.AssetView(p)), nil
}

// siteView answers GET /operations/site/{site_id}: what the console's page of the site shows of it.
func (s *Server) siteView(r *request) (answer, error) {
	at := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	v, err := s.Registry.SiteViewOf(r.Context(), r.who.Org, at.SiteID)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.SiteView(&v)), nil
}

// fleetView answers GET /operations/fleet: what the console's page of the fleet shows.
func (s *Server) fleetView(r *request) (answer, error) {
	v, err := s.Operations.FleetView(r.Context(), r.who.Org)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.FleetView(v)), nil
}
