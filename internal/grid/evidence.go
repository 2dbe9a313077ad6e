package grid

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Evidence is what an organisation's records show about the control of its fleet in a span:
// what a load controller's licence and a buyer's audit ask for. It is made from stored records
// only.
type Evidence struct {
	Org  string
	Span flex.Span
	At   time.Time
	// how far the organisation's clock is ahead of the true one; zero except in a sandbox
	// whose clock was advanced
	Ahead time.Duration

	// by hour and region; those in which nothing was planned and nothing metered are left out
	Hours []SteeredHour
	// the largest change within one minute, for all regions together (first) and for each
	Steps []PowerStep
	Needs Needs
	// halts, their ends and emergency stops that may lie in the span, oldest first
	Acts         []EvidenceAct
	Offers       int
	OffersKept   int
	Instructions []EvidenceInstruction
	Records      []RecordExtent
	Operators    []EvidenceOperator
	Credentials  []EvidenceCredential
}

// SteeredHour is what a region's cars were planned to draw and drew in an hour.
type SteeredHour struct {
	Region  string // GSP group; empty where it is not known
	From    time.Time
	Planned flex.WattHours // by the schedules that were in force
	Metered flex.WattHours // by the chargers' own meters
}

// PowerStep is the largest change of planned power within a minute.
type PowerStep struct {
	Region string // "all", or a GSP group
	At     time.Time
	Change flex.Watts // the one with the largest absolute value
}

// Needs is how often the needs of cars were met, by plan.
type Needs struct {
	Stays     int // plug sessions in the span with a need and a schedule
	Unplanned int // sessions without a schedule, which were not controlled
	LeftEarly int // unplugged before ready-by
	Missed    int
	Why       map[string]int // of the missed, by reason
	List      []MissedNeed   // the largest shortfall first, at most missedMax
}

// missedMax is how many missed needs are listed.
const missedMax = 1000

// MissedNeed is a need that the plan of a session did not meet.
type MissedNeed struct {
	Asset   string // its external id
	ReadyBy time.Time
	Need    flex.WattHours
	Short   flex.WattHours
	Why     string
}

// The reasons for which a need was not met: it could not have been at full power from the
// schedule's beginning on (time), or the permitted hours, a cap, a fuse or an instruction did
// not leave enough.
const (
	shortOfTime  = "time"
	shortOfHours = "permitted hours or a limit"
)

// EvidenceAct is an act of a person.
type EvidenceAct struct {
	At      time.Time // by the true clock, as the audit log has it
	Who     string
	Act     string
	Subject string
	Detail  string
	Outcome string
}

// EvidenceInstruction is an instruction of the grid.
type EvidenceInstruction struct {
	Span      flex.Span
	Goal      string
	Service   string
	Who       string
	Region    string
	StoppedAt time.Time // zero if nobody stopped it
}

// RecordExtent is the time that records of a kind cover; both instants are zero if there are
// none.
type RecordExtent struct {
	Kind   string
	Oldest time.Time
	Newest time.Time
}

// EvidenceOperator is a person who may use the console for the organisation.
type EvidenceOperator struct {
	Name    string
	Role    string
	TwoStep bool
	Since   time.Time
}

// EvidenceCredential is a program's access.
type EvidenceCredential struct {
	Username string
	Roles    []flex.Role
	Since    time.Time
	UsedAt   time.Time
	Expires  time.Time // zero if it does not
}

// evidenceSpanMax is the longest span: each schedule in it is read once.
const evidenceSpanMax = 400 * 24 * time.Hour

// Evidence reads an organisation's records of a half-open span of at most 400 days. A longer
// or empty span is Malformed.
func (s *Service) Evidence(
	ctx context.Context,
	org flex.OrgID,
	span flex.Span,
) (*Evidence, error) {
	if span.Len() <= 0 || span.Len() > evidenceSpanMax {
		return nil, flex.Fail(
			flex.Malformed,
			"evidence is of 1 to %d days",
			int(evidenceSpanMax.Hours()/24),
		)
	}

	var e *Evidence
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		tx, err := all.For(ctx, org)
		if err != nil {
			return err
		}

		record, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		e = &Evidence{
			Org:   record.Name,
			Span:  span,
			At:    tx.Now(),
			Ahead: tx.Now().Sub(all.Now()),
			Needs: Needs{Why: map[string]int{}},
		}

		if err := e.addFleet(ctx, tx); err != nil {
			return err
		}
		if err := e.addGrid(ctx, tx); err != nil {
			return err
		}

		if err := e.addActs(ctx, all, org); err != nil {
			return err
		}
		if err := e.addOperators(ctx, all, org); err != nil {
			return err
		}

		return e.addCredentials(ctx, all, org)
	})

	return e, err
}

// addFleet reads the sessions and the metered energy.
func (e *Evidence) addFleet(ctx context.Context, tx *store.Tx) error {
	regions, err := tx.AssetRegions(ctx)
	if err != nil {
		return err
	}

	w := newSteering(e, regions)
	began := flex.Span{
		From: e.Span.From.Add(-longestStay),
		To:   e.Span.To,
	}

	// One day at a time, as the schedules of all sessions that began in it are sorted.
	for from := began.From; from.Before(began.To); from = from.Add(24 * time.Hour) {
		some := flex.Span{
			From: from,
			To:   flex.Earlier(from.Add(24*time.Hour), began.To),
		}

		err := tx.EachStaySchedule(ctx, flex.Scope{}, some, from, w.add)
		if err != nil {
			return err
		}
	}

	metered, err := tx.MeteredByRegion(ctx, e.Span)
	if err != nil {
		return err
	}

	for _, m := range metered {
		w.hour(m.Region, m.At).Metered += m.Energy
	}

	w.finish()

	return nil
}

// evidencePage is how many offers, instructions or acts are read at once.
const evidencePage = 1000

// addGrid reads offers, instructions and the extent of the records.
func (e *Evidence) addGrid(ctx context.Context, tx *store.Tx) error {
	if err := e.judgeOffers(ctx, tx); err != nil {
		return err
	}
	if err := e.addInstructions(ctx, tx); err != nil {
		return err
	}

	extents, err := tx.Extents(ctx)
	for _, x := range extents {
		e.Records = append(e.Records, RecordExtent{x.Kind, x.Oldest, x.Newest})
	}

	return err
}

// judgeOffers compares all offers with what there was, a page at a time.
func (e *Evidence) judgeOffers(ctx context.Context, tx *store.Tx) error {
	var before flex.OfferID
	for {
		found, _, err := tx.Offers(ctx, before, evidencePage)
		if err != nil {
			return err
		}

		if err := e.addOffers(ctx, tx, found); err != nil {
			return err
		}

		if len(found) < evidencePage {
			return nil
		}

		before = found[len(found)-1].ID
	}
}

// addInstructions reads the instructions that touch the span, oldest first.
func (e *Evidence) addInstructions(ctx context.Context, tx *store.Tx) error {
	defer func() { slices.Reverse(e.Instructions) }()

	var before flex.InstructionID
	for {
		found, _, err := tx.Instructions(ctx, before, evidencePage)
		if err != nil {
			return err
		}

		for _, i := range found {
			if i.From.Before(e.Span.To) && i.To.After(e.Span.From) {
				e.Instructions = append(e.Instructions, EvidenceInstruction{
					i.Span,
					i.Goal(),
					i.Service,
					i.Who,
					i.Scope.GSPGroup,
					i.StoppedAt,
				})
			}
		}

		if len(found) < evidencePage {
			return nil
		}

		before = found[len(found)-1].ID
	}
}

// addOffers compares the offers that lie in the span and are over with what there was.
func (e *Evidence) addOffers(
	ctx context.Context,
	tx *store.Tx,
	found []flex.Offer,
) error {
	p := &OfferPage{At: e.At}
	for _, o := range found {
		if o.From.Before(e.Span.From) || !o.From.Before(e.Span.To) {
			continue
		}
		if err := p.add(ctx, tx, o); err != nil {
			return err
		}
	}

	e.Offers += p.Judged
	e.OffersKept += p.Met

	return nil
}

// evidenceActs are the acts that are listed.
var evidenceActs = []string{
	"halt pushes",
	"resume pushes",
	"stop instructions",
	"stop instruction",
}

// addActs reads halts and stops, oldest first.
func (e *Evidence) addActs(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
) error {
	for _, act := range evidenceActs {
		if err := e.addActsOf(ctx, all, org, act); err != nil {
			return err
		}
	}

	slices.SortStableFunc(e.Acts, func(a, b EvidenceAct) int {
		return a.At.Compare(b.At)
	})

	return nil
}

// actsApart is how much the order of acts by id may differ from their order by time, as the
// clocks of processes differ.
const actsApart = time.Hour

// addActsOf reads acts of one kind, newest first, a page at a time, until all are older than
// the span.
func (e *Evidence) addActsOf(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
	act string,
) error {
	first := e.Span.From.Add(-actsApart - max(0, e.Ahead))
	var before flex.AuditID
	for {
		found, err := all.Acts(ctx, store.ActFilter{
			Act:    act,
			Before: before,
			Limit:  evidencePage,
		})
		if err != nil {
			return err
		}

		for _, a := range found {
			e.addAct(&a, org)
		}

		if len(found) < evidencePage {
			return nil
		}

		last := &found[len(found)-1]
		if last.At.Before(first) {
			return nil
		}

		before = last.ID
	}
}

// addAct lists an act of the span, if it concerned the organisation or all organisations.
func (e *Evidence) addAct(a *flex.AuditEntry, org flex.OrgID) {
	concerned := a.Org.IsZero() || a.Org == org
	if !concerned || !e.mayContain(a.At) {
		return
	}

	e.Acts = append(e.Acts, EvidenceAct{
		a.At,
		a.Who,
		a.Act,
		a.Subject,
		a.Detail,
		a.Outcome,
	})
}

// mayContain reports whether the span, which is in the organisation's time, may contain an act
// at an instant of the true clock. The audit log does not say how far the organisation's clock
// was ahead then: at most as far as now, as it is only advanced.
func (e *Evidence) mayContain(at time.Time) bool {
	ahead := at.Add(e.Ahead)
	first, last := flex.Earlier(at, ahead), flex.Later(at, ahead)

	return first.Before(e.Span.To) && !last.Before(e.Span.From)
}

// addOperators reads the persons who may use the console for the organisation.
func (e *Evidence) addOperators(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
) error {
	operators, err := all.Operators(ctx)
	if err != nil {
		return err
	}

	withCode, err := all.TwoStepOperators(ctx)
	if err != nil {
		return err
	}

	some, err := all.OperatorOrgs(ctx)
	if err != nil {
		return err
	}

	for _, o := range operators {
		of, bounded := some[o.ID]
		others := bounded && !slices.Contains(of, org)
		if o.RemovedAt.IsZero() && !others {
			e.Operators = append(e.Operators, EvidenceOperator{
				o.Name,
				o.Role,
				slices.Contains(withCode, o.ID),
				o.CreatedAt,
			})
		}
	}

	return nil
}

// addCredentials reads the programs that have access.
func (e *Evidence) addCredentials(
	ctx context.Context,
	all *store.All,
	org flex.OrgID,
) error {
	credentials, err := all.Credentials(ctx, org)
	if err != nil {
		return err
	}

	for _, c := range credentials {
		if c.RevokedAt.IsZero() {
			e.Credentials = append(e.Credentials, EvidenceCredential{
				c.Username,
				c.Roles,
				c.CreatedAt,
				c.UsedAt,
				c.ExpiresAt,
			})
		}
	}

	return nil
}
