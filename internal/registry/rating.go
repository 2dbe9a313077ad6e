package registry

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Dating is from when a given capacity or power counts.
type Dating struct {
	From flex.Day // London; zero: from now on

	// Repair is the reason for which it also counts for days of which something was settled.
	// The difference is posted, that of closed months in the open one. Empty: such days are a
	// Conflict.
	Repair string
}

// given reports whether a day was given.
func (d Dating) given() bool { return d.From != (flex.Day{}) }

// lock waits for settlements under way and blocks new ones, if a day was given, because that
// day is compared with what was settled. It comes before the lock of a site or an asset, in
// the same order as in settlement.
func (d Dating) lock(ctx context.Context, tx *store.Tx) error {
	if !d.given() {
		return nil
	}

	_, err := tx.LockBooks(ctx)

	return err
}

// faults checks the day itself, and returns a fault of the field that names it.
func (d Dating) faults(now time.Time, field, of string, changed bool) error {
	if d.given() && !changed {
		return invalid([]flex.Fault{faultAt(
			"value_error.date",
			"a day is given, and no "+of+" that counts from it",
			nil,
			field,
		)})
	}

	if d.given() && d.From.Start().After(now) {
		return invalid([]flex.Fault{faultAt(
			"value_error.date",
			"the day lies ahead: give a "+of+" when its day has come",
			nil,
			field,
		)})
	}

	if d.Repair != "" && !d.given() {
		return invalid([]flex.Fault{faultAt(
			"value_error.date",
			"a repair needs the day from which it counts",
			nil,
			field,
		)})
	}

	return nil
}

// settledAgain compares the day with the site's settlements: it fails if something was settled
// of it; for a repair it marks these to be settled again.
func (d Dating) settledAgain(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) error {
	last, err := tx.LastSettledAt(ctx, site)
	if err != nil || last == (flex.Day{}) ||
		last.Start().Before(d.From.Start()) {
		return err
	}

	if d.Repair != "" {
		_, _, err := tx.LookAgainWithin(ctx, site, flex.Span{
			From: d.From.Start(),
			To:   tx.Now(),
		})

		return err
	}

	next, hint := last.Add(1), ""
	if next.Start().After(tx.Now()) {
		hint = "; without a day it counts from now on"
	}

	return flex.Fail(
		flex.Conflict,
		"%s was settled already at this site, on what held then, which its events and sessions keep: the first day that can be given is %s%s",
		last,
		next,
		hint,
	)
}

// setSupply sets the capacity of the site's connection from the day on.
func (d Dating) setSupply(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	s flex.Supply,
) error {
	if err := d.settledAgain(ctx, tx, site); err != nil {
		return err
	}
	return tx.SetSupply(ctx, site, s, d.From.Start())
}

// setPower sets the asset's power from the day on.
func (d Dating) setPower(
	ctx context.Context,
	tx *store.Tx,
	a flex.Asset,
	power flex.Watts,
) error {
	if err := d.settledAgain(ctx, tx, a.SiteID); err != nil {
		return err
	}
	return tx.SetPower(ctx, a.ID, power, d.From.Start())
}

// RatingLine is a recorded rating, with the time for which it still counts.
type RatingLine[V any] struct {
	From   time.Time // zero: from the beginning
	At     time.Time // when it was recorded; zero: before ratings were dated
	Is     V
	Counts bool
	Until  time.Time // zero: without end
}

// ratingLines computes for which time each record counts: until a later one does.
func ratingLines[V any](rs []store.Recorded[V]) []RatingLine[V] {
	lines := make([]RatingLine[V], len(rs))
	var next time.Time
	covered := false

	for i := len(rs) - 1; i >= 0; i-- {
		lines[i] = RatingLine[V]{
			From:   rs[i].From,
			At:     rs[i].At,
			Is:     rs[i].Is,
			Counts: !covered || rs[i].From.Before(next),
			Until:  next,
		}

		if lines[i].Counts {
			next, covered = rs[i].From, true
		}
	}

	return lines
}

// withDefault inserts the default before capacities of which none counts from the beginning.
func withDefault(lines []RatingLine[flex.Supply]) []RatingLine[flex.Supply] {
	first := time.Time{}
	for _, l := range lines {
		if l.Counts && (first.IsZero() || l.From.Before(first)) {
			first = l.From
		}
		if l.Counts && l.From.IsZero() {
			return lines
		}
	}

	if first.IsZero() {
		return lines
	}

	before := RatingLine[flex.Supply]{
		Is:     flex.DefaultSupply,
		Counts: true,
		Until:  first,
	}

	return append([]RatingLine[flex.Supply]{before}, lines...)
}

// Ratings are the capacity of a site's connection and the powers of its assets, with the
// records of both, oldest first.
type Ratings struct {
	Supply   flex.Supply
	Supplies []RatingLine[flex.Supply]
	Assets   []AssetRating
}

// Recorded reports whether any change was recorded.
func (r Ratings) Recorded() bool {
	return len(r.Supplies) > 0 ||
		slices.ContainsFunc(r.Assets, func(a AssetRating) bool {
			return len(a.Powers) > 0
		})
}

// AssetRating is an asset's power over time.
type AssetRating struct {
	flex.Asset
	Powers []RatingLine[flex.Watts] // none if it never changed
}

// Ratings returns a site's ratings.
func (s *Service) Ratings(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (Ratings, error) {
	return read(ctx, s, org, func(tx *store.Tx) (Ratings, error) {
		return ratingsOf(ctx, tx, site)
	})
}

// ratingsOf is Ratings within a transaction.
func ratingsOf(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (Ratings, error) {
	record, err := tx.SiteRecord(ctx, site)
	if err != nil {
		return Ratings{}, err
	}

	supplies, err := tx.Supplies(ctx, site)
	if err != nil {
		return Ratings{}, err
	}

	r := Ratings{
		Supply:   record.Supply,
		Supplies: withDefault(ratingLines(supplies)),
	}

	for _, id := range record.Assets {
		a, err := tx.Asset(ctx, id)
		if err != nil {
			return r, err
		}

		powers, err := tx.Powers(ctx, id)
		if err != nil {
			return r, err
		}

		r.Assets = append(r.Assets, AssetRating{a, ratingLines(powers)})
	}

	return r, nil
}
