package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a session names its newest schedule",
		`SELECT s.id AS what FROM session s LEFT JOIN schedule c ON c.event_id = s.event_id
		 WHERE s.event_id IS NOT NULL AND (c.event_id IS NULL OR c.session_id <> s.id OR c.asset_id <> s.asset_id
			OR c.org_id <> s.org_id OR c.generation <> s.generation)`)
	_ = law("a schedule follows the one that it replaced",
		`SELECT c.event_id AS what FROM schedule c LEFT JOIN schedule b ON b.event_id = c.before_id
		 WHERE c.before_id IS NOT NULL AND (b.event_id IS NULL OR b.session_id <> c.session_id OR b.generation <> c.generation - 1)`)
	_ = law("what is to be sent for an asset is its newest schedule, and only while it is plugged in or to free it",
		`SELECT o.event_id AS what FROM outbox o LEFT JOIN schedule c ON c.event_id = o.event_id LEFT JOIN session s ON s.id = c.session_id
		 WHERE o.kind = 'schedule' AND o.turn_at IS NOT NULL AND o.generation > o.accepted AND o.expires_at > 0
			AND NOT EXISTS (SELECT 1 FROM tank_plan t WHERE t.event_id = o.event_id AND t.asset_id = o.asset_id AND t.generation = o.generation)
			AND (c.event_id IS NULL OR c.asset_id <> o.asset_id OR c.generation <> o.generation OR c.org_id <> o.org_id
				OR s.event_id <> c.event_id OR s.plugged_out_at IS NOT NULL AND c.cause <> 'freed')`)
	_ = law("a schedule ends after it begins, on whole seconds",
		`SELECT event_id AS what FROM schedule WHERE to_at <= from_at OR from_at % 1000000 <> 0 OR to_at % 1000000 <> 0`)
)

// Cause says what led to a schedule.
type Cause string

// The causes of a schedule.
const (
	CausePlugIn    Cause = "plug-in"
	CauseIntent    Cause = "intent"
	CauseTariff    Cause = "tariff"
	CauseChargeNow Cause = "charge-now"
	CauseMarket    Cause = "market"
	// readings, the asset's power or settings changed
	CauseInputs Cause = "inputs"
	// the fleet was planned together, under its caps
	CauseCaps Cause = "caps"
	// the grid asked for another draw, or asks no more
	CauseCalled Cause = "instruction"
	// control ended; the schedule leaves charging free
	CauseFreed Cause = "freed"
)

// CurveID names a stretch of prices by its content.
type CurveID = flex.ID[curveKind]

type curveKind struct{}

// Schedule is a schedule with the inputs that it was planned on.
type Schedule struct {
	flex.Schedule
	Cause Cause
	From  PlanInputs
	Curve CurveID // the prices; zero for none
	// the schedule of the session that it replaced; zero for none
	Before flex.EventID
	Value  flex.MicroPounds // of its push: what it saves, or Urgent
}

// End returns the instant after which the schedule leaves the asset free.
func (s *Schedule) End() time.Time { return s.Steps[len(s.Steps)-1].To }

// Charging returns the steps in which the asset is to charge, up to the time by which it is to be done.
// Steps after that are no plan to charge: they protect the site's main fuse if the car draws power all
// the same.
func (s *Schedule) Charging() []flex.Step {
	if !s.HasTail() {
		return s.Steps
	}

	steps := cutAt(slices.Clone(s.Steps), s.From.done())

	return slices.DeleteFunc(steps, func(s flex.Step) bool { return s.Empty() })
}

// HasTail reports whether a schedule has steps after the asset's need is met, which protect a fuse.
func (s *Schedule) HasTail() bool {
	return len(s.Steps) > 0 && s.End().After(s.From.done())
}

// done returns when the asset is to be done: at ready-by, or at the end of charge-now if that is later.
func (e *PlanInputs) done() time.Time { return flex.Later(e.ReadyBy, e.ChargeNow.To) }

// cutAt cuts steps off at an instant, in place. If all begin later, one step without length is left.
func cutAt(steps []flex.Step, end time.Time) []flex.Step {
	n := len(steps)
	for n > 1 && !steps[n-1].From.Before(end) {
		n--
	}

	steps = steps[:n]
	if n > 0 && steps[n-1].To.After(end) {
		steps[n-1].To = flex.Later(steps[n-1].From, end)
	}

	return steps
}

// PlanInputs are the inputs of a plan as they were used.
type PlanInputs struct {
	ReadyBy       time.Time
	Need          flex.WattHours // as asked for, or the default
	Delivered     flex.WattHours // of Need, since CountFrom
	CountFrom     time.Time
	Power         flex.Watts
	Phases        int  // that the asset draws on; 0 if read from a schedule's record, which has none
	Phase         int  // of three, for an asset on one phase; 0 for not known
	ProfilePhases int  // that its profile names, see flex.ProfilePhases
	Running       bool // the asset charged when the plan was made
	MayChargePeak bool
	Mode          flex.ChargingMode
	ChargeNow     flex.Span
	// without a Zone if no tariff is known: then all hours are off-peak
	Tariff flex.Tariff
	// where each input came from, in control's notation
	Origins string
	// nil if the power is nominal and nothing was learned of the asset
	Learned *Learned
	// time in which an instruction has the asset not charge, as far as its need allows
	Closed []flex.Span
	// nil if no ramp delays its start or its end
	Ramp *Ramp
	// nil if the asset may not discharge, or is not known to
	Discharge *Discharge
	// of a car that was said to discharge and did not: what was missing; else empty
	ChargesOnly string
}

// Words in the origins of a schedule that make it an exception.
const (
	// CutShort: the site was not planned as a whole, or its planning stopped early.
	CutShort = "cut_short"
	// PlanRefused: the check before sending refused the site's plan, and the schedule is its safe part.
	PlanRefused = "plan_refused"
)

const scheduleColumns = `event_id, asset_id, session_id, generation, cause, made_at, from_at, steps, curve_id,
	ready_by, need_wh, delivered_wh, count_from, power_w, running, may_charge_peak, mode, charge_now_from, charge_now_to, off_peak, zone, tariff_type, origins, before_id, value, learned, closed, ramp, discharge`

func scanSchedule(s scanner) (Schedule, error) {
	var from time.Time
	var steps string
	var v Schedule
	err := s.Scan(
		&v.EventID,
		&v.AssetID,
		&v.SessionID,
		&v.Generation,
		&v.Cause,
		instant{&v.MadeAt},
		instant{&from},
		&steps,
		&v.Curve,
		instant{&v.From.ReadyBy},
		&v.From.Need,
		&v.From.Delivered,
		instant{&v.From.CountFrom},
		&v.From.Power,
		&v.From.Running,
		&v.From.MayChargePeak,
		&v.From.Mode,
		instant{&v.From.ChargeNow.From},
		instant{&v.From.ChargeNow.To},
		&v.From.Tariff.OffPeak,
		&v.From.Tariff.Zone,
		&v.From.Tariff.Type,
		originsText{&v.From},
		&v.Before,
		&v.Value,
		learnedText{&v.From.Learned},
		closedTime{&v.From.Closed},
		rampText{&v.From.Ramp},
		dischargesText{&v.From.Discharge, &v.From.ChargesOnly},
	)

	if err != nil {
		return v, err
	}

	err = v.setSteps(from, steps)

	return v, err
}

// setSteps reads the steps, and sets what the car discharges in addition.
func (s *Schedule) setSteps(from time.Time, steps string) error {
	s.Phases = s.From.ProfilePhases
	if d := s.From.Discharge; d != nil {
		s.MayDischarge, s.Discharges = true, d.Discharges
	}

	var err error
	s.Steps, err = readSteps(from, steps)

	return err
}

// writeSteps writes steps that follow each other without a gap as "5400x0 21600x99999":
// the seconds and the watts of each.
func writeSteps(steps []flex.Step) string {
	b := make([]byte, 0, 16*len(steps))
	for i, s := range steps {
		if i > 0 {
			b = append(b, ' ')
		}

		b = strconv.AppendInt(b, int64(s.Len()/time.Second), 10)
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(s.Limit), 10)
	}

	return string(b)
}

// readSteps reads what writeSteps wrote.
func readSteps(from time.Time, text string) ([]flex.Step, error) {
	steps := make([]flex.Step, 0, strings.Count(text, " ")+1)
	for part := range strings.SplitSeq(text, " ") {
		a, b, _ := strings.Cut(part, "x")
		seconds, err1 := strconv.ParseInt(a, 10, 64)

		limit, err2 := strconv.ParseInt(b, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%w: steps %q: %w", ErrUnreadable, text, err)
		}

		to := from.Add(time.Duration(seconds) * time.Second)
		steps = append(steps, flex.Step{
			Span:  flex.Span{From: from, To: to},
			Limit: flex.Watts(limit),
		})

		from = to
	}

	return steps, nil
}

// Schedule returns one schedule of the organisation's.
func (tx *Tx) Schedule(ctx context.Context, id flex.EventID) (Schedule, error) {
	return one(
		ctx,
		tx.conn,
		"schedule not found or not authorized",
		scanSchedule,
		`SELECT `+scheduleColumns+
			` FROM schedule WHERE org_id = $1 AND event_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

var scheduleFields = strings.Fields(`event_id org_id asset_id session_id generation cause made_at from_at to_at steps curve_id
	ready_by need_wh delivered_wh count_from power_w running may_charge_peak mode charge_now_from charge_now_to off_peak zone tariff_type origins before_id value learned closed ramp discharge`)

// args appends the values of scheduleFields.
func (s *Schedule) args(org flex.OrgID, args []any) []any {
	var curve, before any
	if !s.Curve.IsZero() {
		curve = s.Curve.Bytes()
	}

	if !s.Before.IsZero() {
		before = s.Before.Bytes()
	}

	e := &s.From

	return append(
		args,
		s.EventID.Bytes(),
		org.Bytes(),
		s.AssetID.Bytes(),
		s.SessionID.Bytes(),
		s.Generation,
		string(s.Cause),
		micros(s.MadeAt),
		micros(s.Steps[0].From),
		micros(s.End()),
		writeSteps(s.Steps),
		curve,
		micros(e.ReadyBy),
		int64(e.Need),
		int64(e.Delivered),
		micros(e.CountFrom),
		int64(e.Power),
		e.Running,
		e.MayChargePeak,
		string(e.Mode),
		micros(e.ChargeNow.From),
		micros(e.ChargeNow.To),
		e.Tariff.OffPeak,
		e.Tariff.Zone,
		string(e.Tariff.Type),
		writeOrigins(e),
		before,
		int64(s.Value),
		encodeLearned(e.Learned),
		writeClosed(e.Closed),
		encodeRamp(e.Ramp),
		encodeDischarges(e),
	)
}

// AddSchedule stores the session's next schedule, made at this transaction's instant. It sets the
// schedule's id, generation and predecessor, and updates the session. CountFrom, if it is zero, becomes
// the beginning of the schedule. The asset must be locked.
func (tx *Tx) AddSchedule(
	ctx context.Context,
	session *Session,
	s *Schedule,
) error {
	s.EventID = flex.EventID(tx.newID())
	s.follow(session, tx.now)

	err := tx.db.d.addRows(
		ctx,
		tx.conn,
		"schedule",
		scheduleFields,
		s.args(tx.org, nil),
	)
	if err != nil {
		return err
	}

	err = tx.later(
		ctx,
		`UPDATE session SET ready_by = $3, generation = $4, event_id = $5, market_at = $6, due_at = NULL, due_for = NULL
		WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		session.ID.Bytes(),
		micros(session.ReadyBy),
		session.Generation,
		session.EventID.Bytes(),
		micros(session.MarketAt),
	)
	if err != nil {
		return err
	}
	if err := tx.loadChanged(ctx, s.AssetID); err != nil {
		return err
	}

	return tx.keepSent(ctx, s)
}

// follow makes a schedule that has an id the session's next, made at the instant now.
func (s *Schedule) follow(session *Session, now time.Time) {
	s.AssetID = session.AssetID
	s.SessionID = session.ID
	s.Generation = session.Generation + 1
	s.MadeAt = now
	s.Before = session.EventID

	if s.From.CountFrom.IsZero() {
		s.From.CountFrom = s.Steps[0].From
	}

	session.Generation = s.Generation
	session.EventID = s.EventID
	session.ReadyBy = s.From.ReadyBy
	if s.Cause == CauseMarket {
		session.MarketAt = now
	}
}

// AddCurve stores the prices that a plan is made on and returns their id, a hash of them: the same
// prices are stored once. Their periods are consecutive.
func (c conn) AddCurve(
	ctx context.Context,
	prices []flex.PricedPeriod,
) (CurveID, error) {
	if len(prices) == 0 {
		return CurveID{}, nil
	}

	b := make([]byte, 0, 12*len(prices))
	for i, p := range prices {
		if i > 0 {
			b = append(b, ' ')
		}

		if p.Known {
			b = strconv.AppendInt(b, int64(p.Price), 10)
		}
	}

	from := prices[0].Period.Start().UnixMicro()
	id := nameCurve(from, string(b))

	return id, c.later(
		ctx,
		`INSERT INTO curve (id, from_at, prices) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
		id.Bytes(),
		from,
		string(b),
	)
}

// nameCurve returns the id of prices in their stored form, the first of them from an instant in
// microseconds.
func nameCurve(from int64, prices string) CurveID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", from, prices))
	return CurveID(sum[:16])
}

// Curve returns the prices of an id; the zero id has none, nor has one whose retention is over.
func (c conn) Curve(
	ctx context.Context,
	id CurveID,
) ([]flex.PricedPeriod, error) {
	if id.IsZero() {
		return nil, nil
	}

	var from time.Time
	var text string
	err := c.row(
		ctx,
		`SELECT from_at, prices FROM curve WHERE id = $1`,
		id.Bytes(),
	).Scan(instant{&from}, &text)

	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil // past its retention
	}

	if err != nil {
		return nil, err
	}

	var prices []flex.PricedPeriod
	for part := range strings.SplitSeq(text, " ") {
		p := flex.PricedPeriod{
			Period: flex.PeriodAt(from).Add(len(prices)),
			Known:  part != "",
		}

		if p.Known {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("stored prices: %w", err)
			}

			p.Price = flex.Price(n)
		}

		prices = append(prices, p)
	}

	return prices, nil
}
