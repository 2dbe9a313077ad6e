package api

func (s *Server) siteToken(r *request) (answer, error) { return s.pending(r) }

func (s *Server) initiateOAuth(r *request) (answer, error) { return s.pending(r) }
