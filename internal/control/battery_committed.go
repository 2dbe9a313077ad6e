package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Committed half-hours.
//
// The running half-hour and the next two are committed: other devices leave the battery the
// power that any of its plans had in them since they were committed. This is because flexd
// does not know when a battery's client reads its schedule, and flexd or a link may fail at
// any time. Where a limit is shared with others, the battery charges or discharges at full
// power only in committed half-hours, so that every schedule that was read observes all
// limits. Later half-hours are SELF_USE until they are committed.

// batteryCommitted is the number of committed half-hours, including the running one. They are
// sent as dispatches. A client that follows the battery's schedule reads it at least once in
// each half-hour.
const batteryCommitted = 3

// eitherMode is the code of a half-hour in which some plans charge and others discharge.
const eitherMode = 'B'

// mayBeInMode reports whether a battery may be in a mode in a half-hour: by its plan, or by an
// earlier one that its client may have read.
func mayBeInMode(
	p *store.BatteryPlan,
	at flex.Period,
	m battery.Mode,
) bool {
	if now, ok := modeAt(p, at); ok && now == m {
		return true
	}

	i := at.Sub(flex.PeriodAt(p.CommittedFrom))
	if p.Committed == "" || i < 0 || i >= len(p.Committed) {
		return false
	}

	return p.Committed[i] == modeCode(m) || p.Committed[i] == eitherMode
}

// keepCommitted copies to a new plan the modes that the battery may have in committed
// half-hours by the previous one.
func keepCommitted(
	next, old *store.BatteryPlan,
	now flex.Period,
) {
	codes := make([]byte, batteryCommitted)
	for i := range codes {
		charges := mayBeInMode(old, now.Add(i), battery.ModeCharge)
		discharges := mayBeInMode(old, now.Add(i), battery.ModeDischarge)
		codes[i] = unplanned

		switch {
		case charges && discharges:
			codes[i] = eitherMode
		case charges:
			codes[i] = modeCode(battery.ModeCharge)
		case discharges:
			codes[i] = modeCode(battery.ModeDischarge)
		}
	}

	next.CommittedFrom, next.Committed = now.Start(), string(codes)
}

// clearCommitted deletes the modes of a half-hour that a dispatch has replaced.
func clearCommitted(p *store.BatteryPlan, at flex.Period) {
	codes := []byte(p.Committed)
	if i := at.Sub(flex.PeriodAt(p.CommittedFrom)); i >= 0 && i < len(codes) {
		codes[i] = unplanned
	}

	p.Committed = string(codes)
}

// isCommitted reports whether others leave a battery the power of its plan in a half-hour: it
// is committed, or was dispatched.
func isCommitted(
	p *store.BatteryPlan,
	at, now flex.Period,
) bool {
	return at.Sub(now) < batteryCommitted || at.Start().Before(p.DispatchedTo)
}

// sharedLimits are the limits that a battery shares with others.
type sharedLimits struct {
	caps   *headroom.Profile // nil if no cap limits power
	place  int               // index of its group's cap
	fuse   bool              // its site's main fuse does not carry everything at the site
	feeder *feederExport     // nil if nothing limits the export of its feeder
}

// readShared reads the shared limits that can restrict a battery's modes: a fuse or cap for
// charging, a feeder for discharging.
func readShared(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	spans []ModeSpan,
) (*sharedLimits, error) {
	l := &sharedLimits{}
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return nil, err
	}

	if err := l.readCaps(ctx, tx, &asset); err != nil {
		return nil, err
	}

	if hasMode(spans, battery.ModeDischarge) {
		l.feeder, err = feederCache(nil).read(ctx, tx, id)
		if err != nil {
			return nil, fmt.Errorf("read what limits the export of a feeder: %w", err)
		}
	}

	if hasMode(spans, battery.ModeCharge) {
		l.fuse, err = sharesFuse(ctx, tx, &asset)
	}

	return l, err
}

// hasMode reports whether any of some spans has a mode.
func hasMode(spans []ModeSpan, m battery.Mode) bool {
	return slices.ContainsFunc(spans, func(s ModeSpan) bool { return s.Mode == m })
}

// readCaps reads the caps that apply to a battery.
func (l *sharedLimits) readCaps(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
) error {
	inForce, ok, err := tx.Caps(ctx)
	if err != nil || !ok || !bindPower(&inForce) {
		return err
	}

	group, err := tx.CapGroup(ctx, asset.SiteID)
	k := orderCaps(inForce)
	l.caps, l.place = k.profile(flex.PeriodAt(tx.Now()).Start()), k.place[group]

	return err
}

// sharesFuse reports whether everything at a battery's site together can exceed its main fuse,
// whatever is plugged in. The home's own load counts as it was last learned.
func sharesFuse(
	ctx context.Context,
	tx *store.Tx,
	asset *flex.Asset,
) (bool, error) {
	site, err := tx.Site(ctx, asset.SiteID)
	if err != nil || !site.Supply.Set {
		return false, err
	}

	assets, err := tx.AssetsOf(ctx, asset.SiteID)
	if err != nil || len(assets) < 2 {
		return false, err
	}

	learned, err := tx.BaseLoad(ctx, asset.SiteID)
	if err != nil {
		return false, err
	}

	sum := phaseLoad{phases: site.Supply.Fuse.Phases}
	home := baseLoad{watts: learned.Load}
	sum.add(home.max(), flex.Wiring{})

	for i := range assets {
		if err := sum.addAsset(ctx, tx, &assets[i]); err != nil {
			return false, err
		}
	}

	return sum.max() > site.Supply.Import, nil
}

// addAsset adds the most that an asset of a site can draw.
func (l *phaseLoad) addAsset(
	ctx context.Context,
	tx *store.Tx,
	a *flex.Asset,
) error {
	load := store.Load{Wired: a.Wiring()}
	if a.Power != nil {
		load.Power = *a.Power
	}

	if a.Type.Charges() || a.Type.Heats() {
		load.Assumed = load.Power <= 0
		l.addLoad(&load)
	}
	if a.Type != flex.Battery {
		return nil
	}

	b, err := tx.Battery(ctx, a.ID)
	if errors.Is(err, store.ErrUnreadable) {
		always, err := movesAlways(ctx, tx, a.ID)
		l.add(always.power, always.wiring)

		return err
	}
	if err == nil {
		l.add(b.Power(), b.Wiring())
	}

	return err
}

// limitsMode reports whether a shared limit applies to a mode in a half-hour.
func (l *sharedLimits) limitsMode(m battery.Mode, p flex.Period) bool {
	switch m {
	case battery.ModeCharge:
		return l.fuse || l.isCapped(p)
	case battery.ModeDischarge:
		return l.exportLimited(p)
	}

	return false
}

// exportLimited reports whether the export of the battery's feeder is limited in a half-hour.
func (l *sharedLimits) exportLimited(p flex.Period) bool {
	if l.feeder == nil {
		return false
	}

	return slices.ContainsFunc(l.feeder.groups, func(g *groupExport) bool {
		_, limited := g.limit(p.Span())
		return limited
	})
}

// isCapped reports whether a cap limits power in a half-hour.
func (l *sharedLimits) isCapped(p flex.Period) bool {
	if l.caps == nil {
		return false
	}

	_, bound := l.caps.Spare(l.place, p.Span())

	return bound
}

// limitToCommitted replaces charging and discharging by SELF_USE after the committed
// half-hours where a shared limit applies, and reports whether one does. Others may get the
// headroom after the battery has read its schedule; the limits are observed even if it cannot
// read the next one.
func limitToCommitted(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	spans []ModeSpan,
) ([]ModeSpan, bool, error) {
	limits, err := readShared(
		ctx,
		tx,
		id,
		spans,
	)
	if err != nil {
		return nil, false, err
	}

	now := flex.PeriodAt(tx.Now())
	var kept []ModeSpan
	binds := false

	for _, s := range spans {
		for _, p := range periodsTo(flex.PeriodAt(s.From), s.To) {
			mode := s.Mode
			bound := limits.limitsMode(mode, p)
			if bound && p.Sub(now) >= batteryCommitted {
				mode = battery.ModeSelfUse
			}

			binds = binds || bound || limits.isCapped(p)
			kept = append(kept, ModeSpan{p.Span(), mode})
		}
	}

	return kept, binds, nil
}
