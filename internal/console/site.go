package console

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/registry"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/wire"
)

// sitePage is a site with its consents, its enrolments, its meter and its money.
type sitePage struct {
	registry.SiteView
	Propositions []propositionLine
	Eligibility  registry.Eligibility
	Steps        []siteStep
	Gaps         []gapLine
	Info         reward.Info
	Statement    reward.Statement
	From         flex.Day
	To           flex.Day
	Export       Export
	Plan         *sitePlan // of its devices together; nil if nothing is planned
}

// propositionLine is a site's state in a proposition, with the obstacles to enrolment.
type propositionLine struct {
	Name     flex.Proposition    `json:"proposition"`
	State    flex.EnrolmentState `json:"state"` // "" if it was never enrolled
	Eligible bool                `json:"eligible"`
	Issues   []issue             `json:"issues"`
}

// issue is an obstacle to an enrolment, with its remedy.
type issue struct {
	Asset string `json:"external_id"`
	What  string `json:"what"`
	Do    string `json:"do"`
}

// siteStep is a consent or an enrolment that changed.
type siteStep struct {
	At   time.Time
	Text string
}

// gapLine is a day on which readings are missing.
type gapLine struct {
	reading.Gap
	AssetName string
	Boundary  bool // of the site's boundary, not of the asset's own meter
}

// issueText describes an obstacle to an enrolment, and its remedy.
var issueText = map[string]issue{
	registry.ModelNotSet: {
		What: "no model is named",
		Do:   "send asset_model: PATCH /entities/asset/{asset_id}",
	},
	registry.ModelNotFound: {
		What: "the model is not in the catalogue",
		Do:   "check its spelling, or import it: flexd models import FILE",
	},
	registry.ModelNotCoP11: {
		What: "the model's own meter is not qualified under CoP 11, and the boundary meter is not settled half-hourly",
		Do:   "have the supplier move the meter to half-hourly settlement",
	},
	registry.InstallDateUnset: {
		What: "it is not known when it was installed",
		Do:   "send installation_date: PATCH /entities/asset/{asset_id}",
	},
	registry.EnrolOverride: {
		What: "the operator's own word on the model decides",
		Do:   "change it where models are imported",
	},
	registry.ExportAboveLimit: {
		What: "its largest half-hourly export is above the limit (P511)",
		Do:   "nothing: such metering points have no way in; the limit is max_half_hourly_export_wh, the figure is imported by flexd bsc pairs",
	},
	registry.NonDomesticSite: {What: "the meter is not domestic", Do: "nothing: such sites have no way in"},
}

func (s *Server) site(r *request) (view, error) {
	var id flex.SiteID
	if err := readID(&id, r.PathValue("id"), "site"); err != nil {
		return view{}, err
	}

	p := &sitePage{Export: r.exports()}

	span, err := statementSpan(r)
	if err != nil {
		return view{}, err
	}

	p.From, p.To, err = span.Days()
	if err != nil {
		return view{}, err
	}

	p.SiteView, err = s.Registry.SiteView(r.Context(), id)
	if err != nil {
		return view{}, err
	}

	p.Plan, err = s.planOf(r, id)
	if err != nil {
		return view{}, err
	}

	p.layOut()
	if err := s.readServices(r, p); err != nil {
		return view{}, err
	}

	title := cmp.Or(p.Address, p.Postcode, "Site "+short(id))

	return view{
		page:   "site",
		title:  title,
		crumbs: []crumb{{p.OrgName, "/console/assets?org=" + p.OrgID.String()}},
		data:   p,
		record: p.json(),
	}, nil
}

// siteJSON is the page for programs.
type siteJSON struct {
	wire.SiteView
	Propositions []propositionLine `json:"propositions"`
	Gaps         []gapJSON         `json:"gaps"`
	BalancePence flex.Pence        `json:"balance_pence"`
	// withdrawn or not
	EarnedPence flex.Pence `json:"earned_pence"`
	MayWithdraw bool       `json:"may_withdraw"`
	// of the days that are asked for
	Statement wire.StatementResponse `json:"statement"`
}

// gapJSON is a day on which readings are missing, for programs.
type gapJSON struct {
	Day      string       `json:"day"`
	AssetID  flex.AssetID `json:"asset_id"`
	Label    flex.Label   `json:"label"`
	Missing  int          `json:"missing"`  // half-hours
	Expected int          `json:"expected"` // half-hours
	Held     int          `json:"held_back"`
	First    time.Time    `json:"first_missing_at"`
}

func (p *sitePage) json() siteJSON {
	v := siteJSON{
		SiteView:     contract.SiteView(&p.SiteView),
		Propositions: p.Propositions,
		Gaps:         []gapJSON{},
		BalancePence: p.Info.Balance,
		EarnedPence:  p.Info.Earned,
		MayWithdraw:  p.Info.CanWithdraw,
		Statement:    contract.Statement(&p.Statement),
	}

	for _, g := range p.Gaps {
		v.Gaps = append(v.Gaps, gapJSON{
			g.Day.String(),
			g.AssetID,
			g.Label,
			g.Missing,
			g.Expected,
			g.HeldBack,
			g.First,
		})
	}

	return v
}

// layOut lists the propositions and their changes.
func (p *sitePage) layOut() {
	for _, e := range p.Enrolments {
		p.Propositions = append(p.Propositions, propositionLine{
			Name:   e.Name,
			State:  e.State,
			Issues: []issue{},
		})
	}

	for _, st := range p.SiteView.Steps {
		p.Steps = append(p.Steps, siteStep{st.At, stepText(st)})
	}
}

// stepText describes a change of a consent or an enrolment.
func stepText(s registry.SiteStep) string {
	if s.Consent != "" && s.Given {
		return "Consented to " + words(s.Consent) + "."
	}

	if s.Consent != "" {
		return "Withdrew the consent to " + words(s.Consent) + "."
	}

	verb := map[flex.EnrolmentState]string{
		flex.Enrolled:  "Enrolled in ",
		flex.Withdrawn: "Withdrawn from ",
	}[s.State]

	return verb + words(s.Enrolled) + "."
}

// readServices reads the site's data from services other than the registry.
func (s *Server) readServices(r *request, p *sitePage) error {
	ctx := r.Context()
	org := p.OrgID
	id := p.ID
	var err error
	p.Eligibility, err = s.Registry.Eligibility(ctx, org, id)
	if err != nil {
		return fmt.Errorf("judge eligibility: %w", err)
	}

	for i := range p.Propositions {
		p.Propositions[i].judge(p.Eligibility)
	}

	gaps, err := s.Reading.Gaps(ctx, org, id, flex.Day{}, flex.Day{})
	if err != nil {
		return fmt.Errorf("look for gaps: %w", err)
	}

	for _, g := range gaps {
		p.Gaps = append(p.Gaps, gapLine{
			g,
			p.assetName(g.AssetID),
			slices.Contains(settle.Labels(settle.Boundary), g.Label),
		})
	}

	p.Info, err = s.Reward.Info(ctx, org, id)
	if err != nil {
		return err
	}

	p.Statement, err = s.Reward.Statement(ctx, org, id, p.From, p.To)
	p.From, p.To = p.Statement.From, p.Statement.To

	return err
}

// assetName is the name of one of the site's assets.
func (p *sitePage) assetName(id flex.AssetID) string {
	for _, a := range p.Assets {
		if a.ID == id {
			return a.ExternalID
		}
	}

	return ""
}

// judge fills in whether the proposition is open to the site, and the obstacles.
func (l *propositionLine) judge(e registry.Eligibility) {
	l.Eligible = slices.Contains(e.Open, l.Name)
	for _, a := range e.Assets {
		for _, v := range a.Propositions {
			if v.Proposition != l.Name || v.Eligible {
				continue
			}

			for _, issue := range v.Issues {
				i, known := issueText[issue]
				if !known {
					i.What = words(issue)
				}

				i.Asset = a.Asset.ExternalID
				l.Issues = append(l.Issues, i)
			}
		}
	}
}
