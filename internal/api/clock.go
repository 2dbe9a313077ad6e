package api

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"flexd/internal/flex"
	"flexd/internal/tariff"
	"flexd/internal/wire"
)

// Clock turns an organisation's sandbox clock. Turning it runs every job that is due on
// the way, which is beyond any one service.
type Clock interface {
	// Clock returns the organisation's time and whether it has taken the clock into its
	// own hands.
	Clock(ctx context.Context, org flex.OrgID) (
		now time.Time,
		held bool,
		err error,
	)
	// Advance turns the clock forward to the instant and returns when all that was due on
	// the way is done.
	Advance(ctx context.Context, org flex.OrgID, to time.Time) error
}

// clock answers GET /sandbox/clock, which is no path elsewhere.
func (s *Server) clock(r *request) (answer, error) {
	if s.Environment != flex.Sandbox {
		return answer{}, flex.Fail(flex.NotFound, "Not Found")
	}
	now, held, err := s.Clock.Clock(r.Context(), r.who.Org)

	return ok(wire.ClockResponse{Now: wire.At(now), Held: held}), err
}

// setClock answers POST /sandbox/clock, likewise.
func (s *Server) setClock(r *request) (answer, error) {
	if s.Environment != flex.Sandbox {
		return answer{}, flex.Fail(flex.NotFound, "Not Found")
	}

	in := body[wire.ClockRequest](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	now, _, err := s.Clock.Clock(r.Context(), r.who.Org)
	if err != nil {
		return answer{}, err
	}

	to, err := turnTo(in, now)
	if err != nil {
		return answer{}, err
	}

	to, again, err := r.sameTarget(to, now)
	if err != nil {
		return answer{}, err
	}

	if again && !to.After(now) { // the first run got there
		return s.clock(r)
	}

	if err := s.Clock.Advance(r.Context(), r.who.Org, to); err != nil {
		return answer{}, err
	}

	return s.clock(r)
}

// sameTarget is the instant that a request under a key advances the clock to. Sent again, as
// it did not come to an end, it goes on to that of its first run: its duration once more, from
// where the clock is by now, would be too far.
func (r *request) sameTarget(to, now time.Time) (target time.Time, again bool, err error) {
	if r.key == nil {
		return to, false, nil
	}

	noted, bad := strconv.ParseInt(string(r.key.StoredNote()), 10, 64)
	if bad == nil {
		return time.UnixMicro(noted).UTC(), true, nil
	}

	if to.After(now) { // else it is refused, or nothing to do
		err = r.key.StoreNote(r.Context(), strconv.AppendInt(nil, to.UnixMicro(), 10))
	}

	return to, false, err
}

// turnTo returns the instant that a request asks the clock to be turned to from now.
func turnTo(in wire.ClockRequest, now time.Time) (time.Time, error) {
	given := 0
	for _, there := range []bool{
		!in.Now.IsZero(),
		in.Advance != "",
		in.LocalTime != nil,
	} {
		if there {
			given++
		}
	}

	if given != 1 {
		return now, fault(
			"body",
			"value_error",
			`give one of "now", an instant with its offset, "advance", a duration such as "PT8H", and "local_time", a time of day in London such as "18:00"`,
		)
	}

	if in.LocalTime != nil {
		return tariff.NextTimeOfDay(
			now,
			flex.WallTime(*in.LocalTime),
			flex.London,
		), nil
	}

	if in.Advance == "" {
		return in.Now.Time, nil
	}

	d, good := isoDuration(in.Advance)
	if !good {
		return now, &flex.Error{
			Kind: flex.Invalid,
			Faults: []flex.Fault{{
				Loc: []string{"body", "advance"}, Type: "value_error.duration",
				Msg: "not a duration of the form P1DT8H30M15S; weeks, months and years are not taken",
			}},
		}
	}

	return now.Add(d), nil
}

var durationForm = regexp.MustCompile(
	`^P(?:(\d{1,3})D)?(T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7})S)?)?$`,
)

// isoDuration reads the days, hours, minutes and seconds of an ISO 8601 duration.
func isoDuration(s string) (time.Duration, bool) {
	m := durationForm.FindStringSubmatch(s)
	if m == nil || s == "P" || m[2] == "T" {
		return 0, false
	}

	var d time.Duration
	for i, unit := range map[int]time.Duration{
		1: 24 * time.Hour,
		3: time.Hour,
		4: time.Minute,
		5: time.Second,
	} {
		if m[i] != "" {
			n, err := strconv.Atoi(m[i])
			if err != nil {
				return 0, false
			}

			d += time.Duration(n) * unit
		}
	}

	return d, true
}
