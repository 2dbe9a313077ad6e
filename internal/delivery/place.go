package delivery

import (
	"cmp"
	"context"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Place is the position of a delivery in a sorted list.
type Place struct {
	ID  flex.EventID
	Key int64 // as Line's Key has it
	org flex.OrgID
}

// Places returns the positions of the deliveries that Overview lists, in the same order and
// number. It reads nothing else, so that a long list is sorted once and then read in parts.
func (s *Service) Places(
	ctx context.Context,
	f Filter,
) ([]Place, error) {
	var places []Place
	order := store.DeliveryOrder(f.Sort)
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		places = nil
		f.since(all.Now())
		_, err := all.VisitOrgs(ctx, f.Org, func(o flex.Org, tx *store.Tx) error {
			found, err := tx.DeliveryPlaces(ctx, f.query())
			for _, x := range found {
				places = append(places, Place{x.ID, x.Key, o.ID})
			}

			slices.SortFunc(places, func(a, b Place) int {
				return order.CompareDeliveries(a.Key, b.Key, a.ID, b.ID)
			})
			places = places[:min(len(places), f.Limit)]

			return err
		})

		return err
	})

	return places, err
}

// At returns the deliveries at the given positions, in their order. Those that were deleted
// are left out.
func (s *Service) At(
	ctx context.Context,
	places []Place,
) ([]Line, error) {
	ids := map[flex.OrgID][]flex.EventID{}
	at := make(map[flex.EventID]int, len(places))
	for i, p := range places {
		ids[p.org] = append(ids[p.org], p.ID)
		at[p.ID] = i
	}

	var v Overview
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		v = Overview{}
		_, err := all.VisitOrgs(ctx, flex.OrgID{}, func(o flex.Org, tx *store.Tx) error {
			if len(ids[o.ID]) == 0 {
				return nil
			}

			found, err := tx.DeliveriesByID(ctx, ids[o.ID])
			v.add(found, o.Name, "")

			return err
		})
		if err != nil {
			return err
		}

		slices.SortFunc(v.Deliveries, func(a, b Line) int {
			return cmp.Compare(at[a.ID], at[b.ID])
		})

		return v.name(ctx, all)
	})

	return v.Deliveries, err
}
