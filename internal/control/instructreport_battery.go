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

// calledPowers returns the power readings of the batteries and heaters among the called assets
// in a span, each asset's in order. More than reportLimit readings are Malformed.
func calledPowers(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
	span flex.Span,
) (map[flex.AssetID][]flex.Reading, error) {
	q := store.ReadingQuery{
		Labels: []flex.Label{flex.BatteryInverterPower, flex.HeatPower},
		Within: span,
	}

	for i := range called {
		if called[i].Battery || called[i].Heater {
			q.Assets = append(q.Assets, called[i].AssetID)
		}
	}

	for day := flex.DayAt(span.From); day.Start().Before(span.To); day = day.Add(1) {
		q.Days = append(q.Days, day)
	}

	found, err := tx.Readings(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read what inverters and heaters measured: %w", err)
	}

	if len(found) > reportLimit {
		return nil, flex.Fail(
			flex.Malformed,
			"there are more than %d readings of inverters and heaters in the time: ask for the half-hours",
			reportLimit,
		)
	}

	return readingsByAsset(found), nil
}

// readingsByAsset returns the readings of each asset in the order of their beginning.
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

// inverterEnergy returns a function for the energy in consecutive spans by the power readings
// of an inverter or heater.
func inverterEnergy(readings []flex.Reading) func(flex.Span) (charge.Joules, bool) {
	return func(span flex.Span) (charge.Joules, bool) {
		for len(readings) > 0 && !readings[0].To.After(span.From) {
			readings = readings[1:]
		}

		return instruct.MeteredPower(readings, span)
	}
}
