package api

func (s *Server) callback(r *request) (answer, error)         { return s.pending(r) }
func (s *Server) event(r *request) (answer, error)            { return s.pending(r) }
func (s *Server) plugIn(r *request) (answer, error)           { return s.pending(r) }
func (s *Server) plugOut(r *request) (answer, error)          { return s.pending(r) }
func (s *Server) intentUpdate(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) chargeNow(r *request) (answer, error)        { return s.pending(r) }
func (s *Server) chargeNowDeleted(r *request) (answer, error) { return s.pending(r) }
func (s *Server) tariffUpdate(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) plugInSchedule(r *request) (answer, error)   { return s.pending(r) }
func (s *Server) intent(r *request) (answer, error)           { return s.pending(r) }
