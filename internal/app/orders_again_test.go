package app_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store/storetest"
)

// loseReport has the first transaction that changes an order lose to another at its end, on
// PostgreSQL, where it is run again.
func loseReport(seed *storetest.Seed) {
	seed.Exec(`CREATE SEQUENCE ending`)
	seed.Exec(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('ending') = 1 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '40P01'; END IF;
		RETURN NULL;
	END $$`)
	seed.Exec(`CREATE CONSTRAINT TRIGGER lose AFTER UPDATE ON adr_order DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()`)
}

// TestOrders_ReportedAgain has the report of an order that brought nothing be made by a
// transaction that is run again: it is recorded by that run, and not by the next job.
func TestOrders_ReportedAgain(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		d := newDispatcher(t, url)
		none := flex.ADRObjectID{}
		program := d.put(flex.ADRProgram, none, `{"programName":"peak"}`)
		d.put(flex.ADREvent, none, event(program, "18:00", 5, less5))

		b := flex.ADRBinding{Program: program, Service: "dno"}
		if err := second(d.adr.Bind(t.Context(), d.org, &b, true)); err != nil {
			t.Fatal(err)
		}
		d.holds("bound", "18:00-19:00 -5 sent")

		if d.db.Engine() == "postgres" {
			loseReport(storetest.At(t, d.db, url))
		}

		d.now = time.Date(2026, 1, 15, 19, 0, 0, 0, time.UTC)
		if _, err := d.adr.ReportOrders(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.unmet(1)
	})
}
