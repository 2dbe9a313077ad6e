package reading

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// MissingQuery asks for the missing readings of an organisation.
type MissingQuery struct {
	Org    flex.OrgID   // the first of them if zero
	To     flex.Day     // the last day; today if zero
	Days   int          // the number of days
	Before flex.AssetID // only assets that are older than this one
	Limit  int          // the number of assets
}

// MissingView lists missing readings by asset and day, and the refused ones.
type MissingView struct {
	Orgs     []flex.Org
	Org      flex.OrgID // zero if there is none
	Days     []flex.Day
	Rows     []MissingRow
	Next     flex.AssetID // the next page is before it; zero if there is none
	Refused  []RefusedLine
	Missing  int // half-hours, of those shown
	Expected int
}

// MissingRow has the days of one measure of an asset.
type MissingRow struct {
	ID         flex.AssetID
	ExternalID string
	SiteID     flex.SiteID
	Label      flex.Label // of the readings
	Cells      []MissingCell
	Missing    int // on all of the days
}

// MissingCell is a day of an asset: the number of half-hours that are expected, and of those
// that are missing.
type MissingCell struct {
	Day      flex.Day
	Expected int
	Missing  int
}

// Level classifies the cell: none expected, all there, some, half or all missing.
func (c MissingCell) Level() string { return flex.MissingLevel(c.Missing, c.Expected) }

// RefusedLine is a reason for which readings of an asset were refused on a day, with the
// asset's name.
type RefusedLine struct {
	Day       flex.Day
	Label     string
	Count     int64
	Example   string       // the newest, with its numbers
	AssetID   flex.AssetID // that it was for
	AssetName string
}

// MissingOf lists the missing readings of an organisation, by asset and day.
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
	counts, err := tx.RefusedSince(ctx, v.Days[0])
	if err != nil {
		return err
	}

	ids := make([]flex.AssetID, len(counts))
	for i, r := range counts {
		ids[i] = r.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	for _, r := range counts {
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

// addRows counts the missing readings of a page of assets, for each of their measures.
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

// missingPart is the number of assets whose readings are in memory at a time: a power may be
// read each minute.
const missingPart = 5

// storedReadings are the readings of some assets, and what is needed to know which are missing.
type storedReadings struct {
	readings map[flex.AssetID][]flex.Reading
	before   map[flex.AssetID][]flex.Reading // of states, in the half-hour before the days
	sessions map[flex.AssetID][]flex.Span
	everSent map[flex.SiteID]map[flex.AssetID]bool // those that ever sent steady ones
	now      time.Time
}

// readStored reads the assets' readings on the days.
func (v *MissingView) readStored(
	ctx context.Context,
	tx *store.Tx,
	assets []store.AssetLine,
) (storedReadings, error) {
	h := storedReadings{now: tx.Now()}

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
	h.everSent, err = tx.SteadyAt(ctx, slices.Compact(sites))

	return h, err
}

// statesBefore reads the states of the half-hour before the days, which count for the first
// half-hour too.
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

// byAsset groups readings by asset.
func byAsset(all []flex.Reading) map[flex.AssetID][]flex.Reading {
	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range all {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	return by
}

// span returns the time from the first of the days to the end of the last.
func (v *MissingView) span() flex.Span {
	last := v.Days[len(v.Days)-1]
	return flex.Span{From: v.Days[0].Start(), To: last.Span().To}
}

// addPart counts the missing readings of some assets.
func (v *MissingView) addPart(
	ctx context.Context,
	tx *store.Tx,
	assets []store.AssetLine,
) error {
	h, err := v.readStored(ctx, tx, assets)
	if err != nil {
		return err
	}

	for _, a := range assets {
		rs := h.readings[a.ID]
		for _, m := range expectedMeasures(a.Asset, rs, h.everSent[a.SiteID][a.ID]) {
			row := MissingRow{
				ID:         a.ID,
				ExternalID: a.ExternalID,
				SiteID:     a.SiteID,
				Label:      m.label(rs),
			}

			o := expectedTimes{
				from:     a.CreatedAt,
				to:       h.now,
				sessions: h.sessions[a.ID],
				always:   !m.inSessions(a.Type),
			}
			o.always = o.always || slices.ContainsFunc(rs, func(r flex.Reading) bool {
				return m.has(r.Label) && !o.overlaps(r.Span)
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
	o *expectedTimes,
) {
	for _, day := range v.Days {
		c := missingOn(day, known, o)
		row.Missing += c.Missing
		v.Expected, v.Missing = v.Expected+c.Expected, v.Missing+c.Missing
		row.Cells = append(row.Cells, c)
	}
}

// expectedTimes says which half-hours are expected of an asset: those that are over and began
// after it was registered. Of a charger that only sends readings of its sessions no others are
// expected.
type expectedTimes struct {
	from, to time.Time
	sessions []flex.Span // the end of an open one is zero
	always   bool        // at any time: it sent readings outside its sessions, or has no sessions
}

// isExpected reports whether a half-hour is expected. Of a session, only those that lie in it
// completely are.
func (o *expectedTimes) isExpected(p flex.Period) bool {
	if p.End().After(o.to) || p.Start().Before(o.from) {
		return false
	}

	return o.always || slices.ContainsFunc(o.sessions, func(s flex.Span) bool {
		afterEnd := s.To.IsZero() || !p.End().After(s.To)
		return afterEnd && !p.Start().Before(s.From)
	})
}

// overlaps reports whether a car was plugged in at any time of the span.
func (o *expectedTimes) overlaps(span flex.Span) bool {
	return slices.ContainsFunc(o.sessions, func(s flex.Span) bool {
		open := s.To.IsZero() || s.To.After(span.From)
		return open && s.From.Before(span.To)
	})
}

// missingOn counts the half-hours of a day that are expected, and those that are missing.
func missingOn(
	day flex.Day,
	known func(flex.Period) bool,
	o *expectedTimes,
) MissingCell {
	c := MissingCell{Day: day}
	for n := 1; n <= day.Periods(); n++ {
		p := day.Period(n)
		if !o.isExpected(p) {
			continue
		}

		c.Expected++
		if !known(p) {
			c.Missing++
		}
	}

	return c
}
