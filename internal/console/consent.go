package console

import "flexd/internal/access"

// withdrawConsent records that the user withdrew the consent to the use of the boundary meter,
// for a reason that the audit log stores. The operator must type a word to confirm.
func (s *Server) withdrawConsent(r *request) (view, error) {
	id, org, reason, err := confirmedID(r, "site", s.Registry.SiteOrg, "withdraw")
	if err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "withdraw meter consent",
			Org:     org,
			Subject: id.String(),
			Detail:  reason,
		},
		func() error {
			_, err := s.Registry.WithdrawMeterConsent(r.Context(), org, id)
			return err
		},
	)

	return view{to: "/console/sites/" + id.String() + "?done=withdrawn"}, err
}
