package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a site in a constraint group is of the organisation that has the group",
		`SELECT c.site_id AS what FROM cap_site c LEFT JOIN site s ON s.id = c.site_id AND s.org_id = c.org_id
			LEFT JOIN cap_group g ON g.org_id = c.org_id AND g.name = c.name WHERE s.id IS NULL OR g.name IS NULL`)
	_ = law("what caps did to a schedule is kept with a schedule of the same asset",
		`SELECT b.event_id AS what FROM binding b LEFT JOIN schedule c ON c.event_id = b.event_id AND c.asset_id = b.asset_id WHERE c.event_id IS NULL`)
)

// CapsInForce are an organisation's caps, with the state of its fleet's planning under them.
type CapsInForce struct {
	flex.Caps
	// incremented for each schedule that was made under the caps, and for each change of them
	Version int64
	// when the whole fleet is to be planned together again; zero if nothing is due
	DueAt     time.Time
	PlannedAt time.Time // when it was last; zero for never
	SummedAt  time.Time // when what all draw was last added up from every asset; zero for not yet
	Shadow    Shadow    // of that

	// limits on import that are in force for a time, now or later; the lowest counts
	Limits []flex.CapLimit
}

// Shadow is the value of headroom under each cap, its shadow price, by half-hour.
type Shadow struct {
	From   time.Time
	Prices map[string][]flex.Price // by group; "" is the fleet
}

// At returns the price of headroom under a group's cap, or under the fleet's cap if the name
// is empty.
func (s *Shadow) At(
	group string,
	p flex.Period,
) flex.Price {
	i := p.Sub(flex.PeriodAt(s.From))
	if i >= 0 && i < len(s.Prices[group]) {
		return s.Prices[group][i]
	}

	return 0
}

// Caps returns the organisation's caps, and false if it has none.
func (tx *Tx) Caps(ctx context.Context) (CapsInForce, bool, error) {
	return tx.caps(ctx, "")
}

// LockCaps is Caps, and makes other transactions that lock the caps wait for the end of this
// one. Whoever makes a schedule in the headroom that others leave locks the caps first.
func (tx *Tx) LockCaps(ctx context.Context) (CapsInForce, bool, error) {
	return tx.caps(ctx, tx.db.d.forUpdate)
}

func (tx *Tx) caps(
	ctx context.Context,
	lock string,
) (CapsInForce, bool, error) {
	var fleet sql.NullInt64
	var traded, shadow string
	var c CapsInForce
	err := tx.unqueued().row(
		ctx,
		`SELECT fleet_w, fleet_starts, traded, version, due_at, planned_at, summed_at, shadow FROM caps WHERE org_id = $1`+lock,
		tx.org.Bytes(),
	).
		Scan(
			&fleet,
			&c.Fleet.StartsPerMinute,
			&traded,
			&c.Version,
			instant{&c.DueAt},
			instant{&c.PlannedAt},
			instant{&c.SummedAt},
			&shadow,
		)

	if errors.Is(err, sql.ErrNoRows) {
		return c, false, nil
	}

	if err != nil {
		return c, false, err
	}

	c.Fleet.Power = wattsOf(fleet)
	c.Position, err = readTraded(traded)
	if err != nil {
		return c, false, err
	}

	if shadow != "" {
		c.Shadow, err = decodeShadow(shadow)
		if err != nil {
			return c, false, err
		}
	}

	c.Groups, err = tx.capGroups(ctx)
	if err != nil {
		return c, false, err
	}

	c.Limits, err = tx.bindingLimits(ctx, flex.Import)

	return c, true, err
}

// capGroups are the organisation's constraint groups, by their names.
func (tx *Tx) capGroups(ctx context.Context) ([]flex.CapGroup, error) {
	return rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.CapGroup, error) {
			var power sql.NullInt64
			var g flex.CapGroup
			err := s.Scan(
				&g.Name,
				&g.Parent,
				&power,
				&g.StartsPerMinute,
			)
			g.Power = wattsOf(power)
			return g, err
		},
		`SELECT name, COALESCE(parent, ''), cap_w, starts FROM cap_group WHERE org_id = $1 ORDER BY name`,
		tx.org.Bytes(),
	)
}

func wattsOf(v sql.NullInt64) *flex.Watts {
	if !v.Valid {
		return nil
	}
	return new(flex.Watts(v.Int64))
}

func wattsOrNull(w *flex.Watts) any {
	if w == nil {
		return nil
	}
	return int64(*w)
}

// writeTraded and readTraded convert a traded position to and from its stored text, lists of
// numbers.
func writeTraded(ts []flex.Traded) (string, error) {
	list := make([][4]int64, len(ts))
	for i, t := range ts {
		list[i] = [4]int64{
			t.Period.Start().Unix(),
			int64(t.Energy),
			int64(t.Buy),
			int64(t.Sell),
		}
	}

	return encode(list)
}

func readTraded(text string) ([]flex.Traded, error) {
	var list [][4]int64
	if err := decode("position", text, &list); err != nil {
		return nil, err
	}

	var ts []flex.Traded
	for _, v := range list {
		ts = append(ts, flex.Traded{
			Period: flex.PeriodAt(time.Unix(v[0], 0)),
			Energy: flex.WattHours(v[1]),
			Buy:    flex.Price(v[2]),
			Sell:   flex.Price(v[3]),
		})
	}

	return ts, nil
}

// CapSites returns the sites of every group, by its name.
func (tx *Tx) CapSites(ctx context.Context) (map[string][]flex.SiteID, error) {
	sites := map[string][]flex.SiteID{}
	err := eachRow(
		ctx,
		tx.conn,
		func(s scanner) error {
			var name string
			var id flex.SiteID
			err := s.Scan(&id, &name)
			sites[name] = append(sites[name], id)

			return err
		},
		`SELECT site_id, name FROM cap_site WHERE org_id = $1 ORDER BY site_id`,
		tx.org.Bytes(),
	)

	return sites, err
}

// SetCaps replaces the organisation's caps, and has the fleet planned under the new ones at
// once. A site of another organisation is NotFound.
func (tx *Tx) SetCaps(
	ctx context.Context,
	c flex.Caps,
) error {
	traded, err := writeTraded(c.Position)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO caps (org_id, fleet_w, fleet_starts, traded, version, due_at) VALUES ($1, $2, $3, $4, 1, $5)
		ON CONFLICT (org_id) DO UPDATE SET fleet_w = excluded.fleet_w, fleet_starts = excluded.fleet_starts, traded = excluded.traded,
			version = caps.version + 1, due_at = excluded.due_at, leased_to = 0, shadow = ''`,
		tx.org.Bytes(),
		wattsOrNull(c.Fleet.Power),
		c.Fleet.StartsPerMinute,
		traded,
		micros(tx.now),
	)

	if err != nil {
		return err
	}

	for _, query := range []string{
		`DELETE FROM wave_part WHERE org_id = $1`, // of a wave without caps
		`UPDATE session SET due_at = NULL, due_for = NULL WHERE org_id = $1 AND plugged_out_at IS NULL AND due_for = 'market'`,
	} {
		if _, err := tx.exec(ctx, query, tx.org.Bytes()); err != nil {
			return err
		}
	}

	if err := tx.keepCapSums(ctx, &c); err != nil {
		return err
	}
	if err := tx.dropGroups(ctx); err != nil {
		return err
	}

	if err := tx.addGroups(ctx, c.Groups); err != nil {
		return err
	}

	tx.Wake(WakeControl)

	return tx.plannedUnderCaps(ctx)
}

// keepCapSums preserves the sums under the caps that are replaced, if every site stays in its
// group; else it deletes them, and they are made again.
func (tx *Tx) keepCapSums(
	ctx context.Context,
	next *flex.Caps,
) error {
	sites, err := tx.CapSites(ctx)
	if err != nil {
		return err
	}

	if !sameSites(sites, next) {
		return tx.DropCapSums(ctx)
	}

	before, err := tx.CapTree(ctx)
	if err != nil {
		return err
	}

	after := next.Tree()
	if maps.Equal(before, after) {
		return nil
	}

	return tx.moveCapSums(ctx, before, after)
}

// sameSites reports whether caps have the same sites in each group.
func sameSites(
	before map[string][]flex.SiteID,
	next *flex.Caps,
) bool {
	group := map[flex.SiteID]string{}
	for name, sites := range before {
		for _, id := range sites {
			group[id] = name
		}
	}

	n := 0
	for _, g := range next.Groups {
		n += len(g.Sites)
		for _, id := range g.Sites {
			if was, in := group[id]; !in || was != g.Name {
				return false
			}
		}
	}

	return n == len(group)
}

// addGroups stores constraint groups with their sites.
func (tx *Tx) addGroups(
	ctx context.Context,
	list []flex.CapGroup,
) error {
	if err := tx.CheckCapSites(ctx, list); err != nil {
		return err
	}

	var groups, sites []any
	for _, g := range list {
		groups = append(
			groups,
			tx.org.Bytes(),
			g.Name,
			parentOrNull(g.Parent),
			wattsOrNull(g.Power),
			g.StartsPerMinute,
		)

		for _, id := range g.Sites {
			sites = append(
				sites,
				id.Bytes(),
				tx.org.Bytes(),
				g.Name,
			)
		}
	}

	err := tx.bulk(
		ctx,
		`INSERT INTO cap_group (org_id, name, parent, cap_w, starts)`,
		``,
		5,
		groups,
	)

	if err != nil {
		return err
	}

	return tx.bulk(
		ctx,
		`INSERT INTO cap_site (site_id, org_id, name)`,
		``,
		3,
		sites,
	)
}

// CheckCapSites returns NotFound if a group has a site that is not the organisation's.
func (tx *Tx) CheckCapSites(
	ctx context.Context,
	groups []flex.CapGroup,
) error {
	var ids []flex.SiteID
	for i := range groups {
		ids = append(ids, groups[i].Sites...)
	}

	for len(ids) > 0 {
		chunk := ids[:min(len(ids), outboxChunk)]
		ids = ids[len(chunk):]
		list, args := in([]any{tx.org.Bytes()}, chunk)
		found, err := rows(
			ctx,
			tx.conn,
			scalar[flex.SiteID],
			`SELECT id FROM site WHERE org_id = $1 AND id IN `+list,
			args...,
		)

		if err != nil {
			return err
		}

		own := map[flex.SiteID]bool{}
		for _, id := range found {
			own[id] = true
		}

		for _, id := range chunk {
			if !own[id] {
				return flex.Fail(flex.NotFound, "site %v: %s", id, flex.SiteMissing)
			}
		}
	}

	return nil
}

func (tx *Tx) dropGroups(ctx context.Context) error {
	for _, table := range []string{"cap_site", "cap_group"} {
		_, err := tx.exec(
			ctx,
			`DELETE FROM `+table+` WHERE org_id = $1`,
			tx.org.Bytes(),
		)
		if err != nil {
			return err
		}
	}

	return nil
}

// ClearCaps removes the organisation's caps, and has its fleet planned without them. It is
// NotFound if there are none.
func (tx *Tx) ClearCaps(ctx context.Context) error {
	n, err := tx.exec(ctx, `DELETE FROM caps WHERE org_id = $1`, tx.org.Bytes())
	if err != nil {
		return err
	}
	if n == 0 {
		return flex.Fail(flex.NotFound, "no caps are set: PUT /caps sets them")
	}

	if err := tx.DropCapSums(ctx); err != nil {
		return err
	}
	if err := tx.dropGroups(ctx); err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`UPDATE session SET due_at = $2, due_for = 'market' WHERE org_id = $1 AND plugged_out_at IS NULL
		AND event_id IS NOT NULL AND due_for IS NULL`,
		tx.org.Bytes(),
		micros(tx.now),
	)
	if err == nil {
		err = tx.plannedUnderCaps(ctx)
	}

	tx.Wake(WakeControl)

	return err
}

// RecordCapsUsed records that a schedule was made under the caps, which must be locked. It has the
// whole fleet planned by the instant, unless that is zero or the fleet is due sooner.
func (tx *Tx) RecordCapsUsed(
	ctx context.Context,
	due time.Time,
) error {
	_, err := tx.exec(
		ctx,
		`UPDATE caps SET version = version + 1, due_at = CASE WHEN CAST($2 AS BIGINT) > 0 AND (due_at IS NULL OR due_at > CAST($2 AS BIGINT)) THEN CAST($2 AS BIGINT) ELSE due_at END
		WHERE org_id = $1`,
		tx.org.Bytes(),
		unixMicros(due),
	)

	if !due.IsZero() && !due.After(tx.now) {
		tx.Wake(WakeControl)
	}

	return err
}

func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// TakeCaps leases the planning of the whole fleet, if it is due and nobody has it under a
// lease.
func (tx *Tx) TakeCaps(ctx context.Context) (bool, error) {
	now := tx.db.Now()
	n, err := tx.exec(
		ctx,
		`UPDATE caps SET leased_to = $4 WHERE org_id = $1 AND leased_to <= $3 AND due_at <= $2`,
		tx.org.Bytes(),
		micros(tx.now),
		micros(now),
		micros(now.Add(waveLease)),
	)

	return n > 0, err
}

// RecordCapsPlanned records that the whole fleet was planned, the value of headroom, and when it is
// to be planned again.
func (tx *Tx) RecordCapsPlanned(
	ctx context.Context,
	shadow Shadow,
	next time.Time,
) error {
	text, err := encodeShadow(shadow)
	if err != nil {
		return err
	}
	_, err = tx.exec(
		ctx,
		`UPDATE caps SET version = version + 1, planned_at = $2, due_at = $3, leased_to = 0, shadow = $4 WHERE org_id = $1`,
		tx.org.Bytes(),
		micros(tx.now),
		micros(next),
		text,
	)

	return err
}
