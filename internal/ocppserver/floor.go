package ocppserver

import (
	"context"
	"slices"
	"time"
)

// floorID is the id of the floor's profile on connector 0; a connector's is higher by its
// number. Plans' ids are hashes.
const floorID = 0x464c_0000

// floor sends a charger the power to which it may always fall back: a TxDefaultProfile without
// an end, on the lowest stack level. A plan overrides it while it lasts. The floor applies
// when flexd and the bridge are down, and to the next car.
func (c *charger) floor(ctx context.Context, n *connector) error {
	o, due := c.floorOrder(n)
	if !due {
		return nil
	}

	for _, way := range o.floorForms() {
		if slices.Contains(n.floorRefused, way) {
			continue
		}

		took, _, err := c.set(ctx, o.link, way.Connector, o.floorProfile(way))
		if err != nil {
			c.ifLate(err, func(_ context.Context, answer func(out any) error) error {
				c.floorLate(n, o, way, answer)
				return nil
			})
			c.b.Log.Warn(
				"a charger does not answer to its floor",
				"charger",
				c.id,
				"connector",
				n.number,
				"err",
				err,
			)

			return errRetry
		}
		if took {
			c.binds(way, floorID+way.Connector)
			c.noteFloor(n, o, true)
			return nil
		}
	}

	c.b.Log.Warn(
		"a charger takes no floor: without flexd and the bridge it charges freely",
		"charger",
		c.id,
		"connector",
		n.number,
	)

	c.noteFloor(n, o, false)

	return nil
}

// floorLate processes the late answer to a floor in one form. A form that was refused is not
// tried again.
func (c *charger) floorLate(n *connector, o order, way form, answer func(out any) error) {
	var s statusAnswer
	took, _, err := profileAnswer(&s, answer(&s))
	if took {
		c.binds(way, floorID+way.Connector)
		c.noteFloor(n, o, true)
	} else if err == nil {
		n.floorRefused = append(n.floorRefused, way)
	}
}

// floorProfile is the floor in a form. One that is too little for a car is a pause.
func (o order) floorProfile(way form) chargingProfile {
	start := o.now.Truncate(time.Second).Add(o.offset - headStart)
	return chargingProfile{
		ID:      floorID + way.Connector,
		Purpose: purposeTxDefault,
		Kind:    "Absolute",
		Schedule: schedule{
			Start:   stamp{start},
			Unit:    way.Unit,
			Periods: []period{o.floorPeriod(way, 0)},
		},
	}
}

// floorPeriod is the floor from a second of a schedule on.
func (o order) floorPeriod(way form, second int) period {
	phases := o.phasesAt(*o.floor)
	limit, _ := way.limit(*o.floor, o.power, phases)
	return period{
		Start:  second,
		Limit:  limit,
		Phases: phases,
	}
}

// floorOrder reports whether a connector lacks its floor, and returns what is needed to send
// it.
func (c *charger) floorOrder(n *connector) (o order, due bool) {
	options := c.b.optionsOf(c.id)
	c.mu.Lock()
	defer c.mu.Unlock()

	ready := c.link != nil && c.configured && !n.asset.ID.IsZero()
	if options.floor == nil || !ready || n.floorSent {
		return order{}, false
	}

	return c.orderOf(n, options), true
}

// floorForms are the ways to write a floor, in the order in which they are tried.
func (o order) floorForms() []form {
	units := slices.Clone(o.capabilities.Units)
	accepted, known := o.capabilities.Taken[formKey(false)]
	if known {
		units = append([]string{accepted.Unit}, units...)
	}

	var all []form
	for _, wholeAmps := range []bool{accepted.Whole, true} {
		for _, unit := range units {
			all = append(all, form{
				Unit:      unit,
				Purpose:   purposeTxDefault,
				Connector: o.n.number,
				Whole:     wholeAmps && unit == unitAmpere,
			})

			if o.singleConnector {
				all = append(all, form{
					Unit:    unit,
					Purpose: purposeTxDefault,
					Whole:   wholeAmps && unit == unitAmpere,
				})
			}
		}
	}

	return unique(all)
}

// noteFloor records that a connector was sent its floor, and whether it was accepted. If what
// it depends on has changed meanwhile, it is sent again.
func (c *charger) noteFloor(n *connector, o order, installed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.floorSent = c.link == o.link && n.floorCount == o.floorCount
	if installed && n.floorSent {
		c.b.Log.Info(
			"a charger has its floor",
			"charger",
			c.id,
			"connector",
			n.number,
		)
	}
}

// tail adds the floor to the end of a plan that replaces it on the charger.
func (f *profileFit) tail(o order) {
	if o.floor == nil || !f.form.onFloor() || o.capabilities.Periods == 1 {
		return
	}

	f.Schedule.Periods = append(
		f.Schedule.Periods,
		o.floorPeriod(f.form, f.Schedule.Duration),
	)

	f.Schedule.Duration = 0
}

// onFloor reports whether a profile of that form replaces the floor.
func (f form) onFloor() bool {
	return f.Purpose == purposeTxDefault && f.Level == 0
}

// covers records whether a plan replaced the floor. A later plan with the same id that does
// not leaves no floor there. The caller holds mu.
func (n *connector) covers(f form) {
	if n.covered && !f.onFloor() {
		n.lacksFloor()
	}
	n.covered = f.onFloor()
}

// dropFloor notes that profiles were cleared, and the floor may have been one of them.
func (c *charger) dropFloor(n *connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n.lacksFloor()
}

// lacksFloor makes a connector be sent its floor, also if the answer to an earlier one is
// still to come. The caller holds mu.
func (n *connector) lacksFloor() {
	n.floorSent = false
	n.floorCount++
}
