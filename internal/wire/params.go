package wire

import (
	"maps"
	"net/url"
	"reflect"
	"slices"

	"flexd/internal/flex"
)

// Query reads query parameters as a T, under the rules of a body: every fault at once,
// exact names, each given once, unknown ones ignored and noted in ignored, unless it is nil.
func Query[T any](values url.Values, ignored *Ignored) (T, error) {
	return params[T]("query", values, ignored)
}

// Form reads an application/x-www-form-urlencoded body as a T, as Query does. A field that
// is empty was not filled in, and counts as not given.
func Form[T any](values url.Values, ignored *Ignored) (T, error) {
	filled := maps.Clone(values)
	maps.DeleteFunc(filled, func(_ string, v []string) bool {
		return len(v) == 1 && v[0] == ""
	})

	return params[T]("body", filled, ignored)
}

// Path reads path parameters as a T; get returns the parameter of a name, decoded.
func Path[T any](get func(name string) string) (T, error) {
	values := url.Values{}
	for _, f := range shapeOf(reflect.TypeFor[T]()).fields {
		values.Set(f.name, get(f.name))
	}

	return params[T]("path", values, nil)
}

func params[T any](where string, values url.Values, ignored *Ignored) (T, error) {
	var v T
	s, to := shapeOf(reflect.TypeFor[T]()), reflect.ValueOf(&v).Elem()
	var faults []flex.Fault

	unknown := unknownParams(s, values)
	ignored.join(unknown)

	for i := range s.fields {
		if f := readParam(&s.fields[i], to, values, unknown.Names); f != nil {
			faults = append(
				faults,
				faultAt(where, []place{{name: s.fields[i].name}}, f),
			)
		}
	}

	return v, invalid(faults)
}

// unknownParams are the names that the interface does not have, in their order.
func unknownParams(s *shape, values url.Values) Ignored {
	var names []string
	for name := range values {
		if _, known := s.byName[name]; !known {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	var found Ignored
	for _, name := range names {
		found.add(s, nil, name)
	}

	return found
}

func readParam(f *field, to reflect.Value, values url.Values, unknown []IgnoredName) *fault {
	given := values[f.name]
	switch {
	case len(given) > 1:
		return faultTwice
	case len(given) == 1:
		return f.set(to.Field(f.at), []byte(given[0]), &f.rule)
	case f.rule.required:
		return missing(f.name, unknown)
	case f.rule.standIn != "":
		return f.set(to.Field(f.at), []byte(f.rule.standIn), &f.rule)
	}

	return nil
}
