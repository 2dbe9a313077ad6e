package api

func (s *Server) clock(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) setClock(r *request) (answer, error) { return s.pending(r) }
