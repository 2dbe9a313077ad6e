package store_test

import (
	"testing"

	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// No law finds anything in a store without records: so those that are only of empty tables
// need not be asked.
func TestVerify_EmptyTables(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		findings, err := db.VerifyEmpty(t.Context())
		if err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}
