package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"flexd/internal/flex"
)

// ExportOrg writes the file of an organisation, and returns what is in it. It has one row in
// memory at a time. Bank accounts and the names on them are written unsealed. It is a Conflict
// if a metering point of the organisation is about to change its party, as it would be open
// which of the two flexds completes the change.
func (all *All) ExportOrg(
	ctx context.Context,
	org flex.OrgID,
	to io.Writer,
) (PortableFile, error) {
	return all.exportOrg(ctx, org, portableFormat, to)
}

func (all *All) exportOrg(
	ctx context.Context,
	org flex.OrgID,
	format string,
	to io.Writer,
) (PortableFile, error) {
	name, err := one(
		ctx,
		all.conn,
		"organisation not found",
		scalar[string],
		`SELECT name FROM org WHERE id = $1`,
		org.Bytes(),
	)
	if err != nil {
		return PortableFile{}, err
	}
	if err := all.checkNoMoves(ctx, org); err != nil {
		return PortableFile{}, err
	}

	version, err := all.schemaVersion(ctx)
	if err != nil {
		return PortableFile{}, err
	}

	head := PortableHead{
		Format:       format,
		Version:      portableVersion,
		Schema:       version,
		Environment:  all.db.Environment,
		Organisation: org,
		Name:         name,
	}
	out := bufio.NewWriter(to)
	file, err := all.writePortable(ctx, head, out)
	if err != nil {
		return file, err
	}

	return file, out.Flush()
}

// checkNoMoves fails if a metering point is about to come to the organisation or to leave it.
func (all *All) checkNoMoves(ctx context.Context, org flex.OrgID) error {
	var n int
	err := all.row(
		ctx,
		`SELECT count(*) FROM registration WHERE next_at IS NOT NULL AND next_org IS NOT NULL AND (org_id = $1 OR next_org = $1)`,
		org.Bytes(),
	).Scan(&n)

	if err == nil && n > 0 {
		err = flex.Fail(
			flex.Conflict,
			"%d metering points are about to change their party: have the changes completed first; flexd mpan shows them",
			n,
		)
	}

	return err
}

// schemaVersion returns the version of the database's schema.
func (c conn) schemaVersion(ctx context.Context) (int64, error) {
	var v int64
	err := c.row(
		ctx,
		`SELECT max(version_id) FROM goose_db_version WHERE is_applied`,
	).Scan(&v)

	return v, err
}

// writePortable writes the lines of a file.
func (all *All) writePortable(
	ctx context.Context,
	head PortableHead,
	to io.Writer,
) (PortableFile, error) {
	file := PortableFile{PortableHead: head}

	tables, err := all.portableTables(ctx, head.Format)
	if err != nil {
		return file, err
	}

	w := &portableWriter{to: to, digest: sha256.New()}
	if err := w.put(head); err != nil {
		return file, err
	}

	for _, t := range tables {
		sum, err := all.writeTable(ctx, head.Organisation, t, w)
		if err != nil {
			return file, fmt.Errorf("write %s: %w", t.name, err)
		}
		file.Tables = append(file.Tables, sum)
	}

	return file, w.put(portableEnd{file.Tables})
}

// portableWriter writes lines.
type portableWriter struct {
	to     io.Writer
	line   bytes.Buffer // the latest
	digest hash.Hash
}

// writeTable writes a table's line and its rows.
func (all *All) writeTable(
	ctx context.Context,
	org flex.OrgID,
	t portableTable,
	w *portableWriter,
) (PortableSum, error) {
	sum := PortableSum{Table: t.name}
	if err := w.put(t.layout()); err != nil {
		return sum, err
	}

	found, err := all.query(ctx, t.query(all.db.d), org.Bytes())
	if err != nil {
		return sum, err
	}

	defer found.Close()
	w.digest.Reset()

	put := func(row []any) error {
		if err := w.put(t.plain(row)); err != nil {
			return err
		}

		w.digest.Write(w.line.Bytes())
		sum.Rows++

		return nil
	}

	group := rowGroup{table: t, put: put}

	for found.Next() {
		if err := all.openRow(t, org, found, group.add); err != nil {
			return sum, err
		}
	}

	if err := errors.Join(found.Err(), group.end()); err != nil {
		return sum, err
	}

	sum.SHA256 = hex.EncodeToString(w.digest.Sum(nil))

	return sum, nil
}

// openRow reads a row and unseals its sealed value.
func (all *All) openRow(
	t portableTable,
	org flex.OrgID,
	found scanner,
	add func([]any) error,
) error {
	row, err := t.scan(found)
	if err != nil {
		return err
	}

	if err := all.openValue(t, org, row); err != nil {
		return err
	}

	return add(row)
}

// rowGroup sorts rows by their unsealed key, which is the same in two databases, while the
// order of sealed values differs. Rows come sorted by the part of the key that is not sealed;
// rows that are equal in it are collected, sorted and then written.
type rowGroup struct {
	table portableTable
	put   func([]any) error
	held  [][]any
}

func (g *rowGroup) add(row []any) error {
	if len(g.held) > 0 && g.compare(g.held[0], row, false) != 0 {
		if err := g.end(); err != nil {
			return err
		}
	}

	g.held = append(g.held, row)

	return nil
}

func (g *rowGroup) end() error {
	slices.SortFunc(g.held, func(a, b []any) int {
		return g.compare(a, b, true)
	})

	for _, row := range g.held {
		if err := g.put(row); err != nil {
			return err
		}
	}

	g.held = nil

	return nil
}

// compare compares two rows by the sealed part of their key or, without sealed, by the other
// part.
func (g *rowGroup) compare(a, b []any, sealed bool) int {
	for _, c := range g.table.key() {
		if c.ofPerson != sealed {
			continue
		}

		at := g.table.place(c.name)
		if by := cmp.Compare(fmt.Sprint(a[at]), fmt.Sprint(b[at])); by != 0 {
			return by
		}
	}

	return 0
}

// query returns the query of an organisation's rows in the order of the file.
func (t portableTable) query(d dialect) string {
	order := make([]string, 0, len(t.columns))
	for _, c := range t.key() {
		if c.ofPerson {
			continue
		}

		by := c.name
		if c.kind == ofText {
			by += d.byBytes
		}
		order = append(order, by)
	}

	return `SELECT ` + strings.Join(t.names(), ", ") + ` FROM ` + t.name +
		` WHERE ` + t.where + ` ORDER BY ` + strings.Join(order, ", ")
}

// scan reads a row: each value is nil, an int64, a text, bytes or a bool.
func (t portableTable) scan(s scanner) ([]any, error) {
	row := make([]any, len(t.columns))
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}

	if err := s.Scan(into...); err != nil {
		return nil, err
	}

	for i, c := range t.columns {
		v, err := c.kind.of(row[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
		row[i] = v
	}

	return row, nil
}

// of converts an engine's value to that of the kind.
func (k columnKind) of(v any) (any, error) {
	if v == nil {
		return nil, nil
	}

	var err error

	switch k {
	case ofText:
		var text sql.NullString
		err = text.Scan(v)
		return text.String, err

	case ofFlag:
		var is sql.NullBool
		err = is.Scan(v)
		return is.Bool, err

	case ofBytes:
		if text, ok := v.(string); ok { // an id, as PostgreSQL writes it
			return hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		}
		if b, ok := v.([]byte); ok {
			return b, nil
		}
	case ofNumber:
		if n, ok := v.(int64); ok {
			return n, nil
		}
	}

	return nil, fmt.Errorf("it holds a %T", v)
}

// plain returns a row as its line has it.
func (t portableTable) plain(row []any) []any {
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			row[i] = hex.EncodeToString(b)
		}
	}

	return row
}

// openValue unseals the sealed value of a row in place.
func (c conn) openValue(t portableTable, org flex.OrgID, row []any) error {
	for i, column := range t.columns {
		v, err := c.revealed(t.name, column.name, row[i])
		if err != nil {
			return err
		}
		row[i] = v
	}

	at, about, err := t.about(row)
	if err != nil || at < 0 {
		return err
	}

	row[at], err = c.unseal(t.sealed.purpose, org, about, row[at].([]byte))

	return err
}

// sealValue seals a value again that openValue has opened.
func (c conn) sealValue(t portableTable, org flex.OrgID, row []any) error {
	for i, column := range t.columns {
		row[i] = c.hidden(t.name, column.name, row[i])
	}

	at, about, err := t.about(row)
	if err != nil || at < 0 {
		return err
	}

	row[at], err = c.seal(t.sealed.purpose, org, about, row[at].([]byte))

	return err
}

// about returns the index of a row's sealed column, negative if there is none, and what its
// seal is bound to.
func (t portableTable) about(row []any) (int, []byte, error) {
	if t.sealed == nil {
		return -1, nil, nil
	}

	at := t.place("sealed")
	if row[at] == nil {
		return -1, nil, nil
	}

	given := valuesOf{row[at]}
	for name := range strings.SplitSeq(t.sealed.columns, ", ") {
		given = append(given, row[t.place(name)])
	}

	r, err := t.sealed.scan(given)

	return at, r.row, err
}

// valuesOf is a scanner of values that were read already.
type valuesOf []any

// Scan copies the values.
func (v valuesOf) Scan(into ...any) error {
	for i, to := range into {
		var err error

		switch to := to.(type) {
		case *[]byte:
			*to = v[i].([]byte)
		case *string:
			*to = v[i].(string)
		case *int:
			*to = int(v[i].(int64))
		case sql.Scanner:
			err = to.Scan(v[i])
		default:
			err = fmt.Errorf("a value cannot be put into a %T", to)
		}

		if err != nil {
			return err
		}
	}

	return nil
}
