package reward

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// sessionsMax is the number of sessions settled in one transaction.
const sessionsMax = 25

// dueMax is the number of sessions that one job takes on of an organisation.
const dueMax = 500

// SettleSessions settles what is due.
func (d *Service) SettleSessions(ctx context.Context) (worker.Report, error) {
	var orgs []flex.OrgID
	err := d.DB.ReadAll(ctx, func(all *store.All) (err error) {
		orgs, err = all.OrgsWithSessionsDue(ctx)
		return err
	})

	var report worker.Report
	for _, org := range orgs {
		if err == nil {
			err = d.settleSessionsOf(ctx, org, &report)
		}
	}

	report.More = report.More && report.Did > 0
	return report, err
}

// SettleSessionsOf is SettleSessions for one organisation.
func (d *Service) SettleSessionsOf(ctx context.Context, org flex.OrgID) (report worker.Report, err error) {
	err = d.settleSessionsOf(ctx, org, &report)
	return report, err
}

// settleSessionsOf settles what is due of one organisation.
func (d *Service) settleSessionsOf(ctx context.Context, org flex.OrgID, report *worker.Report) error {
	var due []flex.SessionID
	err := d.DB.Read(ctx, org, func(tx *store.Tx) (err error) {
		due, err = tx.DueSessionSettlements(ctx, dueMax)
		return err
	})

	report.More = report.More || len(due) == dueMax
	for chunk := range slices.Chunk(due, sessionsMax) {
		if err == nil {
			err = d.settleSessions(ctx, org, chunk, report)
		}
	}

	return err
}

func (d *Service) settleSessions(ctx context.Context, org flex.OrgID, due []flex.SessionID, report *worker.Report) error {
	did := 0
	err := d.DB.Write(ctx, org, func(tx *store.Tx) error {
		did = 0

		terms, err := historyOf(ctx, tx)
		if err != nil {
			return err
		}

		rs, err := tx.SessionSettlements(ctx, due)
		if err != nil {
			return err
		}

		for _, r := range rs {
			changed, err := settleSession(ctx, tx, r, terms.on(flex.DayAt(r.From)))
			if err != nil {
				return fmt.Errorf("settle session %s: %w", r.SessionID, err)
			}

			if changed {
				did++
			}
		}

		return nil
	})

	report.Did += did
	return err
}

// settleSession credits a session as far as its readings are there, and reports whether that moved
// it on.
func settleSession(ctx context.Context, tx *store.Tx, r store.SessionSettlement, t *terms) (changed bool, err error) {
	was := r

	energy, known, missing, err := charged(ctx, tx, r)
	if err != nil {
		return false, err
	}

	r.WaitsAt = missing
	since := tx.Now().Sub(r.To)
	ready := missing.IsZero() || known > 0 && since >= PartialAfter || since >= EmptyAfter
	if ready && r.Consented && (t.credit != 0 || r.Posted > 0) {
		if r.Posted == 0 {
			r.Rate = int64(t.credit)
		}

		if err := creditSession(ctx, tx, &r, t, energy); err != nil {
			return false, err
		}
	}

	lookAt := nextLook(r, known, tx.Now())

	came := was.LookAt.After(tx.Now()) // it is looked at because a reading came that it waited for
	if came && !missing.IsZero() && missing.Equal(was.WaitsAt) && lookAt.After(tx.Now().Add(recheck)) {
		r.WaitsAt, lookAt = time.Time{}, tx.Now().Add(recheck) // what came was not enough: look again, but not at once
	}

	mine, err := tx.SaveSessionSettlement(ctx, r, lookAt)
	if err != nil {
		return false, err
	}

	if !mine { // another process settled it in between, and the books know
		return false, fmt.Errorf("session %s was settled elsewhere at the same time", r.SessionID)
	}

	return r.Posted != was.Posted || lookAt.IsZero() || !r.WaitsAt.Equal(was.WaitsAt), nil
}

// nextLook is when to look at a session again, whether or not the reading comes that it
// waits for: after half an hour; after a day if there was none; then once a day, for consent;
// never once it has all its readings or the last deadline is over.
func nextLook(r store.SessionSettlement, known int, now time.Time) time.Time {
	last := r.To.Add(CloseAfter)
	if r.WaitsAt.IsZero() && r.Consented || !last.After(now) {
		return time.Time{}
	}

	at := r.To.Add(PartialAfter)
	if !at.After(now) && known == 0 {
		at = r.To.Add(EmptyAfter)
	}

	if !at.After(now) {
		at = now.Add(EmptyAfter)
	}

	if at.After(last) {
		return last
	}

	return at
}

// charged returns the energy of the half-hours that belong to the session, how many of them
// are known, and the first that is not.
func charged(ctx context.Context, tx *store.Tx, r store.SessionSettlement) (energy flex.WattHours, known int, missing time.Time, err error) {
	periods, days, err := sessionReadings(ctx, tx, r, time.Time{})
	for _, p := range periods {
		switch e, read := energyIn(days, p); {
		case read:
			energy += e
			known++
		case missing.IsZero():
			missing = p.Start()
		}
	}

	return energy, known, missing, err
}

// EdgeMin is how long a session must run in its first and its last half-hour for them to be
// its own, unless it has no others.
const EdgeMin = time.Minute

// halfHours returns the first and the last half-hour of a session.
func halfHours(s flex.Span) (first, last flex.Period) {
	begin := flex.PeriodAt(s.From)
	first, last = begin, begin

	if s.To.After(s.From) {
		last = flex.PeriodAt(s.To.Add(-1))
	}

	if first.End().Sub(s.From) < EdgeMin {
		first = first.Add(1)
	}

	if s.To.Sub(last.Start()) < EdgeMin {
		last = last.Add(-1)
	}

	if last.Before(first) {
		return begin, begin
	}

	return first, last
}

// sessionReadings returns the half-hours that belong to a session and what was metered on
// their days, as it was known at an instant, or now. A half-hour belongs to the first session
// in it.
func sessionReadings(ctx context.Context, tx *store.Tx, r store.SessionSettlement, knownAt time.Time) (periods []flex.Period, days []settle.MeteredDay, err error) {
	first, last := halfHours(r.Span)
	if !r.Before.To.IsZero() {
		if _, taken := halfHours(r.Before); !taken.Before(first) {
			first = taken.Add(1)
		}
	}

	q := store.ReadingQuery{Assets: []flex.AssetID{r.AssetID}, Labels: []flex.Label{flex.ChargerEnergy, flex.ChargerRegister}, KnownAt: knownAt}
	for p := first; !last.Before(p); p = p.Add(1) {
		periods = append(periods, p)
		if d := flex.DayAt(p.Start()); len(q.Days) == 0 || q.Days[len(q.Days)-1] != d {
			q.Days = append(q.Days, d)
		}
	}

	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, nil, err
	}

	limits, err := sessionLimits(ctx, tx, r, knownAt)
	if err != nil {
		return nil, nil, err
	}

	days, _ = settle.HalfHoursWithin(settle.Asset, rs, limits)
	return periods, days, nil
}

// sessionLimits returns what the session's device can have taken in a half-hour.
func sessionLimits(ctx context.Context, tx *store.Tx, r store.SessionSettlement, knownAt time.Time) (settle.Rating, error) {
	supply, err := tx.SupplyOf(ctx, []flex.SiteID{r.SiteID}, knownAt)
	if err != nil {
		return settle.Rating{}, err
	}

	powers, err := tx.PowersOf(ctx, []flex.AssetID{r.AssetID}, knownAt)
	power, changed := powers[r.AssetID]
	if !changed {
		power = flex.Always(r.Power)
	}

	return settle.Rating{Supply: supply[r.SiteID], Power: power}, err
}

func energyIn(days []settle.MeteredDay, p flex.Period) (flex.WattHours, bool) {
	day, n := p.SettlementPeriod()
	for i := range days {
		if days[i].Day == day {
			return days[i].At(n)
		}
	}
	return 0, false
}

// creditSession posts what the session's energy earns, or what it earns more or less than
// was posted before. Of a session that was credited before, it says only what has changed.
func creditSession(ctx context.Context, tx *store.Tx, r *store.SessionSettlement, t *terms, energy flex.WattHours) error {
	cause := ledger.Cause{Session: r.SessionID}
	was, err := tx.PostingsAbout(ctx, cause)
	if err != nil {
		return err
	}

	rate, more := r.Rate, energy-r.PostedWh
	tr := store.Transaction{Rate: &rate, Creditable: &more}
	tr.SiteID, tr.Time = r.SiteID, r.Span
	tr.Cause, tr.Settled = cause, flex.DayAt(r.To)
	tr.Postings = ledger.Revised(was, ledger.Credited(settle.Rate(rate).Credit(energy, t.settle.Rounding)))
	tr.Kind, tr.Key = ledger.FlexEvent, fmt.Sprintf("session:%s", r.SessionID)

	if r.Type == flex.ElectricVehicle {
		tr.Vehicle = r.Model
	}

	if r.Posted > 0 {
		if len(tr.Postings) == 0 && more == 0 {
			return nil
		}
		tr.Key = fmt.Sprintf("session:%s:%d", r.SessionID, r.Posted)
		tr.Kind = changeKind(&tr, more)
	}

	posted, err := tx.Post(ctx, &tr)
	if posted {
		r.Posted++
		r.PostedWh = energy
	}

	return err
}

// changeKind is the kind of a transaction that says what changed: a correction if it takes
// something away.
func changeKind(tr *store.Transaction, more flex.WattHours) ledger.Kind {
	if tr.Credit() < 0 || tr.Credit() == 0 && more < 0 {
		return ledger.Correction
	}
	return ledger.FlexPeriodTopUp
}
