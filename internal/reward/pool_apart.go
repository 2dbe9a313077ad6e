package reward

import (
	"slices"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// setApart has no energy count twice. What was settled on assets' own meters is taken off their
// sites' boundaries, and what was settled on chargers' off the cars' that have meters of their own.
func (s *settling) setApart() error {
	days := map[siteDay]*ownMeters{}
	for _, c := range s.claims {
		key := siteDay{c.SiteID, c.Case.Day}
		if days[key] == nil {
			days[key] = &ownMeters{}
		}
		days[key].add(c)
	}

	for _, day := range days {
		if err := day.countBeyondChargers(); err != nil {
			return err
		}

		if err := day.takeOffBoundary(); err != nil {
			return err
		}
	}

	return nil
}

// ownMeters is the events of a site's day by the meters that they are settled on.
type ownMeters struct {
	boundary []*claim
	chargers []*claim
	cars     []*claim
	// those of any kind that have their own meter whatever the boundary says
	own []*claim
}

func (d *ownMeters) add(c *claim) {
	if c.ownMeter() {
		d.own = append(d.own, c)
	}

	switch {
	case c.meter.asset.IsZero():
		d.boundary = append(d.boundary, c)
	case c.Type == flex.Charger:
		d.chargers = append(d.chargers, c)
	case c.Type == flex.ElectricVehicle:
		d.cars = append(d.cars, c)
	}
}

// takeOffBoundary takes what was settled on assets' own meters off the boundary. An own deviation that
// is not known leaves the boundary's unknown.
func (d *ownMeters) takeOffBoundary() error {
	if len(d.boundary) == 0 {
		return nil
	}

	for _, c := range d.own {
		deviations, err := c.Deviations()
		if err != nil {
			return err
		}

		for _, b := range d.boundary {
			b.Apart = append(b.Apart, deviations...)
		}
	}

	return nil
}

// countBeyondChargers has the cars count for what they deviated by beyond the chargers, in each
// half-hour and direction: what passes a charger is read of it and of the car at it. While a charger's
// deviation is not known, it takes nothing off the cars.
func (d *ownMeters) countBeyondChargers() error {
	if len(d.chargers) == 0 || len(d.cars) == 0 {
		return nil
	}

	chargers, err := deviationsOf(d.chargers)
	if err != nil {
		return err
	}

	cars, err := deviationsOf(d.cars)
	if err != nil {
		return err
	}

	given := map[way]flex.WattHours{}
	for _, v := range chargers {
		given[v.way()] += v.size()
	}

	before := map[way]flex.WattHours{} // what the cars before deviated by
	for _, v := range cars {
		w := v.way()
		own := v.size()
		counted := own - beyond(before[w], own, given[w])
		before[w] += own
		if w.less {
			counted = -counted
		}

		if counted != 0 {
			v.claim.Apart = append(v.claim.Apart, settle.Apart{Period: v.Period, Flex: counted, Known: true})
		}
	}

	return nil
}

// deviated is what the own meter of an event's asset deviated by in a half-hour.
type deviated struct {
	claim *claim
	settle.Apart
}

// way is a half-hour and a direction in it.
type way struct {
	period int
	less   bool
}

func (v *deviated) way() way { return way{v.Period, v.Flex < 0} }

func (v *deviated) size() flex.WattHours { return max(v.Flex, -v.Flex) }

// deviationsOf returns what is known of the deviations of events' own meters, by asset. An asset has one
// event in a half-hour.
func deviationsOf(claims []*claim) ([]deviated, error) {
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return compareIDs(a.AssetID, b.AssetID)
	})

	var all []deviated
	for _, c := range claims {
		deviations, err := c.Deviations()
		if err != nil {
			return nil, err
		}

		for _, a := range deviations {
			if a.Known {
				all = append(all, deviated{c, a})
			}
		}
	}

	return all, nil
}
