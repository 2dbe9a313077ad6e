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

// allBoughtBack is what is not credited of a session because it replaces what was given: by its own car, and at a charger
// what cars of its site gave by schedules of their own, as far as these took no more than the chargers gave.
func allBoughtBack(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	knownAt time.Time,
) (flex.WattHours, error) {
	back := boughtBack(r)
	if !r.Paired || r.Kind != flex.Charger {
		return back, nil
	}

	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil {
		return 0, err
	}

	for i := range sessions {
		car := &sessions[i]
		if car.Kind != flex.ElectricVehicle || car.Given == 0 {
			continue
		}

		part, err := boughtBackAt(ctx, tx, r.SessionID, car, knownAt)
		if err != nil {
			return 0, err
		}

		back += part
	}

	return back, nil
}

// boughtBackAt is how much of what a car bought back is taken off one session of a charger: what the car's own credit does not
// bear, off the chargers' sessions beside it one after the other, so that it is taken off once.
func boughtBackAt(
	ctx context.Context,
	tx *store.Tx,
	charger flex.SessionID,
	car *store.SessionSettlement,
	knownAt time.Time,
) (flex.WattHours, error) {
	own, err := counted(ctx, tx, car, knownAt)
	rest := max(0, boughtBack(car)-own)
	if err != nil || rest == 0 {
		return 0, err
	}

	sessions, err := tx.SessionsBeside(ctx, car)
	if err != nil {
		return 0, err
	}

	for i := range sessions {
		s := &sessions[i]
		if s.Kind != flex.Charger {
			continue
		}

		given, err := counted(ctx, tx, s, knownAt)
		if err != nil {
			return 0, err
		}

		part := min(rest, given)
		if s.SessionID == charger {
			return part, nil
		}

		rest -= part
	}

	return 0, nil
}

// counted is what counts of a session's half-hours that are read, before anything that was bought back.
func counted(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	knownAt time.Time,
) (flex.WattHours, error) {
	periods, days, err := sessionReadings(ctx, tx, *r, knownAt)
	if err != nil {
		return 0, err
	}

	others, err := elsewhere(ctx, tx, r, days, knownAt)

	var sum flex.WattHours
	for _, p := range periods {
		if e, read := energyIn(days, p); read {
			sum += e - others[p]
		}
	}

	return sum, err
}

// besideAgain has the sessions of a site's other cars settled again that ran beside one which was settled, and
// count after it. What is read of it may change their credit where its own stays. Of a car that gave, whose own credit is new, the
// chargers' are settled again too: they bear what it does not. Theirs change nothing of it, so that this ends.
func besideAgain(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	changed bool,
) error {
	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil {
		return err
	}

	var again []flex.SessionID
	for _, s := range sessions {
		before := r.Kind != flex.ElectricVehicle || compareIDs(r.AssetID, s.AssetID) < 0
		after := s.Kind == flex.ElectricVehicle && before
		bears := s.Kind == flex.Charger && r.Given > 0
		if after || bears && changed {
			again = append(again, s.SessionID)
		}
	}

	return tx.SettleAgain(ctx, again)
}
