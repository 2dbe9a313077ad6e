package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"flexd/internal/flex"
)

// SiteMissing is what is said of a site that is absent or another organisation's.
const SiteMissing = "site not found or not authorized"

const siteColumns = `s.id, s.mpan, s.postcode, s.address, s.email, s.consent_at, s.tariff_type, s.cheap_start, s.cheap_end, s.external_user_id, s.created_at`

func scanSite(s scanner) (v flex.Site, err error) {
	var mpan, user *string
	var start, end string
	err = s.Scan(&v.ID, &mpan, &v.Postcode, &v.Address, &v.Email, instant{&v.ConsentAt}, &v.Tariff.Type, &start, &end, &user, instant{&v.CreatedAt})
	if err != nil {
		return v, err
	}
	if mpan != nil {
		v.MPAN = flex.Personal(*mpan)
	}
	if user != nil {
		v.ExternalUserID = *user
	}
	v.Tariff.CheapStart, v.Tariff.CheapEnd, err = wallTime(start), wallTime(end), nil
	return v, err
}

func wallTime(text string) *flex.WallTime {
	w, err := flex.ParseWallTime(text)
	if err != nil {
		return nil // empty: never told
	}
	return &w
}

func wallText(w *flex.WallTime) string {
	if w == nil {
		return ""
	}
	return w.String()
}

// LockOrg has other transactions that lock the organisation wait for the end of this one.
// What makes sites and assets takes it, so that two of them cannot both find none and make
// one.
func (tx *Tx) LockOrg(ctx context.Context) error {
	var one int
	err := tx.row(ctx, `SELECT 1 FROM org WHERE id = $1`+tx.db.d.forNoKeyUpdate, tx.org.Bytes()).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return flex.Fail(flex.NotFound, "organisation not found")
	}
	return err
}

// AddSite keeps a new site, whose id and instant it sets. The address key is what two ways
// of writing one address have in common; it may be empty.
func (tx *Tx) AddSite(ctx context.Context, s *flex.Site, addressKey string) error {
	s.ID, s.CreatedAt = flex.SiteID(tx.newID()), tx.now
	_, err := tx.exec(ctx, `
		INSERT INTO site (id, org_id, mpan, postcode, address, address_key, email, consent_at, tariff_type, cheap_start, cheap_end, external_user_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		s.ID.Bytes(), tx.org.Bytes(), nullable(s.MPAN.Reveal()), s.Postcode.Reveal(), s.Address.Reveal(), nullable(addressKey), s.Email.Reveal(),
		micros(s.ConsentAt), string(s.Tariff.Type), wallText(s.Tariff.CheapStart), wallText(s.Tariff.CheapEnd), nullable(s.ExternalUserID), micros(s.CreatedAt))
	if err == nil && !s.ConsentAt.IsZero() {
		err = tx.addConsent(ctx, s.ID, boundaryMeter, s.ConsentAt)
	}
	return err
}

// UpdateSite replaces what may change of a site: all but its id and the end user it is for.
func (tx *Tx) UpdateSite(ctx context.Context, s flex.Site, addressKey string) error {
	var before time.Time
	if err := tx.row(ctx, `SELECT consent_at FROM site WHERE org_id = $1 AND id = $2`, tx.org.Bytes(), s.ID.Bytes()).Scan(instant{&before}); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `
		UPDATE site SET mpan = $3, postcode = $4, address = $5, address_key = $6, email = $7, consent_at = $8, tariff_type = $9, cheap_start = $10, cheap_end = $11
		WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(), s.ID.Bytes(), nullable(s.MPAN.Reveal()), s.Postcode.Reveal(), s.Address.Reveal(), nullable(addressKey), s.Email.Reveal(),
		micros(s.ConsentAt), string(s.Tariff.Type), wallText(s.Tariff.CheapStart), wallText(s.Tariff.CheapEnd))
	if err == nil && !s.ConsentAt.Equal(before) {
		err = tx.addConsent(ctx, s.ID, boundaryMeter, s.ConsentAt)
	}
	return err
}

// Site returns a site of the organisation, or a NotFound failure.
func (tx *Tx) Site(ctx context.Context, id flex.SiteID) (flex.Site, error) {
	return one(ctx, tx.conn, SiteMissing, scanSite, `SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND s.id = $2`, tx.org.Bytes(), id.Bytes())
}

// HoldSite is Site, and has other transactions that hold the same site wait for the end of
// this one.
func (tx *Tx) HoldSite(ctx context.Context, id flex.SiteID) (flex.Site, error) {
	return one(ctx, tx.conn, SiteMissing, scanSite,
		`SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND s.id = $2`+tx.db.d.forNoKeyUpdate, tx.org.Bytes(), id.Bytes())
}

// SiteByMPAN returns the organisation's site with the MPAN, or nil if there is none.
func (tx *Tx) SiteByMPAN(ctx context.Context, mpan string) (*flex.Site, error) {
	return tx.siteBy(ctx, `s.mpan = $2`, mpan)
}

// SiteByAddress returns the organisation's oldest site with the address key, or nil.
func (tx *Tx) SiteByAddress(ctx context.Context, key string) (*flex.Site, error) {
	return tx.siteBy(ctx, `s.address_key = $2`, key)
}

// SiteByUser returns the organisation's site of an end user, by the client's own id for
// them, or nil.
func (tx *Tx) SiteByUser(ctx context.Context, user string) (*flex.Site, error) {
	return tx.siteBy(ctx, `s.external_user_id = $2`, user)
}

func (tx *Tx) siteBy(ctx context.Context, condition, value string) (*flex.Site, error) {
	s, err := scanSite(tx.row(ctx, `SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND `+condition+` ORDER BY s.id LIMIT 1`, tx.org.Bytes(), value))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &s, err
}

// DropSite deletes a site with its enrolments and consents in force; their history stays.
// Its assets must be gone.
func (tx *Tx) DropSite(ctx context.Context, id flex.SiteID) error {
	for _, table := range []string{"dispatch_method", "enrolment", "cloud_link", "cloud_token", "token"} {
		if _, err := tx.exec(ctx, `DELETE FROM `+table+` WHERE org_id = $1 AND site_id = $2`, tx.org.Bytes(), id.Bytes()); err != nil {
			return err
		}
	}
	_, err := tx.exec(ctx, `DELETE FROM site WHERE org_id = $1 AND id = $2`, tx.org.Bytes(), id.Bytes())
	return err
}

// SiteRecord is a site with what belongs to it.
type SiteRecord struct {
	flex.Site
	Assets  []flex.AssetID
	Methods []flex.DispatchMethod
	Meter   *flex.Meter // nil if its MPAN is on no list
}

// SiteFilter chooses sites; what is empty takes all. Limit must be set.
type SiteFilter struct {
	MPAN, Postcode string
	Limit, Offset  int
}

// SiteRecords returns a page of the organisation's sites in the order in which they were
// made, and how many the filter chooses in all.
func (tx *Tx) SiteRecords(ctx context.Context, f SiteFilter) (page []SiteRecord, total int, err error) {
	where, args := `WHERE s.org_id = $1`, []any{tx.org.Bytes()}
	if f.MPAN != "" {
		where, args = where+` AND s.mpan = $2`, append(args, f.MPAN)
	}
	if f.Postcode != "" && f.MPAN != "" {
		where, args = where+` AND s.postcode = $3`, append(args, f.Postcode)
	} else if f.Postcode != "" {
		where, args = where+` AND s.postcode = $2`, append(args, f.Postcode)
	}
	if err := tx.row(ctx, `SELECT count(*) FROM site s `+where, args...).Scan(&total); err != nil {
		return nil, 0, err
	}
	page, err = tx.siteRecords(ctx, where+` ORDER BY s.id`+limited(len(args)), append(args, f.Limit, f.Offset)...)
	return page, total, err
}

// limited is the page of a query whose other parameters number n.
func limited(n int) string {
	texts := [...]string{1: ` LIMIT $2 OFFSET $3`, 2: ` LIMIT $3 OFFSET $4`, 3: ` LIMIT $4 OFFSET $5`}
	return texts[n]
}

// SiteRecord returns one site with what belongs to it, or a NotFound failure.
func (tx *Tx) SiteRecord(ctx context.Context, id flex.SiteID) (SiteRecord, error) {
	page, err := tx.siteRecords(ctx, `WHERE s.org_id = $1 AND s.id = $2`, tx.org.Bytes(), id.Bytes())
	if err == nil && len(page) == 0 {
		return SiteRecord{}, flex.Fail(flex.NotFound, SiteMissing)
	}
	if err != nil {
		return SiteRecord{}, err
	}
	return page[0], nil
}

func (tx *Tx) siteRecords(ctx context.Context, where string, args ...any) ([]SiteRecord, error) {
	page, err := rows(ctx, tx.conn, func(s scanner) (r SiteRecord, err error) {
		r.Site, err = scanSite(s)
		return r, err
	}, `SELECT `+siteColumns+` FROM site s `+where, args...)
	if err != nil || len(page) == 0 {
		return page, err
	}
	at := make(map[flex.SiteID]*SiteRecord, len(page))
	for i := range page {
		at[page[i].ID] = &page[i]
	}
	chosen := `(SELECT s.id FROM site s ` + where + `)`
	if err := tx.fillAssets(ctx, at, chosen, args); err != nil {
		return nil, err
	}
	if err := tx.fillMethods(ctx, at, chosen, args); err != nil {
		return nil, err
	}
	return page, tx.fillMeters(ctx, at, chosen, args)
}

func (tx *Tx) fillAssets(ctx context.Context, at map[flex.SiteID]*SiteRecord, chosen string, args []any) error {
	type owned struct {
		site  flex.SiteID
		asset flex.AssetID
	}
	found, err := rows(ctx, tx.conn, func(s scanner) (o owned, err error) { return o, s.Scan(&o.site, &o.asset) },
		`SELECT site_id, id FROM asset WHERE site_id IN `+chosen+` ORDER BY id`, args...)
	for _, o := range found {
		at[o.site].Assets = append(at[o.site].Assets, o.asset)
	}
	return err
}

func (tx *Tx) fillMethods(ctx context.Context, at map[flex.SiteID]*SiteRecord, chosen string, args []any) error {
	type given struct {
		site   flex.SiteID
		method flex.DispatchMethod
	}
	found, err := rows(ctx, tx.conn, func(s scanner) (g given, err error) { return g, s.Scan(&g.site, &g.method) },
		`SELECT site_id, method FROM dispatch_method WHERE site_id IN `+chosen+` ORDER BY method`, args...)
	for _, g := range found {
		at[g.site].Methods = append(at[g.site].Methods, g.method)
	}
	return err
}

func (tx *Tx) fillMeters(ctx context.Context, at map[flex.SiteID]*SiteRecord, chosen string, args []any) error {
	type metered struct {
		site  flex.SiteID
		meter flex.Meter
	}
	found, err := rows(ctx, tx.conn, func(s scanner) (v metered, err error) {
		m := &v.meter
		return v, s.Scan(&v.site, &m.MPAN, &m.Import, &m.Address, &m.Postcode, &m.UPRN, &m.Energised, &m.HalfHourly, &m.Domestic,
			&m.SupplierMPID, &m.SupplierName, &m.GSPGroup)
	}, `SELECT o.id, `+meterColumns+` FROM site o JOIN meter m ON m.mpan = o.mpan WHERE o.id IN `+chosen, args...)
	for _, v := range found {
		at[v.site].Meter = &v.meter
	}
	return err
}
