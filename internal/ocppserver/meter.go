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
	// meterWindow is how long samples are kept, so that later ones may come before them.
	meterWindow = 24 * time.Hour
	// meterGap is the longest time between two samples over which the energy is taken to
	// have flowed evenly, if nothing says better.
	meterGap = flex.HalfHour
	// meterIdle is the longest time over which a register that did not move makes half-hours
	// without energy.
	meterIdle = 7 * 24 * time.Hour
	// recentTime is how long every sample is kept, to know the power by.
	recentTime = 5 * time.Minute
	// registerEvery is how far apart registers are passed on.
	registerEvery = 5 * time.Minute
	// registerMax is the highest register that is read, in Wh.
	registerMax = 1e11
	// anyPower is the most that a charger gives whose power flexd does not know, in W.
	anyPower = 400_000
	// excess is how far the energy between two samples may lie above power times time.
	excess = 1.1
	// clockSlack is how far the stamps of two samples may be off between them.
	clockSlack = 2 * time.Second
	// doubtfulMax is how many samples are kept that contradict those before them.
	doubtfulMax = 8
)

// mark is a register as it was read once, in Wh.
type mark struct {
	At    time.Time `json:"at"`
	Wh    float64   `json:"wh"`
	Step  float64   `json:"step"`            // of its last digit
	Begin bool      `json:"begin,omitempty"` // a transaction's first
	End   bool      `json:"end,omitempty"`   // a transaction's last
	// the register restarted before it
	Restarted bool `json:"anew,omitempty"`
}

// tolerance is what two registers may differ by and mean the same: meterStart and meterStop
// are whole Wh where the others have decimals.
func tolerance(a, b mark) float64 { return max(1, a.Step, b.Step) }

// meter follows a connector's energy and cuts it at the half-hours. Samples may come in any
// order. The zero value knows nothing.
type meter struct {
	// by time, no two at one instant
	Marks []mark `json:"marks,omitempty"`
	Flows []flow `json:"flows,omitempty"` // by time
	// contradict the marks, in order of arrival
	Doubtful []mark `json:"doubtful,omitempty"`
	// of the source that the marks are of
	Rank       int  `json:"rank,omitempty"`
	PerSession bool `json:"per_session,omitempty"`
	// half-hours that were passed on, in Wh, by their start
	Done map[int64]float64 `json:"done,omitempty"`
	// the last register that was passed on
	Passed mark `json:"passed,omitzero"`
	// half-hours that are held back, and why
	Held map[int64]string `json:"held,omitempty"`

	dirty bool      // something came since the half-hours were last cut
	since time.Time // of it, the earliest that may change a half-hour
}

// conditions are what is known of a connector beside its samples.
type conditions struct {
	// the most that it gives, in W; anyPower if that is not known
	power   float64
	allowed []flex.Step // what it was allowed, without a gap
	idle    bool        // no transaction runs now
	now     time.Time
}

// add takes a sample. If it is kept back, why says what is wrong with it.
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

	if !m.ranked(s.Rank) {
		return ""
	}

	k := mark{
		At:    s.At,
		Wh:    s.Value,
		Step:  s.Step,
		Begin: s.Begin,
		End:   s.End,
	}

	var why string
	if !m.take(k, limit) {
		why = fmt.Sprintf(
			"a register of %.3f kWh contradicts those before and after it",
			k.Wh/1000,
		)
	}

	for m.retry(limit) {
	}

	m.trim()

	return why
}

// ranked reports whether a source is the one that is followed. A better one replaces it.
func (m *meter) ranked(rank int) bool {
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

// take puts a mark where it belongs, or keeps it among the doubtful ones.
func (m *meter) take(k mark, power float64) bool {
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

// merge joins two marks of one instant.
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

// touch notes that half-hours since an instant may be other than they were.
func (m *meter) touch(at time.Time) {
	if !m.dirty || at.Before(m.since) {
		m.since = at
	}
	m.dirty = true
}

func (m *meter) insert(i int, k mark) {
	m.Marks = slices.Insert(m.Marks, i, k)
	m.touch(m.Marks[max(0, i-1)].At)
	// What was doubted and is not later than a mark that fits was wrong.
	m.Doubtful = slices.DeleteFunc(m.Doubtful, func(d mark) bool {
		return !d.At.After(k.At)
	})
}

// fits reports whether a mark can stand before the i-th one.
func (m *meter) fits(i int, k mark, power float64) bool {
	if i > 0 && !possible(m.Marks[i-1], k, power) {
		return false
	}
	return m.fitsBefore(i, k, power)
}

// fitsBefore reports whether the i-th mark can come after a mark.
func (m *meter) fitsBefore(i int, k mark, power float64) bool {
	return i == len(m.Marks) || m.Marks[i].Restarted ||
		possible(k, m.Marks[i], power)
}

// possible reports whether a register can have gone from one mark to the other: it does not
// fall, and power times time bounds it.
func possible(a, b mark, power float64) bool {
	drawn := b.Wh - a.Wh
	span := b.At.Sub(a.At) + clockSlack
	slack := tolerance(a, b)

	return drawn >= -slack && drawn <= power*span.Hours()*excess+slack
}

// begins reports whether a mark shows that a register restarted with a transaction, as the
// transaction's first mark said. Both are then kept.
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

// confirms reports whether an earlier doubtful mark agrees with this one. Two against one:
// either a single mark beside them was wrong, or the register restarted. Zeros confirm
// nothing: a meter that cannot be read shows them too.
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
		return false // there is a mark between them: neither is right
	}

	first.Restarted = i > 0
	if i < len(m.Marks) && !possible(second, m.Marks[i], power) {
		m.Marks[i].Restarted = true
	}

	m.insert(i, first)
	m.insert(i+1, second)

	return true
}

// replace tries to put two marks in the place of the one before or after them.
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

// retry looks for a doubtful mark that fits by now. It reports whether there was one.
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

// trim forgets what is older than the window, and marks between others of the same
// half-hour, which change nothing at its edges. The last mark before the window stays: the
// register may stand still for longer.
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
