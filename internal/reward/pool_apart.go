package reward

import (
	"slices"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// subtractOwnMeters prevents that energy is settled twice. What was settled on assets' own
// meters is subtracted from their sites' boundaries, and what was settled on chargers from the
// cars that have meters of their own.
func (s *settling) subtractOwnMeters() error {
	days := map[siteDay]*ownMeters{}
	for _, c := range s.claims {
		key := siteDay{c.SiteID, c.Case.Day}
		if days[key] == nil {
			days[key] = &ownMeters{}
		}
		days[key].add(c)
	}

	for _, day := range days {
		if err := day.subtractChargers(); err != nil {
			return err
		}

		if err := day.subtractFromBoundary(); err != nil {
			return err
		}
	}

	return nil
}

// ownMeters has the events of a site's day by the kind of meter that they are settled on.
type ownMeters struct {
	boundary []*claim
	chargers []*claim
	cars     []*claim
	// events of any kind that are settled on their own meter even if the boundary is read
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

// subtractFromBoundary subtracts what was settled on assets' own meters from the boundary. If
// one of these deviations is unknown, the boundary's is too.
func (d *ownMeters) subtractFromBoundary() error {
	if len(d.boundary) == 0 {
		return nil
	}

	for _, c := range d.own {
		deviations, err := c.Deviations()
		if err != nil {
			return err
		}

		for _, b := range d.boundary {
			b.SettledElsewhere = append(b.SettledElsewhere, deviations...)
		}
	}

	return nil
}

// subtractChargers makes the cars count only for what they deviated beyond the chargers, in
// each half-hour and direction, because the energy that passes a charger is metered by it and
// by the car. A charger's deviation that is unknown subtracts nothing.
func (d *ownMeters) subtractChargers() error {
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

	discharged := map[periodDirection]flex.WattHours{}
	for _, v := range chargers {
		discharged[v.key()] += v.size()
	}

	before := map[periodDirection]flex.WattHours{} // deviations of the cars that come before, by id
	for _, v := range cars {
		key := v.key()
		own := v.size()
		counted := own - beyondChargers(before[key], own, discharged[key])
		before[key] += own
		if key.less {
			counted = -counted
		}

		if counted != 0 {
			v.claim.SettledElsewhere = append(v.claim.SettledElsewhere, settle.SettledElsewhere{Period: v.Period, Flex: counted, Known: true})
		}
	}

	return nil
}

// meterDeviation is the deviation of an asset's own meter in a half-hour of an event.
type meterDeviation struct {
	claim *claim
	settle.SettledElsewhere
}

// periodDirection is a half-hour and a direction in it.
type periodDirection struct {
	period int
	less   bool
}

func (v *meterDeviation) key() periodDirection { return periodDirection{v.Period, v.Flex < 0} }

func (v *meterDeviation) size() flex.WattHours { return max(v.Flex, -v.Flex) }

// deviationsOf returns the known deviations of events' own meters, ordered by asset. An asset
// has one event in a half-hour.
func deviationsOf(claims []*claim) ([]meterDeviation, error) {
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b *claim) int {
		return compareIDs(a.AssetID, b.AssetID)
	})

	var all []meterDeviation
	for _, c := range claims {
		deviations, err := c.Deviations()
		if err != nil {
			return nil, err
		}

		for _, a := range deviations {
			if a.Known {
				all = append(all, meterDeviation{c, a})
			}
		}
	}

	return all, nil
}
