package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/access"
	"flexd/internal/control"
	"flexd/internal/flex"
)

// capsLine is an organisation with the caps that its assets share.
type capsLine struct{ control.OrgCaps }

// FleetKW and FleetStarts fill the form; nothing is no bound.
func (l capsLine) FleetKW() string     { return kwText(l.Fleet.Power) }
func (l capsLine) FleetStarts() string { return startsText(l.Fleet) }

// capsJSON is the line for programs.
type capsJSON struct {
	OrgID   flex.OrgID `json:"organisation_id"`
	OrgName string     `json:"organisation"`
	// that the fleet draws at most; null for no bound
	Power  *flex.Watts    `json:"power_w"`
	Starts int            `json:"starts_per_minute"` // 0 for no bound
	Groups []capGroupJSON `json:"groups"`
	Traded int            `json:"num_traded_half_hours"`
}

type capGroupJSON struct {
	Name   string      `json:"name"`
	Parent string      `json:"parent"` // the group that it lies in; empty for none
	Power  *flex.Watts `json:"power_w"`
	Starts int         `json:"starts_per_minute"`
	Sites  int         `json:"num_sites"`
}

func (l capsLine) json() capsJSON {
	v := capsJSON{
		OrgID:   l.ID,
		OrgName: l.Name,
		Power:   l.Fleet.Power,
		Starts:  l.Fleet.StartsPerMinute,
		Groups:  []capGroupJSON{},
		Traded:  len(l.Position),
	}

	for _, g := range l.Groups {
		v.Groups = append(v.Groups, capGroupJSON{
			g.Name,
			g.Parent,
			g.Power,
			g.StartsPerMinute,
			len(g.Sites),
		})
	}

	return v
}

// capsLines reads the caps of every organisation.
func (s *Server) capsLines(r *request) ([]capsLine, error) {
	list, err := s.Control.AllCaps(r.Context())
	var lines []capsLine
	for _, c := range list {
		lines = append(lines, capsLine{c})
	}

	return lines, err
}

func kwText(w *flex.Watts) string {
	if w == nil {
		return ""
	}
	return strconv.FormatFloat(w.KW(), 'f', -1, 64)
}

func startsText(c flex.Cap) string {
	if c.StartsPerMinute == 0 {
		return ""
	}
	return strconv.Itoa(c.StartsPerMinute)
}

// groupLine is a constraint group as its row of the form.
type groupLine struct {
	flex.CapGroup
	Form string // the id of the row's form
}

// KW and StartsText fill the row; nothing is no bound.
func (g groupLine) KW() string         { return kwText(g.Power) }
func (g groupLine) StartsText() string { return startsText(g.Cap) }

// GroupLines are the organisation's groups as rows of the form.
func (l capsLine) GroupLines() []groupLine {
	var lines []groupLine
	for i, g := range l.Groups {
		lines = append(lines, groupLine{g, fmt.Sprintf("group-%v-%d", l.ID, i)})
	}

	return lines
}

// setCaps sets the cap of an organisation's fleet, or of one of its groups.
func (s *Server) setCaps(r *request) (view, error) {
	var org flex.OrgID
	if err := readID(&org, r.PostFormValue("org"), "organisation"); err != nil {
		return view{}, err
	}

	c, err := readCap(r.PostFormValue("kw"), r.PostFormValue("starts"))
	if err != nil {
		return view{}, err
	}

	if group := r.PostFormValue("group"); group != "" {
		return s.setGroup(r, org, flex.CapGroup{
			Name:   group,
			Parent: strings.TrimSpace(r.PostFormValue("parent")),
			Cap:    c,
		})
	}

	return s.setFleet(r, org, c)
}

// setGroup sets the cap of a group that there is, and which group it lies in. Its sites stay.
func (s *Server) setGroup(
	r *request,
	org flex.OrgID,
	group flex.CapGroup,
) (view, error) {
	detail := fmt.Sprintf(
		"group %s: %s kW, %s starts a minute, in %s",
		group.Name,
		or(kwText(group.Power), "any"),
		or(startsText(group.Cap), "any"),
		or(group.Parent, "no other group"),
	)

	change := func(c *flex.Caps) error {
		i := slices.IndexFunc(c.Groups, func(g flex.CapGroup) bool { return g.Name == group.Name })
		if i < 0 {
			return flex.Fail(
				flex.NotFound,
				"no group is named %q any more: look at the groups again",
				group.Name,
			)
		}

		c.Groups[i].Cap, c.Groups[i].Parent = group.Cap, group.Parent

		return nil
	}

	act := access.Action{Act: "set caps", Org: org, Detail: detail}
	err := s.act(r, act, func() error {
		return s.Control.ChangeCaps(r.Context(), org, change)
	})

	return view{to: "/console/safety?done=capped"}, err
}

// setFleet sets the cap of an organisation's whole fleet. Its groups and position stay as they
// are. If no limit is left, the caps are removed.
func (s *Server) setFleet(
	r *request,
	org flex.OrgID,
	fleet flex.Cap,
) (view, error) {
	detail := fmt.Sprintf(
		"fleet: %s kW, %s starts a minute",
		or(kwText(fleet.Power), "any"),
		or(startsText(fleet), "any"),
	)

	err := s.act(
		r,
		access.Action{
			Act:    "set caps",
			Org:    org,
			Detail: detail,
		},
		func() error { return s.Control.SetFleetCap(r.Context(), org, fleet) },
	)

	return view{to: "/console/safety?done=capped"}, err
}

// readCap reads a cap from a form; a field that is left empty is no bound.
func readCap(kw, starts string) (flex.Cap, error) {
	kw = strings.TrimSpace(kw)
	var c flex.Cap
	if kw != "" {
		v, err := strconv.ParseFloat(kw, 64)
		if err != nil || !(v >= 0 && v <= flex.CapMax.KW()) {
			return c, flex.Fail(
				flex.Malformed,
				"the cap is %q: give kW from 0 to %v, or nothing for none",
				kw,
				flex.CapMax.KW(),
			)
		}

		c.Power = new(flex.FromKW(v))
	}

	starts = strings.TrimSpace(starts)
	if starts != "" {
		n, err := strconv.Atoi(starts)
		if err != nil || n < 1 || n > flex.StartsMax {
			return c, flex.Fail(
				flex.Malformed,
				"the starts per minute are %q: give a whole number from 1 to %d, or nothing for no bound",
				starts,
				flex.StartsMax,
			)
		}

		c.StartsPerMinute = n
	}

	return c, nil
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
