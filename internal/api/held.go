package api

import (
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/wire"
)

// heldReadings answers GET /data/readings/held.
func (s *Server) heldReadings(r *request) (answer, error) {
	q := query[wire.HeldListQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	found, total, err := s.Reading.Held(
		r.Context(),
		reading.HeldQuery{
			Org:    r.who.Org,
			Asset:  q.AssetID,
			Label:  q.Label,
			State:  flex.HeldState(q.State),
			From:   q.From.Time,
			To:     q.To.Time,
			Before: q.Before,
			Limit:  q.Limit + 1,
		},
	)

	if err != nil {
		return answer{}, err
	}

	page := wire.HeldReadingPage{
		Readings: []wire.HeldReading{},
		NumTotal: total,
	}

	for _, h := range found[:min(len(found), q.Limit)] {
		page.Readings = append(page.Readings, heldReading(h))
	}

	if len(found) > q.Limit {
		page.Next = found[q.Limit-1].ID
	}

	return ok(page), nil
}

// releaseHeld answers POST /data/readings/held/{id}/release. Who released it, and why, is kept
// in the audit log.
func (s *Server) releaseHeld(r *request) (answer, error) {
	p, in := path[wire.HeldPath](r), body[wire.HeldReleaseRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("release reading", p.ID.String(), in.Reason)

	answered := answersWith(r, func(h flex.HeldReading) answer { return ok(heldReading(h)) })
	var released flex.HeldReading
	err := s.Access.Act(r.Context(), act, func() error {
		var err error
		released, err = s.Reading.Release(
			r.Context(),
			r.who.Org,
			p.ID,
			in.MeterReplaced,
		)

		return err
	})

	return answered(released), err
}

func heldReading(h flex.HeldReading) wire.HeldReading {
	return wire.HeldReading{
		ID:             h.ID,
		AssetID:        h.AssetID,
		Label:          h.Label,
		StartTimestamp: wire.At(h.From),
		EndTimestamp:   wire.At(h.To),
		Value:          float64(h.Value) / 1e6,
		Reason:         h.Reason,
		Detail:         h.Detail,
		HeldAt:         wire.At(h.HeldAt),
		State:          string(h.State()),
		DecidedAt:      wire.At(h.DecidedAt),
	}
}
