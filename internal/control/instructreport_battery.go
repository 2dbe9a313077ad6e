package control

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// calledPowers are the readings of the power of the batteries and heaters among the called
// assets in a span, each one's in order. More than a report is made of are Malformed.
func calledPowers(
	ctx context.Context,
	tx *store.Tx,
	was []store.Called,
	span flex.Span,
) (map[flex.AssetID][]flex.Reading, error) {
	q := store.ReadingQuery{
		Labels: []flex.Label{flex.BatteryInverterPower, flex.HeatPower},
		Within: span,
	}

	for i := range was {
		if was[i].Battery || was[i].Heater {
			q.Assets = append(q.Assets, was[i].AssetID)
		}
	}

	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	found, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read what inverters and heaters measured: %w", err)
	}

	if len(found) > reportMost {
		return nil, flex.Fail(
			flex.Malformed,
			"there are more than %d readings of inverters and heaters in the time: ask for the half-hours",
			reportMost,
		)
	}

	return readingsByAsset(found), nil
}

// readingsByAsset are the readings of each asset by when they begin.
func readingsByAsset(readings []flex.Reading) map[flex.AssetID][]flex.Reading {
	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range readings {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	for _, own := range by {
		slices.SortFunc(own, func(a, b flex.Reading) int {
			return a.From.Compare(b.From)
		})
	}

	return by
}

// inverterEnergy is what an inverter's readings say of spans that follow each other.
func inverterEnergy(readings []flex.Reading) func(flex.Span) (charge.Joules, bool) {
	return func(span flex.Span) (charge.Joules, bool) {
		for len(readings) > 0 && !readings[0].To.After(span.From) {
			readings = readings[1:]
		}

		return instruct.MeteredPower(readings, span)
	}
}
