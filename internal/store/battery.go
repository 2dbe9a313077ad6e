package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a battery plan belongs to a battery of the same organisation",
		`SELECT p.asset_id AS what FROM battery_plan p LEFT JOIN asset a ON a.id = p.asset_id AND a.org_id = p.org_id
		 WHERE a.id IS NULL OR a.type <> 'battery'`)
	_ = law(
		"a battery plan begins with a half-hour",
		`SELECT asset_id AS what FROM battery_plan WHERE from_at % 1800000000 <> 0`,
	)
)

// BatteryPlan is the plan of a battery, with the inputs that it was computed from. Its FromAt
// is zero if there never was one.
type BatteryPlan struct {
	From  flex.Period
	Modes string // a code for each half-hour, as control writes it
	// a code for each half-hour from CommittedFrom on that an earlier plan committed. The
	// columns are handed_at and handed.
	CommittedFrom time.Time
	Committed     string
	PlannedAt     time.Time
	ChangedAt     time.Time
	// the end of the last dispatch that was sent; zero if none was
	DispatchedTo time.Time
	StoredAt     flex.Period
	Stored       flex.WattHours // at the start of StoredAt
	ForecastFrom flex.Period
	Forecast     string // the guessed load and roof, as control writes it
	Read         PlanRead
	// Without is the power in each half-hour from StoredAt on, as planned without market
	// prices.
	Without []flex.Watts
	// Powers is the power in each half-hour from StoredAt on, as planned; positive fills the
	// battery.
	Powers []flex.Watts
	// AskedTo is the end of the last dispatch that is not from the plan; zero if there never
	// was one.
	AskedTo time.Time
	// Refused reports whether the check before sending locked half-hours of the plan that
	// would have exceeded a limit of the site.
	Refused bool
	// May is what the battery may do in each half-hour from StoredAt on: charge (c), discharge
	// (d), both (b) or neither (-). It is written with the plan, and read by EnvelopeBatteries
	// only.
	May string
	// ReadAt is the mark, as it was read, that a state of charge has come in and is to be
	// compared with the plan; zero for none.
	ReadAt time.Time
}

// PlanRead is the data of the site's boundary meter that a plan's forecast was made from; zero
// if there was none.
type PlanRead struct {
	Device flex.AssetID // that reported the boundary
	Labels []flex.Label
	Spans  []flex.Span // of the half-hours, in order
	// energies from other devices at the boundary, of half-hours for which the first has none;
	// these have no further ones in turn
	Others []PlanRead
}

// Battery holds everything that planning a home battery depends on, except prices and
// readings.
type Battery struct {
	Asset flex.Asset
	// nil if none is recorded or it is not in the catalogue
	Model      *flex.Model
	SiteTariff flex.SiteTariff
	Tariff     *flex.Tariff // nil if none was ever sent
	// its site has consented to full schedule control and has not withdrawn from it, and it is
	// not excluded
	Controlled bool
	Excluded   bool // an operator took it out of control
	Consented  bool // to the use of the boundary meter
	Plan       BatteryPlan
}

// Power returns the battery's power, its own or its model's; 0 if neither is known.
func (b *Battery) Power() flex.Watts {
	if b.Asset.Power != nil {
		return *b.Asset.Power
	}
	if b.Model != nil && b.Model.Power != nil {
		return *b.Model.Power
	}

	return 0
}

// Wiring returns how the battery is connected to the phases of its site.
func (b *Battery) Wiring() flex.Wiring { return b.Asset.WiringAt(new(b.Power())) }

// Capacity returns the battery's capacity, its own or its model's; 0 if neither is known.
func (b *Battery) Capacity() flex.WattHours {
	if b.Asset.Capacity != nil {
		return *b.Asset.Capacity
	}
	if b.Model != nil && b.Model.Capacity != nil {
		return *b.Model.Capacity
	}

	return 0
}

// Battery returns a battery of the organisation. Any other asset is a NotFound failure; a plan that cannot be parsed is ErrUnreadable.
func (tx *Tx) Battery(
	ctx context.Context,
	id flex.AssetID,
) (Battery, error) {
	return readOnce(tx, "battery", id, func() (Battery, error) {
		return tx.battery(ctx, id)
	})
}

func (tx *Tx) battery(
	ctx context.Context,
	id flex.AssetID,
) (Battery, error) {
	var (
		b   Battery
		err error
	)

	b.Asset, err = tx.Asset(ctx, id)
	if err != nil {
		return b, err
	}

	if b.Asset.Type != flex.Battery {
		return b, flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	var r inputsRow
	var typ, cheapStart, cheapEnd string
	var rates flex.TariffRates
	err = tx.row(
		ctx,
		`SELECT t.tariff_type, t.cheap_start, t.cheap_end, t.rates, t.consent_at IS NOT NULL, `+
			controlled+`, a.excluded_at IS NOT NULL, `+inputsColumns+
			`
		FROM asset a JOIN site t ON t.id = a.site_id LEFT JOIN inputs i ON i.asset_id = a.id
		WHERE a.org_id = $1 AND a.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	).
		Scan(append(
			[]any{&typ, &cheapStart, &cheapEnd, ratesText{&rates}, &b.Consented, &b.Controlled, &b.Excluded},
			r.dest()...,
		)...)

	if err != nil {
		return b, err
	}

	b.Tariff = r.inputs().Tariff
	b.SiteTariff = siteTariff(typ, cheapStart, cheapEnd, rates)

	if b.Asset.Model != "" {
		b.Model, err = tx.Model(ctx, b.Asset.Model)
		if err != nil {
			return b, err
		}
	}

	b.Plan, err = tx.batteryPlan(ctx, id)

	return b, err
}

func (tx *Tx) batteryPlan(
	ctx context.Context,
	id flex.AssetID,
) (BatteryPlan, error) {
	var from, stored, guess time.Time
	var without, planned, read string
	var p BatteryPlan
	err := tx.row(
		ctx,
		`SELECT from_at, modes, planned_at, changed_at, told_at, stored_at, stored_wh, guess_at, guess, guess_read, without_market, planned_w, refused, handed_at, handed, asked_to, read_at
		FROM battery_plan WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	).
		Scan(
			instant{&from},
			&p.Modes,
			instant{&p.PlannedAt},
			instant{&p.ChangedAt},
			instant{&p.DispatchedTo},
			instant{&stored},
			&p.Stored,
			instant{&guess},
			&p.Forecast,
			&read,
			&without,
			&planned,
			&p.Refused,
			instant{&p.CommittedFrom},
			&p.Committed,
			instant{&p.AskedTo},
			instant{&p.ReadAt},
		)

	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}

	if err != nil {
		return p, err
	}

	p.From = flex.PeriodAt(from)
	p.StoredAt = flex.PeriodAt(stored)
	p.ForecastFrom = flex.PeriodAt(guess)
	err = p.decode(read, without, planned)

	return p, unreadable(err)
}

// decode reads the texts of the plan's row. StoredAt must be set.
func (p *BatteryPlan) decode(read, without, planned string) error {
	var err error
	p.Read, err = decodePlanRead(read)
	if err != nil {
		return err
	}

	p.Without, err = readWatts(without)
	if err != nil {
		return err
	}

	p.Powers, err = readPowers(p.StoredAt, planned)

	return err
}

// PutBatteryPlan stores the plan of a battery in place of the one before. It sets PlannedAt.
// AskedTo is stored with a battery's first plan only, and updated by AddDispatch afterwards.
// The mark ReadAt is removed as by RecordBatteryCheck.
func (tx *Tx) PutBatteryPlan(
	ctx context.Context,
	id flex.AssetID,
	p BatteryPlan,
) error {
	read, err := encodePlanRead(p.Read)
	if err != nil {
		return err
	}

	row := []value{
		{"asset_id", id.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"from_at", micros(p.From.Start())},
		{"modes", p.Modes},
		{"planned_at", micros(tx.now)},
		{"changed_at", micros(p.ChangedAt)},
		{"told_at", micros(p.DispatchedTo)},
		{"stored_at", micros(p.StoredAt.Start())},
		{"stored_wh", int64(p.Stored)},
		{"guess_at", micros(p.ForecastFrom.Start())},
		{"guess", p.Forecast},
		{"seen_at", micros(tx.db.Now())},
		{"without_market", writeWatts(p.Without)},
		{"planned_w", writePowers(p.StoredAt, p.Powers)},
		{"guess_read", read},
		{"refused", p.Refused},
		{"may", writeMay(p.StoredAt, p.May)},
		{"handed_at", micros(p.CommittedFrom)},
		{"handed", p.Committed},
		{"asked_to", micros(p.AskedTo)},
		{"read_at", micros(p.ReadAt)},
	}

	_, err = tx.upsert(ctx, "battery_plan", row, rewrite{
		key:  []string{"asset_id"},
		keep: []string{"org_id", "asked_to", "read_at"},
		also: `again = FALSE, read_at = CASE WHEN battery_plan.read_at = excluded.read_at THEN NULL ELSE battery_plan.read_at END`,
		only: `battery_plan.org_id = excluded.org_id`,
	})

	return err
}

// plannedBeforePrices is the SQL condition that the plan p of a battery or a tank is older
// than prices that are known at $3. The subqueries are evaluated once, as they do not depend
// on the plan.
const plannedBeforePrices = `p.planned_at < (SELECT max(published_at) FROM publication WHERE published_at <= $3)
				OR p.seen_at < (SELECT max(fetched_at) FROM publication WHERE published_at <= $3)`

// BatteriesDue returns batteries under control whose plan is to be computed again: there is
// none, the last is of an earlier half-hour, a limit of the site or of its feeder's export has
// changed, or prices, the tariff or a solar forecast have come in since.
func (tx *Tx) BatteriesDue(
	ctx context.Context,
	limit int,
) ([]flex.AssetID, error) {
	return rows(
		ctx,
		tx.conn,
		scalar[flex.AssetID],
		`
		SELECT a.id FROM asset a LEFT JOIN battery_plan p ON p.asset_id = a.id LEFT JOIN inputs i ON i.asset_id = a.id
			LEFT JOIN solar s ON s.site_id = a.site_id
		WHERE a.org_id = $1 AND a.type = 'battery' AND `+controlled+`
			AND (p.asset_id IS NULL OR p.again OR p.planned_at < $2 OR i.tariff_at > p.planned_at OR s.given_at > p.planned_at
				OR `+plannedBeforePrices+`)
		ORDER BY a.id LIMIT $4`,
		tx.org.Bytes(),
		micros(flex.PeriodAt(tx.now).Start()),
		micros(tx.now),
		limit,
	)
}

// RefusedBatteries returns the batteries under control, of one organisation or of all, with
// half-hours of their plans that the check before sending locked.
func (all *All) RefusedBatteries(
	ctx context.Context,
	org flex.OrgID,
) ([]flex.AssetID, error) {
	text := `SELECT a.id FROM battery_plan p JOIN asset a ON a.id = p.asset_id
		WHERE p.refused AND ` + controlled
	var args []any
	if !org.IsZero() {
		text, args = text+` AND p.org_id = $1`, append(args, org.Bytes())
	}

	return rows(
		ctx,
		all.conn,
		scalar[flex.AssetID],
		text+` ORDER BY a.id`,
		args...,
	)
}

// MarkBatteries has the batteries of a site planned again at once.
func (tx *Tx) MarkBatteries(ctx context.Context, site flex.SiteID) error {
	n, err := tx.exec(
		ctx,
		`UPDATE battery_plan SET again = TRUE WHERE org_id = $1 AND asset_id IN
			(SELECT id FROM asset WHERE org_id = $1 AND site_id = $2)`,
		tx.org.Bytes(),
		site.Bytes(),
	)

	if n > 0 {
		tx.Wake(WakeControl)
	}

	return err
}

// MarkRead marks batteries whose state of charge has come in to be checked, and tanks to be
// planned again.
func (tx *Tx) MarkRead(
	ctx context.Context,
	batteries ...flex.AssetID,
) error {
	batteries = inIDOrder(batteries)
	if err := tx.markTanks(ctx, batteries); err != nil {
		return err
	}

	for chunk := range slices.Chunk(batteries, outboxChunk) {
		ids, args := in([]any{tx.org.Bytes(), micros(tx.now)}, chunk)
		n, err := tx.exec(
			ctx,
			`UPDATE battery_plan SET read_at = $2 WHERE org_id = $1 AND asset_id IN `+ids,
			args...,
		)
		if err != nil {
			return err
		}

		if n > 0 {
			tx.Wake(WakeControl)
		}
	}

	return nil
}

// BatteriesRead returns batteries under control whose state of charge has come in since their
// plan was checked against it. A battery that was planned again for that reason is left out
// for a while.
func (tx *Tx) BatteriesRead(
	ctx context.Context,
	rest time.Duration,
	limit int,
) ([]flex.AssetID, error) {
	return rows(ctx, tx.conn, scalar[flex.AssetID], `
		SELECT a.id FROM asset a JOIN battery_plan p ON p.asset_id = a.id
		WHERE a.org_id = $1 AND p.org_id = $1 AND p.read_at IS NOT NULL AND (p.strayed_at IS NULL OR p.strayed_at <= $2) AND `+controlled+`
		ORDER BY a.id LIMIT $3`,
		tx.org.Bytes(), micros(tx.now.Add(-rest)), limit)
}

// RecordBatteryCheck records that the plan was checked against the state of charge and stays in
// force. It removes the mark that was read with the plan. A mark that was set since stays,
// even if its instant is earlier: the transaction that set it began earlier and was committed
// later.
func (tx *Tx) RecordBatteryCheck(ctx context.Context, id flex.AssetID, found *BatteryPlan) error {
	_, err := tx.exec(
		ctx,
		`UPDATE battery_plan SET read_at = NULL WHERE org_id = $1 AND asset_id = $2 AND read_at = $3`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(found.ReadAt),
	)

	return err
}

// RecordBatteryOffPlan records that the battery was planned again because of its state of charge.
func (tx *Tx) RecordBatteryOffPlan(ctx context.Context, id flex.AssetID) error {
	_, err := tx.exec(
		ctx,
		`UPDATE battery_plan SET strayed_at = $3 WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
	)

	return err
}
