package control

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/ramp"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// DefaultRamp is how much the planned power of all that one flexd steers may move in a minute: 50 MW. A fleet
// that is not larger is left as it is.
const DefaultRamp flex.Watts = 50_000_000

// FollowFleet looks how large the fleet is that may start at once, all organisations', and sets the time
// that starts are spread over. Cars that are plugged in from then on are planned with it.
func (d *Service) FollowFleet(ctx context.Context) (worker.Report, error) {
	if d.Ramp <= 0 {
		return worker.Report{}, nil
	}

	var f ramp.Fleet
	err := d.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		f, err = all.SteeredFleet(ctx)
		return err
	})
	if err != nil {
		return worker.Report{}, err
	}

	spread, kept := ramp.Spread(f, d.Ramp)
	before := time.Duration(d.spread.Swap(int64(spread)))
	note := ""
	if spread > 0 {
		note = fmt.Sprintf(
			"%s kW of %d assets, spread over %v",
			kw(f.Power),
			f.Cars,
			spread,
		)
	}

	if !kept && before != spread {
		d.log().WarnContext(
			ctx,
			"the ramp cannot be kept: it is less than a thirtieth of the fleet a minute",
			"ramp_kw",
			kw(d.Ramp),
			"fleet_kw",
			kw(f.Power),
		)
	}

	return worker.Report{Note: note}, nil
}

// rampOf is how an asset's plan is spread: as its session began, so that no plan of it changes because the fleet
// grew. What changes without an event of its own changes at its own half-hour.
func (d *Service) rampOf(c *store.Charging, trigger Trigger) *store.Ramp {
	if c.Open() && c.Current.Generation > 0 {
		return kept(c.Current.From.Ramp, trigger != ByEvent)
	}

	spread := time.Duration(d.spread.Load())
	if spread <= 0 {
		return nil
	}

	return &store.Ramp{
		Offset: ramp.Offset(c.Asset.ID, spread),
		Spread: spread,
	}
}

// shape sets what power a plan is limited to, and how it is spread if the asset is alone: what shares headroom
// gives way to others in its own way.
func (d *Service) shape(
	e *store.Effective,
	c *store.Charging,
	why change,
	u *underCaps,
) {
	limited := u.headroom != nil || u.site != nil
	limitByRate(e, limited)
	if u.site != nil {
		nameable(e)
	}
	if !limited {
		e.Ramp = d.rampOf(c, why.trigger)
	}
}

// kept is a ramp under which what an asset does goes on until its own next half-hour, or not.
func kept(r *store.Ramp, goesOn bool) *store.Ramp {
	if r == nil {
		return nil
	}
	return &store.Ramp{
		Offset: r.Offset,
		Spread: r.Spread,
		Kept:   goesOn,
	}
}

// spreadOut is a problem under a ramp.
func spreadOut(p charge.Problem, r *store.Ramp) charge.Problem {
	if r == nil {
		return p
	}

	p = ramp.Apply(p, r.Offset, r.Spread)
	if r.Kept {
		p = ramp.Keep(p, r.Offset)
	}

	return p
}

// limited is a problem under the caps that a schedule was made under. Without any it keeps the time that a ramp
// leaves to others.
func limited(
	p charge.Problem,
	e *store.Effective,
	caps []flex.Step,
) charge.Problem {
	if len(caps) > 0 || e.Ramp == nil {
		p.Limits = caps
	}
	return p
}

// sayRamp gives the periods that a ramp decided that reason, in an explanation of the schedule's plan.
func (x *Explanation) sayRamp() {
	if x.From.Ramp == nil {
		return
	}

	for i := range x.Plan.Periods {
		q := &x.Plan.Periods[i]
		if q.Reason == charge.CapClosed && len(x.Limits) == 0 && len(x.From.Closed) == 0 {
			q.Reason = charge.LeftToOthers
		} else if q.Reason == charge.Now && x.From.ChargeNow.Empty() {
			q.Reason = charge.GoesOn
		}
	}
}

// spreadSentence says what a ramp does to a schedule; nothing if there is none.
func spreadSentence(r *store.Ramp) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("Its half-hours begin %s later than the market's, so that the fleet does not begin and end in one second: each car has its own time within %d minutes. ",
		r.Offset, int(r.Spread.Minutes()))
}

// rampInputs lists how a plan is spread.
func rampInputs(e *store.Effective) []Input {
	if e.Ramp == nil {
		return nil
	}
	return []Input{{
		Name:   "begins_later_s",
		Value:  strconv.Itoa(int(e.Ramp.Offset.Seconds())),
		Origin: "operator",
	}}
}
