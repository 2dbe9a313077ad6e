package reading

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// MissingQuery asks what is missing of an organisation's readings.
type MissingQuery struct {
	Org    flex.OrgID   // the first of them if zero
	To     flex.Day     // the last day; today if zero
	Days   int          // so many
	Before flex.AssetID // of assets older than this one
	Limit  int          // of so many assets
}

// MissingView is what is missing by asset and day, and what was refused.
type MissingView struct {
	Orgs    []flex.Org
	Org     flex.OrgID // zero if there is none
	Days    []flex.Day
	Rows    []MissingRow
	Next    flex.AssetID // the next page is before it; zero if there is none
	Refused []RefusedLine
	Missing int // half-hours, of those shown
	Wanted  int
}

// MissingRow is the days of what is read of an asset.
type MissingRow struct {
	ID         flex.AssetID
	ExternalID string
	SiteID     flex.SiteID
	Label      flex.Label // of the readings
	Cells      []MissingCell
	Missing    int // on all of the days
}

// MissingCell is a day of an asset: how many half-hours are wanted, and how many are missing.
type MissingCell struct {
	Day     flex.Day
	Wanted  int
	Missing int
}

// Level says how bad it is: none wanted, all there, some, half or all missing.
func (c MissingCell) Level() string { return flex.MissingLevel(c.Missing, c.Wanted) }

// RefusedLine is what was refused of an asset on a day, with the asset's name.
type RefusedLine struct {
	Day       flex.Day
	Label     string
	Count     int64
	Example   string       // the newest, with its numbers
	AssetID   flex.AssetID // that it was for
	AssetName string
}

// MissingOf says what is missing of an organisation's readings, by asset and day.
func (s *Service) MissingOf(
	ctx context.Context,
	q MissingQuery,
) (MissingView, error) {
	var v MissingView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, q.Org)
		v = MissingView{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		v.Org = tx.Org()
		last := q.To
		if last == (flex.Day{}) {
			last = flex.DayAt(tx.Now())
		}

		for i := q.Days - 1; i >= 0; i-- {
			v.Days = append(v.Days, last.Add(-i))
		}

		if err := v.addRows(ctx, all, tx, q); err != nil {
			return err
		}
		return v.addRefused(ctx, all, tx)
	})

	return v, err
}

// addRefused lists what was refused in the days.
func (v *MissingView) addRefused(
	ctx context.Context,
	all *store.All,
	tx *store.Tx,
) error {
	refused, err := tx.RefusedSince(ctx, v.Days[0])
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(refused))
	for i, r := range refused {
		ids[i] = r.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	for _, r := range refused {
		v.Refused = append(v.Refused, RefusedLine{
			Day:       r.Day,
			Label:     r.Label,
			Count:     r.Count,
			Example:   r.Example,
			AssetID:   r.AssetID,
			AssetName: names[r.AssetID],
		})
	}

	return err
}

// addRows counts what is missing of a page of assets, whatever is read of each.
func (v *MissingView) addRows(
	ctx context.Context,
	all *store.All,
	tx *store.Tx,
	q MissingQuery,
) error {
	assets, err := all.FindAssets(ctx, store.Find{
		Org:    v.Org,
		Before: q.Before,
		Limit:  q.Limit + 1,
	})
	if err != nil {
		return err
	}

	if len(assets) > q.Limit {
		assets = assets[:q.Limit]
		v.Next = assets[q.Limit-1].ID
	}

	for part := range slices.Chunk(assets, missingPart) {
		if err := v.addPart(ctx, tx, part); err != nil {
			return err
		}
	}

	slices.SortStableFunc(v.Rows, func(a, b MissingRow) int {
		return b.Missing - a.Missing
	})

	return nil
}

// missingPart is the number of assets whose readings are in memory at once: a power may be read
// each minute.
const missingPart = 5

// heard is what is known of some assets' readings.
type heard struct {
	readings map[flex.AssetID][]flex.Reading
	before   map[flex.AssetID][]flex.Reading // of states, in the half-hour before the days
	sessions map[flex.AssetID][]flex.Span
	ever     map[flex.SiteID]map[flex.AssetID]bool // those that ever sent steady ones
	now      time.Time
}

// hear reads what is known of the assets' readings on the days.
func (v *MissingView) hear(
	ctx context.Context,
	tx *store.Tx,
	assets []store.AssetLine,
) (heard, error) {
	h := heard{now: tx.Now()}

	ids := make([]flex.AssetID, len(assets))
	sites := make([]flex.SiteID, len(assets))
	for i, a := range assets {
		ids[i], sites[i] = a.ID, a.SiteID
	}

	found, err := tx.Readings(ctx, store.ReadingQuery{
		Assets: ids,
		Labels: measuredLabels(),
		Days:   v.Days,
	})
	if err != nil {
		return h, err
	}

	h.readings = byAsset(found)

	h.before, err = v.statesBefore(ctx, tx, ids)
	if err != nil {
		return h, err
	}

	h.sessions, err = tx.SessionSpans(ctx, ids, v.span())
	if err != nil {
		return h, err
	}

	slices.SortFunc(sites, func(a, b flex.SiteID) int {
		return bytes.Compare(a[:], b[:])
	})
	h.ever, err = tx.SteadyAt(ctx, slices.Compact(sites))

	return h, err
}

// statesBefore reads the states of the half-hour before the days, which count for their first one too.
func (v *MissingView) statesBefore(
	ctx context.Context,
	tx *store.Tx,
	assets []flex.AssetID,
) (map[flex.AssetID][]flex.Reading, error) {
	found, err := tx.Readings(ctx, store.ReadingQuery{
		Assets: assets,
		Labels: stateLabels(),
		Days:   []flex.Day{v.Days[0].Add(-1)},
		Within: flex.PeriodAt(v.Days[0].Start()).Add(-1).Span(),
	})

	return byAsset(found), err
}

// byAsset are readings by their asset.
func byAsset(all []flex.Reading) map[flex.AssetID][]flex.Reading {
	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range all {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	return by
}

// span is from the first of the days to the end of the last.
func (v *MissingView) span() flex.Span {
	last := v.Days[len(v.Days)-1]
	return flex.Span{From: v.Days[0].Start(), To: last.Span().To}
}

// addPart counts what is missing of some assets.
func (v *MissingView) addPart(
	ctx context.Context,
	tx *store.Tx,
	assets []store.AssetLine,
) error {
	h, err := v.hear(ctx, tx, assets)
	if err != nil {
		return err
	}

	for _, a := range assets {
		rs := h.readings[a.ID]
		for _, m := range expectedMeasures(a.Asset, rs, h.ever[a.SiteID][a.ID]) {
			row := MissingRow{
				ID:         a.ID,
				ExternalID: a.ExternalID,
				SiteID:     a.SiteID,
				Label:      m.label(rs),
			}

			o := owed{
				from:     a.CreatedAt,
				to:       h.now,
				sessions: h.sessions[a.ID],
				always:   !m.inSessions(a.Type),
			}
			o.always = o.always || slices.ContainsFunc(rs, func(r flex.Reading) bool {
				return m.has(r.Label) && !o.touched(r.Span)
			})

			known := m.known(slices.Concat(h.before[a.ID], rs))
			v.count(&row, known, &o)
			v.Rows = append(v.Rows, row)
		}
	}

	return nil
}

// count fills in a row's days.
func (v *MissingView) count(
	row *MissingRow,
	known func(flex.Period) bool,
	o *owed,
) {
	for _, day := range v.Days {
		c := missingOn(day, known, o)
		row.Missing += c.Missing
		v.Wanted, v.Missing = v.Wanted+c.Wanted, v.Missing+c.Missing
		row.Cells = append(row.Cells, c)
	}
}

// owed says which half-hours are wanted of an asset: those that are over, and after it was registered.
// A charger that sends readings of its sessions alone owes no others.
type owed struct {
	from, to time.Time
	sessions []flex.Span // the end of an open one is zero
	always   bool        // at any time: it sent readings of a time without a car, or has no sessions
}

// wants reports whether a half-hour is wanted: of a session, one that lies in it as a whole.
func (o *owed) wants(p flex.Period) bool {
	if p.End().After(o.to) || p.Start().Before(o.from) {
		return false
	}

	return o.always || slices.ContainsFunc(o.sessions, func(s flex.Span) bool {
		over := s.To.IsZero() || !p.End().After(s.To)
		return over && !p.Start().Before(s.From)
	})
}

// touched reports whether a car was plugged in at some time of the span.
func (o *owed) touched(span flex.Span) bool {
	return slices.ContainsFunc(o.sessions, func(s flex.Span) bool {
		open := s.To.IsZero() || s.To.After(span.From)
		return open && s.From.Before(span.To)
	})
}

// missingOn counts the half-hours of a day that are wanted.
func missingOn(
	day flex.Day,
	known func(flex.Period) bool,
	o *owed,
) MissingCell {
	c := MissingCell{Day: day}
	for n := 1; n <= day.Periods(); n++ {
		p := day.Period(n)
		if !o.wants(p) {
			continue
		}

		c.Wanted++
		if !known(p) {
			c.Missing++
		}
	}

	return c
}
