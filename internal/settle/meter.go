package settle

import (
	"bytes"
	"cmp"
	"slices"

	"flexd/internal/flex"
)

// Meter has the readings of one metered place: a site's boundary, which several devices may
// measure, or an asset. Readings of different devices are never combined: each label of each
// device gives its own half-hours.
type Meter struct {
	metering  Metering
	consented bool // readings outside the user's consent are left out
	byDevice  [][]flex.Reading
	may       func(flex.Period, flex.WattHours) bool
	exporting []exporter // the devices that read an export register
	given     map[string][]source
}

// source is one label, by every device that gives half-hours of it.
type source struct {
	label   flex.Label
	devices []device
}

// device is what one device gives by one label.
type device struct {
	id       flex.AssetID
	days     []MeteredDay
	readings []flex.Reading // all of the device
}

// NewMeter makes a meter of the readings of its devices, in any order. Values beyond the
// limits count as unknown.
func NewMeter(
	metering Metering,
	readings []flex.Reading,
	limits Limiter,
) *Meter {
	return newMeter(metering, readings, func(p flex.Period, e flex.WattHours) bool {
		return limits.At(p).Allow(e)
	})
}

// NewBoundary makes the meter of a site's boundary as NewMeter does, from what may be used
// under the spans of the user's consent: the half-hours that lie in a span, of the readings
// that do. A register that was read in two spans gives no energy for the time between them.
func NewBoundary(
	readings []flex.Reading,
	limits Limiter,
	consent []flex.Span,
) *Meter {
	outside := func(r flex.Reading) bool { return !Consented(consent, &r) }
	if slices.ContainsFunc(readings, outside) {
		readings = slices.DeleteFunc(slices.Clone(readings), outside)
	}

	m := newMeter(Boundary, readings, func(p flex.Period, e flex.WattHours) bool {
		return limits.At(p).Allow(e) && Within(consent, p.Span())
	})

	m.consented = true

	return m
}

func newMeter(
	metering Metering,
	readings []flex.Reading,
	may func(flex.Period, flex.WattHours) bool,
) *Meter {
	m := &Meter{
		metering: metering,
		byDevice: devicesOf(readings),
		may:      may,
		given:    map[string][]source{},
	}

	if metering == Boundary {
		m.exporting = exportersOf(m.byDevice)
	}

	return m
}

// sourcesFor returns the labels that give any half-hour of the meter, the most exact first,
// with the exports subtracted that count for the case.
func (m *Meter) sourcesFor(c *Case) []source {
	exports := exportsFor(m.exporting, c)
	key := make([]byte, len(m.byDevice))

	for i := range m.byDevice {
		if exports[i] {
			key[i] = 1
		}
	}

	given, made := m.given[string(key)]
	if !made {
		given = m.make(exports)
		m.given[string(key)] = given
	}

	return given
}

// make makes the sources, given the devices whose export registers count.
func (m *Meter) make(exports map[int]bool) []source {
	var made []source
	for _, label := range sources[m.metering] {
		s := source{label: label}
		for i, own := range m.byDevice {
			if !slices.ContainsFunc(own, func(r flex.Reading) bool {
				return r.Label == label
			}) {
				continue
			}

			series := seriesFor(own)
			series.read(label, own, m.exportsOf(i, exports))

			for i, e := range series.value {
				series.known[i] = series.known[i] &&
					m.may(series.first.Add(i), e)
			}

			if days := series.days(); len(days) > 0 {
				s.devices = append(s.devices, device{own[0].AssetID, days, own})
			}
		}

		if len(s.devices) > 0 {
			made = append(made, s)
		}
	}

	return made
}

// devicesOf groups the readings by device, in the order of the devices' ids.
func devicesOf(readings []flex.Reading) [][]flex.Reading {
	other := func(r flex.Reading) bool {
		return r.AssetID != readings[0].AssetID
	}

	if len(readings) == 0 {
		return nil
	}

	if !slices.ContainsFunc(readings, other) {
		return [][]flex.Reading{readings}
	}

	ordered := slices.Clone(readings)
	slices.SortStableFunc(ordered, func(a, b flex.Reading) int {
		return compareID(a.AssetID, b.AssetID)
	})

	var byDevice [][]flex.Reading
	for from := 0; from < len(ordered); {
		to := from + 1
		for to < len(ordered) && ordered[to].AssetID == ordered[from].AssetID {
			to++
		}

		byDevice = append(byDevice, ordered[from:to:to])
		from = to
	}

	return byDevice
}

// exportsOf returns the readings with a device's exports: its own, or, if its export register
// does not count, those of the first device whose register does.
func (m *Meter) exportsOf(device int, exports map[int]bool) []flex.Reading {
	if exports[device] {
		return m.byDevice[device]
	}

	for i, rs := range m.byDevice {
		if exports[i] {
			return rs
		}
	}

	return nil
}

// exporter is a device that reads an export register, and when it did.
type exporter struct {
	device int // of the meter's
	at     map[int64]bool
}

func exportersOf(byDevice [][]flex.Reading) []exporter {
	var all []exporter
	for i, rs := range byDevice {
		e := exporter{device: i, at: map[int64]bool{}}
		for k := range rs {
			if rs[k].Label == flex.BoundaryExportRegister {
				e.at[rs[k].To.Unix()] = true
			}
		}

		if len(e.at) > 0 {
			all = append(all, e)
		}
	}

	return all
}

// exportsFor returns the devices whose export registers count for a case: those that were read
// at the half-hours of its events, or at the same time of a day that may be used for the
// baseline. Reads at other times do not matter, so that a case has the same result whatever
// else is settled with it.
func exportsFor(exporting []exporter, c *Case) map[int]bool {
	if len(exporting) == 0 {
		return nil
	}

	counts := map[int]bool{}
	slots := c.slots()
	slots = append(slots, c.Rule.window(c, slots)...)
	before := c.Rule.before(c.Day)

	for _, e := range exporting {
		found := e.reads(c.Day, c.own())
		for back := 1; back <= c.Rule.LookBack && !found; back++ {
			found = e.reads(before.Add(-back), slots)
		}

		if found {
			counts[e.device] = true
		}
	}

	return counts
}

// reads reports whether the register was read at an end of one of the settlement periods.
func (e *exporter) reads(d flex.Day, periods []int) bool {
	for _, n := range periods {
		p := d.Period(n)
		if e.at[p.Start().Unix()] || e.at[p.End().Unix()] {
			return true
		}
	}

	return false
}

// Give gives the case the readings of one label, for its events' day and the days before: the
// label by which the case can be settled, if any; among these, the one by which most
// half-hours of the events are known; then the one with most days for the baseline; then the
// most exact. A half-hour is taken from the first device that knows it, in one order of the
// devices for all days. A device that measures something else than those before it does not
// count. It reports whether any half-hour of the events is known; if none is, the case is
// unchanged.
func (m *Meter) Give(c *Case) bool {
	var found []choice
	own := c.own()

	sources := m.sourcesFor(c)
	for i := range sources {
		s := &sources[i]
		days := s.days(c)
		if known := knownIn(days, c.Day, own); known > 0 {
			found = append(found, choice{s, days, known, 0})
		}
	}

	if len(found) == 0 {
		return false
	}

	best := found[0]
	if len(found) > 1 {
		best = m.bestOf(c, found)
	}

	c.Metering, c.Label = m.metering, best.source.label
	c.Metered, c.Consented = best.days, m.consented
	c.Devices = best.source.devicesIn(c)

	return true
}

// choice is a label by which a case may be metered.
type choice struct {
	source *source
	days   []MeteredDay

	known    int // half-hours of the events
	compared int // days for the baseline plus one; 0 if they are too few
}

// bestOf computes the baseline that each label would give the case, and returns the best
// choice.
func (m *Meter) bestOf(c *Case, found []choice) choice {
	trial := *c
	trial.Metering = m.metering

	for i := range found {
		trial.Metered = found[i].days
		b := trial.Rule.find(&trial, trial.slots())
		if b.quality != Insufficient {
			found[i].compared = 1 + len(b.used)
		}
	}

	return slices.MaxFunc(found, func(a, b choice) int { // the first of equals, the most exact
		return cmp.Or(
			cmp.Compare(min(a.compared, 1), min(b.compared, 1)),
			cmp.Compare(a.known, b.known),
			cmp.Compare(a.compared, b.compared),
		)
	})
}

// days returns the half-hours of a label: of its only device, or of its devices merged in the
// order that suits the case.
func (s *source) days(c *Case) []MeteredDay {
	if len(s.devices) == 1 {
		return s.devices[0].days
	}

	_, days := s.counting(c)

	return days
}

// counting returns the devices that count for the case, in their order, and their merged
// half-hours. A device that measures something else than those before it does not count: the
// load that it does not measure was not saved by the site.
func (s *source) counting(c *Case) ([]*device, []MeteredDay) {
	ranked := s.ranked(c)
	devices, days := ranked[:1], ranked[0].days

	for _, d := range ranked[1:] {
		if c.alike(days, d.days) {
			devices, days = append(devices, d), filled(days, d.days)
		}
	}

	return devices, days
}

// DevicesDiffer is how much two devices of one meter may differ by on average in a half-hour,
// besides a tenth.
const DevicesDiffer flex.WattHours = 50

// alike reports whether two devices measure the same load, by the half-hours that both know,
// of the case and of the same time on the days before. Devices without a common half-hour
// count as alike, since one may have replaced the other.
func (c *Case) alike(days, others []MeteredDay) bool {
	var differ, sum, n flex.WattHours
	count := func(d flex.Day, periods []int) {
		a, b := dayOf(days, d), dayOf(others, d)
		if a == nil || b == nil {
			return
		}

		for _, p := range periods {
			one, known := a.At(p)
			other, too := b.At(p)
			if known && too {
				differ += max(one-other, other-one)
				sum += max(one, -one)
				n++
			}
		}
	}

	count(c.Day, c.own())
	slots := c.slots()
	slots = append(slots, c.Rule.window(c, slots)...)
	before := c.Rule.before(c.Day)

	for back := 1; back <= c.Rule.LookBack; back++ {
		count(before.Add(-back), slots)
	}

	return differ <= max(sum/10, n*DevicesDiffer)
}

// devicesIn returns by which device each half-hour of the case's events is known.
func (s *source) devicesIn(c *Case) []flex.AssetID {
	ranked := []*device{&s.devices[0]}
	if len(s.devices) > 1 {
		ranked, _ = s.counting(c)
	}

	first, last := c.span()
	ids := make([]flex.AssetID, last-first+1)

	for i := range ids {
		for _, d := range ranked {
			if knownIn(d.days, c.Day, []int{first + i}) > 0 {
				ids[i] = d.id
				break
			}
		}
	}

	return ids
}

// ranked returns the devices in the order in which they count. The first is the one that knows
// most half-hours of the events and of the same time on the days before; then the one with the
// finest readings of the events; then the one that knows more of the newest day on which they
// differ; then the one with the lowest id.
func (s *source) ranked(c *Case) []*device {
	own, slots := c.own(), c.slots()
	slots = append(slots, c.Rule.window(c, slots)...)
	before := c.Rule.before(c.Day)
	ranks := make([]rank, len(s.devices))

	for i := range s.devices {
		d := &s.devices[i]
		r := rank{
			device:   d,
			coverage: knownIn(d.days, c.Day, own),
			parts:    d.partsIn(c, s.label),
		}

		for back := 1; back <= c.Rule.LookBack; back++ {
			n := knownIn(d.days, before.Add(-back), slots)
			r.history = append(r.history, n)
			r.coverage += n
		}

		ranks[i] = r
	}

	slices.SortStableFunc(ranks, rank.compare)
	devices := make([]*device, len(ranks))

	for i, r := range ranks {
		devices[i] = r.device
	}

	return devices
}

// rank is what a device is ranked by.
type rank struct {
	*device
	history  []int // half-hours known, newest day first
	coverage int
	parts    int
}

func (a rank) compare(b rank) int {
	return cmp.Or(
		cmp.Compare(b.coverage, a.coverage),
		cmp.Compare(b.parts, a.parts),
		slices.Compare(b.history, a.history),
		compareID(a.id, b.id),
	)
}

// partsIn counts the device's readings of the label that tell of the case's events.
func (d *device) partsIn(c *Case, label flex.Label) int {
	first, last := c.span()
	events := flex.Span{
		From: c.Day.Period(first).Start(),
		To:   c.Day.Period(last).End(),
	}

	var n int
	for i := range d.readings {
		r := &d.readings[i]
		if r.Label == label && tellsOf(r, events) {
			n++
		}
	}

	return n
}

// tellsOf reports whether a reading covers a part of the events' time, or is a register read
// in it. An energy of more than a half-hour does not count.
func tellsOf(r *flex.Reading, events flex.Span) bool {
	if r.Empty() {
		return events.Contains(r.To)
	}

	long := r.Label == flex.ProvisionalConsumption && r.Len() > flex.HalfHour

	return !long && !r.Meet(events).Empty()
}

// knownIn counts the settlement periods of a day that are known.
func knownIn(
	days []MeteredDay,
	d flex.Day,
	periods []int,
) int {
	m := dayOf(days, d)
	if m == nil {
		return 0
	}

	var n int
	for _, p := range periods {
		if _, known := m.At(p); known {
			n++
		}
	}

	return n
}

// filled returns the days with their unknown half-hours filled in from others. It changes
// neither argument.
func filled(days, from []MeteredDay) []MeteredDay {
	all := make([]MeteredDay, 0, len(days)+len(from))
	for len(days) > 0 && len(from) > 0 {
		switch order := compare(days[0].Day, from[0].Day); {
		case order < 0:
			all, days = append(all, days[0]), days[1:]
		case order > 0:
			all, from = append(all, from[0]), from[1:]
		default:
			all = append(all, days[0].filled(&from[0]))
			days, from = days[1:], from[1:]
		}
	}

	return append(append(all, days...), from...)
}

func (m *MeteredDay) filled(from *MeteredDay) MeteredDay {
	if from.Known&^m.Known == 0 {
		return *m
	}

	both := MeteredDay{
		Day:   m.Day,
		Known: m.Known,
		Wh:    slices.Clone(m.Wh),
	}

	for n := 1; n <= len(both.Wh); n++ {
		_, known := both.At(n)
		if e, gives := from.At(n); gives && !known {
			both.Set(n, e)
		}
	}

	return both
}

func compareID[Of any](a, b flex.ID[Of]) int {
	return bytes.Compare(a[:], b[:])
}
