package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/selection"
)

// actsPage is the page of an action on assets: its preview with the form, or its result.
type actsPage struct {
	selection.Result
	Title    string
	Hours    string // of charge-now, as it was given
	By       string // of ready-by, as it was given
	Back     string // where the operator came from
	Affected string // "3 assets"
	Final    bool
	Filters  []formField // of the list that they were chosen in

	list   string // its address
	action selection.Action
	assets []flex.AssetID
}

// actLabels are the actions as buttons call them.
var actLabels = map[selection.Kind]string{
	selection.Replan:       "Plan again and send",
	selection.Resend:       "Send the schedule again",
	selection.Release:      "Release until the next plug-in",
	selection.ChargeNow:    "Charge now",
	selection.EndChargeNow: "End charge-now",
	selection.ReadyBy:      "Change ready-by",
	selection.Exclude:      "Exclude from control",
	selection.Include:      "Include in control again",
	selection.Offboard:     "Offboard",
}

// actChoice is an action that can be chosen.
type actChoice struct {
	Kind  selection.Kind
	Label string
}

// ofCars are the actions that are refused for other assets than chargers and cars.
var ofCars = []selection.Kind{
	selection.Replan,
	selection.Release,
	selection.ChargeNow,
	selection.EndChargeNow,
	selection.ReadyBy,
}

// actChoices returns the actions in the order in which they are offered: those for an asset of
// a type, or all for a selection, whose type is nil.
func actChoices(owners any) []actChoice {
	t, one := owners.(flex.AssetType)
	var choices []actChoice
	for _, k := range selection.Kinds {
		if one && !t.Charges() && slices.Contains(ofCars, k) {
			continue
		}

		choices = append(choices, actChoice{k, actLabels[k]})
	}

	return choices
}

// readAct reads the action and the assets of a form.
func (s *Server) readAct(r *request) (*actsPage, error) {
	kind := selection.Kind(r.PostFormValue("action"))
	label, ok := actLabels[kind]
	if !ok {
		return nil, flex.Fail(flex.Malformed, "choose what is to be done")
	}

	p := &actsPage{
		Title:  label,
		Hours:  r.PostFormValue("hours"),
		By:     r.PostFormValue("by"),
		Final:  kind.Final(),
		action: selection.Action{Kind: kind},
	}
	p.storeFilters(r)

	if kind == selection.ChargeNow {
		hours, err := strconv.ParseFloat(p.Hours, 64)
		if err != nil {
			return nil, flex.Fail(
				flex.Malformed,
				"say for how many hours it charges now",
			)
		}
		p.action.For = time.Duration(hours * float64(time.Hour))
	}

	var err error
	if kind == selection.ReadyBy {
		p.action.By, err = flex.ParseWallTime(p.By)
		if err != nil {
			return nil, flex.Fail(
				flex.Malformed,
				"say by which time of day its car is ready, as 07:00",
			)
		}
	}

	p.assets, err = s.readActAssets(r)
	onItsPage := len(p.Filters) == 0 && len(p.assets) == 1
	if onItsPage && kind != selection.Offboard {
		p.Back = "/console/assets/" + p.assets[0].String()
	}

	return p, err
}

// storeFilters stores the filters of the list from which a form was sent, so that its pages lead
// back there.
func (p *actsPage) storeFilters(r *request) {
	q := url.Values{}
	for _, name := range assetFilters {
		if value := r.PostFormValue(name); value != "" {
			p.Filters = append(p.Filters, formField{name, value})
			q.Set(name, value)
		}
	}

	p.list = viewPages[0]
	if len(q) > 0 {
		p.list += "?" + q.Encode()
	}

	p.Back = p.list
}

// readActAssets reads the assets that a form selects: those that are ticked, or with "all" the
// newest that match a list's filters.
func (s *Server) readActAssets(r *request) ([]flex.AssetID, error) {
	var ids []flex.AssetID
	if r.PostFormValue("all") == "" {
		for _, text := range r.PostForm["id"] {
			var id flex.AssetID
			if err := readID(&id, text, "asset"); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}

	f, err := s.assetFilter(r, r.PostFormValue)
	if err != nil {
		return nil, err
	}

	f.Limit = selection.Max

	found, err := s.Registry.AssetList(r.Context(), f)
	for _, line := range found.Assets {
		ids = append(ids, line.ID)
	}

	return ids, err
}

// previewAct shows the effect of an action on assets, and changes nothing.
func (s *Server) previewAct(r *request) (view, error) {
	p, err := s.readAct(r)
	if err != nil {
		return view{}, err
	}

	p.Result, err = s.Selection.Preview(r.Context(), p.action, p.assets)

	return p.view(), err
}

// doAct carries out a previewed action. The audit log gets an entry for each organisation,
// with its assets and the outcome of each.
func (s *Server) doAct(r *request) (view, error) {
	p, err := s.readAct(r)
	if err != nil {
		return view{}, err
	}

	confirmation := strings.TrimSpace(r.PostFormValue("typed"))
	if !p.Final && r.PostFormValue("sure") == "" {
		return view{}, flex.Fail(flex.Malformed, "tick that you are sure")
	}

	owners, err := s.actOwners(r, p.assets)
	if err != nil {
		return view{}, err
	}

	err = s.noteActs(r, p, owners, func() error {
		var err error
		p.Result, err = s.Selection.Do(r.Context(), p.action, p.assets, confirmation)
		return err
	})

	return p.view(), err
}

// actOwner is an organisation with its assets in a selection.
type actOwner struct {
	org    flex.OrgID // zero for assets that are not there
	assets []flex.AssetID
}

// actOwners groups selected assets by organisation. It returns at least one, even if nothing
// is selected.
func (s *Server) actOwners(r *request, assets []flex.AssetID) ([]actOwner, error) {
	var owners []actOwner
	for _, id := range assets {
		org, err := s.Registry.AssetOrg(r.Context(), id)
		if err != nil && flex.KindOf(err) != flex.NotFound {
			return nil, err
		}

		i := slices.IndexFunc(owners, func(o actOwner) bool { return o.org == org })
		if i < 0 {
			i = len(owners)
			owners = append(owners, actOwner{org: org})
		}
		owners[i].assets = append(owners[i].assets, id)
	}

	if len(owners) == 0 {
		owners = append(owners, actOwner{})
	}

	return owners, nil
}

// noteActs carries out an action and writes an entry in the audit log of each organisation
// concerned. An entry names only that organisation's assets, because its operators may read
// it.
func (s *Server) noteActs(r *request, p *actsPage, owners []actOwner, do func() error) error {
	if len(owners) == 0 {
		return do()
	}

	act := p.action.Act(owners[0].assets)
	act.Org = owners[0].org
	act.Who, act.Source = r.operator.Name, r.from

	return s.Access.ActWithDetail(r.Context(), act, func() (string, error) {
		err := s.noteActs(r, p, owners[1:], do)
		own := p.Result.Of(owners[0].assets)
		if len(own.Lines) == 0 {
			return "", err
		}

		return own.String(), err
	})
}

// view returns the page, and its data for programs.
func (p *actsPage) view() view {
	p.Affected = fmt.Sprintf("%d assets", p.Possible)
	if p.Possible == 1 {
		p.Affected = "1 asset"
	}

	return view{
		page:   "acts",
		title:  p.Title,
		crumbs: []crumb{{"Assets", p.list}},
		data:   p,
		record: p.Result,
	}
}
