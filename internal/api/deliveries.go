package api

func (s *Server) endpoint(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) setEndpoint(r *request) (answer, error) { return s.pending(r) }
func (s *Server) deliveries(r *request) (answer, error)  { return s.pending(r) }
func (s *Server) replay(r *request) (answer, error)      { return s.pending(r) }
