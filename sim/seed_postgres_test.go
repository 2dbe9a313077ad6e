package sim

import (
	"slices"
	"testing"

	"flexd/internal/store/storetest"
)

// A history breaks no law on PostgreSQL, and without a kill its outcome is that on SQLite.
func TestRandomHomes_Postgres(t *testing.T) {
	history := DrawHistory(3, autumnDay, 2, 1)
	at := func(h []Happening) Outcome {
		o, err := PlayHistoryAt(t.Context(), storetest.Postgres(t), h)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range o.Broken {
			t.Error(b)
		}
		return o
	}

	kill := Happening{Kind: Kill, From: history[0].From, To: history[0].From, Share: 0.5}
	at([]Happening{history[0], kill})

	living := slices.DeleteFunc(slices.Clone(history), func(h Happening) bool { return h.Kind == Kill })
	if here, there := at(living), play(t, living); here.Hash != there.Hash {
		t.Errorf("%s on PostgreSQL and %s on SQLite", here.Hash, there.Hash)
	}
}
