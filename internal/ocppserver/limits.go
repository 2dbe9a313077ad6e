package ocppserver

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
)

const (
	// limitsMax is how many profiles of a platform are kept for a charger.
	limitsMax = 64
	// levelsEvery is how often it is looked whether a charger has said its stack levels.
	levelsEvery = 100 * time.Millisecond
)

// platformProfile is a profile that the platform set: flexd's plan does not go above it.
type platformProfile struct {
	Connector int             `json:"connector"`
	At        time.Time       `json:"at"` // it came
	Profile   detailedProfile `json:"profile"`
}

// detailedProfile is a charging profile with all that a platform may say in it.
type detailedProfile struct {
	ID          int      `json:"chargingProfileId"`
	Transaction int      `json:"transactionId,omitempty"`
	StackLevel  int      `json:"stackLevel"`
	Purpose     string   `json:"chargingProfilePurpose"`
	Kind        string   `json:"chargingProfileKind"`
	Recurrency  string   `json:"recurrencyKind,omitempty"`
	From        stamp    `json:"validFrom,omitzero"`
	To          stamp    `json:"validTo,omitzero"`
	Schedule    schedule `json:"chargingSchedule"`
}

// setProfile forwards a profile of the platform to the charger, on a stack level below
// flexd's, and stores it as a limit of flexd's plan. A ChargePointMaxProfile is forwarded
// unchanged. It is not sent to a charger with one level, where it would replace the plan.
func (u *upstream) setProfile(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m struct {
		Connector int             `json:"connectorId"`
		Profile   detailedProfile `json:"csChargingProfiles"`
	}

	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}
	if m.Profile.Purpose == purposeMax {
		return u.pass(ctx, "SetChargingProfile", payload)
	}
	if err := u.awaitLevels(ctx); err != nil {
		return nil, err
	}

	u.c.mu.Lock()
	m.Profile.Transaction = u.inwardNumber(m.Profile.Transaction)
	profile := platformProfile{m.Connector, u.c.b.Now(), m.Profile}
	m.Profile.StackLevel = u.levelBelow(m.Profile.StackLevel)
	m.Profile.ID = u.ownID(m.Profile.ID)
	u.c.mu.Unlock()

	if m.Profile.StackLevel > 0 {
		out, err := u.pass(ctx, "SetChargingProfile", m)
		if err != nil || !isAccepted(out) {
			return out, err
		}
	}

	u.limit(profile)

	return statusAnswer{accepted}, nil
}

// awaitLevels waits until the charger has reported its stack levels, at most as long as for an
// answer. Otherwise a platform's profile right after a boot would be accepted and not be sent
// to it.
func (u *upstream) awaitLevels(ctx context.Context) error {
	late := time.NewTimer(u.c.b.Timing.Call)
	defer late.Stop()
	ticker := time.NewTicker(levelsEvery)
	defer ticker.Stop()

	for {
		u.c.mu.Lock()
		known := len(u.c.capabilities.Levels) > 0
		u.c.mu.Unlock()
		if known {
			return nil
		}

		select {
		case <-ticker.C:
		case <-late.C:
			return &callError{codeInternal, "the charger has not yet said which profiles it takes"}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isAccepted reports whether a charger's answer is Accepted.
func isAccepted(out json.RawMessage) bool {
	var s statusAnswer
	return json.Unmarshal(out, &s) == nil && s.Status == accepted
}

// limit keeps a profile of the platform's, in the place of one of its id or level.
func (u *upstream) limit(profile platformProfile) {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	// A TxProfile without a transaction is of the one that runs: with it the charger forgets it.
	anyTransaction := profile.Profile.Purpose == purposeTx && profile.Profile.Transaction == 0
	if n := u.c.connectors[profile.Connector]; n != nil && anyTransaction {
		profile.Profile.Transaction = n.tx
	}

	u.limits = slices.DeleteFunc(u.limits, func(o platformProfile) bool {
		same := o.Connector == profile.Connector &&
			o.Profile.Purpose == profile.Profile.Purpose
		return same && o.Profile.StackLevel == profile.Profile.StackLevel ||
			o.Profile.ID == profile.Profile.ID
	})

	u.limits = append(u.limits, profile)
	u.limits = u.limits[max(0, len(u.limits)-limitsMax):]
	u.requestPlan()
}

// bindLimits assigns the platform's TxProfiles that came while no transaction ran to the one
// that has begun at the connector, so that they limit no later one. The caller holds mu.
func (c *charger) bindLimits(n *connector) {
	if c.up == nil {
		return
	}

	for i, p := range c.up.limits {
		anyTransaction := p.Profile.Purpose == purposeTx && p.Profile.Transaction == 0
		if anyTransaction && p.Connector == n.number {
			c.up.limits[i].Profile.Transaction = n.tx
		}
	}
}

// levelBelow is the stack level of a platform's profile on the charger: below flexd's highest
// and above the floor's; 0 or less if there is none. The caller holds mu.
func (u *upstream) levelBelow(level int) int {
	top := 0
	if len(u.c.capabilities.Levels) > 0 {
		top = u.c.capabilities.Levels[0]
	}

	return min(max(level, 1), top-1)
}

// ownID is the id of a platform's profile on the charger: another one if flexd's has it. The
// caller holds mu.
func (u *upstream) ownID(id int) int {
	for _, n := range u.c.connectors {
		isOwn := n.want != nil && int(n.want.profile.ID) == id
		if isOwn || id == floorID+n.number {
			return id ^ 1<<29
		}
	}

	return id
}

func (u *upstream) inwardNumber(tx int) int {
	for _, n := range slices.Backward(u.numbers) {
		if n.Above == tx {
			return n.Local
		}
	}

	return tx
}

// requestPlan makes flexd's profiles be sent once more, within what the platform allows now. The
// caller holds mu.
func (u *upstream) requestPlan() {
	for _, n := range u.c.connectors {
		n.resendProfile()
		n.lacksFloor()
	}
	u.c.saveState()
	u.c.wake()
}

// profileFilter is which profiles a platform speaks of; what is nil or empty is any.
type profileFilter struct {
	ID        *int
	Connector *int
	Purpose   string
	Level     *int
}

// names reports whether a profile is among them. An id stands alone.
func (f profileFilter) names(p platformProfile) bool {
	if f.ID != nil {
		return p.Profile.ID == *f.ID
	}

	otherConnector := f.Connector != nil && *f.Connector != p.Connector
	otherProfile := f.Purpose != "" && f.Purpose != p.Profile.Purpose
	higher := f.Level != nil && *f.Level != p.Profile.StackLevel

	return !otherConnector && !otherProfile && !higher
}

// clearProfile passes on that profiles are to be cleared.
func (u *upstream) clearProfile(
	ctx context.Context,
	payload json.RawMessage,
) (any, error) {
	var m struct {
		ID        *int   `json:"id"`
		Connector *int   `json:"connectorId"`
		Purpose   string `json:"chargingProfilePurpose"`
		Level     *int   `json:"stackLevel"`
	}

	if err := json.Unmarshal(payload, &m); err != nil {
		return nil, &callError{codeFormation, err.Error()}
	}

	return u.clear(ctx, payload, profileFilter(m))
}

// clear passes a ClearChargingProfile on, and sends flexd's profiles again, for they may have been
// among those that it names.
func (u *upstream) clear(
	ctx context.Context,
	payload json.RawMessage,
	f profileFilter,
) (any, error) {
	out, err := u.pass(ctx, "ClearChargingProfile", payload)
	u.c.mu.Lock()
	defer u.c.mu.Unlock()

	before := len(u.limits)
	u.limits = slices.DeleteFunc(u.limits, f.names)
	u.requestPlan()

	if err == nil && len(u.limits) < before {
		return statusAnswer{accepted}, nil
	}

	return out, err
}

// bound returns a plan's steps within what the platform allows a connector. The caller holds mu.
func (u *upstream) bound(
	n *connector,
	phases int,
	steps []flex.Step,
) []flex.Step {
	if len(u.limits) == 0 {
		return steps
	}

	var out []flex.Step
	for _, s := range steps {
		edges := append(u.edges(n, s.Span), s.To)
		slices.SortFunc(edges, time.Time.Compare)
		for _, to := range edges {
			if !s.From.Before(to) {
				continue
			}

			part := flex.Step{
				Span:  flex.Span{From: s.From, To: to},
				Limit: s.Limit,
			}

			if limit, ok := u.limitAt(n, phases, s.From); ok {
				part.Limit = max(0, min(part.Limit, limit)) // whether the car may give the platform does not say
			}

			out = append(out, part)
			s.From = to
		}
	}

	return out
}

// edges are the instants at which what the platform allows may change.
func (u *upstream) edges(n *connector, s flex.Span) []time.Time {
	var all []time.Time
	for _, p := range u.limits {
		at := []time.Time{p.Profile.From.Time, p.Profile.To.Time}
		for _, start := range p.starts(n, s) {
			for _, q := range p.Profile.Schedule.Periods {
				at = append(at, start.Add(time.Duration(q.Start)*time.Second))
			}
			at = append(
				at,
				start.Add(time.Duration(p.Profile.Schedule.Duration)*time.Second),
			)
		}

		for _, t := range at {
			if s.Contains(t) {
				all = append(all, t)
			}
		}
	}

	return all
}

// limitAt is what the platform allows a connector at an instant: of TxProfiles, else
// TxDefaultProfiles, the one of the highest level that speaks of it.
func (u *upstream) limitAt(
	n *connector,
	phases int,
	at time.Time,
) (flex.Watts, bool) {
	var limit flex.Watts
	for _, purpose := range []string{purposeTx, purposeTxDefault} {
		level := -1
		for _, p := range u.limits {
			covers := p.Connector == n.number || p.Connector == 0
			matches := p.Profile.Purpose == purpose &&
				(p.Profile.Transaction == 0 || p.Profile.Transaction == n.tx)
			l, speaks := p.at(n, phases, at)
			counts := covers && matches
			higher := p.Profile.StackLevel > level

			if speaks && counts && higher {
				limit = l
				level = p.Profile.StackLevel
			}
		}

		if level >= 0 {
			return limit, true
		}
	}

	return 0, false
}

// starts are when a profile's schedule begins, as far as it matters to a span.
func (p platformProfile) starts(n *connector, s flex.Span) []time.Time {
	start := p.Profile.Schedule.Start.Time
	every := 24 * time.Hour
	if p.Profile.Recurrency == "Weekly" {
		every *= 7
	}

	if p.Profile.Kind == "Relative" || start.IsZero() {
		return []time.Time{flex.Later(n.startedAt, p.At)}
	}

	if p.Profile.Kind != "Recurring" {
		return []time.Time{start}
	}

	first := start.Add(s.From.Sub(start).Truncate(every))

	var all []time.Time
	for at := first.Add(-every); at.Before(s.To); at = at.Add(every) {
		all = append(all, at)
	}

	return all
}

// at is what a profile allows at an instant, in W, on a charger with a number of phases.
func (p platformProfile) at(
	n *connector,
	phases int,
	at time.Time,
) (flex.Watts, bool) {
	valid := !at.Before(p.Profile.From.Time) &&
		(p.Profile.To.IsZero() || at.Before(p.Profile.To.Time))

	var (
		limit flex.Watts
		ok    bool
	)

	for _, start := range p.starts(n, flex.Span{From: at, To: at.Add(1)}) {
		second := int(at.Sub(start) / time.Second)
		over := p.Profile.Schedule.Duration > 0 &&
			second >= p.Profile.Schedule.Duration
		if !valid || at.Before(start) || over {
			continue
		}

		for _, q := range p.Profile.Schedule.Periods {
			if q.Start > second {
				break
			}

			limit = q.watts(p.Profile.Schedule.Unit, phases)
			ok = true
		}
	}

	return limit, ok
}

// unlimited is how some platforms write that there is no limit.
const unlimited = -1

// watts is a period's limit on a charger with a number of phases. A period in which the
// platform has the car discharge bounds what flexd has it charge to nothing.
func (q period) watts(unit string, phases int) flex.Watts {
	if q.Limit == unlimited {
		return math.MaxInt32
	}
	if q.Limit < 0 {
		return 0
	}
	if unit != unitAmpere {
		return flex.Watts(q.Limit)
	}
	if q.Phases > 0 {
		phases = min(phases, q.Phases)
	}

	return flex.Watts(q.Limit * float64(volts*phases))
}
