package csvfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"flexd/internal/flex"
)

// MaxLine is the longest row, in bytes.
const MaxLine = 4096

// rowBytes is how much of a file is read for one row, with blank lines before it: a quotation mark that is never closed
// would have the rest of the file read into memory.
const rowBytes = 1 << 20

var errRowBytes = errors.New("a row does not end")

// rowReader reads so many bytes of a file, until more are allowed.
type rowReader struct {
	from io.Reader
	left int
}

// Read reads no more than is left.
func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errRowBytes
	}

	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n

	return n, err
}

// Row is one row of a sheet. It is good until the next one is read.
type Row struct {
	Line   int
	column map[string]int
	fields []string
}

// Get returns the field of a column without the blanks around it, empty if the sheet has
// no such column.
func (r Row) Get(column string) string {
	if i, ok := r.column[column]; ok && i < len(r.fields) {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

// Instant reads an instant of a column. A field that is none is a flex.Invalid that names the row's line.
func (r Row) Instant(column string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, r.Get(column))
	if err != nil {
		return at, r.Fault(
			"%s is %q: it should be an instant such as 2026-01-15T18:00:00Z",
			column,
			r.Get(column),
		)
	}

	return at, nil
}

// Fault returns a flex.Invalid that names the row's line.
func (r Row) Fault(format string, args ...any) error {
	return flex.Fail(
		flex.Invalid,
		"line %d: %s",
		r.Line,
		fmt.Sprintf(format, args...),
	)
}

// Read returns the rows of a sheet that must have the given columns. It ends with the
// first error, which is a flex.Invalid if the sheet is at fault.
func Read(r io.Reader, required ...string) iter.Seq2[Row, error] {
	return rows(r, func(c *csv.Reader) (Row, error) {
		return header(c, required)
	})
}

// ReadKnown is Read of a sheet that may have some other columns, and none beside them: it is for files
// in which a misspelt optional column would be taken for one that was left out. A column without a name,
// as spreadsheets leave behind, is ignored.
func ReadKnown(r io.Reader, required, optional []string) iter.Seq2[Row, error] {
	known := slices.Concat(required, optional)

	return rows(r, func(c *csv.Reader) (Row, error) {
		row, err := header(c, required)
		if err != nil {
			return row, err
		}

		for _, name := range slices.Sorted(maps.Keys(row.column)) {
			if name != "" && !slices.Contains(known, name) {
				return row, flex.Fail(
					flex.Invalid,
					"line 1: there is no such column as %q; the columns are %s",
					name,
					strings.Join(known, ","),
				)
			}
		}

		return row, nil
	})
}

// rows returns the rows of a sheet whose first line is read by a function.
func rows(
	r io.Reader,
	first func(*csv.Reader) (Row, error),
) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		bounded := &rowReader{skipMark(r), rowBytes}
		c := csv.NewReader(bounded)
		c.ReuseRecord = true
		row, err := first(c)
		for err == nil {
			bounded.left = rowBytes
			row.fields, err = c.Read()
			if err != nil {
				break
			}

			row.Line, _ = c.FieldPos(0)
			err = row.checkText()
			if err != nil {
				break
			}

			size := 0

			for _, f := range row.fields {
				size += len(f)
			}

			if size > MaxLine {
				err = row.Fault("the row is longer than %d characters", MaxLine)
			} else if !yield(row, nil) {
				return
			}
		}

		if e, ok := errors.AsType[*csv.ParseError](err); ok {
			err = flex.Fail(flex.Invalid, "line %d: %v", e.Line, e.Err)
		}

		if errors.Is(err, errRowBytes) {
			err = flex.Fail(
				flex.Invalid,
				"after line %d: the next row has more than %d bytes: is a quotation mark never closed?",
				row.Line,
				rowBytes,
			)
		}

		if !errors.Is(err, io.EOF) {
			yield(Row{}, err)
		}
	}
}

// checkText refuses a row that no database keeps as it is. Spreadsheets write other encodings than UTF-8 unless they are
// asked for it, and a name in one would come out as another.
func (r Row) checkText() error {
	for _, f := range r.fields {
		if !utf8.ValidString(f) {
			return r.Fault("%q is not in UTF-8: save the file as CSV in UTF-8", f)
		}
		if strings.ContainsRune(f, 0) {
			return r.Fault("%q holds a character with the number 0", f)
		}
	}

	return nil
}

// header reads the line that names the columns.
func header(c *csv.Reader, required []string) (Row, error) {
	names, err := c.Read()
	if errors.Is(err, io.EOF) {
		return Row{}, flex.Fail(
			flex.Invalid,
			"the file is empty; its first line should name the columns %s",
			strings.Join(required, ","),
		)
	}
	if err != nil {
		return Row{}, err
	}

	if err := commas(names); err != nil {
		return Row{}, err
	}

	row := Row{Line: 1, column: map[string]int{}, fields: names}
	if err := row.checkText(); err != nil {
		return Row{}, err
	}

	for i, name := range names {
		row.column[strings.ToLower(strings.TrimSpace(name))] = i
	}

	for _, name := range required {
		if _, ok := row.column[name]; !ok {
			return Row{}, flex.Fail(
				flex.Invalid,
				"line 1: there is no column %s; the columns needed are %s",
				name,
				strings.Join(required, ","),
			)
		}
	}

	return row, nil
}

// commas is an error if a sheet's columns are separated by something else, as some spreadsheets write them.
func commas(names []string) error {
	for mark, words := range map[string]string{";": "semicolons", "\t": "tabs"} {
		if len(names) == 1 && strings.Contains(names[0], mark) {
			return flex.Fail(
				flex.Invalid,
				"line 1: the columns are separated by %s: they should be separated by commas",
				words,
			)
		}
	}

	return nil
}

// skipMark drops the byte order mark that spreadsheets write.
func skipMark(r io.Reader) io.Reader {
	head := make([]byte, 3)
	n, err := io.ReadFull(r, head)
	head = bytes.TrimPrefix(head[:n], []byte("\uFEFF"))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bytes.NewReader(head)
	}

	// r says again what else is wrong with it
	return io.MultiReader(bytes.NewReader(head), r)
}
