package console

import (
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/registry"
)

// setCalls sets how often instructions may call a site. The audit log stores the reason.
func (s *Server) setCalls(r *request) (view, error) {
	id, org, reason, err := confirmedID(r, "site", s.Registry.SiteOrg, "")
	if err != nil {
		return view{}, err
	}

	var agreed flex.AgreedCalls
	agreed.PerDay, err = callsField(r, "per_day")
	if err != nil {
		return view{}, err
	}

	agreed.PerMonth, err = callsField(r, "per_month")
	if err != nil {
		return view{}, err
	}

	err = s.act(
		r,
		access.Action{
			Act:     "set agreed calls",
			Org:     org,
			Subject: id.String(),
			Detail:  agreed.String() + ": " + reason,
		},
		func() error {
			_, err := s.Registry.ChangeSite(
				r.Context(),
				org,
				id,
				registry.SiteChange{Calls: &agreed},
			)

			return err
		},
	)

	return view{to: "/console/sites/" + id.String() + "?done=called"}, err
}

// callsField reads a number of calls; an empty field is no limit.
func callsField(r *request, name string) (flex.Optional[int], error) {
	text := strings.TrimSpace(r.PostFormValue(name))
	if text == "" {
		return flex.Optional[int]{}, nil
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		return flex.Optional[int]{}, flex.Fail(
			flex.Malformed,
			"%q is not a number of calls; leave the field empty for no limit",
			text,
		)
	}

	return flex.Some(n), nil
}
