package api

func (s *Server) initialise(r *request) (answer, error)          { return s.pending(r) }
func (s *Server) checkEligibility(r *request) (answer, error)    { return s.pending(r) }
func (s *Server) onboard(r *request) (answer, error)             { return s.pending(r) }
func (s *Server) onboardSiteAndAsset(r *request) (answer, error) { return s.pending(r) }
func (s *Server) siteEligibility(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) enrol(r *request) (answer, error)               { return s.pending(r) }
func (s *Server) unenrol(r *request) (answer, error)             { return s.pending(r) }
func (s *Server) offboard(r *request) (answer, error)            { return s.pending(r) }
func (s *Server) meterConsent(r *request) (answer, error)        { return s.pending(r) }
func (s *Server) dispatchConsent(r *request) (answer, error)     { return s.pending(r) }
func (s *Server) dispatchDeconsent(r *request) (answer, error)   { return s.pending(r) }
