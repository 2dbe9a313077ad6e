package access

import (
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// loggedIn adds an operator, and logs them in by their password.
func loggedIn(t *testing.T, s *Service) Operator {
	t.Helper()
	password, err := s.AddOperator(t.Context(), "ada", "", Admin)
	if err != nil {
		t.Fatal(err)
	}

	login, err := s.LoginOperator(t.Context(), "ada", password, "a")
	if err != nil {
		t.Fatal(err)
	}

	who, err := s.IdentifyOperator(t.Context(), login.Token)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// Passkeys that are made at once are counted one after the other: there are never more than allowed.
func TestKeepPasskey_AtOnce(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := &Service{DB: storetest.Open(t, url, store.Options{Now: time.Now})}
		who := loggedIn(t, s)

		var begun sync.WaitGroup
		for i := range 2 * PasskeysMax {
			begun.Go(func() {
				id := []byte{byte(i)}
				err := s.keepPasskey(
					t.Context(),
					who,
					store.Passkey{ID: id, Operator: who.ID, Name: "key", PublicKey: id},
				)
				if err != nil && flex.KindOf(err) != flex.Conflict {
					t.Errorf("passkey %d: %v", i, err)
				}
			})
		}
		begun.Wait()

		keys, err := s.PasskeysOf(t.Context(), who.ID)
		if err != nil || len(keys) != PasskeysMax {
			t.Errorf("%d passkeys, want %d (%v)", len(keys), PasskeysMax, err)
		}
	})
}
