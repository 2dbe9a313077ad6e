package api

func (s *Server) componentToken(r *request) (answer, error) { return s.pending(r) }
