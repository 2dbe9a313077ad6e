package delivery_test

import (
	"context"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// loseFirst has the first transaction that sends a dispatch lose to another at its end, on
// PostgreSQL, where it is run again.
func (h *fixture) loseFirst() {
	h.Helper()
	h.Exec(`CREATE SEQUENCE ending`)
	h.Exec(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('ending') = 1 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '40P01'; END IF;
		RETURN NULL;
	END $$`)
	h.Exec(`CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON dispatch DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`)
}

// TestDispatch_RunAgain has a dispatch whose transaction is run again begin without the
// instruction of the first run, which is undone.
func TestDispatch_RunAgain(t *testing.T) {
	each(t, func(h *fixture) {
		runs := 1
		if h.db.Engine() == "postgres" {
			h.loseFirst()
			runs = 2
		}

		h.dispatchEndpoint(true)
		var given []flex.InstructionID
		h.service.NoteDispatch = func(_ context.Context, _ *store.Tx, order *store.Dispatch) error {
			given = append(given, order.Instruction)
			order.Instruction = flex.InstructionID{byte(len(given))}
			return nil
		}

		from := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
		ds, err := h.service.Dispatch(context.Background(), h.Org, store.Dispatch{
			Market: "dno",
			Span:   flex.Span{From: from, To: from.Add(time.Hour)},
			Assets: []store.DispatchedAsset{{ID: h.chargers(1)[0], Power: -2000}},
		})
		if err != nil || len(ds) != 1 || ds[0].Instruction != (flex.InstructionID{byte(runs)}) {
			h.Fatalf("%+v, %v", ds, err)
		}

		if len(given) != runs || !given[runs-1].IsZero() {
			h.Errorf("the runs began with %v, want %d without an instruction", given, runs)
		}
	})
}
