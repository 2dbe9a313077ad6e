package reward

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// A charger and the car at it may both be assets of a site, and both be read. What both tell of a
// half-hour is the same energy, as far as it goes, whose-ever readings come first: it counts once, at
// the charger. A site's cars count for what they took beyond its chargers.

// elsewhere returns how much of a car's half-hours counts at the chargers of its site, as it was known
// at an instant, or now. It is nil where there are none.
func elsewhere(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	own []settle.MeteredDay,
	knownAt time.Time,
) (map[flex.Period]flex.WattHours, error) {
	if !r.Paired || r.Kind != flex.ElectricVehicle {
		return nil, nil
	}

	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}

	byAsset := map[flex.AssetID][]store.SessionSettlement{}
	for _, b := range sessions {
		byAsset[b.AssetID] = append(byAsset[b.AssetID], b)
	}

	chargers, cars := map[flex.Period]flex.WattHours{}, map[flex.Period]flex.WattHours{}
	for id, of := range byAsset {
		sum := chargers
		if of[0].Kind == flex.ElectricVehicle {
			sum = cars
			if compareIDs(id, r.AssetID) > 0 {
				continue // it counts after this one
			}
		}

		if err := addBeside(ctx, tx, r, of, sum, knownAt); err != nil {
			return nil, err
		}
	}

	counted := map[flex.Period]flex.WattHours{}
	for p, given := range chargers {
		if e, read := energyIn(own, p); read {
			counted[p] = e - beyond(cars[p], e, given)
		}
	}

	return counted, nil
}

// beyond is what a car took beyond the chargers, after the cars before it.
func beyond(before, own, chargers flex.WattHours) flex.WattHours {
	return max(0, before+own-chargers) - max(0, before-chargers)
}

// addBeside adds what counts of one other asset, of which the sessions are given, in a session's half-hours.
func addBeside(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	of []store.SessionSettlement,
	sum map[flex.Period]flex.WattHours,
	knownAt time.Time,
) error {
	periods, q := sessionQuery(r)
	q.Assets, q.KnownAt = []flex.AssetID{of[0].AssetID}, knownAt
	rs, err := tx.Readings(ctx, q)
	if err != nil || len(rs) == 0 {
		return err
	}

	days, err := meteredDays(ctx, tx, of[0], rs, knownAt)
	theirs := map[flex.Period]bool{}
	for i := range of {
		own, _ := ownPeriods(&of[i])
		for _, p := range own {
			theirs[p] = true
		}
	}

	for _, p := range periods {
		if e, read := energyIn(days, p); read && theirs[p] {
			sum[p] += e
		}
	}

	return err
}

// carsAgain has the sessions of a site's other cars settled again that ran beside one which was settled, and
// count after it. What is read of it may change their credit where its own stays.
func carsAgain(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
) error {
	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil {
		return err
	}

	var cars []flex.SessionID
	for _, s := range sessions {
		before := r.Kind != flex.ElectricVehicle || compareIDs(r.AssetID, s.AssetID) < 0
		if s.Kind == flex.ElectricVehicle && before {
			cars = append(cars, s.SessionID)
		}
	}

	return tx.SettleAgain(ctx, cars)
}
