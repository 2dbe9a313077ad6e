package control

import (
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// evening is one car that charges from 17:00 on, and an instruction that has called nobody yet.
type evening struct {
	*testing.T
	*Service
	now  atomic.Int64 // in seconds
	org  flex.OrgID
	car  flex.AssetID
	sent flex.InstructionID
}

// openEvening has an instruction for less from half an hour on.
func openEvening(t *testing.T, url string) *evening {
	t.Helper()
	start := time.Date(2026, 1, 15, 17, 0, 0, 0, time.UTC)
	e := &evening{T: t}
	e.now.Store(start.Unix())
	db := storetest.Open(
		t,
		url,
		store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.Unix(e.now.Load(), 0) }},
	)
	seed := storetest.NewSeed(t, db, url)
	e.Service, e.org = &Service{DB: db}, seed.Org
	e.car = seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7400)

	p, err := e.SendInstruction(t.Context(), e.org, flex.Instruction{
		Span: flex.Span{From: start.Add(30 * time.Minute), To: start.Add(2 * time.Hour)}, Change: -5000, Service: "dno", Reason: "peak", Who: "Ann",
	})
	if err != nil || len(p.Assets) != 0 {
		t.Fatalf("%+v, %v", p, err)
	}

	e.sent = p.ID

	return e
}

// write runs a transaction.
func (e *evening) write(do func(*store.Tx) error) {
	e.Helper()
	if err := e.DB.Write(e.Context(), e.org, do); err != nil {
		e.Fatal(err)
	}
}

// asks sends an event of the car, which needs so many kWh.
func (e *evening) asks(kind Kind, kwh float64) {
	e.Helper()
	wall := flex.WallTime(7 * time.Hour)
	intent := &flex.Intent{Need: flex.FromKWh(kwh), ReadyByLocal: &wall, ReadyBy: time.Unix(e.now.Load(), 0), Mode: flex.Minimise}
	if err := e.Event(e.Context(), e.org, e.car, Event{Kind: kind, Intent: intent}); err != nil {
		e.Fatal(err)
	}
}

// called are who is called after an event of the car between the choice of whom to call and the call.
func (e *evening) called(between func()) (found []store.Called) {
	e.Helper()
	read := func(do func(*store.Tx) error) {
		e.Helper()
		if err := e.DB.Read(e.Context(), e.org, do); err != nil {
			e.Fatal(err)
		}
	}

	var in flex.Instruction
	read(func(tx *store.Tx) (err error) {
		in, err = tx.Instruction(e.Context(), e.sent)
		return err
	})

	c, err := e.correctionFrom(e.Context(), e.org, &in, time.Time{})
	if err != nil || c == nil || len(c.call) != 1 {
		e.Fatalf("%+v, %v", c, err)
	}

	e.now.Add(10)
	between()
	if _, err := e.applyCorrection(e.Context(), e.org, &in, c); err != nil {
		e.Fatal(err)
	}

	read(func(tx *store.Tx) (err error) {
		found, err = tx.CalledBy(e.Context(), e.sent)
		return err
	})

	return found
}

// TestInstruction_EventBetween has a car need more between the choice of whom to call and the call: it keeps the schedule of that event,
// and is not called until it is chosen again.
func TestInstruction_EventBetween(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		e := openEvening(t, url)
		e.asks(PlugIn, 22.2)
		if found := e.called(func() { e.asks(IntentUpdate, 29.6) }); len(found) != 0 {
			t.Errorf("%d are called that have another schedule", len(found))
		}
		if found := e.called(func() {}); len(found) != 1 {
			t.Errorf("%d are called, not 1", len(found))
		}
	})
}

// leavesOut reports whether the car's schedule in force leaves time out for an instruction.
func (e *evening) leavesOut() bool {
	e.Helper()
	var c store.PlanningState
	e.write(func(tx *store.Tx) (err error) {
		c, err = tx.PlanningState(e.Context(), e.car)
		return err
	})

	return len(c.Current.From.Closed) > 0
}

// TestRelease_EventBetween has a car need more after it was planned without an instruction that was stopped, and before that plan is in
// force, as an event may on PostgreSQL: it is planned once more, and leaves no time out.
func TestRelease_EventBetween(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		e := openEvening(t, url)
		e.asks(PlugIn, 22.2)
		if found := e.called(func() {}); len(found) != 1 {
			t.Fatalf("%d are called, not 1", len(found))
		}

		var next []store.Replacement
		e.write(func(tx *store.Tx) (err error) {
			if _, err := tx.StopInstruction(t.Context(), e.sent, "Bob"); err != nil {
				return err
			}
			next, err = e.planReleased(t.Context(), tx, []flex.AssetID{e.car})
			return err
		})

		e.now.Add(10)
		e.asks(IntentUpdate, 29.6)
		e.now.Add(10)

		var left []flex.AssetID
		e.write(func(tx *store.Tx) (err error) {
			left, err = e.replaceReleased(t.Context(), tx, next)
			return err
		})
		if len(left) != 1 || left[0] != e.car || !e.leavesOut() {
			t.Fatalf("%v have another schedule since", left)
		}

		e.write(func(tx *store.Tx) error { return e.releaseCars(t.Context(), tx, left) })
		if e.leavesOut() {
			t.Error("it leaves time out for an instruction that was stopped")
		}
	})
}
