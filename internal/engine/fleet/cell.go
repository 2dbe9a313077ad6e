package fleet

// cell plans batteries at given prices by the slope trick: the value of stored energy is
// convex and piecewise linear, and is stored as segments by rising slope.
type cell struct {
	slope [2*MaxSlots + 2]float64
	size  [2*MaxSlots + 2]float64
	owner [2*MaxSlots + 2]uint8
	n     int
	head  int               // the cheapest remaining segment
	cost  float64           // of the plan so far
	drawn [MaxSlots]float64 // energy taken from store in a slot
}

// plan returns the least cost of the battery at prices w, as a linear programme that may
// charge and discharge at once, and sets y to the change of stored energy in every slot.
//
// Backward in time, the value of stored energy before a slot is the infimal convolution of the
// slot's cost and the value after it: the segments merge by slope. The limits of the store,
// empty and full, cut length off both ends. A segment that is cut off the cheap end is always
// used, one that is cut off the dear end never. The remaining segments at the start are used
// as far as the store is full.
func (c *cell) plan(b *Battery, w, y []float64) float64 {
	c.n, c.head = 0, 0
	c.cost = 0
	drawn := c.drawn[:len(w)]
	c.insert(0, -b.Terminal, b.CapacityKWh, len(w))
	in, out := b.ChargeKW*SlotHours*b.EffCharge, b.DischargeKW*SlotHours/b.EffDischarge

	for t := len(w) - 1; t >= 0; t-- {
		drawn[t] = -in
		c.cost += w[t] * b.ChargeKW * SlotHours
		c.moveToFront()

		c.insert(c.head, -w[t]/b.EffCharge, in, t)
		c.insert(c.head, -(w[t]-b.Wear)*b.EffDischarge, out, t)
		c.useCheapest(in, drawn)
		c.dropDearest(out)
	}

	c.useCheapest(b.InitKWh, drawn)
	for t, d := range drawn {
		y[t] = -d
	}

	return c.cost
}

// moveToFront reclaims the space of segments at the cheap end, once two are gone.
func (c *cell) moveToFront() {
	if c.head < 2 {
		return
	}

	copy(c.slope[:], c.slope[c.head:c.n])
	copy(c.size[:], c.size[c.head:c.n])
	copy(c.owner[:], c.owner[c.head:c.n])
	c.n -= c.head
	c.head = 0
}

// useCheapest cuts energy off the cheap end, and adds its cost.
func (c *cell) useCheapest(remaining float64, drawn []float64) {
	for remaining > 0 && c.head < c.n {
		size := min(remaining, c.size[c.head])
		c.cost += c.slope[c.head] * size
		if o := int(c.owner[c.head]); o < len(drawn) {
			drawn[o] += size
		}

		remaining -= size
		c.size[c.head] -= size
		if c.size[c.head] <= 0 {
			c.head++
		}
	}
}

// dropDearest cuts off energy at the dear end, which is never used.
func (c *cell) dropDearest(remaining float64) {
	for remaining > 0 && c.n > c.head {
		size := min(remaining, c.size[c.n-1])
		remaining -= size
		c.size[c.n-1] -= size
		if c.size[c.n-1] <= 0 {
			c.n--
		}
	}
}

// insert adds a segment in order, after the used ones before head.
func (c *cell) insert(head int, slope, size float64, owner int) {
	i := c.n
	for ; i > head && c.slope[i-1] > slope; i-- {
		c.slope[i] = c.slope[i-1]
		c.size[i] = c.size[i-1]
		c.owner[i] = c.owner[i-1]
	}

	c.slope[i] = slope
	c.size[i] = size
	c.owner[i] = uint8(owner)
	c.n++
}

// net returns the grid energy of a change y of stored energy.
func (b *Battery) net(y float64) float64 {
	if y > 0 {
		return y / b.EffCharge
	}
	return y * b.EffDischarge
}
