package openadr

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"flexd/internal/adr"
	"flexd/internal/flex"
)

// document reads the JSON body.
func (r *request) document() (any, error) {
	if err := r.isMedia("application/json"); err != nil {
		return nil, err
	}

	b, err := r.bytes(BodyMax)
	if err != nil {
		return nil, err
	}

	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, flex.Fail(
			flex.Malformed,
			"the body is no JSON document: %v",
			err,
		)
	}

	return v, nil
}

// bytes reads the body whole.
func (r *request) bytes(most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil {
		return nil, flex.Fail(flex.Malformed, "the body broke off")
	}

	if int64(len(b)) > most {
		return nil, flex.Fail(
			flex.TooLarge,
			"the body is longer than %d bytes",
			most,
		)
	}

	return b, nil
}

// id reads the id of the path.
func (r *request) id() (flex.ADRObjectID, error) {
	raw := chi.URLParam(r.Request, "id")
	if r.URL.RawPath != "" {
		unescaped, err := url.PathUnescape(raw)
		if err != nil {
			return flex.ADRObjectID{}, flex.Fail(
				flex.Malformed,
				"the path is not well formed",
			)
		}
		raw = unescaped
	}

	return adr.ParseID(raw)
}

// search answers GET of a collection.
func (s *Server) search(r *request, kind flex.ADRKind) (answer, error) {
	q, noMatch, err := readQuery(r, kind)
	if err != nil {
		return answer{}, err
	}

	found := []map[string]any{}
	if noMatch {
		return answer{http.StatusOK, found}, nil
	}

	objects, err := s.ADR.Search(r.Context(), r.adr, q)
	for i := range objects {
		found = append(found, objects[i].Document())
	}

	return answer{http.StatusOK, found}, err
}

// create answers POST of a collection.
func (s *Server) create(r *request, kind flex.ADRKind) (answer, error) {
	return s.write(r, kind, "create", "", http.StatusCreated, func(ctx context.Context, document any) (adr.Object, error) {
		o, err := s.ADR.Create(ctx, r.adr, kind, document)
		if kind == flex.ADRVEN && flex.KindOf(err) == flex.Conflict { // for which the specification has no 409
			err = flex.Fail(flex.Malformed, "%v", err)
		}
		return o, err
	})
}

// replace answers PUT of an object.
func (s *Server) replace(r *request, kind flex.ADRKind) (answer, error) {
	if err := r.adr.CheckWrite(kind); err != nil {
		return answer{}, err
	}

	id, err := r.id()
	if err != nil {
		return answer{}, err
	}

	return s.write(
		r,
		kind,
		"update",
		id.String(),
		http.StatusOK,
		func(ctx context.Context, document any) (adr.Object, error) {
			return s.ADR.Replace(ctx, r.adr, kind, id, document)
		},
	)
}

// write reads a document and stores it.
func (s *Server) write(
	r *request,
	kind flex.ADRKind,
	verb, subject string,
	status int,
	do func(context.Context, any) (adr.Object, error),
) (answer, error) {
	if err := r.adr.CheckWrite(kind); err != nil {
		return answer{}, err
	}

	document, err := r.document()
	if err != nil {
		return answer{}, err
	}

	return s.acting(r, kind, verb, subject, status, func() (adr.Object, error) {
		return do(r.Context(), document)
	})
}

// remove answers DELETE of an object.
func (s *Server) remove(r *request, kind flex.ADRKind) (answer, error) {
	if err := r.adr.CheckWrite(kind); err != nil {
		return answer{}, err
	}

	id, err := r.id()
	if err != nil {
		return answer{}, err
	}

	return s.acting(
		r,
		kind,
		"delete",
		id.String(),
		http.StatusOK,
		func() (adr.Object, error) {
			return s.ADR.Delete(r.Context(), r.adr, kind, id)
		},
	)
}

// acting carries out a change of an object. Changes of programs and events, which control the
// fleet, are in the audit log.
func (s *Server) acting(
	r *request,
	kind flex.ADRKind,
	verb, subject string,
	status int,
	do func() (adr.Object, error),
) (answer, error) {
	var o adr.Object
	act := func() error {
		var err error
		o, err = do()
		return err
	}

	var err error
	switch kind {
	case flex.ADRProgram, flex.ADREvent:
		plural := map[flex.ADRKind]string{
			flex.ADRProgram: " program",
			flex.ADREvent:   " event",
		}[kind]

		err = s.Access.ActWithDetail(r.Context(), flex.AuditEntry{
			Who:     "openadr client " + r.adr.ID,
			Source:  r.from,
			Act:     "openadr " + verb + plural,
			Org:     r.adr.Org,
			Subject: subject,
		}, func() (string, error) { return o.ID.String(), act() })
	default:
		err = act()
	}

	if err != nil {
		return answer{}, err
	}

	return answer{status, o.Document()}, nil
}

// read answers GET of an object.
func (s *Server) read(r *request, kind flex.ADRKind) (answer, error) {
	id, err := r.id()
	if err != nil {
		return answer{}, err
	}

	o, err := s.ADR.Read(r.Context(), r.adr, kind, id)
	if err != nil {
		return answer{}, err
	}

	return answer{http.StatusOK, o.Document()}, nil
}

// query reads the parameters of a search, and collects their errors.
type query struct {
	values url.Values
	errs   []error
}

func (q *query) refuse(name, expected string) {
	q.errs = append(
		q.errs,
		flex.Fail(flex.Malformed, "query.%s: %s", name, expected),
	)
}

// single reads a parameter that may be given once.
func (q *query) single(name string) (text string, isSet bool) {
	all := q.values[name]
	if len(all) > 1 {
		q.refuse(name, "it is given more than once")
	}
	if len(all) == 0 {
		return "", false
	}

	return all[0], true
}

// nameMax is the longest name in characters.
const nameMax = 128

// name reads a name.
func (q *query) name(parameter string) string {
	text, isSet := q.single(parameter)
	if isSet {
		q.checkName(parameter, text)
	}

	return text
}

func (q *query) checkName(parameter, text string) {
	n := len([]rune(text))
	if n < 1 || n > nameMax || slices.Contains([]byte(text), 0) {
		q.refuse(
			parameter,
			"it has 1 to 128 characters, none of them with the number 0",
		)
	}
}

// names reads a list of names.
func (q *query) names(parameter string) []string {
	all := q.values[parameter]
	if len(all) > adr.TargetsMax {
		q.refuse(parameter, "there are too many")
	}
	for _, text := range all {
		q.checkName(parameter, text)
	}

	return all
}

// integer reads an integer from 0 on.
func (q *query) integer(name string, most, standard int) int {
	text, isSet := q.single(name)
	if !isSet {
		return standard
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		q.refuse(name, "it is no whole number from 0 to "+strconv.Itoa(most))
	}

	return n
}

// boolean reads a parameter that is true or false.
func (q *query) boolean(name string) bool {
	text, isSet := q.single(name)
	if isSet && text != "true" && text != "false" {
		q.refuse(name, "it is neither true nor false")
	}

	return text == "true"
}

// id reads an object's id. It sets noMatch if no object can have that id.
func (q *query) id(name string, noMatch *bool) flex.ADRObjectID {
	text, isSet := q.single(name)
	if !isSet {
		return flex.ADRObjectID{}
	}

	id, err := adr.ParseID(text)
	switch flex.KindOf(err) {
	case flex.NotFound:
		*noMatch = true
	case flex.Malformed:
		q.refuse(name, "an id has 1 to 128 letters, digits, _ and -")
	}

	return id
}

// readQuery reads the search in a collection. It returns true if nothing can match.
func readQuery(
	r *request,
	kind flex.ADRKind,
) (s flex.ADRSearch, none bool, err error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return s, false, flex.Fail(
			flex.Malformed,
			"the query is not well formed: percent-encode what is not plain",
		)
	}

	q := &query{values: values}
	s = flex.ADRSearch{
		Kind:  kind,
		Skip:  q.integer("skip", math.MaxInt32, 0),
		Limit: q.integer("limit", adr.PageMax, adr.PageMax),
	}

	none = s.Limit == 0

	q.narrow(&s, &none)

	return s, none, errors.Join(q.errs...)
}

// narrow reads the filters of a kind of object.
func (q *query) narrow(s *flex.ADRSearch, noMatch *bool) {
	switch s.Kind {
	case flex.ADRProgram:
		s.Targets = q.names("targets")

	case flex.ADREvent:
		s.Program = q.id("programID", noMatch)
		s.Targets, s.Active = q.names("targets"), q.boolean("active")

	case flex.ADRReport:
		s.Program, s.Event = q.id("programID", noMatch), q.id("eventID", noMatch)
		s.ClientName = q.name("clientName")

	case flex.ADRSubscription:
		s.Program = q.id("programID", noMatch)
		s.ClientName, s.Objects = q.name("clientName"), q.kinds("objects")

	case flex.ADRVEN:
		s.Name, s.Targets = q.name("venName"), q.names("targets")

	case flex.ADRResource:
		s.VEN = q.id("venID", noMatch)
		s.Name, s.Targets = q.name("resourceName"), q.names("targets")
	}
}

// kinds reads a list of kinds of object.
func (q *query) kinds(parameter string) []string {
	all := q.values[parameter]
	for _, text := range all {
		known := false
		for _, kind := range collections {
			known = known || string(kind) == text
		}
		if !known {
			q.refuse(parameter, strconv.Quote(text)+" is no kind of object")
		}
	}
	slices.Sort(all)

	return slices.Compact(all)
}
