package main

import (
	"fmt"
	"strconv"

	"flexd/internal/control"
	"flexd/internal/flex"
)

// rateSettings lists the settings for the rates of fixed tariffs.
func rateSettings() []setting {
	return []setting{
		rateSetting(
			"import_p_per_kwh",
			control.DefaultPeakRate,
			"what a kWh costs in dear hours, in pence, at sites with a fixed tariff that have no rate of their own",
			func(r *flex.BatteryRates) *flex.Optional[float64] { return &r.Peak },
		),
		rateSetting(
			"off_peak_p_per_kwh",
			control.DefaultOffPeakRate,
			"the same in cheap hours",
			func(r *flex.BatteryRates) *flex.Optional[float64] { return &r.OffPeak },
		),
		rateSetting(
			"export_p_per_kwh",
			control.DefaultExportRate,
			"what one earns there that is exported",
			func(r *flex.BatteryRates) *flex.Optional[float64] { return &r.Export },
		),
		rateSetting(
			"battery_wear_p_per_kwh",
			0,
			"what each kWh that a home battery discharges counts as wear, in pence: it makes no cycle that saves less",
			func(r *flex.BatteryRates) *flex.Optional[float64] { return &r.BatteryWear },
		),
	}
}

// rateSetting makes the setting of one rate, which may be 0.
func rateSetting(
	name string,
	assumed float64,
	help string,
	field func(*flex.BatteryRates) *flex.Optional[float64],
) setting {
	show := func(s *flex.OrgSettings) string {
		rate := *field(&s.Rates)

		if !rate.Given {
			return ""
		}

		return strconv.FormatFloat(rate.Value, 'f', -1, 64)
	}

	set := func(s *flex.OrgSettings, text string) error {
		rate, err := strconv.ParseFloat(text, 64)
		inside := rate >= 0 && rate <= flex.TariffRateMax

		if err != nil || !inside {
			return fmt.Errorf(
				"a number of pence, at least 0 and at most %g",
				flex.TariffRateMax,
			)
		}

		*field(&s.Rates) = flex.Some(rate)

		return nil
	}

	return setting{
		name:     name,
		standard: fmt.Sprintf("%g (assumed)", assumed),
		help:     help,
		show:     show,
		set:      set,
		clear:    func(s *flex.OrgSettings) { *field(&s.Rates) = flex.Optional[float64]{} },
	}
}
