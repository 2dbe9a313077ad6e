package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

var _ = lawInGo(
	"what a battery's plan read at the boundary may be read: in a consent's span, by a device of the site, of a boundary's labels",
	plansReadOtherwise,
)

// planReadRecord is battery_plan.guess_read.
type planReadRecord struct {
	Device flex.AssetID `json:"device"`
	Labels []flex.Label `json:"labels"`
	Spans  [][2]int64   `json:"spans"` // from and to, Unix seconds
	// what other devices reported of the half-hours that the first did not
	Others []planReadRecord `json:"others,omitempty"`
}

func encodePlanRead(r PlanRead) (string, error) {
	if r.Device.IsZero() {
		return "", nil
	}

	return encode(planReadRecordOf(r))
}

func planReadRecordOf(r PlanRead) planReadRecord {
	return planReadRecord{
		Device: r.Device,
		Labels: r.Labels,
		Spans: each(r.Spans, func(s flex.Span) [2]int64 {
			return [2]int64{s.From.Unix(), s.To.Unix()}
		}),
		Others: each(r.Others, planReadRecordOf),
	}
}

func decodePlanRead(text string) (PlanRead, error) {
	if text == "" {
		return PlanRead{}, nil
	}

	var record planReadRecord
	if err := decode("readings of a battery plan", text, &record); err != nil {
		return PlanRead{}, err
	}

	return record.read(), nil
}

// read is what the record says.
func (r planReadRecord) read() PlanRead {
	return PlanRead{
		Device: r.Device,
		Labels: r.Labels,
		Spans: each(r.Spans, func(s [2]int64) flex.Span {
			return flex.Span{
				From: time.Unix(s[0], 0).UTC(),
				To:   time.Unix(s[1], 0).UTC(),
			}
		}),
		Others: each(r.Others, planReadRecord.read),
	}
}

// batteryRead is what the plan of a battery read, and whether the device was ever at its site.
type batteryRead struct {
	asset  flex.AssetID
	site   flex.SiteID
	exempt bool
	read   PlanRead
}

// plansReadOtherwise finds plans of batteries that were made of what they may not read.
func plansReadOtherwise(
	ctx context.Context,
	all *All,
) ([]string, error) {
	spans, err := all.everyConsent(ctx)
	if err != nil {
		return nil, err
	}

	devices, err := all.boundaryDevices(ctx)
	if err != nil {
		return nil, err
	}

	plans, err := rows(
		ctx,
		all.conn,
		func(s scanner) (batteryRead, error) {
			var text string
			var b batteryRead
			if err := s.Scan(&b.asset, &b.site, &b.exempt, &text); err != nil {
				return b, err
			}

			var err error
			b.read, err = decodePlanRead(text)

			return b, err
		},
		`SELECT p.asset_id, a.site_id, o.consent_exempt, p.guess_read FROM battery_plan p JOIN asset a ON a.id = p.asset_id JOIN org o ON o.id = p.org_id
		WHERE p.guess_read <> '' ORDER BY p.asset_id`,
	)

	if err != nil {
		return nil, err
	}

	var broken []string
	for _, b := range plans {
		for _, read := range b.reads() {
			if len(broken) > findingsMax {
				break
			}

			b.read = read
			broken = append(
				broken,
				b.otherwise(spans[b.site], devices[read.Device] == b.site)...,
			)
		}
	}

	return broken, nil
}

// reads is what was read of each device.
func (b batteryRead) reads() []PlanRead {
	return append([]PlanRead{b.read}, b.read.Others...)
}

// boundaryDevices returns the site of each device that a plan was made of, also of one that is
// gone.
func (all *All) boundaryDevices(ctx context.Context) (map[flex.AssetID]flex.SiteID, error) {
	sites := map[flex.AssetID]flex.SiteID{}
	err := eachRow(ctx, all.conn, func(s scanner) error {
		var id flex.AssetID
		var site flex.SiteID
		err := s.Scan(&id, &site)
		sites[id] = site

		return err
	}, `SELECT a.id, a.site_id FROM asset a WHERE a.site_id IN (SELECT b.site_id FROM asset b JOIN battery_plan p ON p.asset_id = b.id)
		UNION ALL
		SELECT f.id, f.site_id FROM former_asset f WHERE f.site_id IN (SELECT b.site_id FROM asset b JOIN battery_plan p ON p.asset_id = b.id)`)

	return sites, err
}

// otherwise lists what of a plan's readings may not be read.
func (b batteryRead) otherwise(
	spans []flex.Span,
	ofSite bool,
) []string {
	var broken []string
	if !ofSite {
		broken = append(
			broken,
			fmt.Sprintf(
				"battery %s of site %s: device %s is none of the site",
				b.asset,
				b.site,
				b.read.Device,
			),
		)
	}

	for _, l := range b.read.Labels {
		if !slices.Contains(settle.Labels(settle.Boundary), l) {
			broken = append(
				broken,
				fmt.Sprintf(
					"battery %s of site %s: %s is no label of the boundary",
					b.asset,
					b.site,
					l,
				),
			)
		}
	}

	for _, s := range b.read.Spans {
		if !b.exempt && !settle.Within(spans, s) {
			broken = append(
				broken,
				fmt.Sprintf(
					"battery %s of site %s: %s to %s",
					b.asset,
					b.site,
					s.From.Format(time.RFC3339),
					s.To.Format(time.RFC3339),
				),
			)
		}
	}

	return broken
}
