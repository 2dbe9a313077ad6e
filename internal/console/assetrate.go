package console

import (
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
)

// changeRate fixes the planned power of an asset, or deletes what was learned about it.
func (s *Server) changeRate(r *request) (view, error) {
	id, org, err := pathID(r, "asset", s.Registry.AssetOrg)
	if err != nil {
		return view{}, err
	}

	result := view{to: "/console/assets/" + id.String() + "?done=rated"}
	if r.PostFormValue("act") == "reset" {
		return result, s.act(
			r,
			access.Action{
				Act:     "reset charging rate",
				Org:     org,
				Subject: id.String(),
			},
			func() error {
				return s.Control.ResetRate(r.Context(), org, id)
			},
		)
	}

	text := strings.TrimSpace(r.PostFormValue("kw"))
	kw, err := strconv.ParseFloat(text, 64)
	if err != nil || kw != kw {
		return view{}, flex.Fail(
			flex.Malformed,
			"%q is not a power in kW, such as 3.6",
			text,
		)
	}

	return result, s.act(
		r,
		access.Action{
			Act:     "pin charging rate",
			Org:     org,
			Subject: id.String(),
			Detail:  text + " kW",
		},
		func() error {
			return s.Control.PinRate(r.Context(), org, id, flex.FromKW(kw))
		},
	)
}
