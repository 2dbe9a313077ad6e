package console

import (
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
)

// setSupply sets what a site's connection can carry, for a reason that the audit log keeps.
func (s *Server) setSupply(r *request) (view, error) {
	id, org, reason, err := meant(s, r, "site", (*store.All).SiteOrg)
	if err != nil {
		return view{}, err
	}

	change, err := supplyForm(r)
	if err != nil {
		return view{}, err
	}

	detail := fmt.Sprintf("import %s kW, export %s kW: %s", or(kwText(change.Import), "as before"), or(kwText(change.Export), "as before"), reason)
	err = s.act(r, store.Act{Act: "set supply capacity", Org: org, Subject: id.String(), Detail: detail}, func() error {
		_, err := s.Registry.ChangeSite(r.Context(), org, id, registry.SiteChange{Supply: change})
		return err
	})

	return view{to: "/console/sites/" + id.String() + "?done=supplied"}, err
}

// supplyForm reads the capacities; a field that is left empty leaves its own as it was.
func supplyForm(r *request) (c flex.SupplyChange, err error) {
	drawn, err1 := fleetCap(r.PostFormValue("import_kw"), "")
	given, err2 := fleetCap(r.PostFormValue("export_kw"), "")

	if err1 != nil || err2 != nil {
		return c, flex.Fail(flex.Malformed, "give the capacity in kW; what is left empty stays")
	}

	return flex.SupplyChange{Import: drawn.Power, Export: given.Power}, nil
}
