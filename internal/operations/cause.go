package operations

import (
	"context"
	"math"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Short is the cause of every asset that will not have what it needs, whatever keeps it from that.
const Short Kind = "short"

// Causes are the exceptions whose assets can be listed, all of them and not examples alone.
var Causes = []Kind{
	Refused,
	DispatchRefused,
	Waiting,
	Offline,
	Short,
	ShortTime,
	ShortOffPeak,
	ShortHeadroom,
	NotReleased,
	PlanRefused,
	Unplanned,
	Excluded,
	TankCold,
	RoomCold,
	SiteCutShort,
	ReadingsMissing,
	ChargeMissing,
}

// AssetsOf returns the assets of an exception, of one organisation or, if org is zero, of all: as many
// as Exceptions counts. The list is never nil.
func (s *Service) AssetsOf(
	ctx context.Context,
	cause Kind,
	org flex.OrgID,
) ([]flex.AssetID, error) {
	if !slices.Contains(Causes, cause) {
		return nil, flex.Fail(
			flex.Invalid,
			"there is no cause %q whose assets are listed: there are %s",
			string(cause),
			causeNames(),
		)
	}

	ids := []flex.AssetID{}
	fleet, err := s.Look(ctx)
	if err != nil {
		return nil, err
	}

	if find := fleetCauses[cause]; find != nil {
		for _, o := range fleet.Orgs {
			if org.IsZero() || o.ID == org {
				ids = append(ids, find(fleet.ByOrg[o.ID])...)
			}
		}
	}

	look := storedCauses[cause]
	if look == nil {
		return ids, nil
	}

	plugged := ids
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		ids = slices.Clone(plugged) // a read may be run again
		for _, of := range orgsToSearch(ctx, org) {
			more, err := look(ctx, all, of)
			if err != nil {
				return err
			}
			ids = append(ids, more...)
		}

		return nil
	})

	return ids, err
}

func causeNames() string {
	names := make([]string, len(Causes))
	for i, k := range Causes {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// fleetCauses find assets in the picture of the fleet. A cause may be in storedCauses too: its assets are both together.
var fleetCauses = map[Kind]func(*Outlook) []flex.AssetID{
	Short: func(o *Outlook) []flex.AssetID {
		var ids []flex.AssetID
		for _, s := range o.short {
			ids = append(ids, s.ids...)
		}
		return ids
	},
	ShortTime:     func(o *Outlook) []flex.AssetID { return o.short[ShortOfTime].ids },
	ShortOffPeak:  func(o *Outlook) []flex.AssetID { return o.short[ShortOfOffPeak].ids },
	ShortHeadroom: func(o *Outlook) []flex.AssetID { return o.short[ShortOfHeadroom].ids },
	PlanRefused:   func(o *Outlook) []flex.AssetID { return o.refused },
	Unplanned:     func(o *Outlook) []flex.AssetID { return o.unplannedIDs },
	SiteCutShort:  func(o *Outlook) []flex.AssetID { return o.cutShort },
}

// storedCauses find assets in the database, by the reads that the exceptions are counted by.
var storedCauses = map[Kind]func(context.Context, *store.All, flex.OrgID) ([]flex.AssetID, error){
	Refused: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		found, _, err := all.RefusedSchedules(ctx, org, math.MaxInt32)
		var ids []flex.AssetID
		for _, r := range found {
			ids = append(ids, r.AssetID)
		}
		return ids, err
	},
	DispatchRefused: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		found, _, err := all.RefusedDispatches(ctx, org, math.MaxInt32)
		return refusedIDs(found), err
	},
	Waiting: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		late := all.Now().Add(-LateAfter)
		found, _, err := all.WaitingSince(ctx, org, late, math.MaxInt32)
		var ids []flex.AssetID
		for _, w := range found {
			if !w.AssetID.IsZero() {
				ids = append(ids, w.AssetID)
			}
		}
		return ids, err
	},
	Offline: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		found, _, err := all.Unreached(ctx, org, OfflineAfter, math.MaxInt32)
		return unheardIDs(found), err
	},
	PlanRefused: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		return all.RefusedBatteries(ctx, org)
	},
	Excluded: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		ids, _, _, err := all.ExcludedAssets(ctx, org, math.MaxInt32)
		return ids, err
	},
	TankCold: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		return all.ColdTanks(ctx, org, TankLackMin)
	},
	RoomCold: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		return all.ColdRooms(ctx, org, RoomLackMin)
	},
	NotReleased: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		ids, _, err := all.NotReleased(ctx, org, math.MaxInt32)
		return ids, err
	},
	ReadingsMissing: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		found, _, err := all.ReadingsMissing(ctx, org, math.MaxInt32)
		return unheardIDs(found), err
	},
	ChargeMissing: func(ctx context.Context, all *store.All, org flex.OrgID) ([]flex.AssetID, error) {
		found, _, err := all.ChargeMissing(ctx, org, math.MaxInt32)
		return unheardIDs(found), err
	},
}
