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

// HalfHours makes settlement days of one meter's readings, in any order: net import of
// every half-hour that the readings give in full, and no guess at any other.
//
// An energy counts if its reading spans exactly the half-hour. A register counts if it was
// read at both ends of the half-hour, at its reading's end; export is taken off import if
// any export register was read at all. A power counts if its readings cover the
// half-hour without a gap or an overlap. A later reading of the same time takes the place
// of an earlier one in the slice.
func HalfHours(metering Metering, readings []flex.Reading) []MeteredDay {
	net := seriesFor(readings)
	order := sources[metering]
	for i := len(order) - 1; i >= 0; i-- { // the most exact last, so that it stands
		switch label := order[i]; label {
		case flex.ChargerEnergy, flex.ProvisionalConsumption:
			net.intervals(label, readings)
		case flex.BoundaryImportPower, flex.BatteryInverterPower:
			net.powers(label, readings)
		default:
			net.registers(label, readings)
		}
	}
	return net.days()
}

// series holds an energy, or a register's value, for each half-hour of a time.
type series struct {
	first flex.Period
	value []flex.Micro
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
	s.value, s.known = make([]flex.Micro, n), make([]bool, n)
	return s
}

// like makes an empty series over the same time.
func (s *series) like() series {
	return series{s.first, make([]flex.Micro, len(s.value)), make([]bool, len(s.known))}
}

func (s *series) set(p flex.Period, e flex.Micro) {
	i := p.Sub(s.first)
	s.value[i], s.known[i] = e, true
}

// days makes settlement days of net energies.
func (s *series) days() []MeteredDay {
	all := []MeteredDay{}
	var wh []flex.WattHours // room for days to come
	for i := 0; i < len(s.value); {
		day, n := s.first.Add(i).SettlementPeriod()
		periods := day.Periods()
		if len(wh) < periods {
			wh = make([]flex.WattHours, min(len(s.value)-i+2*MaxPeriods, 64*MaxPeriods))
		}
		m := MeteredDay{Day: day, Wh: wh[:periods:periods]}
		for ; n <= periods && i < len(s.value); n, i = n+1, i+1 {
			if s.known[i] {
				m.Set(n, wattHours(s.value[i]))
			}
		}
		if m.Known != 0 {
			all, wh = append(all, m), wh[periods:]
		}
	}
	return all
}

// wattHours rounds millionths of a kilowatt-hour.
func wattHours(e flex.Micro) flex.WattHours { return flex.WattHours(HalfAway.divide(int64(e), 1000)) }

func (s *series) intervals(label flex.Label, readings []flex.Reading) {
	for i := range readings {
		r := &readings[i]
		if r.Label != label {
			continue
		}
		if p := flex.PeriodAt(r.From); r.From.Equal(p.Start()) && r.To.Sub(r.From) == flex.HalfHour {
			s.set(p, r.Value)
		}
	}
}

// registers puts in the differences between registers read half an hour apart, and takes
// export off import. A register that fell, which ingest refuses, gives nothing.
func (s *series) registers(label flex.Label, readings []flex.Reading) {
	energy, any := s.differences(label, readings)
	if !any {
		return
	}
	out, exports := series{}, false
	if label == flex.BoundaryImportRegister {
		out, exports = s.differences(flex.BoundaryExportRegister, readings)
	}
	for i, e := range energy.value {
		switch {
		case !energy.known[i]:
		case !exports:
			s.value[i], s.known[i] = e, true
		case out.known[i]:
			s.value[i], s.known[i] = e-out.value[i], true
		}
	}
}

// differences returns what a register rose by in each half-hour at both ends of which it was
// read, and whether it was read at all.
func (s *series) differences(label flex.Label, readings []flex.Reading) (energy series, any bool) {
	if any = slices.ContainsFunc(readings, func(r flex.Reading) bool { return r.Label == label }); !any {
		return series{}, false
	}
	energy = s.like()
	for i := range readings { // first the register at each half-hour's start
		if r := &readings[i]; r.Label == label {
			if p := flex.PeriodAt(r.To); r.To.Equal(p.Start()) {
				energy.set(p, r.Value)
			}
		}
	}
	last := len(energy.value) - 1
	for i := range last {
		energy.known[i] = energy.known[i] && energy.known[i+1] && energy.value[i+1] >= energy.value[i]
		energy.value[i] = energy.value[i+1] - energy.value[i]
	}
	energy.known[last] = false
	return energy, true
}

// powers adds up readings that lie end to end over a half-hour.
func (s *series) powers(label flex.Label, readings []flex.Reading) {
	last := map[flex.Span]flex.Reading{}
	for _, r := range readings {
		if r.Label == label && !r.Empty() {
			last[flex.Span{From: r.From.UTC(), To: r.To.UTC()}] = r
		}
	}
	type part struct {
		covered time.Duration
		sum     int64 // millionths of a kilowatt-second
		clash   bool
		until   time.Time
	}
	parts := map[flex.Period]*part{}
	ordered := make([]flex.Reading, 0, len(last))
	for _, r := range last {
		ordered = append(ordered, r)
	}
	slices.SortFunc(ordered, func(a, b flex.Reading) int {
		return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To))
	})
	for _, r := range ordered {
		for p := flex.PeriodAt(r.From); p.Start().Before(r.To); p = p.Add(1) {
			in := r.Meet(p.Span())
			if parts[p] == nil {
				parts[p] = &part{}
			}
			h := parts[p]
			h.clash = h.clash || in.From.Before(h.until)
			h.covered, h.until = h.covered+in.Len(), in.To
			h.sum += int64(r.Value) * int64(in.Len()/time.Second)
		}
	}
	for p, h := range parts {
		if h.covered == flex.HalfHour && !h.clash {
			s.set(p, flex.Micro(HalfAway.divide(h.sum, 3600)))
		}
	}
}
