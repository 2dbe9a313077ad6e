package envelope

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"flexd/internal/flex"
	_ "flexd/test/seed"
)

// totals is what small fleets can draw together: every vector that there is, found by trying
// every amount of every car in every slot. It knows nothing of sets, curves or flows.
type totals map[[4]Joules]bool

// fuse is what cars share.
type fuse struct {
	carries []Joules
	cars    []int
}

func enumerate(hours [][]int64, cars []Car, slots int, fuses ...fuse) totals {
	all := totals{{}: true}
	alone := map[int]bool{}
	for i := range cars {
		alone[i] = true
	}

	for _, f := range fuses {
		behind := totals{{}: true}
		for _, i := range f.cars {
			alone[i] = false
			behind = behind.and(vectors(hours[cars[i].Hours], cars[i], slots))
		}

		var let [][4]Joules
		for sum := range behind {
			if f.lets(sum) {
				let = append(let, sum)
			}
		}

		all = all.and(let)
	}

	for i, c := range cars {
		if alone[i] {
			all = all.and(vectors(hours[c.Hours], c, slots))
		}
	}

	return all
}

// and adds one of some vectors to each.
func (v totals) and(own [][4]Joules) totals {
	next := totals{}
	for _, o := range own {
		for sum := range v {
			for t := range sum {
				sum[t] += o[t]
			}

			next[sum] = true
		}
	}

	return next
}

// lets reports whether a fuse carries what is drawn.
func (f fuse) lets(sum [4]Joules) bool {
	for t, carries := range f.carries {
		if sum[t] > carries {
			return false
		}
	}

	return true
}

// vectors is everything that one car can draw.
func vectors(seconds []int64, c Car, slots int) (all [][4]Joules) {
	var draw func(own [4]Joules, t int, sum Joules)
	draw = func(own [4]Joules, t int, sum Joules) {
		if t == slots {
			if c.Least <= sum && sum <= c.Most {
				all = append(all, own)
			}

			return
		}

		for j := Joules(0); j <= Joules(c.Power)*Joules(seconds[t]); j++ {
			own[t] = j
			draw(own, t+1, sum+j)
		}
	}

	draw([4]Joules{}, 0, 0)

	return all
}

func (v totals) bounds(s Set) (least, most Joules) {
	first := true
	for sum := range v {
		in := Joules(0)
		for t, e := range sum {
			if s.Has(t) {
				in += e
			}
		}

		if first || in < least {
			least = in
		}

		most = max(most, in)
		first = false
	}

	return least, most
}

// small is a fleet that can be enumerated.
type small struct {
	*Fleet
	slots int
	fuses []fuse
	all   totals
}

func drawSmall(t *rapid.T) small {
	f := small{slots: rapid.IntRange(1, 4).Draw(t, "slots")}
	f.Fleet = New(f.slots)
	for range rapid.IntRange(0, 4).Draw(t, "cars") {
		seconds := make([]int64, f.slots)
		for i := range seconds {
			seconds[i] = rapid.Int64Range(0, 2).Draw(t, "seconds")
		}

		c := Car{Hours: f.Hours(seconds), Power: flex.Watts(rapid.IntRange(0, 2).Draw(t, "power"))}
		c.Least = Joules(rapid.IntRange(0, 6).Draw(t, "least"))
		c.Most = c.Least + Joules(rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(t, "more"))
		able := Joules(c.Power) * Joules(f.Fleet.seconds(c.Hours, f.Fleet.all()))
		if short := f.Add(c); short != max(0, c.Least-able) {
			t.Fatalf("short by %d: needs %d, is able to %d", short, c.Least, able)
		}
	}
	if rapid.Bool().Draw(t, "fuses") {
		f.drawFuses(t)
	}

	f.all = enumerate(f.hours, f.cars, f.slots, f.fuses...)
	return f
}

// drawFuses has cars share one or two fuses, and holds what they can then no longer have against all that they can draw.
func (f *small) drawFuses(t *rapid.T) {
	f.fuses = make([]fuse, 2)
	for i := range f.cars {
		k := rapid.IntRange(0, 2).Draw(t, "fuse")
		if k < 2 {
			f.fuses[k].cars = append(f.fuses[k].cars, i)
		}
	}

	for k := range f.fuses {
		own := &f.fuses[k]
		for range f.slots {
			own.carries = append(own.carries, Joules(rapid.IntRange(0, 5).Draw(t, "carries")))
		}

		needs := map[int]Joules{}
		for _, i := range own.cars {
			needs[i] = f.cars[i].Least
		}

		short := f.Share(own.carries, own.cars)
		for j, i := range own.cars {
			first := slices.Clone(f.cars)
			first[i].Least = needs[i]
			first[i].Most = max(first[i].Most, needs[i])
			if got := f.possible(first, fuse{own.carries, own.cars[:j+1]}); got != needs[i]-short[j] {
				t.Fatalf("car %d is short by %d of %d, and at best it has %d", i, short[j], needs[i], got)
			}
		}
	}
}

// possible is the most of its need that the last car behind a fuse can have, if those before it have theirs.
func (f *small) possible(cars []Car, own fuse) Joules {
	last := &cars[own.cars[len(own.cars)-1]]
	for ; last.Least > 0; last.Least-- {
		behind := totals{{}: true}
		for _, i := range own.cars {
			behind = behind.and(vectors(f.hours[cars[i].Hours], cars[i], f.slots))
		}
		for sum := range behind {
			if own.lets(sum) {
				return last.Least
			}
		}
	}

	return 0
}

// TestEnvelope holds the bounds of every set of slots against all that the cars can draw.
func TestEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawSmall(t)
		e := f.Envelope()
		for s := Set(0); s <= f.Fleet.all(); s++ {
			least, most := f.all.bounds(s)
			if e.Least(s) != least || e.Most(s) != most {
				t.Fatalf("slots %04b: %d to %d, they can draw %d to %d", s, e.Least(s), e.Most(s), least, most)
			}
		}

		windows := e.Windows()
		if n := f.slots * (f.slots + 1) / 2; len(windows) != n {
			t.Fatalf("%d windows, not %d", len(windows), n)
		}

		for _, b := range windows {
			s := Window(b.From, b.To)
			if b.Least != e.Least(s) || b.Most != e.Most(s) {
				t.Fatalf("window %d to %d: %d to %d, not %d to %d", b.From, b.To, b.Least, b.Most, e.Least(s), e.Most(s))
			}
		}
	})
}

// part tells what a car draws in a slot.
type part func(car, slot int) Joules

// can reports whether some vector is the profile in the slots that are asked.
func (v totals) can(asked Set, profile []Joules) bool {
	for sum := range v {
		same := true
		for t, e := range profile {
			same = same && (!asked.Has(t) || sum[t] == e)
		}
		if same {
			return true
		}
	}
	return false
}

// wrong says what is wrong with parts that should make a profile in the slots that are asked.
func (f *small) wrong(asked Set, profile []Joules, of part) error {
	for t := range f.slots {
		if !asked.Has(t) {
			continue
		}
		sum := Joules(0)
		for i := range f.cars {
			sum += of(i, t)
		}

		if sum != profile[t] {
			return fmt.Errorf("slot %d: the parts add up to %d, not %d", t, sum, profile[t])
		}
	}

	for i, c := range f.cars {
		sum := Joules(0)
		free := Joules(0)

		for t, seconds := range f.hours[c.Hours] {
			if !asked.Has(t) && f.shared[i] { // of what is behind a fuse all parts are known
				free += of(i, t)
				continue
			}
			if !asked.Has(t) {
				free += Joules(c.Power) * Joules(seconds)
				continue
			}
			if e := of(i, t); e < 0 || e > Joules(c.Power)*Joules(seconds) {
				return fmt.Errorf("car %d draws %d in slot %d", i, e, t)
			}

			sum += of(i, t)
		}

		if sum+free < c.Least || sum > c.Most {
			return fmt.Errorf("car %d draws %d, and %d elsewhere at most, not %d to %d", i, sum, free, c.Least, c.Most)
		}
	}

	for _, own := range f.fuses {
		var sum [4]Joules
		for t := range f.slots {
			for _, i := range own.cars {
				if asked.Has(t) || f.shared[i] {
					sum[t] += of(i, t)
				}
			}
		}

		if !own.lets(sum) {
			return fmt.Errorf("%v draw %v behind a fuse that carries %v", own.cars, sum, own.carries)
		}
	}

	return nil
}

// refuted says why a certificate does not prove anything.
func (f *small) refuted(profile []Joules, c Certificate) error {
	least, most := f.all.bounds(c.Slots)
	asked := Joules(0)
	for t, e := range profile {
		if c.Slots.Has(t) {
			asked += e
		}
	}

	switch {
	case asked != c.Asked:
		return fmt.Errorf("%d is asked for, not %d", asked, c.Asked)

	case c.More && (c.Bound != most || asked <= most):
		return fmt.Errorf("they draw %d at most, not %d, of %d", most, c.Bound, asked)

	case !c.More && (c.Bound != least || asked >= least):
		return fmt.Errorf("they draw %d at least, not %d, of %d", least, c.Bound, asked)
	}

	return nil
}

func (f *small) drawProfile(t *rapid.T) []Joules {
	p := make([]Joules, f.slots)
	_, most := f.all.bounds(f.Fleet.all())
	for i := range p {
		p[i] = Joules(rapid.Int64Range(-1, int64(most)+1).Draw(t, "asked"))
	}
	return p
}

// TestFollow holds every answer against all that the cars can draw: a yes with parts, a no
// with a certificate.
func TestFollow(t *testing.T) {
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawSmall(t)
		profile := f.drawProfile(t)
		if rapid.Bool().Draw(t, "one that there is") {
			for sum := range f.all {
				copy(profile, sum[:])
				break
			}
		}

		asked := Set(rapid.Uint64Range(0, uint64(f.Fleet.all())).Draw(t, "asked slots"))
		if rapid.Bool().Draw(t, "all are asked") {
			asked = f.Fleet.all()
		}

		a := f.Follow(asked, profile)
		if can := f.all.can(asked, profile); a.Follows != can {
			t.Fatalf("%v in %04b: %v, not %v", profile, asked, a.Follows, can)
		}

		if a.Follows {
			yes++
			if err := f.wrong(asked, profile, a.Part); err != nil {
				t.Fatal(err)
			}

			return
		}

		no++
		if a.Certificate.Slots&^asked != 0 {
			t.Fatalf("%+v has slots that are not asked, %04b", a.Certificate, asked)
		}
		if err := f.refuted(profile, a.Certificate); err != nil {
			t.Fatalf("%v, %+v: %v", profile, a.Certificate, err)
		}
	})

	if yes < 100 || no < 100 {
		t.Errorf("%d profiles were followed and %d were not: too few", yes, no)
	}
}

// TestFollow_PlantedFaults shows that what TestFollow looks at finds a part and a certificate
// that are false.
func TestFollow_PlantedFaults(t *testing.T) {
	f := small{Fleet: New(2), slots: 2}
	h := f.Hours([]int64{2, 2})
	f.Add(Car{Hours: h, Power: 2, Least: 4, Most: 4})
	f.Add(Car{Hours: h, Power: 1, Least: 2, Most: 3})
	f.all = enumerate(f.hours, f.cars, f.slots)

	profile := []Joules{3, 4}
	a := f.Follow(f.Fleet.all(), profile)
	if err := f.wrong(f.Fleet.all(), profile, a.Part); !a.Follows || err != nil {
		t.Fatalf("the profile can be followed: %v", err)
	}
	moved := func(car, slot int) Joules { return a.Part(1-car, slot) }
	if f.wrong(f.Fleet.all(), profile, moved) == nil {
		t.Error("the parts of two cars were exchanged, and nothing is wrong")
	}

	profile = []Joules{1, 1}
	no := f.Follow(f.Fleet.all(), profile).Certificate
	if err := f.refuted(profile, no); err != nil || no.More {
		t.Fatalf("the profile asks for too little: %+v, %v", no, err)
	}
	no.Bound--
	if f.refuted(profile, no) == nil {
		t.Error("a false bound proves something")
	}
}

// evening is a fleet such as there is at 18:00: half-hours to ready-by at a quarter hour, one
// of a few tariffs, needs in watt-hours.
func evening(n int) *Fleet {
	r := rand.New(rand.NewPCG(1, 2))
	f := New(48)
	for range n {
		ready := int64(3600*3 + 900*r.IntN(60)) // 21:00 to 12:00
		begins := int64(r.IntN(4)) * 9000       // of off-peak time: now, 20:30, 23:00, 01:30
		seconds := make([]int64, 48)
		for t := range seconds {
			from, to := max(int64(t)*1800, begins), min(int64(t+1)*1800, ready)
			seconds[t] = max(0, to-from)
		}

		c := Car{Hours: f.Hours(seconds), Power: []flex.Watts{3680, 7000, 7400, 11000}[r.IntN(4)]}
		c.Least = Of(flex.WattHours(2000 + r.IntN(30000)))
		c.Most = c.Least + Of(flex.WattHours(r.IntN(2)*r.IntN(5000)))
		f.Add(c)
	}

	return f
}

// BenchmarkWindows is a million cars: their envelope, and the bounds of all windows.
func BenchmarkWindows(b *testing.B) {
	f := evening(1_000_000)
	for b.Loop() {
		windows := f.Envelope().Windows()
		b.ReportMetric(float64(len(windows)), "windows")
		b.ReportMetric(float64(len(f.hours)), "hours")
	}
}

// between is a profile between charging at once and charging as late as may be: a mean of two orders of filling lies within the envelope.
func between(f *Fleet) []Joules {
	e := f.Envelope()
	profile := make([]Joules, f.slots)
	for t := range profile {
		early := e.Most(Window(0, t+1)) - e.Most(Window(0, t))
		late := e.Least(Window(0, t+1)) - e.Least(Window(0, t))
		profile[t] = (early + late) / 2
	}

	return profile
}

// BenchmarkFollow asks for profiles that are nearly all, just, or just not there.
func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		f := evening(n)
		e := f.Envelope()
		profile := between(f)
		over := append([]Joules(nil), profile...)
		over[1] = e.Most(Window(1, 2)) + 1

		for name, p := range map[string][]Joules{"yes": profile, "no": over} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if a := f.Follow(f.all(), p); a.Follows != (name == "yes") {
						b.Fatalf("%+v", a.Certificate)
					}
				}
			})
		}
	}
}
