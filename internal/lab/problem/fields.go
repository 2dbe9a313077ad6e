package problem

import "errors"

// siteFields has the fields of the site, for problems of a battery and of a home.
type siteFields struct {
	SlotHours    float64   `json:"slot_hours"`
	Import       []float64 `json:"import_p_per_kwh"`
	Export       []float64 `json:"export_p_per_kwh"`
	Load         []float64 `json:"load_kwh"`
	PV           []float64 `json:"pv_kwh"`
	Curtailable  bool      `json:"pv_curtailable"`
	GridImportKW float64   `json:"grid_import_kw"`
	GridExportKW float64   `json:"grid_export_kw"`
}

// newSiteFields returns the defaults: half-hours, and a connection without limits.
func newSiteFields() siteFields {
	return siteFields{
		SlotHours:    halfHour,
		GridImportKW: maxKW,
		GridExportKW: maxKW,
	}
}

func (f *siteFields) check() error {
	n := len(f.Import)
	return errors.Join(
		slotCount("import_p_per_kwh", n),
		within("slot_hours", f.SlotHours, 1e-3, 24),
		series("import_p_per_kwh", f.Import, n, -maxPrice, maxPrice),
		series("export_p_per_kwh", f.Export, n, -maxPrice, maxPrice),
		series("load_kwh", f.Load, n, 0, maxKWh),
		series("pv_kwh", f.PV, n, 0, maxKWh),
		within("grid_import_kw", f.GridImportKW, 0, maxKW),
		within("grid_export_kw", f.GridExportKW, 0, maxKW),
	)
}

// storageFields has the fields of a battery at a site.
type storageFields struct {
	SoCMin float64 `json:"soc_min_kwh"`
	SoCMax float64 `json:"soc_max_kwh"`
	deviceFields
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

// leastEff is the lowest efficiency of one direction that is accepted.
const leastEff = 0.1

// check checks the fields. at comes before their names in a message. The battery must at first
// store from leastInit to mostInit.
func (f *storageFields) check(at string, leastInit, mostInit float64) error {
	return errors.Join(
		within(at+"soc_min_kwh", f.SoCMin, 0, maxKWh),
		within(at+"soc_max_kwh", f.SoCMax, f.SoCMin, maxKWh),
		within(at+"soc_init_kwh", f.SoCInit, leastInit, mostInit),
		within(at+"charge_kw", f.ChargeKW, 0, maxKW),
		within(at+"discharge_kw", f.DischargeKW, 0, maxKW),
		within(at+"eff_charge", f.EffCharge, leastEff, 1),
		within(at+"eff_discharge", f.EffDischarge, leastEff, 1),
		within(at+"wear_p_per_kwh", f.Wear, 0, maxPrice),
		within(at+"terminal_p_per_kwh", f.Terminal, -maxPrice, maxPrice),
	)
}
