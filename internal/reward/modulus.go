package reward

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// ModulusState says which modulus tables are there.
type ModulusState struct {
	Weights     time.Time // when they were imported; zero if they were not
	Substitutes time.Time
}

// modulusOf reads the tables. It returns false if there are none.
func modulusOf(tables map[string]store.ModulusTable) (m bankfile.Modulus, ok bool, err error) {
	weights, ok := tables[store.ModulusWeights]
	if !ok {
		return m, false, nil
	}

	m, err = bankfile.ReadModulus(
		weights.Content,
		tables[store.ModulusSubstitutes].Content,
	)

	return m, true, err
}

// ImportModulus keeps the files, each in the place of the one of its kind: what they are is
// seen by their first lines. All are read first; if one is wrong none is kept.
func (s *Service) ImportModulus(
	ctx context.Context,
	files []string,
) (ModulusState, error) {
	var state ModulusState
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		tables, err := all.ModulusTables(ctx)
		if err != nil {
			return err
		}

		var kinds []string
		for _, content := range files {
			kind := store.ModulusSubstitutes
			if bankfile.IsWeights(content) {
				kind = store.ModulusWeights
			}

			kinds = append(kinds, kind)
			tables[kind] = store.ModulusTable{
				Kind:       kind,
				Content:    content,
				ImportedAt: all.Now(),
			}
		}

		_, ok, err := modulusOf(tables)
		if err != nil {
			return err
		}
		if !ok {
			return flex.Fail(
				flex.Invalid,
				"the table of weights (valacdos.txt) is missing; give both files",
			)
		}

		for _, kind := range kinds {
			err := all.PutModulusTable(ctx, kind, tables[kind].Content)
			if err != nil {
				return err
			}
		}

		state = stateOf(tables)
		return nil
	})

	return state, err
}

func stateOf(tables map[string]store.ModulusTable) ModulusState {
	return ModulusState{
		tables[store.ModulusWeights].ImportedAt,
		tables[store.ModulusSubstitutes].ImportedAt,
	}
}

// ModulusState says which tables are there.
func (s *Service) ModulusState(ctx context.Context) (ModulusState, error) {
	var state ModulusState
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		tables, err := all.ModulusTables(ctx)
		state = stateOf(tables)
		return err
	})

	return state, err
}

// CheckModulus says whether a sort code and an account number belong together, as far as the
// tables know.
func (s *Service) CheckModulus(
	ctx context.Context,
	sortCode, number string,
) (bankfile.ModulusVerdict, error) {
	account, err := ReadBankAccount("A Name", sortCode, number)
	if err != nil {
		return "", err
	}

	v := bankfile.ModulusUnchecked
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		tables, err := all.ModulusTables(ctx)
		if err != nil {
			return err
		}

		m, ok, err := modulusOf(tables)
		if ok && err == nil {
			v = m.Check(account.SortCode.Reveal(), account.Number.Reveal())
		}

		return err
	})

	return v, err
}

// checkModulus refuses an account whose sort code and number do not belong together.
func checkModulus(ctx context.Context, tx *store.Tx, a BankAccount) error {
	tables, err := tx.ModulusTables(ctx)
	if err != nil {
		return err
	}

	m, ok, err := modulusOf(tables)
	if err != nil {
		return fmt.Errorf("the modulus tables: %w", err)
	}
	if !ok ||
		m.Check(
			a.SortCode.Reveal(),
			a.Number.Reveal(),
		) != bankfile.ModulusFailed {
		return nil
	}

	const wrong = "this account number does not belong to this sort code; check both, as your bank writes them"

	return &flex.Error{
		Kind:   flex.Invalid,
		Detail: wrong,
		Faults: []flex.Fault{{Loc: []string{"body", "account_number"}, Msg: wrong, Type: "value_error"}},
	}
}

// String says what is there.
func (s ModulusState) String() string {
	if s.Weights.IsZero() {
		return "no table: accounts are not checked"
	}

	var text strings.Builder
	fmt.Fprintf(&text, "weights of %s", s.Weights.UTC().Format(time.DateOnly))

	if s.Substitutes.IsZero() {
		text.WriteString(", no substitutions: sort codes of exception 5 are not checked")
	} else {
		fmt.Fprintf(
			&text,
			", substitutions of %s",
			s.Substitutes.UTC().Format(time.DateOnly),
		)
	}

	return text.String()
}
