package registry

import (
	"context"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// The issues that prevent an enrolment, in the interface's words.
const (
	ModelNotSet      = "asset_model_not_set"
	ModelNotFound    = "asset_model_not_found"
	ModelNotCoP11    = "asset_model_not_cop11_qualified"
	InstallDateUnset = "asset_installation_date_not_set"
	EnrolOverride    = "asset_model_enrol_eligibility_override"
	NonDomesticSite  = "non_domestic_site"
)

// ExportAboveLimit is the issue of a metering point whose largest half-hourly export is above
// the organisation's limit (P511). The interface has no code for it: the refusal of an
// enrolment, the console and the register return it.
const ExportAboveLimit = "half_hourly_export_above_limit"

// remedies are what a client or the operator can do about an issue.
var remedies = map[string]string{
	ModelNotSet:      "send asset_model with the asset, or by PATCH /entities/asset/{asset_id}",
	ModelNotFound:    "correct asset_model, or have the operator import the model",
	ModelNotCoP11:    "have the supplier move the meter to half-hourly settlement, as the model's own meter may not settle",
	InstallDateUnset: "send installation_date with the asset, or by PATCH /entities/asset/{asset_id}",
	EnrolOverride:    "ask the operator, who decided so for the model",
	NonDomesticSite:  "nothing can be done: such sites have no way in",
}

// issuesText lists issues, each with its remedy.
func issuesText(issues []string) string {
	texts := slices.Clone(issues)
	for i, issue := range issues {
		if remedy, known := remedies[issue]; known {
			texts[i] = issue + " (" + remedy + ")"
		}
	}

	return strings.Join(texts, ", ")
}

// PropositionEligibility says whether a site is eligible for a proposition, and which issues
// prevent that. An override is listed also if it makes the site eligible.
type PropositionEligibility struct {
	Proposition flex.Proposition
	Eligible    bool
	Issues      []string
}

// facts are what eligibility depends on. A site is eligible by a meter that is settled
// half-hourly, whatever the asset, or by an asset whose own meter may be used for settlement,
// because its model is qualified under Code of Practice 11 and its installation date is known.
// Sites that are not domestic are not eligible. An operator's decision about a model overrides
// all of these.
type facts struct {
	meter          *flex.Meter // nil if the MPAN is on no list
	hasModelName   bool        // whether a model is named
	model          *flex.Model // nil if it is not in the catalogue
	hasInstallDate bool        // whether the installation date is known
	// whether the site has no metering point, and need not have one to be planned and pushed
	unmetered bool
	// whether the largest half-hourly export is above the organisation's limit
	export bool
}

// halfHourly reports whether settlement uses the meter's own half-hours: an import meter that
// is energised. A meter on no list is not half-hourly.
func halfHourly(m *flex.Meter) bool {
	return m != nil && m.Import && m.Energised && m.HalfHourly
}

// check reports whether the facts make a site eligible, and the issues if not.
func (f facts) check() (eligible bool, issues []string) {
	// The market's rule overrides the operator's decision about a model.
	if f.export {
		return false, []string{ExportAboveLimit}
	}

	if f.model != nil && f.model.Enrol != flex.EnrolByRule {
		return f.model.Enrol == flex.EnrolAllow, []string{EnrolOverride}
	}

	if f.meter != nil && !f.meter.Domestic {
		issues = append(issues, NonDomesticSite)
	}

	if halfHourly(f.meter) {
		return len(issues) == 0, issues
	}

	switch {
	case !f.hasModelName:
		issues = append(issues, ModelNotSet)
	case f.model == nil:
		issues = append(issues, ModelNotFound)
	case !f.model.CoP11:
		issues = append(issues, ModelNotCoP11)
	}

	if !f.hasInstallDate {
		issues = append(issues, InstallDateUnset)
	}

	return len(issues) == 0, issues
}

// exportAboveLimit reports whether the largest half-hourly export that the party recorded for
// a metering point is above its limit. Without a record or a limit it is not.
func exportAboveLimit(
	ctx context.Context,
	tx *store.Tx,
	mpan string,
) (bool, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return false, err
	}

	limit := org.Settings.ExportLimit
	if !limit.Given || mpan == "" {
		return false, nil
	}

	largest, err := tx.LargestExport(ctx, mpan)

	return largest.Given && largest.Value > limit.Value, err
}

// propositions returns the same result for each proposition, with one exception: the schedules
// of a site without a metering point, where that is allowed, may be controlled whatever the
// result, because nothing of it is settled.
func (f facts) propositions() []PropositionEligibility {
	vs := make([]PropositionEligibility, len(flex.Propositions))
	for i, p := range flex.Propositions {
		eligible, issues := f.check()
		if f.unmetered && flex.DispatchMethod(p) == flex.FullScheduleMethod {
			eligible, issues = true, nil
		}

		vs[i] = PropositionEligibility{p, eligible, issues}
	}

	return vs
}

// Check is the eligibility of an MPAN and a model.
type Check struct {
	HalfHourly   bool
	Propositions []PropositionEligibility
}

// CheckEligibility returns what a site with the MPAN and an asset of the model could be
// enrolled in, and stores nothing. It assumes that the installation date, which is not asked
// for, will be given. A model that is not in the catalogue is NotFound.
func (s *Service) CheckEligibility(
	ctx context.Context,
	org flex.OrgID,
	mpan, model string,
) (Check, error) {
	core, reason := normalMPAN(mpan)
	if core == "" {
		return Check{}, invalid([]flex.Fault{faultAt(
			"value_error.mpan",
			reason,
			nil,
			"mpan",
		)})
	}

	// The directory's answer is used once and not stored, since nobody has become a customer.
	found, err := s.askMeter(ctx, core)
	if err != nil {
		return Check{}, err
	}

	return read(ctx, s, org, func(tx *store.Tx) (Check, error) {
		f := facts{hasModelName: model != "", hasInstallDate: true, meter: found}

		var c Check
		var err error
		if f.hasModelName {
			f.model, err = tx.Model(ctx, model)
			if err != nil {
				return c, err
			}
			if f.model == nil {
				return c, modelMissing(model)
			}
		}

		if f.meter == nil {
			f.meter, err = tx.Meter(ctx, core)
			if err != nil {
				return c, err
			}
		}

		f.export, err = exportAboveLimit(ctx, tx, core)
		if err != nil {
			return c, err
		}

		return Check{halfHourly(f.meter), f.propositions()}, nil
	})
}

// Eligibility is that of a site and its assets.
type Eligibility struct {
	Site       flex.SiteID
	HalfHourly bool
	Consented  bool // to the use of the boundary meter's readings
	// propositions that are open by the site's meter or by one of its assets
	Open          []flex.Proposition
	Assets        []AssetEligibility
	withoutAssets []PropositionEligibility // for a site without assets
	mpan          string
	meter         *flex.Meter // nil if the MPAN is on no list
	// whether the site has no metering point, and needs none to be planned
	unmetered bool
}

// AssetEligibility is that of one asset.
type AssetEligibility struct {
	Asset        flex.Asset
	Propositions []PropositionEligibility
}

// Eligibility returns what a site and its assets can be enrolled in.
func (s *Service) Eligibility(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (Eligibility, error) {
	if err := s.lookUpMeterOf(ctx, org, id); err != nil {
		return Eligibility{}, err
	}

	return read(ctx, s, org, func(tx *store.Tx) (Eligibility, error) {
		site, err := tx.Site(ctx, id)
		if err != nil {
			return Eligibility{}, err
		}
		return eligibility(ctx, tx, site)
	})
}

// pointFacts reads the facts of a site's metering point.
func pointFacts(ctx context.Context, tx *store.Tx, s flex.Site) (facts, error) {
	var (
		f   facts
		err error
	)

	f.meter, err = tx.Meter(ctx, s.MPAN.Reveal())
	if err != nil {
		return f, err
	}

	f.export, err = exportAboveLimit(ctx, tx, s.MPAN.Reveal())
	if err != nil {
		return f, err
	}

	org, err := tx.OrgRecord(ctx)
	f.unmetered = s.MPAN == "" && withoutMPAN(org)

	return f, err
}

func eligibility(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
) (Eligibility, error) {
	point, err := pointFacts(ctx, tx, s)
	if err != nil {
		return Eligibility{}, err
	}

	assets, err := tx.AssetsOf(ctx, s.ID)
	if err != nil {
		return Eligibility{}, err
	}

	e := Eligibility{
		Site:       s.ID,
		HalfHourly: halfHourly(point.meter),
		Consented:  !s.ConsentAt.IsZero(),
		mpan:       s.MPAN.Reveal(),
		meter:      point.meter,
		unmetered:  point.unmetered,
	}

	for _, a := range assets {
		f := point
		f.hasModelName, f.hasInstallDate = a.Model != "", a.InstalledOn != ""

		if f.hasModelName {
			f.model, err = tx.Model(ctx, a.Model)
			if err != nil {
				return e, err
			}
		}

		e.Assets = append(e.Assets, AssetEligibility{a, f.propositions()})
	}

	if len(assets) == 0 {
		e.withoutAssets = point.propositions()
	}

	e.Open = e.open()

	return e, nil
}

// open returns the propositions for which any asset is eligible, or the site itself if it has
// no asset.
func (e *Eligibility) open() []flex.Proposition {
	eligible := map[flex.Proposition]bool{}
	note := func(vs []PropositionEligibility) {
		for _, v := range vs {
			eligible[v.Proposition] = eligible[v.Proposition] || v.Eligible
		}
	}

	note(e.withoutAssets)
	for _, a := range e.Assets {
		note(a.Propositions)
	}

	var ps []flex.Proposition
	for _, p := range flex.Propositions {
		if eligible[p] {
			ps = append(ps, p)
		}
	}

	return ps
}
