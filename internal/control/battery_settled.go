package control

import (
	"context"
	"fmt"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// What a battery was told is kept.
//
// Nobody tells flexd when a battery's client fetches its schedule, and flexd or a link may fail at any instant. So that all
// that was sent keeps every limit by itself, a schedule says to charge or to discharge at full power only in half-hours that
// are settled, where others could use the same limit: the others leave a battery what any of its plans said of a half-hour
// since that was settled. Later half-hours are said to be SELF_USE, and told when they are settled.

// batterySettled is the number of half-hours, the running one first, that a battery is planned for and others leave it: those
// that are handed over as dispatches. Whoever follows the battery's schedule reads it as often as each half-hour.
const batterySettled = 3

// eitherMode is the letter of a half-hour for which plans said to charge and to discharge.
const eitherMode = 'B'

// mayBe reports whether a battery may be in a mode in a half-hour: by its plan, or by one that its client may have read before.
func mayBe(
	p *store.BatteryPlan,
	at flex.Period,
	m battery.Mode,
) bool {
	if now, ok := modeAt(p, at); ok && now == m {
		return true
	}

	i := at.Sub(flex.PeriodAt(p.HandedAt))
	if p.Handed == "" || i < 0 || i >= len(p.Handed) {
		return false
	}

	return p.Handed[i] == modeCode(m) || p.Handed[i] == eitherMode
}

// carryOver notes in a plan that is made what the one before may have its battery do in the settled half-hours.
func carryOver(
	next, old *store.BatteryPlan,
	now flex.Period,
) {
	codes := make([]byte, batterySettled)
	for i := range codes {
		charges := mayBe(old, now.Add(i), battery.ModeCharge)
		discharges := mayBe(old, now.Add(i), battery.ModeDischarge)
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

	next.HandedAt, next.Handed = now.Start(), string(codes)
}

// unsay has nothing handed over in a half-hour: a dispatch took the place of it.
func unsay(p *store.BatteryPlan, at flex.Period) {
	codes := []byte(p.Handed)
	if i := at.Sub(flex.PeriodAt(p.HandedAt)); i >= 0 && i < len(codes) {
		codes[i] = unplanned
	}

	p.Handed = string(codes)
}

// isHandedOver reports whether others leave a battery what its plan says of a half-hour.
func isHandedOver(
	p *store.BatteryPlan,
	at, now flex.Period,
) bool {
	return at.Sub(now) < batterySettled || at.Start().Before(p.DispatchedTo)
}

// sharedLimits are the limits that a battery shares with others.
type sharedLimits struct {
	caps   *headroom.Profile // nil where no cap binds power
	place  int               // of its group's cap
	fuse   bool              // its site's main fuse does not carry all that is there
	feeder *feederExport     // nil where nothing limits the export of its feeder
}

// readShared reads the limits that a battery shares.
func readShared(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
) (*sharedLimits, error) {
	l := &sharedLimits{}
	asset, err := tx.Asset(ctx, id)
	if err != nil {
		return nil, err
	}

	if err := l.readCaps(ctx, tx, &asset); err != nil {
		return nil, err
	}

	l.feeder, err = feederExportOf(ctx, tx, id)
	if err != nil {
		return nil, fmt.Errorf("read what limits the export of a feeder: %w", err)
	}

	l.fuse, err = sharesFuse(ctx, tx, &asset)

	return l, err
}

// readCaps reads the caps that bind a battery.
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
	k := placed(inForce)
	l.caps, l.place = k.profile(flex.PeriodAt(tx.Now()).Start()), k.place[group]

	return err
}

// sharesFuse reports whether all that is at a battery's site may together draw more than its main fuse carries, whatever is
// plugged in: what the home itself draws is as it was learned last.
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
	if err != nil {
		return false, err
	}

	learned, err := tx.BaseLoad(ctx, asset.SiteID)
	if err != nil {
		return false, err
	}

	sum := phaseLoad{phases: site.Supply.Fuse.Phases}
	home := baseLoad{watts: learned.Load}
	sum.add(home.most(), flex.Wiring{})

	for i := range assets {
		if err := sum.addAsset(ctx, tx, &assets[i]); err != nil {
			return false, err
		}
	}

	return len(assets) > 1 && sum.most() > site.Supply.Import, nil
}

// addAsset counts the most that an asset of a site can draw.
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
	if err == nil {
		l.add(b.Power(), b.Wiring())
	}

	return err
}

// bind reports whether a limit that is shared binds a mode in a half-hour.
func (l *sharedLimits) bind(m battery.Mode, p flex.Period) bool {
	switch m {
	case battery.ModeCharge:
		return l.fuse || l.capped(p)
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

	_, limited := l.feeder.limit(p.Span())

	return limited
}

// capped reports whether a cap binds power in a half-hour.
func (l *sharedLimits) capped(p flex.Period) bool {
	if l.caps == nil {
		return false
	}

	_, bound := l.caps.Spare(l.place, p.Span())

	return bound
}

// untilSettled has a battery cover its home instead of charging or discharging in half-hours beyond those that are settled, where
// it shares the limit that binds that with others, and reports whether one binds. Others may be given that headroom after the
// battery has read its schedule: if it cannot read the next one, the limits are kept all the same.
func untilSettled(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	spans []ModeSpan,
) ([]ModeSpan, bool, error) {
	limits, err := readShared(ctx, tx, id)
	if err != nil {
		return nil, false, err
	}

	now := flex.PeriodAt(tx.Now())
	var kept []ModeSpan
	binds := false

	for _, s := range spans {
		for _, p := range periodsTo(flex.PeriodAt(s.From), s.To) {
			mode := s.Mode
			bound := limits.bind(mode, p)
			if bound && p.Sub(now) >= batterySettled {
				mode = battery.ModeSelfUse
			}

			binds = binds || bound || limits.capped(p)
			kept = append(kept, ModeSpan{p.Span(), mode})
		}
	}

	return kept, binds, nil
}
