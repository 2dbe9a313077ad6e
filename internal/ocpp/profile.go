package ocpp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// StackLevel is the level of every profile; a profile replaces the one before it on the
// same level.
const StackLevel = 1100

// MaxPeriods is the number of periods that a profile may have.
const MaxPeriods = 1024

// workedInstant is how the interface's worked payload writes an instant in UTC: with an
// offset, not with Z.
const workedInstant = "2006-01-02T15:04:05-07:00"

// Profile is a charging profile of the kind that flexd pushes: TxProfile, Absolute, in
// watts.
type Profile struct {
	ID int32 // the same for all profiles of an asset, from 1
	// without a gap, whole seconds; a limit below zero has the car discharge. Two neighbours have the same limit only where
	// signals of a heat pump tell them apart.
	Steps []flex.Step
	// how many phases each period is for; 0 is written as 1
	Phases int
}

// ProfileID returns the number that stands for an asset in OCPP, which has no room for
// an id: 31 bits of a hash, never 0.
func ProfileID(asset flex.AssetID) int32 {
	h := fnv.New64a()
	h.Write(asset.Bytes())
	return max(1, int32(binary.BigEndian.Uint32(h.Sum(nil))&math.MaxInt32))
}

// New returns the profile of an asset's schedule. Steps must follow each other without
// a gap and start and end on whole seconds; neighbours with the same limit become one.
func New(asset flex.AssetID, steps []flex.Step) (Profile, error) {
	for i, s := range steps {
		if s.Limit < 0 {
			return Profile{}, fmt.Errorf(
				"step %d has the negative limit %d W",
				i,
				s.Limit,
			)
		}
	}

	return FromLimits(asset, steps)
}

// NewDischarging returns the profile of a schedule by which a car gives energy back. What it gives lies within the
// time that the steps leave closed; there the limit is below zero. OCPP 1.6 has no such limits: it is for what says
// that it takes them.
func NewDischarging(
	asset flex.AssetID,
	steps, discharges []flex.Step,
) (Profile, error) {
	for _, s := range steps {
		for _, g := range discharges {
			if s.Limit > 0 && !g.Meet(s.Span).Empty() || g.Limit < 0 {
				return Profile{}, fmt.Errorf(
					"at %v it would take and give",
					g.From,
				)
			}
		}
	}

	return FromLimits(asset, flex.WithDischarges(steps, discharges))
}

// NewSteered returns the profile of a heat pump's schedule, of which each step has a signal of its own: neighbours with
// the same limit stay apart, as what steers it may change where the limit does not.
func NewSteered(
	asset flex.AssetID,
	steps []flex.Step,
	h *flex.HeatSignals,
) (Profile, error) {
	if len(h.Signals) != len(steps) {
		return Profile{}, fmt.Errorf("%d signals of %d steps", len(h.Signals), len(steps))
	}

	return profileOf(asset, steps, func(flex.Step, flex.Step) bool { return false })
}

// FromLimits returns the profile of limits as flexd shows them, of which those below zero have the car discharge.
func FromLimits(asset flex.AssetID, steps []flex.Step) (Profile, error) {
	return profileOf(
		asset,
		steps,
		func(a, b flex.Step) bool { return a.Limit == b.Limit },
	)
}

// profileOf returns the profile of steps, of which two neighbours become one where they are alike.
func profileOf(
	asset flex.AssetID,
	steps []flex.Step,
	alike func(a, b flex.Step) bool,
) (Profile, error) {
	p := Profile{ID: ProfileID(asset)}

	if len(steps) == 0 {
		return Profile{}, errors.New("a charging profile needs at least one step")
	}

	for i, s := range steps {
		if s.Empty() {
			return Profile{}, fmt.Errorf("step %d is empty", i)
		}

		if s.From.Nanosecond() != 0 || s.To.Nanosecond() != 0 {
			return Profile{}, fmt.Errorf("step %d is cut inside a second", i)
		}

		if i > 0 && !s.From.Equal(steps[i-1].To) {
			return Profile{}, fmt.Errorf(
				"step %d does not start where the one before it ends",
				i,
			)
		}

		s.From = s.From.UTC()
		s.To = s.To.UTC()

		if n := len(p.Steps); n > 0 && alike(p.Steps[n-1], s) {
			p.Steps[n-1].To = s.To
		} else {
			p.Steps = append(p.Steps, s)
		}
	}

	if len(p.Steps) > MaxPeriods {
		return Profile{}, fmt.Errorf(
			"a charging profile of %d periods, more than %d",
			len(p.Steps),
			MaxPeriods,
		)
	}

	return p, nil
}

// Span returns the time that the profile rules over, empty if it has no steps.
func (p Profile) Span() flex.Span {
	if len(p.Steps) == 0 {
		return flex.Span{}
	}
	return flex.Span{
		From: p.Steps[0].From,
		To:   p.Steps[len(p.Steps)-1].To,
	}
}

// LimitAt returns the limit at the instant: flex.NoLimit before the profile starts and
// after it ends.
func (p Profile) LimitAt(at time.Time) flex.Watts {
	for _, s := range p.Steps {
		if s.Contains(at) {
			return s.Limit
		}
	}

	return flex.NoLimit
}

// Form is how an endpoint takes a profile.
type Form struct {
	Bare bool // the profile alone, without connectorId around it
	// as the interface's worked payload: null for members without a value, +00:00 for Z
	Nulls bool
	// what steers a heat pump in each step, beside the profile; nil for all else
	Heat *flex.HeatSignals
}

// Message writes the profile as a SetChargingProfile request of OCPP 1.6 for the connector
// (0 is the whole charge point), or as the form asks for it.
func (p Profile) Message(connector int, form Form) []byte {
	if form.Bare {
		return p.appendHeat(p.appendProfile(nil, form.Nulls), form.Heat)
	}

	b := fmt.Appendf(nil, `{"connectorId":%d,"csChargingProfiles":`, connector)
	b = append(p.appendProfile(b, form.Nulls), '}')

	return p.appendHeat(b, form.Heat)
}

// appendHeat adds to a message what steers a heat pump, as its last member. A charger's message has none.
func (p Profile) appendHeat(b []byte, h *flex.HeatSignals) []byte {
	if h == nil {
		return b
	}

	name := "offset_k"
	if h.Steering == flex.SteerSGReady {
		name = "sg_ready_state"
	}

	b = fmt.Appendf(b[:len(b)-1], `,"heat":{"steering":%q,"periods":[`, h.Steering)
	from := p.Span().From
	for i, s := range p.Steps {
		if i >= len(h.Signals) {
			break
		}
		if i > 0 {
			b = append(b, ',')
		}

		start := int64(s.From.Sub(from) / time.Second)
		b = fmt.Appendf(b, `{"startPeriod":%d,%q:%d}`, start, name, h.Signals[i])
	}

	return append(b, `]}}`...)
}

// appendProfile writes the members in the order of the interface's worked payload. Those
// without a value are left out: OCPP's schema has no room for null. With nulls they are
// written as null, as the worked payload prints them.
func (p Profile) appendProfile(b []byte, nulls bool) []byte {
	transaction, recurrency := "", ""
	if nulls {
		transaction = `"transactionId":null,`
		recurrency = `"recurrencyKind":null,"validFrom":null,"validTo":null,`
	}

	b = fmt.Appendf(b, `{"chargingProfileId":%d,%s"stackLevel":%d,`+
		`"chargingProfilePurpose":"TxProfile","chargingProfileKind":"Absolute",%s"chargingSchedule":`,
		p.ID, transaction, StackLevel, recurrency)

	return append(p.appendSchedule(b, nulls), '}')
}

func (p Profile) appendSchedule(b []byte, worked bool) []byte {
	span := p.Span()
	layout := time.RFC3339
	if worked {
		layout = workedInstant
	}

	b = fmt.Appendf(
		b,
		`{"duration":%d,"startSchedule":%q,"chargingRateUnit":"W","chargingSchedulePeriod":[`,
		int64(span.Len()/time.Second),
		span.From.UTC().Format(layout),
	)

	for i, s := range p.Steps {
		if i > 0 {
			b = append(b, ',')
		}

		b = append(b, `{"startPeriod":`...)
		b = strconv.AppendInt(b, int64(s.From.Sub(span.From)/time.Second), 10)
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, int64(s.Limit), 10)
		// one decimal is OCPP's finest; ours are whole watts
		b = append(b, `.0,"numberPhases":`...)
		b = strconv.AppendInt(b, int64(max(1, p.Phases)), 10)
		b = append(b, '}')
	}

	return append(b, `],"minChargingRate":0.0}`...)
}
