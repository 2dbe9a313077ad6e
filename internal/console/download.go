package console

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
	"flexd/internal/web"
)

// partWrite is the time limit for writing a part of a table to a client.
const partWrite = 2 * time.Minute

// rowWriter writes the rows of a table in a format.
type rowWriter interface {
	// rows writes the rows of a part.
	rows(t *table) error
	// end writes the end of a complete file.
	end() error
}

// download writes a table in parts. Each part is read when the previous one is written, so
// that only one is in memory. If the table cannot be completed, the connection is broken, so
// that nobody takes an incomplete table for a complete one.
func (s *Server) download(w http.ResponseWriter, rt route, r *request, v view) {
	control := http.NewResponseController(w)
	out := tableWriter(w, r, v.table)

	for {
		// refused by test recorders alone
		control.SetWriteDeadline(time.Now().Add(partWrite))
		err := out.rows(v.table)
		if err == nil && v.last(r) {
			err = out.end()
			if err == nil {
				return
			}
		}

		if err == nil {
			v, err = s.part(rt, r, v)
		}

		if err != nil {
			level := slog.LevelError
			if web.ClientHungUp(r.Context(), err) { // nothing failed
				level = slog.LevelDebug
			}

			s.Log.LogAttrs(
				r.Context(),
				level,
				"console: a table broke off",
				slog.String("path", r.URL.Path),
				slog.Any("err", err),
			)
			panic(http.ErrAbortHandler)
		}
	}
}

// last reports whether no part of the table follows.
func (v *view) last(r *request) bool {
	if v.rest != nil {
		return false
	}

	return v.next == "" || r.URL.Query().Has("limit")
}

// part returns the view of the next part of a table.
func (s *Server) part(rt route, r *request, before view) (v view, err error) {
	defer flex.Recover(&err)

	if err := r.Context().Err(); err != nil {
		return v, err
	}

	if before.rest != nil {
		return before.rest()
	}

	next, err := url.Parse(before.next)
	if err != nil {
		return v, err
	}

	copied := *r
	copied.Request = r.WithContext(r.Context())
	copied.URL = next

	return rt.handle(s, &copied)
}

// tableWriter begins the answer.
func tableWriter(w http.ResponseWriter, r *request, t *table) rowWriter {
	h := w.Header()
	if strings.HasSuffix(r.URL.Path, ".json") {
		h.Set("Content-Type", "application/json")
		return &jsonRows{to: w}
	}

	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+t.Name+`.csv"`)

	return &csvRows{csvfile.NewWriter(w, t.Columns...)}
}

// csvRows writes CSV with a header line.
type csvRows struct{ *csvfile.Writer }

func (c *csvRows) rows(t *table) error {
	for _, row := range t.Rows {
		c.Write(row...)
	}

	return c.Flush()
}

func (*csvRows) end() error { return nil }

// jsonRows writes an array of objects. Without its end it is not valid JSON.
type jsonRows struct {
	to      io.Writer
	started bool
}

func (j *jsonRows) rows(t *table) error {
	for _, o := range t.objects() {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}

		before := []byte{','}
		if !j.started {
			before[0], j.started = '[', true
		}

		if _, err := j.to.Write(append(before, text...)); err != nil {
			return err
		}
	}

	return nil
}

func (j *jsonRows) end() error {
	text := "]\n"
	if !j.started {
		text = "[]\n"
	}

	_, err := io.WriteString(j.to, text)

	return err
}
