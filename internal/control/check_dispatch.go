package control

import (
	"context"
	"slices"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// CheckDispatch refuses a dispatch for an unknown market, and one that an asset cannot follow.
// It is Malformed for an unknown market, and if a charger, a heater or a car that may not
// discharge is asked to discharge. It is a Conflict if CheckExport finds no headroom of the
// feeder, if CheckImport finds none under a cap, if a site's own main fuse or export limit
// leaves none, or if an instruction calls the asset. It runs in the transaction of the
// dispatch, and keeps others from planning what is at the sites of its assets until that ends.
func CheckDispatch(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	if !slices.Contains(InstructionServices, order.Market) {
		return flex.Fail(
			flex.Malformed,
			"there is no market %q: it is one of %s",
			order.Market,
			strings.Join(InstructionServices, ", "),
		)
	}

	for _, a := range order.Assets {
		if a.Power >= 0 {
			continue
		}

		if err := checkDischargeOf(ctx, tx, a.ID); err != nil {
			return err
		}
	}

	if err := checkCalls(ctx, tx, order); err != nil {
		return err
	}

	// Who plans a battery without knowledge of the dispatch would send the battery's own plan
	// for its time, and take away the mark by which it is planned around the dispatch.
	if err := tx.LockAllToPlan(ctx, idsOf(order)); err != nil {
		return err
	}

	if err := CheckExport(ctx, tx, order); err != nil {
		return err
	}

	if err := CheckImport(ctx, tx, order); err != nil {
		return err
	}

	return checkSites(ctx, tx, order)
}

// checkDischargeOf refuses an asset that cannot or may not give energy.
func checkDischargeOf(ctx context.Context, tx *store.Tx, id flex.AssetID) error {
	a, err := tx.Asset(ctx, id)
	if err != nil || a.Type == flex.Battery { // for which no consent is needed
		return err
	}

	site, err := tx.Site(ctx, a.SiteID)
	if err != nil {
		return err
	}

	return checkDischarges(&a, !site.DischargeConsentAt.IsZero())
}

// checkDischarges refuses an asset unless it is a battery, or a car that can discharge at a
// site that consented to it.
func checkDischarges(a *flex.Asset, consented bool) error {
	if a.Type == flex.Battery {
		return nil
	}

	if a.Discharge.Power == 0 {
		return flex.Fail(
			flex.Malformed,
			"asset %v (%s) has no discharge power, and is asked to give: a power below zero is for batteries and for cars that may discharge",
			a.ID,
			typeName(a.Type),
		)
	}

	if !consented {
		return flex.Fail(
			flex.Malformed,
			"asset %v is asked to give, and its site has not consented to its cars being discharged",
			a.ID,
		)
	}

	return nil
}

// typeName is what an asset is, in words.
func typeName(t flex.AssetType) string {
	return strings.ReplaceAll(string(t), "_", " ")
}
