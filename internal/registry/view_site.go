package registry

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// SiteView is a site with its consents and enrolments, as operators see it.
type SiteView struct {
	ID             flex.SiteID
	OrgID          flex.OrgID
	OrgName        string
	Address        string
	Postcode       string
	Email          string
	MPAN           string
	ExternalUserID string
	CreatedAt      time.Time
	Tariff         TariffView
	Supply         SupplyView
	Calls          CallsUsed
	Ratings        []RatingView // the supply's and the assets', oldest first
	Meter          *MeterView   // null if its MPAN is on no list
	Assets         []AssetLine
	Methods        []flex.DispatchMethod
	Enrolments     []EnrolmentLine
	// to the use of the boundary meter; zero if it is not in force
	ConsentAt time.Time
	Spans     []ConsentLine // to the same, the newest first
	Steps     []SiteStep    // the newest first
}

// TariffView is the tariff in the site's record.
type TariffView struct {
	Type       flex.TariffType // "" if never given
	CheapStart string          // HH:MM:SS by London's clock, "" if never given
	CheapEnd   string

	// in pence for each kWh, nil if never given
	ImportRate  *float64
	OffPeakRate *float64
	ExportRate  *float64
}

// SupplyView is the capacity of the site's connection.
type SupplyView struct {
	Import flex.Watts
	Export flex.Watts
	Set    bool      // for this site; else it is the default
	Fuse   flex.Fuse // from which Import was computed; zero if it was not
}

// RatingView is the capacity of a connection, or an asset's power, during a time.
type RatingView struct {
	Asset  string     // "" for the connection
	From   time.Time  // zero: from the beginning
	Until  time.Time  // zero: without end
	At     time.Time  // zero: before ratings were dated
	Counts bool       // it was not replaced
	Import flex.Watts // for an asset: its power, 0 if not known
	Export flex.Watts // of the connection alone
}

// MeterView is the site's metering point, by the imported lists.
type MeterView struct {
	Import       bool // direction; false is export
	HalfHourly   bool
	Energised    bool
	Domestic     bool
	SupplierMPID string
	SupplierName string
	GSPGroup     string
}

// EnrolmentLine is the state of a site in a proposition.
type EnrolmentLine struct {
	Name  flex.Proposition
	State flex.EnrolmentState // "" if it was never enrolled
}

// SiteStep is a change of a consent or an enrolment.
type SiteStep struct {
	At       time.Time
	Consent  string // what was consented to, "" for an enrolment
	Given    bool   // whether the consent was given, or else withdrawn
	Enrolled flex.Proposition
	State    flex.EnrolmentState
}

// ConsentLine is a span of the consent to the use of a site's boundary meter.
type ConsentLine struct {
	From  time.Time
	To    time.Time
	Holds bool // it was not withdrawn
}

// SiteView reads a site of any organisation, in one transaction.
func (s *Service) SiteView(
	ctx context.Context,
	id flex.SiteID,
) (SiteView, error) {
	var v SiteView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		org, err := all.SiteOrg(ctx, id)
		if err != nil {
			return err
		}

		v, err = siteView(ctx, all, org, id)
		return err
	})

	return v, err
}

// SiteViewOf reads a site of the organisation. Another organisation's is NotFound.
func (s *Service) SiteViewOf(
	ctx context.Context,
	org flex.OrgID,
	id flex.SiteID,
) (SiteView, error) {
	var v SiteView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		v, err = siteView(ctx, all, org, id)
		return err
	})

	return v, err
}

func siteView(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
	id flex.SiteID,
) (SiteView, error) {
	tx, err := all.For(ctx, org)
	if err != nil {
		return SiteView{}, err
	}

	var v SiteView
	if err := v.readRecord(ctx, tx, id); err != nil {
		return v, err
	}

	v.Assets, err = assetLines(all.FindAssets(ctx, store.Find{
		Site:  id,
		Limit: siteAssetsMax,
	}))
	if err != nil {
		return v, err
	}

	err = v.readConsents(ctx, tx)

	return v, err
}

// readRecord reads the site's record, its meter and its ratings.
func (v *SiteView) readRecord(
	ctx context.Context,
	tx *store.Tx,
	id flex.SiteID,
) error {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	s, err := tx.Site(ctx, id)
	if err != nil {
		return err
	}

	v.OrgID, v.OrgName = org.ID, org.Name
	v.addSite(&s)

	v.Calls, err = callsUsed(ctx, tx, id)
	if err != nil {
		return err
	}

	meter, err := tx.Meter(ctx, v.MPAN)
	if err != nil {
		return err
	}

	v.Meter = meterView(meter)

	ratings, err := ratingsOf(ctx, tx, id)
	v.addRatings(&ratings)

	return err
}

// addSite adds the site's own record.
func (v *SiteView) addSite(s *flex.Site) {
	v.ID = s.ID
	v.Address = s.Address.Reveal()
	v.Postcode = s.Postcode.Reveal()
	v.Email = s.Email.Reveal()
	v.MPAN = s.MPAN.Reveal()
	v.ExternalUserID = s.ExternalUserID
	v.CreatedAt = s.CreatedAt
	v.ConsentAt = s.ConsentAt
	v.Supply = SupplyView(s.Supply)
	v.Tariff = tariffView(&s.Tariff)
}

func meterView(m *flex.Meter) *MeterView {
	if m == nil {
		return nil
	}

	return &MeterView{
		Import:       m.Import,
		HalfHourly:   m.HalfHourly,
		Energised:    m.Energised,
		Domestic:     m.Domestic,
		SupplierMPID: m.SupplierMPID,
		SupplierName: m.SupplierName,
		GSPGroup:     m.GSPGroup,
	}
}

func tariffView(t *flex.SiteTariff) TariffView {
	v := TariffView{
		Type:        t.Type,
		ImportRate:  t.Rates.Import,
		OffPeakRate: t.Rates.OffPeak,
		ExportRate:  t.Rates.Export,
	}

	if t.CheapStart != nil {
		v.CheapStart = t.CheapStart.String()
	}
	if t.CheapEnd != nil {
		v.CheapEnd = t.CheapEnd.String()
	}

	return v
}

// addRatings lists the connection's ratings, and then the assets'.
func (v *SiteView) addRatings(r *Ratings) {
	for _, l := range r.Supplies {
		v.Ratings = append(v.Ratings, RatingView{
			From:   l.From,
			Until:  l.Until,
			At:     l.At,
			Counts: l.Counts,
			Import: l.Is.Import,
			Export: l.Is.Export,
		})
	}

	for _, a := range r.Assets {
		for _, l := range a.Powers {
			v.Ratings = append(v.Ratings, RatingView{
				Asset:  a.ExternalID,
				From:   l.From,
				Until:  l.Until,
				At:     l.At,
				Counts: l.Counts,
				Import: l.Is,
			})
		}
	}
}

// readConsents reads the site's consents and enrolments, with their history.
func (v *SiteView) readConsents(ctx context.Context, tx *store.Tx) error {
	var err error
	v.Methods, err = tx.Methods(ctx, v.ID)
	if err != nil {
		return err
	}

	for _, name := range flex.Propositions {
		state, err := tx.Enrolment(ctx, v.ID, name)
		if err != nil {
			return err
		}
		v.Enrolments = append(v.Enrolments, EnrolmentLine{
			Name:  name,
			State: state,
		})
	}

	if err := v.readSteps(ctx, tx); err != nil {
		return err
	}

	spans, err := tx.ConsentSpans(ctx, []flex.SiteID{v.ID}, time.Time{})
	for _, s := range slices.Backward(spans[v.ID]) {
		v.Spans = append(v.Spans, ConsentLine{
			s.From,
			s.To,
			s.To.After(tx.Now()),
		})
	}

	return err
}

// readSteps reads the changes of the site's consents and enrolments.
func (v *SiteView) readSteps(ctx context.Context, tx *store.Tx) error {
	consents, err := tx.Consents(ctx, v.ID)
	if err != nil {
		return err
	}

	for _, c := range consents {
		v.Steps = append(v.Steps, SiteStep{
			At:      c.RecordedAt,
			Consent: c.Kind,
			Given:   !c.GivenAt.IsZero(),
		})
	}

	changes, err := tx.EnrolmentChanges(ctx, v.ID)
	for _, c := range changes {
		v.Steps = append(v.Steps, SiteStep{
			At:       c.At,
			Enrolled: c.Proposition,
			State:    c.State,
		})
	}

	slices.SortStableFunc(v.Steps, func(a, b SiteStep) int {
		return b.At.Compare(a.At)
	})

	return err
}
