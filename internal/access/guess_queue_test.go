package access

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const ownPassword = "correct horse battery"

func withOperators(t *testing.T, url string, names ...string) *Service {
	t.Helper()
	d := &Service{DB: storetest.Open(t, url, store.Options{})}
	for _, name := range names {
		if _, err := d.AddOperator(t.Context(), name, ownPassword, Admin); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// Operators do not wait behind guesses at organisations' passwords, an address takes a part of
// the line alone, and whoever was let in before passes the line.
func TestLoginOperator_Queue(t *testing.T) {
	d := withOperators(t, storetest.SQLite(t), "ada", "bob")
	for i := range waitersMax {
		address := fmt.Sprint("bad", i/waitersOfAddress)
		credentialGuesses.enter(address)
		defer credentialGuesses.leave(address)
	}

	if _, err := d.LoginOperator(t.Context(), "ada", ownPassword, "a"); err != nil {
		t.Errorf("while guesses at organisations wait: %v", err)
	}

	for range 2 * waitersOfAddress {
		if operatorGuesses.enter("bad") {
			defer operatorGuesses.leave("bad")
		}
	}

	if _, err := d.LoginOperator(t.Context(), "bob", ownPassword, "bad"); !errors.Is(err, errBusy) {
		t.Errorf("from the address of the guessers: %v", err)
	}

	if _, err := d.LoginOperator(t.Context(), "bob", ownPassword, "b"); err != nil {
		t.Errorf("while guesses of another address wait: %v", err)
	}

	for i := range waitersMax {
		address := fmt.Sprint("many", i)
		if operatorGuesses.enter(address) {
			defer operatorGuesses.leave(address)
		}
	}

	for range 20 {
		if _, err := d.LoginOperator(t.Context(), "ada", ownPassword, "c"); err != nil {
			t.Fatalf("an operator who was let in before, while the line is full: %v", err)
		}
	}

	if _, err := d.LoginOperator(t.Context(), "ada", "a guess", "c"); !errors.Is(err, errBusy) {
		t.Errorf("a guess, while the line is full: %v", err)
	}
}

// Names and passwords that can be nobody's are refused, leave nothing behind, and passwords are
// counted as guesses.
func TestLogin_TooLong(t *testing.T) {
	d := withOperators(t, storetest.SQLite(t), "ada")
	long := strings.Repeat("n", MaxUsername+1)
	for range 3 * widePace.burst {
		if _, err := d.Login(t.Context(), long, "x", "a"); !errors.Is(err, errLogin) {
			t.Fatalf("a long name: %v", err)
		}
	}

	if len(d.brake.due) > 0 {
		t.Errorf("long names leave %d keys", len(d.brake.due))
	}

	refused := 0
	for range 3 * narrowPace.burst {
		_, err := d.LoginOperator(t.Context(), "ada", flex.Secret(strings.Repeat("p", MaxSecret+1)), "b")
		if flex.KindOf(err) == flex.TooMany {
			refused++
		}
	}

	if refused == 0 {
		t.Error("long passwords are not counted")
	}

	if _, err := d.LoginOperator(t.Context(), "ada", ownPassword, "b"); err != nil {
		t.Errorf("ada from there, with her password: %v", err)
	}
}

// A failed login is in the audit log whether the name is an operator's or nobody's, so that
// both cost the same; a name that is nobody's is not written down.
func TestLoginOperator_FailuresAreLogged(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := withOperators(t, url, "ada")
		for _, name := range []string{"ada", "nobody", "my secret password"} {
			if _, err := d.LoginOperator(t.Context(), name, "a wrong password", "192.0.2.1"); flex.KindOf(err) != flex.Unauthorized {
				t.Errorf("%s: %v", name, err)
			}
		}

		err := d.DB.ReadAll(t.Context(), func(all *store.All) error {
			acts, err := all.Acts(t.Context(), store.ActFilter{Limit: 10})
			if len(acts) != 3 || acts[0].Who != UnknownOperator || acts[1].Who != UnknownOperator || acts[2].Who != "ada" {
				t.Errorf("the audit log has %+v", acts)
			}

			return err
		})

		if err != nil {
			t.Fatal(err)
		}
	})
}

// A wrong secret is derived once for a name that has a made one before its own, as it is for a name that is nobody's: the time does
// not tell them apart.
func TestToCheck(t *testing.T) {
	first, firstKept := makeSecret()
	second, secondKept := makeSecret()
	chosen := hashChosen(ownPassword)

	for what, c := range map[string]struct {
		secret flex.Secret
		kept   [][]byte
		want   [][]byte
	}{
		"nobody's":               {"a guess", nil, [][]byte{nil}},
		"a guess at two made":    {"a guess", [][]byte{secondKept, firstKept}, [][]byte{nil}},
		"the made one":           {second, [][]byte{secondKept, firstKept}, [][]byte{secondKept}},
		"the one before":         {first, [][]byte{secondKept, firstKept}, [][]byte{firstKept}},
		"a guess at both kinds":  {"a guess", [][]byte{chosen, firstKept}, [][]byte{chosen}},
		"the made one of both":   {first, [][]byte{chosen, firstKept}, [][]byte{firstKept}},
		"the chosen one of both": {ownPassword, [][]byte{chosen, firstKept}, [][]byte{chosen}},
	} {
		if got := toCheck(c.secret, c.kept); !slices.EqualFunc(got, c.want, bytes.Equal) {
			t.Errorf("%s is checked against %d of %d", what, len(got), len(c.want))
		}
	}
}
