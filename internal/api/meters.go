package api

func (s *Server) validateMPAN(r *request) (answer, error)        { return s.pending(r) }
func (s *Server) searchMeters(r *request) (answer, error)        { return s.pending(r) }
func (s *Server) meterByRef(r *request) (answer, error)          { return s.pending(r) }
func (s *Server) meterByAddress(r *request) (answer, error)      { return s.pending(r) }
func (s *Server) meterByMPAN(r *request) (answer, error)         { return s.pending(r) }
func (s *Server) meterByAddressQuery(r *request) (answer, error) { return s.pending(r) }
func (s *Server) meterByMPANPath(r *request) (answer, error)     { return s.pending(r) }
