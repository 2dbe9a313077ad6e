package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/engine/battery"
	"flexd/internal/engine/check"
	"flexd/internal/flex"
)

var dawn = time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)

// drawSteps draws a list of steps that follow each other on whole minutes.
func drawSteps(r *rand.Rand) (list []flex.Step) {
	at := dawn.Add(time.Duration(r.IntN(20)) * time.Minute)

	for range 1 + r.IntN(4) {
		to := at.Add(time.Duration(1+r.IntN(30)) * time.Minute)
		limit := []flex.Watts{0, 2000, 7400, flex.NoLimit}[r.IntN(4)]
		list = append(list, flex.Step{Span: flex.Span{From: at, To: to}, Limit: limit})
		at = to
	}

	return list
}

// passes looks at every minute by itself: what is sent to device i, or 0, and whether that and what the others may draw
// pass any phase that the device may be on. It counts thirds of watts.
func passes(devices []check.Device, i int, at time.Time, fuse check.MainFuse) bool {
	on := func(d *check.Device, w flex.Watts, phase int) flex.Watts {
		switch {
		case fuse.Phases != 3, d.Phases == 3:
			return w
		case d.Phase == 0, d.Phase == phase:
			return 3 * w
		}

		return 0
	}

	by := func(d *check.Device, list []flex.Step) flex.Watts {
		k := slices.IndexFunc(list, func(s flex.Step) bool { return s.Contains(at) })

		switch {
		case k >= 0:
			return min(list[k].Limit, d.Own)
		case d.Free && len(list) > 0 && !at.Before(list[len(list)-1].To):
			return d.Own
		}

		return 0
	}

	own := by(&devices[i], devices[i].Next)

	if n := len(devices[i].Next); n > 0 && !at.Before(devices[i].Next[n-1].To) {
		own = 0 // what comes after is not sent
	}

	var sum [4]flex.Watts
	for phase := range sum {
		sum[phase] = on(&devices[i], own, phase)
	}

	for k := range devices {
		if k != i {
			most := by(&devices[k], devices[k].Next)

			for _, list := range devices[k].May {
				most = max(most, by(&devices[k], list))
			}

			for phase := range sum {
				sum[phase] += on(&devices[k], most, phase)
			}
		}
	}

	for phase := 1; phase <= 3; phase++ {
		if on(&devices[i], own, phase) > 0 && sum[phase] > fuse.Carries {
			return true
		}
	}

	return false
}

// TestFuse_Random holds the check of sites drawn at random against every minute of them: it finds a fault where
// there is one and nowhere else, and what it cuts down keeps the fuse.
func TestFuse_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	faults, clean := 0, 0

	for range 3000 {
		fuse := check.MainFuse{Carries: flex.Watts(4000 + r.IntN(16000)), Phases: []int{0, 1, 3}[r.IntN(3)]}
		devices := make([]check.Device, 1+r.IntN(4))

		for i := range devices {
			d := check.Device{Least: 1380, Own: flex.Watts(2000 + r.IntN(9000)), Free: r.IntN(2) == 0, Phases: 1 + 2*r.IntN(2), Phase: r.IntN(4)}

			for range r.IntN(3) {
				d.May = append(d.May, drawSteps(r))
			}

			if r.IntN(2) == 0 {
				d.Next = drawSteps(r)
			}

			devices[i] = d
		}

		want := false

		for i := range devices {
			for m := range 200 {
				want = want || passes(devices, i, dawn.Add(time.Duration(m)*time.Minute), fuse)
			}
		}

		if err := check.Fuse(devices, fuse); (err != nil) != want {
			t.Fatalf("the check says %v, the minutes %v: %+v behind %+v", err, want, devices, fuse)
		}

		if want {
			faults++
		} else {
			clean++
		}

		check.ClipToFuse(devices, fuse)
		if err := check.Fuse(devices, fuse); err != nil {
			t.Fatalf("cut down: %v", err)
		}
	}

	if faults < 500 || clean < 500 {
		t.Errorf("%d faults and %d sites without one", faults, clean)
	}
}

// TestAtMeter has each limit at its edge, and one watt past it.
func TestAtMeter(t *testing.T) {
	at := check.Meter{Import: 10000, Export: 3000, Out: 3000, Power: 3000}

	for name, c := range map[string]struct {
		change func(*check.Meter)
		fault  bool
	}{
		"locked beside anything": {func(m *check.Meter) { m.Mode, m.Import, m.Car = battery.ModeLock, -89000, true }, false},
		"charging to the fuse":   {func(m *check.Meter) { m.Mode, m.Import = battery.ModeCharge, 3000 }, false},
		"charging past it":       {func(m *check.Meter) { m.Mode, m.Import = battery.ModeCharge, 2999 }, true},
		"charging beside a car":  {func(m *check.Meter) { m.Mode, m.Car = battery.ModeCharge, true }, false},
		"covering a car":         {func(m *check.Meter) { m.Mode, m.Car = battery.ModeSelfUse, true }, true},

		"feeding in beside a car":   {func(m *check.Meter) { m.Mode, m.Car = battery.ModeFeedIn, true }, true},
		"exporting to the limit":    {func(m *check.Meter) { m.Mode = battery.ModeDischarge }, false},
		"exporting past it":         {func(m *check.Meter) { m.Mode, m.Net = battery.ModeDischarge, -1 }, true},
		"exporting less than drawn": {func(m *check.Meter) { m.Mode, m.Net, m.Export = battery.ModeDischarge, 1500, 0 }, false},
		"giving past a phase":       {func(m *check.Meter) { m.Mode, m.Out = battery.ModeDischarge, 2999 }, true},
		"locked beside a phase":     {func(m *check.Meter) { m.Mode, m.Out = battery.ModeLock, -1 }, false},
		"all of its power":          {func(m *check.Meter) { m.Mode, m.Moves = battery.ModeCharge, 3000 }, false},
		"more than its power":       {func(m *check.Meter) { m.Mode, m.Moves = battery.ModeSelfUse, -3002 }, true},
	} {
		m := at

		c.change(&m)
		if err := check.AtMeter(m); (err != nil) != c.fault {
			t.Errorf("%s: %v", name, err)
		}
	}
}
