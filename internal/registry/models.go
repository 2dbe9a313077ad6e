package registry

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

var creatable = []flex.AssetType{
	flex.Charger,
	flex.Battery,
	flex.HeatPump,
	flex.ElectricVehicle,
	flex.HotWaterTank,
}

// ReadModels reads a CSV file of asset models with the columns name, type, cop11_qualified
// and, where known, power_kw and capacity_kwh; enrol may be allow or deny, which overrides the
// rule of eligibility. An error is a flex.Invalid with the number of the line.
func ReadModels(r io.Reader) ([]flex.Model, error) {
	var models []flex.Model
	for row, err := range csvfile.Read(r, "name", "type", "cop11_qualified") {
		if err != nil {
			return nil, err
		}

		m, err := readModel(row)
		if err != nil {
			return nil, err
		}

		models = append(models, m)
	}

	return models, nil
}

func readModel(row csvfile.Row) (flex.Model, error) {
	m := flex.Model{
		Name: row.Get("name"),
		Type: flex.AssetType(row.Get("type")),
	}

	if m.Name == "" {
		return m, row.Fault("name: it is empty")
	}

	if !slices.Contains(creatable, m.Type) {
		return m, row.Fault(
			"type: %q is none of %q",
			row.Get("type"),
			creatable,
		)
	}

	switch row.Get("cop11_qualified") {
	case "true":
		m.CoP11 = true

	case "false":
	default:
		return m, row.Fault(
			"cop11_qualified: %q is neither true nor false",
			row.Get("cop11_qualified"),
		)
	}

	switch m.Enrol = flex.EnrolOverride(row.Get("enrol")); m.Enrol {
	case flex.EnrolByRule, flex.EnrolAllow, flex.EnrolDeny:
	default:
		return m, row.Fault(
			"enrol: %q is neither allow, deny nor empty",
			m.Enrol,
		)
	}

	for column, keep := range map[string]func(float64){
		"power_kw":     func(v float64) { m.Power = new(flex.FromKW(v)) },
		"capacity_kwh": func(v float64) { m.Capacity = new(flex.FromKWh(v)) },
	} {
		text := strings.TrimSpace(row.Get(column))
		if text == "" {
			continue
		}

		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= 1e6) {
			return m, row.Fault(
				"%s: %q is not a number from 0 to 1000000",
				column,
				text,
			)
		}

		keep(v)
	}

	return m, nil
}
