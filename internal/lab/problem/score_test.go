package problem_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// The judge of the sample instances knows what each family allows and how a plan is priced,
// and nothing of how plans are made. Energies are in kWh per slot, money in pence.

const tolerance = 1e-4

// instance is a sample problem with its known optimum. Its fields are those of the problem
// files.
type instance struct {
	ID     string `json:"id"`
	Family string `json:"family"`

	Price      []float64 `json:"price_p_per_kwh"`
	AvailHours []float64 `json:"avail_hours"`
	MaxKW      float64   `json:"max_kw"`
	MinKW      float64   `json:"min_kw"`
	StartCost  float64   `json:"start_cost_p"`
	MinRun     int       `json:"min_run_slots"`
	OffPeak    []bool    `json:"off_peak"`

	Blocks       [][2]int `json:"blocks_min"`
	ReadyBy      int      `json:"ready_by_min"`
	PauseMinutes int      `json:"pause_minutes"`
	MakeUp       string   `json:"make_up"`
	ChargerKW    float64  `json:"charger_kw"`

	SlotHours     float64   `json:"slot_hours"`
	Import        []float64 `json:"import_p_per_kwh"`
	Export        []float64 `json:"export_p_per_kwh"`
	Load          []float64 `json:"load_kwh"`
	PV            []float64 `json:"pv_kwh"`
	PVCurtailable bool      `json:"pv_curtailable"`
	SoCMin        float64   `json:"soc_min_kwh"`
	SoCMax        float64   `json:"soc_max_kwh"`
	deviceFields
	GridImportKW float64 `json:"grid_import_kw"`
	GridExportKW float64 `json:"grid_export_kw"`

	LoadWh        []int   `json:"load_wh"`
	PVWh          []int   `json:"pv_wh"`
	SoCMinWh      int     `json:"soc_min_wh"`
	SoCMaxWh      int     `json:"soc_max_wh"`
	SoCInitWh     int     `json:"soc_init_wh"`
	ChargeStep    int     `json:"charge_step_wh"`
	DischargeStep int     `json:"discharge_step_wh"`
	SwitchCost    float64 `json:"switch_cost_p"`
	PreviousMode  string  `json:"previous_mode"`

	Slots     int            `json:"slots"`
	EVs       []fleetEV      `json:"evs"`
	Batteries []fleetBattery `json:"batteries"`
	Groups    []struct {
		CapKW []float64 `json:"cap_kw"`
	} `json:"groups"`
	CapKW    []float64 `json:"cap_kw"`
	Unserved float64   `json:"unserved_p_per_kwh"`
	Position *struct {
		KWh  []float64 `json:"kwh"`
		Buy  []float64 `json:"buy_p"`
		Sell []float64 `json:"sell_p"`
	} `json:"position"`

	Optimum struct {
		Cost      float64 `json:"cost_p"`
		Gross     float64 `json:"gross_p"`
		Delivered float64 `json:"delivered_kwh"`
		Peak      float64 `json:"peak_kwh"`
		Feasible  bool    `json:"feasible"`
	} `json:"optimum"`

	SolutionKWh   []float64 `json:"solution_kwh"`
	SolutionNet   []float64 `json:"solution_net_kwh"`
	SolutionModes []string  `json:"solution_modes"`
}

type fleetEV struct {
	First     int     `json:"first_slot"`
	Last      int     `json:"last_slot"`
	Fraction  float64 `json:"first_fraction"`
	MaxKW     float64 `json:"max_kw"`
	Energy    float64 `json:"energy_kwh"`
	Group     int     `json:"group"`
	PeakSlots []int   `json:"peak_slots"`
	PeakAdder float64 `json:"peak_adder_p"`
}

type fleetBattery struct {
	Capacity float64 `json:"capacity_kwh"`
	deviceFields
	Group int `json:"group"`
}

// deviceFields has the fields of every battery, including those of a fleet.
type deviceFields struct {
	SoCInit      float64 `json:"soc_init_kwh"`
	ChargeKW     float64 `json:"charge_kw"`
	DischargeKW  float64 `json:"discharge_kw"`
	EffCharge    float64 `json:"eff_charge"`
	EffDischarge float64 `json:"eff_discharge"`
	Wear         float64 `json:"wear_p_per_kwh"`
	Terminal     float64 `json:"terminal_p_per_kwh"`
}

// reply has the fields of the answers of all families.
type reply struct {
	KWh       []float64      `json:"kwh"`
	Blocks    [][2]int       `json:"blocks_min"`
	Net       []float64      `json:"net_kwh"`
	Modes     []string       `json:"modes"`
	EVKWh     [][][2]float64 `json:"ev_kwh"`
	BatteryNe [][]float64    `json:"battery_net_kwh"`
}

// stored is the instance's own solution.
func (p *instance) stored() (reply, bool) {
	return reply{KWh: p.SolutionKWh, Net: p.SolutionNet, Modes: p.SolutionModes},
		len(p.SolutionKWh)+len(p.SolutionNet)+len(p.SolutionModes) > 0
}

// judge prices an answer, or says which constraint it breaks.
func (p *instance) judge(a reply) (float64, error) {
	switch p.Family {
	case "ev-plain", "ev-tiers", "ev-minpower", "ev-switch":
		return p.judgeEV(a.KWh)
	case "pause":
		return p.judgePause(a.Blocks)
	case "battery-convex", "battery-nonconvex":
		return p.judgeBattery(a.Net)

	case "battery-modes":
		return p.judgeModes(a.Modes)
	case "fleet":
		return p.judgeFleet(a.EVKWh, a.BatteryNe)
	}
	return 0, fmt.Errorf("no judge for %s", p.Family)
}

func (p *instance) judgeEV(x []float64) (cost float64, _ error) {
	if len(x) != len(p.Price) {
		return 0, errors.New("length")
	}

	got, peak, last := 0.0, 0.0, 0
	for t, e := range x {
		if e < -tolerance || e > p.MaxKW*p.AvailHours[t]+tolerance {
			return 0, fmt.Errorf("power in slot %d", t)
		}

		got += e
		cost += e * p.Price[t]
		if p.OffPeak != nil && !p.OffPeak[t] {
			peak += e
		}
		if p.AvailHours[t] > 0 {
			last = t
		}
	}

	on := func(t int) bool { return t >= 0 && x[t] > 1e-6 }
	for t := range x {
		switch {
		case p.MinKW > 0 && on(t) && x[t] < p.MinKW*p.AvailHours[t]-tolerance:
			return 0, fmt.Errorf("least power in slot %d", t)
		case p.Family == "ev-switch" && on(t) && !on(t-1):
			cost += p.StartCost

			for u := t; u < min(t+p.MinRun, last+1); u++ {
				if !on(u) {
					return 0, fmt.Errorf("least run from slot %d", t)
				}
			}
		}
	}

	switch o := p.Optimum; {
	case p.Family == "ev-tiers" && peak > o.Peak+tolerance:
		return 0, errors.New("peak energy")
	case p.Family == "ev-tiers" && got < o.Delivered-tolerance:
		return 0, errors.New("energy")
	case p.Family != "ev-tiers" && math.Abs(got-o.Delivered) > tolerance:
		return 0, errors.New("energy")
	}
	return cost, nil
}

func (p *instance) judgePause(blocks [][2]int) (cost float64, _ error) {
	var on, now [1440]bool
	for _, b := range p.Blocks {
		for k := b[0]; k < b[1]; k++ {
			on[k] = true
		}
	}
	for _, b := range blocks {
		for k := b[0]; k < b[1]; k++ {
			now[k] = true
		}
	}

	var lost, added []int
	for k := range on {
		if on[k] && !now[k] {
			lost = append(lost, k)
		}
		if now[k] && !on[k] {
			added = append(added, k)
		}
		if now[k] {
			cost += p.Price[k/30] * p.ChargerKW / 60
		}
	}

	n := p.PauseMinutes
	unbroken := func(s []int) bool { return len(s) == n && s[n-1]-s[0] == n-1 }
	if !p.Optimum.Feasible {
		if on != now {
			return 0, errors.New("must come back unchanged")
		}
		return cost, nil
	}

	if !unbroken(lost) {
		return 0, errors.New("one whole pause")
	}
	if p.MakeUp == "none" {
		if len(added) > 0 {
			return 0, errors.New("nothing may be added")
		}
		return cost, nil
	}

	if len(added) != n || added[n-1] >= p.ReadyBy || added[0] <= lost[n-1] {
		return 0, errors.New("made up in time")
	}
	var free []int
	for k := lost[n-1] + 1; k < len(on); k++ {
		if !on[k] && len(free) < n {
			free = append(free, k)
		}
	}

	if p.MakeUp == "append" && !unbroken(added) || p.MakeUp == "earliest" && !slices.Equal(added, free) {
		return 0, errors.New("made up where the rule says")
	}
	return cost, nil
}

func (p *instance) judgeBattery(net []float64) (cost float64, _ error) {
	if len(net) != len(p.Import) {
		return 0, errors.New("length")
	}

	h, s := p.SlotHours, p.SoCInit
	for t, q := range net {
		if q < -p.DischargeKW*h-tolerance || q > p.ChargeKW*h+tolerance {
			return 0, fmt.Errorf("power in slot %d", t)
		}
		if q > 0 {
			s += q * p.EffCharge
		} else {
			s += q / p.EffDischarge
			cost += p.Wear * -q
		}

		if s < p.SoCMin-tolerance || s > p.SoCMax+tolerance {
			return 0, fmt.Errorf("state of charge after slot %d", t)
		}
		lo := p.Load[t] - p.PV[t] + q
		hi := lo
		if p.PVCurtailable {
			hi += p.PV[t]
		}

		a, b := max(lo, -p.GridExportKW*h), min(hi, p.GridImportKW*h)
		if a > b+tolerance {
			return 0, fmt.Errorf("grid limit in slot %d", t)
		}
		b = max(a, b)
		pay := func(g float64) float64 {
			if g > 0 {
				return g * p.Import[t]
			}
			return g * p.Export[t]
		}

		best := min(pay(a), pay(b))
		if a < 0 && 0 < b {
			best = min(best, 0)
		}
		cost += best
	}
	return cost - p.Terminal*s, nil
}

// step is the device in whole Wh: its next state of charge and the net grid energy.
func (p *instance) step(t, s int, mode string) (int, float64) {
	net := p.LoadWh[t] - p.PVWh[t]
	up, down := min(max(p.SoCMaxWh-s, 0), p.ChargeStep), min(max(s-p.SoCMinWh, 0), p.DischargeStep)

	switch {
	case mode == "CHARGE":
		return s + up, float64(net) + float64(up)/p.EffCharge
	case mode == "DISCHARGE":
		return s - down, float64(net) - float64(down)*p.EffDischarge
	case mode == "LOCK":
		return s, float64(net)
	case net > 0:
		down = min(down, int(math.Floor(float64(net)/p.EffDischarge)))

		return s - down, float64(net) - float64(down)*p.EffDischarge
	case mode == "FEED_IN":
		return s, float64(net)
	}

	up = min(up, int(math.Floor(float64(-net)*p.EffCharge)))
	return s + up, float64(net) + float64(up)/p.EffCharge
}

func (p *instance) judgeModes(modes []string) (cost float64, _ error) {
	if len(modes) != len(p.Import) {
		return 0, errors.New("length")
	}

	s, before := p.SoCInitWh, p.PreviousMode
	for t, m := range modes {
		if !slices.Contains([]string{"CHARGE", "DISCHARGE", "LOCK", "FEED_IN", "SELF_USE"}, m) {
			return 0, fmt.Errorf("mode %q", m)
		}
		var g float64
		if s, g = p.step(t, s, m); g > 0 {
			cost += g * p.Import[t] / 1000
		} else {
			cost += g * p.Export[t] / 1000
		}

		if m != before {
			cost += p.SwitchCost
		}
		before = m
	}
	return cost - p.Terminal*float64(s)/1000, nil
}

func (p *instance) judgeFleet(evs [][][2]float64, batteries [][]float64) (cost float64, _ error) {
	if len(evs) != len(p.EVs) || len(batteries) != len(p.Batteries) {
		return 0, errors.New("length")
	}
	total, group := make([]float64, p.Slots), make([][]float64, len(p.Groups))
	for g := range group {
		group[g] = make([]float64, p.Slots)
	}

	for i, e := range p.EVs {
		c, err := e.judge(evs[i], p.Unserved, total, group[e.Group])
		if err != nil {
			return 0, fmt.Errorf("car %d: %w", i, err)
		}
		cost += c
	}

	for i, b := range p.Batteries {
		c, err := b.judge(batteries[i], total, group[b.Group])
		if err != nil {
			return 0, fmt.Errorf("battery %d: %w", i, err)
		}
		cost += c
	}

	slack := 1e-6*float64(len(evs)+len(batteries)) + tolerance
	for t := range total {
		if p.CapKW != nil && total[t] > p.CapKW[t]*0.5+slack {
			return 0, fmt.Errorf("fleet cap in slot %d", t)
		}
		for g := range group {
			if group[g][t] > p.Groups[g].CapKW[t]*0.5+slack {
				return 0, fmt.Errorf("cap of group %d in slot %d", g, t)
			}
		}

		if p.Position == nil {
			cost += total[t] * p.Price[t]
		} else if d := total[t] - p.Position.KWh[t]; d > 0 {
			cost += d * p.Position.Buy[t]
		} else {
			cost += d * p.Position.Sell[t]
		}
	}
	return cost, nil
}

func (e *fleetEV) judge(x [][2]float64, unserved float64, total, group []float64) (cost float64, _ error) {
	got, seen := 0.0, map[int]float64{}
	for _, q := range x {
		t, kWh := int(q[0]), q[1]
		if t < e.First || t > e.Last || kWh < -tolerance {
			return 0, fmt.Errorf("window in slot %d", t)
		}

		seen[t] += kWh
		got += kWh
		total[t] += kWh
		group[t] += kWh
		if slices.Contains(e.PeakSlots, t) {
			cost += kWh * e.PeakAdder
		}

		most := e.MaxKW * 0.5
		if t == e.First {
			most *= e.Fraction
		}
		if seen[t] > most+tolerance {
			return 0, fmt.Errorf("power in slot %d", t)
		}
	}
	if got > e.Energy+tolerance {
		return 0, errors.New("too much energy")
	}
	return cost + max(0, e.Energy-got)*unserved, nil
}

func (b *fleetBattery) judge(net []float64, total, group []float64) (cost float64, _ error) {
	s := b.SoCInit
	for t, q := range net {
		if q < -b.DischargeKW*0.5-tolerance || q > b.ChargeKW*0.5+tolerance {
			return 0, fmt.Errorf("power in slot %d", t)
		}
		if q > 0 {
			s += q * b.EffCharge
		} else {
			s += q / b.EffDischarge
			cost += b.Wear * -q
		}

		if s < -tolerance || s > b.Capacity+tolerance {
			return 0, fmt.Errorf("state of charge after slot %d", t)
		}
		total[t] += q
		group[t] += q
	}
	return cost - b.Terminal*s, nil
}
