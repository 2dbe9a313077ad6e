package ocpp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"flexd/internal/flex"
)

// MaxDuration is the longest profile that is read, in seconds.
const MaxDuration = 31 * 24 * 3600

// request is what of a SetChargingProfile request matters to a charger.
type request struct {
	Wrapped *profile `json:"csChargingProfiles"`
	profile
}

type profile struct {
	ID       *int32    `json:"chargingProfileId"`
	Kind     string    `json:"chargingProfileKind"`
	Schedule *schedule `json:"chargingSchedule"`
}

type schedule struct {
	Duration *int64    `json:"duration"`
	Start    time.Time `json:"startSchedule"`
	Unit     string    `json:"chargingRateUnit"`
	Periods  []period  `json:"chargingSchedulePeriod"`
}

type period struct {
	Start *int64   `json:"startPeriod"`
	Limit *float64 `json:"limit"`
}

// Parse reads a profile of the kind that New makes, wrapped or bare. A limit that is no
// whole number of watts is rounded down; a missing id is 0. A profile without an end,
// in amperes or relative to something is refused.
func Parse(b []byte) (Profile, error) {
	p, err := ParseDischarging(b)
	if err != nil {
		return Profile{}, err
	}

	for i, s := range p.Steps {
		if s.Limit < 0 {
			return Profile{}, fmt.Errorf(
				"period %d has the limit %d W",
				i,
				s.Limit,
			)
		}
	}

	return p, nil
}

// ParseDischarging is Parse for what takes limits below zero, by which a car discharges.
func ParseDischarging(b []byte) (Profile, error) {
	var r request
	if err := json.Unmarshal(b, &r); err != nil {
		return Profile{}, fmt.Errorf("reading a charging profile: %w", err)
	}

	p := r.profile
	if r.Wrapped != nil {
		p = *r.Wrapped
	}

	if p.Schedule == nil {
		return Profile{}, errors.New("the charging profile has no chargingSchedule")
	}

	if p.Kind != "Absolute" {
		return Profile{}, fmt.Errorf(
			"the charging profile is %q, not Absolute",
			p.Kind,
		)
	}

	steps, err := p.Schedule.steps()
	if err != nil {
		return Profile{}, err
	}

	out, err := FromLimits(flex.AssetID{}, steps)
	if err != nil {
		return Profile{}, err
	}

	out.ID = 0
	if p.ID != nil {
		out.ID = *p.ID
	}

	return out, nil
}

// steps are the schedule's periods with their ends.
func (s *schedule) steps() ([]flex.Step, error) {
	if err := s.check(); err != nil {
		return nil, err
	}

	end := s.Start.Add(time.Duration(*s.Duration) * time.Second)
	steps := make([]flex.Step, len(s.Periods))
	last := int64(-1)

	for i, p := range s.Periods {
		if err := p.check(i, last, *s.Duration); err != nil {
			return nil, err
		}

		last = *p.Start
		from := s.Start.Add(time.Duration(*p.Start) * time.Second)
		steps[i] = flex.Step{
			Span:  flex.Span{From: from, To: end},
			Limit: flex.Watts(math.Floor(*p.Limit)),
		}

		if i > 0 {
			steps[i-1].To = from
		}
	}

	return steps, nil
}

// check refuses a schedule that does not say when it starts and ends, or not in watts.
func (s *schedule) check() error {
	switch {
	case s.Unit != "W":
		return fmt.Errorf("the charging profile counts in %q, not in W", s.Unit)

	case s.Start.IsZero():
		return errors.New("the charging profile has no startSchedule")

	case s.Start.Year() < 1970 || s.Start.Year() > 9998: // what RFC 3339 can write in any zone
		return fmt.Errorf(
			"the charging profile starts in the year %d",
			s.Start.Year(),
		)

	case s.Duration == nil:
		return errors.New("the charging profile has no duration: it would never end")
	}

	if *s.Duration <= 0 || *s.Duration > MaxDuration {
		return fmt.Errorf(
			"the charging profile lasts %d s, not 1 to %d",
			*s.Duration,
			MaxDuration,
		)
	}

	if len(s.Periods) == 0 || len(s.Periods) > MaxPeriods {
		return fmt.Errorf(
			"the charging profile has %d periods, not 1 to %d",
			len(s.Periods),
			MaxPeriods,
		)
	}

	return nil
}

// check refuses a period that does not come after the last, both in seconds from the start.
func (p *period) check(i int, last, duration int64) error {
	switch {
	case p.Start == nil || p.Limit == nil:
		return fmt.Errorf("period %d lacks its startPeriod or its limit", i)

	case i == 0 && *p.Start != 0:
		return fmt.Errorf("the first period starts at %d s, not at 0", *p.Start)

	case *p.Start <= last || *p.Start >= duration:
		return fmt.Errorf(
			"period %d starts at %d s, out of order or after the end",
			i,
			*p.Start,
		)

	case *p.Limit < -1e9 || *p.Limit > 1e9:
		return fmt.Errorf("period %d has the limit %v W", i, *p.Limit)
	}

	return nil
}
