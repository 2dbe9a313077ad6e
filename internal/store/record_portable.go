package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"flexd/internal/flex"
)

// PortableHead is the first line of an organisation's file.
type PortableHead struct {
	Format       string           `json:"format"`
	Version      int              `json:"version"`
	Schema       int64            `json:"schema"`
	Environment  flex.Environment `json:"environment"`
	Organisation flex.OrgID       `json:"organisation"`
	Name         string           `json:"name"`
}

// portableLayout is the line before a table's rows.
type portableLayout struct {
	Table   string   `json:"table"`
	Key     []string `json:"key"`
	Columns []string `json:"columns"`
}

// layout describes the table.
func (t portableTable) layout() portableLayout {
	l := portableLayout{Table: t.name, Columns: t.names()}
	for _, c := range t.key() {
		l.Key = append(l.Key, c.name)
	}

	return l
}

// PortableSum is how many rows of a table there are, and their digest.
type PortableSum struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"` // of the rows' lines
}

// portableEnd is the last line of a file.
type portableEnd struct {
	End []PortableSum `json:"end"`
}

// put writes a line that has v.
func (w *portableWriter) put(v any) error {
	w.line.Reset()
	e := json.NewEncoder(&w.line)
	e.SetEscapeHTML(false)

	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.to.Write(w.line.Bytes())

	return err
}

// portableLineMax bounds a line of a file, in bytes.
const portableLineMax = 64 << 20

// portableBatch is how many rows are written at a time.
const portableBatch = 500

// portableReader reads the head of a file, and fails with Invalid if the rest cannot be read by
// this program.
func (all *All) portableReader(
	ctx context.Context,
	format string,
	from io.Reader,
) (*portableReader, error) {
	r := &portableReader{lines: bufio.NewScanner(from)}
	r.lines.Buffer(make([]byte, 0, 1<<16), portableLineMax)

	head := &r.file.PortableHead
	if !r.lines.Scan() || r.decode(head) != nil || head.Format != format {
		return nil, flex.Fail(
			flex.Invalid,
			"this is no file of an organisation: flexd export --organisation NAME makes one",
		)
	}

	version, err := all.schemaVersion(ctx)
	if err != nil {
		return nil, err
	}

	if head.Version != portableVersion || head.Schema != version {
		return nil, flex.Fail(
			flex.Invalid,
			"the file has form %d and schema %d, and this flexd form %d and schema %d: have both flexds on one version, and export anew",
			head.Version,
			head.Schema,
			portableVersion,
			version,
		)
	}

	if head.Environment != all.db.Environment {
		return nil, flex.Fail(
			flex.Invalid,
			"the file is of a %s, and this flexd is a %s",
			head.Environment,
			all.db.Environment,
		)
	}

	r.tables, err = all.portableTables(ctx, format)

	return r, err
}

// decode reads the line at hand into v.
func (r *portableReader) decode(v any) error {
	d := json.NewDecoder(bytes.NewReader(r.lines.Bytes()))
	d.DisallowUnknownFields()

	if err := d.Decode(v); err != nil {
		return flex.Fail(flex.Invalid, "the file cannot be read: %v", err)
	}

	return nil
}

// cut is why there is no further line.
func (r *portableReader) cut() error {
	if err := r.lines.Err(); err != nil {
		return flex.Fail(flex.Invalid, "the file cannot be read: %v", err)
	}
	return flex.Fail(
		flex.Invalid,
		"the file is cut: its last line is missing; nothing of it was taken in",
	)
}

// read gives the rows of each table out, some at a time, and holds them against the file's end.
func (r *portableReader) read(
	take func(t portableTable, batch [][]any) error,
) (PortableFile, error) {
	if !r.lines.Scan() {
		return r.file, r.cut()
	}

	for _, t := range r.tables {
		var l portableLayout
		if err := r.decode(&l); err != nil {
			return r.file, err
		}

		if err := l.mustBe(t.layout()); err != nil {
			return r.file, err
		}

		sum, err := r.rows(t, take)
		if err != nil {
			return r.file, fmt.Errorf("table %s: %w", t.name, err)
		}
		r.file.Tables = append(r.file.Tables, sum)
	}

	var end portableEnd
	if err := r.decode(&end); err != nil {
		return r.file, err
	}

	if r.lines.Scan() || !slices.Equal(end.End, r.file.Tables) {
		return r.file, flex.Fail(
			flex.Invalid,
			"the file was changed: its rows are not those that its last line sums up",
		)
	}

	return r.file, nil
}

// mustBe fails if a table of a file is not the one that this program would write.
func (l portableLayout) mustBe(want portableLayout) error {
	if l.Table == want.Table && slices.Equal(l.Key, want.Key) &&
		slices.Equal(l.Columns, want.Columns) {
		return nil
	}

	return flex.Fail(
		flex.Invalid,
		"the file has the table %s of %d columns where %s of %d is expected",
		l.Table,
		len(l.Columns),
		want.Table,
		len(want.Columns),
	)
}

// rows gives a table's rows out, up to the line after them, which is then at hand.
func (r *portableReader) rows(
	t portableTable,
	take func(t portableTable, batch [][]any) error,
) (PortableSum, error) {
	sum := PortableSum{Table: t.name}
	digest := sha256.New()
	var batch [][]any

	for r.lines.Scan() {
		line := r.lines.Bytes()
		if len(line) == 0 || line[0] != '[' {
			sum.SHA256 = hex.EncodeToString(digest.Sum(nil))
			if len(batch) > 0 {
				return sum, take(t, batch)
			}
			return sum, nil
		}

		digest.Write(line)
		digest.Write([]byte{'\n'})
		sum.Rows++

		row, err := t.parse(line)
		if err != nil {
			return sum, fmt.Errorf("row %d: %w", sum.Rows, err)
		}

		batch = append(batch, row)

		if len(batch) == portableBatch {
			if err := take(t, batch); err != nil {
				return sum, err
			}
			batch = nil
		}
	}

	return sum, r.cut()
}

// parse reads a row as scan does.
func (t portableTable) parse(line []byte) ([]any, error) {
	var given []json.RawMessage
	err := json.Unmarshal(line, &given)
	if err == nil && len(given) != len(t.columns) {
		err = fmt.Errorf("it has %d values", len(given))
	}

	if err != nil {
		return nil, flex.Fail(flex.Invalid, "it cannot be read: %v", err)
	}

	row := make([]any, len(given))

	for i, raw := range given {
		row[i], err = t.columns[i].kind.parse(raw)
		if err != nil {
			return nil, flex.Fail(
				flex.Invalid,
				"column %s: %v",
				t.columns[i].name,
				err,
			)
		}
	}

	return row, nil
}

// parse reads a value.
func (k columnKind) parse(raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}

	switch k {
	case ofText:
		var v string
		err := json.Unmarshal(raw, &v)
		return v, err

	case ofFlag:
		var v bool
		err := json.Unmarshal(raw, &v)
		return v, err

	case ofBytes:
		var v string
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		return hex.DecodeString(v)
	}

	var v int64
	err := json.Unmarshal(raw, &v)

	return v, err
}
