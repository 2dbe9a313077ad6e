package reading

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// HeldStates are the states of a reading that was held back, in the order of a list.
var HeldStates = []string{
	string(flex.HeldWaiting),
	flex.HeldReleased,
	flex.HeldMeterReplaced,
	flex.HeldDiscarded,
}

// HeldQuery says which held readings are looked for; what is empty takes all, the state too.
type HeldQuery struct {
	Org   flex.OrgID
	Asset flex.AssetID
	Label flex.Label
	Site  flex.SiteID
	State flex.HeldState
	// those that tell of any time from From on, and begin before To
	From   time.Time
	To     time.Time
	Before flex.HeldID // those older than this one
	Limit  int
	Offset int
}

// HeldView is what is held back, the newest first, and how much there is in all.
type HeldView struct {
	Orgs     []flex.Org
	Readings []HeldLine
	Total    int
}

// HeldLine is a reading that was held back, with the names of its organisation and its asset.
type HeldLine struct {
	ID        flex.HeldID  `json:"id"`
	Org       flex.OrgID   `json:"organisation_id"`
	OrgName   string       `json:"organisation"`
	AssetID   flex.AssetID `json:"asset_id"`
	AssetName string       `json:"external_id"`
	Label     flex.Label   `json:"label"`
	From      time.Time    `json:"start_timestamp"`
	To        time.Time    `json:"end_timestamp"`
	// in kWh, kW or percent, as its label says
	Number    float64   `json:"value"`
	Reason    string    `json:"reason"`
	Detail    string    `json:"detail"`
	HeldAt    time.Time `json:"held_at"`
	State     string    `json:"state"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
}

func heldLine(h *flex.HeldReading, org flex.OrgID) HeldLine {
	return HeldLine{
		ID:        h.ID,
		Org:       org,
		AssetID:   h.AssetID,
		Label:     h.Label,
		From:      h.From,
		To:        h.To,
		Number:    float64(h.Value) / 1e6,
		Reason:    h.Reason,
		Detail:    h.Detail,
		HeldAt:    h.HeldAt,
		State:     string(h.State()),
		DecidedAt: h.DecidedAt,
	}
}

// Register reports whether the label is a register's.
func (l HeldLine) Register() bool { return Register(l.Label) }

// Waits reports whether it can still be decided on.
func (l HeldLine) Waits() bool { return l.State == string(flex.HeldWaiting) }

// filter is the query as the database takes it.
func (q *HeldQuery) filter() store.HeldFilter {
	return store.HeldFilter{
		Asset:  q.Asset,
		Site:   q.Site,
		Label:  q.Label,
		State:  q.State,
		From:   q.From,
		To:     q.To,
		Before: q.Before,
		Limit:  q.Limit,
		Offset: q.Offset,
	}
}

// HeldOf lists what is held back, of every organisation or of one.
func (s *Service) HeldOf(
	ctx context.Context,
	q HeldQuery,
) (HeldView, error) {
	f := q.filter()

	var v HeldView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		v = HeldView{}
		var err error
		v.Orgs, err = all.VisitOrgs(ctx, q.Org, func(o flex.Org, tx *store.Tx) error {
			found, total, err := tx.HeldReadings(ctx, f)
			v.Total += total

			for _, h := range found {
				l := heldLine(&h, o.ID)
				l.OrgName = o.Name
				v.Readings = append(v.Readings, l)
			}

			return err
		})
		if err != nil {
			return err
		}

		slices.SortFunc(v.Readings, func(a, b HeldLine) int {
			return bytes.Compare(b.ID[:], a.ID[:])
		})
		v.Readings = v.Readings[:min(len(v.Readings), q.Limit)]
		return nameHeld(ctx, all, v.Readings)
	})

	return v, err
}

// HeldReading returns a reading that was held back, whosever it is.
func (s *Service) HeldReading(
	ctx context.Context,
	id flex.HeldID,
) (HeldLine, error) {
	var l HeldLine
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		org, err := all.HeldOrg(ctx, id)
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		found, err := tx.HeldReading(ctx, id)
		if err != nil {
			return err
		}

		one := []HeldLine{heldLine(&found, org)}
		err = nameHeld(ctx, all, one)
		l = one[0]
		return err
	})

	return l, err
}

// HeldOrg returns whose a reading is that was held back.
func (s *Service) HeldOrg(
	ctx context.Context,
	id flex.HeldID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.HeldOrg(ctx, id)
		return err
	})

	return org, err
}

// nameHeld looks up the assets' names.
func nameHeld(ctx context.Context, all *store.All, lines []HeldLine) error {
	ids := make([]flex.AssetID, len(lines))
	for i, h := range lines {
		ids[i] = h.AssetID
	}

	names, err := all.AssetNames(ctx, ids)
	for i, h := range lines {
		lines[i].AssetName = names[h.AssetID]
	}

	return err
}

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

// MissingRow is an asset's days.
type MissingRow struct {
	ID         flex.AssetID
	ExternalID string
	SiteID     flex.SiteID
	CreatedAt  time.Time
	Cells      []MissingCell
	Missing    int // on all of the days
}

// MissingCell is a day of an asset: so many half-hours wanted, and missing.
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

// addRows counts what is missing of assets that charge: their own half-hours are what
// settlement needs.
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

	for _, a := range assets {
		if a.Type.Charges() {
			v.Rows = append(v.Rows, MissingRow{
				ID:         a.ID,
				ExternalID: a.ExternalID,
				SiteID:     a.SiteID,
				CreatedAt:  a.CreatedAt,
			})
		}
	}

	return v.fillRows(ctx, tx)
}

// fillRows counts what is missing of the rows' assets.
func (v *MissingView) fillRows(ctx context.Context, tx *store.Tx) error {
	ids := make([]flex.AssetID, len(v.Rows))
	for i := range v.Rows {
		ids[i] = v.Rows[i].ID
	}

	found, err := tx.Readings(ctx, store.ReadingQuery{
		Assets: ids,
		Labels: []flex.Label{flex.ChargerEnergy, flex.ChargerRegister},
		Days:   v.Days,
	})
	if err != nil {
		return err
	}

	sessions, err := tx.SessionSpans(ctx, ids, flex.Span{
		From: v.Days[0].Start(),
		To:   v.Days[len(v.Days)-1].Span().To,
	})
	if err != nil {
		return err
	}

	by := map[flex.AssetID][]flex.Reading{}
	for _, r := range found {
		by[r.AssetID] = append(by[r.AssetID], r)
	}

	for i := range v.Rows {
		id := v.Rows[i].ID
		v.count(&v.Rows[i], by[id], sessions[id], tx.Now())
	}

	slices.SortStableFunc(v.Rows, func(a, b MissingRow) int {
		return b.Missing - a.Missing
	})

	return nil
}

// count fills in a row's days.
func (v *MissingView) count(
	row *MissingRow,
	rs []flex.Reading,
	sessions []flex.Span,
	now time.Time,
) {
	metered := map[flex.Day]*settle.MeteredDay{}
	days := settle.HalfHours(settle.Asset, rs)
	for j := range days {
		metered[days[j].Day] = &days[j]
	}

	o := owed{from: row.CreatedAt, to: now, sessions: sessions}
	o.always = slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return !o.touched(r.Span)
	})

	for _, day := range v.Days {
		c := missingOn(day, metered[day], &o)
		row.Missing += c.Missing
		v.Wanted, v.Missing = v.Wanted+c.Wanted, v.Missing+c.Missing
		row.Cells = append(row.Cells, c)
	}
}

// owed says which half-hours are wanted of a charger: those that are over, and after it was registered.
// One that sends readings of its sessions alone owes no others.
type owed struct {
	from, to time.Time
	sessions []flex.Span // the end of an open one is zero
	always   bool        // it sent readings of a time without a car
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
func missingOn(day flex.Day, m *settle.MeteredDay, o *owed) MissingCell {
	c := MissingCell{Day: day}
	for n := 1; n <= day.Periods(); n++ {
		q := day.Period(n)
		if !o.wants(q) {
			continue
		}

		c.Wanted++

		if m != nil {
			if _, known := m.At(n); known {
				continue
			}
		}

		c.Missing++
	}

	return c
}
