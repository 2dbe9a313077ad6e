package control

import (
	"context"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// siteCheck is a dispatch at one of its sites, beside what flexd cannot change any more: the
// home itself, and what the site's other batteries do in committed half-hours and by other
// dispatches. Cars, heaters and the rest of the plans are made around the dispatch.
type siteCheck struct {
	site    flex.SiteID
	supply  flex.Supply
	now     flex.Period
	periods []flex.Period
	base    baseLoad
	net     []flex.Watts // what the home is expected to draw, less its solar generation
	named   []askedAsset
	besides []besideDispatch // of each half-hour
}

// askedAsset is an asset of the site that the dispatch names.
type askedAsset struct {
	power flex.Watts
	wired flex.Wiring
}

// besideDispatch is what other batteries draw and discharge in a half-hour.
type besideDispatch struct {
	draws, gives phaseLoad
	given        flex.Watts // on all phases
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

	asked := map[flex.AssetID]flex.Watts{}
	for _, a := range order.Assets {
		asked[a.ID] = a.Power
	}

	for _, id := range sites {
		s, err := tx.Site(ctx, id)
		if err != nil {
			return err
		}

		c := siteCheck{site: id, supply: s.Supply, now: flex.PeriodAt(tx.Now())}
		c.periods = periodsTo(flex.PeriodAt(flex.Later(order.From, tx.Now())), order.To)
		if err := c.read(ctx, tx, asked); err != nil {
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
	var asked []flex.AssetID
	for _, a := range order.Assets {
		if a.Power != 0 {
			asked = append(asked, a.ID)
		}
	}

	return tx.SuppliedSites(ctx, asked)
}

// read reads what is at the site.
func (c *siteCheck) read(
	ctx context.Context,
	tx *store.Tx,
	asked map[flex.AssetID]flex.Watts,
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

	c.besides = make([]besideDispatch, len(c.periods))
	for i := range c.besides {
		c.besides[i].draws.phases, c.besides[i].gives.phases = c.supply.Fuse.Phases, c.supply.Fuse.Phases
	}

	c.expect(&store.BatteryPlan{})
	for i := range all {
		power, named := asked[all[i].ID]
		wired := all[i].Wiring()

		if all[i].Type == flex.Battery {
			wired, err = c.readBattery(ctx, tx, all[i].ID, named)
			if err != nil {
				return err
			}
		}

		if named {
			c.addNamed(&all[i], power, wired)
		}
	}

	return nil
}

// addNamed adds an asset that the dispatch names. No device on one phase moves more than
// SinglePhaseMax: one that is asked for more is taken to be on three phases, unless its phases
// were given.
func (c *siteCheck) addNamed(
	asset *flex.Asset,
	power flex.Watts,
	wired flex.Wiring,
) {
	if most := max(power, -power); most > flex.SinglePhaseMax {
		wired = asset.WiringAt(&most)
	}

	c.named = append(c.named, askedAsset{power, wired})
}

// readBattery reads what a battery's plan expects of the home, and what it does unless the
// dispatch names it. It returns its wiring.
func (c *siteCheck) readBattery(
	ctx context.Context,
	tx *store.Tx,
	id flex.AssetID,
	named bool,
) (flex.Wiring, error) {
	b, err := tx.Battery(ctx, id)
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

// expect sets what a plan expects of the home.
func (c *siteCheck) expect(p *store.BatteryPlan) {
	load, roof := guessed(p, c.periods)
	c.net = make([]flex.Watts, len(c.periods))
	for i := range c.net {
		c.net[i] = flex.Watts(2 * (load[i] - roof[i]))
	}
}

// addBattery counts a battery that the dispatch does not name.
func (c *siteCheck) addBattery(
	ctx context.Context,
	tx *store.Tx,
	b *store.Battery,
) error {
	orders, err := ordersOf(ctx, tx, b.Asset.ID, &b.Plan, c.periods)
	if err != nil {
		return err
	}

	power := orderedPower(b, orders)
	for i, p := range c.periods {
		var o order
		if orders != nil {
			o = orders[i]
		}

		most := min(o.most, power)
		if !o.given && b.Controlled && isCommitted(&b.Plan, p, c.now) {
			o.draws = mayBeInMode(&b.Plan, p, battery.ModeCharge)
			o.discharges = mayBeInMode(&b.Plan, p, battery.ModeDischarge)
			most = power
		}

		if o.draws {
			c.besides[i].draws.add(most, b.Wiring())
		}
		if o.discharges {
			c.besides[i].gives.add(most, b.Wiring())
			c.besides[i].given += most
		}
	}

	return nil
}

// check returns a Conflict that states what would be possible, for the first half-hour in
// which the dispatch asks for more.
func (c *siteCheck) check() error {
	for i, p := range c.periods {
		if err := c.checkDrawn(i, p.Start()); err != nil {
			return err
		}
		if err := c.checkGiven(i, p.Start()); err != nil {
			return err
		}
	}

	return nil
}

// sumOf returns what the named assets draw together (with a sign of -1: discharge) beside
// others, the sum of theirs alone, and the wiring of one of them.
func (c *siteCheck) sumOf(sign flex.Watts, others phaseLoad) (phaseLoad, flex.Watts, flex.Wiring) {
	var sum flex.Watts
	var wired flex.Wiring
	for _, a := range c.named {
		if w := sign * a.power; w > 0 {
			others.add(w, a.wired)
			sum += w
			wired = a.wired
		}
	}

	return others, sum, wired
}

// checkDrawn is check for what is drawn.
func (c *siteCheck) checkDrawn(i int, at time.Time) error {
	beside := c.besides[i].draws
	beside.add(c.base.powerAt(c.periods[i]), flex.Wiring{})
	all, sum, wired := c.sumOf(1, beside)
	if sum == 0 || all.most() <= c.supply.Import {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"the main fuse of site %v carries %g kW, and beside the home itself and what other batteries are sent it leaves %g kW at %s, not the %g kW that the dispatch asks for",
		c.site,
		c.supply.Import.KW(),
		beside.left(c.supply.Import, wired).KW(),
		at.Format(time.RFC3339),
		sum.KW(),
	)
}

// checkGiven is check for what is discharged. No phase of the fuse may carry more outwards
// than it carries, whatever the home draws on the others.
func (c *siteCheck) checkGiven(i int, at time.Time) error {
	beside := c.besides[i].gives
	all, sum, wired := c.sumOf(-1, beside)
	if sum == 0 {
		return nil
	}

	left := max(0, min(c.supply.Export, c.supply.Import)+c.net[i]-c.besides[i].given) // no fuse carries more outwards
	passes := sum > left
	if c.supply.Fuse.Phases == 3 {
		roof := max(0, -c.net[i])
		all.add(roof, flex.Wiring{})
		beside.add(roof, flex.Wiring{})
		left = min(left, beside.left(c.supply.Import, wired))
		passes = passes || all.most() > c.supply.Import
	}

	if !passes {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"site %v may export %g kW by its main fuse of %g kW and its export limit, and beside what the home is expected to draw and other batteries are sent that leaves %g kW at %s, not the %g kW that the dispatch asks for",
		c.site,
		min(c.supply.Export, c.supply.Import).KW(),
		c.supply.Import.KW(),
		left.KW(),
		at.Format(time.RFC3339),
		sum.KW(),
	)
}
