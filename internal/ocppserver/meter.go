package ocppserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

const (
	// meterWindow is how long samples are stored. Within it, samples may arrive out of order.
	meterWindow = 24 * time.Hour
	// meterGap is the longest time between two samples over which even power is assumed, if
	// nothing more is known.
	meterGap = flex.HalfHour
	// meterIdle is the longest time over which an unchanged register counts as half-hours
	// without energy.
	meterIdle = 7 * 24 * time.Hour
	// recentTime is how long every sample is stored, so that the present power can be computed.
	recentTime = 5 * time.Minute
	// registerEvery is the least time between two registers that are passed on.
	registerEvery = 5 * time.Minute
	// registerMax is the highest register that is accepted, in Wh.
	registerMax = 1e11
	// anyPower bounds the power of a charger whose rating flexd does not know, in W.
	anyPower = 400_000
	// excess is the factor by which the energy between two samples may exceed power times time.
	excess = 1.1
	// clockSlack is the largest assumed error of the time between two samples' stamps.
	clockSlack = 2 * time.Second
	// doubtfulMax is the most stored samples that contradict those before them.
	doubtfulMax = 8
)

// mark is one reading of a register, in Wh.
type mark struct {
	At    time.Time `json:"at"`
	Wh    float64   `json:"wh"`
	Step  float64   `json:"step"`            // of its last digit
	Begin bool      `json:"begin,omitempty"` // a transaction's first
	End   bool      `json:"end,omitempty"`   // a transaction's last
	// the register restarted before it
	Restarted bool `json:"anew,omitempty"`
}

// tolerance is the difference up to which two readings count as equal: meterStart and meterStop
// are whole Wh, while samples have decimals.
func tolerance(a, b mark) float64 { return max(1, a.Step, b.Step) }

// meter collects a connector's energy samples and divides the energy into half-hours. Samples may
// come in any order. The zero value has no samples.
type meter struct {
	// by time, no two at one instant
	Marks []mark `json:"marks,omitempty"`
	Flows []flow `json:"flows,omitempty"` // by time
	// marks that contradict the others, in order of arrival
	Doubtful []mark `json:"doubtful,omitempty"`
	// rank of the source of the marks
	Rank       int  `json:"rank,omitempty"`
	PerSession bool `json:"per_session,omitempty"`
	// half-hours that were passed on, in Wh, by their start
	Done map[int64]float64 `json:"done,omitempty"`
	// the last register that was passed on
	Passed mark `json:"passed,omitzero"`
	// half-hours that are not passed on, and the reason
	Held map[int64]string `json:"held,omitempty"`

	dirty bool      // samples came since the half-hours were last computed
	since time.Time // from here on half-hours may have changed
}

// conditions are the known facts about a connector other than its samples.
type conditions struct {
	// the connector's rated power in W; anyPower if it is not known
	power   float64
	allowed []flex.Step // the limits that it was given, without a gap
	idle    bool        // no transaction runs now
	now     time.Time
}

// add adds a sample. If the sample is not used, it returns the reason.
func (m *meter) add(s sample, limit float64) string {
	if s.Quantity == power && s.Value > limit*excess {
		return fmt.Sprintf(
			"a power of %.0f W is more than the charger's %.0f W",
			s.Value,
			limit,
		)
	}

	if s.Quantity != register {
		m.addFlow(s)
		return ""
	}

	if s.Value == math.MaxInt32 || s.Value == math.MaxUint32 {
		return "the register is what a meter shows that cannot be read"
	}

	if !m.usesSource(s.Rank) {
		return ""
	}

	k := mark{
		At:    s.At,
		Wh:    s.Value,
		Step:  s.Step,
		Begin: s.Begin,
		End:   s.End,
	}

	var reason string
	if !m.addMark(k, limit) {
		reason = fmt.Sprintf(
			"a register of %.3f kWh contradicts those before and after it",
			k.Wh/1000,
		)
	}

	for m.retry(limit) {
	}

	m.trim()

	return reason
}

// usesSource reports whether a source's readings are used. A source of a lower number is better: it
// replaces the current one, and its marks.
func (m *meter) usesSource(rank int) bool {
	if rank == rankSession {
		return true
	}
	if len(m.Marks) == 0 {
		m.Rank = rank
	}
	if rank < m.Rank {
		m.Marks = nil
		m.Doubtful = nil
		m.Rank = rank
	}

	return rank == m.Rank
}

// addMark inserts a mark in order of time. One that contradicts the others is stored as doubtful;
// then it returns false.
func (m *meter) addMark(k mark, power float64) bool {
	i, at := slices.BinarySearchFunc(m.Marks, k, func(a, b mark) int {
		return a.At.Compare(b.At)
	})
	if at {
		return m.merge(i, k)
	}

	if m.begins(i, k, power) {
		return true
	}

	if m.fits(i, k, power) {
		m.insert(i, k)
		if k.Begin {
			m.PerSession = k.Wh == 0
		}
		return true
	}

	if m.confirms(k, power) {
		return true
	}

	m.Doubtful = append(m.Doubtful, k)
	if len(m.Doubtful) > doubtfulMax {
		m.Doubtful = m.Doubtful[1:]
	}

	return false
}

// merge combines two marks of the same instant.
func (m *meter) merge(i int, k mark) bool {
	old := &m.Marks[i]
	if math.Abs(old.Wh-k.Wh) > tolerance(*old, k) {
		return false
	}
	if k.Step < old.Step {
		old.Wh = k.Wh
		old.Step = k.Step
	}

	old.Begin = old.Begin || k.Begin
	old.End = old.End || k.End
	m.touch(m.Marks[max(0, i-1)].At)

	return true
}

// touch notes that half-hours from an instant on may have changed.
func (m *meter) touch(at time.Time) {
	if !m.dirty || at.Before(m.since) {
		m.since = at
	}
	m.dirty = true
}

func (m *meter) insert(i int, k mark) {
	m.Marks = slices.Insert(m.Marks, i, k)
	m.touch(m.Marks[max(0, i-1)].At)
	// A doubtful mark that is not later than a consistent one was wrong.
	m.Doubtful = slices.DeleteFunc(m.Doubtful, func(d mark) bool {
		return !d.At.After(k.At)
	})
}

// fits reports whether a mark is consistent with the marks on both sides of place i.
func (m *meter) fits(i int, k mark, power float64) bool {
	if i > 0 && !possible(m.Marks[i-1], k, power) {
		return false
	}
	return m.fitsBefore(i, k, power)
}

// fitsBefore reports whether a mark is consistent with the i-th one after it.
func (m *meter) fitsBefore(i int, k mark, power float64) bool {
	return i == len(m.Marks) || m.Marks[i].Restarted ||
		possible(k, m.Marks[i], power)
}

// possible reports whether a register can have changed from one mark to the other: it must not
// fall, nor rise by more than power times time.
func possible(a, b mark, power float64) bool {
	energy := b.Wh - a.Wh
	span := b.At.Sub(a.At) + clockSlack
	slack := tolerance(a, b)

	return energy >= -slack && energy <= power*span.Hours()*excess+slack
}

// begins reports whether a mark confirms that the register restarted with a transaction. The
// transaction's first mark was doubtful until then; now both marks are inserted.
func (m *meter) begins(i int, k mark, power float64) bool {
	for j, d := range m.Doubtful {
		between := i > 0 && !m.Marks[i-1].At.Before(d.At)
		agree := d.Begin && d.At.Before(k.At) && possible(d, k, power)
		if !agree || between || !m.fitsBefore(i, k, power) {
			continue
		}

		m.Doubtful = slices.Delete(m.Doubtful, j, j+1)
		d.Restarted = true
		m.PerSession = d.Wh == 0
		m.insert(i, d)
		m.insert(i+1, k)

		return true
	}

	return false
}

// confirms reports whether an earlier doubtful mark agrees with this one. Then the two outweigh the
// marks that they contradict: either a single mark next to them was wrong, or the register
// restarted. Zeros confirm nothing, because unreadable meters report zeros too.
func (m *meter) confirms(k mark, power float64) bool {
	j := slices.IndexFunc(m.Doubtful, func(d mark) bool {
		agree := d.At.Before(k.At) && possible(d, k, power) ||
			k.At.Before(d.At) && possible(k, d, power)
		return agree && d.Wh > 0 && k.Wh > 0
	})
	if j < 0 {
		return false
	}

	first, second := m.Doubtful[j], k
	if second.At.Before(first.At) {
		first, second = second, first
	}

	m.Doubtful = slices.Delete(m.Doubtful, j, j+1)
	if m.replace(first, second, power) {
		return true
	}

	i := m.index(first.At)
	if i < len(m.Marks) && m.Marks[i].At.Before(second.At) {
		return false // a mark lies between them: neither is trusted
	}

	first.Restarted = i > 0
	if i < len(m.Marks) && !possible(second, m.Marks[i], power) {
		m.Marks[i].Restarted = true
	}

	m.insert(i, first)
	m.insert(i+1, second)

	return true
}

// replace tries to replace one mark, before or after two others, by these two.
func (m *meter) replace(first, second mark, power float64) bool {
	i := m.index(first.At)
	for _, wrong := range []int{i - 1, i} {
		if wrong < 0 || wrong >= len(m.Marks) {
			continue
		}
		if m.Marks[wrong].Begin && len(m.Marks) > 1 {
			continue
		}

		without := meter{Marks: slices.Delete(
			slices.Clone(m.Marks),
			wrong,
			wrong+1,
		)}

		j := without.index(first.At)
		if !without.fits(j, first, power) {
			continue
		}

		without.insert(j, first)
		if without.fits(j+1, second, power) {
			without.insert(j+1, second)
			m.Marks = without.Marks
			m.touch(m.Marks[max(0, j-1)].At)

			return true
		}
	}

	return false
}

// index returns where a mark of the instant belongs.
func (m *meter) index(at time.Time) int {
	i, _ := slices.BinarySearchFunc(m.Marks, at, func(a mark, at time.Time) int {
		return a.At.Compare(at)
	})
	return i
}

// retry inserts a doubtful mark that has become consistent. It reports whether there was one.
func (m *meter) retry(power float64) bool {
	for j, d := range m.Doubtful {
		i := m.index(d.At)
		if i < len(m.Marks) && m.Marks[i].At.Equal(d.At) ||
			!m.fits(i, d, power) {
			continue
		}

		m.Doubtful = slices.Delete(m.Doubtful, j, j+1)
		m.insert(i, d)

		return true
	}

	return false
}

// trim deletes marks before the window. It also deletes those between two others of the same
// half-hour, because only marks near its edges matter. The last mark before the window stays, since
// the register may not change for longer than the window.
func (m *meter) trim() {
	if len(m.Marks) == 0 {
		return
	}

	from := m.Marks[len(m.Marks)-1].At.Add(-meterWindow)
	if i := m.index(from); i > 1 {
		m.Marks = slices.Delete(m.Marks, 0, i-1)
	}

	for i := len(m.Marks) - 2; i > 0; i-- {
		k := m.Marks[i]
		p := flex.PeriodAt(k.At)
		inside := flex.PeriodAt(m.Marks[i-1].At) == p &&
			flex.PeriodAt(m.Marks[i+1].At) == p
		recent := k.At.After(m.Marks[len(m.Marks)-1].At.Add(-recentTime))
		plain := !k.Begin && !k.End && !k.Restarted && !recent
		if inside && plain {
			m.Marks = slices.Delete(m.Marks, i, i+1)
		}
	}

	oldest := m.Marks[0].At.Add(-flex.HalfHour).Unix()
	maps.DeleteFunc(m.Done, func(at int64, _ float64) bool {
		return at < oldest
	})
	maps.DeleteFunc(m.Held, func(at int64, _ string) bool {
		return at < oldest
	})
}
