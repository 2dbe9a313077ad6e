package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// siteRows says which rows of a table belong to a site. One of bySite and byAsset is set.
type siteRows struct {
	bySite  string // SQL condition, with the site's id as $1
	byAsset string // SQL condition, with the id of one of the site's assets as $1
	// a second condition on an asset's id $1, for rows that byAsset does not find
	also string
	// why erasure retains the rows; empty if it deletes them
	retained string
}

// Why erasure retains rows.
const (
	retainedForMoney      = "money is kept as the law asks, under the site's id alone"
	retainedForSettlement = "whose a metering point was is kept as settlement asks"
)

// Conditions and queries that find the rows of a site or an asset by an index. Where an index begins with
// the organisation, there is none that begins with the site: all organisations are searched, which are few.
const (
	rowsOfSite = `org_id IN (SELECT id FROM org) AND site_id = $1`

	eventsOfSite   = `SELECT id FROM flex_event WHERE ` + rowsOfSite
	paymentsOfSite = `SELECT id FROM withdrawal WHERE ` + rowsOfSite

	// A session names its newest schedule, and each schedule the one that it replaced (laws in schedule.go).
	schedulesOfAsset = `WITH RECURSIVE chain (id) AS (SELECT event_id FROM session WHERE asset_id = $1 AND event_id IS NOT NULL
		UNION ALL SELECT c.before_id FROM chain JOIN schedule c ON c.event_id = chain.id WHERE c.before_id IS NOT NULL)
		SELECT id FROM chain`

	// The half-hours, and the days since 1970, from the first reading to the last.
	halfHoursRead = `WITH RECURSIVE edge (at) AS (SELECT min(at) / 1800000000 * 1800000000 FROM reading
		UNION ALL SELECT at + 1800000000 FROM edge WHERE at < (SELECT max(at) FROM reading)) SELECT at FROM edge`
	daysRead = `WITH RECURSIVE day (number) AS (SELECT min(at) / 86400000000 FROM reading
		UNION ALL SELECT number + 1 FROM day WHERE number < (SELECT max(at) / 86400000000 FROM reading)) SELECT number FROM day`
)

// personal says which rows belong to a site in tables where a column site_id or asset_id does not say
// so, or is not enough.
var personal = map[string]siteRows{
	"site":    {bySite: `id = $1`},
	"attempt": {byAsset: `(org_id, event_id) IN (SELECT org_id, event_id FROM delivery WHERE asset_id = $1)`},
	"callback": {
		// As Concerns accepts them: of a schedule of the asset, or of a dispatch that it had a part in. A
		// schedule that was deleted meanwhile is found by its delivery.
		byAsset: `asset_id = $1 AND org_id IN (SELECT id FROM org) AND event_id IN (` + schedulesOfAsset + `
			UNION SELECT event_id FROM delivery WHERE asset_id = $1 UNION SELECT event_id FROM dispatch_asset WHERE asset_id = $1)`,
	},
	"schedule": {byAsset: `asset_id = $1 AND event_id IN (` + schedulesOfAsset + `)`},
	"binding":  {byAsset: `asset_id = $1 AND event_id IN (` + schedulesOfAsset + `)`},
	"outbox": {
		byAsset: `subject = $1 AND asset_id = $1`,
		also:    `asset_id = $1 AND kind <> 'schedule' AND subject <> $1`,
	},
	"reading": {
		// Those below 10 at other times are found by oddInstants.
		byAsset: `asset_id = $1 AND label < 10 AND at IN (` + halfHoursRead + `)`,
		also:    `asset_id = $1 AND label >= 10 AND at / 86400000000 IN (` + daysRead + `)`,
	},
	"dispatch": {
		byAsset:  `event_id IN (SELECT event_id FROM dispatch_asset WHERE asset_id = $1)`,
		retained: "others' assets may have a part in it: one without any is erased after its parts",
	},
	"called_asset":     {bySite: rowsOfSite},
	"consent":          {bySite: rowsOfSite},
	"enrolment_change": {bySite: rowsOfSite},
	"former_asset":     {bySite: rowsOfSite},
	"product_site":     {bySite: rowsOfSite},
	"withdrawal_form":  {bySite: rowsOfSite},
	"registration": {
		bySite:   `site_id = $1`,
		retained: retainedForSettlement,
	},
	"site_point": {
		bySite:   `site_id = $1`,
		retained: "whose a metering point was is kept as settlement asks, where the site had events",
	},
	"msid_pair": {
		bySite:   `(org_id, import_mpan) IN (SELECT org_id, mpan FROM registration WHERE site_id = $1)`,
		retained: retainedForSettlement,
	},
	"settled_volume": {
		bySite:   `site_id = $1`,
		retained: retainedForMoney,
	},
	"settlement": {
		bySite:   `flex_event_id IN (` + eventsOfSite + `)`,
		retained: retainedForMoney,
	},
	"ledger": {
		bySite:   rowsOfSite,
		retained: retainedForMoney,
	},
	"posting": {
		bySite:   rowsOfSite,
		retained: retainedForMoney,
	},
	"withdrawal": {
		bySite:   rowsOfSite,
		retained: retainedForMoney,
	},
	"withdrawal_move": {
		bySite:   `withdrawal_id IN (` + paymentsOfSite + `)`,
		retained: retainedForMoney,
	},
	"event_credit": {
		bySite:   `site_id = $1 AND flex_event_id IN (` + eventsOfSite + `)`,
		retained: retainedForMoney,
	},
	"deviation": {
		bySite:   `site_id = $1`,
		retained: retainedForMoney,
	},
	"deviation_part": {
		bySite:   `site_id = $1`,
		retained: retainedForMoney,
	},
	"asset_power": {
		byAsset:  `asset_id = $1`,
		retained: "money is kept as the law asks, under the asset's id alone",
	},
	"supply": {
		bySite:   `site_id = $1`,
		retained: retainedForMoney,
	},
	"withdrawal_approval": {
		bySite:   `withdrawal_id IN (` + paymentsOfSite + `)`,
		retained: retainedForMoney,
	},
	"flex_event": {
		bySite:   rowsOfSite,
		retained: retainedForMoney,
	},
	"reckoning": {
		bySite:   `site_id = $1`,
		retained: retainedForMoney,
	},
}

// impersonal are the tables without data on a site. A new table is in one of the two lists, or has a
// column site_id or asset_id; a test checks that.
var impersonal = []string{
	"org", "credential", "model", "meter", "publication", "price", "price_source", "price_role",
	"price_kept_out", "carbon", "curve", "wave", "wave_part", "endpoint", "instruction", "offer",
	"grid_product", "settlement_run", "term", "books_month", "payment_file", "modulus_table", "seal_key",
	"person_key", "environment", "cell_move", "account_key", "payee_hook", "meter_version", "operator",
	"operator_session", "operator_totp", "operator_passkey", "operator_recovery", "operator_sign_in",
	"operator_org", "saved_view", "audit", "audit_link", "audit_head", "halt", "alert", "alert_rule",
	"alert_route", "alert_message", "adr_object", "adr_target", "adr_notice", "adr_binding", "adr_order",
	"adr_upstream", "adr_mirror", "adr_telemetry", "fleet_half_hour", "caps", "cap_group", "cap_limit", "cap_sum",
	"cap_link", "put_off", "goose_db_version", "goose_lock",
}

// secretColumns are left out of an export: they are flexd's data, not the person's.
var secretColumns = []string{
	"hash",
	"access_token",
	"refresh_token",
	"sealed",
	"form",
	"confirmed_by",
	"answer",
	"request",
	"model_key",
	"firmware_key",
}

// secretOf are further columns that are left out, by table. In other tables columns of the same name are
// the person's data: an enrolment's state, or the account that an amount is posted to.
var secretOf = map[string][]string{
	"cloud_link":       {"state"},
	"payee":            {"account"},
	"withdrawal_payee": {"account"},
}

// columns returns the columns of every table.
func (c conn) columns(ctx context.Context) (map[string][]string, error) {
	query := `SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, p.cid`
	if c.db.d.name == "postgres" {
		query = `SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
			ORDER BY c.relname, a.attnum`
	}

	tables := map[string][]string{}

	pairs, err := rows(
		ctx,
		c,
		func(s scanner) ([2]string, error) {
			var p [2]string
			return p, s.Scan(&p[0], &p[1])
		},
		query,
	)

	for _, p := range pairs {
		tables[p[0]] = append(tables[p[0]], p[1])
	}

	return tables, err
}

// siteRowsOf returns which rows of a table belong to a site, and false if the table has none.
func siteRowsOf(table string, columns []string) (siteRows, bool) {
	if listed, ok := personal[table]; ok {
		return listed, true
	}

	if slices.Contains(impersonal, table) {
		return siteRows{}, false
	}

	if slices.Contains(columns, "site_id") {
		return siteRows{bySite: `site_id = $1`}, true
	}

	if slices.Contains(columns, "asset_id") {
		return siteRows{byAsset: `asset_id = $1`}, true
	}

	return siteRows{}, false
}

// TablesNotListed returns the tables that are in neither list and have no column of a site or an asset, which
// no table should be.
func (all *All) TablesNotListed(ctx context.Context) ([]string, error) {
	tables, err := all.columns(ctx)

	var names []string
	for name, columns := range tables {
		_, ok := siteRowsOf(name, columns)
		if !ok && !slices.Contains(impersonal, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names, err
}

// assetsEver returns the assets that the site has or had.
func (c conn) assetsEver(
	ctx context.Context,
	site flex.SiteID,
) ([]flex.AssetID, error) {
	return rows(
		ctx,
		c,
		scalar[flex.AssetID],
		`SELECT id FROM asset WHERE site_id = $1 UNION SELECT asset_id FROM session WHERE site_id = $1
		UNION SELECT asset_id FROM reckoning WHERE site_id = $1 UNION SELECT asset_id FROM flex_event WHERE `+rowsOfSite+`
		UNION SELECT id FROM former_asset WHERE `+rowsOfSite,
		site.Bytes(),
	)
}

// Export returns everything that is stored on a site, by table, each row by column, in plain text and
// numbers. Secrets of flexd are left out.
func (all *All) Export(
	ctx context.Context,
	site flex.SiteID,
) (map[string][]map[string]any, error) {
	tables, err := all.columns(ctx)
	if err != nil {
		return nil, err
	}

	assets, err := all.assetsEver(ctx, site)
	if err != nil {
		return nil, err
	}

	out := map[string][]map[string]any{}
	for table, columns := range tables {
		found, err := all.exportTable(ctx, table, columns, site, assets)
		if err != nil {
			return nil, fmt.Errorf("export %s: %w", table, err)
		}

		if found != nil {
			out[table] = found
		}
	}

	odd, err := all.oddReadings(ctx, assets, tables["reading"])
	if err != nil {
		return nil, fmt.Errorf("export readings at odd times: %w", err)
	}

	out["reading"] = append(out["reading"], odd...)
	out["bank_account"], err = all.bankAccounts(ctx, site)
	if err != nil {
		return nil, fmt.Errorf("export the bank account: %w", err)
	}

	if len(out["bank_account"]) == 0 {
		delete(out, "bank_account")
	}

	return out, nil
}

// exportTable returns the rows of a table that belong to a site; nil if there are none.
func (all *All) exportTable(
	ctx context.Context,
	table string,
	columns []string,
	site flex.SiteID,
	assets []flex.AssetID,
) ([]map[string]any, error) {
	belonging, ok := siteRowsOf(table, columns)
	if !ok {
		return nil, nil
	}

	shown := slices.DeleteFunc(slices.Clone(columns), func(c string) bool {
		return slices.Contains(secretColumns, c) || slices.Contains(secretOf[table], c)
	})

	var out []map[string]any
	err := belonging.each(site, assets, func(where string, id []byte) error {
		found, err := all.plain(ctx, table, shown, where, id)
		out = append(out, found...)
		return err
	})

	return out, err
}

// ofAccounts are the sealed tables with data of bank accounts, and what each has: the account itself, or
// the account holder's name as the bank gave it.
var ofAccounts = map[string]string{
	"payee":            "account",
	"withdrawal_payee": "account",
	"payee_check":      "name",
}

// bankAccounts returns the unsealed bank accounts of a site's user, the linked one and those that
// payments went to, and the names that banks gave for them.
func (all *All) bankAccounts(
	ctx context.Context,
	site flex.SiteID,
) ([]map[string]any, error) {
	var out []map[string]any
	for _, t := range sealedTables {
		what, ok := ofAccounts[t.name]
		if !ok {
			continue
		}

		found, err := rows(
			ctx,
			all.conn,
			t.scan,
			`SELECT sealed, `+t.columns+` FROM `+t.name+` WHERE site_id = $1`,
			site.Bytes(),
		)
		if err != nil {
			return nil, err
		}

		for _, r := range found {
			plain, err := all.unseal(t.purpose, r.org, r.row, r.sealed)
			if err != nil {
				return nil, err
			}
			if len(plain) == 0 { // the bank gave no name
				continue
			}

			out = append(out, map[string]any{
				"kept_in": t.name,
				what:      string(plain),
			})
		}
	}

	return out, nil
}

// each calls fn with every condition and the id that it is for: the site's, or that of each asset.
func (b siteRows) each(
	site flex.SiteID,
	assets []flex.AssetID,
	fn func(where string, id []byte) error,
) error {
	if b.bySite != "" {
		return fn(b.bySite, site.Bytes())
	}

	for _, a := range assets {
		if err := fn(b.byAsset, a.Bytes()); err != nil {
			return err
		}

		if b.also == "" {
			continue
		}

		if err := fn(b.also, a.Bytes()); err != nil {
			return err
		}
	}

	return nil
}

// plain reads rows of a table as text and numbers, with texts about persons unsealed.
func (c conn) plain(
	ctx context.Context,
	table string,
	columns []string,
	where string,
	id []byte,
) ([]map[string]any, error) {
	scan := func(s scanner) (map[string]any, error) {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}

		if err := s.Scan(values...); err != nil {
			return nil, err
		}

		row := map[string]any{}
		for i, name := range columns {
			v, err := c.revealed(table, name, *values[i].(*any))
			if err != nil {
				return nil, err
			}
			row[name] = readable(v)
		}

		return row, nil
	}

	return rows(
		ctx,
		c,
		scan,
		`SELECT `+strings.Join(columns, ", ")+` FROM `+table+` WHERE `+where,
		id,
	)
}

// revealed returns a value of a column unsealed, if the column has texts about persons.
func (c conn) revealed(table, column string, v any) (any, error) {
	text, ok := personTextOf(table, column)
	if !ok || v == nil {
		return v, nil
	}

	var plain string
	err := opened(c, text, &plain).Scan(v)

	return plain, err
}

// hidden returns a value as it is stored in a column: sealed, if the column has texts about persons.
func (c conn) hidden(table, column string, v any) any {
	text, about := personTextOf(table, column)
	plain, ok := v.(string)
	if !about || !ok {
		return v
	}

	return c.hide(text, plain)
}

// readable turns bytes into an id or hexadecimal digits.
func readable(v any) any {
	b, ok := v.([]byte)
	if !ok {
		return v
	}
	if len(b) == 16 {
		return flex.SiteID(b).String()
	}

	return hex.EncodeToString(b)
}

// checkOffboarded fails with a Conflict if the site is registered.
func (all *All) checkOffboarded(ctx context.Context, site flex.SiteID) error {
	var one int
	err := all.row(
		ctx,
		`SELECT 1 FROM site WHERE id = $1`,
		site.Bytes(),
	).Scan(&one)

	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}

	if err != nil {
		return err
	}

	return flex.Fail(
		flex.Conflict,
		"site %s is still registered: offboard it first, which ends its enrolments and frees its chargers",
		site,
	)
}

// Erase deletes what is stored on a site that has been offboarded, in one transaction, and returns the
// number of rows deleted. The records of money stay, under the site's id alone. DB.Erase deletes the
// readings before, which are many; those that are not at half-hours it alone deletes.
func (all *All) Erase(
	ctx context.Context,
	site flex.SiteID,
) (int64, error) {
	tables, err := all.columns(ctx)
	if err != nil {
		return 0, err
	}

	if err := all.checkOffboarded(ctx, site); err != nil {
		return 0, err
	}

	assets, err := all.assetsEver(ctx, site)
	if err != nil {
		return 0, err
	}

	names := slices.Sorted(maps.Keys(tables)) // attempts before the deliveries that they are found by

	if err := all.sumCapsAgain(ctx, assets); err != nil {
		return 0, err
	}

	dispatches, err := all.dispatchesOf(ctx, assets)
	if err != nil {
		return 0, err
	}

	var n int64
	for _, table := range names {
		belonging, ok := siteRowsOf(table, tables[table])
		if !ok || belonging.retained != "" {
			continue
		}

		err := belonging.each(site, assets, func(where string, id []byte) error {
			gone, err := all.exec(ctx, `DELETE FROM `+table+` WHERE `+where, id)
			n += gone

			return err
		})

		if err != nil {
			return n, fmt.Errorf("erase %s: %w", table, err)
		}
	}

	gone, err := all.dropEmptyDispatches(ctx, dispatches)
	n += gone
	if err != nil {
		return n, err
	}

	return n, all.afterErasure(ctx, site)
}

// payAccrued moves a site's accrued rewards to rewards payable, as its settlements do not become final
// any more.
func (all *All) payAccrued(ctx context.Context, site flex.SiteID) error {
	type owed struct {
		org    flex.OrgID
		amount flex.Pence
	}

	scan := func(s scanner) (owed, error) {
		var o owed
		err := s.Scan(&o.org, &o.amount)
		return o, err
	}

	found, err := rows(
		ctx,
		all.conn,
		scan,
		`SELECT org_id, CAST(-SUM(amount) AS BIGINT) FROM posting WHERE `+rowsOfSite+` AND account = $2
		GROUP BY org_id HAVING SUM(amount) <> 0`,
		site.Bytes(),
		string(ledger.RewardsAccrued),
	)
	if err != nil {
		return err
	}

	for _, o := range found {
		tx, err := all.For(ctx, o.org)
		if err != nil {
			return err
		}

		t := ledger.Booked{}
		t.Key = fmt.Sprintf("erased:%s:%s", site, tx.NewRunID())
		t.Kind, t.SiteID = ledger.FlexPeriodTopUp, site
		t.Time = flex.Span{From: tx.now}
		t.Cause = ledger.Cause{
			By:     "flexd erase",
			Reason: "the site is erased: what was to be paid later is owed now",
		}
		t.Postings = ledger.AccruedPayable(o.amount)

		if _, err := tx.Post(ctx, &t); err != nil {
			return err
		}
	}

	return nil
}

// afterErasure ends the settlement of a site, as the readings are deleted, makes its accrued rewards
// payable, and invalidates what processes have cached of registers.
func (all *All) afterErasure(ctx context.Context, site flex.SiteID) error {
	for _, query := range []string{
		`DELETE FROM site_point WHERE site_id = $1 AND NOT EXISTS (SELECT 1 FROM flex_event e
			WHERE e.org_id = site_point.org_id AND e.site_id = site_point.site_id)`,
		`UPDATE flex_event SET look_at = NULL, waits_at = NULL WHERE ` + rowsOfSite,
		`UPDATE reckoning SET look_at = NULL, waits_at = NULL, detect_at = NULL WHERE site_id = $1`,
	} {
		if _, err := all.exec(ctx, query, site.Bytes()); err != nil {
			return err
		}
	}

	// The statements above have waited for other transactions that settle or erase the site, so the accrued
	// amount is final.
	if err := all.payAccrued(ctx, site); err != nil {
		return fmt.Errorf("pay what is accrued to the site: %w", err)
	}

	_, err := all.exec(
		ctx,
		`UPDATE org SET register = register + 1 WHERE NOT EXISTS (SELECT 1 FROM cell_move m WHERE m.org_id = org.id)`,
	)

	return err
}
