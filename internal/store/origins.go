package store

import (
	"database/sql"
	"slices"
	"strings"
)

// threePhases is a word of the origins of a schedule whose profile names three phases. It comes after the three words that say where its
// intent, power and tariff came from, so that what reads those, or the words at the end, need not know it.
const threePhases = "3-phase"

// writeOrigins is what is stored of the origins of a schedule, and of the phases that its profile names: a retry has
// the same bytes, also where the asset has other phases by then or was deleted.
func writeOrigins(e *PlanInputs) string {
	if e.ProfilePhases != 3 {
		return e.Origins
	}

	words := strings.SplitN(e.Origins, " ", 4)

	return strings.Join(
		slices.Insert(
			words,
			min(3, len(words)),
			threePhases,
		),
		" ",
	)
}

// originsText reads what writeOrigins wrote; nothing of null.
type originsText struct{ of *PlanInputs }

// Scan reads a column.
func (t originsText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil {
		return err
	}

	before, after, three := strings.Cut(text.String, " "+threePhases)
	t.of.Origins, t.of.ProfilePhases = before+after, 0
	if three {
		t.of.ProfilePhases = 3
	}

	return nil
}
