package settle

import (
	"cmp"
	"slices"
	"time"

	"flexd/internal/flex"
)

// sources lists, for each metering, the labels that can give a half-hour's energy, the
// most exact first. A half-hour takes the first that gives it.
var sources = map[Metering][]flex.Label{
	Boundary: {flex.BoundaryImportRegister, flex.ProvisionalConsumption, flex.BoundaryImportPower},
	Asset:    {flex.ChargerEnergy, flex.ChargerRegister, flex.BatteryInverterPower},
}

// Labels lists the labels whose readings count for the metering.
func Labels(m Metering) []flex.Label {
	if m == Boundary {
		return append(slices.Clone(sources[m]), flex.BoundaryExportRegister)
	}
	return slices.Clone(sources[m])
}

// Limits bound what a meter can have measured in one half-hour, in both directions. A value
// beyond them counts as unknown.
type Limits struct {
	Import flex.WattHours
	Export flex.WattHours // as a positive number
}

// Limiter returns the limits of a half-hour.
type Limiter interface{ At(flex.Period) Limits }

// At returns the limits, which are the same at any time.
func (l Limits) At(flex.Period) Limits { return l }

// Rating has what bounds a meter's half-hours over time: the capacity of the connection, and
// for an asset's own meter the asset's power; at a boundary there is no power.
type Rating struct {
	Supply flex.History[flex.Supply]
	Power  flex.History[flex.Watts]
}

// At returns the limits of a half-hour, by the rating at its beginning.
func (r Rating) At(p flex.Period) Limits {
	return DeviceLimits(
		r.Power.On(p.Start()),
		SupplyLimits(r.Supply.On(p.Start())),
	)
}

// Unlimited has the bounds of any settlement period.
var Unlimited = Limits{Import: MaxEnergy, Export: MaxEnergy}

// PowerTolerance is how much more than its rated power a device may be measured to draw: the
// voltage of a supply may lie a tenth above the nominal one.
const PowerTolerance = Whole / 10

// SupplyLimits returns what a connection can carry in a half-hour.
func SupplyLimits(s flex.Supply) Limits {
	return Limits{
		Import: inHalfHour(s.Import),
		Export: inHalfHour(s.Export),
	}
}

// DeviceLimits returns what a device of the rated power, behind a connection, can have taken
// or given in a half-hour. An unknown power, 0, leaves the connection's limits.
func DeviceLimits(power flex.Watts, supply Limits) Limits {
	if power <= 0 {
		return supply
	}
	most := inHalfHour(power)
	most += flex.WattHours(int64(most) * int64(PowerTolerance) / int64(Whole))

	return Limits{
		Import: min(most, supply.Import),
		Export: min(most, supply.Export),
	}
}

func inHalfHour(w flex.Watts) flex.WattHours {
	return flex.WattHours((int64(w) + 1) / 2)
}

// Allow reports whether a half-hour's net import is within the limits.
func (l Limits) Allow(e flex.WattHours) bool {
	return e <= l.Import && -e <= l.Export
}

// Beyond is a half-hour that was left out because its energy is beyond the limits.
type Beyond struct {
	Period flex.Period
	Label  flex.Label
	Energy flex.WattHours
}

// HalfHours makes settlement days of one device's readings, in any order: net import of every
// half-hour that the readings cover completely. It estimates nothing.
//
// An energy counts if its reading spans exactly the half-hour. A register counts if it was
// read at both ends of the half-hour, at its reading's end; export is subtracted from import
// if any export register was read at all. A power counts if its readings cover the half-hour
// without a gap or an overlap. Of two readings of the same time, the later one in the slice
// counts.
func HalfHours(metering Metering, readings []flex.Reading) []MeteredDay {
	days, _ := HalfHoursWithin(metering, readings, Unlimited)
	return days
}

// HalfHoursWithin is HalfHours without the half-hours that are beyond the limits. It lists
// those of them that no other label gives, in order.
func HalfHoursWithin(
	metering Metering,
	readings []flex.Reading,
	limits Limiter,
) ([]MeteredDay, []Beyond) {
	net := seriesFor(readings)

	order := sources[metering]

	var beyond []Beyond
	for i := len(order) - 1; i >= 0; i-- { // the most exact label last, so that it replaces the others
		given := net.like()
		given.read(order[i], readings, readings)

		for at, known := range given.known {
			e, p := given.value[at], net.first.Add(at)
			switch {
			case !known:
			case limits.At(p).Allow(e):
				net.value[at], net.known[at] = e, true

			default:
				beyond = append(beyond, Beyond{
					Period: p,
					Label:  order[i],
					Energy: e,
				})
			}
		}
	}

	beyond = slices.DeleteFunc(beyond, func(b Beyond) bool {
		return net.known[b.Period.Sub(net.first)]
	})

	slices.SortStableFunc(beyond, func(a, b Beyond) int {
		return a.Period.Start().Compare(b.Period.Start())
	})

	return net.days(), beyond
}

// series has an energy for each half-hour of a time.
type series struct {
	first flex.Period
	value []flex.WattHours
	known []bool
}

// seriesFor makes a series over the time of all readings.
func seriesFor(readings []flex.Reading) series {
	if len(readings) == 0 {
		return series{}
	}

	first, last := readings[0].From, readings[0].To
	for i := range readings {
		if r := &readings[i]; r.From.Before(first) {
			first = r.From
		}

		if r := &readings[i]; r.To.After(last) {
			last = r.To
		}
	}

	s := series{first: flex.PeriodAt(first)}
	n := flex.PeriodAt(last).Sub(s.first) + 1
	s.value, s.known = make([]flex.WattHours, n), make([]bool, n)

	return s
}

// like makes an empty series over the same time.
func (s *series) like() series {
	return series{
		s.first,
		make([]flex.WattHours, len(s.value)),
		make([]bool, len(s.known)),
	}
}

func (s *series) set(p flex.Period, e flex.WattHours) {
	i := p.Sub(s.first)
	s.value[i], s.known[i] = e, true
}

// read sets the half-hours that one device's readings of a label give. From an import register
// the exported energy is subtracted, which may be read by another device.
func (s *series) read(
	label flex.Label,
	readings, exports []flex.Reading,
) {
	switch label {
	case flex.ChargerEnergy, flex.ProvisionalConsumption:
		s.intervals(label, readings)
	case flex.BoundaryImportPower, flex.BatteryInverterPower:
		s.powers(label, readings)
	default:
		s.registers(label, readings, exports)
	}
}

// days makes settlement days of net energies.
func (s *series) days() []MeteredDay {
	all := []MeteredDay{}
	var wh []flex.WattHours // space for the following days

	for i := 0; i < len(s.value); {
		day, n := s.first.Add(i).SettlementPeriod()
		periods := day.Periods()
		if len(wh) < periods {
			wh = make(
				[]flex.WattHours,
				min(len(s.value)-i+2*MaxPeriods, 64*MaxPeriods),
			)
		}

		m := MeteredDay{Day: day, Wh: wh[:periods:periods]}
		for ; n <= periods && i < len(s.value); n, i = n+1, i+1 {
			if s.known[i] {
				m.Set(n, s.value[i])
			}
		}

		if m.Known != 0 {
			all, wh = append(all, m), wh[periods:]
		}
	}

	return all
}

// wattHours rounds millionths of a kilowatt-hour.
func wattHours(e flex.Micro) flex.WattHours {
	return flex.WattHours(HalfAway.divide(int64(e), 1000))
}

func (s *series) intervals(label flex.Label, readings []flex.Reading) {
	for i := range readings {
		r := &readings[i]
		if r.Label != label {
			continue
		}

		p := flex.PeriodAt(r.From)
		if r.From.Equal(p.Start()) && r.To.Sub(r.From) == flex.HalfHour {
			s.set(p, wattHours(r.Value))
		}
	}
}

// registers sets the differences between registers read half an hour apart, import less
// export. A register that fell or restarted gives nothing.
func (s *series) registers(
	label flex.Label,
	readings, exports []flex.Reading,
) {
	energy := s.marksOf(label, readings)
	if energy.none {
		return
	}

	out := marks{none: true}
	if label == flex.BoundaryImportRegister {
		out = s.marksOf(flex.BoundaryExportRegister, exports)
	}

	for i := range len(s.value) - 1 {
		rise, known := energy.rise(i)
		if !known {
			continue
		}

		if !out.none {
			back, known := out.rise(i)
			if !known {
				continue
			}
			rise -= back
		}

		s.value[i], s.known[i] = wattHours(rise), true
	}
}

// marks are the values of a register at the beginning of each half-hour.
type marks struct {
	none      bool // it was not read at all
	value     []flex.Micro
	known     []bool
	restarted []bool // it restarted in the half-hour before
}

func (s *series) marksOf(label flex.Label, readings []flex.Reading) marks {
	if !slices.ContainsFunc(readings, func(r flex.Reading) bool {
		return r.Label == label
	}) {
		return marks{none: true}
	}

	m := marks{
		value:     make([]flex.Micro, len(s.value)),
		known:     make([]bool, len(s.value)),
		restarted: make([]bool, len(s.value)),
	}

	for i := range readings {
		r := &readings[i]
		if r.Label != label {
			continue
		}

		p := flex.PeriodAt(r.To)
		at := p.Sub(s.first)
		if r.To.Equal(p.Start()) && at >= 0 && at < len(m.value) {
			m.value[at], m.known[at] = r.Value, true
			m.restarted[at] = r.Restarted
		}
	}

	return m
}

// rise returns the register's increase in a half-hour at both ends of which it was read, if
// the same meter counted at both.
func (m *marks) rise(i int) (flex.Micro, bool) {
	read := m.known[i] && m.known[i+1]
	by := m.value[i+1] - m.value[i]
	return by, read && by >= 0 && !m.restarted[i+1]
}

// wattHour is one, in millionths of a kilowatt times milliseconds.
const wattHour = 1000 * 3600 * 1000

// powers adds up readings that lie end to end over a half-hour.
func (s *series) powers(label flex.Label, readings []flex.Reading) {
	type part struct {
		covered time.Duration
		sum     int64 // millionths of a kilowatt times milliseconds
		clash   bool
		until   time.Time
	}

	parts := map[flex.Period]*part{}
	for _, r := range powersInOrder(label, readings) {
		for p := flex.PeriodAt(r.From); p.Start().Before(r.To); p = p.Add(1) {
			in := r.Meet(p.Span())

			if parts[p] == nil {
				parts[p] = &part{}
			}

			h := parts[p]
			h.clash = h.clash || in.From.Before(h.until)
			h.covered += in.Len()
			h.until = in.To
			h.sum += int64(r.Value) * in.Len().Milliseconds()
		}
	}

	for p, h := range parts {
		if h.covered == flex.HalfHour && !h.clash {
			s.set(p, flex.WattHours(HalfAway.divide(h.sum, wattHour)))
		}
	}
}

// powersInOrder returns the readings of the label, each time once, by time.
func powersInOrder(label flex.Label, readings []flex.Reading) []flex.Reading {
	last := map[flex.Span]flex.Reading{}
	for _, r := range readings {
		if r.Label == label && !r.Empty() {
			last[flex.Span{From: r.From.UTC(), To: r.To.UTC()}] = r
		}
	}

	ordered := make([]flex.Reading, 0, len(last))
	for _, r := range last {
		ordered = append(ordered, r)
	}

	slices.SortFunc(ordered, func(a, b flex.Reading) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})

	return ordered
}
