package registry

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CreateSite registers a new site. It is a Conflict if a site is at the same address, and
// Malformed if one has the same MPAN; both failures name that site.
func (s *Service) CreateSite(
	ctx context.Context,
	org flex.OrgID,
	in SiteInput,
) (flex.SiteRecord, error) {
	lacking, err := s.mayLackMPAN(ctx, org, in)
	if err != nil {
		return flex.SiteRecord{}, err
	}

	n, faults := in.newSite(lacking)
	if err := invalid(faults); err != nil {
		return flex.SiteRecord{}, err
	}

	if in.Email != "" && !isEmail(in.Email) {
		return flex.SiteRecord{}, flex.Fail(flex.Malformed, emailForm)
	}

	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		return createSite(ctx, tx, n)
	})
}

func createSite(
	ctx context.Context,
	tx *store.Tx,
	n normal,
) (flex.SiteRecord, error) {
	var r flex.SiteRecord
	if err := tx.LockOrg(ctx); err != nil {
		return r, err
	}

	if err := checkNewSite(ctx, tx, n); err != nil {
		return r, err
	}

	site := n.site()
	if _, err := giveConsent(
		ctx,
		tx,
		&site,
		n.ConsentAt,
		flex.Malformed,
	); err != nil {
		return r, err
	}

	if err := tx.AddSite(ctx, &site, n.key); err != nil {
		return r, err
	}

	return tx.SiteRecord(ctx, site.ID)
}

// checkNewSite fails if the organisation has a site at the address or with the MPAN.
func checkNewSite(ctx context.Context, tx *store.Tx, n normal) error {
	old, err := siteAtAddress(ctx, tx, n)
	if err != nil {
		return err
	}
	if old != nil {
		return flex.Fail(
			flex.Conflict,
			"a site with this address exists already: %s",
			old.ID,
		)
	}

	old, err = tx.SiteByMPAN(ctx, n.MPAN)
	if err != nil {
		return err
	}
	if old != nil {
		return flex.Fail(
			flex.Malformed,
			"a site with this MPAN exists already: %s",
			old.ID,
		)
	}

	return checkOnlyAtProperty(ctx, tx, n.MPAN, flex.SiteID{})
}

// checkOnlyAtProperty fails if the organisation has another site than id at the property of
// the MPAN's metering point.
func checkOnlyAtProperty(
	ctx context.Context,
	tx *store.Tx,
	mpan string,
	id flex.SiteID,
) error {
	old, err := siteAtProperty(ctx, tx, mpan)
	if err != nil {
		return err
	}
	if old != nil && old.ID != id {
		return flex.Fail(
			flex.Conflict,
			"a site at this property (UPRN) exists already, with another MPAN: %s",
			old.ID,
		)
	}

	return nil
}

func (n normal) site() flex.Site {
	return flex.Site{
		MPAN:     flex.Personal(n.MPAN),
		Postcode: flex.Personal(n.Postcode),
		Address:  flex.Personal(n.Address),
		Email:    flex.Personal(n.Email),
		Supply:   n.Supply.Apply(flex.DefaultSupply),
	}
}

// Site returns a site with its enrolments and assets.
func (s *Service) Site(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (flex.SiteRecord, error) {
	return read(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		return tx.SiteRecord(ctx, id)
	})
}

// SiteQuery selects sites; an empty field selects all. Limit must be set.
type SiteQuery struct {
	MPAN     string
	Postcode string
	Limit    int
	Offset   int
}

// SitePage is a page of sites, which may be shared and must not be changed, with the total
// number.
type SitePage struct {
	Sites []flex.SiteRecord
	Total int
}

// Sites returns a page of the selected sites, oldest first. An invalid MPAN or postcode
// selects no site.
func (s *Service) Sites(
	ctx context.Context,
	org flex.OrgID,
	q SiteQuery,
) (SitePage, error) {
	f := store.SiteFilter{
		MPAN:     q.MPAN,
		Postcode: q.Postcode,
		Limit:    q.Limit,
		Offset:   q.Offset,
	}

	if f.MPAN != "" {
		mpan, _ := normalMPAN(f.MPAN)
		if mpan == "" {
			return SitePage{}, nil
		}
		f.MPAN = mpan
	}

	if f.Postcode != "" {
		// A site without a metering point may have the postcode of any country.
		postcode, faults := postcodeAbroad(f.Postcode, nil)
		if len(faults) > 0 {
			return SitePage{}, nil
		}
		f.Postcode = postcode
	}

	return read(ctx, s, org, func(tx *store.Tx) (SitePage, error) {
		found, err := tx.SiteRecords(ctx, f)
		return SitePage{Sites: found.Sites, Total: found.Total}, err
	})
}

// SiteChange is a change of a site; a nil field is unchanged.
type SiteChange struct {
	MPAN       *string
	Postcode   *string
	Address    *string
	Email      *string
	Tariff     *flex.SiteTariff
	Supply     flex.SupplyChange
	SupplyFrom Dating
	Calls      *flex.AgreedCalls
}

// ChangeSite changes a site. These are faults: an MPAN or an address of another site of the
// organisation, an MPAN with which the site would not be eligible for its enrolments, and a
// day of a capacity that is in the future. A day of which something was settled is a Conflict.
func (s *Service) ChangeSite(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
	c SiteChange,
) (flex.SiteRecord, error) {
	if err := s.lookUpChanged(ctx, org, id, c.MPAN); err != nil {
		return flex.SiteRecord{}, err
	}

	return write(ctx, s, org, func(tx *store.Tx) (flex.SiteRecord, error) {
		return changeSite(ctx, tx, id, c)
	})
}

// changeSite is ChangeSite within a transaction.
func changeSite(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
	c SiteChange,
) (flex.SiteRecord, error) {
	var r flex.SiteRecord
	if err := c.lock(ctx, tx); err != nil {
		return r, err
	}

	site, err := tx.LockedSite(ctx, id)
	if err != nil {
		return r, err
	}

	if err := c.SupplyFrom.faults(
		tx.Now(),
		"capacity_from",
		"capacity",
		c.Supply != flex.SupplyChange{},
	); err != nil {
		return r, err
	}

	before := site
	n, err := c.checked(ctx, tx, &site)
	if err != nil {
		return r, err
	}

	if err := c.save(ctx, tx, site, before, n.key); err != nil {
		return r, err
	}

	r, err = tx.SiteRecord(ctx, id)
	if err == nil && (c.Tariff != nil || site.Supply != before.Supply) {
		// plans may depend on the site's tariff and fuse
		err = planSite(ctx, tx, id)
	}

	return r, err
}

// lock takes the locks that come before the site's.
func (c SiteChange) lock(ctx context.Context, tx *store.Tx) error {
	if err := c.SupplyFrom.lock(ctx, tx); err != nil {
		return err
	}
	return tx.LockOrg(ctx)
}

// checked checks and applies the change, and returns the site in normal form.
func (c SiteChange) checked(ctx context.Context, tx *store.Tx, s *flex.Site) (normal, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return normal{}, err
	}

	before := *s
	n, err := c.apply(s, withoutMPAN(org))
	if err != nil {
		return n, err
	}

	if err := checkMPANFree(ctx, tx, *s, before); err != nil {
		return n, err
	}

	return n, c.checkAddressFree(ctx, tx, *s, before)
}

// checkAddressFree fails if the site's new address is another site's.
func (c SiteChange) checkAddressFree(
	ctx context.Context,
	tx *store.Tx,
	s, before flex.Site,
) error {
	other, err := otherAtAddress(ctx, tx, s, before)
	if err != nil || other == nil {
		return err
	}

	field := "address"
	if c.Address == nil {
		field = "postcode"
	}

	return invalid([]flex.Fault{faultAt(
		"value_error.address.taken",
		"another site has this address: "+other.ID.String(),
		nil,
		field,
	)})
}

// checkMPANFree fails if the site's new MPAN is another site's, or of another site's property.
func checkMPANFree(
	ctx context.Context,
	tx *store.Tx,
	s, before flex.Site,
) error {
	if s.MPAN == before.MPAN {
		return nil
	}

	other, err := tx.SiteByMPAN(ctx, s.MPAN.Reveal())
	if err != nil {
		return err
	}
	if other != nil && other.ID != s.ID {
		return mpanTaken("another site has this MPAN: ", other.ID)
	}

	other, err = siteAtProperty(ctx, tx, s.MPAN.Reveal())
	if err != nil {
		return err
	}
	if other != nil && other.ID != s.ID {
		return mpanTaken("another site is at the property (UPRN) of this MPAN: ", other.ID)
	}

	return nil
}

func mpanTaken(reason string, by flex.SiteID) error {
	return invalid([]flex.Fault{faultAt(
		"value_error.mpan.taken",
		reason+by.String(),
		nil,
		"mpan",
	)})
}

// save stores the changed site; its capacity counts from the day that was given.
func (c SiteChange) save(
	ctx context.Context,
	tx *store.Tx,
	s, before flex.Site,
	key string,
) error {
	if err := c.storeCalls(ctx, tx, s.ID); err != nil {
		return err
	}

	if s.MPAN != before.MPAN {
		if err := checkStillEligible(ctx, tx, s); err != nil {
			return err
		}
	}

	if !c.SupplyFrom.given() {
		return tx.UpdateSite(ctx, s, key)
	}

	after := s.Supply
	s.Supply = before.Supply

	if err := tx.UpdateSite(ctx, s, key); err != nil {
		return err
	}

	return c.SupplyFrom.setSupply(ctx, tx, s.ID, after)
}

// storeCalls stores how often the site may be called, if that was given.
func (c SiteChange) storeCalls(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) error {
	if c.Calls == nil {
		return nil
	}
	if err := c.Calls.Check(); err != nil {
		return err
	}

	return tx.SetAgreedCalls(ctx, id, *c.Calls)
}

// input returns the changed site as the request that would register it.
func (c SiteChange) input(s *flex.Site) SiteInput {
	in := SiteInput{
		MPAN:     s.MPAN.Reveal(),
		Postcode: s.Postcode.Reveal(),
		Address:  s.Address.Reveal(),
		Supply:   c.Supply,
	}

	setIfSent(&in.MPAN, c.MPAN)
	setIfSent(&in.Postcode, c.Postcode)
	setIfSent(&in.Address, c.Address)

	return in
}

// apply applies the change, and returns the site in normal form.
func (c SiteChange) apply(s *flex.Site, withoutMPAN bool) (normal, error) {
	// A postcode that is not sent was accepted before, whatever the organisation allows today.
	n, faults := c.input(s).normalise(withoutMPAN || c.Postcode == nil)
	for i := range faults {
		last := len(faults[i].Loc) - 1
		if faults[i].Loc[last] == "street_address" {
			faults[i].Loc[last] = "address"
		}
	}

	if c.Email != nil && *c.Email != "" && !isEmail(*c.Email) {
		faults = append(
			faults,
			faultAt("value_error.email", emailForm, nil, "email"),
		)
	}

	if err := invalid(faults); err != nil {
		return n, err
	}

	s.MPAN = flex.Personal(n.MPAN)
	s.Postcode = flex.Personal(n.Postcode)
	s.Address = flex.Personal(n.Address)
	s.Supply = c.Supply.Apply(s.Supply)

	if c.Email != nil {
		s.Email = flex.Personal(*c.Email)
	}
	setIfSent(&s.Tariff, c.Tariff)

	return n, nil
}

// setIfSent sets a field to the value that was sent, if one was.
func setIfSent[T any](field *T, sent *T) {
	if sent != nil {
		*field = *sent
	}
}

// DeleteSite deletes a site. It is Malformed if the site has assets or enrolments, or a
// payment to its user is under way.
func (s *Service) DeleteSite(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if _, err := lockSite(ctx, tx, id); err != nil {
			return err
		}

		r, err := tx.SiteRecord(ctx, id)
		if err != nil {
			return err
		}

		if len(r.Assets) > 0 {
			return flex.Fail(
				flex.Malformed,
				"the site still has assets: delete them first, or offboard the site",
			)
		}

		for _, p := range flex.Propositions {
			state, err := tx.Enrolment(ctx, id, p)
			if err != nil {
				return err
			}

			if state == flex.Enrolled {
				return flex.Fail(
					flex.Malformed,
					"the site is enrolled in %s: unenrol it first, or offboard it",
					p,
				)
			}
		}

		if err := checkNoOpenWithdrawal(ctx, tx, id); err != nil {
			return err
		}

		return tx.DropSite(ctx, id)
	})
}
