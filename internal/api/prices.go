package api

func (s *Server) sitePriceCurve(r *request) (answer, error)  { return s.pending(r) }
func (s *Server) assetPriceCurve(r *request) (answer, error) { return s.pending(r) }
