package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// siteColumns are the columns that scanSite reads, in its order.
const siteColumns = `s.id, s.mpan, s.postcode, s.address, s.email, s.consent_at,
	s.tariff_type, s.cheap_start, s.cheap_end, s.external_user_id, s.created_at, s.rates,
	s.import_w, s.export_w, s.supply_set, s.fuse_ma, s.fuse_phases, s.discharge_consent_at, ` + callsColumns

func (c conn) scanSite(s scanner) (flex.Site, error) {
	var tariff, start, end string
	var rates flex.TariffRates
	var fuse int64
	var v flex.Site
	err := s.Scan(
		&v.ID,
		opened(c, personMPAN, &v.MPAN),
		opened(c, personPostcode, &v.Postcode),
		opened(c, personAddress, &v.Address),
		opened(c, personEmail, &v.Email),
		instant{&v.ConsentAt},
		&tariff,
		&start,
		&end,
		opened(c, personUser, &v.ExternalUserID),
		instant{&v.CreatedAt},
		ratesText{&rates},
		&v.Supply.Import,
		&v.Supply.Export,
		&v.Supply.Set,
		&fuse,
		&v.Supply.Fuse.Phases,
		instant{&v.DischargeConsentAt},
		optionalInt{&v.Calls.PerDay},
		optionalInt{&v.Calls.PerMonth},
	)

	if err != nil {
		return v, err
	}

	v.Supply.Fuse.Amperes = float64(fuse) / 1000
	v.Tariff = siteTariff(tariff, start, end, rates)

	return v, nil
}

// siteTariff returns a site's own tariff from its columns.
func siteTariff(typ, cheapStart, cheapEnd string, rates flex.TariffRates) flex.SiteTariff {
	return flex.SiteTariff{
		Type:       flex.TariffType(typ),
		CheapStart: wallTime(cheapStart),
		CheapEnd:   wallTime(cheapEnd),
		Rates:      rates,
	}
}

// wallTime parses what wallText wrote; nil for a text that is not a time.
func wallTime(text string) *flex.WallTime {
	if text == "" {
		return nil
	}

	w, err := flex.ParseWallTime(text)
	if err != nil {
		return nil
	}

	return &w
}

func wallText(w *flex.WallTime) string {
	if w == nil {
		return ""
	}
	return w.String()
}

// LockOrg makes other transactions that lock the organisation wait for the end of this one.
// Whatever creates a site or an asset takes this lock: two transactions cannot both find none
// and create one each.
func (tx *Tx) LockOrg(ctx context.Context) error {
	return tx.lockOrg(ctx, tx.db.d.forNoKeyUpdate)
}

// lockOrg locks the organisation in one of the dialect's ways.
func (tx *Tx) lockOrg(ctx context.Context, how string) error {
	var one int
	err := tx.row(
		ctx,
		`SELECT 1 FROM org WHERE id = $1`+how,
		tx.org.Bytes(),
	).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return flex.Fail(flex.NotFound, "organisation not found")
	}

	return err
}

// AddSite stores a new site and sets its id and its instant. The address key is the normalised address,
// the same for each way of writing it; it may be empty. A site without a supply gets the default.
func (tx *Tx) AddSite(
	ctx context.Context,
	s *flex.Site,
	addressKey string,
) error {
	s.ID, s.CreatedAt = flex.SiteID(tx.newID()), tx.now
	s.Supply = orDefault(s.Supply)

	row := append(tx.siteValues(*s, addressKey),
		value{"id", s.ID.Bytes()},
		value{"org_id", tx.org.Bytes()},
		value{"external_user_id", nullable(tx.hide(personUser, s.ExternalUserID))},
		value{"created_at", micros(s.CreatedAt)},
	)
	if err := tx.insert(ctx, "site", row); err != nil {
		return err
	}

	if err := tx.startHistories(ctx, s); err != nil {
		return err
	}

	return tx.touchRegister(ctx)
}

// startHistories records since when a new site has its consent, its supply and its metering point.
func (tx *Tx) startHistories(ctx context.Context, s *flex.Site) error {
	if !s.ConsentAt.IsZero() {
		if err := tx.setConsent(ctx, s.ID, s.ConsentAt); err != nil {
			return err
		}
	}

	if s.Supply.Set {
		if err := tx.addSupply(ctx, s.ID, s.Supply); err != nil {
			return err
		}
	}

	if s.MPAN == "" {
		return nil
	}

	return tx.notePoint(ctx, s.ID, s.MPAN.Reveal())
}

// siteValues are the columns of a site that may change, and their values.
func (c conn) siteValues(s flex.Site, addressKey string) []value {
	return []value{
		{"mpan", nullable(c.hide(personMPAN, s.MPAN.Reveal()))},
		{"postcode", c.hide(personPostcode, s.Postcode.Reveal())},
		{"address", c.hide(personAddress, s.Address.Reveal())},
		{"address_key", nullable(c.hide(personAddress, addressKey))},
		{"email", c.hide(personEmail, s.Email.Reveal())},
		{"consent_at", micros(s.ConsentAt)},

		{"tariff_type", string(s.Tariff.Type)},
		{"cheap_start", wallText(s.Tariff.CheapStart)},
		{"cheap_end", wallText(s.Tariff.CheapEnd)},
		{"rates", ratesValue(s.Tariff.Rates)},

		{"import_w", int64(s.Supply.Import)},
		{"export_w", int64(s.Supply.Export)},
		{"supply_set", s.Supply.Set},
		{"fuse_ma", s.Supply.Fuse.MilliAmperes()},
		{"fuse_phases", s.Supply.Fuse.Phases},
	}
}

// UpdateSite replaces what may change of a site: all but its id and the end user it is for.
func (tx *Tx) UpdateSite(
	ctx context.Context,
	s flex.Site,
	addressKey string,
) error {
	before, err := tx.Site(ctx, s.ID)
	if err != nil {
		return err
	}

	s.Supply.Set = s.Supply.Set || s.Supply != before.Supply
	if err := tx.recordFormer(ctx, before, s); err != nil {
		return err
	}

	err = tx.update(ctx, "site", s.ID.Bytes(), tx.siteValues(s, addressKey))
	if err != nil {
		return err
	}

	if err := tx.recordChanges(ctx, before, s); err != nil {
		return err
	}

	if err := tx.follow(ctx, s.ID); err != nil {
		return err
	}

	return tx.touchRegister(ctx)
}

// recordFormer records the e-mail address and the metering point that a site had, before it is changed.
func (tx *Tx) recordFormer(ctx context.Context, before, after flex.Site) error {
	err := tx.noteEmail(ctx, after, before.Email.Reveal())
	if err != nil || after.MPAN == before.MPAN {
		return err
	}

	return tx.notePoint(ctx, after.ID, after.MPAN.Reveal())
}

// recordChanges records from when on a site has another consent or another supply, as settlement needs
// those of past days.
func (tx *Tx) recordChanges(ctx context.Context, before, after flex.Site) error {
	if !after.ConsentAt.Equal(before.ConsentAt) {
		err := tx.setConsent(ctx, after.ID, after.ConsentAt)
		if err != nil {
			return err
		}
	}

	if after.Supply != before.Supply {
		return tx.addSupply(ctx, after.ID, after.Supply)
	}

	return nil
}

// Site returns a site of the organisation, or a NotFound failure.
func (tx *Tx) Site(ctx context.Context, id flex.SiteID) (flex.Site, error) {
	return readOnce(tx, "site", id, func() (flex.Site, error) {
		return one(
			ctx,
			tx.conn,
			flex.SiteMissing,
			tx.scanSite,
			`SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND s.id = $2`,
			tx.org.Bytes(),
			id.Bytes(),
		)
	})
}

// SitesByID returns those of the sites that the organisation has, by their ids.
func (tx *Tx) SitesByID(
	ctx context.Context,
	ids []flex.SiteID,
) (map[flex.SiteID]flex.Site, error) {
	found := map[flex.SiteID]flex.Site{}
	for chunk := range slices.Chunk(ids, outboxChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		sites, err := rows(
			ctx,
			tx.conn,
			tx.scanSite,
			`SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND s.id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}

		for i := range sites {
			found[sites[i].ID] = sites[i]
		}
	}

	return found, nil
}

// SiteIDs returns up to limit of the organisation's sites after one, in the order of their ids.
func (tx *Tx) SiteIDs(
	ctx context.Context,
	after flex.SiteID,
	limit int,
) ([]flex.SiteID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.SiteID],
		`SELECT id FROM site WHERE org_id = $1 AND id > $2 ORDER BY id LIMIT $3`,
		tx.org.Bytes(),
		after.Bytes(),
		limit,
	)
}

// LockedSite is Site, and makes other transactions that lock the same site wait for the end of this
// one.
func (tx *Tx) LockedSite(ctx context.Context, id flex.SiteID) (flex.Site, error) {
	return one(
		ctx,
		tx.conn,
		flex.SiteMissing,
		tx.scanSite,
		`SELECT `+siteColumns+
			` FROM site s WHERE s.org_id = $1 AND s.id = $2`+
			tx.db.d.forNoKeyUpdate,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// SiteByMPAN returns the organisation's site with the MPAN, or nil if there is none.
func (tx *Tx) SiteByMPAN(ctx context.Context, mpan string) (*flex.Site, error) {
	return tx.siteBy(ctx, `s.mpan = $2`, tx.hide(personMPAN, mpan))
}

// SitesByAddress returns the organisation's sites with the address key, the oldest first.
func (tx *Tx) SitesByAddress(
	ctx context.Context,
	key string,
) ([]flex.Site, error) {
	return rows(
		ctx,
		tx.conn,
		tx.scanSite,
		`SELECT `+siteColumns+
			` FROM site s WHERE s.org_id = $1 AND s.address_key = $2 ORDER BY s.id`,
		tx.org.Bytes(),
		tx.hide(personAddress, key),
	)
}

// SiteByUser returns the organisation's site of an end user, by the client's own id for
// them, or nil.
func (tx *Tx) SiteByUser(ctx context.Context, user string) (*flex.Site, error) {
	return tx.siteBy(ctx, `s.external_user_id = $2`, tx.hide(personUser, user))
}

// SiteByUPRN returns the organisation's oldest site whose metering point has the property
// number, given without leading zeros, or nil.
func (tx *Tx) SiteByUPRN(ctx context.Context, uprn string) (*flex.Site, error) {
	var value string
	condition := tx.matchesText("m.uprn", personUPRN, uprn, func(v any) string {
		value = v.(string)
		return "$2"
	})

	return tx.siteBy(
		ctx,
		`s.mpan IN (SELECT m.mpan FROM meter m WHERE `+condition+`)`,
		value,
	)
}

func (tx *Tx) siteBy(
	ctx context.Context,
	condition, value string,
) (*flex.Site, error) {
	s, err := tx.scanSite(tx.row(
		ctx,
		`SELECT `+siteColumns+` FROM site s WHERE s.org_id = $1 AND `+
			condition+` ORDER BY s.id LIMIT 1`,
		tx.org.Bytes(),
		value,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &s, err
}

// DropSite deletes a site, its enrolments and consents in force (their history stays), and the bank
// account and links of its user, who cannot be paid any more. Its assets must have been deleted before.
func (tx *Tx) DropSite(ctx context.Context, id flex.SiteID) error {
	for _, table := range []string{
		"dispatch_method",
		"enrolment",
		"cloud_link",
		"cloud_token",
		"token",
		"payee",
		"balance_link",
		"former_email",
	} {
		_, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1 AND site_id = $2`,
			tx.org.Bytes(),
			id.Bytes(),
		)

		if err != nil {
			return err
		}
	}

	if err := tx.endConsent(ctx, id); err != nil {
		return err
	}

	if err := tx.deregister(ctx, id); err != nil {
		return err
	}

	if err := tx.notePoint(ctx, id, ""); err != nil {
		return err
	}

	if err := tx.touchRegister(ctx); err != nil {
		return err
	}

	_, err := tx.exec(
		ctx,
		`DELETE FROM site WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)

	return err
}

// recordQuery returns the query of sites as records, from a table or subquery that becomes s. A record is
// one row with few columns, in which lists and small texts are joined by commas: on SQLite the cost of a
// page of a hundred is that of its rows and columns.
func (c conn) recordQuery(table, rest string) string {
	return `SELECT s.id, s.mpan, s.postcode, s.address, s.consent_at, s.discharge_consent_at, ` + callsColumns + `,
		` + supplyColumn + `,
		CASE WHEN s.tariff_type <> '' THEN s.tariff_type || ',' || s.cheap_start || ',' || s.cheap_end || ',' || s.rates END,
		(CAST(m.import AS INTEGER) + 2 * CAST(m.energised AS INTEGER) + 4 * CAST(m.half_hourly AS INTEGER) + 8 * CAST(m.domestic AS INTEGER)) || ',' || m.postcode,
		(SELECT string_agg(` + fmt.Sprintf(c.db.d.idHex, "a.id") + `, ',') FROM asset a WHERE a.site_id = s.id),
		(SELECT string_agg(d.method, ',') FROM dispatch_method d WHERE d.site_id = s.id)
		FROM ` + table + ` s LEFT JOIN meter m ON m.mpan = s.mpan ` + rest
}

// readRecordMeter parses the directory's data of a site's meter: four flags as the bits of a number, and
// the postcode.
func (c conn) readRecordMeter(mpan, text string) (*flex.Meter, error) {
	number, postcode, _ := strings.Cut(text, ",")
	bits, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}

	postcode, err = c.reveal(personPostcode, postcode)

	return &flex.Meter{
		MPAN:       mpan,
		Postcode:   postcode,
		Import:     bits&1 != 0,
		Energised:  bits&2 != 0,
		HalfHourly: bits&4 != 0,
		Domestic:   bits&8 != 0,
	}, err
}

// readMethods reads methods that are joined by commas, in no order.
func readMethods(text string) []flex.DispatchMethod {
	var methods []flex.DispatchMethod
	for method := range strings.SplitSeq(text, ",") {
		methods = append(methods, flex.DispatchMethod(method))
	}
	slices.Sort(methods)

	return methods
}

// readTariff reads a site's tariff, whose parts are joined by commas.
func readTariff(text string) (flex.SiteTariff, error) {
	parts := strings.SplitN(text, ",", 4)
	var rates flex.TariffRates
	err := ratesText{&rates}.Scan(parts[3])

	return siteTariff(parts[0], parts[1], parts[2], rates), err
}

// scanRecord reads a row of recordQuery.
func (c conn) scanRecord(s scanner) (flex.SiteRecord, error) {
	var supply, tariff, meter, assets, methods sql.NullString
	var r flex.SiteRecord
	err := s.Scan(
		&r.ID,
		opened(c, personMPAN, &r.MPAN),
		opened(c, personPostcode, &r.Postcode),
		opened(c, personAddress, &r.Address),
		instant{&r.ConsentAt},
		instant{&r.DischargeConsentAt},
		optionalInt{&r.Calls.PerDay},
		optionalInt{&r.Calls.PerMonth},
		&supply,
		&tariff,
		&meter,
		&assets,
		&methods,
	)

	if err != nil {
		return r, err
	}

	r.Supply, err = readSupply(supply)
	if err != nil {
		return r, err
	}

	if tariff.Valid {
		r.Tariff, err = readTariff(tariff.String)
		if err != nil {
			return r, err
		}
	}

	if meter.Valid {
		r.Meter, err = c.readRecordMeter(r.MPAN.Reveal(), meter.String)
		if err != nil {
			return r, err
		}
	}

	if methods.Valid {
		r.Methods = readMethods(methods.String)
	}

	if assets.Valid {
		r.Assets, err = readIDs(assets.String)
	}

	return r, err
}

// readIDs reads ids that idHex wrote, joined by commas, and sorts them.
func readIDs(text string) ([]flex.AssetID, error) {
	var ids []flex.AssetID
	for word := range strings.SplitSeq(text, ",") {
		var id flex.AssetID
		if _, err := hex.Decode(id[:], []byte(word)); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}

	slices.SortFunc(ids, func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})

	return ids, nil
}

// SiteFilter selects sites; an empty field selects all. Limit must be set.
type SiteFilter struct {
	MPAN     string
	Postcode string
	Limit    int
	Offset   int
}

// SitePage is a page of sites, and how many there are in all.
type SitePage struct {
	Sites []flex.SiteRecord
	Total int
}

// SiteRecords returns a page of the organisation's sites in the order in which they were created, and how
// many the filter selects in all. The page may be shared and must not be changed.
func (tx *Tx) SiteRecords(ctx context.Context, f SiteFilter) (SitePage, error) {
	if f.MPAN != "" || f.Postcode != "" {
		return tx.readSites(ctx, f)
	}
	size := func(p SitePage) int { return len(p.Sites) + 1 }

	return asRegistered(ctx, tx, f, size, func() (SitePage, error) {
		return tx.readSites(ctx, f)
	})
}

func (tx *Tx) readSites(
	ctx context.Context,
	f SiteFilter,
) (SitePage, error) {
	const all = `WHERE s.org_id = $1`
	chosen, args := all, []any{tx.org.Bytes()}

	if f.MPAN != "" {
		chosen += ` AND s.mpan = $2`
		args = append(args, tx.hide(personMPAN, f.MPAN))
	}

	if f.Postcode != "" {
		args = append(args, tx.hide(personPostcode, f.Postcode))
		chosen += fmt.Sprintf(` AND s.postcode = $%d`, len(args))
	}

	var (
		p   SitePage
		err error
	)

	if chosen == all {
		p.Total, err = tx.count(ctx, `SELECT count(*) FROM site s `+all)
	} else {
		err = tx.row(
			ctx,
			`SELECT count(*) FROM site s `+chosen,
			args...,
		).Scan(&p.Total)
	}

	if err != nil {
		return p, err
	}

	// The sites before the page are skipped in the index: only those on the page are read.
	p.Sites, err = rows(ctx, tx.conn, tx.scanRecord,
		tx.recordQuery(
			fmt.Sprintf(
				`(SELECT * FROM site WHERE id IN (SELECT s.id FROM site s %s ORDER BY s.id LIMIT $%d OFFSET $%d))`,
				chosen,
				len(args)+1,
				len(args)+2,
			),
			`ORDER BY s.id`,
		),
		append(args, f.Limit, f.Offset)...)

	return p, err
}

// SiteRecord returns one site with what belongs to it, or a NotFound failure.
func (tx *Tx) SiteRecord(
	ctx context.Context,
	id flex.SiteID,
) (flex.SiteRecord, error) {
	return one(
		ctx,
		tx.conn,
		flex.SiteMissing,
		tx.scanRecord,
		tx.recordQuery(`site`, `WHERE s.org_id = $1 AND s.id = $2`),
		tx.org.Bytes(),
		id.Bytes(),
	)
}
