package api

func (s *Server) readings(r *request) (answer, error) { return s.pending(r) }
