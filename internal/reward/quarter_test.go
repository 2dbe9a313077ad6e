package reward_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A quarter of a year over a clock change: a car is plugged in most nights and steered, its
// readings come late, with holes that are filled, and corrected; prices are revised; the user
// withdraws now and then. In the end the books agree with a count of our own, every event is
// settled once and finally, settling the quarter again says the same, and verify, which ends
// every test, finds nothing.
func TestQuarter(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.set(t, "credit_pence_per_kwh=1.5", "user_share=0.25", "min_withdrawal_pence=50")
		y.exec(t, `UPDATE asset SET power_w = 7400`)
		q := quarter{fixture: y, t: t, rand: rand.New(rand.NewPCG(7, 11)), metered: map[flex.Period]flex.WattHours{}}
		first := flex.Day{Year: 2026, Month: 2, Dom: 1}

		// On PostgreSQL, which takes longer, the three weeks about the clock change.
		q.nights = storetest.OneOf(url, nights, min(nights, 21))
		skipped := storetest.OneOf(url, firstNight, 45)
		for n := range q.nights {
			q.night(first.Add(skipped + n))
			q.rounds()
		}
		y.now = y.now.AddDate(0, 3, 0) // long enough for all to be final
		q.rounds()
		q.check()
	})
}

type quarter struct {
	*fixture
	t       *testing.T
	nights  int
	rand    *rand.Rand
	metered map[flex.Period]flex.WattHours // what was sent last
	spans   []flex.Span                    // of the sessions
	paid    flex.Pence
}

func (q *quarter) rounds() {
	q.round(q.t)
	q.fixture.events(q.t)
}

// night plugs the car in, steers it, tells its readings, and sometimes withdraws.
func (q *quarter) night(d flex.Day) {
	q.now = d.Start().Add(13 * time.Hour)
	q.prices(q.t, flex.Span{From: d.Start().Add(12 * time.Hour), To: d.Start().Add(36 * time.Hour)}, float64(20+q.rand.IntN(300)))
	if q.rand.IntN(5) == 0 { // at home only in spirit: an ordinary day for the baseline
		q.tell(flex.Span{From: d.Start().Add(17 * time.Hour), To: d.Start().Add(31 * time.Hour)}, nil)
		return
	}
	in := d.Start().Add(18*time.Hour + time.Duration(q.rand.IntN(7200))*time.Second).Truncate(time.Second)
	ready := d.Start().Add(31 * time.Hour)
	pause := flex.Span{From: in, To: in}
	if q.rand.IntN(4) == 0 { // a nightly event would leave no day to compare with
		pause.To = in.Add(time.Duration(1+q.rand.IntN(3)) * time.Hour)
	}

	q.now = in
	q.write(q.t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, q.asset)
		if err != nil {
			return err
		}

		if err := tx.OpenSession(ctx, &c, 0); err != nil {
			return err
		}
		s := store.Schedule{Cause: store.CausePlugIn, From: store.PlanInputs{CountFrom: in, ReadyBy: ready, Need: 20_000, Power: 7400, Mode: flex.Minimise}}
		if !pause.Empty() {
			s.Steps = append(s.Steps, flex.Step{Span: pause})
		}
		s.Steps = append(s.Steps, flex.Step{Span: flex.Span{From: pause.To, To: ready}, Limit: flex.NoLimit})
		return tx.AddSchedule(ctx, &c.Session, &s)
	})

	q.exec(q.t, `INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		SELECT s.org_id, s.event_id, 'schedule', 'schedule', s.asset_id, s.generation, 0, 'accepted', 1, 0, 0, 200, '', '' FROM schedule s
		WHERE NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = s.event_id)`)
	out := ready.Add(time.Duration(q.rand.IntN(7200)) * time.Second)
	q.now = out
	q.write(q.t, func(ctx context.Context, tx *store.Tx) error {
		c, err := tx.PlanningState(ctx, q.asset)
		if err != nil {
			return err
		}
		return tx.CloseSession(ctx, &c.Session)
	})

	q.spans = append(q.spans, flex.Span{From: in, To: out})
	q.now = flex.PeriodAt(out).End().Add(2 * time.Minute)
	q.tell(flex.Span{From: in, To: out}, &pause)
	if q.rand.IntN(10) == 0 {
		q.withdraw()
	}
}

// tell reports half-hours in parts: first with holes, then what was missing, then corrections.
func (q *quarter) tell(span flex.Span, pause *flex.Span) {
	var missing []flex.Period
	var rs []flex.Reading
	put := func(p flex.Period, e flex.WattHours) {
		q.metered[p] = e
		rs = append(rs, flex.Reading{AssetID: q.asset, Span: p.Span(), Label: flex.ChargerEnergy, Value: flex.Micro(e * 1000)})
	}
	flush := func() {
		q.write(q.t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
		rs = nil
	}

	for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
		e := flex.WattHours(q.rand.IntN(3700))
		if pause != nil && !pause.Meet(p.Span()).Empty() {
			e = flex.WattHours(q.rand.IntN(50))
		}
		switch q.rand.IntN(12) {
		case 0:
			missing = append(missing, p)
		default:
			put(p, e)
		}
	}

	flush()
	if q.rand.IntN(3) == 0 {
		q.rounds()
	}
	if len(missing) > 0 {
		q.now = q.now.Add(time.Duration(q.rand.IntN(20)) * time.Minute)
		for _, p := range missing {
			put(p, flex.WattHours(q.rand.IntN(3700)))
		}
		flush()
	}

	if q.rand.IntN(3) == 0 {
		q.rounds()
		q.now = q.now.Add(time.Minute)
		put(flex.PeriodAt(span.From).Add(q.rand.IntN(4)), flex.WattHours(q.rand.IntN(3700)))
		flush()
	}
}

// withdraw takes all out, and the payment goes well or not.
func (q *quarter) withdraw() {
	q.rounds()
	v := q.visit(q.t, reward.LinkOptions{})
	q.link(q.t, v)
	balance := q.balance(q.t)
	w, err := q.service.Withdraw(q.t.Context(), v, balance, q.form(q.t))
	if err != nil {
		if balance >= 50 {
			q.t.Errorf("withdraw %s: %v", balance, err)
		}
		return
	}
	way := [][]ledger.PaymentStatus{
		{ledger.Rejected},
		{ledger.Approved, ledger.Cancelled},
		{ledger.Approved, ledger.Processing, ledger.Failed},
		{ledger.Approved, ledger.Processing, ledger.Posted, ledger.Returned},
		{ledger.Approved, ledger.Processing, ledger.Posted},
	}[q.rand.IntN(5)]

	for _, to := range way {
		if err := q.step(w, to); err != nil {
			q.t.Fatal(err)
		}
	}
	if way[len(way)-1] == ledger.Posted {
		q.paid += balance
	}
}

// step takes the withdrawal on: by an operator's decision, an export or a bank's result.
func (q *quarter) step(w store.Withdrawal, to ledger.PaymentStatus) (err error) {
	switch to {
	case ledger.Processing:
		_, err = q.service.Export(q.t.Context(), q.org, "operator", reward.ExportOptions{})
	case ledger.Posted, ledger.Failed, ledger.Returned:
		_, err = q.service.Import(q.t.Context(), q.org, "operator", []reward.PaymentResult{{ID: w.ID, Status: to}})
	default:
		_, err = q.service.Decide(q.t.Context(), q.org, w.ID, to, "operator", "")
	}
	return err
}

// check counts the credits of the sessions by itself and compares.
func (q *quarter) check() {
	t, ctx := q.t, q.t.Context()
	var want flex.Pence
	for _, s := range q.spans {
		var e flex.WattHours
		for p := flex.PeriodAt(s.From); p.Start().Before(s.To); p = p.Add(1) {
			if p.Span().Meet(s).Len() >= reward.EdgeMin {
				e += q.metered[p]
			}
		}
		want += settle.RateOf(1.5).Credit(e, settle.HalfAway)
	}

	events, _, err := q.service.FlexEvents(ctx, q.org, q.site)
	if err != nil || len(events) < 10 {
		t.Fatalf("%d flex events, %v", len(events), err)
	}

	settled := 0
	for _, e := range events {
		if e.Final == nil || e.Missing > 0 {
			t.Errorf("event of %s is not final: %+v", e.Day, e)
			continue
		}
		var r *settle.Result
		err := q.db.Read(ctx, q.org, func(tx *store.Tx) error {
			ts, _, err := tx.TransactionsWithin(ctx, q.site, flex.Span{From: e.From, To: q.now.Add(time.Second)})
			if err != nil {
				return err
			}

			for _, tr := range ts {
				if tr.Cause.FlexEvent == e.ID {
					want += tr.Amount
					s, err := tx.SettlementBy(ctx, e.ID, tr.Cause.Run)
					if err != nil {
						return err
					}
					r = s.Result
				}
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if r != nil && r.Credit > 0 {
			settled++
		}
	}

	if settled == 0 && q.nights > 60 {
		t.Error("no event earned anything: the quarter tries nothing")
	}
	info, err := q.service.Info(ctx, q.org, q.site)
	if err != nil {
		t.Fatal(err)
	}
	if info.Earned != want || info.Balance != want-q.paid {
		t.Errorf("earned %d with %d left, want %d with %d", info.Earned, info.Balance, want, want-q.paid)
	}
	q.again()
}

// again settles the quarter twice and compares the runs byte by byte.
func (q *quarter) again() {
	t, ctx := q.t, q.t.Context()
	var runs [2]store.Run
	var results [2][]byte
	for i := range runs {
		run, err := q.service.Resettle(ctx, q.org, reward.Resettlement{From: flex.DayAt(q.spans[0].From), To: flex.DayAt(q.now)})
		if err != nil {
			t.Fatal(err)
		}

		runs[i] = run
		err = q.db.Read(ctx, q.org, func(tx *store.Tx) error {
			all, err := tx.SettlementsIn(ctx, run.ID)
			if err != nil {
				return err
			}
			results[i], err = json.Marshal(all)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	if runs[0].Hash != runs[1].Hash || !bytes.Equal(results[0], results[1]) || runs[0].Events < 10 {
		t.Errorf("settled twice: %d events of %s, then %d of %s", runs[0].Events, runs[0].Hash, runs[1].Events, runs[1].Hash)
	}
	fmt.Fprintln(t.Output(), runs[0].Events, "events, inputs", runs[0].Hash)
}
