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
func (l *phaseLoad) add(w flex.Watts, wired flex.Wiring) {
	for i := range l.on {
		if l.touches(wired, i) {
			l.on[i] += w * l.weight(wired)
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

// count adds one on each phase of a device.
func (l *phaseLoad) count(wired flex.Wiring) {
	for i := range l.on {
		if l.touches(wired, i) {
			l.on[i]++
		}
	}
}

// touches reports whether a device may draw on a phase, by its index.
func (l *phaseLoad) touches(wired flex.Wiring, place int) bool {
	return l.phases != 3 || wired.Phases == 3 || wired.Phase == 0 || wired.Phase == place+1
}

// weight returns the factor by which a device's power counts.
func (l *phaseLoad) weight(wired flex.Wiring) flex.Watts {
	if l.phases == 3 && wired.Phases != 3 {
		return 3
	}
	return 1
}

// most returns the load of the phase with the highest load.
func (l *phaseLoad) most() flex.Watts { return slices.Max(l.on[:]) }

// left returns the power that a device may draw beside the load, if the whole fuse carries a
// power.
func (l *phaseLoad) left(carries flex.Watts, wired flex.Wiring) flex.Watts {
	var most flex.Watts
	for i, w := range l.on {
		if l.touches(wired, i) {
			most = max(most, w)
		}
	}

	return max(0, carries-most) / l.weight(wired)
}

// parted returns an equal part of what the load leaves on each phase of a device, among the
// devices that are counted on it.
func (l *phaseLoad) parted(carries flex.Watts, among *phaseLoad, wired flex.Wiring) flex.Watts {
	least := flex.Unbounded
	for i, w := range l.on {
		if l.touches(wired, i) {
			least = min(least, max(0, carries-w)/max(1, among.on[i]))
		}
	}

	return least / l.weight(wired)
}

// wiring returns how the car's charger is wired.
func (c *siteCar) wiring() flex.Wiring {
	return flex.Wiring{Phases: c.from.Phases, Phase: c.from.Phase}
}

// addBattery counts a battery together with the n before it.
func (d *draws) addBattery(n int, b *store.Battery) {
	d.power += b.Power()
	d.wired = besideBattery(d.wired, n, b)
}

// besideBattery returns the wiring of several batteries that count as one: that of the first
// if all are wired alike, else one phase that is not known. n is the number of batteries
// before b.
func besideBattery(before flex.Wiring, n int, b *store.Battery) flex.Wiring {
	own := b.Wiring()
	if n == 0 || own == before {
		return own
	}
	return flex.Wiring{Phases: 1}
}

// load returns an empty load under the site's fuse.
func (f *behindFuse) load() phaseLoad { return phaseLoad{phases: f.phases} }

// carries returns the most that a device can draw alone under the fuse.
func (f *behindFuse) carries(wired flex.Wiring) flex.Watts {
	l := f.load()
	return l.left(f.limit(), wired)
}

// phased reports whether each phase of the fuse has its own limit.
func (f *behindFuse) phased() bool { return f.phases == 3 }

// headroomOf returns the headroom of one car beside the present plans of the others. If the
// fuse has phases, it is in the car's own power, as the weight of a load depends on both.
func (f *behindFuse) headroomOf(car *siteCar) *assetHeadroom {
	if !f.phased() {
		return f.assetHeadroom
	}

	var beside []draws
	for _, other := range f.cars {
		if other != car {
			beside = append(beside, other.reserved()...)
		}
	}

	return f.headroomBeside(slices.Concat(f.others, beside), car.wiring())
}

// headroomBeside returns the headroom that some loads leave to a device.
func (f *behindFuse) headroomBeside(loads []draws, wired flex.Wiring) *assetHeadroom {
	g := behindFuse{fuse: f.fuse, phases: f.phases, from: f.from, others: loads}
	carries := g.carries(wired)
	span := flex.Span{From: f.from, To: f.from.Add(headroom.Hours * time.Hour)}
	taken := g.stepped(span, 0, func(t time.Time) flex.Watts {
		l := g.load()
		l.addAll(loads, t)

		return carries - l.left(g.limit(), wired)
	})

	r := fuseHeadroom(carries, f.from)
	r.Reserve(0, taken)

	return r
}

// addAll counts what some loads draw at an instant.
func (l *phaseLoad) addAll(loads []draws, t time.Time) {
	for i := range loads {
		l.add(loads[i].powerAt(t), loads[i].wired)
	}
}

// besidePhases returns the headroom that everything plugged in, the home's batteries and
// heaters and the home itself leave to an asset.
func (f *behindFuse) besidePhases(c *store.PlanningState, loads []store.Load) *assetHeadroom {
	beside := slices.Concat(f.tanks, f.orders)
	for i := range loads {
		if loads[i].AssetID != c.Asset.ID {
			steps, power, _ := drawsFrom(&loads[i], f.from)
			beside = append(beside, draws{lists: [][]flex.Step{steps}, power: power, wired: loads[i].Wired})
		}
	}

	for _, o := range f.others {
		if o.base || o.battery {
			beside = append(beside, o)
		}
	}

	return f.headroomBeside(beside, c.Asset.Wiring())
}

// addMost counts the most that some loads can draw.
func (l *phaseLoad) addMost(loads []draws) {
	for i := range loads {
		l.add(loads[i].power, loads[i].wired)
	}
}

// reserved returns what a car uses of the fuse while others are planned: its plan, or until it
// has one, its share and its charge-now.
func (c *siteCar) reserved() []draws {
	all := [][]flex.Step{c.share, c.member.now}
	if c.counted {
		all = [][]flex.Step{c.finalSteps}
	}

	var loads []draws
	for _, steps := range all {
		loads = append(loads, draws{lists: [][]flex.Step{steps}, power: flex.Unbounded, wired: c.wiring()})
		if c.counted {
			loads[0].power = c.problem.Power
		}
	}

	return loads
}

// place counts a car's plan, instead of what was reserved for it.
func (f *behindFuse) place(car *siteCar) {
	car.counted = true
	if !f.phased() {
		f.Add(0, car.finalSteps, car.problem.Power, car.problem.Running)
	}
}

// releaseHeadroom releases what is reserved for a car until it is planned.
func (f *behindFuse) releaseHeadroom(car *siteCar) {
	if !f.phased() {
		f.Release(0, car.share)
		f.Release(0, car.member.now)
	}
}

// sharePhases gives each car its share of a fuse with phases. If all cars are on known single
// phases, each phase is shared separately; otherwise the worst phase is shared as if all were
// on it.
func (f *behindFuse) sharePhases(cars []*siteCar) error {
	apart := !slices.ContainsFunc(cars, func(c *siteCar) bool {
		return c.from.Phases == 3 || c.from.Phase == 0
	})
	if !apart {
		return f.shareOne(cars, 0)
	}

	for phase := 1; phase <= 3; phase++ {
		var on []*siteCar
		for _, car := range cars {
			if car.from.Phase == phase {
				on = append(on, car)
			}
		}

		if err := f.shareOne(on, phase); err != nil {
			return err
		}
	}

	return nil
}

// shareOne gives cars their shares of one phase; of the worst one, if it is 0.
func (f *behindFuse) shareOne(cars []*siteCar, phase int) error {
	if len(cars) < 2 {
		return nil
	}

	l := f.load()
	r := fuseHeadroom(f.limit(), f.from)
	for _, o := range f.others {
		if phase == 0 || l.touches(o.wired, phase-1) {
			r.Add(0, multiplySteps(o.lists[0], l.weight(o.wired)), o.power*l.weight(o.wired), true)
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

// divideSteps returns steps of one part of the power.
func divideSteps(steps []flex.Step, n flex.Watts) []flex.Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Limit /= n
	}

	return out
}

// mainFuse returns the site's fuse in the form of the check.
func (f *behindFuse) mainFuse() check.MainFuse {
	return check.MainFuse{Carries: f.fuse, Phases: f.phases}
}

// outflow is what others discharge from a site, compared with its export limit and, on each
// phase, its main fuse.
type outflow struct {
	phaseLoad
	fuse   flex.Watts // what the import carries, and no phase of it more the other way; 0 for never set
	export flex.Watts // the export limit
	sum    flex.Watts
}

// give counts what a device discharges.
func (o *outflow) give(w flex.Watts, wired flex.Wiring) {
	o.sum += w
	o.add(w, wired)
}

// leaves returns what a device may discharge beside that.
func (o *outflow) leaves(wired flex.Wiring) flex.Watts {
	left := max(0, o.export-o.sum)
	if o.fuse == 0 {
		return left
	}

	return min(left, o.left(o.fuse, wired))
}
