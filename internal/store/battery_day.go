package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/engine/home"
	"flexd/internal/flex"
)

// BatteryDaysKept is how many days of each battery are kept: as many as evidence is asked for
// at once.
const BatteryDaysKept = 400

// BatteryDay is what a home battery held and was to do on a day. A half-hour in which it was
// not planned is missing.
type BatteryDay struct {
	AssetID flex.AssetID
	home.Battery
	Day       flex.Day
	HalfHours []BatteryHalfHour
}

// BatteryHalfHour is a half-hour of a battery as it was planned first.
type BatteryHalfHour struct {
	Number int             // of the day, from 1
	Stored flex.WattHours  // at its start
	Power  flex.Watts      // planned without instructions; below zero it gives
	May    BatteryMovement // beside its plan
}

// BatteryMovement is what a battery may do: charge (c), discharge (d), both (b) or neither (-).
type BatteryMovement byte

// Charges reports whether it may charge.
func (m BatteryMovement) Charges() bool { return m == 'b' || m == 'c' }

// Discharges reports whether it may discharge.
func (m BatteryMovement) Discharges() bool { return m == 'b' || m == 'd' }

// AddBatteryHalfHour stores a half-hour of a battery; its number is that of the period. Of two
// of one half-hour the first counts.
func (tx *Tx) AddBatteryHalfHour(
	ctx context.Context,
	id flex.AssetID,
	at flex.Period,
	h BatteryHalfHour,
) error {
	day := flex.DayAt(at.Start())
	number := at.Sub(day.Period(1)) + 1
	_, err := tx.exec(
		ctx,
		`INSERT INTO battery_day (asset_id, from_at, org_id, half_hours) VALUES ($1, $2, $3, $4)
		ON CONFLICT (asset_id, from_at) DO UPDATE SET half_hours = battery_day.half_hours || ' ' || excluded.half_hours
		WHERE battery_day.org_id = excluded.org_id`,
		id.Bytes(),
		micros(day.Start()),
		tx.org.Bytes(),
		fmt.Sprintf("%d/%d/%d/%c", number, h.Stored, h.Power, h.May),
	)
	if err != nil || number != 1 {
		return err
	}

	_, err = tx.exec(
		ctx,
		`DELETE FROM battery_day WHERE asset_id = $1 AND from_at < $2 AND org_id = $3`,
		id.Bytes(),
		micros(day.Add(-BatteryDaysKept).Start()),
		tx.org.Bytes(),
	)

	return err
}

// EachBatteryDay calls fn with each day of a span of each battery of a scope, by day and id.
func (tx *Tx) EachBatteryDay(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	fn func(*BatteryDay),
) error {
	where, args, err := tx.scopeWhere(ctx, scope, []any{
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	})
	if err != nil {
		return err
	}

	read := func(s scanner) error {
		b, err := scanBatteryDay(s)
		if err == nil {
			fn(&b)
		}
		return err
	}

	return eachRow(ctx, tx.conn, read, `SELECT s.id, s.power_w, s.capacity_wh, b.from_at, b.half_hours
		FROM battery_day b JOIN (SELECT a.id, a.site_id, a.org_id, COALESCE(a.power_w, m.power_w, 0) AS power_w, COALESCE(a.capacity_wh, m.capacity_wh, 0) AS capacity_wh
			FROM asset a LEFT JOIN model m ON m.key = `+modelKeySQL+` WHERE a.org_id = $1 AND a.type = 'battery') s ON s.id = b.asset_id
		WHERE b.org_id = $1 AND b.from_at >= $2 AND b.from_at < $3`+where+` ORDER BY b.from_at, s.id`, args...)
}

func scanBatteryDay(s scanner) (BatteryDay, error) {
	var from time.Time
	var text string
	var b BatteryDay
	err := s.Scan(
		&b.AssetID,
		&b.Power,
		&b.Capacity,
		instant{&from},
		&text,
	)
	if err != nil {
		return b, err
	}

	b.Day = flex.DayAt(from)
	for part := range strings.FieldsSeq(text) {
		h, err := readBatteryHalfHour(part)
		if err != nil {
			return b, fmt.Errorf("battery %v on %v: %w", b.AssetID, b.Day, err)
		}
		b.HalfHours = append(b.HalfHours, h)
	}

	return b, nil
}

// readBatteryHalfHour reads a half-hour as AddBatteryHalfHour writes it.
func readBatteryHalfHour(text string) (BatteryHalfHour, error) {
	var h BatteryHalfHour
	var numbers [3]int64
	rest := text
	for i := range numbers {
		part, after, _ := strings.Cut(rest, "/")
		n, err := strconv.ParseInt(
			part,
			10,
			64,
		)
		if err != nil {
			return h, fmt.Errorf("%w: %q is no half-hour", ErrUnreadable, text)
		}
		numbers[i] = n
		rest = after
	}

	if len(rest) != 1 {
		return h, fmt.Errorf("%w: %q is no half-hour", ErrUnreadable, text)
	}

	h.Number = int(numbers[0])
	h.Stored = flex.WattHours(numbers[1])
	h.Power = flex.Watts(numbers[2])
	h.May = BatteryMovement(rest[0])

	return h, nil
}
