package store

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
)

// BatteryDraw is the power that a battery is expected to have for a time, by its plan or by a
// dispatch.
type BatteryDraw struct {
	Asset flex.AssetID
	flex.Span
	Power flex.Watts // positive fills it
}

// batteryPowers is what a battery's plan expects of each half-hour.
type batteryPowers struct {
	asset flex.AssetID
	from  flex.Period
	each  []flex.Watts
}

// BatteryDraws returns the power of the organisation's batteries in a span. What a dispatch
// asks for counts in place of the plan of its time. A plan that cannot be read is left out,
// and logged.
func (tx *Tx) BatteryDraws(
	ctx context.Context,
	span flex.Span,
	orders []BatteryOrder,
) ([]BatteryDraw, error) {
	asked := map[flex.AssetID][]flex.Span{}
	var draws []BatteryDraw

	for _, o := range orders {
		asked[o.Asset] = append(asked[o.Asset], o.Span)
		draws = append(draws, BatteryDraw{o.Asset, o.Span, o.Power})
	}

	plans, err := tx.batteryPowers(ctx, span)
	for i := range plans {
		for n, power := range plans[i].each {
			half := plans[i].from.Add(n).Span().Meet(span)
			if power == 0 || half.Empty() {
				continue
			}

			for _, left := range outside(half, asked[plans[i].asset]) {
				draws = append(draws, BatteryDraw{plans[i].asset, left, power})
			}
		}
	}

	return draws, err
}

// outside is what is left of a span without others.
func outside(span flex.Span, taken []flex.Span) []flex.Span {
	left := []flex.Span{span}
	for _, t := range taken {
		var rest []flex.Span
		for _, s := range left {
			rest = append(
				rest,
				flex.Span{From: s.From, To: flex.Earlier(s.To, t.From)},
				flex.Span{From: flex.Later(s.From, t.To), To: s.To},
			)
		}

		left = slices.DeleteFunc(rest, flex.Span.Empty)
	}

	return left
}

// batteryPowers reads the plans of the batteries under control that may reach into a span.
func (tx *Tx) batteryPowers(
	ctx context.Context,
	span flex.Span,
) ([]batteryPowers, error) {
	var left leftOut
	plans, err := rows(
		ctx,
		tx.conn,
		func(s scanner) (batteryPowers, error) {
			var p batteryPowers
			var from time.Time
			var text string

			err := s.Scan(&p.asset, instant{&from}, &text)
			if err != nil {
				return p, err
			}

			p.from = flex.PeriodAt(from)
			p.each, err = readPowers(p.from, text)
			if err != nil {
				left.add(p.asset, err)
			}

			return p, nil
		},
		`SELECT p.asset_id, p.stored_at, p.planned_w FROM battery_plan p JOIN asset a ON a.id = p.asset_id
		WHERE p.org_id = $1 AND p.planned_w <> '' AND p.stored_at < $2 AND `+controlled,
		tx.org.Bytes(),
		micros(span.To),
	)

	left.log(ctx, tx.conn)

	return plans, err
}

// writePowers writes what is planned of each half-hour from one on, which comes first: a
// program that does not know the column leaves it as it is beside a newer plan.
func writePowers(from flex.Period, each []flex.Watts) string {
	if len(each) == 0 {
		return ""
	}
	return writeWatts(append([]flex.Watts{flex.Watts(from.Start().Unix())}, each...))
}

// readPowers reads what writePowers wrote: nothing if it was written for another half-hour.
func readPowers(from flex.Period, text string) ([]flex.Watts, error) {
	each, err := readWatts(text)
	if len(each) == 0 || each[0] != flex.Watts(from.Start().Unix()) {
		return nil, err
	}

	return each[1:], err
}
