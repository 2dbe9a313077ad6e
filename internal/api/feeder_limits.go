package api

import (
	"strings"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// feederLimits answers GET /grid/limits.
func (s *Server) feederLimits(r *request) (answer, error) {
	q := query[wire.LimitsQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return s.limitsFor(r, q.Group, q.SiteID)
}

func (s *Server) limitsFor(
	r *request,
	group string,
	site flex.SiteID,
) (answer, error) {
	v, err := s.Control.LimitsFor(r.Context(), r.who.Org, group, site)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.FeederLimits(&v)), nil
}

// setFeederLimits answers PUT /grid/limits. Who sets limits, and ends them, is kept in the
// audit log.
func (s *Server) setFeederLimits(r *request) (answer, error) {
	in := body[wire.FeederLimitsRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	limits, err := limitsOf(&in)
	if err != nil {
		return answer{}, err
	}

	act := r.auditEntry("import limits", "", "")
	err = s.Access.Act(r.Context(), act, func() error {
		return s.Control.ImportLimits(r.Context(), r.who.Org, limits)
	})
	if err != nil {
		return answer{}, err
	}

	return s.limitsFor(r, "", flex.SiteID{})
}

func limitsOf(in *wire.FeederLimitsRequest) ([]flex.CapLimit, error) {
	if in.CSV != "" && len(in.Limits) > 0 {
		return nil, flex.Fail(
			flex.Malformed,
			"limits are given as a list or as CSV, not as both",
		)
	}
	if in.CSV != "" {
		limits, err := control.ReadLimits(strings.NewReader(in.CSV))
		if flex.KindOf(err) == flex.Invalid {
			err = flex.Fail(flex.Malformed, "csv: %v", err)
		}
		return limits, err
	}

	var limits []flex.CapLimit
	for _, l := range in.Limits {
		limits = append(limits, flex.CapLimit{
			Group:     l.Group,
			Direction: flex.Direction(l.Direction),
			Span: flex.Span{
				From: l.StartTimestamp.Time,
				To:   l.EndTimestamp.Time,
			},
			Power: flex.FromKW(l.LimitKW),
		})
	}

	return limits, nil
}

// clearFeederLimits answers DELETE /grid/limits.
func (s *Server) clearFeederLimits(r *request) (answer, error) {
	q := query[wire.LimitGroupQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("clear limits", q.Group, "")

	return noContent(), s.Access.Act(r.Context(), act, func() error {
		return s.Control.ClearLimits(r.Context(), r.who.Org, q.Group)
	})
}

// setLimitLink answers PUT /grid/limit-links.
func (s *Server) setLimitLink(r *request) (answer, error) {
	in := body[wire.LimitLinkRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	l := flex.CapLink{
		Group:    in.Group,
		Fallback: capNoun(in.FallbackKW, 0).Power,
		Export:   capNoun(in.ExportFallbackKW, 0).Power,
		Silence:  time.Duration(in.SilenceSeconds) * time.Second,
	}

	act := r.auditEntry("set limit link", in.Group, "")
	err := s.Access.Act(r.Context(), act, func() error {
		return s.Control.SetLink(r.Context(), r.who.Org, l)
	})
	if err != nil {
		return answer{}, err
	}

	return s.limitsFor(r, in.Group, flex.SiteID{})
}

// clearLimitLink answers DELETE /grid/limit-links.
func (s *Server) clearLimitLink(r *request) (answer, error) {
	q := query[wire.LimitGroupQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("end limit link", q.Group, "")

	return noContent(), s.Access.Act(r.Context(), act, func() error {
		return s.Control.ClearLink(r.Context(), r.who.Org, q.Group)
	})
}

// hearLimitLink answers POST /grid/limit-links/heard. It is a sign of life, and no act of anybody.
func (s *Server) hearLimitLink(r *request) (answer, error) {
	in := body[wire.LimitHeardRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return noContent(), s.Control.LinkAlive(r.Context(), r.who.Org, in.Group)
}
