package ocppserver

import (
	"math"
	"strconv"
	"strings"
	"time"

	"flexd/internal/flex"
)

const (
	// meterGap is the longest time between two marks of a running register over which the
	// energy is taken to have flowed evenly.
	meterGap = flex.HalfHour
	// meterIdle is the longest time over which a register that stood still is told as
	// half-hours without energy.
	meterIdle = 48 * time.Hour
	// registerEvery is how far apart marks of a register are passed on.
	registerEvery = 5 * time.Minute
)

// mark is a register as it was read once, in Wh.
type mark struct {
	at time.Time
	wh float64
}

// halfHour is the energy of one settlement period, in Wh.
type halfHour struct {
	flex.Period
	wh float64
}

// meter follows a connector's energy register and cuts it at the half-hours.
type meter struct {
	last    mark
	partial float64   // Wh in the half-hour of last, up to it
	whole   bool      // partial counts from the half-hour's start
	passed  time.Time // the last mark that was passed on as a register
}

// read takes the next mark. It returns the half-hours that are now complete, and whether
// the mark is to be passed on as a register. A mark that is not newer than the last says
// nothing; a register that fell begins anew.
func (m *meter) read(k mark) (done []halfHour, pass bool) {
	if !m.last.at.IsZero() && !k.at.After(m.last.at) {
		return nil, false
	}

	done = m.cut(k)
	m.last = k
	pass = k.at.Sub(m.passed) >= registerEvery
	if pass {
		m.passed = k.at
	}

	return done, pass
}

func (m *meter) cut(k mark) (done []halfHour) {
	span, drawn := flex.Span{From: m.last.at, To: k.at}, k.wh-m.last.wh
	p := flex.PeriodAt(k.at)
	crosses := !m.last.at.IsZero() && flex.PeriodAt(m.last.at) != p

	switch {
	case m.last.at.IsZero(), drawn < 0, crosses && drawn > 0 && span.Len() > meterGap, span.Len() > meterIdle:
		m.partial, m.whole = 0, k.at.Equal(p.Start())
		return nil
	case !crosses:
		m.partial += drawn
		return nil
	}

	at := span.From
	for q := flex.PeriodAt(at); q != p; q = q.Add(1) {
		wh := m.partial + drawn*float64(q.End().Sub(at))/float64(span.Len())
		if m.whole {
			done = append(done, halfHour{q, math.Round(wh)})
		}

		at = q.End()
		m.partial = 0
		m.whole = true
	}

	m.partial = drawn * float64(k.at.Sub(at)) / float64(span.Len())
	return done
}

// registerOf finds the connector's energy register in a sample, in Wh.
func registerOf(samples []sampled) (wh float64, ok bool) {
	for _, s := range samples {
		if s.Measurand != "" && s.Measurand != "Energy.Active.Import.Register" || s.Phase != "" ||
			s.Format == "SignedData" || s.Location != "" && s.Location != "Outlet" {
			continue
		}

		v, err := strconv.ParseFloat(strings.TrimSpace(s.Value), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			continue
		}

		switch s.Unit {
		case "", "Wh":
			return v, true
		case "kWh":
			return v * 1000, true
		}
	}

	return 0, false
}
