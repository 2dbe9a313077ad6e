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
	byLabel := map[flex.Label][]flex.Reading{}
	for _, r := range readings {
		byLabel[r.Label] = append(byLabel[r.Label], r)
	}
	energy := map[flex.Period]flex.Micro{}
	order := sources[metering]
	for i := len(order) - 1; i >= 0; i-- { // the most exact last, so that it stands
		for p, e := range halfHours(order[i], byLabel) {
			energy[p] = e
		}
	}
	days := map[flex.Day]*MeteredDay{}
	for p, e := range energy {
		day, n := p.SettlementPeriod()
		if days[day] == nil {
			days[day] = &MeteredDay{Day: day}
		}
		days[day].Set(n, wattHours(e))
	}
	all := make([]MeteredDay, 0, len(days))
	for _, m := range days {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b MeteredDay) int { return compare(a.Day, b.Day) })
	return all
}

// wattHours rounds millionths of a kilowatt-hour.
func wattHours(e flex.Micro) flex.WattHours { return flex.WattHours(HalfAway.divide(int64(e), 1000)) }

func halfHours(label flex.Label, readings map[flex.Label][]flex.Reading) map[flex.Period]flex.Micro {
	switch label {
	case flex.ChargerEnergy, flex.ProvisionalConsumption:
		return intervals(readings[label])
	case flex.BoundaryImportPower, flex.BatteryInverterPower:
		return powers(readings[label])
	}
	energy := registers(readings[label])
	export := readings[flex.BoundaryExportRegister]
	if label != flex.BoundaryImportRegister || len(export) == 0 {
		return energy
	}
	out := registers(export)
	for p := range energy {
		e, known := out[p]
		if !known {
			delete(energy, p)
			continue
		}
		energy[p] -= e
	}
	return energy
}

func intervals(readings []flex.Reading) map[flex.Period]flex.Micro {
	energy := map[flex.Period]flex.Micro{}
	for _, r := range readings {
		if p := flex.PeriodAt(r.From); r.From.Equal(p.Start()) && r.To.Equal(p.End()) {
			energy[p] = r.Value
		}
	}
	return energy
}

// registers returns the differences between registers read half an hour apart. A register
// that fell, which ingest refuses, gives nothing.
func registers(readings []flex.Reading) map[flex.Period]flex.Micro {
	at := map[flex.Period]flex.Micro{} // the register at a period's start
	for _, r := range readings {
		if p := flex.PeriodAt(r.To); r.To.Equal(p.Start()) {
			at[p] = r.Value
		}
	}
	energy := map[flex.Period]flex.Micro{}
	for p, value := range at {
		if next, known := at[p.Add(1)]; known && next >= value {
			energy[p] = next - value
		}
	}
	return energy
}

// powers adds up readings that lie end to end over a half-hour.
func powers(readings []flex.Reading) map[flex.Period]flex.Micro {
	last := map[flex.Span]flex.Reading{}
	for _, r := range readings {
		if !r.Empty() {
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
	energy := map[flex.Period]flex.Micro{}
	for p, h := range parts {
		if h.covered == flex.HalfHour && !h.clash {
			energy[p] = flex.Micro(HalfAway.divide(h.sum, 3600))
		}
	}
	return energy
}
