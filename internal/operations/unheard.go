package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// findOffline finds chargers that their clients do not reach.
func findOffline(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, total, err := all.Unreached(ctx, org, OfflineAfter, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, unheardIDs(found))

	return []Exception{{
		Kind: Offline, Level: Critical, Count: total, Assets: assets,
		Title: fmt.Sprintf(
			"%s plugged in that the client does not reach, the longest since %s",
			count(total, "asset"),
			instantText(found[0].Since),
		),
		Text: "The client has the schedule, and reported for a quarter of an hour only that it received it: the charger is offline, or has not connected." +
			" It goes on with what it has. Where they are many of one maker, ask its client; a single one is the household's to connect.",
	}}, err
}

// findReadingsMissing finds assets whose readings stopped.
func findReadingsMissing(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, total, err := all.ReadingsMissing(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	assets, err := examplesOf(ctx, all, unheardIDs(found))

	return []Exception{{
		Kind: ReadingsMissing, Level: Warning, Count: total, Assets: assets,
		Title: fmt.Sprintf(
			"%s whose readings stopped, the first after %s",
			count(total, "asset"),
			instantText(found[0].Since),
		),
		Text: "None came for two days, of a battery for a day; of a charger, none in the two days since a car was plugged in. What they draw cannot be settled until readings come, and a battery is planned on what its last plan comes to: ask the client that reports them.",
	}}, err
}

// findChargeMissing finds batteries whose state of charge stopped coming while other readings come.
func findChargeMissing(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, total, err := all.ChargeMissing(ctx, org, examplesMax)
	if err != nil || total == 0 {
		return nil, err
	}

	title := "batteries whose state of charge stopped coming, the first after"
	if total == 1 {
		title = "battery whose state of charge stopped coming, after"
	}

	assets, err := examplesOf(ctx, all, unheardIDs(found))

	return []Exception{{
		Kind:   ChargeMissing,
		Level:  Warning,
		Count:  total,
		Assets: assets,
		Title:  fmt.Sprintf("%d %s %s", total, title, instantText(found[0].Since)),
		Text: "Other readings of it come, but battery_state_of_charge_pct or battery_stored_energy_kwh has not for a day:" +
			" it is planned on what its plans come to. Ask the client that reports it.",
	}}, err
}

func unheardIDs(found []store.Unheard) []flex.AssetID {
	ids := make([]flex.AssetID, len(found))
	for i, u := range found {
		ids[i] = u.AssetID
	}

	return ids
}
