package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The data of an organisation is exported for another flexd as a file with one JSON value in
// each line. docs/operating.md describes its format.
//
// Ids do not change: they are random, and clients, banks and markets have records that name
// them. The file contains each carried table whole, its rows in the order of the primary key,
// and ends with the number of rows and a digest of each table. So the file of an organisation
// depends on its records only, not on the engine or the place, and the import can verify
// itself: before it commits it exports what it has imported, and compares the digests.

// portableVersion is the version of the file's format.
const portableVersion = 1

// portableFormat identifies the format, in the file's first line.
const portableFormat = "flexd organisation"

// movedFormat identifies the data that moves between two databases of one flexd. It is never
// stored as a file.
const movedFormat = "flexd organisation between cells"

// carriedTable is a table whose rows of an organisation are exported with it.
type carriedTable struct {
	name  string
	where string // its rows, where they are not found by org_id = $1
	// columns that are not exported, and are empty in the other flexd
	without []string
}

// ofOwnAssets is the condition that a row belongs to an asset of the organisation, deleted
// ones included.
const ofOwnAssets = `asset_id IN (SELECT id FROM asset WHERE org_id = $1 UNION SELECT id FROM former_asset WHERE org_id = $1)`

// carried are the tables that are exported with an organisation. A table comes after those
// that it refers to.
var carried = []carriedTable{
	{name: "org", where: `id = $1`},
	{name: "account_key"},
	{name: "site"},
	{name: "asset"},
	{name: "former_asset"},
	{name: "dispatch"},
	{name: "ledger"},
	{name: "withdrawal"},
	{name: "settlement_run"},

	{name: "adr_object", where: `org_id = $1 AND kind NOT IN ('SUBSCRIPTION', 'ENDED')`},
	{
		name:  "adr_target",
		where: `object_id IN (SELECT id FROM adr_object WHERE org_id = $1 AND kind NOT IN ('SUBSCRIPTION', 'ENDED'))`,
	},
	{name: "adr_binding"},
	{name: "adr_order"},
	{name: "alert_rule"},
	{name: "asset_event"},
	{name: "asset_power"},
	{name: "attempt"},
	{name: "base_load"},
	{name: "battery_day"},
	{name: "battery_plan"},
	{name: "binding", where: ofOwnAssets},
	{name: "books_month"},
	{name: "callback"},
	{name: "called_asset"},
	{name: "cap_group"},
	{name: "cap_limit"},
	{name: "cap_link"},
	{name: "cap_site"},
	{name: "caps", without: []string{"summed_at"}},
	{name: "consent"},
	{name: "consent_span"},
	{
		name:  "curve",
		where: `id IN (SELECT curve_id FROM schedule WHERE org_id = $1)`,
	},
	{name: "delivery"},
	{name: "deviation"},
	{name: "deviation_part"},
	{name: "dispatch_asset"},
	{name: "dispatch_method"},
	{name: "enrolment"},
	{name: "enrolment_change"},
	{name: "event_credit"},
	{name: "fleet_half_hour"},
	{name: "flex_event"},
	{name: "former_email"},
	{name: "grid_product"},
	{name: "heat_day"},
	{name: "heat_model"},
	{name: "held_reading"},
	{name: "inputs"},
	{name: "instruction"},
	{name: "msid_pair"},
	{name: "offer"},
	{name: "outbox"},
	{name: "pause"},
	{name: "payee"},
	{name: "payee_check"},
	{name: "payment_file"},
	{name: "posting"},
	{name: "price_role"},
	{name: "product_site"},
	{name: "rate_session"},
	{name: "reading", where: ofOwnAssets},
	{name: "reading_due"},
	{name: "reading_history", where: ofOwnAssets},
	{name: "reckoning"},
	{name: "refused_reading"},
	{name: "register", where: ofOwnAssets},
	{name: "register_reset", where: ofOwnAssets},
	{name: "registration", without: []string{"next_org"}},
	{name: "schedule"},
	{name: "session"},
	{name: "settled_volume"},
	{name: "settlement"},
	{name: "site_point"},
	{name: "solar"},
	{name: "supply"},
	{name: "tank_plan"},
	{name: "term"},
	{name: "unreached"},
	{name: "withdrawal_approval"},
	{name: "withdrawal_form"},
	{name: "withdrawal_move"},
	{name: "withdrawal_payee"},
}

// movedOnly are the tables that go with an organisation in addition when it only moves to
// another database, and its clients continue as before.
var movedOnly = []carriedTable{
	{name: "adr_mirror"},
	{name: "adr_notice"},
	{name: "adr_telemetry"},
	{name: "adr_upstream"},
	{name: "balance_link"},
	{name: "cloud_link"},
	{name: "cloud_token"},
	{name: "credential"},
	{name: "endpoint"},
	{name: "idempotency"},
	{name: "job"},
	{name: "mail"},
	{name: "payee_hook"},
	{name: "put_off"},
	{name: "token"},
}

// subscribed are tables of which an organisation's file leaves some rows out, with the
// condition by which all rows go when it moves to another database.
var subscribed = map[string]string{
	"adr_object": `org_id = $1`,
	"adr_target": `object_id IN (SELECT id FROM adr_object WHERE org_id = $1)`,
}

// movedTables are the tables that go with an organisation to another database of the same flexd.
func movedTables() []carriedTable {
	tables := slices.Concat(carried, movedOnly)
	for i, t := range tables {
		if where, some := subscribed[t.name]; some {
			tables[i].where = where
		}
	}

	return tables
}

// Reasons why tables are not exported.
const (
	staysSecret    = "lets somebody in or signs: issued anew in the other flexd"
	staysPeople    = "about the people who operate this flexd"
	staysWork      = "work that is under way in this flexd"
	staysShared    = "shared by every organisation of a flexd, which imports it itself"
	staysMechanics = "about this database"
	staysSums      = "added up from what goes along, when it is needed"
)

// stays are the tables that are not exported, with the reason.
var stays = map[string]string{
	"credential":    staysSecret,
	"token":         staysSecret,
	"endpoint":      staysSecret,
	"payee_hook":    staysSecret,
	"cloud_link":    staysSecret,
	"cloud_token":   staysSecret,
	"balance_link":  staysSecret,
	"adr_upstream":  staysSecret,
	"adr_mirror":    "of another party's OpenADR server, which is joined anew",
	"adr_telemetry": "of another party's OpenADR server, which is joined anew",

	"operator":          staysPeople,
	"operator_org":      staysPeople,
	"operator_passkey":  staysPeople,
	"operator_recovery": staysPeople,
	"operator_session":  staysPeople,
	"operator_sign_in":  staysPeople,
	"operator_totp":     staysPeople,
	"saved_view":        staysPeople,
	"audit":             staysPeople,
	"audit_link":        staysPeople,
	"audit_head":        staysPeople,
	"alert_route":       staysPeople,

	"adr_notice":    staysWork,
	"alert":         staysWork,
	"cap_change":    staysSums,
	"cap_part":      staysSums,
	"cap_sum":       staysSums,
	"alert_message": staysWork,
	"halt":          staysWork,
	"idempotency":   staysWork,
	"job":           staysWork,
	"mail":          staysWork,
	"put_off":       staysWork,
	"wave":          staysWork,
	"wave_part":     staysWork,

	"carbon":         staysShared,
	"meter":          staysShared,
	"meter_version":  staysShared,
	"model":          staysShared,
	"modulus_table":  staysShared,
	"price":          staysShared,
	"price_kept_out": staysShared,
	"price_source":   staysShared,
	"publication":    staysShared,

	"goose_db_version": staysMechanics,
	"goose_lock":       staysMechanics,
	"seal_key":         staysMechanics,
	"cell_move":        staysMechanics,
	"environment":      "which environment this database is for; the file says of itself",
	"person_key":       "the key under which this database seals texts about persons; the file has them open",
}

// TablesNotPortable returns the tables that are in none of the lists of exported tables and of those
// that stay, or in more than one. There should be none.
func (all *All) TablesNotPortable(ctx context.Context) ([]string, error) {
	tables, err := all.columns(ctx)
	if err != nil {
		return nil, err
	}

	said := map[string]int{}
	for _, t := range carried {
		said[t.name]++
	}

	for name := range stays {
		said[name]++
	}

	return slices.DeleteFunc(slices.Sorted(maps.Keys(tables)), func(name string) bool {
		return said[name] == 1
	}), nil
}

// columnKind is how a column's values are written in a file.
type columnKind int

// The kinds of column.
const (
	ofNumber columnKind = iota // a number
	ofBytes                    // bytes, as hexadecimal digits
	ofText                     // a text
	ofFlag                     // true or false
)

// columnKinds are the kinds of the engines' types. An integer is every other.
var columnKinds = map[string]columnKind{
	"blob":    ofBytes,
	"uuid":    ofBytes,
	"bytea":   ofBytes,
	"text":    ofText,
	"boolean": ofFlag,
}

// portableColumn is an exported column.
type portableColumn struct {
	name string
	kind columnKind
	// its place in the primary key from 0; negative if it is not in it
	key      int
	ofPerson bool // a text about a person, which may be sealed
}

// portableTable is a carried table with its columns by name.
type portableTable struct {
	carriedTable
	columns []portableColumn
	sealed  *sealedTable // if a column of it is sealed
}

// names are the names of the columns.
func (t portableTable) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}

	return names
}

// key are the columns of the primary key, in order.
func (t portableTable) key() []portableColumn {
	key := slices.DeleteFunc(slices.Clone(t.columns), func(c portableColumn) bool {
		return c.key < 0
	})
	slices.SortFunc(key, func(a, b portableColumn) int {
		return cmp.Compare(a.key, b.key)
	})

	return key
}

// place returns the index of the column with the name.
func (t portableTable) place(name string) int {
	return slices.IndexFunc(t.columns, func(c portableColumn) bool {
		return c.name == name
	})
}

// catalogue returns the columns of each table.
func (c conn) catalogue(
	ctx context.Context,
) (map[string][]portableColumn, error) {
	by := map[string][]portableColumn{}
	err := eachRow(ctx, c, func(s scanner) error {
		var table, typ string
		var column portableColumn
		err := s.Scan(&table, &column.name, &typ, &column.key)
		column.kind = columnKinds[strings.ToLower(typ)]
		_, column.ofPerson = personTextOf(table, column.name)
		by[table] = append(by[table], column)

		return err
	}, c.db.d.catalogue)

	return by, err
}

// portableTables returns the tables of a format with their columns, as the schema has them.
func (c conn) portableTables(
	ctx context.Context,
	format string,
) ([]portableTable, error) {
	going := carried
	if format == movedFormat {
		going = movedTables()
	}

	by, err := c.catalogue(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the columns of all tables: %w", err)
	}

	tables := make([]portableTable, len(going))

	for i, t := range going {
		if t.where == "" {
			t.where = `org_id = $1`
		}

		columns := slices.DeleteFunc(by[t.name], func(c portableColumn) bool {
			return slices.Contains(t.without, c.name)
		})
		slices.SortFunc(columns, func(a, b portableColumn) int {
			return cmp.Compare(a.name, b.name)
		})

		tables[i] = portableTable{carriedTable: t, columns: columns}

		if at := slices.IndexFunc(sealedTables, func(s sealedTable) bool {
			return s.name == t.name
		}); at >= 0 {
			tables[i].sealed = &sealedTables[at]
		}
	}

	return tables, nil
}

// PortableFile describes the contents of a complete file.
type PortableFile struct {
	PortableHead
	Tables []PortableSum
	Lacks  []string // of what an import takes in: what it needs and will not find
}

// Rows counts the rows of all tables.
func (f PortableFile) Rows() int64 {
	var n int64
	for _, t := range f.Tables {
		n += t.Rows
	}

	return n
}
