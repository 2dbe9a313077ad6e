package store

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
)

var (
	_ = law("what is plugged in under caps is counted, or noted as changed",
		`SELECT s.asset_id AS what FROM caps c JOIN session s ON s.org_id = c.org_id AND s.plugged_out_at IS NULL
			LEFT JOIN cap_part p ON p.asset_id = s.asset_id AND p.org_id = s.org_id
		 WHERE c.summed_at IS NOT NULL
			AND (p.asset_id IS NULL OR COALESCE(p.event_id, s.asset_id) <> COALESCE(s.event_id, s.asset_id))
			AND NOT EXISTS (SELECT 1 FROM cap_change n WHERE n.org_id = s.org_id AND n.asset_id = s.asset_id)`)
	_ = law("what has left is not counted under caps, or noted as changed",
		`SELECT p.asset_id AS what FROM caps c JOIN cap_part p ON p.org_id = c.org_id
		 WHERE c.summed_at IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM session s WHERE s.org_id = p.org_id AND s.asset_id = p.asset_id AND (s.plugged_out_at IS NULL OR s.freed))
			AND NOT EXISTS (SELECT 1 FROM tank_plan t WHERE t.org_id = p.org_id AND t.asset_id = p.asset_id AND NOT t.freed)
			AND NOT EXISTS (SELECT 1 FROM cap_change n WHERE n.org_id = p.org_id AND n.asset_id = p.asset_id)`)
	_ = lawInGo("what all under a cap draw together is the sum of what each is counted for", wrongCapSums)
)

// CapPart is the part of a plugged-in asset, a tank or a heat pump in the sums under caps.
type CapPart struct {
	AssetID flex.AssetID
	Group   string       // constraint group of its site; empty for none
	EventID flex.EventID // of its schedule; zero for none
	Steps   []flex.Step  // without a gap; none if it draws nothing
	Power   flex.Watts
	Running bool      // it charges already as the steps begin
	Paced   bool      // its starts count
	Until   time.Time // when it counts for something else, if nothing happens; zero for never
}

// AddTo adds the part to a sum, from a block on.
func (p *CapPart) AddTo(sum headroom.Sum, from int64) {
	if p.Paced {
		sum.Add(p.Steps, p.Power, p.Running, from)
	} else {
		sum.Reserve(p.Steps, p.Power, from)
	}
}

// RemoveFrom subtracts the part from a sum that includes it, from a block on.
func (p *CapPart) RemoveFrom(sum headroom.Sum, from int64) {
	if p.Paced {
		sum.Remove(p.Steps, p.Power, p.Running, from)
	} else {
		sum.Release(p.Steps, p.Power, from)
	}
}

// capSumChunk is how many assets one statement handles.
const capSumChunk = 500

// loadChanged records that the power of an asset may differ from now on, if the organisation
// has caps. A transaction that sets the first caps waits for this one, so that a session that
// began without caps is not overlooked.
func (tx *Tx) loadChanged(
	ctx context.Context,
	asset flex.AssetID,
) error {
	if err := tx.sharesCaps(ctx); err != nil {
		return err
	}

	var id [16]byte
	if _, err := crand.Read(id[:]); err != nil {
		return fmt.Errorf("make an id: %w", err)
	}

	return tx.later(
		ctx,
		`INSERT INTO cap_change (org_id, id, asset_id) SELECT org_id, $2, $3 FROM caps WHERE org_id = $1`,
		tx.org.Bytes(),
		flex.EventID(id).Bytes(),
		asset.Bytes(),
	)
}

// loadsReplaced is loadChanged for schedules that were put in force by one statement.
func (tx *Tx) loadsReplaced(
	ctx context.Context,
	first, last flex.EventID,
) error {
	if err := tx.sharesCaps(ctx); err != nil {
		return err
	}

	return tx.later(
		ctx,
		`INSERT INTO cap_change (org_id, id, asset_id) SELECT c.org_id, c.event_id, c.asset_id FROM schedule c JOIN caps k ON k.org_id = c.org_id
		WHERE c.org_id = $1 AND c.event_id >= $2 AND c.event_id <= $3`,
		tx.org.Bytes(),
		first.Bytes(),
		last.Bytes(),
	)
}

// sharesCaps makes LockForCaps in another transaction wait for the end of this one.
func (tx *Tx) sharesCaps(ctx context.Context) error {
	if tx.pipe == nil { // of a store with one writer
		return nil
	}

	return tx.later(ctx, `SELECT 1 FROM org WHERE id = $1`+tx.db.d.forKeyShare, tx.org.Bytes())
}

// LockForCaps is LockOrg for a transaction that sets the first caps: it waits for every
// transaction that changes the power of an asset.
func (tx *Tx) LockForCaps(ctx context.Context) error {
	return tx.lockOrg(ctx, tx.db.d.forUpdate)
}

// CapChanges are the assets whose parts are to be computed again by an instant, with the ids
// of the recorded changes.
type CapChanges struct {
	Assets []flex.AssetID
	notes  []flex.EventID
}

// CapChanges returns the changes under caps that the sums do not include yet. The caps must be
// locked.
func (tx *Tx) CapChanges(ctx context.Context) (CapChanges, error) {
	var c CapChanges
	known := map[flex.AssetID]bool{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var note flex.EventID
			var asset flex.AssetID
			if err := s.Scan(&note, &asset); err != nil {
				return err
			}

			if !note.IsZero() {
				c.notes = append(c.notes, note)
			}
			if !known[asset] {
				c.Assets = append(c.Assets, asset)
			}
			known[asset] = true

			return nil
		},
		`SELECT id, asset_id FROM cap_change WHERE org_id = $1
		UNION ALL SELECT NULL, asset_id FROM cap_part WHERE org_id = $1 AND until_at IS NOT NULL AND until_at <= $2`,
		tx.org.Bytes(),
		micros(tx.now),
	)

	return c, err
}

// LoadsOf returns the loads of those of the assets that are plugged in.
func (tx *Tx) LoadsOf(
	ctx context.Context,
	assets []flex.AssetID,
) ([]Load, error) {
	var all []Load
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), capSumChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := tx.loads(ctx, ` AND s.asset_id IN `+list, args[1:]...)
		if err != nil {
			return nil, err
		}

		all = append(all, found...)
	}

	return all, nil
}

// CapParts returns the parts of those of the assets that have one.
func (tx *Tx) CapParts(
	ctx context.Context,
	assets []flex.AssetID,
) (map[flex.AssetID]CapPart, error) {
	parts := map[flex.AssetID]CapPart{}
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), capSumChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)

		err := eachRow(
			ctx,
			tx.conn,
			func(s scanner) error {
				p, err := scanCapPart(s)
				parts[p.AssetID] = p
				return err
			},
			capPartQuery+` AND asset_id IN `+list,
			args...,
		)
		if err != nil {
			return nil, err
		}
	}

	return parts, nil
}

const capPartQuery = `SELECT asset_id, group_name, event_id, from_at, steps, power_w, running, paced, until_at FROM cap_part WHERE org_id = $1`

func scanCapPart(s scanner) (CapPart, error) {
	var from time.Time
	var steps string
	var p CapPart
	err := s.Scan(
		&p.AssetID,
		&p.Group,
		&p.EventID,
		instant{&from},
		&steps,
		&p.Power,
		&p.Running,
		&p.Paced,
		instant{&p.Until},
	)
	if err == nil {
		p.Steps, err = appendSteps(nil, from, steps)
	}

	return p, err
}

// PutCapParts stores parts of assets, in place of earlier ones.
func (tx *Tx) PutCapParts(
	ctx context.Context,
	parts []CapPart,
) error {
	const columns = 10
	args := make([]any, 0, columns*len(parts))
	for i := range parts {
		p := &parts[i]
		var event any
		if !p.EventID.IsZero() {
			event = p.EventID.Bytes()
		}

		var from time.Time
		if len(p.Steps) > 0 {
			from = p.Steps[0].From
		}

		args = append(
			args,
			p.AssetID.Bytes(),
			tx.org.Bytes(),
			p.Group,
			event,
			micros(from),
			writeSteps(p.Steps),
			int64(p.Power),
			p.Running,
			p.Paced,
			micros(p.Until),
		)
	}

	return tx.bulk(
		ctx,
		`INSERT INTO cap_part (asset_id, org_id, group_name, event_id, from_at, steps, power_w, running, paced, until_at)`,
		` ON CONFLICT (asset_id) DO UPDATE SET org_id = excluded.org_id, group_name = excluded.group_name, event_id = excluded.event_id,
			from_at = excluded.from_at, steps = excluded.steps, power_w = excluded.power_w, running = excluded.running, paced = excluded.paced, until_at = excluded.until_at`,
		columns,
		args,
	)
}

// DropCapParts deletes the parts of assets.
func (tx *Tx) DropCapParts(
	ctx context.Context,
	assets []flex.AssetID,
) error {
	for len(assets) > 0 {
		chunk := assets[:min(len(assets), capSumChunk)]
		assets = assets[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		query := `DELETE FROM cap_part WHERE org_id = $1 AND asset_id IN ` + list
		if err := tx.later(ctx, query, args...); err != nil {
			return err
		}
	}

	return nil
}

// DropCapChanges deletes recorded changes that the sums include now.
func (tx *Tx) DropCapChanges(
	ctx context.Context,
	c CapChanges,
) error {
	for len(c.notes) > 0 {
		chunk := c.notes[:min(len(c.notes), capSumChunk)]
		c.notes = c.notes[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		query := `DELETE FROM cap_change WHERE org_id = $1 AND id IN ` + list
		if err := tx.later(ctx, query, args...); err != nil {
			return err
		}
	}

	return nil
}

// CapSums returns the sums of power under some caps, by the caps' names, from a block on. The
// name of the fleet's cap is empty.
func (tx *Tx) CapSums(
	ctx context.Context,
	from int64,
	names []string,
) (map[string]headroom.Sum, error) {
	sums := map[string]headroom.Sum{}
	if len(names) == 0 {
		return sums, nil
	}

	args := []any{tx.org.Bytes(), from}
	var list strings.Builder
	for i, name := range names {
		sums[name] = headroom.Sum{}
		if i > 0 {
			list.WriteByte(',')
		}

		args = append(args, name)
		list.WriteString("$" + strconv.Itoa(len(args)))
	}

	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			row, err := scanCapSum(s)
			if err == nil {
				sums[row.group][row.block] = &row.Block
			}

			return err
		},
		`SELECT group_name, block, load, starts FROM cap_sum WHERE org_id = $1 AND block >= $2 AND group_name IN (`+list.String()+`)`,
		args...,
	)

	return sums, err
}

// sumRow is one block of the sum under a cap.
type sumRow struct {
	group string
	block int64
	headroom.Block
}

func scanCapSum(s scanner) (*sumRow, error) {
	var load, starts string
	var r sumRow
	err := s.Scan(
		&r.group,
		&r.block,
		&load,
		&starts,
	)
	if err == nil {
		err = readMinutes(load, &r.Load)
	}
	if err == nil {
		err = readMinutes(starts, &r.Starts)
	}

	return &r, err
}

// PutCapSums stores blocks of the sums under caps, by the caps' names.
func (tx *Tx) PutCapSums(
	ctx context.Context,
	sums map[string]headroom.Sum,
) error {
	const columns = 5
	var args []any
	for name, sum := range sums {
		for block, b := range sum {
			args = append(
				args,
				tx.org.Bytes(),
				name,
				block,
				writeMinutes(&b.Load),
				writeMinutes(&b.Starts),
			)
		}
	}

	return tx.bulk(
		ctx,
		`INSERT INTO cap_sum (org_id, group_name, block, load, starts)`,
		` ON CONFLICT (org_id, group_name, block) DO UPDATE SET load = excluded.load, starts = excluded.starts`,
		columns,
		args,
	)
}

// RecordCapsSum records that the sums under the caps were made again from every asset now.
func (tx *Tx) RecordCapsSum(ctx context.Context) error {
	return tx.later(
		ctx,
		`UPDATE caps SET summed_at = $2 WHERE org_id = $1`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// DropCapSums deletes the sums under caps, their parts and the recorded changes.
func (tx *Tx) DropCapSums(ctx context.Context) error {
	for _, query := range []string{
		`UPDATE caps SET summed_at = NULL WHERE org_id = $1`,
		`DELETE FROM cap_change WHERE org_id = $1`,
		`DELETE FROM cap_part WHERE org_id = $1`,
		`DELETE FROM cap_sum WHERE org_id = $1`,
	} {
		if err := tx.later(ctx, query, tx.org.Bytes()); err != nil {
			return err
		}
	}

	return nil
}

// DropPastCapSums deletes the sums of the time before a block.
func (tx *Tx) DropPastCapSums(
	ctx context.Context,
	block int64,
) error {
	return tx.later(
		ctx,
		`DELETE FROM cap_sum WHERE org_id = $1 AND block < $2`,
		tx.org.Bytes(),
		block,
	)
}

// writeMinutes writes numbers by runs, as "60x0 180x7400": how often a number is repeated, and
// the number.
func writeMinutes(numbers *[headroom.BlockMinutes]int64) string {
	var b []byte
	for i := 0; i < len(numbers); {
		n := 1
		for i+n < len(numbers) && numbers[i+n] == numbers[i] {
			n++
		}

		if i > 0 {
			b = append(b, ' ')
		}

		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, 'x')
		b = strconv.AppendInt(b, numbers[i], 10)
		i += n
	}

	return string(b)
}

// readMinutes reads what writeMinutes wrote.
func readMinutes(text string, to *[headroom.BlockMinutes]int64) error {
	at := 0
	for part := range strings.SplitSeq(text, " ") {
		count, number, _ := strings.Cut(part, "x")
		n, err1 := strconv.Atoi(count)
		v, err2 := strconv.ParseInt(number, 10, 64)
		outside := n < 1 || at+n > len(to)
		if errors.Join(err1, err2) != nil || outside {
			return fmt.Errorf("%w: a sum %q", ErrUnreadable, text)
		}

		for range n {
			to[at] = v
			at++
		}
	}

	return nil
}

// wrongCapSums returns the names of the caps whose sum differs from that of the parts, from
// the current block on.
func wrongCapSums(ctx context.Context, all *All) ([]string, error) {
	orgs, err := rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT org_id FROM caps WHERE summed_at IS NOT NULL ORDER BY org_id`,
	)
	if err != nil {
		return nil, err
	}

	var wrong []string
	for _, org := range orgs {
		tx, err := all.For(ctx, org)
		if err != nil {
			return nil, err
		}

		names, err := tx.WrongCapSums(ctx)
		if err != nil {
			return nil, err
		}

		for _, name := range names {
			wrong = append(wrong, fmt.Sprintf("organisation %v, group %q", org, name))
		}
	}

	return wrong, nil
}

// WrongCapSums returns the names of the organisation's caps whose sum differs from that of the
// parts, from the current block on.
func (tx *Tx) WrongCapSums(ctx context.Context) ([]string, error) {
	groups, err := tx.capGroups(ctx)
	if err != nil {
		return nil, err
	}

	names := []string{""}
	tree := (&flex.Caps{Groups: groups}).Tree()
	for _, g := range groups {
		names = append(names, g.Name)
	}

	from := headroom.BlockAt(tx.now)
	kept, err := tx.CapSums(ctx, from, names)
	if err != nil {
		return nil, err
	}

	parts, err := rows(
		ctx,
		tx.conn,
		scanCapPart,
		capPartQuery,
		tx.org.Bytes(),
	)
	if err != nil {
		return nil, err
	}

	for i := range parts {
		p := &parts[i]
		for _, name := range tree.Path(p.Group) {
			if kept[name] != nil {
				p.RemoveFrom(kept[name], from)
			}
		}
	}

	var wrong []string
	for _, name := range names {
		if !kept[name].IsZero() {
			wrong = append(wrong, name)
		}
	}

	return wrong, nil
}
