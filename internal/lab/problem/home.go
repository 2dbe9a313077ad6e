package problem

import (
	"errors"
	"fmt"

	"flexd/internal/engine/check"
	"flexd/internal/engine/site"
	"flexd/internal/flex"
)

// homeLine has the fields of home.
type homeLine struct {
	siteFields

	NoBatteryToCar bool          `json:"no_battery_to_car"`
	Batteries      []homeBattery `json:"batteries"`
	Cars           []homeCar     `json:"cars"`
	Tank           *homeTank     `json:"tank"`
	Heat           *homeHeat     `json:"heat"`
}

type homeBattery struct{ storageFields }

type homeCar struct {
	AvailHours    []float64 `json:"avail_hours"`
	MaxKW         float64   `json:"max_kw"`
	MinKW         float64   `json:"min_kw"`
	StartCost     float64   `json:"start_cost_p"`
	Energy        float64   `json:"energy_kwh"`
	OffPeak       []float64 `json:"off_peak,omitzero"`
	MayChargePeak bool      `json:"may_charge_peak"`
	V2G           *homeV2G  `json:"v2g"`
}

type homeV2G struct {
	SoCArrival     float64 `json:"soc_arrival_kwh"`
	SoCMax         float64 `json:"soc_max_kwh"`
	Reserve        float64 `json:"reserve_kwh"`
	Target         float64 `json:"target_kwh"`
	DischargeKW    float64 `json:"discharge_kw"`
	MinDischargeKW float64 `json:"min_discharge_kw"`
	EffCharge      float64 `json:"eff_charge"`
	EffDischarge   float64 `json:"eff_discharge"`
	Wear           float64 `json:"wear_p_per_kwh"`
}

type homeTank struct {
	ElementKW float64   `json:"element_kw"`
	Min       float64   `json:"min_kwh"`
	Max       float64   `json:"max_kwh"`
	Init      float64   `json:"init_kwh"`
	Loss      float64   `json:"loss_per_slot"`
	Draw      []float64 `json:"draw_kwh"`
	StartCost float64   `json:"start_cost_p"`
	Terminal  float64   `json:"terminal_p_per_kwh"`
}

type homeHeat struct {
	Capacity   float64   `json:"c_kwh_per_k"`
	Resistance float64   `json:"r_k_per_kw"`
	Init       float64   `json:"init_c"`
	Outdoor    []float64 `json:"outdoor_c"`
	COP        []float64 `json:"cop"`
	Gain       []float64 `json:"gain_kw"`
	Low        []float64 `json:"min_c"`
	High       []float64 `json:"max_c"`
	Penalty    float64   `json:"penalty_p_per_kh"`
	MinKW      float64   `json:"min_kw"`
	MaxKW      float64   `json:"max_kw"`
	StartCost  float64   `json:"start_cost_p"`
	Reference  float64   `json:"terminal_ref_c"`
	Terminal   float64   `json:"terminal_p_per_k"`
}

// homeProblem is a problem of home.
type homeProblem struct {
	site.Problem
	plans  site.Plan
	result site.Result
}

// The greatest values that a home may have.
const (
	maxBatteries   = 4
	maxCars        = 4
	maxTemperature = 100
	maxThermal     = 1e4 // kWh per K, K per kW
)

func decodeHome(line []byte) (solver, error) {
	l := homeLine{siteFields: newSiteFields()}
	if err := unmarshal(line, &l); err != nil {
		return nil, err
	}

	h := &homeProblem{Problem: site.Problem{
		Hours:          l.SlotHours,
		Import:         l.Import,
		Export:         l.Export,
		Load:           l.Load,
		PV:             l.PV,
		Curtailable:    l.Curtailable,
		GridImport:     l.GridImportKW,
		GridExport:     l.GridExportKW,
		NoBatteryToCar: l.NoBatteryToCar,
	}}

	err := errors.Join(l.checkSite(), l.addDevices(&h.Problem))
	if err != nil {
		return nil, err
	}

	err = errors.Join(
		checkLoad(&h.Problem),
		checkRoof(&h.Problem),
		checkWater(h.Tank, l.SlotHours),
	)
	if err != nil {
		return nil, err
	}

	return h, nil
}

// checkLoad refuses a site whose load is above the main fuse in some slot even if batteries
// and cars discharge as much as they can. It says which fuse would be right.
func checkLoad(p *site.Problem) error {
	const rounding = 1e-6

	for t, load := range p.Load {
		excess := load - p.PV[t] - mostDischarged(p, t) - p.GridImport*p.Hours
		if excess > rounding {
			return flex.Fail(
				flex.Invalid,
				"in slot %d the load, less the roof and all that batteries and cars may give, "+
					"is %.3f kWh above the main fuse: grid_import_kw is %v, "+
					"at least %.3f would be right",
				t,
				excess,
				p.GridImport,
				p.GridImport+excess/p.Hours,
			)
		}
	}

	return nil
}

// mostDischarged returns the most that batteries and cars can discharge in a slot, in kWh.
func mostDischarged(p *site.Problem, t int) float64 {
	var kWh float64
	for _, b := range p.Batteries {
		kWh += b.Discharge * p.Hours
	}

	for _, c := range p.Cars {
		if c.V2G != nil {
			kWh += c.V2G.Discharge * c.Available[t]
		}
	}

	return kWh
}

// checkRoof refuses a site whose roof cannot be curtailed and in some slot gives more than the
// home, all devices and the export limit can take. It says which limit would be right.
func checkRoof(p *site.Problem) error {
	const rounding = 1e-6

	if p.Curtailable {
		return nil
	}

	for t, roof := range p.PV {
		excess := roof - p.Load[t] - mostDrawn(p, t) - p.GridExport*p.Hours
		if excess > rounding {
			return flex.Fail(
				flex.Invalid,
				"in slot %d the roof gives, beyond the load and all that batteries, cars, tank "+
					"and heat pump may draw, %.3f kWh above the export limit: grid_export_kw "+
					"is %v, at least %.3f would be right, or pv_curtailable true",
				t,
				excess,
				p.GridExport,
				p.GridExport+excess/p.Hours,
			)
		}
	}

	return nil
}

// mostDrawn returns the most that all devices can draw in a slot, in kWh.
func mostDrawn(p *site.Problem, t int) float64 {
	var kW, kWh float64
	for _, b := range p.Batteries {
		kW += b.Charge
	}

	for i := range p.Cars {
		kWh += p.Cars[i].Max * p.Cars[i].Available[t]
	}

	if p.Tank != nil {
		kW += p.Tank.Element
	}

	if p.Heat != nil {
		kW += p.Heat.Max
	}

	return kWh + kW*p.Hours
}

// checkWater refuses a tank that no schedule of its element keeps within its bounds. It says
// after which slot the tank is outside of them, and what would be right. A site without a tank
// is accepted.
func checkWater(k *site.Tank, hours float64) error {
	if k == nil {
		return nil
	}

	b, found := k.Breach(hours)

	switch {
	case !found:
		return nil
	case b.Coarse:
		return flex.Fail(
			flex.Invalid,
			"after slot %d the tank is below tank.min_kwh (%v) with the element off "+
				"and above tank.max_kwh (%v) with it on, whatever it did before: "+
				"a wider band or a smaller element would be right",
			b.Slot,
			k.Min,
			k.Max,
		)
	case b.Stored < k.Min:
		return flex.Fail(
			flex.Invalid,
			"after slot %d the tank stores at most %.3f kWh, whatever its element does: "+
				"tank.min_kwh is %v, at most %.3f would be right, "+
				"or more in tank.init_kwh, or less in tank.draw_kwh",
			b.Slot,
			b.Stored,
			k.Min,
			b.Stored,
		)
	default:
		return flex.Fail(
			flex.Invalid,
			"after slot %d the tank stores at least %.3f kWh with its element off: "+
				"tank.max_kwh is %v, at least %.3f would be right, "+
				"or less in tank.init_kwh",
			b.Slot,
			b.Stored,
			k.Max,
			b.Stored,
		)
	}
}

// checkSite checks the fields that do not belong to a device, and the number of devices.
func (l *homeLine) checkSite() error {
	return errors.Join(
		l.siteFields.check(),
		within(
			"the number of batteries",
			float64(len(l.Batteries)),
			0,
			maxBatteries,
		),
		within("the number of cars", float64(len(l.Cars)), 0, maxCars),
	)
}

// addDevices adds the devices to a site.
func (l *homeLine) addDevices(to *site.Problem) error {
	n := len(l.Import)
	var errs []error

	for i := range l.Batteries {
		errs = append(
			errs,
			l.Batteries[i].add(to, fmt.Sprintf("batteries[%d].", i)),
		)
	}

	for i := range l.Cars {
		errs = append(
			errs,
			l.Cars[i].add(to, n, l.SlotHours, fmt.Sprintf("cars[%d].", i)),
		)
	}

	if l.Tank != nil {
		errs = append(errs, l.Tank.add(to, n))
	}

	if l.Heat != nil {
		errs = append(errs, l.Heat.add(to, n))
	}

	return errors.Join(errs...)
}

func (b *homeBattery) add(to *site.Problem, at string) error {
	to.Batteries = append(to.Batteries, site.Battery{
		Min:       b.SoCMin,
		Max:       b.SoCMax,
		Init:      b.SoCInit,
		Charge:    b.ChargeKW,
		Discharge: b.DischargeKW,
		ChargeEff: b.EffCharge,
		Efficient: b.EffDischarge,
		Wear:      b.Wear,
		Terminal:  b.Terminal,
	})

	return b.check(at, b.SoCMin, b.SoCMax)
}

func (c *homeCar) add(to *site.Problem, n int, hours float64, at string) error {
	car := site.Car{
		Available: c.AvailHours,
		Max:       c.MaxKW,
		Min:       c.MinKW,
		StartCost: c.StartCost,
		Energy:    c.Energy,
		PeakToo:   c.MayChargePeak,
	}

	errs := []error{c.checkCharging(n, hours, at)}

	if c.OffPeak != nil {
		errs = append(errs, series(at+"off_peak", c.OffPeak, n, 0, 1))
		for _, v := range c.OffPeak {
			car.OffPeak = append(car.OffPeak, v > 0)
		}
	}

	if c.OffPeak != nil && c.V2G != nil {
		errs = append(
			errs,
			flex.Fail(
				flex.Invalid,
				"%soff_peak and %sv2g are both there, where one of them would be right",
				at,
				at,
			),
		)
	}

	if c.V2G != nil {
		errs = append(errs, c.V2G.check(at+"v2g."))
		car.V2G = c.V2G.site()
	}

	to.Cars = append(to.Cars, car)

	return errors.Join(errs...)
}

func (c *homeCar) checkCharging(n int, hours float64, at string) error {
	return errors.Join(
		series(at+"avail_hours", c.AvailHours, n, 0, hours),
		within(at+"max_kw", c.MaxKW, 0, maxKW),
		within(at+"min_kw", c.MinKW, 0, c.MaxKW),
		within(at+"start_cost_p", c.StartCost, 0, maxAmount),
		within(at+"energy_kwh", c.Energy, 0, maxKWh),
	)
}

func (v *homeV2G) site() *site.V2G {
	return &site.V2G{
		Arrival:      v.SoCArrival,
		Max:          v.SoCMax,
		Reserve:      v.Reserve,
		Target:       v.Target,
		Discharge:    v.DischargeKW,
		MinDischarge: v.MinDischargeKW,
		ChargeEff:    v.EffCharge,
		Efficient:    v.EffDischarge,
		Wear:         v.Wear,
	}
}

func (v *homeV2G) check(at string) error {
	return errors.Join(
		within(at+"soc_max_kwh", v.SoCMax, 0, maxKWh),
		within(at+"soc_arrival_kwh", v.SoCArrival, 0, v.SoCMax),
		within(at+"reserve_kwh", v.Reserve, 0, v.SoCMax),
		within(at+"target_kwh", v.Target, 0, maxKWh),
		within(at+"discharge_kw", v.DischargeKW, 0, maxKW),
		within(at+"min_discharge_kw", v.MinDischargeKW, 0, v.DischargeKW),
		within(at+"eff_charge", v.EffCharge, leastEff, 1),
		within(at+"eff_discharge", v.EffDischarge, leastEff, 1),
		within(at+"wear_p_per_kwh", v.Wear, 0, maxPrice),
	)
}

func (k *homeTank) add(to *site.Problem, n int) error {
	to.Tank = &site.Tank{
		Element:   k.ElementKW,
		Min:       k.Min,
		Max:       k.Max,
		Init:      k.Init,
		Loss:      k.Loss,
		Draw:      k.Draw,
		StartCost: k.StartCost,
		Terminal:  k.Terminal,
	}

	return errors.Join(
		within("tank.element_kw", k.ElementKW, 0, maxKW),
		within("tank.min_kwh", k.Min, 0, maxKWh),
		within("tank.max_kwh", k.Max, k.Min, maxKWh),
		within("tank.init_kwh", k.Init, 0, maxKWh),
		within("tank.loss_per_slot", k.Loss, 0, 1),
		series("tank.draw_kwh", k.Draw, n, 0, maxKWh),
		within("tank.start_cost_p", k.StartCost, 0, maxAmount),
		within("tank.terminal_p_per_kwh", k.Terminal, -maxPrice, maxPrice),
	)
}

func (k *homeHeat) add(to *site.Problem, n int) error {
	to.Heat = &site.Heat{
		Capacity:   k.Capacity,
		Resistance: k.Resistance,
		Init:       k.Init,
		Outdoor:    k.Outdoor,
		COP:        k.COP,
		Gain:       k.Gain,
		Low:        k.Low,
		High:       k.High,
		Penalty:    k.Penalty,
		Min:        k.MinKW,
		Max:        k.MaxKW,
		StartCost:  k.StartCost,
		Reference:  k.Reference,
		Terminal:   k.Terminal,
	}

	return errors.Join(k.checkBuilding(n), k.checkPump(n))
}

func (k *homeHeat) checkBuilding(n int) error {
	return errors.Join(
		within("heat.c_kwh_per_k", k.Capacity, 1e-2, maxThermal),
		within("heat.r_k_per_kw", k.Resistance, 1e-2, maxThermal),
		within("heat.init_c", k.Init, -maxTemperature, maxTemperature),
		series("heat.outdoor_c", k.Outdoor, n, -maxTemperature, maxTemperature),
		series("heat.gain_kw", k.Gain, n, 0, maxKW),
		series("heat.min_c", k.Low, n, -maxTemperature, maxTemperature),
		series("heat.max_c", k.High, n, -maxTemperature, maxTemperature),
		within("heat.penalty_p_per_kh", k.Penalty, 0, maxPrice),
		within(
			"heat.terminal_ref_c",
			k.Reference,
			-maxTemperature,
			maxTemperature,
		),
		within("heat.terminal_p_per_k", k.Terminal, -maxPrice, maxPrice),
	)
}

func (k *homeHeat) checkPump(n int) error {
	return errors.Join(
		series("heat.cop", k.COP, n, 0, maxThermal),
		within("heat.max_kw", k.MaxKW, 0, maxKW),
		within("heat.min_kw", k.MinKW, 0, k.MaxKW),
		within("heat.start_cost_p", k.StartCost, 0, maxAmount),
	)
}

func (h *homeProblem) slots() int { return h.Slots() }

func (h *homeProblem) plan(w *Scratch) {
	h.result = w.site.Solve(&h.Problem, &h.plans)
}

// ErrNoPlan is the error of a home for which the search found no plan that keeps all limits.
var ErrNoPlan = errors.New("no plan that keeps all limits was found")

func (h *homeProblem) check(*Scratch) error {
	err := check.Site(&h.Problem, &h.plans, h.result)
	if err != nil && h.result.None {
		return fmt.Errorf("%w: while all devices do nothing, %w", ErrNoPlan, err)
	}

	return err
}

// homeAnswer is a plan of home as it is written.
type homeAnswer struct {
	Battery [][]float64 `json:"battery_kwh,omitempty"`
	Car     [][]float64 `json:"car_kwh,omitempty"`
	Tank    []int       `json:"tank_on,omitempty"`
	Heat    []float64   `json:"heat_kwh,omitempty"`
}

func (h *homeProblem) answer() Answer {
	a := homeAnswer{
		Battery: h.plans.Battery,
		Car:     h.plans.Car,
		Heat:    h.plans.Heat,
	}

	for _, on := range h.plans.Tank {
		state := 0
		if on {
			state = 1
		}
		a.Tank = append(a.Tank, state)
	}

	r := &h.result
	out := Answer{
		Answer: a,
		Cost:   r.Cost, LowerBound: r.Bound, Feasible: r.Met,
		Shortfall: &r.Shortfall, Peak: &r.Peak, FuseValue: &r.FuseValue,
	}

	for _, l := range r.Limits {
		out.Limits = append(out.Limits, homeLimit{
			l.Car,
			string(l.Reason),
			l.Shortfall,
		})

		if l.Reason == site.Fuse {
			out.FuseEnergy = &r.FuseEnergy
		}
	}

	return out
}

// homeLimit is why a car's need is not met, as it is written.
type homeLimit struct {
	Car       int     `json:"car"`
	Reason    string  `json:"limit"`
	Shortfall float64 `json:"shortfall_kwh"`
}
