package api

func (s *Server) listSites(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) createSite(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) getSite(r *request) (answer, error)       { return s.pending(r) }
func (s *Server) updateSite(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) deleteSite(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) siteToken(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) initiateOAuth(r *request) (answer, error) { return s.pending(r) }
