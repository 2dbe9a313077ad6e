package client

import (
	"encoding/json"
	"net/url"
	"reflect"
)

// queryOf writes the fields of a struct of query parameters, but for those that are zero:
// they are not given.
func queryOf(params any) url.Values {
	q := url.Values{}
	v := reflect.ValueOf(params)

	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() {
			continue
		}

		b, err := json.Marshal(f.Interface())
		if err != nil {
			continue // none of the structs has a field that cannot be written
		}

		text := string(b)
		var plain string
		if json.Unmarshal(b, &plain) == nil {
			text = plain
		}

		q.Set(v.Type().Field(i).Tag.Get("json"), text)
	}

	return q
}
