package store

import (
	"context"
	"database/sql"
	"time"

	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
)

// Ramp says how a plan keeps its asset from beginning and ending with all others.
type Ramp struct {
	Offset time.Duration // by which it begins and ends later, in whole seconds
	Spread time.Duration // that the offsets of all assets lie in
	// what the asset did when it was planned continues until its own next half-hour
	Kept bool
	// until when it continues at most, as others that share a cap follow; zero for no such end
	Until time.Time
}

// rampRecord is schedule.ramp.
type rampRecord struct {
	Offset int64 `json:"offset_s"`
	Spread int64 `json:"spread_s"`
	Kept   bool  `json:"kept,omitempty"`
	Until  int64 `json:"until_s,omitempty"` // since 1970
}

// encodeRamp writes how a plan is spread; not at all is null.
func encodeRamp(r *Ramp) any {
	if r == nil {
		return nil
	}

	record := rampRecord{
		Offset: int64(r.Offset / time.Second),
		Spread: int64(r.Spread / time.Second),
		Kept:   r.Kept,
	}
	if !r.Until.IsZero() {
		record.Until = r.Until.Unix()
	}

	text, err := encode(record)
	if err != nil { // a struct of numbers
		panic(err)
	}

	return text
}

// rampText scans what encodeRamp wrote.
type rampText struct{ to **Ramp }

// Scan reads a column.
func (t rampText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || !text.Valid {
		return err
	}

	var r rampRecord
	if err := decode("ramp", text.String, &r); err != nil {
		return err
	}

	*t.to = &Ramp{
		Offset: time.Duration(r.Offset) * time.Second,
		Spread: time.Duration(r.Spread) * time.Second,
		Kept:   r.Kept,
	}
	if r.Until != 0 {
		(*t.to).Until = time.Unix(r.Until, 0).UTC()
	}

	return nil
}

// RampGroup is a part of all that is steered that has a ramp of its own: a GSP group of all
// organisations, or a constraint group of one. The zero value is the whole.
type RampGroup struct {
	Org  flex.OrgID // of a constraint group
	Name string
}

// rampGroups are the groups that a site is of: its GSP group, its constraint group and those
// around that.
func rampGroups(
	org flex.OrgID,
	gsp, constraint string,
	tree flex.CapTree,
) []RampGroup {
	var groups []RampGroup
	if gsp != "" {
		groups = append(groups, RampGroup{Name: gsp})
	}
	for _, name := range tree.Path(constraint)[1:] {
		groups = append(groups, RampGroup{Org: org, Name: name})
	}

	return groups
}

// rampSite joins the tables that say in which groups the site of asset a is.
const rampSite = ` LEFT JOIN site t ON t.id = a.site_id LEFT JOIN meter m ON m.mpan = t.mpan LEFT JOIN cap_site g ON g.site_id = a.site_id`

// RampGroups are the groups that a site is of.
func (tx *Tx) RampGroups(
	ctx context.Context,
	site flex.SiteID,
) ([]RampGroup, error) {
	var gsp, constraint string
	err := tx.row(
		ctx,
		`SELECT COALESCE(m.gsp_group, ''), COALESCE(g.name, '') FROM site t LEFT JOIN meter m ON m.mpan = t.mpan
			LEFT JOIN cap_site g ON g.site_id = t.id WHERE t.org_id = $1 AND t.id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).Scan(&gsp, &constraint)
	if err != nil || constraint == "" {
		return rampGroups(tx.org, gsp, "", nil), err
	}

	tree, err := tx.CapTree(ctx)

	return rampGroups(
		tx.org,
		gsp,
		constraint,
		tree,
	), err
}

// SteeredFleets adds up the assets that are given charging schedules, plugged in or not: of
// all organisations, and of each group. One of which no power is known counts with the
// default.
func (all *All) SteeredFleets(
	ctx context.Context,
) (map[RampGroup]ramp.Fleet, error) {
	fleets := map[RampGroup]ramp.Fleet{}
	trees, err := all.nestedGroups(ctx)
	if err != nil {
		return nil, err
	}

	add := func(s scanner) error {
		var org flex.OrgID
		var gsp, constraint string
		var power float64
		var f ramp.Fleet
		err := s.Scan(&org, &gsp, &constraint, &f.Cars, &power, &f.Squares)
		f.Power = flex.Watts(power)

		groups := rampGroups(org, gsp, constraint, trees[org])
		for _, g := range append(groups, RampGroup{}) {
			fleets[g] = fleets[g].With(f)
		}

		return err
	}

	err = eachRow(
		ctx,
		all.conn,
		add,
		`SELECT org_id, gsp, name, count(*), COALESCE(sum(w), 0), COALESCE(sum(w * w), 0) FROM (
			SELECT a.org_id, COALESCE(m.gsp_group, '') AS gsp, COALESCE(g.name, '') AS name,
				CAST(CASE WHEN a.power_w > 0 THEN a.power_w ELSE $1 END AS DOUBLE PRECISION) AS w
			FROM asset a`+rampSite+` WHERE a.type IN ('charger', 'electric_vehicle') AND `+controlled+`) AS steered
		GROUP BY org_id, gsp, name`,
		int64(flex.DefaultPower),
	)

	return fleets, err
}
