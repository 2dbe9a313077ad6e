package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"flexd/internal/access"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// request is a request while it is handled. The generic functions path, query,
// body and form read its parts and collect their faults; bad returns them.
type request struct {
	*http.Request
	route  Route
	id     string           // as in the Request-Id field
	who    access.Principal // zero on public routes
	from   string           // the client's address
	faults []error
	note   []any            // further attributes of the log's event
	sent   []byte           // the body, if it was read whole
	claim  *access.KeyClaim // of its idempotency key, if its transactions are counted on it; else nil
	key    *access.KeyClaim // of its idempotency key; nil without one, and for a repeat of an answered request

	ignored wire.Ignored // names of the query and the body that the interface does not have

	fields url.Values // of the body's form, once it was read

	// OAuth 2.0's error code for a refused client; "" for the usual one
	oauthError string

	// why the answer broke off after a part of it was sent; nil if it did not
	brokenOff error

	// why a streamed answer failed before its first byte; nil if it did not
	unsent error

	// whether the answer is a stream of events, whose duration is not counted as response time
	streamed bool
}

// answer is what a handler returns; its zero value is 200 with the body null.
type answer struct {
	status int // 200 if 0
	body   any // encoded as JSON, unless it is text
	header http.Header
	tagged bool // it gets an ETag, and is 304 for a client that has it

	// stream, if set, writes a JSON body in place of encoding one. When it fails the answer
	// breaks off, for the client to see.
	stream func(io.Writer) error

	// events, if set, writes server-sent events until the stream is over.
	events func(http.ResponseWriter)
}

// text is a body that is written unchanged; the answer's header has its media type.
type text []byte

// ok is the answer with a body.
func ok(body any) answer { return answer{body: body} }

// noContent is the answer 204.
func noContent() answer { return answer{status: http.StatusNoContent} }

func (a *answer) set(name, value string) {
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
}

// bad returns all faults of the parts that were read so far, or nil.
func (r *request) bad() error { return wire.Join(r.faults...) }

// noteFault adds a part's error to the request's faults, and returns the part.
func noteFault[T any](r *request, v T, err error) T {
	if err != nil {
		r.faults = append(r.faults, err)
	}
	return v
}

// path reads the path's parameters.
func path[T any](r *request) T {
	v, err := wire.Path[T](r.param)
	return noteFault(r, v, err)
}

// param returns a path parameter, decoded.
func (r *request) param(name string) string {
	v := chi.URLParam(r.Request, name)
	if r.URL.RawPath == "" {
		return v // the router matched the decoded path
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}

	return v
}

// query reads the query's parameters.
func query[T any](r *request) T {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		err = fault(
			"query",
			"value_error.query",
			"the query is not well formed: percent-encode what is not plain",
		)

		return noteFault(r, *new(T), err)
	}
	v, err := wire.Query[T](values, &r.ignored)

	return noteFault(r, v, err)
}

// body reads the JSON body.
func body[T any](r *request) T {
	b, err := r.read("application/json")
	if err != nil {
		return noteFault(r, *new(T), err)
	}
	v, err := wire.Decode[T](b, &r.ignored)

	return noteFault(r, v, err)
}

// emptyBody reads a body that may be left out, as that of an event without fields.
func emptyBody[T any](r *request) T {
	b, err := r.read("application/json")
	if err == nil && len(b) == 0 {
		return *new(T)
	}
	if err != nil {
		return noteFault(r, *new(T), err)
	}

	v, err := wire.Decode[T](b, &r.ignored)

	return noteFault(r, v, err)
}

// form reads the body of a form, in either of its two encodings.
func form[T any](r *request) T {
	values, err := r.form()
	if err != nil {
		return noteFault(r, *new(T), err)
	}

	v, err := wire.Form[T](values, &r.ignored)

	return noteFault(r, v, err)
}

// form returns the fields of the body's form.
func (r *request) form() (url.Values, error) {
	var err error
	if r.fields == nil {
		r.fields, err = r.readForm()
	}
	return r.fields, err
}

func (r *request) readForm() (url.Values, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == multipartForm {
		return r.multipart(params["boundary"])
	}

	b, err := r.read("application/x-www-form-urlencoded")
	if err != nil {
		return nil, err
	}

	values, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, fault(
			"body",
			"value_error.form",
			"the form is not well formed: percent-encode what is not plain",
		)
	}

	return values, nil
}

const multipartForm = "multipart/form-data"

// multipart returns the fields of a form in parts. It may have no files.
func (r *request) multipart(boundary string) (url.Values, error) {
	b, err := r.read(multipartForm)
	if err != nil {
		return nil, err
	}

	f, err := multipart.NewReader(
		bytes.NewReader(b),
		boundary,
	).ReadForm(int64(len(b)))
	if err != nil || len(f.File) > 0 {
		return nil, fault(
			"body",
			"value_error.form",
			"the form is not well formed: each part is a field, and none a file",
		)
	}

	return f.Value, nil
}

func fault(where, word, msg string) error {
	return &flex.Error{
		Kind:   flex.Invalid,
		Faults: []flex.Fault{{Loc: []string{where}, Msg: msg, Type: word}},
	}
}

// read returns the whole body, if its media type is the given one or missing.
func (r *request) read(mediaType string) ([]byte, error) {
	if err := r.isMedia(mediaType); err != nil {
		return nil, err
	}
	e := r.Header.Get("Content-Encoding")
	if e != "" && !strings.EqualFold(e, "identity") {
		return nil, flex.Fail(
			flex.Unsupported,
			"a body encoded as %q is not taken here: send it plain",
			e,
		)
	}

	b, err := wire.ReadBody(r.Body, r.route.Limit)
	r.sent = b

	return b, err
}

// stream returns a reader of the JSON body, which decompresses gzip and fails with
// TooLarge beyond the route's limit.
func (r *request) stream() (io.Reader, error) {
	if err := r.isMedia("application/json"); err != nil {
		return nil, err
	}

	in := io.Reader(r.Body)
	switch e := r.Header.Get("Content-Encoding"); strings.ToLower(e) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, flex.Fail(
				flex.Malformed,
				"the body says that it is gzipped, and is not: %v",
				err,
			)
		}

		in = z

	default:
		return nil, flex.Fail(
			flex.Unsupported,
			"a body encoded as %q is not taken: send it plain or gzipped",
			e,
		)
	}

	return r.limited(in, in != r.Body), nil
}

// isMedia returns an error if the body's media type is another one. A body without a type is
// accepted.
func (r *request) isMedia(want string) error {
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}

	got, _, err := mime.ParseMediaType(given)
	isJSON := want == "application/json" && strings.HasSuffix(got, "+json")
	if err == nil && (got == want || isJSON) {
		return nil
	}

	return flex.Fail(
		flex.Unsupported,
		"a body of type %q is not taken here: send %s",
		given,
		want,
	)
}

// limited returns a reader that ends with a TooLarge failure beyond the route's limit.
func (r *request) limited(in io.Reader, zipped bool) *limitedReader {
	return &limitedReader{
		in:     in,
		zipped: zipped,
		left:   r.route.Limit,
		limit:  r.route.Limit,
	}
}

// limitedReader reads up to limit bytes and fails on the next.
type limitedReader struct {
	in     io.Reader
	zipped bool
	left   int64
	limit  int64
}

// Read fails with TooLarge instead of reading a byte beyond the limit.
func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}

	n, err := l.in.Read(p)
	if int64(n) > l.left {
		return int(l.left), flex.Fail(
			flex.TooLarge,
			"the body is longer than %d bytes",
			l.limit,
		)
	}

	l.left -= int64(n)
	if err == nil || err == io.EOF {
		return n, err
	}

	if l.zipped {
		return n, flex.Fail(
			flex.Malformed,
			"the gzipped body is broken: %v",
			err,
		)
	}

	return n, wire.BrokenOff(err)
}
