package api

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"flexd/internal/wire"
)

// gzipMin is the size in bytes from which an answer is compressed.
const gzipMin = 4 << 10

// write sends the answer and returns its status and the bytes of its body before
// compression.
func write(w http.ResponseWriter, r *request, a answer) (status, size int) {
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}

	status = a.status
	if status == 0 {
		status = http.StatusOK
	}

	if status == http.StatusNoContent ||
		status == http.StatusTemporaryRedirect {
		w.WriteHeader(status)
		return status, 0
	}

	if a.events != nil {
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // or a proxy would buffer it
		r.streamed = true
		a.events(w)
		return status, 0
	}

	if a.stream != nil {
		return status, stream(w, r, status, a)
	}

	doc, isDocument := a.body.(*document)
	if !isDocument {
		b, err := encode(a.body)
		if err != nil {
			r.note = append(r.note, "encode", err)
			status, b = http.StatusInternalServerError, []byte(`{"detail":"`+internalError+`"}`)
		}

		doc = &document{plain: b}
	}

	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}

	if a.tagged && status == http.StatusOK && setTag(h, r, doc) {
		w.WriteHeader(http.StatusNotModified)
		return http.StatusNotModified, 0
	}

	writeBody(w, r, status, doc)

	return status, len(doc.plain)
}

// setTag sets the answer's ETag and reports whether the client has it already.
func setTag(h http.Header, r *request, doc *document) bool {
	tag := doc.tag
	if tag == "" {
		tag = tagOf(doc.plain)
	}

	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")

	return matches(r.Header.Get("If-None-Match"), tag)
}

// writeBody sends a body, compressed if it is long enough and the client accepts that. Errors
// of writing are ignored: they mean that the client has disconnected.
func writeBody(w http.ResponseWriter, r *request, status int, doc *document) {
	h, b := w.Header(), doc.plain
	if len(b) >= gzipMin {
		h.Add("Vary", "Accept-Encoding")

		if acceptsGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")

			if doc.zipped == nil {
				w.WriteHeader(status)
				z := gzips.Get().(*gzip.Writer)
				z.Reset(w)
				z.Write(b)
				z.Close()
				gzips.Put(z)

				return
			}

			b = doc.zipped
		}
	}

	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	w.Write(b)
}

// stream writes an answer whose length is not known beforehand, compressed if the client
// accepts that. A failure after the first byte sets r.brokenOff, and the connection will be
// broken, as the sent part cannot be recalled. A failure before it sets r.unsent, and is
// answered like any other.
func stream(w http.ResponseWriter, r *request, status int, a answer) int {
	h := w.Header()
	zipped := acceptsGzip(r.Header.Get("Accept-Encoding"))
	n := &countingWriter{Writer: w}

	var z *gzip.Writer
	if zipped {
		z = gzips.Get().(*gzip.Writer)
		defer gzips.Put(z)
		z.Reset(w)
		n.Writer = z
	}

	n.begin = func() {
		h.Set("Content-Type", "application/json")
		h.Add("Vary", "Accept-Encoding")
		if zipped {
			h.Set("Content-Encoding", "gzip")
		}

		w.WriteHeader(status)
	}

	err := a.stream(n)
	if err != nil && n.n == 0 {
		r.unsent = err
		return 0
	}

	if err == nil && zipped { // after an error the gzip trailer must stay missing
		err = z.Close()
	}

	breakOff(r, n, err)

	return n.n
}

// breakOff records in the request that its answer broke off, if there is an error.
func breakOff(r *request, n *countingWriter, err error) {
	if err != nil {
		r.brokenOff = fmt.Errorf(
			"the answer broke off after %d bytes: %w",
			n.n,
			err,
		)
	}
}

// countingWriter counts the bytes written, and calls begin before the first one.
type countingWriter struct {
	io.Writer
	begin func()
	n     int
}

// Write writes p and adds to the count.
func (c *countingWriter) Write(p []byte) (int, error) {
	if c.n == 0 && len(p) > 0 {
		c.begin()
	}

	n, err := c.Writer.Write(p)
	c.n += n

	return n, err
}

var gzips = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that exists
	return z
}}

func encode(body any) ([]byte, error) {
	switch v := body.(type) {
	case nil:
		return []byte("null"), nil
	case text:
		return v, nil
	}

	return wire.Encode(body)
}

// matches reports whether an If-None-Match field names the tag.
func matches(field, tag string) bool {
	for part := range strings.SplitSeq(field, ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == tag || part == "*" {
			return true
		}
	}

	return false
}

// acceptsGzip reports whether an Accept-Encoding field accepts gzip.
func acceptsGzip(field string) bool {
	for part := range strings.SplitSeq(field, ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if c := strings.TrimSpace(coding); c != "gzip" && c != "*" {
			continue
		}

		q, isQ := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		f, err := strconv.ParseFloat(q, 64)
		return !isQ || err == nil && f > 0
	}

	return false
}
