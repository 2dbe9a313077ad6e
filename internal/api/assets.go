package api

func (s *Server) listAssets(r *request) (answer, error)        { return s.pending(r) }
func (s *Server) createAsset(r *request) (answer, error)       { return s.pending(r) }
func (s *Server) assetByExternalID(r *request) (answer, error) { return s.pending(r) }
func (s *Server) getAsset(r *request) (answer, error)          { return s.pending(r) }
func (s *Server) updateAsset(r *request) (answer, error)       { return s.pending(r) }
func (s *Server) deleteAsset(r *request) (answer, error)       { return s.pending(r) }
