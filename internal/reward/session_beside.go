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

// A charger and the car at it may both be assets of a site, and both may have readings. In a
// half-hour that both have read, the energy that they have in common counts once, at the
// charger, in whatever order the readings arrive. A site's cars count for what they took
// beyond its chargers.

// countedAtChargers returns how much of a car's half-hours counts at the chargers of its site,
// as it was known at an instant, or now. It is nil if the site has no such chargers.
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
	for id, ofAsset := range byAsset {
		sum := chargers
		if ofAsset[0].Kind == flex.ElectricVehicle {
			sum = cars
			if compareIDs(id, r.AssetID) > 0 {
				continue // it counts after this one
			}
		}

		if err := addChargerEnergy(ctx, tx, r, ofAsset, sum, knownAt); err != nil {
			return nil, err
		}
	}

	counted := map[flex.Period]flex.WattHours{}
	for p, energy := range chargers {
		if e, read := energyIn(own, p); read {
			counted[p] = e - beyondChargers(cars[p], e, energy)
		}
	}

	return counted, nil
}

// beyondChargers returns how much of its energy a car took beyond the chargers, given the
// energy of the cars that come before it by id.
func beyondChargers(before, own, chargers flex.WattHours) flex.WattHours {
	return max(0, before+own-chargers) - max(0, before-chargers)
}

// addChargerEnergy adds the energy of another asset, given its sessions, to the half-hours of a
// session.
func addChargerEnergy(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	sessions []store.SessionSettlement,
	sum map[flex.Period]flex.WattHours,
	knownAt time.Time,
) error {
	periods, q := sessionQuery(r)
	q.Assets, q.KnownAt = []flex.AssetID{sessions[0].AssetID}, knownAt
	rs, err := tx.Readings(ctx, q)
	if err != nil || len(rs) == 0 {
		return err
	}

	days, err := meteredDays(ctx, tx, sessions[0], rs, knownAt)
	carPeriods := map[flex.Period]bool{}
	for i := range sessions {
		own, _ := ownPeriods(&sessions[i])
		for _, p := range own {
			carPeriods[p] = true
		}
	}

	for _, p := range periods {
		if e, read := energyIn(days, p); read && carPeriods[p] {
			sum[p] += e
		}
	}

	return err
}

// totalBoughtBack returns the energy of a session that is not credited because it replaces
// energy that was exported: by its own car, and, at a charger, by cars of its site that
// exported by schedules of their own, up to the energy that the charger delivered.
func totalBoughtBack(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	knownAt time.Time,
) (flex.WattHours, error) {
	total := boughtBack(r)
	if !r.Paired || r.Kind != flex.Charger {
		return total, nil
	}

	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil {
		return 0, err
	}

	remaining := map[flex.SessionID]flex.WattHours{}
	for i := range sessions {
		car := &sessions[i]
		if car.Kind != flex.ElectricVehicle || car.Given == 0 {
			continue
		}

		part, err := boughtBackAt(ctx, tx, r.SessionID, car, remaining, knownAt)
		if err != nil {
			return 0, err
		}

		total += part
	}

	return total, nil
}

// boughtBackAt returns how much of the energy that a car bought back is subtracted from one
// session of a charger. What exceeds the car's own credit is subtracted from the chargers'
// sessions beside it, one after the other, so that it is subtracted once. The energy that
// remains of these sessions, for this car and the cars after it, is recorded in remaining.
func boughtBackAt(
	ctx context.Context,
	tx *store.Tx,
	charger flex.SessionID,
	car *store.SessionSettlement,
	remaining map[flex.SessionID]flex.WattHours,
	knownAt time.Time,
) (flex.WattHours, error) {
	own, err := countedEnergy(ctx, tx, car, knownAt)
	rest := max(0, boughtBack(car)-own)
	if err != nil || rest == 0 {
		return 0, err
	}

	chargers, err := otherChargers(ctx, tx, car)
	if err != nil {
		return 0, err
	}

	var part flex.WattHours
	for i := range chargers {
		s := &chargers[i]
		if _, known := remaining[s.SessionID]; !known {
			discharged, err := countedEnergy(ctx, tx, s, knownAt)
			if err != nil {
				return 0, err
			}
			remaining[s.SessionID] = max(0, discharged-boughtBack(s))
		}

		used := min(rest, remaining[s.SessionID])
		remaining[s.SessionID] -= used
		rest -= used

		if s.SessionID == charger {
			part = used
		}
	}

	return part, nil
}

// otherChargers returns the chargers' sessions beside a car's, the one with the longest
// overlap first. A session that ended shortly before the car came, or began shortly after,
// belongs to other cars.
func otherChargers(
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

// countedEnergy returns the energy that counts in a session's half-hours that are read, before
// energy that was bought back is subtracted.
func countedEnergy(
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

// resettleOverlapping marks sessions beside one that was settled to be settled again. Sessions
// of cars that count after it are marked, because its readings may change their credit even if
// its own credit stays. If the car exported, the chargers' sessions are marked too when its
// own credit has changed, or when theirs differ from their current energy, because they carry
// what the car's credit does not. The chargers' results do not change the car's, so that this
// ends.
func resettleOverlapping(
	ctx context.Context,
	tx *store.Tx,
	r *store.SessionSettlement,
	changed bool,
) error {
	sessions, err := tx.SessionsBeside(ctx, r)
	if err != nil {
		return err
	}

	var overlapping []flex.SessionID
	for i := range sessions {
		s := &sessions[i]
		before := r.Kind != flex.ElectricVehicle || compareIDs(r.AssetID, s.AssetID) < 0
		after := s.Kind == flex.ElectricVehicle && before

		bears := s.Kind == flex.Charger && r.Given > 0
		if bears && !changed {
			bears, err = creditDiffers(ctx, tx, s)
			if err != nil {
				return err
			}
		}

		if after || bears {
			overlapping = append(overlapping, s.SessionID)
		}
	}

	return tx.SettleAgain(ctx, overlapping)
}

// creditDiffers reports whether a session was credited with another energy than its readings
// give now. A session that was not credited yet is settled anyway.
func creditDiffers(
	ctx context.Context,
	tx *store.Tx,
	s *store.SessionSettlement,
) (bool, error) {
	if s.Posted == 0 {
		return false, nil
	}

	// The readings must be read as the session's settlement reads them. If the two differed,
	// each session would have the other settled for ever.
	readings, err := tx.ReadingsEach(ctx, sessionQueries([]store.SessionSettlement{*s}))
	if err != nil {
		return false, err
	}

	energy, _, _, err := charged(ctx, tx, *s, readings[0])

	return energy != s.PostedWh, err
}
