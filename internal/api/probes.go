package api

import (
	"fmt"

	"flexd/internal/flex"
)

// healthz says that the process answers.
func (s *Server) healthz(*request) (answer, error) {
	return ok(map[string]string{"status": "ok"}), nil
}

// readyz says whether requests can be served: the database answers, and what Ready asks.
func (s *Server) readyz(r *request) (answer, error) {
	if err := s.Access.Ready(r.Context()); err != nil {
		return answer{}, notReady(err)
	}

	if s.Ready != nil {
		if err := s.Ready(r.Context()); err != nil {
			return answer{}, notReady(err)
		}
	}

	return ok(map[string]string{"status": "ready"}), nil
}

func notReady(err error) error {
	return fmt.Errorf("%w (%w)", flex.Fail(flex.Unavailable, "not ready"), err)
}
