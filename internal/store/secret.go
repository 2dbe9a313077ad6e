package store

import (
	"context"
	"fmt"
	"io"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// Purposes of what is sealed. They are part of what a value is bound to.
const (
	sealedEndpoint = "endpoint"
	sealedPayee    = "bank account"
	sealedLink     = "cloud link"
	sealedToken    = "cloud token"
	sealedPinned   = "bank account of a payment"
	sealedAccounts = "key of accounts"
	sealedAnswer   = "answer kept for a repeated request"

	sealedRoute     = "secret of an alert route"
	sealedPayeeHook = "secret of the payee hook"
	sealedPayeeName = "name on a bank account"
	sealedTwoStep   = "operator's second step"
	sealedBearer    = "bearer tokens of a subscription"
	sealedUpstream  = "secret of an OpenADR server's client"
	sealedPersons   = "key of persons' texts"
)

// errNoKey is returned when a store that was opened without keys needs one.
var errNoKey = flex.Fail(
	flex.Unavailable,
	"the store has no key to seal secrets with: name the key file with --key-file; flexd key new FILE makes one",
)

// seal encrypts a secret for one row of the organisation's.
func (c conn) seal(
	purpose string,
	org flex.OrgID,
	row, plain []byte,
) ([]byte, error) {
	if c.db.keys == nil {
		return nil, errNoKey
	}
	return c.db.keys.Seal(
		c.db.Random(),
		keyring.About{
			Purpose: purpose,
			Org:     org.Bytes(),
			Row:     row,
		},
		plain,
	)
}

// unseal returns the value that seal sealed for the same row.
func (c conn) unseal(
	purpose string,
	org flex.OrgID,
	row, sealed []byte,
) ([]byte, error) {
	if c.db.keys == nil {
		return nil, errNoKey
	}
	return c.db.keys.Open(
		keyring.About{
			Purpose: purpose,
			Org:     org.Bytes(),
			Row:     row,
		},
		sealed,
	)
}

// sealedRow is a sealed value with the row that it is in.
type sealedRow struct {
	org    flex.OrgID
	row    []byte // what it is bound to within the organisation
	sealed []byte
	args   []any // of the condition that finds it
}

// sealedTable is a table with a column sealed.
type sealedTable struct {
	name    string
	purpose string
	columns string // that name a row
	where   string // the condition that finds it, with $2 and on
	scan    func(scanner) (sealedRow, error)
}

// sealedTables are all of them.
var sealedTables = []sealedTable{
	{
		"endpoint",
		sealedEndpoint,
		`org_id, name`,
		`org_id = $2 AND name = $3`,
		func(s scanner) (sealedRow, error) {
			var name string
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &name)
			r.row, r.args = []byte(name), []any{r.org.Bytes(), name}
			return r, err
		},
	},
	{
		"payee",
		sealedPayee,
		`org_id, site_id`,
		`org_id = $2 AND site_id = $3`,
		func(s scanner) (sealedRow, error) {
			var site flex.SiteID
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &site)
			r.row, r.args = site.Bytes(), []any{r.org.Bytes(), site.Bytes()}
			return r, err
		},
	},
	{
		"withdrawal_payee",
		sealedPinned,
		`org_id, withdrawal_id, attempt`,
		`org_id = $2 AND withdrawal_id = $3 AND attempt = $4`,
		func(s scanner) (sealedRow, error) {
			var id flex.TransactionID
			var attempt int
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &id, &attempt)
			r.row, r.args = pinnedRow(id, attempt), []any{
				r.org.Bytes(),
				id.Bytes(),
				attempt,
			}
			return r, err
		},
	},
	{
		"payee_check",
		sealedPayeeName,
		`org_id, withdrawal_id, attempt`,
		`org_id = $2 AND withdrawal_id = $3 AND attempt = $4`,
		func(s scanner) (sealedRow, error) {
			var id flex.TransactionID
			var attempt int
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &id, &attempt)
			r.row, r.args = pinnedRow(id, attempt), []any{
				r.org.Bytes(),
				id.Bytes(),
				attempt,
			}
			return r, err
		},
	},
	{"payee_hook", sealedPayeeHook, `org_id`, `org_id = $2`, func(s scanner) (sealedRow, error) {
		var r sealedRow
		err := s.Scan(&r.sealed, &r.org)
		r.row, r.args = payeeHookRow, []any{r.org.Bytes()}
		return r, err
	}},
	{"account_key", sealedAccounts, `org_id`, `org_id = $2`, func(s scanner) (sealedRow, error) {
		var r sealedRow
		err := s.Scan(&r.sealed, &r.org)
		r.row, r.args = accountKeyRow, []any{r.org.Bytes()}
		return r, err
	}},
	{"person_key", sealedPersons, `id`, `id = $2`, func(s scanner) (sealedRow, error) {
		var id int
		var r sealedRow
		err := s.Scan(&r.sealed, &id)
		r.row, r.args = personKeyRow, []any{id}
		return r, err
	}},
	{
		"idempotency",
		sealedAnswer,
		`org_id, key`,
		`org_id = $2 AND key = $3`,
		func(s scanner) (sealedRow, error) {
			var key string
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &key)
			r.row, r.args = []byte(key), []any{r.org.Bytes(), key}
			return r, err
		},
	},
	{
		"operator_totp",
		sealedTwoStep,
		`operator_id`,
		`operator_id = $2`,
		func(s scanner) (sealedRow, error) {
			var id flex.OperatorID
			var r sealedRow
			err := s.Scan(&r.sealed, &id)
			r.row, r.args = id.Bytes(), []any{id.Bytes()}
			return r, err
		},
	},
	{"alert_route", sealedRoute, `id`, `id = $2`, func(s scanner) (sealedRow, error) {
		var id AlertRouteID
		var r sealedRow
		err := s.Scan(&r.sealed, &id)
		r.row, r.args = id.Bytes(), []any{id.Bytes()}
		return r, err
	}},
	{
		"adr_object",
		sealedBearer,
		`org_id, id`,
		`org_id = $2 AND id = $3`,
		func(s scanner) (sealedRow, error) {
			var id flex.ADRObjectID
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &id)
			r.row, r.args = id.Bytes(), []any{r.org.Bytes(), id.Bytes()}
			return r, err
		},
	},
	{
		"adr_upstream",
		sealedUpstream,
		`org_id, program_id`,
		`org_id = $2 AND program_id = $3`,
		func(s scanner) (sealedRow, error) {
			var program flex.ADRObjectID
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &program)
			r.row, r.args = program.Bytes(), []any{r.org.Bytes(), program.Bytes()}
			return r, err
		},
	},
	{
		"cloud_link",
		sealedLink,
		`org_id, state`,
		`org_id = $2 AND state = $3`,
		func(s scanner) (sealedRow, error) {
			var r sealedRow
			err := s.Scan(&r.sealed, &r.org, &r.row)
			r.args = []any{r.org.Bytes(), r.row}
			return r, err
		},
	},
	{
		"cloud_token",
		sealedToken,
		`org_id, site_id, provider`,
		`org_id = $2 AND site_id = $3 AND provider = $4`,
		func(s scanner) (sealedRow, error) {
			var t CloudToken
			var r sealedRow
			err := s.Scan(&r.sealed, &t.Org, &t.Site, &t.Provider)
			r.org = t.Org
			r.row, r.args = t.row(), []any{
				t.Org.Bytes(),
				t.Site.Bytes(),
				t.Provider,
			}
			return r, err
		},
	},
}

// checkKeys fails if values of the store are sealed under a key that was not given, and notes
// the key that seals from now on.
func (db *DB) checkKeys(ctx context.Context) error {
	if db.keys == nil {
		return nil
	}

	return db.WriteAll(ctx, func(all *All) error {
		known, err := rows(
			ctx,
			all.conn,
			scanKey,
			`SELECT id FROM seal_key ORDER BY used_at`,
		)
		if err != nil {
			return err
		}

		for _, id := range known {
			if !db.keys.Holds(id) {
				return flex.Fail(
					flex.Unavailable,
					"secrets of this store are sealed under the key %v, which the key file does not hold: give the file that was used last; a copy from before the latest flexd key rotate lacks its new key. "+
						"An older copy of the database needs the keys of its time too: add their lines again, below the first",
					id,
				)
			}
		}

		newest := db.keys.IDs()[0]
		_, err = all.exec(
			ctx,
			`INSERT INTO seal_key (id, used_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`,
			newest[:],
			micros(all.now),
		)

		return err
	})
}

func scanKey(s scanner) (keyring.ID, error) {
	var b []byte
	if err := s.Scan(&b); err != nil {
		return keyring.ID{}, err
	}

	var id keyring.ID
	if copy(id[:], b) != len(id) {
		return id, fmt.Errorf("a key's id of %d bytes", len(b))
	}

	return id, nil
}

// Sealing is how many of the store's secrets are sealed under which key.
type Sealing struct {
	// the key that seals now; zero if the store was opened without
	Newest keyring.ID
	Under  map[keyring.ID]int
}

// Old returns how many secrets are under other keys than the newest.
func (s Sealing) Old() int {
	var n int
	for id, count := range s.Under {
		if id != s.Newest {
			n += count
		}
	}

	return n
}

// Sealing counts the sealed values by key.
func (all *All) Sealing(ctx context.Context) (Sealing, error) {
	s := Sealing{Under: map[keyring.ID]int{}}
	if all.db.keys != nil {
		s.Newest = all.db.keys.IDs()[0]
	}

	for _, t := range sealedTables {
		err := eachRow(ctx, all.conn, func(row scanner) error {
			var id []byte
			var n int
			err := row.Scan(&id, &n)
			if err == nil && len(id) == len(keyring.ID{}) {
				s.Under[keyring.ID(id)] += n
			}

			return err
		}, `SELECT substr(sealed, 2, 4), count(*) FROM `+t.name+` WHERE sealed IS NOT NULL GROUP BY substr(sealed, 2, 4)`)
		if err != nil {
			return s, fmt.Errorf("count what is sealed in %s: %w", t.name, err)
		}
	}

	return s, nil
}

// resealBatch is how many values one transaction seals again.
const resealBatch = 500

// Reseal seals the values that are under older keys with the newest, and returns how many.
// Afterwards the older keys are not needed, unless a process still seals with them. A value
// that changes meanwhile keeps its new content.
func (db *DB) Reseal(ctx context.Context) (int, error) {
	if db.keys == nil {
		return 0, errNoKey
	}

	newest := db.keys.IDs()[0]

	var done int
	for _, t := range sealedTables {
		for {
			n := 0
			err := db.WriteAll(ctx, func(all *All) error {
				var err error
				n, err = all.reseal(ctx, t, newest)
				return err
			})

			if err != nil {
				return done, fmt.Errorf("seal %s again: %w", t.name, err)
			}

			done += n

			if n < resealBatch {
				break
			}
		}
	}

	return done, db.WriteAll(ctx, func(all *All) error {
		s, err := all.Sealing(ctx)
		if err != nil {
			return err
		}

		known, err := rows(ctx, all.conn, scanKey, `SELECT id FROM seal_key`)
		for _, id := range known {
			if id != newest && s.Under[id] == 0 {
				_, err := all.exec(
					ctx,
					`DELETE FROM seal_key WHERE id = $1`,
					id[:],
				)

				if err != nil {
					return err
				}
			}
		}

		return err
	})
}

func (all *All) reseal(
	ctx context.Context,
	t sealedTable,
	newest keyring.ID,
) (int, error) {
	found, err := rows(
		ctx,
		all.conn,
		t.scan,
		`SELECT sealed, `+t.columns+` FROM `+t.name+
			` WHERE substr(sealed, 2, 4) <> $1 LIMIT $2`+
			all.db.d.forUpdate,
		newest[:],
		resealBatch,
	)

	if err != nil {
		return 0, err
	}

	for _, r := range found {
		plain, err := all.unseal(t.purpose, r.org, r.row, r.sealed)
		if err != nil {
			return 0, err
		}

		sealed, err := all.seal(t.purpose, r.org, r.row, plain)
		if err != nil {
			return 0, err
		}

		_, err = all.exec(
			ctx,
			`UPDATE `+t.name+` SET sealed = $1 WHERE `+t.where,
			append([]any{sealed}, r.args...)...,
		)

		if err != nil {
			return 0, err
		}
	}

	return len(found), nil
}

// Random returns the store's source of randomness, for many to read from at once.
func (db *DB) Random() io.Reader { return randomness{db} }

type randomness struct{ db *DB }

func (r randomness) Read(b []byte) (int, error) {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	return io.ReadFull(r.db.random, b)
}
