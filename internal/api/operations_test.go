package api_test

import (
	"slices"
	"testing"

	"flexd/internal/operations"
	"flexd/internal/wire"
)

// TestExceptions_Kinds holds the interface's words against the service's.
func TestExceptions_Kinds(t *testing.T) {
	var kinds []string
	for _, k := range operations.Kinds {
		kinds = append(kinds, string(k))
	}

	if want := wire.Enum("ExceptionKind"); !slices.Equal(kinds, want) {
		t.Errorf("the service has %v, the interface %v", kinds, want)
	}
}

// TestExceptions lists what is wrong of the caller's organisation, and nothing of another's.
func TestExceptions(t *testing.T) {
	h := onSQLite(t)
	h.want("GET", "/operations/exceptions", "", 200, `{"exceptions":[]}`)
}
