package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteCheck checks a dispatch at one of its sites against what flexd can no longer change: the
// home itself, and the site's other batteries in committed half-hours and by other dispatches.
// Cars, heaters and the other plans are made around the dispatch.
type siteCheck struct {
	site       flex.SiteID
	supply     flex.Supply
	now        flex.Period
	periods    []flex.Period
	base       baseLoad
	net        []flex.Watts // what the home is expected to draw, less its solar generation
	dispatched []dispatchedAsset
	otherLoads []otherBatteryLoad // of each half-hour
	unread     []flex.AssetID     // other batteries whose records cannot be read
}

// dispatchedAsset is an asset of the site that is dispatched.
type dispatchedAsset struct {
	power  flex.Watts
	wiring flex.Wiring
}

// otherBatteryLoad is what other batteries draw and discharge in a half-hour.
type otherBatteryLoad struct {
	draw, discharge phaseLoad
	totalDischarge  flex.Watts // on all phases
}

// checkSites returns a Conflict if a dispatch has the assets of a site draw more than its main
// fuse leaves them, or discharge more than the fuse or the site's export limit leaves. Sites
// whose connection was never set have neither.
func checkSites(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) error {
	sites, err := suppliedSites(ctx, tx, order)
	if err != nil {
		return err
	}

	requested := map[flex.AssetID]flex.Watts{}
	for _, a := range order.Assets {
		requested[a.ID] = a.Power
	}

	for _, id := range sites {
		s, err := tx.Site(ctx, id)
		if err != nil {
			return err
		}

		c := siteCheck{site: id, supply: s.Supply, now: flex.PeriodAt(tx.Now())}
		c.periods = periodsTo(flex.PeriodAt(flex.Later(order.From, tx.Now())), order.To)
		if err := c.read(ctx, tx, requested); err != nil {
			return err
		}
		if err := c.check(); err != nil {
			return err
		}
	}

	return nil
}

// suppliedSites returns the sites of the dispatched assets whose connection was set; without
// assets that are sent 0 kW.
func suppliedSites(
	ctx context.Context,
	tx *store.Tx,
	order *store.Dispatch,
) ([]flex.SiteID, error) {
	var requested []flex.AssetID
	for _, a := range order.Assets {
		if a.Power != 0 {
			requested = append(requested, a.ID)
		}
	}

	return tx.SuppliedSites(ctx, requested)
}

// read reads what is at the site.
func (c *siteCheck) read(
	ctx context.Context,
	tx *store.Tx,
	requested map[flex.AssetID]flex.Watts,
) error {
	var err error
	c.base, err = baseAt(ctx, tx, c.site)
	if err != nil {
		return err
	}

	all, err := tx.AssetsOf(ctx, c.site)
	if err != nil {
		return err
	}

	c.otherLoads = make([]otherBatteryLoad, len(c.periods))
	for i := range c.otherLoads {
		c.otherLoads[i].draw.phases, c.otherLoads[i].discharge.phases = c.supply.Fuse.Phases, c.supply.Fuse.Phases
	}

	c.expect(&store.BatteryPlan{})
	for i := range all {
		power, named := requested[all[i].ID]
		wiring := all[i].Wiring()

		if all[i].Type == flex.Battery {
			wiring, err = c.readBattery(ctx, tx, all[i].ID, named)
			if err != nil {
				return err
			}
		}

		if named {
			c.addDispatched(&all[i], power, wiring)
		}
	}

	return nil
}

// addDispatched adds an asset that is dispatched. No device on one phase has more than
// SinglePhaseMax: one with a greater dispatch is assumed to be on three phases, unless its
// phases were given.
func (c *siteCheck) addDispatched(
	asset *flex.Asset,
	power flex.Watts,
	wiring flex.Wiring,
) {
	if most := max(power, -power); most > flex.SinglePhaseMax {
		wiring = asset.WiringAt(&most)
	}

	c.dispatched = append(c.dispatched, dispatchedAsset{power, wiring})
}

// readBattery reads what a battery's plan expects of the home, and what it does unless it is
// dispatched. It returns its wiring.
func (c *siteCheck) readBattery(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	named bool,
) (flex.Wiring, error) {
	b, err := tx.Battery(ctx, id)
	if errors.Is(err, store.ErrUnreadable) {
		return c.addUnread(ctx, tx, id, named)
	}
	if err != nil {
		return flex.Wiring{}, err
	}

	if b.Plan.Forecast != "" {
		c.expect(&b.Plan)
	}
	if !named {
		err = c.addBattery(ctx, tx, &b)
	}

	return b.Wiring(), err
}

// addUnread adds a battery whose record cannot be read. Unless it is dispatched, it counts with
// its full power in both directions. It returns its wiring.
func (c *siteCheck) addUnread(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	named bool,
) (flex.Wiring, error) {
	always, err := movesAlways(ctx, tx, id)
	if err != nil || named {
		return always.wiring, err
	}

	c.unread = append(c.unread, id)
	for i := range c.otherLoads {
		o := &c.otherLoads[i]
		o.draw.add(always.power, always.wiring)
		o.discharge.add(always.power, always.wiring)
		o.totalDischarge += always.power
	}

	return always.wiring, nil
}

// unreadNote says which batteries count with their full power because their records cannot be
// read; empty if there are none.
func (c *siteCheck) unreadNote() string {
	if len(c.unread) == 0 {
		return ""
	}

	ids := make([]string, len(c.unread))
	for i, id := range c.unread {
		ids[i] = id.String()
	}

	return "; the full power of battery " + strings.Join(ids, " and battery ") +
		" is counted, as what is stored of it cannot be read: report that as a fault in flexd"
}

// expect sets what a plan expects of the home.
func (c *siteCheck) expect(p *store.BatteryPlan) {
	load, roof := parseForecast(p, c.periods)
	c.net = make([]flex.Watts, len(c.periods))
	for i := range c.net {
		c.net[i] = flex.Watts(2 * (load[i] - roof[i]))
	}
}

// addBattery adds a battery that is not dispatched.
func (c *siteCheck) addBattery(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	orders, err := dispatchesOf(ctx, tx, b.Asset.ID, &b.Plan, c.periods)
	if err != nil {
		return err
	}

	power := dispatchPower(b, orders)
	for i, p := range c.periods {
		var o dispatchedPeriod
		if orders != nil {
			o = orders[i]
		}

		most := min(o.most, power)
		if !o.isSet && b.Controlled && isCommitted(&b.Plan, p, c.now) {
			o.draws = mayBeInMode(&b.Plan, p, battery.ModeCharge)
			o.discharges = mayBeInMode(&b.Plan, p, battery.ModeDischarge)
			most = power
		}

		if o.draws {
			c.otherLoads[i].draw.add(most, b.Wiring())
		}
		if o.discharges {
			c.otherLoads[i].discharge.add(most, b.Wiring())
			c.otherLoads[i].totalDischarge += most
		}
	}

	return nil
}

// check returns a Conflict that states what is possible, for the first half-hour in which the
// dispatch exceeds it.
func (c *siteCheck) check() error {
	for i, p := range c.periods {
		if err := c.checkDraw(i, p.Start()); err != nil {
			return err
		}
		if err := c.checkDischarge(i, p.Start()); err != nil {
			return err
		}
	}

	return nil
}

// sumOf returns what the dispatched assets and others draw together (with a sign of -1:
// discharge), the sum of the dispatched ones alone, and the wiring of one of these.
func (c *siteCheck) sumOf(sign flex.Watts, others phaseLoad) (phaseLoad, flex.Watts, flex.Wiring) {
	var sum flex.Watts
	var wiring flex.Wiring
	for _, a := range c.dispatched {
		if w := sign * a.power; w > 0 {
			others.add(w, a.wiring)
			sum += w
			wiring = a.wiring
		}
	}

	return others, sum, wiring
}

// checkDraw is check for drawing.
func (c *siteCheck) checkDraw(i int, at time.Time) error {
	others := c.otherLoads[i].draw
	others.add(c.base.powerAt(c.periods[i]), flex.Wiring{})
	all, sum, wiring := c.sumOf(1, others)
	if sum == 0 || all.max() <= c.supply.Import {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"the main fuse of site %v carries %g kW, and beside the home itself and what other batteries are sent it leaves %g kW at %s, not the %g kW that the dispatch asks for%s",
		c.site,
		c.supply.Import.KW(),
		others.headroom(c.supply.Import, wiring).KW(),
		at.Format(time.RFC3339),
		sum.KW(),
		c.unreadNote(),
	)
}

// checkDischarge is check for discharging. No phase of the fuse may carry more outwards than
// its capacity, whatever the home draws on the others.
func (c *siteCheck) checkDischarge(i int, at time.Time) error {
	others := c.otherLoads[i].discharge
	all, sum, wiring := c.sumOf(-1, others)
	if sum == 0 {
		return nil
	}

	remaining := max(0, min(c.supply.Export, c.supply.Import)+c.net[i]-c.otherLoads[i].totalDischarge) // the fuse limits export too
	exceeds := sum > remaining
	if c.supply.Fuse.Phases == 3 {
		roof := max(0, -c.net[i])
		all.add(roof, flex.Wiring{})
		others.add(roof, flex.Wiring{})
		remaining = min(remaining, others.headroom(c.supply.Import, wiring))
		exceeds = exceeds || all.max() > c.supply.Import
	}

	if !exceeds {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"site %v may export %g kW by its main fuse of %g kW and its export limit, and beside what the home is expected to draw and other batteries are sent that leaves %g kW at %s, not the %g kW that the dispatch asks for%s",
		c.site,
		min(c.supply.Export, c.supply.Import).KW(),
		c.supply.Import.KW(),
		remaining.KW(),
		at.Format(time.RFC3339),
		sum.KW(),
		c.unreadNote(),
	)
}
