package api

func (s *Server) exampleDispatchEvent(r *request) (answer, error)   { return s.pending(r) }
func (s *Server) exampleChargingProfile(r *request) (answer, error) { return s.pending(r) }
