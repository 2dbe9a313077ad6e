package reading

import (
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
)

// measure is a quantity of an asset that has a reading in each half-hour, under one of its
// labels. An asset may have several: a battery its power and its state of charge.
type measure struct {
	labels []flex.Label
	state  bool // it is read at instants, and holds until the next
	known  func([]flex.Reading) func(flex.Period) bool
}

// The measures whose half-hours can be missing.
var (
	ownEnergy = measure{
		labels: settle.Labels(settle.Asset),
		known:  meteredPeriod(settle.Asset),
	}
	boundaryEnergy = measure{
		labels: settle.Labels(settle.Boundary),
		known:  meteredPeriod(settle.Boundary),
	}

	heatPower  = powerMeasure(flex.HeatPower)
	solarPower = powerMeasure(flex.SolarPower)

	charge          = stateMeasure(flex.BatteryStateOfCharge, flex.BatteryStoredEnergy)
	tankTemperature = stateMeasure(flex.TankTemperature)
	roomTemperature = stateMeasure(flex.RoomTemperature)

	measures = []measure{
		ownEnergy,
		boundaryEnergy,
		heatPower,
		solarPower,
		charge,
		tankTemperature,
		roomTemperature,
	}
)

func powerMeasure(label flex.Label) measure {
	return measure{labels: []flex.Label{label}, known: coveredPeriod(label)}
}

func stateMeasure(labels ...flex.Label) measure {
	return measure{labels: labels, state: true, known: sampledPeriod(labels)}
}

// measuredLabels returns the labels of all measures.
func measuredLabels() []flex.Label {
	var labels []flex.Label
	for _, m := range measures {
		labels = append(labels, m.labels...)
	}

	return labels
}

// stateLabels returns the labels of measures that are read at instants.
func stateLabels() []flex.Label {
	var labels []flex.Label
	for _, m := range measures {
		if m.state {
			labels = append(labels, m.labels...)
		}
	}

	return labels
}

// expectedMeasures returns the measures that are expected of an asset: those with readings on
// the days, those of a charger's own meter, and for another asset whose readings stopped
// before the days the usual one.
func expectedMeasures(
	a flex.Asset,
	rs []flex.Reading,
	everSent bool,
) []measure {
	var expected []measure
	for _, m := range measures {
		if m.hasReading(rs) && !(m.state && a.Type.Charges()) {
			expected = append(expected, m)
		}
	}

	own, known := usualMeasure(a.Type)
	if !known {
		return expected
	}

	allStopped := everSent && len(expected) == 0
	owes := a.Type.Charges() && !ownEnergy.hasReading(rs)
	if allStopped || owes {
		expected = append(expected, own)
	}

	return expected
}

// usualMeasure returns the usual measure of assets of a type, if there is one.
func usualMeasure(t flex.AssetType) (usual measure, known bool) {
	switch {
	case t.Charges():
		return ownEnergy, true
	case t == flex.Battery:
		return charge, true
	case t.Heats():
		return heatPower, true
	case t == flex.PVInverter:
		return solarPower, true
	}

	return boundaryEnergy, t == flex.BoundaryMeter
}

// has reports whether the label is one of the measure's.
func (m *measure) has(label flex.Label) bool {
	return slices.Contains(m.labels, label)
}

// hasReading reports whether any of the readings is of the measure.
func (m *measure) hasReading(rs []flex.Reading) bool {
	return slices.ContainsFunc(rs, func(r flex.Reading) bool {
		return m.has(r.Label)
	})
}

// label returns the first of the measure's labels that has a reading, or the first of all.
func (m *measure) label(rs []flex.Reading) flex.Label {
	for _, label := range m.labels {
		if slices.ContainsFunc(rs, func(r flex.Reading) bool {
			return r.Label == label
		}) {
			return label
		}
	}

	return m.labels[0]
}

// inSessions reports whether assets of the type may send the measure during plug sessions
// only.
func (m *measure) inSessions(t flex.AssetType) bool {
	return t.Charges() && m.has(flex.ChargerEnergy)
}

// meteredPeriod returns a test for the half-hours whose energy settlement can compute.
func meteredPeriod(by settle.Metering) func([]flex.Reading) func(flex.Period) bool {
	return func(rs []flex.Reading) func(flex.Period) bool {
		days := byDay(settle.HalfHours(by, rs))

		return func(p flex.Period) bool {
			day, n := p.SettlementPeriod()
			m := days[day]
			_, known := m.At(n)
			return known
		}
	}
}

// coveredPeriod returns a test for the half-hours that readings of the power cover without a
// gap.
func coveredPeriod(label flex.Label) func([]flex.Reading) func(flex.Period) bool {
	return func(rs []flex.Reading) func(flex.Period) bool {
		known := map[flex.Period]time.Duration{}
		for _, r := range rs {
			if r.Label != label {
				continue
			}

			for p := flex.PeriodAt(r.From); p.Start().Before(r.To); p = p.Add(1) {
				part := r.Meet(p.Span())
				known[p] += part.To.Sub(part.From)
			}
		}

		return func(p flex.Period) bool {
			return known[p] >= flex.HalfHour
		}
	}
}

// sampledPeriod returns a test for the half-hours in which a state was read, or in the one
// before: one reading an hour is enough.
func sampledPeriod(labels []flex.Label) func([]flex.Reading) func(flex.Period) bool {
	return func(rs []flex.Reading) func(flex.Period) bool {
		known := map[flex.Period]bool{}
		for _, r := range rs {
			if !slices.Contains(labels, r.Label) {
				continue
			}

			first := flex.PeriodAt(r.From)
			last := flex.PeriodAt(flex.Later(r.From, r.To.Add(-time.Microsecond)))
			for p := first; last.Add(1).Sub(p) >= 0; p = p.Add(1) {
				known[p] = true
			}
		}

		return func(p flex.Period) bool { return known[p] }
	}
}
