package api

import "flexd/internal/flex"

// pending answers operations whose handlers are not written yet.
func (s *Server) pending(*request) (answer, error) {
	return answer{}, flex.Fail(flex.Internal, "pending")
}

func (s *Server) sessions(r *request) (answer, error) { return s.pending(r) }
