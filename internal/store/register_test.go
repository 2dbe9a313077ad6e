package store

import (
	"testing"

	"flexd/internal/flex"
)

// TestRegistered_Full shows that what is remembered of registers stays bounded.
func TestRegistered_Full(t *testing.T) {
	var r registered
	at := registerVersion{1, 1}

	for i := range 10 * registeredMax / 1000 {
		r.put(registerKey{flex.OrgID{1}, i}, at, i, 1000)
		if r.rows > registeredMax || len(r.entries) > registeredMax/1000 {
			t.Fatalf("%d rows in %d pages", r.rows, len(r.entries))
		}
		if v, ok := r.get(registerKey{flex.OrgID{1}, i}, at); !ok || v != i {
			t.Errorf("page %d is not there", i)
		}

		if _, ok := r.get(registerKey{flex.OrgID{2}, i}, at); ok {
			t.Errorf("page %d is another organisation's too", i)
		}
		if _, ok := r.get(registerKey{flex.OrgID{1}, i}, registerVersion{1, 2}); ok {
			t.Errorf("page %d is of another version too", i)
		}
	}

	r.put(registerKey{flex.OrgID{1}, "whole"}, at, 0, registeredMax)
	r.put(registerKey{flex.OrgID{1}, "more"}, at, 0, registeredMax+1)
	if _, ok := r.get(registerKey{flex.OrgID{1}, "more"}, at); ok || r.rows != 0 {
		t.Errorf("a page of more than all is kept; %d rows", r.rows)
	}
}
