package ocppserver

import (
	"fmt"
	"math"
	"time"

	"flexd/internal/flex"
)

const (
	// settleTime is how long after a half-hour samples of it may still come, before a
	// connector without a transaction is taken to have drawn nothing more in it.
	settleTime = 2 * time.Minute
	// deadRegister is the energy that a register must not miss, by the power, in Wh.
	deadRegister = 100
	// fullUse is the share of what a plan allowed from which on all of it was used.
	fullUse = 0.9
)

// halfHour is the energy of one settlement period, in Wh; or why it is not reported.
type halfHour struct {
	flex.Period
	wh  float64
	why string
}

// portion is what is known of a part of a half-hour.
type portion struct {
	wh    float64
	to    time.Time // it ends
	known bool
	why   string // not, if that will not change by itself
}

// cut returns the half-hours whose energy became known or has changed, and those that are
// newly not reported.
func (m *meter) cut(x conditions) []halfHour {
	first, last, ok := m.extent()
	if !ok || !m.dirty && !x.idle {
		return nil
	}

	from := last
	if m.dirty {
		from = m.since
	}

	m.dirty = false
	first = flex.Later(first, from)
	v := view{x, m.pieces(x)}

	var all []halfHour
	for p := flex.PeriodAt(first); !flex.PeriodAt(last).Before(p); p = p.Add(1) {
		wh, known, reason := m.energy(p, v)
		start := p.Start().Unix()
		before, stored := m.Done[start]

		switch {
		case known && (!stored || math.Abs(before-wh) >= 1):
			m.note(start, wh)
			all = append(all, halfHour{Period: p, wh: wh})
		case !known && reason != "" && !stored && m.Held[start] != reason:
			m.holdBack(start, reason)
			all = append(all, halfHour{Period: p, why: reason})
		}
	}

	return all
}

// note records that a half-hour was reported.
func (m *meter) note(start int64, wh float64) {
	if m.Done == nil {
		m.Done = map[int64]float64{}
	}
	m.Done[start] = wh
	delete(m.Held, start)
}

// holdBack records why a half-hour is not reported.
func (m *meter) holdBack(start int64, reason string) {
	if m.Held == nil {
		m.Held = map[int64]string{}
	}
	m.Held[start] = reason
}

// extent returns the first and the last instant of which something is known.
func (m *meter) extent() (first, last time.Time, ok bool) {
	if n := len(m.Marks); n > 0 {
		first = m.Marks[0].At
		last = m.Marks[n-1].At
	}

	if n := len(m.Flows); n > 0 {
		if first.IsZero() || m.Flows[0].At.Before(first) {
			first = m.Flows[0].At
		}
		last = flex.Later(last, m.Flows[n-1].At)
	}

	return flex.Later(first, last.Add(-meterIdle-meterWindow)), last, !last.IsZero()
}

// energy returns a half-hour's energy in whole Wh, if all its parts are known.
func (m *meter) energy(
	p flex.Period,
	v view,
) (float64, bool, string) {
	var wh float64
	for at := p.Start(); at.Before(p.End()); {
		part := m.portion(at, p.End(), v)
		if !part.known {
			return 0, false, part.why
		}
		wh += part.wh
		at = part.to
	}

	wh = math.Round(wh)
	most := v.power*flex.HalfHour.Hours()*excess + m.resolution()
	if wh > most {
		return 0, false, fmt.Sprintf(
			"%.3f kWh in a half-hour is more than the charger's %.3f kW give",
			wh/1000,
			v.power/1000,
		)
	}

	return wh, true, ""
}

// resolution is the last digit of the registers, in Wh.
func (m *meter) resolution() float64 {
	coarsest := 1.0
	for _, k := range m.Marks {
		coarsest = max(coarsest, k.Step)
	}

	return coarsest
}

// view is what a meter is cut by.
type view struct {
	conditions
	flows []flowPart
}

// portion returns what is known from an instant to the next mark or the half-hour's end.
func (m *meter) portion(from, end time.Time, v view) portion {
	i := m.index(from.Add(1))
	to := end
	if i < len(m.Marks) {
		to = flex.Earlier(end, m.Marks[i].At)
	}

	if i > 0 && i < len(m.Marks) {
		part := v.between(m.Marks[i-1], m.Marks[i], from, to)
		part.to = to

		return part
	}

	wh, covered := energyAndCoverage(v.flows, from, to)
	complete := covered >= to.Sub(from)
	if wh == 0 && !complete {
		complete = m.outside(i, end, v.conditions)
	}

	return portion{
		wh:    wh,
		to:    to,
		known: complete,
	}
}

// outside reports whether the time before the i-th mark, which is the first or after the last,
// is before the first transaction, or after the last one in a half-hour that is over.
func (m *meter) outside(i int, end time.Time, x conditions) bool {
	if i < len(m.Marks) {
		return m.Marks[i].Begin && m.Marks[i].At.Before(end)
	}
	if i == 0 || !m.Marks[i-1].End {
		return false
	}

	same := m.Marks[i-1].At.After(end.Add(-flex.HalfHour))

	return same && x.idle && !x.now.Before(end.Add(settleTime))
}

// between divides the energy between two marks: by samples of the power, else by what the plan
// allowed, else evenly if the marks are close to each other.
func (v view) between(a, b mark, from, to time.Time) portion {
	energy := max(0, b.Wh-a.Wh)
	flowEnergy, _ := energyAndCoverage(v.flows, a.At, b.At)
	isIdle := energy <= tolerance(a, b)

	if b.Restarted || isIdle && flowEnergy > deadRegister {
		return v.flowing(a, b, from, to)
	}

	span := b.At.Sub(a.At)
	evenly := portion{
		wh:    energy * float64(to.Sub(from)) / float64(span),
		known: true,
	}

	if isIdle && span <= meterIdle {
		return evenly
	}

	part, _ := energyAndCoverage(v.flows, from, to)
	if flowEnergy > 0 {
		return portion{wh: energy * part / flowEnergy, known: true}
	}

	if share, ok := v.share(a, b, from, to); ok {
		return portion{wh: energy * share, known: true}
	}
	if span <= meterGap {
		return evenly
	}

	return portion{
		why: fmt.Sprintf("the register was read at %s and at %s, and nothing says when the %.3f kWh between them flowed",
			clockText(a.At), clockText(b.At), energy/1000),
	}
}

// flowing returns what is known without a register: from samples of the power, or because no
// transaction ran.
func (v view) flowing(a, b mark, from, to time.Time) portion {
	wh, covered := energyAndCoverage(v.flows, from, to)
	between := a.End && (b.Restarted || b.Begin) && b.At.Sub(a.At) <= meterIdle

	if covered >= to.Sub(from) || between {
		return portion{wh: wh, known: true}
	}

	return portion{why: "the register began anew at " + clockText(b.At)}
}

func clockText(at time.Time) string {
	return at.UTC().Format("2006-01-02T15:04:05Z")
}

// share returns the part of the energy between two marks that flowed in a time, if the charger
// used what it was allowed.
func (v view) share(a, b mark, from, to time.Time) (float64, bool) {
	all, covered := allowedEnergy(a.At, b.At, v.conditions)
	part, _ := allowedEnergy(from, to, v.conditions)
	energy := b.Wh - a.Wh
	used := energy >= all*fullUse && energy <= all*excess+tolerance(a, b)

	if covered < b.At.Sub(a.At) || all == 0 || !used {
		return 0, false
	}

	return part / all, true
}

// allowedEnergy returns the most that the plan allowed in a time, in Wh, and how much of that
// time it covers.
func allowedEnergy(
	from, to time.Time,
	x conditions,
) (float64, time.Duration) {
	var (
		wh      float64
		covered time.Duration
	)

	for _, s := range x.allowed {
		a, b := flex.Later(from, s.From), flex.Earlier(to, s.To)
		if a.Before(b) {
			wh += min(float64(s.Limit), x.power) * b.Sub(a).Hours()
			covered += b.Sub(a)
		}
	}

	return wh, covered
}
