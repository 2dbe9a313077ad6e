package reward

import (
	"context"
	"maps"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// meters are meters of one kind, with the events that may be settled on each and the devices
// that read it.
type meters struct {
	*settling
	by      settle.Metering
	claims  map[meterKey][]*claim
	devices map[meterKey][]flex.AssetID
}

// read gives the cases the readings of these meters, and returns the cases that have any. It
// reads the events' own days first, and the days before only of meters that have readings on
// these.
func (m *meters) read(
	ctx context.Context,
	tx *store.Tx,
) (map[*claim]bool, error) {
	seenClaims := map[*claim]bool{}
	byAsset := map[flex.AssetID][]meterKey{}
	days := map[flex.Day]bool{}

	for key, claims := range m.claims {
		for _, id := range m.devices[key] {
			byAsset[id] = append(byAsset[id], key)
		}

		for _, c := range claims {
			days[c.Case.Day] = true
		}
	}

	readings, err := m.readings(ctx, tx, byAsset, days)
	if err != nil || len(readings) == 0 {
		return seenClaims, err
	}

	eventDays, err := m.eventDays(ctx, tx, readings)
	if err != nil {
		return nil, err
	}

	for key, rs := range readings {
		m.addReadings(key, rs, eventDays(key), seenClaims)
	}

	return seenClaims, nil
}

// readings reads the events' own days, and the days before of the meters that have readings on
// these.
func (m *meters) readings(
	ctx context.Context,
	tx *store.Tx,
	byAsset map[flex.AssetID][]meterKey,
	days map[flex.Day]bool,
) (map[meterKey][]flex.Reading, error) {
	q := store.ReadingQuery{
		Labels:  settle.Labels(m.by),
		First:   m.slots[0],
		Last:    m.slots[1],
		KnownAt: m.basis.knownAt,
	}

	q.Assets = slices.Collect(maps.Keys(byAsset))
	q.Days = slices.SortedFunc(maps.Keys(days), compareDays)
	rs, err := tx.Readings(ctx, q)
	if err != nil || len(rs) == 0 {
		return nil, err
	}

	more, err := m.before(ctx, tx, q, rs, days, byAsset)
	if err != nil {
		return nil, err
	}

	readings := map[meterKey][]flex.Reading{}
	for _, part := range [][]flex.Reading{rs, more} {
		for i := range part {
			for _, key := range byAsset[part[i].AssetID] {
				readings[key] = append(readings[key], part[i])
			}
		}
	}

	return readings, nil
}

// before reads the days before the events' own, for the devices and labels that have readings
// on the events' days.
func (m *meters) before(ctx context.Context, tx *store.Tx, q store.ReadingQuery, rs []flex.Reading, own map[flex.Day]bool,
	byAsset map[flex.AssetID][]meterKey) ([]flex.Reading, error) {
	labels, read := map[flex.Label]bool{}, map[meterKey]bool{}
	for i := range rs {
		labels[rs[i].Label] = true
		for _, key := range byAsset[rs[i].AssetID] {
			read[key] = true
		}
	}

	q.Days = slices.DeleteFunc(daysBetween(m.oldest, m.newest), func(d flex.Day) bool {
		return own[d]
	})
	labels[flex.BoundaryExportRegister] = labels[flex.BoundaryExportRegister] ||
		labels[flex.BoundaryImportRegister] // the export is subtracted from the import

	q.Labels = slices.DeleteFunc(slices.Clone(q.Labels), func(l flex.Label) bool {
		return !labels[l]
	})
	q.Assets = slices.DeleteFunc(slices.Clone(q.Assets), func(id flex.AssetID) bool {
		return !slices.ContainsFunc(byAsset[id], func(key meterKey) bool {
			return read[key]
		})
	})

	return tx.Readings(ctx, q)
}

// eventDays returns a function for the days on which a meter had events.
func (m *meters) eventDays(
	ctx context.Context,
	tx *store.Tx,
	read map[meterKey][]flex.Reading,
) (of func(meterKey) []flex.Day, err error) {
	asOf := m.basis.asOf
	var assets []flex.AssetID
	var sites []flex.SiteID

	for key := range read {
		assets, sites = append(assets, key.asset), append(sites, key.site)
	}

	if m.by == settle.Boundary {
		days, err := tx.EventDaysAt(ctx, sites, m.oldest, m.newest, asOf)
		return func(key meterKey) []flex.Day { return days[key.site] }, err
	}

	days, err := tx.EventDaysOf(ctx, assets, m.oldest, m.newest, asOf)

	return func(key meterKey) []flex.Day { return days[key.asset] }, err
}

// addReadings gives a meter's readings to its cases, as far as it has any for them.
func (m *meters) addReadings(
	key meterKey,
	rs []flex.Reading,
	eventDays []flex.Day,
	complete map[*claim]bool,
) {
	claims := m.claims[key]
	limits := claims[0].limits

	var meter *settle.Meter
	if key.asset.IsZero() {
		limits = m.siteLimits(key.site)
		meter = settle.NewBoundary(rs, limits, m.consent[key.site])
	} else {
		meter = settle.NewMeter(m.by, rs, limits)
	}

	for _, group := range groupsOf(claims) {
		shareWithGroup(group)
		m.nominateGroup(group)

		if key.asset.IsZero() && group[0].nomination != nil {
			m.addHomeUse(group)
		}

		first := group[0].Case
		if first.Used == nil { // otherwise the label is chosen by the days that are left
			first.EventDays = m.excludedDays(key, group, eventDays)
		}

		if !meter.Give(first) {
			m.useOwnMeters(group)
			continue
		}

		for _, c := range group {
			c.meteredAs(first)
			c.meter, c.limits = key, limits
			complete[c] = true
		}
	}
}

// meteredAs copies the readings of the group's first event.
func (c *claim) meteredAs(first *settle.Case) {
	c.Metering, c.Label = first.Metering, first.Label
	c.Metered, c.Case.Consented = first.Metered, first.Consented
	c.Devices, c.EventDays = first.Devices, first.EventDays
}

// excludedDays returns the days that are not used for the baseline of a group of events,
// whatever was metered on them.
func (m *meters) excludedDays(
	key meterKey,
	group []*claim,
	eventDays []flex.Day,
) []flex.Day {
	if !key.asset.IsZero() {
		return eventDays
	}

	return append(slices.Clone(eventDays), m.otherPointDays(group)...)
}
