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

// Schedule is a schedule with what it was made from.
type Schedule struct {
	flex.Schedule
	Cause Cause
	From  Effective
	Curve CurveID // the prices; zero for none
	// the schedule of the session that it replaced; zero for none
	Before flex.EventID
	Value  flex.MicroPounds // of its push: what it saves, or Urgent
}

// End returns the instant after which the schedule leaves the asset free.
func (s *Schedule) End() time.Time { return s.Steps[len(s.Steps)-1].To }

// Charging returns the steps in which the asset is to charge: up to when it is to be done. What the schedule says of
// later keeps the site's main fuse if the car draws all the same; it is no plan to do so.
func (s *Schedule) Charging() []flex.Step {
	if !s.HasTail() {
		return s.Steps
	}

	steps := cutAt(slices.Clone(s.Steps), s.From.done())

	return slices.DeleteFunc(steps, func(s flex.Step) bool { return s.Empty() })
}

// HasTail reports whether a schedule continues after its need is met, for a fuse's sake.
func (s *Schedule) HasTail() bool {
	return len(s.Steps) > 0 && s.End().After(s.From.done())
}

// done is when an asset is to have what it needs, and what was asked for at once.
func (e *Effective) done() time.Time { return flex.Later(e.ReadyBy, e.ChargeNow.To) }

// cutAt cuts steps off at an instant, in place. If all come later, the first is left without any length.
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

// Effective are the inputs of a plan as they were used.
type Effective struct {
	ReadyBy       time.Time
	Need          flex.WattHours // as asked for, or the default
	Delivered     flex.WattHours // of it, since CountFrom
	CountFrom     time.Time
	Power         flex.Watts
	Phases        int  // that the asset draws on; 0 where it was read from a schedule's record, which keeps none
	Phase         int  // of three, that one on one phase is on; 0 for not known
	ProfilePhases int  // that its profile names, as flex.ProfilePhases has it
	Running       bool // the asset charged when the plan was made
	MayChargePeak bool
	Mode          flex.ChargingMode
	ChargeNow     flex.Span
	// its Zone is empty if none is known: all hours are off-peak
	Tariff flex.Tariff
	// as control writes it: where each input came from
	Origins string
	// nil if the power is nominal and nothing else was learned either
	Learned *Learned
	// time that an instruction has the asset leave out, as far as its need allows
	Closed []flex.Span
	// nil if it begins and ends when the market and the tariff say
	Ramp *Ramp
	// nil if the asset may not discharge, or is not known to
	Discharge *Discharge
	// what a car lacked that was said to discharge; empty of all others
	ChargesOnly string
}

// Words of the origins of a schedule that are listed among the exceptions.
const (
	// CutShort has a schedule's site not be planned as one, or not to the end.
	CutShort = "cut_short"
	// PlanRefused has the check before sending refuse the site's plan, and the schedule be its safe part.
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

// setSteps reads the steps, and sets what the car gives beside them.
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

// AddSchedule commits the session's next schedule, made at this transaction's instant. Its
// id, generation and place are set here, in the session too, and so is since when its need
// counts, if that is not said. The asset must be locked.
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

// follow makes a schedule with an id the session's next, made at an instant.
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

// AddCurve keeps the prices that a plan is made on and returns their name. Prices follow
// each other without a gap.
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

// nameCurve names prices as they are kept, the first of them from an instant in microseconds.
func nameCurve(from int64, prices string) CurveID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", from, prices))
	return CurveID(sum[:16])
}

// Curve returns the prices of that name; the zero name has none.
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
		return nil, nil // past its keeping
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
