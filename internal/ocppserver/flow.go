package ocppserver

import (
	"slices"
	"time"

	"flexd/internal/flex"
)

const (
	// flowsMax is how many samples of power or interval energy are kept for a connector.
	flowsMax = 1500
	// flowGap is the longest time that one sample of a power speaks for.
	flowGap = 16 * time.Minute
)

// flow is a sample of power, or of the energy since the sample before it.
type flow struct {
	At    time.Time `json:"at"`
	Watts float64   `json:"w,omitempty"`
	Wh    float64   `json:"wh,omitempty"`
	// it is Wh since the sample before it
	Interval bool `json:"interval,omitempty"`
}

// addFlow takes a sample of a power or of an interval's energy.
func (m *meter) addFlow(s sample) {
	f := flow{At: s.At, Watts: s.Value}
	if s.Quantity == interval {
		f = flow{
			At:       s.At,
			Wh:       s.Value,
			Interval: true,
		}
	}

	i, known := slices.BinarySearchFunc(m.Flows, f, func(a, b flow) int {
		return a.At.Compare(b.At)
	})
	if known {
		return
	}

	m.Flows = slices.Insert(m.Flows, i, f)
	m.touch(f.At.Add(-flowGap))
	newest := m.Flows[len(m.Flows)-1].At
	m.Flows = slices.DeleteFunc(m.Flows, func(f flow) bool {
		return f.At.Before(newest.Add(-meterWindow))
	})

	if len(m.Flows) > flowsMax { // every second one tells nearly as much
		m.thinFlows()
	}
}

// thinFlows merges the older half of the samples in pairs.
func (m *meter) thinFlows() {
	half := len(m.Flows) / 2
	var thinned []flow
	for i := 1; i < half; i += 2 {
		f := m.Flows[i]
		f.Wh += m.Flows[i-1].Wh
		f.Watts = (f.Watts + m.Flows[i-1].Watts) / 2
		thinned = append(thinned, f)
	}
	m.Flows = append(thinned, m.Flows[half/2*2:]...)
}

// flowPart is a time over which a power is known.
type flowPart struct {
	from  time.Time
	to    time.Time
	watts float64
}

// pieces computes what is known of the power between two instants from the samples. The first
// sample after the beginning of a transaction counts for the time since then.
func (m *meter) pieces(x conditions) []flowPart {
	var all []flowPart
	for i, f := range m.Flows {
		var before flow
		from := f.At.Add(-flowGap)
		known := i > 0 && !m.Flows[i-1].At.Before(from)
		if known {
			before = m.Flows[i-1]
			from = before.At
		}

		if k, ok := m.markBefore(f.At); ok && k.Begin && k.At.After(from) {
			known = true
			from = k.At
			before = f
		}

		switch {
		case !known || !from.Before(f.At):
		case f.Interval:
			all = append(all, flowPart{from, f.At, f.Wh / f.At.Sub(from).Hours()})
		default:
			all = append(all, meanPower(from, f.At, before.Watts, f.Watts, x)...)
		}
	}

	return all
}

// meanPower returns the power between two samples: their mean, unless the plan says when it
// changed from one to the other.
func meanPower(
	from, to time.Time,
	before, after float64,
	x conditions,
) []flowPart {
	low, high := min(before, after), max(before, after)
	mean := []flowPart{{from, to, (before + after) / 2}}
	on, off := false, false

	var all []flowPart
	for _, s := range x.allowed {
		if s.To.Before(from) || s.From.After(to) {
			continue
		}

		watts := high
		if s.Limit == 0 {
			watts = low
		}

		on = on || s.Limit > 0
		off = off || s.Limit == 0
		if a, b := flex.Later(from, s.From), flex.Earlier(to, s.To); a.Before(b) {
			all = append(all, flowPart{a, b, watts})
		}
	}

	_, covered := energyAndCoverage(all, from, to)
	if on && off && covered == to.Sub(from) {
		return all
	}

	return mean
}

// markBefore returns the last mark that is not after the instant.
func (m *meter) markBefore(at time.Time) (mark, bool) {
	i := m.index(at.Add(1))
	if i == 0 {
		return mark{}, false
	}

	return m.Marks[i-1], true
}

// energyAndCoverage returns the energy of the pieces from one instant to another, in Wh, and how much
// of that time they cover.
func energyAndCoverage(
	all []flowPart,
	from, to time.Time,
) (float64, time.Duration) {
	var (
		wh      float64
		covered time.Duration
	)

	for _, p := range all {
		a, b := flex.Later(from, p.from), flex.Earlier(to, p.to)
		if a.Before(b) {
			wh += p.watts * b.Sub(a).Hours()
			covered += b.Sub(a)
		}
	}

	return wh, covered
}
