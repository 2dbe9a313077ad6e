package envelope

// branch is cars behind one fuse, and what each draws in each slot. One slot more than the fleet
// has, the spare, takes what a car may leave: no fuse limits it.
//
// Energy is moved from slot to slot along paths: a car draws less in the first and more in the
// second, where the fuse is full another one draws less there and more in a third, and so on. Only
// the first and the last slot of a path then have another sum.
type branch struct {
	slots   int       // of the fleet; the spare is the one after them
	cars    []int     // of the fleet
	carries []int64   // by slot
	drawn   []int64   // by slot
	able    [][]int64 // by car and slot
	x       [][]int64 // by car and slot

	drawSlots []Set // by car, the slots in which it draws something
	room      []Set // by car, the slots in which it could draw more
	open      Set   // the slots in which the fuse carries more

	// of the newest search, by slot: the slot before, -1 if it is a first one, and the car that goes on from there
	before []int
	by     []int
}

// unlimited is more than any cars draw.
const unlimited = int64(1) << 60

// Share has cars that were added draw together no more in any slot than what a fuse carries, one energy for each slot. A car
// is behind one fuse at most; with two it panics. It returns how much of its Least each car can no longer draw, those that come first
// being served first: that part is no longer asked of it.
func (f *Fleet) Share(carries []Joules, cars []int) []Joules {
	short := make([]Joules, len(cars))
	b := f.newBranch(cars)
	if !b.limit(carries) {
		return short
	}

	for i, car := range cars {
		c := &f.cars[car]
		if f.shared[car] {
			panic("envelope: a car behind two fuses")
		}

		f.shared[car] = true
		f.counts[c.Hours]--

		placed := Joules(b.place(i, int64(c.Least)))
		short[i] = c.Least - placed
		c.Least = placed

		spare := int64(c.Most - c.Least)
		b.able[i][f.slots] = spare
		b.put(i, f.slots, spare)
		b.drawn[f.slots] += spare
	}

	f.branches = append(f.branches, b)

	return short
}

// newBranch returns cars that draw nothing yet.
func (f *Fleet) newBranch(cars []int) *branch {
	n := f.slots + 1
	b := &branch{
		slots:     f.slots,
		cars:      cars,
		carries:   make([]int64, n),
		drawn:     make([]int64, n),
		able:      make([][]int64, len(cars)),
		x:         make([][]int64, len(cars)),
		drawSlots: make([]Set, len(cars)),
		room:      make([]Set, len(cars)),
		before:    make([]int, n),
		by:        make([]int, n),
	}

	for i, car := range cars {
		b.x[i] = make([]int64, n)
		b.able[i] = make([]int64, n)
		for t := range f.slots {
			b.able[i][t] = int64(f.Able(car, t))
			b.put(i, t, 0)
		}
	}

	return b
}

// limit sets what the fuse carries, and reports whether that is less than all cars could draw in some slot.
func (b *branch) limit(carries []Joules) bool {
	binds := false
	for t, j := range carries[:b.slots] {
		b.carries[t] = max(0, int64(j))
		possible := int64(0)
		for _, able := range b.able {
			possible += able[t]
		}

		binds = binds || possible > b.carries[t]
		b.draw(t, 0)
	}

	b.carries[b.slots] = unlimited
	b.draw(b.slots, 0)

	return binds
}

// copy returns cars that draw the same, to be moved by itself.
func (b *branch) copy() *branch {
	c := *b
	c.drawn = append([]int64(nil), b.drawn...)
	c.drawSlots = append([]Set(nil), b.drawSlots...)
	c.room = append([]Set(nil), b.room...)
	c.before = make([]int, len(b.before))
	c.by = make([]int, len(b.by))

	c.x = make([][]int64, len(b.x))
	for i, own := range b.x {
		c.x[i] = append([]int64(nil), own...)
	}

	return &c
}

// put has a car draw more in a slot, or less if the energy is negative.
func (b *branch) put(car, slot int, joules int64) {
	one := Window(slot, slot+1)
	b.x[car][slot] += joules
	b.drawSlots[car] &^= one
	b.room[car] &^= one

	if b.x[car][slot] > 0 {
		b.drawSlots[car] |= one
	}
	if b.x[car][slot] < b.able[car][slot] {
		b.room[car] |= one
	}
}

// place has a car draw an energy, in any slots but the spare, while the others draw as much as before. It returns how much of it can be drawn.
func (b *branch) place(car int, joules int64) int64 {
	remaining := joules
	for remaining > 0 {
		last, found := b.search(b.room[car], b.open)
		if !found {
			break
		}

		first, most := b.along(last, remaining)
		most = min(most, b.able[car][first]-b.x[car][first])
		b.shift(last, most)
		b.put(car, first, most)
		b.draw(last, most)
		remaining -= most
	}

	return joules - remaining
}

// move moves at most an energy from some slots to others. It returns how much it moved.
func (b *branch) move(from, to Set, joules int64) int64 {
	remaining := joules
	for remaining > 0 {
		last, found := b.search(from, to&b.open)
		if !found {
			break
		}

		first, most := b.along(last, remaining)
		b.shift(last, most)
		b.draw(first, -most)
		b.draw(last, most)
		remaining -= most
	}

	return joules - remaining
}

// draw changes a slot's sum.
func (b *branch) draw(slot int, joules int64) {
	b.drawn[slot] += joules
	b.open &^= Window(slot, slot+1)
	if b.drawn[slot] < b.carries[slot] {
		b.open |= Window(slot, slot+1)
	}
}

// reach returns the slots to which something that is drawn in some slots can be moved, and these.
func (b *branch) reach(from Set) Set {
	reached := from
	for {
		next := reached
		for i, slots := range b.drawSlots {
			if slots&next != 0 {
				next |= b.room[i]
			}
		}

		if next == reached {
			return reached
		}
		reached = next
	}
}

// search looks for the shortest path from some slots to a goal, and returns its last slot.
func (b *branch) search(from, goal Set) (int, bool) {
	for s := from; s != 0; s &= s - 1 {
		b.before[s.first()] = -1
	}

	visited, layer := from, from
	for layer != 0 {
		hit := layer & goal
		if hit != 0 {
			return hit.first(), true
		}

		next := Set(0)
		for i := range b.cars {
			next |= b.onward(i, layer, visited|next)
		}

		visited |= next
		layer = next
	}

	return 0, false
}

// onward returns the slots not visited yet in which a car could draw what it draws in one of a layer, and notes the way there.
func (b *branch) onward(car int, layer, visited Set) Set {
	from := layer & b.drawSlots[car]
	if from == 0 {
		return 0
	}

	unvisited := b.room[car] &^ visited
	for s := unvisited; s != 0; s &= s - 1 {
		slot := s.first()
		b.before[slot] = from.first()
		b.by[slot] = car
	}

	return unvisited
}

// along returns the first slot of the path that was found, and how much can be moved along it, at most what is asked for.
func (b *branch) along(last int, most int64) (int, int64) {
	most = min(most, b.carries[last]-b.drawn[last])
	slot := last
	for b.before[slot] >= 0 {
		car, from := b.by[slot], b.before[slot]
		most = min(most, b.x[car][from], b.able[car][slot]-b.x[car][slot])
		slot = from
	}

	return slot, most
}

// shift has the cars of the path draw less in the slot before and more in the one after.
func (b *branch) shift(last int, joules int64) {
	slot := last
	for b.before[slot] >= 0 {
		car, from := b.by[slot], b.before[slot]
		b.put(car, from, -joules)
		b.put(car, slot, joules)
		slot = from
	}
}

// drawnIn is what is drawn in some slots.
func (b *branch) drawnIn(s Set) Joules {
	var sum int64
	for ; s != 0; s &= s - 1 {
		sum += b.drawn[s.first()]
	}

	return Joules(sum)
}

// all is every slot, and the spare.
func (b *branch) all() Set { return Window(0, b.slots) | Window(b.slots, b.slots+1) }

// most moves as much as possible into some slots, and returns what is then drawn in them.
func (b *branch) most(s Set) Joules {
	b.move(b.all()&^s, s, unlimited)

	return b.drawnIn(s)
}

// least moves as much as possible out of some slots, and returns what is then drawn in them.
func (b *branch) least(s Set) Joules {
	b.move(s, b.all()&^s, unlimited)

	return b.drawnIn(s)
}
