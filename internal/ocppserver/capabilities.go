package ocppserver

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The configuration keys that describe the profiles a charger supports.
const (
	keyConnectors = "NumberOfConnectors"
	keyStackLevel = "ChargeProfileMaxStackLevel"
	keyPeriods    = "ChargingScheduleMaxPeriods"
	keyUnits      = "ChargingScheduleAllowedChargingRateUnit"
	keySwitches   = "ConnectorSwitch3to1PhaseSupported"
)

// keyDischarges is the key that the bridge uses for a variable of OCPP 2.1 on discharging; 1.6
// has no such key.
const keyDischarges = "V2XChargingEnabled"

// configurationKeys are the keys that a charger is asked for when it connects or boots.
var configurationKeys = []string{
	keyConnectors, keyStackLevel, keyPeriods, keyUnits, keySwitches, keyAlignedInterval, keyAlignedData, keySampleInterval, keySampledData,
}

// keysFor are the configuration keys that a charger is asked for in a version of OCPP.
func keysFor(subprotocol string) []string {
	if subprotocol == subprotocol21 {
		return append(slices.Clone(configurationKeys), keyDischarges)
	}

	return configurationKeys
}

// The units of a charging schedule.
const (
	unitWatt   = "W"
	unitAmpere = "A"
)

// form is one way to write a profile.
type form struct {
	Unit      string `json:"unit"`
	Level     int    `json:"level"`
	Purpose   string `json:"purpose"`
	Connector int    `json:"connector"`
	Whole     bool   `json:"whole,omitempty"` // amperes without decimals

	// Setpoints has the car discharge where the plan's limit is below zero; else it pauses there.
	Setpoints bool `json:"-"`
}

// capabilities describe the profiles that a charger supports, from its configuration and from
// those that it accepted. The zero value is of a charger that reported nothing.
type capabilities struct {
	// in the order in which they are tried
	Levels  []int `json:"levels,omitempty"`
	Periods int   `json:"periods,omitempty"`
	// in the order in which they are tried
	Units []string `json:"units,omitempty"`

	// Switches says that it can go from three phases to one while it charges.
	Switches bool `json:"switches,omitempty"`
	// Discharges says that a car can give energy back, which is asked of a station of OCPP 2.1.
	Discharges bool `json:"discharges,omitempty"`

	// Taken is what it took last, within a transaction and outside. Of the connector only
	// whether it is 0 is kept.
	Taken map[string]form `json:"taken,omitempty"`
}

// capabilitiesOf reads them from a charger's configuration.
func capabilitiesOf(c configuration) capabilities {
	var h capabilities
	h.Levels = []int{0, 1}
	h.Units = []string{unitAmpere, unitWatt}
	number := func(key string) int {
		text, _, _ := c.find(key)
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return -1
		}
		return n
	}

	if top := number(keyStackLevel); top >= 0 {
		h.Levels = slices.Compact([]int{top, max(0, top-1), 0})
	}
	if n := number(keyPeriods); n > 0 {
		h.Periods = n
	}

	switches, _, _ := c.find(keySwitches)
	h.Switches = strings.EqualFold(strings.TrimSpace(switches), "true")
	discharges, _, _ := c.find(keyDischarges)
	h.Discharges = strings.EqualFold(strings.TrimSpace(discharges), "true")

	units, _, _ := c.find(keyUnits)
	if inWatts(units) {
		h.Units = []string{unitWatt, unitAmpere}
	}

	return h
}

// inWatts reports whether a list of units names watts. Chargers write Power, W or Watts.
func inWatts(units string) bool {
	return slices.ContainsFunc(
		strings.Split(strings.ToLower(units), ","),
		func(u string) bool {
			u = strings.TrimSpace(u)
			return strings.HasPrefix(u, "power") || strings.HasPrefix(u, "w")
		},
	)
}

// forms lists the ways to write a profile for a connector, in the order in which they are
// tried: the one that the charger accepted before; then by unit, stack level, purpose and
// connector; at last in whole amperes. Forms that would limit other connectors are left out if
// there are any.
func (h capabilities) forms(connector int, inTx, singleConnector bool) []form {
	var all []form
	if f, ok := h.Taken[formKey(inTx)]; ok && (singleConnector || f.Connector != 0) {
		if f.Connector != 0 {
			f.Connector = connector
		}

		all = append(all, f)
	}

	targets := []form{{Purpose: purposeTxDefault, Connector: connector}}
	if inTx {
		targets = slices.Insert(targets, 0, form{
			Purpose:   purposeTx,
			Connector: connector,
		})
	}

	if singleConnector {
		targets = append(
			targets,
			form{Purpose: purposeTxDefault},
			form{Purpose: purposeMax},
		)
	}

	for _, wholeAmps := range []bool{false, true} {
		for _, unit := range h.Units {
			if wholeAmps && unit == unitWatt {
				continue
			}

			for _, level := range h.Levels {
				for _, f := range targets {
					f.Unit = unit
					f.Level = level
					f.Whole = wholeAmps
					all = append(all, f)
				}
			}
		}
	}

	return unique(all)
}

// unique removes repeated forms.
func unique(all []form) []form {
	var out []form
	for _, f := range all {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}

	return out
}

// formKey says whether a form was accepted within a transaction.
func formKey(inTx bool) string {
	if inTx {
		return "transaction"
	}
	return "none"
}

// withAccepted records the form that a charger accepted.
func (h *capabilities) withAccepted(f form, inTx bool) {
	accepted := maps.Clone(h.Taken)
	if accepted == nil {
		accepted = map[string]form{}
	}

	accepted[formKey(inTx)] = f
	h.Taken = accepted // other chargers of the model may share the former one
}
