package reward

import (
	"context"
	"fmt"
	"math"
	"time"

	"flexd/internal/engine/discharge"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// sessionsMax is the number of sessions settled in one transaction.
const sessionsMax = 25

var sessionQueue = store.Queue[flex.SessionID]{
	Kind:  store.PutOffSession,
	Batch: sessionsMax,
	Most:  dueMax,
	After: worker.PutOffFor,
	Due:   (*store.Tx).DueSessionSettlements,
	Do:    settleSessions,
	Item:  store.OneID[flex.SessionID],
}

// SettleSessions settles what is due.
func (s *Service) SettleSessions(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(
		ctx,
		s.DB.OrgsBy((*store.All).OrgsWithSessionsDue),
		s.SettleSessionsOf,
	)
}

// SettleSessionsOf is SettleSessions for one organisation. What cannot be settled is put off
// and delays nothing else.
func (s *Service) SettleSessionsOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	return sessionQueue.Run(ctx, s.DB, org)
}

// settleSessions settles sessions, and posts what that changes. It returns how many moved on.
func settleSessions(
	ctx context.Context,
	tx *store.Tx,
	due []flex.SessionID,
) (int, error) {
	// From here on, nobody can change the terms of a day that is settled on them.
	if err := tx.ShareBooks(ctx); err != nil {
		return 0, err
	}

	terms, err := historyOf(ctx, tx)
	if err != nil {
		return 0, err
	}

	sessions, err := tx.SessionSettlements(ctx, due)
	if err != nil {
		return 0, err
	}

	readings, err := tx.ReadingsEach(ctx, sessionQueries(sessions))
	if err != nil {
		return 0, err
	}

	var revisions []*ledger.Booked
	var done int
	for i, r := range sessions {
		if staysAsSettled(&r, tx.Now()) {
			r.LookAt, r.WaitsAt = time.Time{}, time.Time{}
			if err := saveSession(ctx, tx, &r); err != nil {
				return 0, err
			}
			continue
		}

		before := r.Progress
		t, err := settleSession(
			ctx,
			tx,
			&r,
			readings[i],
			terms.forDay(flex.DayAt(r.From)),
		)
		if err != nil {
			return 0, fmt.Errorf("settle session %s: %w", r.SessionID, err)
		}

		if t != nil {
			revisions = append(revisions, t)
		}

		if hasProgressed(before, r.Progress) {
			done++
		}
	}

	return done, postRevisions(ctx, tx, revisions)
}

// staysAsSettled reports whether a session ended, or began, so long ago that readings of it may be
// forgotten.
func staysAsSettled(r *store.SessionSettlement, now time.Time) bool {
	return pastRetention(flex.DayAt(r.To), now) || now.Sub(r.From) > readableFor
}

// sessionQueries are the queries for what was metered in each session.
func sessionQueries(sessions []store.SessionSettlement) []store.ReadingQuery {
	queries := make([]store.ReadingQuery, len(sessions))
	for i := range sessions {
		_, queries[i] = sessionQuery(&sessions[i])
	}

	return queries
}

// settleSession takes a session on to what its readings tell now, and returns the transaction
// that this makes, if it makes one.
func settleSession(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	rs []flex.Reading,
	t *terms,
) (*ledger.Booked, error) {
	energy, known, missing, err := charged(ctx, tx, *r, rs)
	if err != nil {
		return nil, err
	}

	now := tx.Now()
	since := now.Sub(r.To)
	partly := known > 0 && since >= PartialAfter
	ready := missing.IsZero() || partly || since >= EmptyAfter
	earns := t.credit != 0 || r.Posted > 0

	var revision *ledger.Booked
	if ready && earns && r.Consented {
		o, err := sessionTarget(ctx, tx, r, t, energy)
		if err != nil {
			return nil, err
		}

		revision = o.revision(&r.Progress)
		if r.Paired {
			if err := resettleOverlapping(ctx, tx, r, revision != nil); err != nil {
				return nil, err
			}
		}
	}

	// In its first half-hour no other reading than the missing one has it looked at again.
	arrived := since >= PartialAfter && r.LookAt.After(now)
	outlook{
		missing: missing,
		next:    nextCheck(*r, known, missing, now),
		arrived: arrived,
	}.wait(&r.Progress, now)

	return revision, saveSession(ctx, tx, r)
}

// saveSession notes how far a session has come. It fails if another process settled it in between,
// and the books know.
func saveSession(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
) error {
	saved, err := tx.SaveSessionSettlement(ctx, *r)
	if err == nil && !saved {
		err = fmt.Errorf(
			"session %s was settled elsewhere at the same time",
			r.SessionID,
		)
	}

	return err
}

// nextCheck is when to look at a session again even if the reading that it waits for does not
// come: after half an hour; after a day if there is no reading by then; at the last deadline.
// It is zero once the session has all its readings or that is over. A reading, a consent or
// new terms have it looked at by themselves.
func nextCheck(
	r store.SessionSettlement,
	known int,
	missing, now time.Time,
) time.Time {
	last := r.To.Add(CloseAfter)
	if missing.IsZero() && r.Consented || !last.After(now) {
		return time.Time{}
	}

	at := r.To.Add(PartialAfter)
	if !at.After(now) && known == 0 {
		at = r.To.Add(EmptyAfter)
	}

	if !at.After(now) {
		return last
	}

	return at
}

// charged returns the energy of the half-hours that belong to the session, how many of them
// are known, and the first that is not. What is bought back for what the car gave does not
// count: a car that gives and takes would earn by that alone.
func charged(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
	rs []flex.Reading,
) (flex.WattHours, int, time.Time, error) {
	periods, _ := ownPeriods(&r)
	days, err := meteredDays(ctx, tx, r, rs, time.Time{})
	if err != nil {
		return 0, 0, time.Time{}, err
	}

	others, err := countedAtChargers(ctx, tx, &r, days, time.Time{})
	if err != nil {
		return 0, 0, time.Time{}, err
	}

	boughtBackEnergy, err := totalBoughtBack(ctx, tx, &r, time.Time{})

	var energy flex.WattHours
	var known int
	var missing time.Time
	for _, p := range periods {
		switch e, read := energyIn(days, p); {
		case read:
			energy += e - others[p]
			known++
		case missing.IsZero():
			missing = p.Start()
		}
	}

	return max(0, energy-boughtBackEnergy), known, missing, err
}

// boughtBack is the energy that a car takes to replace what it gave, with the assumed losses.
func boughtBack(r *store.SessionSettlement) flex.WattHours {
	const efficiency = discharge.Efficiency * discharge.Efficiency
	return flex.WattHours(math.Ceil(float64(r.Given) / efficiency))
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

// ownPeriods returns the half-hours that belong to a session, which are those that no session
// before it ran in, and their days.
func ownPeriods(r *store.SessionSettlement) ([]flex.Period, []flex.Day) {
	first, last := halfHours(r.Span)
	if !r.Before.To.IsZero() {
		if _, lastBefore := halfHours(r.Before); !lastBefore.Before(first) {
			first = lastBefore.Add(1)
		}
	}

	var periods []flex.Period
	var days []flex.Day
	for p := first; !last.Before(p); p = p.Add(1) {
		periods = append(periods, p)
		d := flex.DayAt(p.Start())
		if len(days) == 0 || days[len(days)-1] != d {
			days = append(days, d)
		}
	}

	return periods, days
}

// sessionQuery returns the half-hours that belong to a session, and asks for what was metered
// in them.
func sessionQuery(
	r *store.SessionSettlement,
) ([]flex.Period, store.ReadingQuery) {
	periods, days := ownPeriods(r)
	var q store.ReadingQuery
	if len(periods) == 0 {
		return nil, q
	}

	return periods, store.ReadingQuery{
		Assets: []flex.AssetID{r.AssetID},
		Labels: []flex.Label{flex.ChargerEnergy, flex.ChargerRegister},
		Days:   days,
		Within: flex.Span{
			From: periods[0].Start(),
			To:   periods[len(periods)-1].End(),
		},
	}
}

// sessionReadings returns the half-hours that belong to a session and what was metered on
// their days, as it was known at an instant, or now.
func sessionReadings(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
	knownAt time.Time,
) ([]flex.Period, []settle.MeteredDay, error) {
	periods, q := sessionQuery(&r)
	q.KnownAt = knownAt
	rs, err := tx.Readings(ctx, q)
	if err != nil {
		return periods, nil, err
	}

	days, err := meteredDays(ctx, tx, r, rs, knownAt)

	return periods, days, err
}

// meteredDays lays out a session's readings by days.
func meteredDays(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
	rs []flex.Reading,
	knownAt time.Time,
) ([]settle.MeteredDay, error) {
	if len(rs) == 0 {
		return nil, nil
	}

	limits, err := sessionLimits(ctx, tx, r, knownAt)
	if err != nil {
		return nil, err
	}

	days, _ := settle.HalfHoursWithin(settle.Asset, rs, limits)

	return days, nil
}

// sessionLimits returns what the session's device can have taken in a half-hour.
func sessionLimits(
	ctx context.Context,
	tx *store.Tx,
	r store.SessionSettlement,
	knownAt time.Time,
) (settle.Rating, error) {
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

// sessionTarget is what the session's energy earns, at the rate of its first transaction.
func sessionTarget(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	t *terms,
	energy flex.WattHours,
) (*bookingTarget, error) {
	cause := ledger.Cause{Session: r.SessionID}
	posted, err := tx.PostingsAbout(ctx, cause)
	if err != nil {
		return nil, err
	}

	if r.Posted == 0 {
		r.Rate = int64(t.credit)
	}

	// One that ends at midnight is of the day before: nothing of it is of the next, nor of
	// that one's month.
	last := flex.Later(r.From, r.To.Add(-1))

	rate, more := r.Rate, energy-r.PostedWh
	about := ledger.Transaction{
		SiteID:  r.SiteID,
		Time:    r.Span,
		Settled: flex.DayAt(last),
		Cause:   cause,
	}

	o := bookingTarget{
		Booked: ledger.Booked{
			Transaction: about,
			Rate:        &rate,
			Creditable:  &more,
		},

		subject: fmt.Sprintf("session:%s", r.SessionID), posted: posted,
		target: ledger.Credited(settle.Rate(rate).Credit(energy, t.settle.Rounding)),
		energy: energy, more: more, visible: true, changed: more != 0,
	}

	if r.Type == flex.ElectricVehicle {
		o.Vehicle = r.Model
	}

	return &o, nil
}
