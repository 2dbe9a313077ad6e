package registry

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteAssetsMax is how many of a site's assets a view has.
const siteAssetsMax = 50

// Orgs returns every organisation.
func (d *Service) Orgs(ctx context.Context) (orgs []flex.Org, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, err = all.Orgs(ctx)
		return err
	})
	return orgs, err
}

// Org returns an organisation.
func (d *Service) Org(ctx context.Context, id flex.OrgID) (flex.Org, error) {
	return read(ctx, d, id, func(tx *store.Tx) (flex.Org, error) { return tx.OrgRecord(ctx) })
}

// AssetOrg returns whose an asset is.
func (d *Service) AssetOrg(ctx context.Context, id flex.AssetID) (org flex.OrgID, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		org, err = all.AssetOrg(ctx, id)
		return err
	})
	return org, err
}

// SiteOrg returns whose a site is.
func (d *Service) SiteOrg(ctx context.Context, id flex.SiteID) (org flex.OrgID, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		org, err = all.SiteOrg(ctx, id)
		return err
	})
	return org, err
}

// AssetLine is an asset in a list that goes across organisations.
type AssetLine struct{ store.AssetLine }

// SiteLine is a site in a list that goes across organisations.
type SiteLine struct{ store.SiteLine }

func assetLines(found []store.AssetLine, err error) ([]AssetLine, error) {
	lines := make([]AssetLine, len(found))
	for i, a := range found {
		lines[i] = AssetLine{a}
	}
	return lines, err
}

// AssetFilter says which assets are looked for across organisations; what is empty takes all.
type AssetFilter struct {
	Org     flex.OrgID
	Type    flex.AssetType
	Plugged bool
	Before  flex.AssetID // assets older than this one
	Limit   int
}

// AssetList is every organisation, and the assets that a filter takes, the newest first.
type AssetList struct {
	Orgs   []flex.Org
	Assets []AssetLine
}

// AssetList lists assets across organisations.
func (d *Service) AssetList(ctx context.Context, f AssetFilter) (l AssetList, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		l.Orgs, err = all.Orgs(ctx)
		if err != nil {
			return err
		}

		l.Assets, err = assetLines(all.FindAssets(ctx, store.Find{Org: f.Org, Type: f.Type, Plugged: f.Plugged, Before: f.Before, Limit: f.Limit}))
		return err
	})
	return l, err
}

// Found is what a text finds.
type Found struct {
	Assets []AssetLine
	Sites  []SiteLine
}

// Search looks across organisations for an id, an MPAN, a UPRN, an e-mail address, a postcode or
// part of an external id: at most so many assets, and as many sites.
func (d *Service) Search(ctx context.Context, text string, limit int) (found Found, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		f := store.Find{Text: text, Limit: limit}
		found = Found{}
		found.Assets, err = assetLines(all.FindAssets(ctx, f))
		if err != nil {
			return err
		}

		sites, err := all.FindSites(ctx, f)
		for _, s := range sites {
			found.Sites = append(found.Sites, SiteLine{s})
		}

		return err
	})
	return found, err
}

// SiteView is a site with its consents and enrolments.
type SiteView struct {
	Org        flex.Org
	Site       flex.Site
	Methods    []flex.DispatchMethod
	Meter      *flex.Meter // nil if its MPAN is on no list
	Now        time.Time
	Assets     []AssetLine
	Enrolments []EnrolmentLine
	Steps      []SiteStep // the newest first
	Spans      []ConsentLine
	Ratings    Ratings
}

// EnrolmentLine is where a site is in a proposition.
type EnrolmentLine struct {
	Name  flex.Proposition
	State flex.EnrolmentState // "" if it was never enrolled
}

// SiteStep is a consent or an enrolment that changed.
type SiteStep struct {
	At       time.Time
	Consent  string // what was consented to, "" for an enrolment
	Given    bool   // whether the consent was given, or else withdrawn
	Enrolled flex.Proposition
	State    flex.EnrolmentState
}

// ConsentLine is a span of the consent to the use of a site's boundary meter.
type ConsentLine struct {
	flex.Span
	Holds bool // it was not withdrawn
}

// SiteView reads a site, whosever it is, in one transaction.
func (d *Service) SiteView(ctx context.Context, id flex.SiteID) (v SiteView, err error) {
	err = d.DB.ReadAll(ctx, func(all *store.All) error {
		v = SiteView{}
		org, err := all.SiteOrg(ctx, id)
		if err != nil {
			return err
		}

		v.Assets, err = assetLines(all.FindAssets(ctx, store.Find{Site: id, Limit: siteAssetsMax}))
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}
		if err := v.read(ctx, tx, id); err != nil {
			return err
		}

		v.Ratings, err = ratingsOf(ctx, tx, id)
		return err
	})
	return v, err
}

func (v *SiteView) read(ctx context.Context, tx *store.Tx, id flex.SiteID) (err error) {
	v.Now = tx.Now()
	v.Org, err = tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	v.Site, err = tx.Site(ctx, id)
	if err != nil {
		return err
	}

	v.Methods, err = tx.Methods(ctx, id)
	if err != nil {
		return err
	}

	v.Meter, err = tx.Meter(ctx, v.Site.MPAN.Reveal())
	if err != nil {
		return err
	}

	for _, name := range flex.Propositions {
		state, err := tx.Enrolment(ctx, id, name)
		if err != nil {
			return err
		}
		v.Enrolments = append(v.Enrolments, EnrolmentLine{Name: name, State: state})
	}

	if err := v.readSteps(ctx, tx); err != nil {
		return err
	}

	spans, err := tx.ConsentSpans(ctx, []flex.SiteID{id}, time.Time{})
	for _, s := range spans[id] {
		v.Spans = append([]ConsentLine{{s, s.To.After(tx.Now())}}, v.Spans...)
	}

	return err
}

// readSteps reads how the site's consents and enrolments changed.
func (v *SiteView) readSteps(ctx context.Context, tx *store.Tx) error {
	consents, err := tx.Consents(ctx, v.Site.ID)
	if err != nil {
		return err
	}

	for _, c := range consents {
		v.Steps = append(v.Steps, SiteStep{At: c.RecordedAt, Consent: c.Kind, Given: !c.GivenAt.IsZero()})
	}

	changes, err := tx.EnrolmentChanges(ctx, v.Site.ID)
	for _, c := range changes {
		v.Steps = append(v.Steps, SiteStep{At: c.At, Enrolled: c.Proposition, State: c.State})
	}

	slices.SortStableFunc(v.Steps, func(a, b SiteStep) int { return b.At.Compare(a.At) })
	return err
}
