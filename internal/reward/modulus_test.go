package reward_test

import (
	"errors"
	"strings"
	"testing"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// Without a table nothing changes; with one an account that fails is refused with a fault of
// its field, one that passes or is not known is linked, and a wrong table is not kept.
func TestLinkAccount_Modulus(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		link := func(sortCode, number string) error {
			t.Helper()
			a, err := reward.ReadBankAccount("Ann Other", sortCode, number)
			if err != nil {
				t.Fatal(err)
			}
			return y.service.LinkAccount(t.Context(), y.visit(t, reward.LinkOptions{}), a)
		}

		state, err := y.service.ModulusState(t.Context())
		if err != nil || !strings.HasPrefix(state.String(), "no table") || link("089999", "66374959") != nil {
			t.Errorf("without a table: %s %v", state, err)
		}

		const weights = "089000 089999 MOD10    0    0    0    0    0    0    7    1    3    7    1    3    7    1\r\n"
		for name, files := range map[string][]string{"substitutions alone": {"938173 938017\n"}, "a wrong one": {weights, "938173 93801\n"}} {
			if _, err := y.service.ImportModulus(t.Context(), files); flex.KindOf(err) != flex.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if state, err := y.service.ModulusState(t.Context()); err != nil || !state.Weights.IsZero() {
			t.Errorf("kept: %s %v", state, err)
		}

		if state, err := y.service.ImportModulus(t.Context(), []string{weights}); err != nil || state.Weights != y.now || !state.Substitutes.IsZero() {
			t.Errorf("%s %v", state, err)
		}
		if state, err := y.service.ImportModulus(t.Context(), []string{"938173 938017\n"}); err != nil || state.Weights != y.now || state.Substitutes != y.now {
			t.Errorf("%s %v", state, err)
		}
		err = link("08-99-99", "66374950")
		e, ok := errors.AsType[*flex.Error](err)
		if !ok || e.Kind != flex.Invalid || len(e.Faults) != 1 || e.Faults[0].Loc[1] != "account_number" || !strings.Contains(e.Faults[0].Msg, "does not belong to this sort code") {
			t.Errorf("an account that fails: %v", err)
		}

		for _, number := range []string{"66374959", "66374958"} { // the one linked before, which fails, changes nothing
			if err := link("089999", number); err != nil {
				t.Errorf("%s: %v", number, err)
			}
		}
		if err := link("200000", "11111111"); err != nil {
			t.Errorf("a sort code that the table has not: %v", err)
		}

		for number, want := range map[string]bankfile.ModulusVerdict{"66374958": bankfile.ModulusPassed, "66374959": bankfile.ModulusFailed} {
			if got, err := y.service.CheckModulus(t.Context(), "08-99-99", number); err != nil || got != want {
				t.Errorf("%s: %s %v", number, got, err)
			}
		}
	})
}
