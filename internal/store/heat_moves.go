package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

// HeatMovesLongest is the longest window, in half-hours, for which it is stored what a heater
// could have moved.
const HeatMovesLongest = 8

// HeatMoves is by how much a heater could have drawn less, and more, than planned in the
// windows that begin with a half-hour: of one half-hour, of two, and so on.
type HeatMoves struct {
	Less []flex.WattHours
	More []flex.WattHours
}

// HeatDay is the energy that a heater could have moved on a day, by the numbers of its
// half-hours from 1 on.
type HeatDay struct {
	AssetID flex.AssetID
	Day     flex.Day
	Moves   map[int]HeatMoves
}

// text returns the moves of a half-hour as they are stored; empty for none.
func (m *HeatMoves) text(number int) string {
	if m == nil {
		return ""
	}

	return fmt.Sprintf(
		"%d/%s/%s",
		number,
		writeMoves(m.Less),
		writeMoves(m.More),
	)
}

// writeMoves writes energies, without those at the end that are as the one before them.
func writeMoves(all []flex.WattHours) string {
	n := len(all)
	for n > 1 && all[n-1] == all[n-2] {
		n--
	}

	var parts []string
	for _, e := range all[:n] {
		parts = append(parts, strconv.FormatInt(int64(e), 10))
	}

	return strings.Join(parts, ",")
}

// readMoves reads what writeMoves wrote, up to the longest window.
func readMoves(text string) ([]flex.WattHours, error) {
	var all []flex.WattHours
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(all) == HeatMovesLongest {
			return nil, fmt.Errorf("%w: %q is no list of energies", ErrUnreadable, text)
		}

		all = append(all, flex.WattHours(n))
	}

	for len(all) < HeatMovesLongest {
		all = append(all, all[len(all)-1])
	}

	return all, nil
}

// EachHeatDay calls fn with each stored HeatDay in a span of the tanks and heat pumps of a
// scope, by day and id: of all of them or, if any are named, of those.
func (tx *Tx) EachHeatDay(
	ctx context.Context,
	scope flex.Scope,
	span flex.Span,
	only []flex.AssetID,
	fn func(*HeatDay),
) error {
	where, args, err := tx.scopeWhere(ctx, scope, []any{
		tx.org.Bytes(),
		micros(span.From),
		micros(span.To),
	})
	if err != nil {
		return err
	}

	if len(only) > 0 {
		var list string
		list, args = in(args, only)
		where += ` AND s.id IN ` + list
	}

	read := func(s scanner) error {
		d, err := scanHeatDay(s)
		if err == nil {
			fn(&d)
		}

		return err
	}

	return eachRow(ctx, tx.conn, read, `SELECT s.id, b.from_at, b.moves
		FROM heat_day b JOIN (SELECT a.id, a.site_id, a.org_id FROM asset a WHERE a.org_id = $1 AND a.type IN (`+heatTypes+`)) s ON s.id = b.asset_id
		WHERE b.org_id = $1 AND b.from_at >= $2 AND b.from_at < $3 AND b.moves <> ''`+where+` ORDER BY b.from_at, s.id`, args...)
}

func scanHeatDay(s scanner) (HeatDay, error) {
	var from time.Time
	var text string
	d := HeatDay{Moves: map[int]HeatMoves{}}
	err := s.Scan(
		&d.AssetID,
		instant{&from},
		&text,
	)
	if err != nil {
		return d, err
	}

	d.Day = flex.DayAt(from)
	for part := range strings.FieldsSeq(text) {
		if err := d.read(part); err != nil {
			return d, fmt.Errorf("heater %v on %v: %w", d.AssetID, d.Day, err)
		}
	}

	return d, nil
}

// read reads a half-hour; of two of one number the first counts.
func (d *HeatDay) read(text string) error {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return fmt.Errorf("%w: %q is no half-hour", ErrUnreadable, text)
	}

	number, err := strconv.Atoi(parts[0])
	if err != nil {
		return fmt.Errorf("%w: %q is no half-hour", ErrUnreadable, text)
	}

	less, err := readMoves(parts[1])
	if err != nil {
		return err
	}

	more, err := readMoves(parts[2])
	if err != nil {
		return err
	}

	if _, twice := d.Moves[number]; !twice {
		d.Moves[number] = HeatMoves{
			Less: less,
			More: more,
		}
	}

	return nil
}
