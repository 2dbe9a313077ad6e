package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Merged is the result of merging a record that was sent: whether it is new, which fields
// changed, and which were ignored or look wrong. The lists are never nil.
type Merged struct {
	Created  bool
	NewMPAN  bool // the site existed, and has another MPAN than before, or its first
	Updated  []string
	Warnings []string
}

func merged() Merged {
	return Merged{Updated: []string{}, Warnings: []string{}}
}

// MergedAsset is an asset with the result of its merge.
type MergedAsset struct {
	flex.Asset
	Merged
}

// Onboarded is a site with its assets, and the result of each merge.
type Onboarded struct {
	Site        flex.Site
	Merged      Merged
	Assets      []MergedAsset // in the request's order
	Eligibility Eligibility   // of Initialise
	Outcome     Outcome       // of Onboard
}

// Initialise registers a site and its assets, or merges them into the stored records. It does
// not enrol the site. It does all of this or nothing.
func (s *Service) Initialise(
	ctx context.Context,
	org flex.OrgID,
	site SiteInput,
	assets []AssetInput,
) (Onboarded, error) {
	n, err := s.readInput(ctx, org, site, assets)
	if err != nil {
		return Onboarded{}, err
	}

	return write(ctx, s, org, func(tx *store.Tx) (Onboarded, error) {
		o, err := merge(ctx, tx, n, assets, listPlace)
		if err == nil {
			o.Eligibility, err = eligibility(ctx, tx, o.Site)
		}
		return o, err
	})
}

// Onboard is Initialise followed by Enrol, in one transaction.
func (s *Service) Onboard(
	ctx context.Context,
	org flex.OrgID,
	site SiteInput,
	assets []AssetInput,
	e Enrolment,
) (Onboarded, error) {
	n, err := s.readInput(ctx, org, site, assets)
	if err != nil {
		return Onboarded{}, err
	}

	return write(ctx, s, org, func(tx *store.Tx) (Onboarded, error) {
		o, err := merge(ctx, tx, n, assets, listPlace)
		if err == nil {
			o.Outcome, err = enrol(ctx, tx, o.Site, e)
		}
		return o, err
	})
}

// readInput checks the site and assets that were sent, and looks up the meter. It returns all
// faults at once.
func (s *Service) readInput(
	ctx context.Context,
	org flex.OrgID,
	site SiteInput,
	assets []AssetInput,
) (normal, error) {
	lacking, err := s.mayLackMPAN(ctx, org, site)
	if err != nil {
		return normal{}, err
	}

	n, faults := site.newSite(lacking, "site")
	seen := map[string]bool{}

	for i, a := range assets {
		if seen[a.ExternalID] {
			faults = append(
				faults,
				faultAt(
					"value_error.list.unique_items",
					"two assets of the request have this external id: give each its own",
					[]string{"assets", fmt.Sprint(i)},
					"external_id",
				),
			)
		}

		seen[a.ExternalID] = true
	}

	if err := invalid(faults); err != nil {
		return n, err
	}

	if site.Email != "" && !isEmail(site.Email) {
		return n, flex.Fail(flex.Malformed, emailForm)
	}

	return n, s.lookUpMeter(ctx, n.MPAN)
}

// listPlace is the location of an asset in the list of a request.
func listPlace(i int) []string { return []string{"assets", strconv.Itoa(i)} }

// singlePlace is the location of the one asset of a request.
func singlePlace(int) []string { return []string{"asset"} }

// placed adds the asset's location in the request to the faults of a failure.
func placed(err error, place []string) error {
	e, isShown := errors.AsType[*flex.Error](err)
	if !isShown || len(e.Faults) == 0 {
		return err
	}

	faults := slices.Clone(e.Faults)
	for i, f := range faults {
		faults[i].Loc = slices.Concat(f.Loc[:1], place, f.Loc[1:])
	}

	return &flex.Error{Kind: e.Kind, Detail: e.Detail, Faults: faults}
}

// merge stores the site and the assets, new or merged into existing records. place returns the
// location of an asset in the request.
func merge(
	ctx context.Context,
	tx *store.Tx,
	n normal,
	assets []AssetInput,
	place func(i int) []string,
) (Onboarded, error) {
	if err := tx.LockOrg(ctx); err != nil {
		return Onboarded{}, err
	}

	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return Onboarded{}, err
	}

	var o Onboarded
	o.Site, o.Merged, err = mergeSite(ctx, tx, n)
	if err != nil {
		return o, err
	}
	metered := o.Site.MPAN != "" || !withoutMPAN(org)
	if o.Site.ConsentAt.IsZero() && metered && !org.MeterConsentExempt {
		return o, flex.Fail(
			flex.Malformed,
			"the user's consent to the use of the boundary meter is missing: send site.gave_boundary_meter_consent_at",
		)
	}

	for i, in := range assets {
		a, err := mergeAsset(ctx, tx, o.Site.ID, in)
		if err != nil {
			return o, placed(err, place(i))
		}
		a.Warnings = append(a.Warnings, in.doubts()...)
		o.Assets = append(o.Assets, a)
	}

	if !o.Merged.NewMPAN {
		return o, nil
	}

	return o, checkStillEligible(ctx, tx, o.Site, "site")
}

// checkStillEligible checks a site's new MPAN as a new enrolment would, for all propositions
// in which the site is enrolled, because its money is settled on that meter. A fault is at
// loc, followed by the field.
func checkStillEligible(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
	loc ...string,
) error {
	for _, p := range flex.Propositions {
		state, err := tx.Enrolment(ctx, s.ID, p)
		if err != nil {
			return err
		}

		if state != flex.Enrolled {
			continue
		}

		err = checkEligible(ctx, tx, s, p)
		if flex.KindOf(err) == flex.Unmet {
			return invalid([]flex.Fault{faultAt(
				"value_error.mpan",
				"another MPAN than the enrolled site has: "+err.Error(),
				loc,
				"mpan",
			)})
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// mergeSite finds the site and updates it, or adds it if no other site is at its property.
func mergeSite(
	ctx context.Context,
	tx *store.Tx,
	n normal,
) (flex.Site, Merged, error) {
	m := merged()

	old, err := lockFound(ctx, tx, func() (*flex.Site, error) { return findSite(ctx, tx, n) })
	if err != nil {
		return flex.Site{}, m, err
	}

	if old != nil {
		// in the order of their ids, as by planners, and not in that of the request
		if _, err := tx.LockAssetsOf(ctx, old.ID); err != nil {
			return *old, m, err
		}

		return updateSite(ctx, tx, *old, n)
	}

	if err := checkOnlyAtProperty(ctx, tx, n.MPAN, flex.SiteID{}); err != nil {
		return flex.Site{}, m, err
	}

	s := n.site()
	m.Created = true
	_, err = giveConsent(ctx, tx, &s, n.ConsentAt, flex.Malformed)
	if err != nil {
		return s, m, err
	}

	err = tx.AddSite(ctx, &s, n.key)

	return s, m, err
}

// updateSite replaces the site's fields by those that were sent.
func updateSite(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
	n normal,
) (flex.Site, Merged, error) {
	m := merged()
	m.NewMPAN = n.MPAN != "" && s.MPAN.Reveal() != n.MPAN
	if m.NewMPAN && s.MPAN != "" {
		m.Warnings = append(
			m.Warnings,
			"mpan: the site at this address had another MPAN, which this one replaces",
		)
	}

	old := s
	m.replaceTexts(&s, n)

	if err := checkMayMoveTo(ctx, tx, s, old); err != nil {
		return s, m, err
	}

	given, err := giveConsent(ctx, tx, &s, n.ConsentAt, flex.Malformed)
	if err != nil {
		return s, m, err
	}

	if given {
		m.Updated = append(m.Updated, "gave_boundary_meter_consent_at")
	}

	before := s.Supply
	m.supply(&s.Supply, n.Supply)

	if len(m.Updated) == 0 {
		return s, m, nil
	}

	err = tx.UpdateSite(
		ctx,
		s,
		addressKey(s.Address.Reveal(), s.Postcode.Reveal()),
	)
	if err == nil && s.Supply != before {
		err = planSite(ctx, tx, s.ID) // plans may depend on its fuse
	}

	return s, m, err
}

// checkMayMoveTo fails if the site's new MPAN is of the property of another site, or its new
// address is another site's.
func checkMayMoveTo(ctx context.Context, tx *store.Tx, s, before flex.Site) error {
	if s.MPAN != before.MPAN {
		err := checkOnlyAtProperty(ctx, tx, s.MPAN.Reveal(), s.ID)
		if err != nil {
			return err
		}
	}

	other, err := otherAtAddress(ctx, tx, s, before)
	if err != nil || other == nil {
		return err
	}

	return flex.Fail(
		flex.Conflict,
		"another site with this address exists already: %s; the MPAN is that of site %s",
		other.ID,
		s.ID,
	)
}

// replaceTexts replaces the site's texts by those that were sent.
func (m *Merged) replaceTexts(s *flex.Site, n normal) {
	replace(m, "mpan", &s.MPAN, flex.Personal(n.MPAN))
	replace(m, "postcode", &s.Postcode, flex.Personal(n.Postcode))
	replace(m, "street_address", &s.Address, flex.Personal(n.Address))
	replace(m, "email", &s.Email, flex.Personal(n.Email))
}

// replace replaces the stored value by the given one, unless that is the zero value.
func replace[T comparable](m *Merged, field string, stored *T, given T) {
	var none T
	if given != none && given != *stored {
		*stored = given
		m.Updated = append(m.Updated, field)
	}
}

// supply replaces the stored capacity by the given one.
func (m *Merged) supply(stored *flex.Supply, change flex.SupplyChange) {
	after := change.Apply(*stored)
	// a default that is given explicitly is set from now on
	said := after.Set && !stored.Set
	drawn := change.Import != nil || change.Fuse != nil

	if after.Import != stored.Import || said && drawn {
		m.Updated = append(m.Updated, "import_capacity_kw")
	}

	if after.Export != stored.Export || said && change.Export != nil {
		m.Updated = append(m.Updated, "export_capacity_kw")
	}

	if after.Fuse != stored.Fuse {
		m.Updated = append(m.Updated, "main_fuse")
	}

	*stored = after
}

// findSite returns the site with the MPAN, else the one at the address, else nil.
func findSite(ctx context.Context, tx *store.Tx, n normal) (*flex.Site, error) {
	s, err := tx.SiteByMPAN(ctx, n.MPAN)
	if err != nil || s != nil {
		return s, err
	}

	return siteAtAddress(ctx, tx, n)
}

// mergeAsset finds the asset and updates it, or adds it to the site.
func mergeAsset(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	in AssetInput,
) (MergedAsset, error) {
	m := merged()

	old, err := lockAssetFound(ctx, tx, in.ExternalID)
	if err != nil {
		return MergedAsset{}, err
	}

	if old == nil {
		a, err := newAsset(ctx, tx, site, in)
		m.Created = true

		return MergedAsset{a, m}, err
	}

	if old.Type != in.Type {
		return MergedAsset{}, flex.Fail(
			flex.Conflict,
			"asset %s is a %s since it was first registered, and cannot become a %s",
			in.ExternalID,
			old.Type,
			in.Type,
		)
	}

	if old.SiteID != site {
		return MergedAsset{}, flex.Fail(
			flex.Conflict,
			"asset %s is registered at another site, and cannot move",
			in.ExternalID,
		)
	}

	return updateAsset(ctx, tx, *old, in)
}

// updateAsset replaces the asset's fields by those that were sent; if one changed, the asset
// is planned again.
func updateAsset(
	ctx context.Context,
	tx *store.Tx,
	a flex.Asset,
	in AssetInput,
) (MergedAsset, error) {
	m, before := merged(), a
	if in.change(&a) {
		m.Updated = append(m.Updated, "properties")
	}
	if err := in.apply(&a); err != nil {
		return MergedAsset{}, err
	}

	if err := dropModel(ctx, tx, &a, in.Model, &in.AssetProperties); err != nil {
		return MergedAsset{}, err
	}
	if err := setModel(ctx, tx, &a, in.Model); err != nil {
		return MergedAsset{}, err
	}

	if err := checkAsset(&before, &a); err != nil {
		return MergedAsset{}, err
	}

	m.model(&before, &a)

	if in.InstalledOn != "" && in.InstalledOn != a.InstalledOn {
		a.InstalledOn = in.InstalledOn
		m.Updated = append(m.Updated, "installation_date")
	}

	if len(m.Updated) == 0 {
		return MergedAsset{a, m}, nil
	}

	if err := tx.UpdateAsset(ctx, a); err != nil {
		return MergedAsset{}, err
	}

	return MergedAsset{a, m}, replanAfterChange(ctx, tx, before, a)
}

// OnboardedNew is the result of OnboardNew.
type OnboardedNew struct {
	Site  flex.SiteRecord
	Asset flex.Asset
}

// OnboardNew is the older form of Onboard: a new site with one new asset, and the user's
// consent to dispatch methods in place of propositions. It is a Conflict if the site or the
// asset exists. Consent to a method that is a proposition enrols the site in it, so it must be
// eligible; without methods the site is only registered, for its price curve.
func (s *Service) OnboardNew(
	ctx context.Context,
	org flex.OrgID,
	site SiteInput,
	asset AssetInput,
	methods []flex.DispatchMethod,
) (OnboardedNew, error) {
	n, err := s.readInput(ctx, org, site, []AssetInput{asset})
	if err != nil {
		return OnboardedNew{}, err
	}

	return write(ctx, s, org, func(tx *store.Tx) (OnboardedNew, error) {
		var made OnboardedNew
		if err := tx.LockOrg(ctx); err != nil {
			return made, err
		}

		if err := checkNew(ctx, tx, n, asset); err != nil {
			return made, err
		}

		o, err := merge(ctx, tx, n, []AssetInput{asset}, singlePlace)
		if err != nil {
			return made, err
		}

		made.Asset = o.Assets[0].Asset

		if err := recordConsents(ctx, tx, o.Site, methods); err != nil {
			return made, err
		}

		made.Site, err = tx.SiteRecord(ctx, o.Site.ID)

		return made, err
	})
}

// recordConsents stores the user's consent to methods, and enrols the site in those that are
// propositions.
func recordConsents(
	ctx context.Context,
	tx *store.Tx,
	site flex.Site,
	methods []flex.DispatchMethod,
) error {
	var err error
	for _, m := range methods {
		if p := flex.Proposition(m); slices.Contains(flex.Propositions, p) {
			_, err = enrol(ctx, tx, site, Enrolment{Proposition: p})
		} else {
			err = tx.AddMethod(ctx, site.ID, m)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// checkNew fails if the site or the asset exists.
func checkNew(
	ctx context.Context,
	tx *store.Tx,
	n normal,
	asset AssetInput,
) error {
	site, err := findSite(ctx, tx, n)
	if err != nil {
		return err
	}
	if site != nil {
		return flex.Fail(flex.Conflict, "the site exists already: %s", site.ID)
	}

	same, err := tx.AssetByExternalID(ctx, asset.ExternalID)
	if err != nil {
		return err
	}
	if same != nil {
		return flex.Fail(
			flex.Conflict,
			"an asset with this external id exists already: %s",
			same.ID,
		)
	}

	return nil
}

// UserSite returns the site of an end user, by the client's own id for them. If there is none
// it is created, for which the consent to the use of the boundary meter is needed. An email
// and a consent that were sent replace the stored ones.
func (s *Service) UserSite(
	ctx context.Context,
	org flex.OrgID,
	user, email string,
	consent time.Time,
) (flex.Site, error) {
	if email != "" && !isEmail(email) {
		return flex.Site{}, invalid([]flex.Fault{faultAt(
			"value_error.email",
			emailForm,
			nil,
			"user_email",
		)})
	}

	return write(ctx, s, org, func(tx *store.Tx) (flex.Site, error) {
		var site flex.Site
		if err := tx.LockOrg(ctx); err != nil {
			return site, err
		}

		o, err := tx.OrgRecord(ctx)
		if err != nil {
			return site, err
		}

		old, err := lockUser(ctx, tx, user)
		if err != nil {
			return site, err
		}

		if old != nil {
			return updateUser(ctx, tx, *old, email, consent)
		}

		if consent.IsZero() && !o.MeterConsentExempt {
			return site, invalid([]flex.Fault{faultAt(
				"value_error.missing",
				"field required: this user is new, and must have consented to the use of the boundary meter",
				nil,
				"gave_boundary_meter_consent_at",
			)})
		}

		site = flex.Site{
			Email:          flex.Personal(email),
			ExternalUserID: user,
		}

		if _, err := giveConsent(
			ctx,
			tx,
			&site,
			consent,
			flex.Invalid,
		); err != nil {
			return site, err
		}

		err = tx.AddSite(ctx, &site, "")
		return site, err
	})
}

// updateUser replaces the email and the consent of the user's site by those that were sent.
func updateUser(
	ctx context.Context,
	tx *store.Tx,
	s flex.Site,
	email string,
	consent time.Time,
) (flex.Site, error) {
	m := merged()
	replace(&m, "user_email", &s.Email, flex.Personal(email))

	given, err := giveConsentAgain(ctx, tx, &s, consent)
	if err != nil || !given && len(m.Updated) == 0 {
		return s, err
	}

	return s, tx.UpdateSite(
		ctx,
		s,
		addressKey(s.Address.Reveal(), s.Postcode.Reveal()),
	)
}

// changes reports whether a value is given and differs from the known one.
func changes[T comparable](known, given *T) bool {
	if given == nil {
		return false
	}
	return known == nil || *known != *given
}
