package reward

import (
	"cmp"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// A charger and the car at it may both be assets of a site, and both be read. What both tell of a
// half-hour is the same energy, as far as it goes, whose-ever readings come first: it counts once, at
// the charger. A site's cars count for what they took beyond its chargers.

// countedAtChargers returns how much of a car's half-hours counts at the chargers of its site, as it was known
// at an instant, or now. It is nil where there are none.
func countedAtChargers(
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

	left := map[flex.SessionID]flex.WattHours{}
	for i := range sessions {
		car := &sessions[i]
		if car.Kind != flex.ElectricVehicle || car.Given == 0 {
			continue
		}

		part, err := boughtBackAt(ctx, tx, r.SessionID, car, left, knownAt)
		if err != nil {
			return 0, err
		}

		back += part
	}

	return back, nil
}

// boughtBackAt is how much of what a car bought back is taken off one session of a charger: what the car's own credit does not
// bear, off the chargers' sessions beside it one after the other, so that it is taken off once. What is left of these, for
// the car and the cars after it, is noted in left.
func boughtBackAt(
	ctx context.Context,
	tx *store.Tx,
	charger flex.SessionID,
	car *store.SessionSettlement,
	left map[flex.SessionID]flex.WattHours,
	knownAt time.Time,
) (flex.WattHours, error) {
	own, err := counted(ctx, tx, car, knownAt)
	rest := max(0, boughtBack(car)-own)
	if err != nil || rest == 0 {
		return 0, err
	}

	chargers, err := chargersBeside(ctx, tx, car)
	if err != nil {
		return 0, err
	}

	var part flex.WattHours
	for i := range chargers {
		s := &chargers[i]
		if _, known := left[s.SessionID]; !known {
			given, err := counted(ctx, tx, s, knownAt)
			if err != nil {
				return 0, err
			}
			left[s.SessionID] = max(0, given-boughtBack(s))
		}

		taken := min(rest, left[s.SessionID])
		left[s.SessionID] -= taken
		rest -= taken

		if s.SessionID == charger {
			part = taken
		}
	}

	return part, nil
}

// chargersBeside are the chargers' sessions beside a car's, the one that it ran with for the longest first: a session that ended
// shortly before the car came, or began shortly after, has cars of its own.
func chargersBeside(
	ctx context.Context,
	tx *store.Tx,
	car *store.SessionSettlement,
) ([]store.SessionSettlement, error) {
	sessions, err := tx.SessionsBeside(ctx, car)
	chargers := slices.DeleteFunc(sessions, func(s store.SessionSettlement) bool {
		return s.Kind != flex.Charger
	})

	slices.SortStableFunc(chargers, func(a, b store.SessionSettlement) int {
		return cmp.Compare(car.Meet(b.Span).Len(), car.Meet(a.Span).Len())
	})

	return chargers, err
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

	others, err := countedAtChargers(ctx, tx, r, days, knownAt)

	var sum flex.WattHours
	for _, p := range periods {
		if e, read := energyIn(days, p); read {
			sum += e - others[p]
		}
	}

	return sum, err
}

// besideAgain has the sessions of a site's other cars settled again that ran beside one which was settled, and
// count after it. What is read of it may change their credit where its own stays. Of a car that gave the chargers' are settled
// again too where its own credit is new, or theirs is not what they come to now: they bear what it does not. Theirs change
// nothing of it, so that this ends.
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
	for i := range sessions {
		s := &sessions[i]
		before := r.Kind != flex.ElectricVehicle || compareIDs(r.AssetID, s.AssetID) < 0
		after := s.Kind == flex.ElectricVehicle && before

		bears := s.Kind == flex.Charger && r.Given > 0
		if bears && !changed {
			bears, err = creditedOtherwise(ctx, tx, s)
			if err != nil {
				return err
			}
		}

		if after || bears {
			again = append(again, s.SessionID)
		}
	}

	return tx.SettleAgain(ctx, again)
}

// creditedOtherwise reports whether a session was credited with another energy than it comes to now. One that was not is looked
// at by itself.
func creditedOtherwise(
	ctx context.Context,
	tx *store.Tx,
	s *store.SessionSettlement,
) (bool, error) {
	if s.Posted == 0 {
		return false, nil
	}

	// Read as the settlement of the session reads it: the two must not differ, or each had the other settled for ever.
	readings, err := tx.ReadingsEach(ctx, sessionQueries([]store.SessionSettlement{*s}))
	if err != nil {
		return false, err
	}

	energy, _, _, err := charged(ctx, tx, *s, readings[0])

	return energy != s.PostedWh, err
}
