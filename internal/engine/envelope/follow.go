package envelope

import (
	"cmp"
	"slices"
)

// Certificate proves that a profile cannot be followed: in its slots it asks for more than the
// fleet can draw, or for less than the fleet must.
type Certificate struct {
	Slots Set
	More  bool   // it asks for too much; else for too little
	Asked Joules // by the profile, in these slots
	Bound Joules // the most, or the least, that the fleet draws in them
}

// Answer says whether a profile can be followed.
type Answer struct {
	Follows     bool
	Certificate Certificate // if it does not

	// by slot and place; none for slots that nothing is asked of
	parts  [][]int64
	places []int           // of the cars
	behind map[int][]int64 // by car behind a fuse, what it draws by slot
}

// Part returns what a car draws in a slot that something is asked of, cars counted in the order
// in which they were added. It is for a profile that can be followed.
func (a *Answer) Part(car, slot int) Joules {
	if own, found := a.behind[car]; found {
		return Joules(own[slot])
	}

	return Joules(a.parts[slot][a.places[car]])
}

// Follow says whether the fleet can draw exactly a profile in a set of slots, one energy for
// each: with every car's part, or with a certificate that it cannot. What it draws in the other
// slots is free, as long as every car has what it needs; their energies are not looked at.
func (f *Fleet) Follow(slots Set, profile []Joules) Answer {
	slots &= f.all()
	w := f.newFlow(slots, profile)
	if w.impossible {
		return Answer{Certificate: f.certify(slots, true, profile)}
	}

	w.fill()
	w.balance()
	if !slices.ContainsFunc(w.surplus, func(j int64) bool { return j > 0 }) {
		return Answer{
			Follows: true,
			parts:   w.x[:f.slots],
			places:  w.places,
			behind:  w.perCar(),
		}
	}

	reached := w.reached()
	if reached.Has(f.slots) {
		return Answer{Certificate: f.certify(slots&^reached, true, profile)}
	}

	return Answer{Certificate: f.certify(reached, false, profile)}
}

// certify adds up the two sides of the condition for a set of slots.
func (f *Fleet) certify(s Set, more bool, profile []Joules) Certificate {
	c := Certificate{Slots: s, More: more}
	for t, e := range profile[:f.slots] {
		if s.Has(t) {
			c.Asked += e
		}
	}

	for _, b := range f.branches {
		if more {
			c.Bound += b.copy().most(s)
		} else {
			c.Bound += b.copy().least(s)
		}
	}

	for i := range f.cars {
		if f.shared[i] {
			continue
		}

		car := &f.cars[i]
		able := Joules(car.Power) * Joules(f.seconds(car.Hours, s))
		if more {
			c.Bound += min(car.Most, able)
			continue
		}

		others := Joules(car.Power)*Joules(f.seconds(car.Hours, f.all())) - able
		c.Bound += max(0, car.Least-others)
	}

	return c
}

// flow is an assignment of every car's Most to the slots that something is asked of, and to one
// more, the rest: it takes what a car may leave, and what it draws in other slots.
type flow struct {
	*Fleet
	// those with the fewest permitted seconds first, those with the same hours together
	cars        []Car
	places      []int // of the fleet's cars among them
	nodes       int
	list        []int     // the slots that something is asked of, and the rest
	spare       []int64   // what the rest takes of a car
	x           [][]int64 // joules, by slot and car
	surplus     []int64   // of a slot: what is assigned less what is asked for
	labels      []int     // a lower bound of the steps from a slot to a deficit
	ownBranches []*branch // cars behind fuses, which are not among the cars
	owned       []Set     // by slot, those of the branches that it stands for: for the rest the spare, and what nothing is asked of
	impossible  bool      // more is asked for than all cars may draw
}

func (f *Fleet) newFlow(slots Set, profile []Joules) *flow {
	w := &flow{Fleet: f, nodes: f.slots + 1}
	w.x = make([][]int64, w.nodes)
	w.surplus = make([]int64, w.nodes)
	w.labels = make([]int, w.nodes)

	rest := int64(0)
	for i := range f.cars {
		rest += int64(f.cars[i].Most)
	}

	for t, e := range profile[:f.slots] {
		if slots.Has(t) {
			w.list = append(w.list, t)
			w.surplus[t] = -int64(e)
			rest -= int64(e)
		}
	}

	w.list = append(w.list, f.slots)
	w.surplus[f.slots] = -rest
	w.impossible = rest < 0
	if w.impossible {
		return w
	}

	w.sort()
	for _, t := range w.list {
		w.x[t] = make([]int64, len(w.cars))
	}

	w.spares(f.all() &^ slots)
	w.branch(slots)

	return w
}

// branch adds the cars behind fuses, with what they draw to begin with.
func (w *flow) branch(slots Set) {
	w.owned = make([]Set, w.nodes)
	for _, t := range w.list {
		w.owned[t] = Window(t, t+1)
	}
	w.owned[w.slots] |= w.all() &^ slots

	for _, b := range w.branches {
		own := b.copy()
		w.ownBranches = append(w.ownBranches, own)
		for _, t := range w.list {
			w.surplus[t] += int64(own.drawnIn(w.owned[t]))
		}
	}
}

// perCar is what each car behind a fuse draws.
func (w *flow) perCar() map[int][]int64 {
	all := map[int][]int64{}
	for _, b := range w.ownBranches {
		for i, car := range b.cars {
			all[car] = b.x[i]
		}
	}

	return all
}

// spares works out what the rest takes of each car: what it may leave, and what it can draw in
// slots that nothing is asked of.
func (w *flow) spares(free Set) {
	seconds := make([]int64, len(w.hours))
	for h := range seconds {
		seconds[h] = w.seconds(Hours(h), free)
	}

	w.spare = make([]int64, len(w.cars))
	for i := range w.cars {
		c := &w.cars[i]
		w.spare[i] = int64(c.Most-c.Least) + int64(c.Power)*seconds[c.Hours]
	}
}

// headroom returns how much more a car could draw in a slot.
func (w *flow) headroom(car, slot int) int64 {
	if slot == w.slots {
		return w.spare[car] - w.x[slot][car]
	}
	c := &w.cars[car]

	return int64(c.Power)*w.hours[c.Hours][slot] - w.x[slot][car]
}

// put assigns energy of a car to a slot, or takes it away if it is negative.
func (w *flow) put(car, slot int, joules int64) {
	w.x[slot][car] += joules
	w.surplus[slot] += joules
}

// resort is after how many cars fill looks again which slots lack most.
const resort = 64

// fill assigns every car's Most, in their order, to the slots that lack most, and what no slot
// lacks to any.
func (w *flow) fill() {
	slots := slices.Clone(w.list)

	for i := range w.cars {
		if i%resort == 0 {
			slices.SortFunc(slots, func(a, b int) int {
				return cmp.Compare(w.surplus[a], w.surplus[b])
			})
		}

		remaining := w.place(i, slots, int64(w.cars[i].Most))
		for _, t := range w.list {
			if remaining == 0 {
				break
			}

			energy := min(remaining, w.headroom(i, t))
			w.put(i, t, energy)
			remaining -= energy
		}
	}
}

// place assigns energy of a car to slots as far as they lack it, and returns what is left.
func (w *flow) place(car int, slots []int, remaining int64) int64 {
	for _, t := range slots {
		if remaining == 0 {
			break
		}
		if w.surplus[t] >= 0 {
			continue
		}

		energy := min(remaining, w.headroom(car, t), -w.surplus[t])
		w.put(car, t, energy)
		remaining -= energy
	}

	return remaining
}

// sort puts the cars in order: those with the fewest permitted seconds first.
func (w *flow) sort() {
	hours := make([]Hours, len(w.hours))
	totals := make([]int64, len(w.hours))
	for h := range hours {
		hours[h] = Hours(h)
		totals[h] = w.seconds(Hours(h), w.all())
	}

	slices.SortFunc(hours, func(a, b Hours) int {
		return cmp.Or(cmp.Compare(totals[a], totals[b]), cmp.Compare(a, b))
	})

	next := make([]int, len(w.hours))
	sum := 0
	for _, h := range hours {
		next[h] = sum
		sum += w.counts[h]
	}

	w.cars = make([]Car, sum)
	w.places = make([]int, len(w.Fleet.cars))
	for i, c := range w.Fleet.cars {
		if w.shared[i] {
			continue
		}

		w.places[i] = next[c.Hours]
		w.cars[next[c.Hours]] = c
		next[c.Hours]++
	}
}

// balance pushes surplus to slots with a deficit until there is none, or none that reaches one.
// A label of as many as there are nodes says that no deficit is reached.
func (w *flow) balance() {
	for {
		next := w.highest()
		if next < 0 {
			return
		}
		w.discharge(next)
	}
}

// highest returns the slot with the highest label among those with surplus that may still reach
// a deficit, -1 if there is none.
func (w *flow) highest() int {
	best := -1
	for _, t := range w.list {
		if w.surplus[t] <= 0 || w.labels[t] >= w.nodes {
			continue
		}
		if best < 0 || w.labels[t] > w.labels[best] {
			best = t
		}
	}

	return best
}

// discharge pushes a slot's surplus to slots that are one step nearer to a deficit, and raises
// its label when there are none left.
func (w *flow) discharge(t int) {
	for w.surplus[t] > 0 && w.labels[t] < w.nodes {
		for _, u := range w.list {
			if w.labels[u] == w.labels[t]-1 {
				w.push(t, u)
			}
		}

		if w.surplus[t] > 0 {
			w.relabel(t)
		}
	}
}

// push moves energy of cars from one slot to another, as much as is surplus.
func (w *flow) push(t, u int) {
	for i, x := range w.x[t] {
		if w.surplus[t] == 0 {
			return
		}
		if x == 0 {
			continue
		}

		move := min(x, w.surplus[t], w.headroom(i, u))
		w.put(i, t, -move)
		w.put(i, u, move)
	}

	for _, b := range w.ownBranches {
		if w.surplus[t] == 0 {
			return
		}

		move := b.move(w.owned[t], w.owned[u], w.surplus[t])
		w.surplus[t] -= move
		w.surplus[u] += move
	}
}

// relabel raises a slot's label to one above the lowest that it can push to. A label that no
// slot has cuts off all above it: these reach no deficit.
func (w *flow) relabel(t int) {
	old := w.labels[t]
	w.labels[t] = w.lowest(t) + 1
	if slices.ContainsFunc(w.list, func(u int) bool {
		return w.labels[u] == old
	}) {
		return
	}

	for _, u := range w.list {
		if w.labels[u] > old {
			w.labels[u] = w.nodes
		}
	}
}

// lowest returns the least label among the slots to which something of a slot can be moved.
func (w *flow) lowest(t int) int {
	order := make([]int, 0, w.nodes)
	for _, u := range w.list {
		if u != t {
			order = append(order, u)
		}
	}

	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(w.labels[a], w.labels[b])
	})
	for _, u := range order {
		if w.movable(t, u) {
			return min(w.labels[u], w.nodes-1)
		}
	}

	return w.nodes - 1
}

// movable reports whether some car could draw less in one slot and more in another.
func (w *flow) movable(t, u int) bool {
	for i, x := range w.x[t] {
		if x > 0 && w.headroom(i, u) > 0 {
			return true
		}
	}

	for _, b := range w.ownBranches {
		if b.reach(w.owned[t])&w.owned[u]&b.open != 0 {
			return true
		}
	}

	return false
}

// reached returns the slots that the surplus which is left could be moved to.
func (w *flow) reached() Set {
	var list []int
	var s Set
	for _, t := range w.list {
		if w.surplus[t] > 0 {
			s |= Window(t, t+1)
			list = append(list, t)
		}
	}

	for len(list) > 0 {
		t := list[0]
		list = list[1:]

		for _, u := range w.list {
			if !s.Has(u) && w.movable(t, u) {
				s |= Window(u, u+1)
				list = append(list, u)
			}
		}
	}

	return s
}
