package api

import (
	"bytes"

	"flexd/internal/store"
	"flexd/internal/wire"
)

// envelope answers GET /grid/envelope.
func (s *Server) envelope(r *request) (answer, error) {
	q := query[wire.EnvelopeQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	e, err := s.Grid.Envelope(r.Context(), r.who.Org, store.Scope{Group: q.Group, GSPGroup: q.GSPGroup})
	if err != nil {
		return answer{}, err
	}
	if q.Format != "csv" {
		return ok(e.Document(q.Windows)), nil
	}

	var b bytes.Buffer
	if err := e.WriteCSV(&b, q.Windows); err != nil {
		return answer{}, err
	}

	a := ok(text(b.Bytes()))
	a.set("Content-Type", "text/csv; charset=utf-8")
	a.set("Content-Disposition", `attachment; filename="envelope.csv"`)
	return a, nil
}
