package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("an instruction ends after it begins and has one target",
		`SELECT id AS what FROM instruction WHERE to_at <= from_at OR (change_w = 0) = (limit_w IS NULL)`)
	_ = law("an asset is called by one instruction at a time, of those whose times meet",
		`SELECT c.asset_id AS what FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
		 JOIN called_asset d ON d.asset_id = c.asset_id AND d.instruction_id > c.instruction_id JOIN instruction j ON j.id = d.instruction_id
		 WHERE c.released_at IS NULL AND d.released_at IS NULL AND i.stopped_at IS NULL AND j.stopped_at IS NULL
			AND i.from_at < j.to_at AND j.from_at < i.to_at AND c.called_at < j.to_at AND d.called_at < i.to_at`)
	_ = law("who is called is called by an instruction of their organisation",
		`SELECT c.asset_id AS what FROM called_asset c LEFT JOIN instruction i ON i.id = c.instruction_id WHERE i.id IS NULL OR i.org_id <> c.org_id`)
)

const instructionColumns = `id, change_w, limit_w, group_name, gsp_group, from_at, to_at, service, price, reason, unfair, who, made_at, looked_at, stopped_at, stopped_by, target, product_id, spent_sites, spent, dispatched`

func scanInstruction(s scanner) (flex.Instruction, error) {
	var limit sql.NullInt64
	var by sql.NullString
	var target string
	var i flex.Instruction
	err := s.Scan(
		&i.ID,
		&i.Change,
		&limit,
		&i.Scope.Group,
		&i.Scope.GSPGroup,
		instant{&i.From},
		instant{&i.To},
		&i.Service,
		&i.Price,
		&i.Reason,
		&i.Unfair,
		&i.Who,
		instant{&i.MadeAt},
		instant{&i.LookedAt},
		instant{&i.StoppedAt},
		&by,
		&target,
		&i.Scope.Product,
		&i.SpentSites,
		&i.Spent,
		&i.Dispatched,
	)

	if err != nil {
		return i, err
	}

	if limit.Valid {
		i.Limit = new(flex.Watts(limit.Int64))
	}

	i.StoppedBy = by.String
	i.Target, err = readNumbers[int64]("targets", target)

	return i, err
}

// AddInstruction stores an instruction. Its id and its instants are set here.
func (tx *Tx) AddInstruction(ctx context.Context, i *flex.Instruction) error {
	i.ID = flex.InstructionID(tx.newID())
	i.MadeAt, i.LookedAt = tx.now, tx.now
	var limit, product any
	if i.Limit != nil {
		limit = int64(*i.Limit)
	}
	if !i.Scope.Product.IsZero() {
		product = i.Scope.Product.Bytes()
	}

	row := []value{
		{"org_id", tx.org.Bytes()},
		{"id", i.ID.Bytes()},
		{"change_w", int64(i.Change)},
		{"limit_w", limit},
		{"group_name", i.Scope.Group},
		{"gsp_group", i.Scope.GSPGroup},
		{"from_at", micros(i.From)},
		{"to_at", micros(i.To)},
		{"service", i.Service},
		{"price", int64(i.Price)},
		{"reason", i.Reason},
		{"unfair", i.Unfair},
		{"who", i.Who},
		{"made_at", micros(tx.now)},
		{"looked_at", micros(tx.now)},
		{"target", writeNumbers(i.Target)},
		{"product_id", product},
		{"spent_sites", i.SpentSites},
		{"spent", i.Spent},
		{"dispatched", i.Dispatched},
	}

	return tx.insert(ctx, "instruction", row)
}

// Instruction returns one of the organisation's instructions.
func (tx *Tx) Instruction(
	ctx context.Context,
	id flex.InstructionID,
) (flex.Instruction, error) {
	return one(
		ctx,
		tx.conn,
		"instruction not found or not authorized",
		scanInstruction,
		`SELECT `+instructionColumns+
			` FROM instruction WHERE org_id = $1 AND id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// Instructions returns at most limit of the organisation's instructions, the newest first: those
// made before a given one, if there is one. It also returns how many there are in all.
func (tx *Tx) Instructions(
	ctx context.Context,
	before flex.InstructionID,
	limit int,
) ([]flex.Instruction, int, error) {
	var total int
	if err := tx.row(
		ctx,
		`SELECT count(*) FROM instruction WHERE org_id = $1`,
		tx.org.Bytes(),
	).Scan(&total); err != nil {
		return nil, 0, err
	}

	if before.IsZero() {
		before = flex.InstructionID(lastAsset)
	}

	found, err := rows(
		ctx,
		tx.conn,
		scanInstruction,
		`SELECT `+instructionColumns+
			` FROM instruction WHERE org_id = $1 AND id < $2
		ORDER BY id DESC LIMIT $3`,
		tx.org.Bytes(),
		before.Bytes(),
		limit,
	)

	return found, total, err
}

// ActiveInstructions returns the organisation's instructions that bind now, or will.
func (tx *Tx) ActiveInstructions(ctx context.Context) ([]flex.Instruction, error) {
	return rows(
		ctx,
		tx.conn,
		scanInstruction,
		`SELECT `+instructionColumns+` FROM instruction
		WHERE org_id = $1 AND to_at > $2 AND stopped_at IS NULL ORDER BY id`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// StopInstruction stops an instruction that is active, and reports whether it was.
func (tx *Tx) StopInstruction(
	ctx context.Context,
	id flex.InstructionID,
	who string,
) (stopped bool, err error) {
	n, err := tx.exec(
		ctx,
		`UPDATE instruction SET stopped_at = $3, stopped_by = $4 WHERE org_id = $1 AND id = $2 AND stopped_at IS NULL AND to_at > $3`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
		who,
	)

	if err == nil && n > 0 {
		err = tx.dropCalls(ctx, id)
	}

	return n > 0, err
}

// LookAtInstruction says when an active instruction was last looked at, and reports whether nobody
// has since the instant that is known.
func (tx *Tx) LookAtInstruction(
	ctx context.Context,
	i *flex.Instruction,
	at time.Time,
) (mine bool, err error) {
	n, err := tx.exec(
		ctx,
		`UPDATE instruction SET looked_at = $3 WHERE org_id = $1 AND id = $2 AND looked_at = $4 AND stopped_at IS NULL`,
		tx.org.Bytes(),
		i.ID.Bytes(),
		micros(at),
		micros(i.LookedAt),
	)

	return n > 0, err
}

// Called is an asset that an instruction calls, or called.
type Called struct {
	AssetID    flex.AssetID
	SiteID     flex.SiteID
	CalledAt   time.Time
	ReleasedAt time.Time // zero while it is called
	Power      flex.Watts
	Cost       flex.MicroPounds
	Closed     []flex.Span // the time that it leaves out for the instruction; of a battery or a heater, the half-hours that it keeps to
	Baseline   []flex.Step // that was in force when it was called
	// the steps that were sent, from the call on; Baseline begins then, too
	Expected []flex.Step
	// it is a home battery, whose steps below zero give
	Battery bool
	// it is a tank or a heat pump, whose steps are what it is expected to draw
	Heater bool
	// a dispatch named it, which is no call of its household
	Dispatched bool
	// which call of its site this is a part of, from 1; 0 of a dispatch, and of a call that ended before its instruction began
	Number int64
}

// AddCalled records who is called. An asset that was called by the instruction before stays as it is. The instructions of the organisation
// are locked.
func (tx *Tx) AddCalled(
	ctx context.Context,
	id flex.InstructionID,
	all []Called,
) error {
	numbers, err := tx.callNumbers(ctx, id, all)
	if err != nil {
		return fmt.Errorf("number the calls: %w", err)
	}

	var args []any
	for _, c := range all {
		c.CalledAt = tx.now
		c.Number = numbers[c.SiteID]
		args = c.args(tx.org, id, args)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO called_asset (`+strings.Join(calledFields, ", ")+`)`,
		` ON CONFLICT (instruction_id, asset_id) DO NOTHING`,
		len(calledFields),
		args,
	)
}

var calledFields = strings.Fields(`instruction_id asset_id site_id org_id called_at power_w cost from_at baseline expected closed battery dispatched heater number`)

// args appends the values of calledFields.
func (c *Called) args(
	org flex.OrgID,
	id flex.InstructionID,
	args []any,
) []any {
	return append(
		args,
		id.Bytes(),
		c.AssetID.Bytes(),
		c.SiteID.Bytes(),
		org.Bytes(),
		micros(c.CalledAt),
		int64(c.Power),
		int64(c.Cost),
		micros(c.Expected[0].From),
		writeSteps(c.Baseline),
		writeSteps(c.Expected),
		writeClosed(c.Closed),
		c.Battery,
		c.Dispatched,
		c.Heater,
		c.Number,
	)
}

// occupies is the condition that an active instruction i keeps an asset c from others: one whose half-hours meet
// those from $3 to $4. Only one instruction has an asset's half-hour, so that no two pay for it. One that is over
// keeps the rest of its last half-hour, because $2 is the beginning of the current half-hour.
const occupies = `c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $2 AND i.to_at > $3 AND i.from_at < $4`

// occupiesArgs are the arguments of occupies for a time that is rounded out to half-hours, and the organisation before them.
func (tx *Tx) occupiesArgs(at flex.Span) []any {
	return []any{
		tx.org.Bytes(),
		micros(flex.PeriodAt(tx.now).Start()),
		micros(flex.PeriodAt(at.From).Start()),
		micros(flex.PeriodAt(at.To.Add(-1)).End()),
	}
}

// CalledIn returns the assets that active instructions of the organisation's call in the half-hours of a
// span.
func (tx *Tx) CalledIn(
	ctx context.Context,
	span flex.Span,
) (map[flex.AssetID]bool, error) {
	called := map[flex.AssetID]bool{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var id flex.AssetID
			err := s.Scan(&id)
			called[id] = true

			return err
		},
		`SELECT c.asset_id FROM instruction i JOIN called_asset c ON c.instruction_id = i.id
		WHERE i.org_id = $1 AND c.org_id = $1 AND `+occupies,
		tx.occupiesArgs(span)...,
	)

	return called, err
}

// CalledBy returns who an instruction calls, and whom it released, the last called first, and then by
// their ids.
func (tx *Tx) CalledBy(
	ctx context.Context,
	id flex.InstructionID,
) ([]Called, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (Called, error) { return scanCalled(s) },
		`SELECT `+calledColumns+` FROM called_asset c
		WHERE c.org_id = $1 AND c.instruction_id = $2 ORDER BY c.called_at DESC, c.asset_id`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

const calledColumns = `c.asset_id, c.site_id, c.called_at, c.released_at, c.power_w, c.cost, c.from_at, c.baseline, c.expected, c.closed, c.battery, c.dispatched, c.heater, c.number`

// scanCalled reads calledColumns, and into dest what is selected beside them.
func scanCalled(s scanner, dest ...any) (Called, error) {
	var from time.Time
	var baseline, expected string
	var c Called
	err := s.Scan(append([]any{
		&c.AssetID,
		&c.SiteID,
		instant{&c.CalledAt},
		instant{&c.ReleasedAt},
		&c.Power,
		&c.Cost,
		instant{&from},
		&baseline,
		&expected,
		closedTime{&c.Closed},
		&c.Battery,
		&c.Dispatched,
		&c.Heater,
		&c.Number,
	}, dest...)...)
	if err != nil {
		return c, err
	}

	c.Baseline, err = readSteps(from, baseline)
	if err != nil {
		return c, err
	}

	c.Expected, err = readSteps(from, expected)

	return c, err
}

// PlannedIn returns the plugged-in assets of a scope that have a schedule, by their ids. One that cannot be read is
// left out, and logged.
func (tx *Tx) PlannedIn(ctx context.Context, scope flex.Scope) ([]ScheduledAsset, error) {
	where, args, err := tx.scopeWhere(ctx, scope, []any{tx.org.Bytes()})
	if err != nil {
		return nil, err
	}
	found, _, err := tx.plannedRead(ctx, 0, `TRUE`+where+` ORDER BY s.asset_id`, args...)

	return found, err
}

// ClosedAssets returns the plugged-in assets whose schedule in force leaves time out for an
// instruction, of some. One that cannot be read is left out, logged, and marked to be planned again: then
// nothing that was released stays closed for it either.
func (tx *Tx) ClosedAssets(
	ctx context.Context,
	assets []flex.AssetID,
) ([]ScheduledAsset, error) {
	var found []ScheduledAsset
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), outboxChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		some, unread, err := tx.plannedRead(
			ctx,
			len(chunk),
			`c.closed IS NOT NULL AND s.asset_id IN `+list,
			args...,
		)

		if err == nil {
			err = tx.MarkDue(ctx, unread...)
		}
		if err != nil {
			return nil, err
		}

		found = append(found, some...)
	}

	return found, nil
}

// closedFor is how long after its end an instruction may have an asset leave time out.
const closedFor = 48 * time.Hour

// ClosedFor returns what each of some assets leaves out for the instructions that call it.
func (tx *Tx) ClosedFor(
	ctx context.Context,
	assets []flex.AssetID,
) (map[flex.AssetID][]flex.Span, error) {
	found := map[flex.AssetID][]flex.Span{}
	for chunk := range slices.Chunk(assets, outboxChunk) {
		list, args := in(
			[]any{tx.org.Bytes(), micros(tx.now.Add(-closedFor))},
			chunk,
		)

		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var closed []flex.Span
				var window flex.Span
				var up bool
				var id flex.AssetID
				err := s.Scan(
					&id,
					closedTime{&closed},
					instant{&window.From},
					instant{&window.To},
					&up,
				)

				// A flexd of before migration 294 did not keep it: it is the instruction's time at least.
				if len(closed) == 0 && !up {
					closed = []flex.Span{window}
				}

				found[id] = append(found[id], closed...)

				return err
			},
			`SELECT c.asset_id, c.closed, i.from_at, i.to_at, i.change_w > 0 FROM called_asset c JOIN instruction i ON i.id = c.instruction_id
			WHERE c.org_id = $1 AND c.released_at IS NULL AND i.stopped_at IS NULL AND i.to_at > $2 AND c.asset_id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return found, nil
}

// writeClosed writes spans in whole seconds as "1768500000-1768503600 …"; none is null.
func writeClosed(spans []flex.Span) any {
	if len(spans) == 0 {
		return nil
	}

	parts := make([]string, len(spans))
	for i, s := range spans {
		parts[i] = fmt.Sprintf("%d-%d", s.From.Unix(), s.To.Unix())
	}

	return strings.Join(parts, " ")
}

// closedTime reads what writeClosed wrote.
type closedTime struct{ spans *[]flex.Span }

// Scan reads a column.
func (c closedTime) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil {
		return err
	}

	for part := range strings.FieldsSeq(text.String) {
		from, to, _ := strings.Cut(part, "-")
		seconds, err := readNumbers[int64]("closed time", from+" "+to)
		if err != nil || len(seconds) != 2 {
			return fmt.Errorf("stored closed time %q: %w", text.String, err)
		}

		*c.spans = append(*c.spans, flex.Span{
			From: time.Unix(seconds[0], 0).UTC(),
			To:   time.Unix(seconds[1], 0).UTC(),
		})
	}

	return nil
}

// InstructedOrgs returns the organisations that have an instruction which is neither stopped nor
// long over.
func (all *All) InstructedOrgs(ctx context.Context) ([]flex.OrgID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT DISTINCT org_id FROM instruction WHERE stopped_at IS NULL AND to_at > $1`,
		micros(all.now.Add(-time.Hour)),
	)
}

// CalledMarks returns what the chargers' registers of the assets that an instruction called, or released, showed in a
// span, both ends included, each in order. More than most are Malformed; a most of 0 allows any number.
func (tx *Tx) CalledMarks(
	ctx context.Context,
	id flex.InstructionID,
	span flex.Span,
	most int,
) (map[flex.AssetID][]flex.RegisterMark, error) {
	const day = int64(24 * time.Hour / time.Microsecond)
	marks := map[flex.AssetID][]flex.RegisterMark{}
	count := 0
	add := func(s scanner) error {
		var asset flex.AssetID
		var m flex.RegisterMark
		err := s.Scan(&asset, instant{&m.At}, &m.Energy)
		marks[asset] = append(marks[asset], m)
		count++
		return err
	}

	limit := ""
	if most > 0 {
		limit = fmt.Sprintf(" LIMIT %d", most+1)
	}

	from, to := micros(span.From).(int64), micros(span.To).(int64)

	for n := from / day; n <= to/day; n++ {
		err := eachRow(
			ctx,
			tx.conn,
			add,
			`SELECT r.asset_id, r.at, r.value FROM called_asset c
				JOIN reading r ON (r.at / 86400000000) = $5 AND r.asset_id = c.asset_id AND r.label >= 10 AND r.label = $6 AND r.at >= $3 AND r.at <= $4
			WHERE c.instruction_id = $1 AND c.org_id = $2 ORDER BY r.asset_id, r.at`+limit,
			id.Bytes(),
			tx.org.Bytes(),
			from,
			to,
			n,
			labelNumbers[flex.ChargerRegister],
		)

		if err != nil {
			return nil, fmt.Errorf("read the registers of who is called: %w", err)
		}

		if most > 0 && count > most {
			return nil, flex.Fail(
				flex.Malformed,
				"there are more than %d readings of registers in the time: ask for the half-hours",
				most,
			)
		}
	}

	return marks, nil
}
