package reading

import (
	"bytes"
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// HeldStates are the states of a reading that was held back, in the order of a list.
var HeldStates = []string{
	string(flex.HeldWaiting),
	flex.HeldReleased,
	flex.HeldMeterReplaced,
	flex.HeldDiscarded,
}

// HeldQuery selects readings that are held back; an empty field selects all, the state too.
type HeldQuery struct {
	Org   flex.OrgID
	Asset flex.AssetID
	Label flex.Label
	Site  flex.SiteID
	State flex.HeldState
	// those that cover any time from From on, and begin before To
	From   time.Time
	To     time.Time
	Before flex.HeldID // those older than this one
	Limit  int
	Offset int
}

// HeldView lists readings that are held back, the newest first, with the total number.
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

// Waits reports whether it is not decided yet.
func (l HeldLine) Waits() bool { return l.State == string(flex.HeldWaiting) }

// filter returns the query of the database.
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

// HeldOf lists readings that are held back, of every organisation or of one.
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

// HeldReading returns a reading that was held back, of any organisation.
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

// HeldOrg returns the organisation of a reading that was held back.
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

// nameHeld sets the assets' names.
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
