package flex

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of an organisation's caps.
const (
	CapGroupsMax    = 1000
	CapGroupNameMax = 64             // characters
	CapSitesMax     = 20_000         // in all groups together
	CapDepthMax     = 4              // groups that lie in each other
	CapMax          = Watts(1e9)     // of one cap
	StartsMax       = 100_000        // a minute
	TradedMax       = 7 * 48         // half-hours of a position
	TradedEnergyMax = WattHours(1e9) // of one half-hour
)

// Direction is which way power passes a feeder, as those behind it see it.
type Direction string

// The directions.
const (
	Import Direction = "import" // drawn from the grid
	Export Direction = "export" // given to it
)

// Cap bounds what assets do together.
type Cap struct {
	// the most that they draw at any instant; nil for no bound
	Power *Watts
	// how many begin to charge in one minute at most; 0 for no bound
	StartsPerMinute int
}

// CapGroup is a constraint group: sites behind one thing that can carry so much, such as a
// feeder. A site lies in one at most.
type CapGroup struct {
	Name string
	// the group that this one lies in, as a feeder lies in a substation; empty for none
	Parent string
	Cap
	Sites []SiteID
}

// Traded is what was bought ahead for a half-hour. What the fleet draws beyond it is bought,
// what it leaves is sold.
type Traded struct {
	Period    Period
	Energy    WattHours
	Buy, Sell Price // Sell is never above Buy
}

// Caps are what binds the assets of an organisation to each other. They bind what flexd
// plans: an asset that is not under control, and charge-now, count against them as they are.
type Caps struct {
	Fleet  Cap // of all assets of the organisation
	Groups []CapGroup
	// by period, each once; a half-hour that is not there is paid at the market's price
	Position []Traded
}

// IsZero reports whether nothing is bound.
func (c *Caps) IsZero() bool {
	return c.Fleet == Cap{} && len(c.Groups) == 0 && len(c.Position) == 0
}

// Check refuses caps that cannot be kept as they are: the failure is Malformed and says why.
func (c *Caps) Check() error {
	if err := c.Fleet.check("the fleet"); err != nil {
		return err
	}

	if len(c.Groups) > CapGroupsMax {
		return Fail(
			Malformed,
			"%d groups: there may be %d",
			len(c.Groups),
			CapGroupsMax,
		)
	}

	names, of := map[string]bool{}, map[SiteID]string{}
	for _, g := range c.Groups {
		switch n := utf8.RuneCountInString(g.Name); {
		case n < 1 || n > CapGroupNameMax || strings.TrimSpace(g.Name) != g.Name:
			return Fail(
				Malformed,
				"a group's name is %q: it has 1 to %d characters, the first and the last not blank",
				g.Name,
				CapGroupNameMax,
			)

		case names[g.Name]:
			return Fail(Malformed, "group %q is named twice", g.Name)
		}

		names[g.Name] = true
		if err := g.check("group " + g.Name); err != nil {
			return err
		}

		for _, site := range g.Sites {
			if other, taken := of[site]; taken {
				return Fail(
					Malformed,
					"site %v is in group %q and in group %q: a site lies in one group at most",
					site,
					other,
					g.Name,
				)
			}

			of[site] = g.Name
		}
	}

	if len(of) > CapSitesMax {
		return Fail(
			Malformed,
			"%d sites in groups: there may be %d",
			len(of),
			CapSitesMax,
		)
	}

	return cmp.Or(c.CheckNesting(), c.checkPosition())
}

func (c *Cap) check(whose string) error {
	if c.Power != nil && (*c.Power < 0 || *c.Power > CapMax) {
		return Fail(
			Malformed,
			"the cap of %s is %.10g kW: it should be 0 to %.10g",
			whose,
			c.Power.KW(),
			CapMax.KW(),
		)
	}

	if c.StartsPerMinute < 0 || c.StartsPerMinute > StartsMax {
		return Fail(
			Malformed,
			"the starts per minute of %s are %d: they should be 1 to %d, or 0 for no bound",
			whose,
			c.StartsPerMinute,
			StartsMax,
		)
	}

	return nil
}

func (c *Caps) checkPosition() error {
	if len(c.Position) > TradedMax {
		return Fail(
			Malformed,
			"a position of %d half-hours: there may be %d",
			len(c.Position),
			TradedMax,
		)
	}

	for i, t := range c.Position {
		at := t.Period.Start().Format(time.RFC3339)
		if i > 0 && !c.Position[i-1].Period.Before(t.Period) {
			return Fail(
				Malformed,
				"the position's half-hour %s comes twice or out of order",
				at,
			)
		}

		if t.Energy < 0 || t.Energy > TradedEnergyMax {
			return Fail(
				Malformed,
				"the position at %s is %.10g kWh: it should be 0 to %.10g",
				at,
				t.Energy.KWh(),
				TradedEnergyMax.KWh(),
			)
		}

		if t.Sell > t.Buy {
			return Fail(
				Malformed,
				"the position at %s sells at £%v/MWh and buys at £%v/MWh: selling must not be dearer",
				at,
				t.Sell.GBPPerMWh(),
				t.Buy.GBPPerMWh(),
			)
		}
	}

	return nil
}
