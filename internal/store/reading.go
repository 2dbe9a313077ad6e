package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"flexd/internal/flex"
)

// labelNumbers are the numbers by which labels are stored. The energies of half-hours are
// below 10: they are at known times, and need no index except that by time.
var labelNumbers = map[flex.Label]int16{
	flex.ChargerEnergy:          1,
	flex.ProvisionalConsumption: 2,
	flex.BoundaryImportPower:    10,
	flex.BatteryInverterPower:   11,
	flex.ChargerRegister:        12,
	flex.BoundaryImportRegister: 13,
	flex.BoundaryExportRegister: 14,
	flex.SolarPower:             15,
	flex.BatteryStateOfCharge:   16,
	flex.BatteryStoredEnergy:    17,
	flex.RoomTemperature:        18,
	flex.TankTemperature:        19,
	flex.OutdoorTemperature:     20,
	flex.HeatPower:              21,
}

var labels = func() map[int16]flex.Label {
	m := map[int16]flex.Label{}
	for l, n := range labelNumbers {
		m[n] = l
	}
	return m
}()

// LabelNumbered returns the label that is stored as a number, and false if none is.
func LabelNumbered(n int64) (flex.Label, bool) {
	l, ok := labels[int16(n)]
	return l, ok
}

// owners is a cache of the organisations' assets and their ratings, so that a batch of
// readings need not ask for each. An organisation's part is valid as long as the version of
// its register is the same.
type owners struct {
	mu    sync.RWMutex
	byOrg map[flex.OrgID]*owned
	total int
}

type owned struct {
	register int64 // its version, and how many assets were taken away
	assets   map[flex.AssetID]Rating
}

// Rating is the power and capacity by which the readings of an asset are checked.
type Rating struct {
	Type     flex.AssetType
	Power    flex.Watts     // of the asset; 0 if never given
	Capacity flex.WattHours // of its battery; 0 if never given
	Supply   flex.Supply
}

// ownersMax is the number of assets in the cache; beyond it the cache is emptied.
const ownersMax = 2_000_000

// OwnAssets returns those of the assets that are the organisation's, with their ratings. It
// caches the result, so a transaction that adds or changes assets must not call it.
func (tx *Tx) OwnAssets(
	ctx context.Context,
	ids []flex.AssetID,
) (map[flex.AssetID]Rating, error) {
	register, err := tx.assetsVersion(ctx)
	if err != nil {
		return nil, err
	}

	own, ask := tx.db.owners.look(tx.org, register, ids)
	for len(ask) > 0 {
		list, args := in(
			[]any{tx.org.Bytes()},
			ask[:min(len(ask), ownersChunk)],
		)

		ask = ask[min(len(ask), ownersChunk):]

		scan := func(s scanner) (ratedAsset, error) {
			var a ratedAsset
			err := s.Scan(
				&a.id,
				&a.Type,
				&a.Power,
				&a.Capacity,
				&a.Supply.Import,
				&a.Supply.Export,
				&a.Supply.Set,
			)

			return a, err
		}

		found, err := rows(
			ctx,
			tx.conn,
			scan,
			`SELECT a.id, a.type, COALESCE(a.power_w, 0), COALESCE(a.capacity_wh, 0), s.import_w, s.export_w, s.supply_set
			FROM asset a JOIN site s ON s.id = a.site_id WHERE a.org_id = $1 AND a.id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}

		for _, a := range found {
			own[a.id] = a.Rating
		}

		tx.db.owners.learn(tx.org, register, found)
	}

	return own, nil
}

// assetsVersion returns a number that changes whenever assets of the organisation are added,
// changed or deleted.
func (tx *Tx) assetsVersion(ctx context.Context) (int64, error) {
	var version int64
	err := tx.row(
		ctx,
		`SELECT register + assets_gone FROM org WHERE id = $1`,
		tx.org.Bytes(),
	).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		err = errOrgMissing
	}

	return version, err
}

type ratedAsset struct {
	id flex.AssetID
	Rating
}

func (o *owners) look(
	org flex.OrgID,
	register int64,
	ids []flex.AssetID,
) (map[flex.AssetID]Rating, []flex.AssetID) {
	own := make(map[flex.AssetID]Rating, len(ids))
	o.mu.RLock()
	defer o.mu.RUnlock()

	known := o.byOrg[org]
	if known != nil && known.register != register {
		known = nil
	}

	var ask []flex.AssetID
	for _, id := range ids {
		if known != nil {
			if rating, ours := known.assets[id]; ours {
				own[id] = rating
				continue
			}
		}

		if len(ask) == 0 || ask[len(ask)-1] != id {
			ask = append(ask, id)
		}
	}

	return own, ask
}

func (o *owners) learn(org flex.OrgID, register int64, found []ratedAsset) {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.byOrg == nil || o.total > ownersMax {
		o.byOrg, o.total = map[flex.OrgID]*owned{}, 0
	}

	known := o.byOrg[org]
	if known == nil || known.register != register {
		if known != nil && known.register > register {
			return // an older view of the store
		}

		if known != nil {
			o.total -= len(known.assets)
		}

		known = &owned{register, map[flex.AssetID]Rating{}}
		o.byOrg[org] = known
	}

	for _, a := range found {
		if _, there := known.assets[a.id]; !there {
			o.total++
		}
		known.assets[a.id] = a.Rating
	}
}

// PutReadings stores readings of the organisation's own assets, as OwnAssets returns them, at
// most one for each time, asset and label. A reading that has another value than the stored
// one replaces it, and the old one goes into the history, which settlement as of an instant
// reads: the trigger reading_corrected writes it, whatever statement changes a reading.
func (tx *Tx) PutReadings(ctx context.Context, rs []flex.Reading) error {
	if len(rs) == 0 {
		return nil
	}

	// In the order of the key, so that two batches never deadlock.
	slices.SortFunc(rs, byKey)

	err := tx.db.d.putReadings(ctx, tx.conn, rs, tx.now.UnixMicro())
	if err != nil {
		return err
	}
	if err := tx.markRegisters(ctx, rs); err != nil {
		return err
	}
	if err := tx.noteReadings(ctx, rs); err != nil {
		return fmt.Errorf("note what is heard: %w", err)
	}

	return tx.markAffected(ctx, rs)
}

func byKey(a, b flex.Reading) int {
	return cmp.Or(
		a.KeptAt().Compare(b.KeptAt()),
		bytes.Compare(a.AssetID[:], b.AssetID[:]),
		cmp.Compare(labelNumbers[a.Label], labelNumbers[b.Label]),
	)
}

const (
	readingColumns = `at, asset_id, label, seconds, value, known_at`
	readingUpsert  = `ON CONFLICT (at, asset_id, label) DO UPDATE
		SET seconds = excluded.seconds, value = excluded.value, known_at = excluded.known_at
		WHERE reading.value <> excluded.value OR reading.seconds <> excluded.seconds`
)

func readingArgs(r flex.Reading) (at int64, label int16, seconds int32, value int64) {
	return r.KeptAt().UnixMicro(), labelNumbers[r.Label], int32(r.Len() / time.Second), int64(r.Value)
}

// A Register identifies one register of an asset.
type Register struct {
	AssetID flex.AssetID
	Label   flex.Label
}

// Mark is a register's value at an instant.
type Mark struct {
	At    time.Time
	Value flex.Micro
}

// markRegisters updates the newest marks of registers.
func (tx *Tx) markRegisters(ctx context.Context, rs []flex.Reading) error {
	newest := map[Register]flex.Reading{}
	for _, r := range rs {
		if r.Label.Register() {
			newest[Register{r.AssetID, r.Label}] = r // in the order of time
		}
	}

	marks := make([]flex.Reading, 0, len(newest))
	for _, r := range newest {
		marks = append(marks, r)
	}

	// In the order of their rows' key, so that two batches never deadlock.
	slices.SortFunc(marks, func(a, b flex.Reading) int {
		return cmp.Or(
			bytes.Compare(a.AssetID[:], b.AssetID[:]),
			cmp.Compare(labelNumbers[a.Label], labelNumbers[b.Label]),
		)
	})

	args := make([]any, 0, 4*len(marks))

	for _, r := range marks {
		args = append(
			args,
			r.AssetID.Bytes(),
			labelNumbers[r.Label],
			r.To.UnixMicro(),
			int64(r.Value),
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO register (asset_id, label, at, value)`,
		`ON CONFLICT (asset_id, label) DO UPDATE
		SET at = excluded.at, value = excluded.value WHERE register.at <= excluded.at`,
		4,
		args,
	)
}

// LockNewestMarks returns the newest marks of the assets' registers, and makes other
// transactions that lock the same wait for the end of this one. So each batch of a register's
// readings is checked against the batch before.
func (tx *Tx) LockNewestMarks(
	ctx context.Context,
	assets []flex.AssetID,
) (map[Register]Mark, error) {
	lock := ""
	if tx.db.d.forUpdate != "" {
		lock = " FOR UPDATE OF m"
	}

	// In one order, so that two batches never deadlock.
	assets = slices.Clone(assets)
	slices.SortFunc(assets, func(a, b flex.AssetID) int {
		return bytes.Compare(a[:], b[:])
	})

	marks := map[Register]Mark{}
	for len(assets) > 0 {
		list, args := in(
			[]any{tx.org.Bytes()},
			assets[:min(len(assets), ownersChunk)],
		)

		assets = assets[min(len(assets), ownersChunk):]
		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				var k Register
				var label int16
				var m Mark
				err := s.Scan(&k.AssetID, &label, instant{&m.At}, &m.Value)
				k.Label = labels[label]
				marks[k] = m

				return err
			},
			`SELECT m.asset_id, m.label, m.at, m.value FROM register m
			JOIN asset a ON a.id = m.asset_id AND a.org_id = $1 WHERE m.asset_id IN `+list+` ORDER BY m.asset_id, m.label`+lock,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return marks, nil
}

// ownersChunk is the number of assets asked for in one statement.
const ownersChunk = 512
