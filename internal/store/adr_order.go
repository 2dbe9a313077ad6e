package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a bound OpenADR program is one of the organisation's", `
		SELECT b.program_id AS what FROM adr_binding b LEFT JOIN adr_object o ON o.id = b.program_id AND o.org_id = b.org_id AND o.kind = 'PROGRAM'
		WHERE o.id IS NULL`)
	_ = law(
		"an order of an OpenADR event that was carried out has its instruction",
		`
		SELECT o.id AS what FROM adr_order o LEFT JOIN instruction i ON i.id = o.instruction_id AND i.org_id = o.org_id
		WHERE i.id IS NULL AND (o.state IN ('sent', 'short') OR o.instruction_id IS NOT NULL)`,
	)
)

// BindADRProgram binds a program, in the place of how it was bound before.
func (tx *Tx) BindADRProgram(ctx context.Context, b *flex.ADRBinding) error {
	b.MadeAt = tx.now
	simple := make([]int64, len(b.Simple))
	for i, w := range b.Simple {
		simple[i] = int64(w)
	}

	row := []value{
		{"program_id", b.Program.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"group_name", b.Scope.Group},
		{"gsp_group", b.Scope.GSPGroup},
		{"service", b.Service},
		{"kind", string(b.Kind)},
		{"simple", writeNumbers(simple)},
		{"who", b.Who},
		{"made_at", micros(b.MadeAt)},
		{"price", int64(b.Price)},
	}

	_, err := tx.upsert(ctx, "adr_binding", row, rewrite{
		key:  []string{"program_id"},
		keep: []string{"org_id"},
	})

	return err
}

// UnbindADRProgram ends the binding of a program, and reports whether there was one.
func (tx *Tx) UnbindADRProgram(
	ctx context.Context,
	program flex.ADRObjectID,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`DELETE FROM adr_binding WHERE org_id = $1 AND program_id = $2`,
		tx.org.Bytes(),
		program.Bytes(),
	)

	return n > 0, err
}

// ADRBindings returns how the organisation's programs are bound: one, or all if it is zero.
func (tx *Tx) ADRBindings(
	ctx context.Context,
	program flex.ADRObjectID,
) ([]flex.ADRBinding, error) {
	query, args := `SELECT program_id, group_name, gsp_group, service, kind, simple, who, made_at, price FROM adr_binding WHERE org_id = $1`, []any{tx.org.Bytes()}
	if !program.IsZero() {
		query, args = query+` AND program_id = $2`, append(args, program.Bytes())
	}

	return rows(ctx, tx.conn, func(s scanner) (flex.ADRBinding, error) {
		var simple string
		var b flex.ADRBinding
		err := s.Scan(
			&b.Program,
			&b.Scope.Group,
			&b.Scope.GSPGroup,
			&b.Service,
			&b.Kind,
			&simple,
			&b.Who,
			instant{&b.MadeAt},
			&b.Price,
		)

		if err != nil {
			return b, err
		}

		levels, err := readNumbers[int64]("levels of SIMPLE", simple)
		for _, w := range levels {
			b.Simple = append(b.Simple, flex.Watts(w))
		}

		return b, err
	}, query+` ORDER BY program_id`, args...)
}

// ADROrderState says what became of an order.
type ADROrderState string

// The states of an order.
const (
	ADRWaiting ADROrderState = "waiting" // to be sent
	ADRSent    ADROrderState = "sent"    // it became an instruction
	// it became a limit of its constraint group
	ADRLimited ADROrderState = "limited"
	// its instruction brought less than was asked for
	ADRShort   ADROrderState = "short"
	ADRRefused ADROrderState = "refused" // it could not be carried out
	// an event of a higher priority has its time
	ADROutranked ADROrderState = "outranked"
	// its event does not ask for it any more
	ADRWithdrawn ADROrderState = "withdrawn"
)

// ADROrder is what an interval of an event asks of the fleet.
type ADROrder struct {
	ID       flex.ADROrderID
	Program  flex.ADRObjectID
	Event    flex.ADRObjectID
	Interval int
	flex.Span
	// against the plan, negative for less; zero with a limit, and where it could not be read
	Change      flex.Watts
	Limit       *flex.Watts // the most that may be drawn, or given
	Direction   flex.Direction
	State       ADROrderState
	Problem     string             // why it was not carried out, or not in full
	Instruction flex.InstructionID // zero until it was sent
	MadeAt      time.Time
}

const adrOrderColumns = `id, program_id, event_id, interval_id, from_at, to_at, change_w, limit_w, state, problem, instruction_id, made_at, direction`

func scanADROrder(s scanner) (ADROrder, error) {
	var limit sql.NullInt64
	var o ADROrder
	err := s.Scan(
		&o.ID,
		&o.Program,
		&o.Event,
		&o.Interval,
		instant{&o.From},
		instant{&o.To},
		&o.Change,
		&limit,
		&o.State,
		&o.Problem,
		&o.Instruction,
		instant{&o.MadeAt},
		&o.Direction,
	)

	o.Limit = wattsOf(limit)

	return o, err
}

// AddADROrder stores an order. One that waits is sent, and any other reported, as soon as may be.
func (tx *Tx) AddADROrder(ctx context.Context, o *ADROrder) error {
	o.ID, o.MadeAt = flex.ADROrderID(tx.newID()), tx.now
	o.Direction = cmp.Or(o.Direction, flex.Import)
	var work, report any = nil, micros(tx.now)
	if o.State == ADRWaiting {
		work, report = micros(tx.now), nil
		tx.Wake(WakeInstructions)
	}

	return tx.insert(ctx, "adr_order", []value{
		{"id", o.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"program_id", o.Program.Bytes()},
		{"event_id", o.Event.Bytes()},
		{"interval_id", o.Interval},
		{"from_at", micros(o.From)},
		{"to_at", micros(o.To)},

		{"change_w", int64(o.Change)},
		{"limit_w", wattsOrNull(o.Limit)},
		{"direction", string(o.Direction)},
		{"state", string(o.State)},
		{"problem", o.Problem},
		{"made_at", micros(tx.now)},
		{"work_at", work},
		{"report_at", report},
	})
}

// WithdrawADROrder says that an order's event does not ask for it any more; its instruction is
// stopped as soon as may be.
func (tx *Tx) WithdrawADROrder(
	ctx context.Context,
	id flex.ADROrderID,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE adr_order SET state = 'withdrawn', work_at = CASE WHEN instruction_id IS NULL AND state <> 'limited' THEN NULL ELSE CAST($3 AS BIGINT) END, report_at = $3
		WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
	)

	tx.Wake(WakeInstructions)

	return err
}

// CurrentADROrders returns what a program's events asked for and was not withdrawn: of events
// that are not over, and of one event more.
func (tx *Tx) CurrentADROrders(
	ctx context.Context,
	program, event flex.ADRObjectID,
) ([]ADROrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanADROrder,
		`SELECT `+adrOrderColumns+
			` FROM adr_order WHERE org_id = $1 AND program_id = $2 AND state <> 'withdrawn'
		AND (to_at > $3 OR event_id = $4 OR event_id IN (SELECT id FROM adr_object WHERE program_id = $2 AND kind = 'EVENT' AND (ends_at IS NULL OR ends_at > $3)))
		ORDER BY id`,
		tx.org.Bytes(),
		program.Bytes(),
		micros(tx.now),
		event.Bytes(),
	)
}

// ADROrdersOf returns all that an event asked for, in the order of its intervals.
func (tx *Tx) ADROrdersOf(
	ctx context.Context,
	event flex.ADRObjectID,
) ([]ADROrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanADROrder,
		`SELECT `+adrOrderColumns+
			` FROM adr_order WHERE org_id = $1 AND event_id = $2 ORDER BY interval_id, from_at, id`,
		tx.org.Bytes(),
		event.Bytes(),
	)
}

// ADROrders returns the organisation's latest orders, the newest first.
func (tx *Tx) ADROrders(ctx context.Context, limit int) ([]ADROrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanADROrder,
		`SELECT `+adrOrderColumns+
			` FROM adr_order WHERE org_id = $1 ORDER BY id DESC LIMIT $2`,
		tx.org.Bytes(),
		limit,
	)
}

// DueADROrders returns orders that are to be sent, or whose instruction is to be stopped:
// these first.
func (tx *Tx) DueADROrders(ctx context.Context) ([]ADROrder, error) {
	return rows(
		ctx,
		tx.conn,
		scanADROrder,
		`SELECT `+adrOrderColumns+
			` FROM adr_order WHERE org_id = $1 AND work_at <= $2
		ORDER BY CASE WHEN state = 'withdrawn' THEN 0 ELSE 1 END, from_at, id`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// ADROrderAgain has an order looked at again at an instant; zero is never.
func (tx *Tx) ADROrderAgain(
	ctx context.Context,
	id flex.ADROrderID,
	at time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE adr_order SET work_at = $3 WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(at),
	)

	return err
}

// ADROrderDone says what became of an order that waits, and reports whether it still did.
func (tx *Tx) ADROrderDone(
	ctx context.Context,
	o *ADROrder,
) (mine bool, err error) {
	var instruction any
	if !o.Instruction.IsZero() {
		instruction = o.Instruction.Bytes()
	}

	n, err := tx.exec(
		ctx,
		`UPDATE adr_order SET state = $3, problem = $4, instruction_id = $5, work_at = NULL, report_at = $6 WHERE org_id = $1 AND id = $2 AND state = 'waiting'`,
		tx.org.Bytes(),
		o.ID.Bytes(),
		string(o.State),
		o.Problem,
		instruction,
		micros(tx.now),
	)

	return n > 0, err
}

// DueADRReports returns the events of which it is to be reported by now what became of what
// they asked for.
func (tx *Tx) DueADRReports(ctx context.Context) ([]flex.ADRObjectID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.ADRObjectID],
		`SELECT DISTINCT event_id FROM adr_order WHERE org_id = $1 AND report_at <= $2 ORDER BY event_id`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// ADROrderReported stores what is known of an order now, and when to report again; zero is
// never. A limit of which something else is known meanwhile is left as it is.
func (tx *Tx) ADROrderReported(
	ctx context.Context,
	o *ADROrder,
	next time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE adr_order SET state = $3, problem = $4, report_at = $5 WHERE org_id = $1 AND id = $2 AND (state <> 'limited' OR problem = $4)`,
		tx.org.Bytes(),
		o.ID.Bytes(),
		string(o.State),
		o.Problem,
		micros(next),
	)

	return err
}

// NextADROrder and NextADRReport are when orders are to be sent or stopped, and reported.
func (tx *Tx) NextADROrder(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, orderDue, after)
}

// NextADRReport is NextADROrder of reports.
func (tx *Tx) NextADRReport(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, reportDue, after)
}

// OrgsWithADROrders returns the organisations with orders that are to be sent, stopped or
// reported, now or later.
func (all *All) OrgsWithADROrders(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT id FROM org o WHERE EXISTS (SELECT 1 FROM adr_order p WHERE p.org_id = o.id AND p.work_at IS NOT NULL)
		OR EXISTS (SELECT 1 FROM adr_order p WHERE p.org_id = o.id AND p.report_at IS NOT NULL) ORDER BY id`)
}

// ADROrdersKept is how long an order that was not carried out is listed as one.
const ADROrdersKept = 24 * time.Hour

// UnmetADROrders returns how many orders were refused, or brought less than was asked for, of those
// whose time ended within ADROrdersKept or is to come, and the newest of them.
func (all *All) UnmetADROrders(
	ctx context.Context,
	org flex.OrgID,
) (int, UnmetADROrder, error) {
	where := `FROM adr_order o JOIN org g ON g.id = o.org_id
		WHERE o.state IN ('refused', 'short') AND (o.to_at > $1 + g.clock_offset OR o.made_at > $1 + g.clock_offset)`
	args := []any{micros(all.Now().Add(-ADROrdersKept))}
	if !org.IsZero() {
		where, args = where+` AND o.org_id = $2`, append(args, org.Bytes())
	}

	var n int
	if err := all.row(
		ctx,
		`SELECT count(*) `+where,
		args...,
	).Scan(&n); err != nil || n == 0 {
		return 0, UnmetADROrder{}, err
	}

	var newest UnmetADROrder
	err := all.row(
		ctx,
		`SELECT o.org_id, o.problem, o.made_at `+where+` ORDER BY o.id DESC LIMIT 1`,
		args...,
	).Scan(&newest.Org, &newest.Problem, instant{&newest.MadeAt})

	return n, newest, err
}

// UnmetADROrder is an order that was not carried out, or not in full.
type UnmetADROrder struct {
	Org     flex.OrgID
	Problem string
	MadeAt  time.Time
}
