package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"flexd/internal/flex"
)

// errNotImported rolls back an import that was a preview.
var errNotImported = errors.New("the import was tried alone")

// ImportOrg imports an organisation from its file in one transaction, and returns what is in
// the file and what will be missing here; with preview it rolls the import back. The file is
// opened several times. A file that is cut, changed, or of another schema or environment is
// Invalid. An organisation or a metering point that is here already, and records that break a
// law, are a Conflict.
func (db *DB) ImportOrg(
	ctx context.Context,
	open func() (io.ReadCloser, error),
	preview bool,
) (PortableFile, error) {
	return db.importOrg(ctx, portableFormat, open, func(*All) error {
		if preview {
			return errNotImported
		}
		return nil
	})
}

// importOrg is ImportOrg for any format. The function last runs at the end of the transaction.
func (db *DB) importOrg(
	ctx context.Context,
	format string,
	open func() (io.ReadCloser, error),
	last func(*All) error,
) (PortableFile, error) {
	if err := db.checkPortable(ctx, format, open); err != nil {
		return PortableFile{}, err
	}

	var file PortableFile
	err := db.WriteAll(ctx, func(all *All) error {
		// Commits of others during the import must not look like faults of the file.
		if err := all.oneSnapshot(ctx); err != nil {
			return err
		}

		if err := all.MayPause(ctx, 0); err != nil {
			return err
		}

		before, err := all.findings(ctx)
		if err != nil {
			return err
		}

		f, err := open()
		if err != nil {
			return err
		}
		defer f.Close()

		file, err = all.takeOrg(ctx, format, f)
		if err != nil {
			return err
		}

		after, err := all.findings(ctx)
		if err != nil {
			return err
		}

		for _, finding := range after {
			if !slices.Contains(before, finding) {
				return flex.Fail(
					flex.Conflict,
					"with these records a law of the store would be broken: %s",
					finding,
				)
			}
		}

		return last(all)
	})

	if errors.Is(err, errNotImported) {
		err = nil
	}

	return file, err
}

// oneSnapshot has all statements of a transaction read one snapshot and the transaction's own
// writes, as they do on SQLite. It must be called before the first read.
func (all *All) oneSnapshot(ctx context.Context) error {
	if all.db.sqlite != nil {
		return nil
	}

	_, err := all.exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)

	return err
}

// conflictsMax is how many conflicts an import names at most.
const conflictsMax = 20

// checkPortable reads a whole file, and fails if something in it cannot be imported.
func (db *DB) checkPortable(
	ctx context.Context,
	format string,
	open func() (io.ReadCloser, error),
) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()

	return db.ReadAll(ctx, func(all *All) error {
		r, err := all.portableReader(ctx, format, f)
		if err != nil {
			return err
		}
		if err := all.checkNotImported(ctx, r.file.PortableHead); err != nil {
			return err
		}

		var taken []string
		_, err = r.read(func(t portableTable, batch [][]any) error {
			if t.name != "registration" {
				return nil
			}
			found, err := all.registeredPoints(ctx, t, batch)
			taken = append(taken, found...)

			return err
		})

		if err == nil && len(taken) > 0 {
			err = flex.Fail(
				flex.Conflict,
				"%d metering points are with another organisation here, among them %v: "+
					"have them change their party by flexd mpan first, or leave them out in the other flexd",
				len(taken),
				taken[:min(len(taken), conflictsMax)],
			)
		}

		return err
	})
}

// checkNotImported fails if the organisation, or another one of its name, is in this database.
func (all *All) checkNotImported(ctx context.Context, head PortableHead) error {
	var id, name int
	err := all.row(
		ctx,
		`SELECT count(CASE WHEN id = $1 THEN 1 END), count(CASE WHEN name = $2 THEN 1 END) FROM org WHERE id = $1 OR name = $2`,
		head.Organisation.Bytes(),
		head.Name,
	).Scan(&id, &name)

	if err != nil {
		return err
	}

	if id > 0 {
		return flex.Fail(
			flex.Conflict,
			"the organisation %s is here already",
			head.Organisation,
		)
	}

	if name > 0 {
		return flex.Fail(
			flex.Conflict,
			"another organisation is called %q here",
			head.Name,
		)
	}

	return nil
}

// registeredPoints returns those metering points in a batch of registrations that are
// registered with an organisation of this database.
func (all *All) registeredPoints(
	ctx context.Context,
	t portableTable,
	batch [][]any,
) ([]string, error) {
	var points []any
	for _, row := range batch {
		point := row[t.place("point")]
		if point != nil && row[t.place("to_at")] == nil {
			points = append(points, all.hidden(t.name, "point", point))
		}
	}

	if len(points) == 0 {
		return nil, nil
	}

	var w where
	w.inValues("point", points)

	scan := func(s scanner) (string, error) {
		var mpan string
		err := s.Scan(opened(all.conn, personMPAN, &mpan))
		return mpan, err
	}

	return rows(
		ctx,
		all.conn,
		scan,
		`SELECT mpan FROM registration WHERE to_at IS NULL`+w.text.String(),
		w.args...,
	)
}

// takeOrg writes the rows of a file, exports the organisation again, and fails unless that
// gives the same file. So no row of a file can become another organisation's, whatever it
// contains.
func (all *All) takeOrg(
	ctx context.Context,
	format string,
	from io.Reader,
) (PortableFile, error) {
	r, err := all.portableReader(ctx, format, from)
	if err != nil {
		return PortableFile{}, err
	}

	org := r.file.Organisation
	if format == movedFormat {
		if err := all.dropLeftovers(ctx, org); err != nil {
			return PortableFile{}, err
		}
	}

	file, err := r.read(func(t portableTable, batch [][]any) error {
		err := all.takeRows(ctx, t, org, batch)
		if err != nil && all.db.d.unique(err) {
			err = flex.Fail(flex.Conflict, "rows of %s are here already", t.name)
		}

		return err
	})
	if err != nil {
		return file, err
	}

	again, err := all.writePortable(ctx, file.PortableHead, io.Discard)
	if err != nil {
		return file, err
	}

	for i, sum := range again.Tables {
		if sum != file.Tables[i] {
			return file, flex.Fail(
				flex.Invalid,
				"the rows of %s are not all the organisation's own: it has %d in the file, and would have %d here",
				sum.Table,
				file.Tables[i].Rows,
				sum.Rows,
			)
		}
	}

	file.Lacks, err = all.lacks(ctx, org)

	return file, err
}

// takeRows writes rows of a table.
func (all *All) takeRows(
	ctx context.Context,
	t portableTable,
	org flex.OrgID,
	batch [][]any,
) error {
	args := make([]any, 0, len(batch)*len(t.columns))

	for _, row := range batch {
		if err := all.sealValue(t, org, row); err != nil {
			return err
		}
		args = append(args, row...)
	}

	switch t.name {
	case "curve":
		return all.takeCurves(ctx, t, batch, args)
	case "reading":
		if err := all.makeWeeksOf(ctx, t, batch); err != nil {
			return err
		}
	}

	if err := all.db.d.addRows(ctx, all.conn, t.name, t.names(), args); err != nil {
		return err
	}

	return all.pipe.flush(ctx)
}

// takeCurves stores the prices that schedules were planned on, under the ids that are computed
// from them.
func (all *All) takeCurves(
	ctx context.Context,
	t portableTable,
	batch [][]any,
	args []any,
) error {
	id := t.place("id")
	from := t.place("from_at")
	prices := t.place("prices")

	for _, row := range batch {
		at, isNumber := row[from].(int64)
		text, isText := row[prices].(string)
		name := nameCurve(at, text)
		given, isBytes := row[id].([]byte)

		whole := isNumber && isText && isBytes
		if !whole || !bytes.Equal(name.Bytes(), given) {
			return flex.Fail(
				flex.Invalid,
				"prices in the table curve do not have their own name",
			)
		}
	}

	return all.bulk(
		ctx,
		"INSERT INTO curve (id, from_at, prices)",
		"ON CONFLICT (id) DO NOTHING",
		len(t.columns),
		inOrder(args, len(t.columns), id, from, prices),
	)
}

// inOrder returns the values of rows in another order of columns.
func inOrder(args []any, columns int, order ...int) []any {
	out := make([]any, 0, len(args))
	for row := range slices.Chunk(args, columns) {
		for _, i := range order {
			out = append(out, row[i])
		}
	}

	return out
}

// makeWeeksOf creates the missing partitions for readings.
func (all *All) makeWeeksOf(
	ctx context.Context,
	t portableTable,
	batch [][]any,
) error {
	if !all.db.d.weekly {
		return nil
	}

	at := t.place("at")
	last := int64(-1)

	for _, row := range batch {
		us, ok := row[at].(int64)
		if !ok {
			return flex.Fail(flex.Invalid, "a reading in the file has no time")
		}

		if week := us / week.Microseconds(); week != last {
			if err := all.makeWeek(ctx, week); err != nil {
				return err
			}
			last = week
		}
	}

	return nil
}

// portableReader reads the lines of a file.
type portableReader struct {
	lines  *bufio.Scanner
	tables []portableTable
	file   PortableFile
}
