package console

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/registry"
)

// setSupply sets what a site's connection can carry. The audit log stores the reason.
func (s *Server) setSupply(r *request) (view, error) {
	id, org, reason, err := confirmedID(r, "site", s.Registry.SiteOrg, "")
	if err != nil {
		return view{}, err
	}

	change, err := supplyForm(r)
	if err != nil {
		return view{}, err
	}

	from, when, err := datingForm(r, reason)
	if err != nil {
		return view{}, err
	}

	detail := fmt.Sprintf(
		"import %s kW, export %s kW, %s: %s",
		or(importText(change), "as before"),
		or(kwText(change.Export), "as before"),
		when,
		reason,
	)

	err = s.act(
		r,
		access.Action{
			Act:     "set supply capacity",
			Org:     org,
			Subject: id.String(),
			Detail:  detail,
		},
		func() error {
			_, err := s.Registry.ChangeSite(
				r.Context(),
				org,
				id,
				registry.SiteChange{
					Supply:     change,
					SupplyFrom: from,
				},
			)

			return err
		},
	)

	return view{to: "/console/sites/" + id.String() + "?done=supplied"}, err
}

// importText returns the import capacity of a change, in kW.
func importText(c flex.SupplyChange) string {
	if c.Fuse != nil {
		return kwText(new(c.Fuse.Carries()))
	}
	return kwText(c.Import)
}

// supplyForm reads the capacities; a field that is left empty leaves its own as it was.
func supplyForm(r *request) (flex.SupplyChange, error) {
	importCap, err1 := readCap(r.PostFormValue("import_kw"), "")
	exportCap, err2 := readCap(r.PostFormValue("export_kw"), "")

	var c flex.SupplyChange
	if err1 != nil || err2 != nil {
		return c, flex.Fail(
			flex.Malformed,
			"give the capacity in kW; what is left empty stays",
		)
	}

	c = flex.SupplyChange{Import: importCap.Power, Export: exportCap.Power}
	if r.PostFormValue("fuse_a") == "" {
		return c, nil
	}
	if c.Import != nil {
		return c, flex.Fail(
			flex.Malformed,
			"give the import in kW or the main fuse in A, not both",
		)
	}

	fuse, err := fuseForm(r)
	c.Fuse = &fuse

	return c, err
}

// fuseForm reads a main fuse.
func fuseForm(r *request) (flex.Fuse, error) {
	amperes, err := strconv.ParseFloat(
		strings.TrimSpace(r.PostFormValue("fuse_a")),
		64,
	)
	var f flex.Fuse
	if err != nil {
		return f, flex.Fail(
			flex.Malformed,
			"the main fuse is a number of amperes for each phase",
		)
	}

	phases := 1
	if r.PostFormValue("phases") == "3" {
		phases = 3
	}

	f = flex.Fuse{Amperes: amperes, Phases: phases}

	return f, f.Check()
}

// datingForm reads from when on a change counts, and returns that in words too. A repair has
// the reason that the form gives.
func datingForm(
	r *request,
	reason string,
) (registry.Dating, string, error) {
	var d registry.Dating
	if r.PostFormValue("repair") == "on" {
		d.Repair = reason
	}

	day := strings.TrimSpace(r.PostFormValue("from"))
	var err error
	if day != "" {
		d.From, err = flex.ParseDay(day)
	}
	if err != nil {
		return d, "", flex.Fail(flex.Malformed, "a day is written YYYY-MM-DD")
	}

	when := "from " + cmp.Or(day, "now on")
	if d.Repair != "" {
		when += ", as a repair"
	}

	return d, when, nil
}

// phasesForm reads an asset's phases, and says them in words; nothing if they are to stay.
func phasesForm(r *request) (*int, string, error) {
	text := r.PostFormValue("phases")
	switch text {
	case "":
		return nil, "", nil

	case "1", "3":
		n, err := strconv.Atoi(text)
		return &n, fmt.Sprintf(" on %d-phase", n), err
	}

	return nil, "", flex.Fail(flex.Malformed, "an asset has 1 or 3 phases")
}

// phaseForm reads which of three phases an asset is on, and returns it in words too. It
// returns nil if the phase is to stay as it is, and an empty name if it is not known.
func phaseForm(r *request) (*string, string) {
	switch text := r.PostFormValue("phase"); text {
	case "":
		return nil, ""
	case "unknown":
		return new(""), ", phase unknown"
	default:
		return &text, ", phase " + text
	}
}

// setPower sets the rated power of one of a site's assets. The audit log stores the reason.
func (s *Server) setPower(r *request) (view, error) {
	id, org, reason, err := confirmedID(r, "asset", s.Registry.AssetOrg, "")
	if err != nil {
		return view{}, err
	}

	power, err := readCap(r.PostFormValue("power_kw"), "")
	if err != nil || power.Power == nil || *power.Power <= 0 {
		return view{}, flex.Fail(
			flex.Malformed,
			"give the power in kW, above 0",
		)
	}

	from, when, err := datingForm(r, reason)
	if err != nil {
		return view{}, err
	}

	phases, message, err := phasesForm(r)
	if err != nil {
		return view{}, err
	}

	phase, on := phaseForm(r)
	detail := fmt.Sprintf("%s kW%s%s, %s: %s", kwText(power.Power), message, on, when, reason)
	err = s.act(
		r,
		access.Action{
			Act:     "set rated power",
			Org:     org,
			Subject: id.String(),
			Detail:  detail,
		},
		func() error {
			_, err := s.Registry.ChangeAsset(
				r.Context(),
				org,
				id,
				registry.AssetChange{
					AssetProperties: registry.AssetProperties{
						Power:  power.Power,
						Phases: phases,
						Phase:  phase,
					},
					PowerFrom: from,
				},
			)

			return err
		},
	)

	return view{to: "/console/assets/" + id.String() + "?done=powered"}, err
}
