package check

import (
	"fmt"
	"math"

	"flexd/internal/engine/battery"
)

// Modes checks a plan of modes against the device, slot by slot.
func Modes(
	p *battery.ModeProblem,
	to []battery.Mode,
	f battery.Result,
) error {
	if err := checkModes(p, to); err != nil {
		return err
	}

	s := p.Init
	cost := 0.0
	size := 1.0
	before := p.Previous

	for t, m := range to {
		next, grid := checkDevice(p, t, s, m)
		c := min(grid, 0)*p.Export[t] + max(grid, 0)*p.Import[t]

		if next < s {
			c += float64(s-next) * p.DischargeEff * p.Wear
		}

		cost += c / 1000

		if m != before {
			cost += p.SwitchCost
		}

		size += math.Abs(c / 1000)
		s, before = next, m
	}

	cost -= p.Terminal * float64(s) / 1000
	if before != battery.ModeSelfUse {
		cost += p.ReturnCost
	}

	if err := checkFigure("cost", cost, f.Cost, size); err != nil {
		return err
	}

	if f.Bound > f.Cost+slack*size {
		return fmt.Errorf("the bound %v is above the cost %v", f.Bound, f.Cost)
	}

	return nil
}

// checkModes checks that each mode exists and is allowed.
func checkModes(p *battery.ModeProblem, to []battery.Mode) error {
	if len(to) != len(p.Import) {
		return fmt.Errorf("%d slots for %d", len(to), len(p.Import))
	}

	for t, m := range to {
		if m >= battery.ModeCount {
			return fmt.Errorf("slot %d has mode %d", t, m)
		}

		if p.Allowed != nil && !p.Allowed[t].Has(m) {
			return fmt.Errorf(
				"slot %d has %v, which is not allowed there",
				t,
				m,
			)
		}
	}

	return nil
}

// checkDevice returns the stored energy after mode m in slot t, and the energy through the
// home's meter.
func checkDevice(
	p *battery.ModeProblem,
	t, s int,
	m battery.Mode,
) (int, float64) {
	grid := float64(p.Load[t] - p.PV[t])
	y := ModeMove(p, t, m)

	if y > 0 {
		y = min(y, max(0, p.Max-s))

		return s + y, grid + float64(y)/p.ChargeEff
	}

	y = max(y, -max(0, s-p.Min))

	return s + y, grid + float64(y)*p.DischargeEff
}

// orderedMove returns the ordered change in slot t, limited to what the battery can store or
// discharge.
func orderedMove(
	ordered []int,
	t, up, down int,
) int {
	if ordered == nil {
		return 0
	}
	return max(-down, min(up, ordered[t]))
}

// ModeMove returns by how much mode m changes the stored energy in slot t, if there is room.
func ModeMove(
	p *battery.ModeProblem,
	t int,
	m battery.Mode,
) int {
	net := float64(p.Load[t] - p.PV[t])
	share := 1.0

	if t == 0 && p.FirstShare > 0 {
		share = p.FirstShare
	}

	up, down := int(float64(p.ChargeStep)*share), int(float64(p.DischargeStep)*share)

	if p.ImportLimit > 0 {
		up = min(
			up,
			max(
				0,
				int(math.Floor((float64(int(float64(p.ImportLimit)*share))-net)*p.ChargeEff)),
			),
		)
	}

	if p.ExportLimit > 0 {
		down = min(
			down,
			max(
				0,
				int(math.Floor((float64(int(float64(p.ExportLimit)*share))+net)/p.DischargeEff)),
			),
		)
	}

	switch m {
	case battery.ModeLock:
		return orderedMove(p.Ordered, t, up, down)

	case battery.ModeCharge:
		return up

	case battery.ModeDischarge:
		return -down

	case battery.ModeFeedIn:
		return -min(down, max(0, int(math.Floor(net/p.DischargeEff))))

	case battery.ModeSelfUse:
		return min(up, max(0, int(math.Floor(-net*p.ChargeEff)))) -
			min(down, max(0, int(math.Floor(net/p.DischargeEff))))
	}

	return 0
}

// slack is the allowed error of a sum, relative to the sum of its absolute terms.
const slack = 1e-7

// checkFigure returns an error if a figure of a plan differs from the computed one.
func checkFigure(
	label string,
	actual, stated, size float64,
) error {
	if math.Abs(actual-stated) <= slack*max(1, size) {
		return nil
	}

	return fmt.Errorf("%s is %v, the plan says %v", label, actual, stated)
}
