package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a charger that was not reached is an asset of the same organisation",
		`SELECT u.asset_id AS what FROM unreached u LEFT JOIN asset a ON a.id = u.asset_id AND a.org_id = u.org_id WHERE a.id IS NULL`)
	_ = law("readings are due of assets of the same organisation",
		`SELECT d.asset_id AS what FROM reading_due d LEFT JOIN asset a ON a.id = d.asset_id AND a.org_id = d.org_id WHERE a.id IS NULL`)
)

// ReadingsLate is how long after the newest steady reading, or after a car was plugged in, it
// is too late for the next: meters of a supplier come a day late.
const ReadingsLate = 48 * time.Hour

// BatteryReadingsLate is ReadingsLate of a battery: its plan starts from its charge, which is
// only estimated without them.
const BatteryReadingsLate = 24 * time.Hour

// readingStep is by how much the newest reading moves before it is written again.
const readingStep = 6 * time.Hour

// noteReached records whether a client got through to the charger with the schedule in force. A
// Failed report says neither.
func (tx *Tx) noteReached(ctx context.Context, c flex.Callback) error {
	var err error
	switch c.Status {
	case flex.Received:
		_, err = tx.exec(
			ctx,
			`INSERT INTO unreached (asset_id, org_id, event_id, since_at)
			SELECT s.asset_id, s.org_id, s.event_id, $4 FROM session s WHERE s.org_id = $1 AND s.asset_id = $2 AND s.event_id = $3 AND s.plugged_out_at IS NULL
			ON CONFLICT (asset_id) DO UPDATE SET event_id = excluded.event_id`,
			tx.org.Bytes(),
			c.AssetID.Bytes(),
			c.EventID.Bytes(),
			micros(tx.now),
		)

	case flex.Accepted, flex.Rejected, flex.Executed:
		err = tx.dropUnreached(ctx, c.AssetID)
	}

	return err
}

func (tx *Tx) dropUnreached(ctx context.Context, asset flex.AssetID) error {
	return tx.later(
		ctx,
		`DELETE FROM unreached WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	)
}

// source identifies a kind of readings of an asset whose newest one is recorded: a charger's
// energy, which comes only while a car is plugged in; the steady ones, which come all the
// time; and of those the state of charge.
type source struct {
	asset  flex.AssetID
	steady bool
	charge bool
}

// isCharge reports whether readings with the label are of a battery's state of charge.
func isCharge(label flex.Label) bool {
	return label == flex.BatteryStateOfCharge || label == flex.BatteryStoredEnergy
}

// noted caches the times of newest readings that this process has written, so that most
// batches need not write them again. A time that was rolled back is written with the next
// step. Those of chargers are always written: a plug-in, in any process, may have set when the
// next reading is due.
type noted struct {
	mu sync.Mutex
	at map[source]time.Time
}

// moved returns the sources whose newest reading is at least readingStep later than the one written
// before.
func (n *noted) moved(newest map[source]time.Time) []source {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at == nil || len(n.at) > ownersMax {
		n.at = map[source]time.Time{}
	}

	var keys []source
	for k, at := range newest {
		last, known := n.at[k]
		if !k.steady || !known || !at.Before(last.Add(readingStep)) {
			n.at[k] = at
			keys = append(keys, k)
		}
	}

	return keys
}

// noteReadings records the times of the newest readings of the assets, and when the next ones
// are due.
func (tx *Tx) noteReadings(ctx context.Context, rs []flex.Reading) error {
	newest := map[source]time.Time{}
	for _, r := range rs {
		k := source{
			asset:  r.AssetID,
			steady: r.Label != flex.ChargerEnergy && r.Label != flex.ChargerRegister,
		}

		newest[k] = flex.Later(newest[k], r.To)
		if isCharge(r.Label) {
			k.charge = true
			newest[k] = flex.Later(newest[k], r.To)
		}
	}

	keys := tx.db.noted.moved(newest)
	late, err := tx.lateness(ctx, keys)
	if err != nil {
		return err
	}

	charges := slices.DeleteFunc(slices.Clone(keys), func(k source) bool {
		return !k.charge || late(k.asset) != BatteryReadingsLate
	})
	keys = slices.DeleteFunc(keys, func(k source) bool { return k.charge })

	if err := tx.putNewest(ctx, keys, newest, late); err != nil {
		return err
	}

	return tx.putCharges(ctx, charges, newest)
}

// sortSources sorts sources by their rows' key, so that two batches never deadlock.
func sortSources(keys []source) {
	slices.SortFunc(keys, func(a, b source) int {
		by := bytes.Compare(a.asset[:], b.asset[:])
		if by != 0 || a.steady == b.steady {
			return by
		}

		if a.steady {
			return 1
		}

		return -1
	})
}

// putCharges records the times of batteries' newest states of charge, in the rows of their
// steady readings.
func (tx *Tx) putCharges(
	ctx context.Context,
	keys []source,
	newest map[source]time.Time,
) error {
	sortSources(keys)
	args := make([]any, 0, 5*len(keys))
	for _, k := range keys {
		at := micros(newest[k])
		args = append(
			args,
			k.asset.Bytes(),
			true,
			tx.org.Bytes(),
			at,
			at,
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO reading_due (asset_id, steady, org_id, at, charge_at)`,
		`ON CONFLICT (asset_id, steady) DO UPDATE SET charge_at = excluded.charge_at
		WHERE reading_due.charge_at IS NULL OR reading_due.charge_at < excluded.charge_at`,
		5,
		args,
	)
}

// putNewest records the times of the newest readings of assets, and when the next ones are due.
func (tx *Tx) putNewest(
	ctx context.Context,
	keys []source,
	newest map[source]time.Time,
	late func(flex.AssetID) time.Duration,
) error {
	sortSources(keys)
	args := make([]any, 0, 5*len(keys))
	for _, k := range keys {
		var due any
		if k.steady {
			due = micros(newest[k].Add(late(k.asset)))
		}

		args = append(
			args,
			k.asset.Bytes(),
			k.steady,
			tx.org.Bytes(),
			micros(newest[k]),
			due,
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO reading_due (asset_id, steady, org_id, at, due_at)`,
		noteReadingsTail,
		5,
		args,
	)
}

// lateness says of each asset with steady readings how long after one the next is late.
func (tx *Tx) lateness(
	ctx context.Context,
	keys []source,
) (func(flex.AssetID) time.Duration, error) {
	var steady []flex.AssetID
	for _, k := range keys {
		if k.steady {
			steady = append(steady, k.asset)
		}
	}

	var own map[flex.AssetID]Rating
	var err error
	if len(steady) > 0 {
		own, err = tx.OwnAssets(ctx, steady)
	}

	return func(id flex.AssetID) time.Duration {
		if own[id].Type == flex.Battery {
			return BatteryReadingsLate
		}
		return ReadingsLate
	}, err
}

// Steady returns the assets of a site of which any steady reading ever came: all but a
// charger's own energy and register.
func (tx *Tx) Steady(
	ctx context.Context,
	site flex.SiteID,
) (map[flex.AssetID]bool, error) {
	steady, err := tx.SteadyAt(ctx, []flex.SiteID{site})
	return steady[site], err
}

// SteadyAt is Steady for several sites. Those without any are not in it.
func (tx *Tx) SteadyAt(
	ctx context.Context,
	sites []flex.SiteID,
) (map[flex.SiteID]map[flex.AssetID]bool, error) {
	steady := map[flex.SiteID]map[flex.AssetID]bool{}
	for chunk := range slices.Chunk(sites, ownersChunk) {
		list, args := in([]any{tx.org.Bytes()}, chunk)
		err := eachRow(ctx, tx.conn, func(s scanner) error {
			var site flex.SiteID
			var asset flex.AssetID
			err := s.Scan(&site, &asset)
			if steady[site] == nil {
				steady[site] = map[flex.AssetID]bool{}
			}
			steady[site][asset] = true

			return err
		}, `SELECT a.site_id, d.asset_id FROM reading_due d JOIN asset a ON a.id = d.asset_id AND a.org_id = d.org_id
			WHERE d.org_id = $1 AND d.steady AND a.site_id IN `+list, args...)

		if err != nil {
			return nil, fmt.Errorf("read what was heard at sites: %w", err)
		}
	}

	return steady, nil
}

// noteReadingsTail writes only what moved by a step, or what was waited for. A late reading of
// a charger, of before the plug-in from which its readings are waited for, leaves that as it
// is.
var noteReadingsTail = fmt.Sprintf(`ON CONFLICT (asset_id, steady) DO UPDATE SET at = excluded.at,
		due_at = CASE WHEN NOT reading_due.steady AND excluded.at <= reading_due.due_at - %[2]d THEN reading_due.due_at ELSE excluded.due_at END
	WHERE excluded.at >= reading_due.at + %[1]d OR (NOT reading_due.steady AND excluded.at > reading_due.due_at - %[2]d)`,
	readingStep.Microseconds(), ReadingsLate.Microseconds())

// expectReadings has a charger's readings be due some time after a car was plugged in, if it ever
// sent any.
func (tx *Tx) expectReadings(ctx context.Context, asset flex.AssetID) error {
	return tx.later(
		ctx,
		`UPDATE reading_due SET due_at = $3 WHERE asset_id = $1 AND org_id = $2 AND NOT steady AND due_at IS NULL`,
		asset.Bytes(),
		tx.org.Bytes(),
		micros(tx.now.Add(ReadingsLate)),
	)
}

// dropUnheard deletes what was not heard of an asset.
func (tx *Tx) dropUnheard(ctx context.Context, asset flex.AssetID) error {
	_, err := tx.exec(
		ctx,
		`DELETE FROM reading_due WHERE org_id = $1 AND asset_id = $2`,
		tx.org.Bytes(),
		asset.Bytes(),
	)

	return cmp.Or(err, tx.dropUnreached(ctx, asset))
}

// Unheard is an asset of which nothing was heard since an instant of its organisation's clock.
type Unheard struct {
	AssetID flex.AssetID
	Since   time.Time
}

// Unreached returns the assets that are plugged in and whose client has had their schedule for so
// long without reaching the charger, at most limit, the longest first, and how many there are: of
// one organisation or, where org is zero, of all.
func (all *All) Unreached(
	ctx context.Context,
	org flex.OrgID,
	after time.Duration,
	limit int,
) ([]Unheard, int, error) {
	return all.unheard(
		ctx,
		org,
		limit,
		`u.since_at`,
		`FROM unreached u JOIN org g ON g.id = u.org_id
		JOIN session s ON s.org_id = u.org_id AND s.asset_id = u.asset_id AND s.plugged_out_at IS NULL WHERE u.since_at < $1 + g.clock_offset`,
		all.Now().Add(-after),
	)
}

// ReadingsMissing returns the assets whose readings are late, at most limit, the latest first, and
// how many there are: of one organisation or, where org is zero, of all.
func (all *All) ReadingsMissing(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]Unheard, int, error) {
	return all.unheard(
		ctx,
		org,
		limit,
		`u.at`,
		`FROM reading_due u JOIN org g ON g.id = u.org_id WHERE u.due_at < $1 + g.clock_offset`,
		all.Now(),
	)
}

// ChargeMissing returns the batteries whose states of charge are late while other readings
// come, at most limit, the latest first, and how many there are: of one organisation or, where
// org is zero, of all.
func (all *All) ChargeMissing(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]Unheard, int, error) {
	late := strconv.FormatInt(BatteryReadingsLate.Microseconds(), 10)

	return all.unheard(
		ctx,
		org,
		limit,
		`u.charge_at`,
		`FROM reading_due u JOIN org g ON g.id = u.org_id WHERE u.charge_at < $1 + g.clock_offset - `+late+`
			AND u.due_at >= $1 + g.clock_offset`,
		all.Now(),
	)
}

func (all *All) unheard(
	ctx context.Context,
	org flex.OrgID,
	limit int,
	since, where string,
	at time.Time,
) ([]Unheard, int, error) {
	args := []any{micros(at)}
	if !org.IsZero() {
		where, args = where+` AND u.org_id = $2`, append(args, org.Bytes())
	}

	var total int
	if err := all.row(
		ctx,
		`SELECT count(DISTINCT u.asset_id) `+where,
		args...,
	).Scan(&total); err != nil ||
		total == 0 {
		return nil, 0, err
	}

	found, err := rows(
		ctx,
		all.conn,
		func(s scanner) (Unheard, error) {
			var u Unheard
			err := s.Scan(&u.AssetID, instant{&u.Since})
			return u, err
		},
		`SELECT u.asset_id, min(`+since+`) AS since `+where+
			` GROUP BY u.asset_id ORDER BY since, u.asset_id LIMIT `+
			strconv.Itoa(limit),
		args...,
	)

	return found, total, err
}
