package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// FlexEvent is a time in which an asset was steered, and where its settlement stands.
type FlexEvent struct {
	ID        flex.FlexEventID
	SiteID    flex.SiteID
	AssetID   flex.AssetID
	SessionID flex.SessionID // zero for a pause in the client's own schedule
	Day       flex.Day
	First     int // settlement periods of the day
	Last      int
	flex.Span
	// what the schedules would have moved in each period
	Meant []flex.WattHours
	// what each period would have had without the market
	Nominated []flex.WattHours
	// in which the car was plugged in; empty for an asset that is not
	Stay flex.Span
	// what each half-hour of the stay would have had without the market; none: not noted
	StayPlan []flex.WattHours
	// what instructions pay for, as they called the asset when the event was found
	Instructed []settle.Instructed

	Version   int              // of its newest settlement, 0 before the first
	Hash      []byte           // of that one's inputs
	Flex      *flex.WattHours  // nil until it was settled
	Estimated flex.MicroPounds // gross
	Final     *flex.MicroPounds
	Missing   int // periods without a reading or a price
	Progress

	// Of its site and asset, where the event was read to be settled.
	// the site's meter consent held all the while, or it needs none; the asset was not taken away
	// meanwhile, and the metering point was not another party's
	Consented bool
	// the asset was taken away before the event was over, or the metering point was another party's at some
	// time of it; nothing of it is credited then
	AssetLeft bool
	// the meter consent held all the while, so that it has a part in what its meter shows, also if it left
	SiteConsented bool
	GoneAt        time.Time // when its asset was taken away; zero if it is there
	// the asset's own meter may settle it, or might when it was taken away
	CoP11 bool
	Type  flex.AssetType
	// of the asset when the event was found, 0 if it was not known
	Power flex.Watts
	// of the asset's battery, when the event was found or as soon as it was known; 0 if it is not known
	Capacity flex.WattHours
	// its own time had come, not only that of another of its site and day
	Due bool
}

// EventsOfSession returns the ids of the flex events that are in a plug session.
func (tx *Tx) EventsOfSession(
	ctx context.Context,
	s Session,
) ([]flex.FlexEventID, error) {
	began := flex.PeriodAt(s.PluggedInAt).Start()

	// Without an end, all events that its asset ever had since would be read.
	until := s.PluggedOutAt
	if until.IsZero() {
		until = tx.now
	}

	return rows(
		ctx,
		tx.conn,
		scalar[flex.FlexEventID],
		`SELECT id FROM flex_event WHERE org_id = $1 AND asset_id = $2 AND from_at >= $3 AND from_at < $4 AND session_id = $5`,
		tx.org.Bytes(),
		s.AssetID.Bytes(),
		micros(began),
		micros(until.Add(eventLongest)),
		s.ID.Bytes(),
	)
}

const flexEventColumns = `e.id, e.site_id, e.asset_id, e.session_id, e.day, e.first, e.last, e.from_at, e.to_at, e.meant, e.nominated,
	e.stay_from, e.stay_to, e.stay_plan, e.instructed,
	e.version, e.hash, e.flex_wh, e.estimated, e.final, e.missing, e.posted, e.waits_at, e.look_at, e.posted_wh`

func scanFlexEvent(s scanner, more ...any) (FlexEvent, error) {
	var r flexEventText
	var flexed, final sql.NullInt64
	var e FlexEvent
	err := s.Scan(append([]any{&e.ID, &e.SiteID, &e.AssetID, &e.SessionID, &r.day, &e.First, &e.Last, instant{&e.From}, instant{&e.To}, &r.meant, &r.nominated,
		instant{&e.Stay.From}, instant{&e.Stay.To}, &r.plan, &r.instructed,
		&e.Version, &e.Hash, &flexed, &e.Estimated, &final, &e.Missing, &e.Posted, instant{&e.WaitsAt}, instant{&e.LookAt}, &e.PostedWh}, more...)...)
	if err != nil {
		return e, err
	}

	if flexed.Valid {
		e.Flex = new(flex.WattHours(flexed.Int64))
	}

	if final.Valid {
		e.Final = new(flex.MicroPounds(final.Int64))
	}

	err = r.read(&e)

	return e, err
}

// flexEventText is what is stored of an event as text.
type flexEventText struct {
	day, meant, nominated, plan string
	instructed                  sql.NullString
}

func (r *flexEventText) read(e *FlexEvent) error {
	var faults [5]error
	e.Day, faults[0] = flex.ParseDay(r.day)
	e.Meant, faults[1] = readEnergies(r.meant)
	e.Nominated, faults[2] = readEnergies(r.nominated)
	e.StayPlan, faults[3] = readEnergies(r.plan)
	e.Instructed, faults[4] = readInstructed(r.instructed)

	return errors.Join(faults[:]...)
}

func writeEnergies(es []flex.WattHours) string { return writeNumbers(es) }

func readEnergies(text string) ([]flex.WattHours, error) {
	return readNumbers[flex.WattHours]("energies", text)
}

// eventLongest is how long a flex event can last: it lies in one day in London, and the longest has 25 hours. What touches a span
// began no longer than that before it, so that an asset's earlier events need not be read.
const eventLongest = 25 * time.Hour

// EventSpans returns the times of an asset's flex events that touch a span, and keeps other transactions from
// asking the same of the asset until this one ends: two that find its events at once must not have one half-hour both.
func (tx *Tx) EventSpans(
	ctx context.Context,
	asset flex.AssetID,
	within flex.Span,
) ([]flex.Span, error) {
	if lock := tx.db.d.lockEventsOf; lock != "" {
		var one int
		if err := tx.row(ctx, lock, asset.String()).Scan(&one); err != nil {
			return nil, err
		}
	}

	return rows(
		ctx,
		tx.conn,
		func(s scanner) (flex.Span, error) {
			var span flex.Span
			err := s.Scan(instant{&span.From}, instant{&span.To})
			return span, err
		},
		`SELECT from_at, to_at FROM flex_event WHERE org_id = $1 AND asset_id = $2 AND from_at < $3 AND to_at > $4 AND from_at > $5`,
		tx.org.Bytes(),
		asset.Bytes(),
		micros(within.To),
		micros(within.From),
		micros(within.From.Add(-eventLongest)),
	)
}

// overlapsEvent reports whether a flex event overlaps one of the same asset that is kept.
func (tx *Tx) overlapsEvent(ctx context.Context, e *FlexEvent) (bool, error) {
	var overlaps bool
	err := tx.row(
		ctx,
		`SELECT EXISTS (SELECT 1 FROM flex_event WHERE org_id = $1 AND asset_id = $2 AND from_at < $3 AND to_at > $4 AND from_at > $5)`,
		tx.org.Bytes(),
		e.AssetID.Bytes(),
		micros(e.To),
		micros(e.From),
		micros(e.From.Add(-eventLongest)),
	).Scan(&overlaps)

	return overlaps, err
}

// AddFlexEvent stores a flex event that was found. One that overlaps another of the same
// asset is not kept: a half-hour is settled once.
func (tx *Tx) AddFlexEvent(ctx context.Context, e *FlexEvent) (bool, error) {
	taken, err := tx.overlapsEvent(ctx, e)
	if err != nil || taken {
		return false, err
	}

	instructed, err := writeInstructed(e.Instructed)
	if err != nil {
		return false, err
	}

	model, err := tx.modelKeyOf(ctx, e.AssetID)
	if err != nil {
		return false, err
	}

	e.ID = flex.FlexEventID(tx.newID())
	row := append(
		tx.eventValues(e),
		value{"instructed", instructed},
		value{"cop11", isCOP11(e.AssetID, model)},
	)

	n, err := tx.insertOr(
		ctx,
		"flex_event",
		row,
		`ON CONFLICT (org_id, asset_id, from_at) DO NOTHING`,
	)
	if err != nil || n == 0 {
		return false, err
	}

	return true, tx.markCompared(ctx, e)
}

// eventValues are the columns of a flex event that was found, but for those that are read first.
func (tx *Tx) eventValues(e *FlexEvent) []value {
	return []value{
		{"id", e.ID.Bytes()},
		{"org_id", tx.org.Bytes()},
		{"site_id", e.SiteID.Bytes()},
		{"asset_id", e.AssetID.Bytes()},
		{"session_id", nullID(e.SessionID)},
		{"day", e.Day.String()},
		{"first", e.First},
		{"last", e.Last},
		{"from_at", micros(e.From)},
		{"to_at", micros(e.To)},
		{"meant", writeEnergies(e.Meant)},
		{"nominated", writeEnergies(e.Nominated)},
		{"detected_at", micros(tx.now)},
		{"estimated", int64(e.Estimated)},
		{"look_at", 0},
		{"stay_from", micros(e.Stay.From)},
		{"stay_to", micros(e.Stay.To)},
		{"stay_plan", writeEnergies(e.StayPlan)},
		{"power_w", powerOf(e.AssetID)},
		{"capacity_wh", capacityOf(e.AssetID)},
	}
}

// powerOf is an asset's power, also of one that was removed.
func powerOf(id flex.AssetID) expression {
	return expression{
		`COALESCE((SELECT power_w FROM asset WHERE id = ?), (SELECT power_w FROM former_asset WHERE id = ?), 0)`,
		[]any{id.Bytes(), id.Bytes()},
	}
}

// capacityOf is the capacity of an asset's battery, also of one that was removed; null if it is not known.
func capacityOf(id flex.AssetID) expression {
	return expression{
		`COALESCE((SELECT capacity_wh FROM asset WHERE id = ?), (SELECT capacity_wh FROM former_asset WHERE id = ?))`,
		[]any{id.Bytes(), id.Bytes()},
	}
}

// isCOP11 is whether an asset counted as metered by COP11, by the key of its model; also of one that was removed.
func isCOP11(id flex.AssetID, model string) expression {
	return expression{
		`COALESCE((SELECT m.cop11 AND a.installed_on <> '' FROM asset a JOIN model m ON m.key = ? WHERE a.id = ?),
			(SELECT cop11 FROM former_asset WHERE id = ?), FALSE)`,
		[]any{model, id.Bytes(), id.Bytes()},
	}
}

// FlexEvents returns the site's flex events, oldest first.
func (tx *Tx) FlexEvents(
	ctx context.Context,
	site flex.SiteID,
) ([]FlexEvent, error) {
	scan := func(s scanner) (FlexEvent, error) { return scanFlexEvent(s) }
	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT `+flexEventColumns+
			` FROM flex_event e WHERE e.org_id = $1 AND e.site_id = $2 ORDER BY e.from_at, e.id`,
		tx.org.Bytes(),
		site.Bytes(),
	)
}

// FlexEvent returns one flex event of the organisation.
func (tx *Tx) FlexEvent(
	ctx context.Context,
	id flex.FlexEventID,
) (FlexEvent, error) {
	scan := func(s scanner) (FlexEvent, error) { return scanFlexEvent(s) }
	return one(
		ctx,
		tx.conn,
		"flex event not found or not authorized",
		scan,
		`SELECT `+flexEventColumns+
			` FROM flex_event e WHERE e.org_id = $1 AND e.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// FlexEventsAt returns the sites' events that begin in the span and had been found by an
// instant, to be settled.
func (tx *Tx) FlexEventsAt(
	ctx context.Context,
	sites []flex.SiteID,
	span flex.Span,
	asOf time.Time,
) ([]FlexEvent, error) {
	list, args := in(
		[]any{tx.org.Bytes(), micros(span.From), micros(span.To), micros(asOf)},
		sites,
	)

	return tx.eventsWhere(
		ctx,
		`e.org_id = $1 AND e.from_at >= $2 AND e.from_at < $3 AND e.detected_at <= $4 AND e.site_id IN `+
			list,
		"",
		args[1:]...,
	)
}

// LockFlexEvents returns those of the events that are due still, as another process may have
// looked at them meanwhile, and that no other process holds, with all other events of their
// sites and days, which are settled together with them; it keeps others off them. Events of
// a site and day of which another process holds one are left to the next look.
func (tx *Tx) LockFlexEvents(
	ctx context.Context,
	ids []flex.FlexEventID,
) ([]FlexEvent, error) {
	// Found by their ids: IS TRUE keeps the organisation's index out, which would have it go
	// through all that are not final.
	list, args := in([]any{tx.org.Bytes(), micros(tx.now)}, ids)
	due, err := tx.eventsWhere(
		ctx,
		`e.id IN `+list+
			` AND (e.org_id = $1) IS TRUE AND `+flexEventDue,
		tx.lockEvents(),
		args[1:]...,
	)

	if err != nil || len(due) == 0 {
		return nil, err
	}

	for i := range due {
		due[i].Due = true
	}

	held, missed, err := tx.lockOthers(ctx, due)
	if err != nil {
		return nil, err
	}

	all := append(due, held...)

	return slices.DeleteFunc(all, func(e FlexEvent) bool {
		return missed[siteDay{e.SiteID, e.Day}]
	}), nil
}

// siteDay is a site's day.
type siteDay struct {
	site flex.SiteID
	day  flex.Day
}

// lockOthers holds the other events of the sites and days of some that are held already. It
// returns the sites and days of which another process holds an event.
func (tx *Tx) lockOthers(
	ctx context.Context,
	due []FlexEvent,
) ([]FlexEvent, map[siteDay]bool, error) {
	others, err := tx.otherEventsOfDays(ctx, due)
	if err != nil || len(others) == 0 {
		return nil, nil, err
	}

	ids := make([]flex.FlexEventID, len(others))
	for i, e := range others {
		ids[i] = e.ID
	}

	list, args := in([]any{tx.org.Bytes()}, ids)
	held, err := tx.eventsWhere(
		ctx,
		`e.id IN `+list+` AND (e.org_id = $1) IS TRUE`,
		tx.lockEvents(),
		args[1:]...,
	)
	if err != nil {
		return nil, nil, err
	}

	missed := map[siteDay]bool{}
	for _, e := range others {
		if !slices.ContainsFunc(held, func(h FlexEvent) bool {
			return h.ID == e.ID
		}) {
			missed[siteDay{e.SiteID, e.Day}] = true
		}
	}

	return held, missed, nil
}

// otherEventsOfDays returns the events of the same sites and days that are not among those due.
func (tx *Tx) otherEventsOfDays(
	ctx context.Context,
	due []FlexEvent,
) ([]FlexEvent, error) {
	days, have := map[siteDay]bool{}, map[flex.FlexEventID]bool{}
	var sites []flex.SiteID
	var texts []any

	for _, e := range due {
		if key := (siteDay{e.SiteID, e.Day}); !days[key] {
			days[key] = true
			sites, texts = append(sites, e.SiteID), append(texts, e.Day.String())
		}
		have[e.ID] = true
	}

	others, err := tx.eventsAt(ctx, sites, texts)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(others, func(e FlexEvent) bool {
		return have[e.ID] || !days[siteDay{e.SiteID, e.Day}]
	}), nil
}

// eventsAt returns all events of the sites on any of the days.
func (tx *Tx) eventsAt(
	ctx context.Context,
	sites []flex.SiteID,
	days []any,
) ([]FlexEvent, error) {
	list, args := in([]any{tx.org.Bytes()}, sites)
	var marks []string

	for _, d := range days {
		args = append(args, d)
		marks = append(marks, "$"+strconv.Itoa(len(args)))
	}

	scan := func(s scanner) (FlexEvent, error) { return scanFlexEvent(s) }

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT `+flexEventColumns+` FROM flex_event e
		WHERE e.org_id = $1 AND e.site_id IN `+list+` AND e.day IN (`+strings.Join(marks, ", ")+`) ORDER BY e.from_at, e.id`,
		args...,
	)
}

// lockEvents keeps other processes off the events that a query finds, where there are any.
func (tx *Tx) lockEvents() string {
	if tx.db.d.skipLocked == "" {
		return ""
	}
	return " FOR UPDATE OF e SKIP LOCKED"
}

func (tx *Tx) eventsWhere(
	ctx context.Context,
	where, lock string,
	args ...any,
) ([]FlexEvent, error) {
	scan := func(s scanner) (FlexEvent, error) {
		var consented, left, cop11 bool
		var typ string
		var power int64
		var gone time.Time
		var capacity int64
		e, err := scanFlexEvent(
			s,
			&consented,
			&left,
			instant{&gone},
			&cop11,
			&typ,
			&power,
			&capacity,
		)
		e.Consented, e.AssetLeft = consented && !left, left
		e.SiteConsented, e.GoneAt = consented, gone
		e.CoP11 = cop11
		e.Type, e.Power = flex.AssetType(typ), flex.Watts(power)
		e.Capacity = flex.WattHours(capacity)

		return e, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT `+flexEventColumns+`, `+
			consentedIn("e", "e.from_at", "e.to_at")+
			`, COALESCE(f.gone_at < e.to_at, FALSE) OR (`+anothersPoint+`), f.gone_at,
			COALESCE(e.cop11, m.cop11 AND a.installed_on <> '', f.cop11, FALSE), COALESCE(a.type, f.type, ''), COALESCE(e.power_w, a.power_w, f.power_w, 0),
			COALESCE(e.capacity_wh, a.capacity_wh, f.capacity_wh, 0)
		FROM flex_event e JOIN org o ON o.id = e.org_id LEFT JOIN asset a ON a.id = e.asset_id
			LEFT JOIN model m ON m.key = `+modelKeySQL+` LEFT JOIN former_asset f ON f.id = e.asset_id
		WHERE `+where+` ORDER BY e.from_at, e.id`+lock,
		append([]any{tx.org.Bytes()}, args...)...,
	)
}

// OrgsToSettle returns the organisations that have flex events to be found or settled.
func (all *All) OrgsToSettle(ctx context.Context) ([]flex.OrgID, error) {
	return rows(ctx, all.conn, scalar[flex.OrgID], `SELECT id FROM org o
		WHERE EXISTS (SELECT 1 FROM flex_event e WHERE e.org_id = o.id AND e.look_at IS NOT NULL)
			OR EXISTS (SELECT 1 FROM reckoning r WHERE r.org_id = o.id AND r.detect_at IS NOT NULL)
			OR EXISTS (SELECT 1 FROM pause p WHERE p.org_id = o.id AND NOT p.detected)
			OR EXISTS (SELECT 1 FROM dispatch_asset d WHERE d.org_id = o.id AND d.detect_at IS NOT NULL)
			OR `+anyPutOffOf(PutOffSessionEvents, PutOffPause, PutOffDispatch, PutOffFlexEvent)+` ORDER BY id`)
}
