package api

func (s *Server) balance(r *request) (answer, error)      { return s.pending(r) }
func (s *Server) balanceURL(r *request) (answer, error)   { return s.pending(r) }
func (s *Server) transactions(r *request) (answer, error) { return s.pending(r) }
func (s *Server) flexEvents(r *request) (answer, error)   { return s.pending(r) }
