package access

import (
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// Passkeys that are made at once are counted one after the other: there are never more than allowed.
func TestKeepPasskey_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := &Service{DB: storetest.Open(t, url, store.Options{Now: time.Now})}
		if _, err := s.AddOperator(t.Context(), "ada", "", Admin); err != nil {
			t.Fatal(err)
		}

		o, _, err := s.operatorNamed(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}

		var begun sync.WaitGroup
		for i := range 2 * PasskeysMax {
			begun.Go(func() {
				id := []byte{byte(i)}
				err := s.keepPasskey(t.Context(), store.Passkey{ID: id, Operator: o.ID, Name: "key", PublicKey: id})
				if err != nil && flex.KindOf(err) != flex.Conflict {
					t.Errorf("passkey %d: %v", i, err)
				}
			})
		}
		begun.Wait()

		keys, err := s.PasskeysOf(t.Context(), o.ID)
		if err != nil || len(keys) != PasskeysMax {
			t.Errorf("%d passkeys, want %d (%v)", len(keys), PasskeysMax, err)
		}
	})
}
