package control

import (
	"slices"
	"time"

	"flexd/internal/engine/check"
	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// phaseLoad is the load under a main fuse, on each of its phases in the worst case. Power on
// one phase counts three times and power on three phases once, so that each phase is compared
// with what the whole fuse carries. If it is not known that the fuse has three phases, all
// power counts once.
type phaseLoad struct {
	phases int
	on     [3]flex.Watts
}

// add counts what a device draws; on every phase, if its phase is not known.
func (l *phaseLoad) add(w flex.Watts, wiring flex.Wiring) {
	for i := range l.on {
		if l.touches(wiring, i) {
			l.on[i] += w * l.weight(wiring)
		}
	}
}

// addLoad counts the most that something plugged in can draw. A charger whose power is not
// known counts with the most that any charger takes, on all phases.
func (l *phaseLoad) addLoad(plugged *store.Load) {
	if plugged.Assumed {
		l.add(flex.ChargerMax, flex.Wiring{Phases: 3})
	} else {
		l.add(plugged.Power, plugged.Wired)
	}
}

// count adds 1 on each phase of a device, to count devices by phase.
func (l *phaseLoad) count(wiring flex.Wiring) {
	for i := range l.on {
		if l.touches(wiring, i) {
			l.on[i]++
		}
	}
}

// touches reports whether a device may draw on a phase, by its index.
func (l *phaseLoad) touches(wiring flex.Wiring, place int) bool {
	return l.phases != 3 || wiring.Phases == 3 || wiring.Phase == 0 || wiring.Phase == place+1
}

// weight returns the factor by which a device's power counts.
func (l *phaseLoad) weight(wiring flex.Wiring) flex.Watts {
	if l.phases == 3 && wiring.Phases != 3 {
		return 3
	}
	return 1
}

// max returns the load of the phase with the highest load.
func (l *phaseLoad) max() flex.Watts { return slices.Max(l.on[:]) }

// headroom returns the power that a device may draw in addition to the load, if the whole fuse
// carries a power.
func (l *phaseLoad) headroom(carries flex.Watts, wiring flex.Wiring) flex.Watts {
	var most flex.Watts
	for i, w := range l.on {
		if l.touches(wiring, i) {
			most = max(most, w)
		}
	}

	return max(0, carries-most) / l.weight(wiring)
}

// equalShare returns a device's equal share of what the load leaves on its phases, among the
// devices that are counted on them.
func (l *phaseLoad) equalShare(carries flex.Watts, among *phaseLoad, wiring flex.Wiring) flex.Watts {
	least := flex.Unbounded
	for i, w := range l.on {
		if l.touches(wiring, i) {
			least = min(least, max(0, carries-w)/max(1, among.on[i]))
		}
	}

	return least / l.weight(wiring)
}

// wiring returns how the car's charger is wired.
func (c *siteCar) wiring() flex.Wiring {
	return flex.Wiring{Phases: c.from.Phases, Phase: c.from.Phase}
}

// addBattery counts a battery together with the n before it.
func (d *loadBound) addBattery(n int, b *store.Battery) {
	d.power += b.Power()
	d.wiring = combinedWiring(d.wiring, n, b)
}

// combinedWiring returns the wiring of several batteries that count as one: that of the first
// if all are wired alike, or else one unknown phase. n is the number of batteries before b.
func combinedWiring(before flex.Wiring, n int, b *store.Battery) flex.Wiring {
	own := b.Wiring()
	if n == 0 || own == before {
		return own
	}
	return flex.Wiring{Phases: 1}
}

// load returns an empty load under the site's fuse.
func (f *sitePlan) load() phaseLoad { return phaseLoad{phases: f.phases} }

// capacityFor returns the most that a device alone can draw under the fuse.
func (f *sitePlan) capacityFor(wiring flex.Wiring) flex.Watts {
	l := f.load()
	return l.headroom(f.limit(), wiring)
}

// hasPhases reports whether each phase of the fuse has its own limit.
func (f *sitePlan) hasPhases() bool { return f.phases == 3 }

// headroomOf returns the headroom of one car beside the present plans of the others. If the
// fuse has phases, it is in the car's own power: how much a load counts then depends on the
// phases of both.
func (f *sitePlan) headroomOf(car *siteCar) *assetHeadroom {
	if !f.hasPhases() {
		return f.assetHeadroom
	}

	var others []loadBound
	for _, other := range f.cars {
		if other != car {
			others = append(others, other.reserved()...)
		}
	}

	return f.headroomBeside(slices.Concat(f.others, others), car.wiring())
}

// headroomBeside returns the headroom that some loads leave to a device.
func (f *sitePlan) headroomBeside(loads []loadBound, wiring flex.Wiring) *assetHeadroom {
	g := sitePlan{fuse: f.fuse, phases: f.phases, from: f.from, others: loads}
	carries := g.capacityFor(wiring)
	span := flex.Span{From: f.from, To: f.from.Add(headroom.Hours * time.Hour)}
	used := g.sampleSteps(span, 0, func(t time.Time) flex.Watts {
		l := g.load()
		l.addAll(loads, t)

		return carries - l.headroom(g.limit(), wiring)
	})

	r := fuseHeadroom(carries, f.from)
	r.Reserve(0, used)

	return r
}

// addAll counts what some loads draw at an instant.
func (l *phaseLoad) addAll(loads []loadBound, t time.Time) {
	for i := range loads {
		l.add(loads[i].powerAt(t), loads[i].wiring)
	}
}

// headroomByPhase returns the headroom that everything plugged in, the home's batteries and
// heaters and the home itself leave to an asset.
func (f *sitePlan) headroomByPhase(c *store.PlanningState, loads []store.Load) *assetHeadroom {
	others := slices.Concat(f.heaters, f.dispatches)
	for i := range loads {
		if loads[i].AssetID != c.Asset.ID {
			steps, power, _ := loadSteps(&loads[i], f.from)
			others = append(others, loadBound{lists: [][]flex.Step{steps}, power: power, wiring: loads[i].Wired})
		}
	}

	for _, o := range f.others {
		if o.isHome || o.isBattery {
			others = append(others, o)
		}
	}

	return f.headroomBeside(others, c.Asset.Wiring())
}

// addMax counts the most that some loads can draw.
func (l *phaseLoad) addMax(loads []loadBound) {
	for i := range loads {
		l.add(loads[i].power, loads[i].wiring)
	}
}

// reserved returns what a car uses of the fuse while others are planned: its plan, or until it
// has one, its share and its charge-now.
func (c *siteCar) reserved() []loadBound {
	all := [][]flex.Step{c.share, c.member.now}
	if c.counted {
		all = [][]flex.Step{c.finalSteps}
	}

	var loads []loadBound
	for _, steps := range all {
		loads = append(loads, loadBound{lists: [][]flex.Step{steps}, power: flex.Unbounded, wiring: c.wiring()})
		if c.counted {
			loads[0].power = c.problem.Power
		}
	}

	return loads
}

// countPlan counts a car with its plan, instead of what was reserved for it.
func (f *sitePlan) countPlan(car *siteCar) {
	car.counted = true
	if !f.hasPhases() {
		f.Add(0, car.finalSteps, car.problem.Power, car.problem.Running)
	}
}

// releaseHeadroom releases what is reserved for a car until it is planned.
func (f *sitePlan) releaseHeadroom(car *siteCar) {
	if !f.hasPhases() {
		f.Release(0, car.share)
		f.Release(0, car.member.now)
	}
}

// sharePhases gives each car its share of a fuse with phases. If all cars are on known single
// phases, each phase is shared separately; otherwise the worst phase is shared as if all were
// on it.
func (f *sitePlan) sharePhases(cars []*siteCar) error {
	separate := !slices.ContainsFunc(cars, func(c *siteCar) bool {
		return c.from.Phases == 3 || c.from.Phase == 0
	})
	if !separate {
		return f.sharePhase(cars, 0)
	}

	for phase := 1; phase <= 3; phase++ {
		var on []*siteCar
		for _, car := range cars {
			if car.from.Phase == phase {
				on = append(on, car)
			}
		}

		if err := f.sharePhase(on, phase); err != nil {
			return err
		}
	}

	return nil
}

// sharePhase gives cars their shares of one phase; of the worst one, if it is 0.
func (f *sitePlan) sharePhase(cars []*siteCar, phase int) error {
	if len(cars) < 2 {
		return nil
	}

	l := f.load()
	r := fuseHeadroom(f.limit(), f.from)
	for _, o := range f.others {
		if phase == 0 || l.touches(o.wiring, phase-1) {
			r.Add(0, multiplySteps(o.lists[0], l.weight(o.wiring)), o.power*l.weight(o.wiring), true)
		}
	}

	all := make([]headroom.Car, len(cars))
	for i, car := range cars {
		w := l.weight(car.wiring())
		p := car.problem
		p.Power *= w
		p.Need *= flex.WattHours(w)
		p.Least *= w
		all[i] = headroom.Car{Problem: &p}
		r.Reserve(0, multiplySteps(car.member.now, w))
	}

	shares, err := r.Share(all, f.prices, nil)
	if err != nil {
		return err
	}

	for i, car := range cars {
		car.share = divideSteps(shares.Cars[i], l.weight(car.wiring()))
	}

	return nil
}

// multiplySteps returns steps of n times the power.
func multiplySteps(steps []flex.Step, n flex.Watts) []flex.Step {
	out := slices.Clone(steps)
	for i := range out {
		if out[i].Limit < flex.Unbounded/n {
			out[i].Limit *= n
		}
	}

	return out
}

// divideSteps returns steps of the power divided by n.
func divideSteps(steps []flex.Step, n flex.Watts) []flex.Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Limit /= n
	}

	return out
}

// mainFuse returns the site's fuse in the form of the check.
func (f *sitePlan) mainFuse() check.MainFuse {
	return check.MainFuse{Carries: f.fuse, Phases: f.phases}
}

// dischargeLoad is the discharge of other devices at a site, compared with its export limit
// and, on each phase, its main fuse.
type dischargeLoad struct {
	phaseLoad
	fuse   flex.Watts // the import capacity, which also limits each phase in the other direction; 0 if it was never set
	export flex.Watts // the export limit
	sum    flex.Watts
}

// addDischarge adds the discharge of a device.
func (o *dischargeLoad) addDischarge(w flex.Watts, wiring flex.Wiring) {
	o.sum += w
	o.add(w, wiring)
}

// exportHeadroom returns what a further device may discharge.
func (o *dischargeLoad) exportHeadroom(wiring flex.Wiring) flex.Watts {
	remaining := max(0, o.export-o.sum)
	if o.fuse == 0 {
		return remaining
	}

	return min(remaining, o.headroom(o.fuse, wiring))
}
