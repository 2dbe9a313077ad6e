package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"flexd/internal/flex"
	"flexd/internal/keyring"
)

// personText is a kind of text about a person, with how it is sealed and searched.
type personText struct {
	kind string
	// normal returns the normalised text, the same for all spellings by which it is found; nil
	// if it is found only as it was written
	normal func(string) string
	// plainNormal is the SQL format that normalises a column in plain text
	plainNormal string
}

var (
	personMPAN     = personText{kind: "mpan"}
	personAddress  = personText{"address", normalAddress, "LOWER(%s)"}
	personMail     = personText{kind: "mail"}
	personEmail    = personText{"e-mail", strings.ToLower, "LOWER(%s)"}
	personUser     = personText{"user", strings.ToLower, "LOWER(%s)"}
	personPostcode = personText{"postcode", normalPostcode, "REPLACE(UPPER(%s), ' ', '')"}
	personUPRN     = personText{"uprn", normalUPRN, "LTRIM(%s, '0')"}
)

// normalAddress returns an address in lower case, without commas and with one space between words.
func normalAddress(address string) string {
	words := strings.FieldsFunc(strings.ToLower(address), func(r rune) bool {
		return r == ',' || unicode.IsSpace(r)
	})

	return strings.Join(words, " ")
}

// normalPostcode returns a postcode in upper case without spaces.
func normalPostcode(postcode string) string {
	return strings.ToUpper(strings.ReplaceAll(postcode, " ", ""))
}

// normalUPRN returns a unique property reference number without leading zeros.
func normalUPRN(uprn string) string { return strings.TrimLeft(uprn, "0") }

// personColumn is a column with texts about persons.
type personColumn struct {
	table, column string
	text          personText
}

// personColumns are all columns with texts about persons; a new one needs a line here. Values
// are written to them through hide and read through opened. For a flex.Personal no other way
// is possible.
var personColumns = []personColumn{
	{"meter", "mpan", personMPAN},
	{"meter", "address", personAddress},
	{"meter", "postcode", personPostcode},
	{"meter", "uprn", personUPRN},
	{"site", "mpan", personMPAN},
	{"site", "postcode", personPostcode},
	{"site", "address", personAddress},
	{"site", "address_key", personAddress},
	{"site", "email", personEmail},
	{"site", "external_user_id", personUser},
	{"registration", "mpan", personMPAN},
	{"registration", "point", personMPAN},
	{"site_point", "mpan", personMPAN},
	{"settled_volume", "mpan", personMPAN},
	{"msid_pair", "import_mpan", personMPAN},
	{"msid_pair", "export_mpan", personMPAN},
	{"former_email", "email", personEmail},
	{"mail", "recipient", personMail},
	{"mail", "subject", personMail},
	{"mail", "text", personMail},
	{"mail", "error", personMail},
	{"job", "error", personMail}, // what a mail relay said of an address
}

// personTextOf returns the kind of text of a column, and false if it is not about a person.
func personTextOf(table, column string) (personText, bool) {
	for _, c := range personColumns {
		if c.table == table && c.column == column {
			return c.text, true
		}
	}

	return personText{}, false
}

// personKeyRow is the row to which the sealed key of persons' texts is bound.
var personKeyRow = []byte("persons")

// hide returns a text about a person as it is stored: sealed, or plain in a database with
// plain texts. An empty text stays empty.
func (c conn) hide(p personText, text string) string {
	if c.db.persons == nil || text == "" {
		return text
	}

	if p.normal == nil {
		return c.db.persons.Seal(p.kind, text)
	}

	return c.db.persons.SealIndexed(p.kind, text, p.normal(text))
}

// reveal returns the text that hide stored. A text that is not sealed is returned unchanged.
func (c conn) reveal(p personText, stored string) (string, error) {
	if c.db.persons == nil || !keyring.SealedText(stored) {
		return stored, nil
	}

	return c.db.persons.Open(p.kind, stored, p.normal != nil)
}

// matchesText returns the condition that a column's text equals the text after normalisation.
// param adds the value that it is compared with.
func (c conn) matchesText(
	column string,
	p personText,
	text string,
	param func(any) string,
) string {
	if c.db.persons == nil {
		// SQL normalises both, as its lower case is not always that of Go.
		return fmt.Sprintf(p.plainNormal, column) + " = " +
			fmt.Sprintf(p.plainNormal, param(text))
	}

	return fmt.Sprintf("substr(%s, 1, %d) = ", column, keyring.IndexLength) +
		param(c.db.persons.Index(p.kind, p.normal(text)))
}

// opened scans a text about a person, unsealed, into to; null is the empty text.
func opened[T ~string](c conn, p personText, to *T) sql.Scanner {
	return openedText[T]{c, p, to}
}

type openedText[T ~string] struct {
	conn conn
	text personText
	to   *T
}

// Scan reads the stored text.
func (o openedText[T]) Scan(src any) error {
	var stored sql.NullString
	if err := stored.Scan(src); err != nil {
		return err
	}

	plain, err := o.conn.reveal(o.text, stored.String)
	*o.to = T(plain)

	return err
}

// errPersonKey is returned when a store with sealed texts about persons is opened without the
// key file.
var errPersonKey = flex.Fail(
	flex.Unavailable,
	"what this database holds of persons is sealed: name the key file with --key-file",
)

// errPersonsHalf is returned when a store is opened in which the sealing of texts about
// persons was begun and not completed.
var errPersonsHalf = flex.Fail(
	flex.Conflict,
	"the sealing of what this database holds of persons was begun and not ended: run flexd key persons again",
)

// loadPersonKey reads the key under which texts about persons are sealed. A database that is
// not in use yet gets one, if the store has keys. A half-sealed store may be opened with half
// only.
func (db *DB) loadPersonKey(ctx context.Context, half bool) error {
	key, err := db.personKey(ctx)
	if err != nil {
		return err
	}

	if key == nil && db.keys != nil {
		err := db.WriteAll(ctx, func(all *All) error {
			some, err := all.somePersons(ctx)
			if err != nil || some {
				return err
			}
			return all.makePersonKey(ctx, true)
		})
		if err != nil {
			return err
		}

		key, err = db.personKey(ctx)
		if err != nil {
			return err
		}
	}

	if key == nil {
		return nil
	}

	if db.keys == nil {
		return errPersonKey
	}

	if !key.whole && !half {
		return errPersonsHalf
	}

	return db.usePersonKey(ctx, key)
}

type personKey struct {
	sealed []byte
	whole  bool
}

// personKey reads the key as it is stored; nil if there is none.
func (db *DB) personKey(ctx context.Context) (*personKey, error) {
	var key *personKey
	err := db.ReadAll(ctx, func(all *All) error {
		var k personKey
		err := all.row(
			ctx,
			`SELECT sealed, whole FROM person_key`,
		).Scan(&k.sealed, &k.whole)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		key = &k

		return err
	})

	if err != nil {
		return nil, fmt.Errorf("read the key of persons' texts: %w", err)
	}

	return key, nil
}

// usePersonKey seals and opens texts about persons with the key from now on.
func (db *DB) usePersonKey(ctx context.Context, key *personKey) error {
	return db.ReadAll(ctx, func(all *All) error {
		plain, err := all.unseal(
			sealedPersons,
			flex.OrgID{},
			personKeyRow,
			key.sealed,
		)
		if err != nil {
			return err
		}
		if len(plain) != keyring.KeySize {
			return fmt.Errorf("the key of persons' texts has %d bytes", len(plain))
		}

		db.persons = keyring.NewTexts([keyring.KeySize]byte(plain))

		return nil
	})
}

// makePersonKey stores a new key, unless there is one.
func (all *All) makePersonKey(ctx context.Context, whole bool) error {
	var secret [keyring.KeySize]byte
	if _, err := all.db.Random().Read(secret[:]); err != nil {
		return err
	}

	sealed, err := all.seal(sealedPersons, flex.OrgID{}, personKeyRow, secret[:])
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`INSERT INTO person_key (id, sealed, whole, made_at) VALUES (1, $1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		sealed,
		whole,
		micros(all.now),
	)

	return err
}

// somePersons reports whether the database is in use: it has an organisation or a text about a
// person. A process of a release that does not seal may run beside this one then.
func (all *All) somePersons(ctx context.Context) (some bool, err error) {
	asked := []string{`EXISTS (SELECT 1 FROM org)`}
	for _, c := range personColumns {
		asked = append(
			asked,
			`EXISTS (SELECT 1 FROM `+c.table+` WHERE `+c.column+` <> '')`,
		)
	}

	// In one statement: each store that is opened without a key asks this.
	err = all.row(ctx, `SELECT `+strings.Join(asked, ` OR `)).Scan(&some)

	return some, err
}

// Kept returns a text about a person as it is stored in a column: what a test or a tool that
// reads the tables by itself looks for.
func (db *DB) Kept(table, column, text string) string {
	kept, _ := conn{db: db}.hidden(table, column, text).(string)
	return kept
}

// PersonsSealed reports whether what the store holds of persons is sealed.
func (db *DB) PersonsSealed() bool { return db.persons != nil }
