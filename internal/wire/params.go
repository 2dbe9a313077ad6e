package wire

import (
	"maps"
	"net/url"
	"reflect"

	"flexd/internal/flex"
)

// Query reads query parameters as a T, under the rules of a body: every fault at once,
// exact names, each given once, unknown ones ignored.
func Query[T any](values url.Values) (T, error) {
	return params[T]("query", values)
}

// Form reads an application/x-www-form-urlencoded body as a T, as Query does. A field that
// is empty was not filled in, and counts as not given.
func Form[T any](values url.Values) (T, error) {
	filled := maps.Clone(values)
	maps.DeleteFunc(filled, func(_ string, v []string) bool {
		return len(v) == 1 && v[0] == ""
	})

	return params[T]("body", filled)
}

// Path reads path parameters as a T; get returns the parameter of a name, decoded.
func Path[T any](get func(name string) string) (T, error) {
	values := url.Values{}
	for _, f := range shapeOf(reflect.TypeFor[T]()).fields {
		values.Set(f.name, get(f.name))
	}

	return params[T]("path", values)
}

func params[T any](where string, values url.Values) (T, error) {
	var v T
	s, to := shapeOf(reflect.TypeFor[T]()), reflect.ValueOf(&v).Elem()
	var faults []flex.Fault

	for i := range s.fields {
		if f := readParam(&s.fields[i], to, values); f != nil {
			faults = append(
				faults,
				faultAt(where, []place{{name: s.fields[i].name}}, f),
			)
		}
	}

	return v, invalid(faults)
}

func readParam(f *field, to reflect.Value, values url.Values) *fault {
	given := values[f.name]
	switch {
	case len(given) > 1:
		return faultTwice
	case len(given) == 1:
		return f.set(to.Field(f.at), []byte(given[0]), &f.rule)
	case f.rule.required:
		return faultMissing
	case f.rule.standIn != "":
		return f.set(to.Field(f.at), []byte(f.rule.standIn), &f.rule)
	}

	return nil
}
