package api

func (s *Server) schedule(r *request) (answer, error)            { return s.pending(r) }
func (s *Server) scheduleExplanation(r *request) (answer, error) { return s.pending(r) }
func (s *Server) whatIf(r *request) (answer, error)              { return s.pending(r) }
