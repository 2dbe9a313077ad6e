package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// What an operator does to one asset. The caller provides the transaction, which it may roll
// back for a preview. Each function returns a text that says what is planned from then on.

// lockControlled locks an asset and returns its planning state. The error is Malformed for an
// asset that does not charge. It is Conflict if the asset is excluded, no car is plugged in,
// or its site is not under control.
func lockControlled(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (store.PlanningState, error) {
	c, err := lockedCharging(ctx, tx, asset)
	switch {
	case err != nil:
		return c, err

	case !c.Asset.Type.Charges():
		return c, flex.Fail(
			flex.Malformed,
			"it is a %s: this is for chargers and cars",
			c.Asset.Type,
		)

	case !c.Excluded.IsZero():
		return c, flex.Fail(flex.Conflict, "it is excluded from control")

	case !c.Open():
		return c, flex.Fail(flex.Conflict, "no car is plugged in")

	case !c.Controlled:
		return c, flex.Fail(flex.Conflict, "it is not under control")
	}

	return c, nil
}

// byOperator is the reason of a plan that an operator asks for.
var byOperator = replanReason{
	cause:   store.CauseInputs,
	must:    true,
	trigger: ByEvent,
}

// ReplanAsset plans an asset again from what is known now, and sends the schedule even if it
// did not change.
func (s *Service) ReplanAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	c, err := lockControlled(ctx, tx, asset)
	if err != nil {
		return "", err
	}
	if err := s.replan(ctx, tx, &c, byOperator); err != nil {
		return "", err
	}

	return plannedText(ctx, tx, asset)
}

// ReleaseAsset ends the control of an asset until its next plug-in. Its session ends as if the
// car had left. If its schedule still limits it, an unlimited one replaces it.
func (*Service) ReleaseAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	if _, err := lockControlled(ctx, tx, asset); err != nil {
		return "", err
	}
	return "free of any limit until its next plug-in", tx.StopScheduling(ctx, asset)
}

// ChargeAsset has an asset charge at full power for a duration from now on, as its user can
// ask for.
func (s *Service) ChargeAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	most time.Duration,
) (string, error) {
	if most < time.Minute || most > WishChargeMax {
		return "", flex.Fail(
			flex.Malformed,
			"charge at once for a minute to %d hours",
			int(WishChargeMax.Hours()),
		)
	}

	if _, err := lockControlled(ctx, tx, asset); err != nil {
		return "", err
	}

	if err := s.event(ctx, tx, asset, Event{
		Kind:  ChargeNow,
		EndAt: tx.Now().Add(most),
	}); err != nil {
		return "", err
	}

	return plannedText(ctx, tx, asset)
}

// EndChargeAsset ends an asset's charge-now, as its user can ask for.
func (s *Service) EndChargeAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	c, err := lockControlled(ctx, tx, asset)
	if err != nil {
		return "", err
	}
	if !c.ChargeNow.To.After(tx.Now()) {
		return "", flex.Fail(flex.Conflict, "charge-now is not asked of it")
	}

	err = s.event(ctx, tx, asset, Event{Kind: ChargeNowDeleted})
	if err != nil {
		return "", err
	}

	return plannedText(ctx, tx, asset)
}

// ReadyAsset changes the time of day at which an asset's car is to be ready, in the zone of
// its tariff. The rest of its intent stays. The car may be unplugged.
func (s *Service) ReadyAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	by flex.WallTime,
) (string, error) {
	c, err := lockedCharging(ctx, tx, asset)
	if err != nil {
		return "", err
	}
	if !c.Asset.Type.Charges() {
		return "", flex.Fail(
			flex.Malformed,
			"it is a %s: this is for chargers and cars",
			c.Asset.Type,
		)
	}

	in, err := assumedIntent(ctx, tx, &c)
	if err != nil {
		return "", err
	}

	in.ReadyByLocal, in.ReadyBy = &by, time.Time{}
	in.ReceivedAt = time.Time{}
	if err := s.event(ctx, tx, asset, Event{
		Kind:   IntentUpdate,
		Intent: &in,
	}); err != nil {
		return "", err
	}

	return plannedText(ctx, tx, asset)
}

// ExcludeAsset excludes an asset from control until it is included again. Its limits end, as
// with ReleaseAsset, and nothing is planned or paused for it. A battery continues with the
// last dispatch that it was sent. The error is Conflict if the asset is excluded already.
func (*Service) ExcludeAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	c, err := lockedCharging(ctx, tx, asset)
	if err != nil {
		return "", err
	}
	if !c.Excluded.IsZero() {
		return "", flex.Fail(flex.Conflict, "it is excluded already")
	}

	if err := tx.StopScheduling(ctx, asset); err != nil {
		return "", err
	}

	tx.Wake(store.WakeControl)

	return "excluded from control until it is included again", tx.SetExcluded(
		ctx,
		asset,
		true,
	)
}

// IncludeAsset ends the exclusion of an asset from control. Its site must be under control
// too; then a car that is plugged in is planned at once. The error is Conflict if the asset is
// not excluded.
func (s *Service) IncludeAsset(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	c, err := lockedCharging(ctx, tx, asset)
	if err != nil {
		return "", err
	}
	if c.Excluded.IsZero() {
		return "", flex.Fail(flex.Conflict, "it is not excluded")
	}

	if err := tx.SetExcluded(ctx, asset, false); err != nil {
		return "", err
	}

	tx.Wake(store.WakeControl)
	c, err = tx.PlanningState(ctx, asset)
	plannable := c.Open() && c.Controlled
	if err != nil || !plannable {
		return "under control again from the next plan on", err
	}

	if err := s.replan(ctx, tx, &c, byOperator); err != nil {
		return "", err
	}

	return plannedText(ctx, tx, asset)
}

// lockedCharging locks an asset and returns its planning state.
func lockedCharging(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (store.PlanningState, error) {
	if err := tx.LockToPlan(ctx, asset); err != nil {
		return store.PlanningState{}, err
	}
	return tx.PlanningState(ctx, asset)
}

// plannedSpans is how many charging times are listed.
const plannedSpans = 4

// plannedText describes what the asset's schedule in force allows.
func plannedText(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
) (string, error) {
	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return "", err
	}

	s := &c.Current
	if !c.Open() || s.Generation == 0 {
		return "holds from the next plug-in on", nil
	}

	zone := zoneOf(s.From.Tariff)
	const clock = "15:04"
	spans := openSpans(s.Charging())
	var times []string
	for _, span := range spans[:min(len(spans), plannedSpans)] {
		times = append(
			times,
			span.From.In(zone).Format(clock)+" to "+
				span.To.In(zone).Format(clock),
		)
	}

	charges := "charges nothing"
	if len(times) > 0 {
		charges = "may charge " + strings.Join(times, ", ")
	}
	if more := len(spans) - len(times); more > 0 {
		charges += " and " + flex.Count(more, "time") + " more"
	}

	return fmt.Sprintf(
		"schedule %d: %s; ready by %s",
		s.Generation,
		charges,
		s.From.ReadyBy.In(zone).Format("15:04 on Mon 2 Jan"),
	), nil
}
