package control

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// causeText says why a schedule was made.
var causeText = map[store.Cause]string{
	store.CausePlugIn:    "a car was plugged in",
	store.CauseIntent:    "the user's wish changed, or an absence",
	store.CauseTariff:    "the tariff changed",
	store.CauseChargeNow: "charging now was asked for or taken back",
	store.CauseMarket:    "prices moved",
	store.CauseInputs:    "readings or settings changed",
	store.CauseFreed:     "control ended",
	store.CauseCaps:      "the fleet was planned together, under its caps",
	store.CauseCalled:    "the grid instructed the fleet, or no more",
}

// CauseText describes why a schedule was made.
func CauseText(c store.Cause) string { return causeText[c] }

// AssetWhy explains any stored schedule of an asset of any organisation, by the id of its
// push. A schedule of another organisation than the asset's is NotFound.
func (s *Service) AssetWhy(
	ctx context.Context,
	asset flex.AssetID,
	id flex.EventID,
) (Explanation, error) {
	var x Explanation
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		tx, err := all.ForAsset(ctx, flex.OrgID{}, asset)
		if err != nil {
			return err
		}

		x, err = explanationOf(ctx, tx, id)
		return err
	})

	return x, err
}

// Performance has measurements of the planning for an organisation.
type Performance struct {
	Orgs           []flex.Org
	Org            flex.OrgID // zero if there is none
	Sample         []Sampled
	P50, P99, Most time.Duration // of the sample's times
	// numbers of plans by PerformanceEnds; the last class has no end
	Counts  []int
	Short   int
	GapMost flex.MicroPounds
	Proven  int // plans whose cost is proven to be the least, to a penny
	Causes  []CauseCount
	Planned int64
	Changed int64
}

// CauseCount is how many schedules a cause has made within a day.
type CauseCount struct {
	Text  string
	Count int
}

// PerformanceEnds are the ends of the classes of the histogram of solve times.
var PerformanceEnds = []time.Duration{
	10 * time.Microsecond,
	20 * time.Microsecond,
	50 * time.Microsecond,
	100 * time.Microsecond,
	200 * time.Microsecond,
	500 * time.Microsecond,
	time.Millisecond,
}

// Performance measures the planning for an organisation; for the first one if none is chosen.
func (s *Service) Performance(
	ctx context.Context,
	chosen flex.OrgID,
) (Performance, error) {
	var p Performance
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, chosen)
		p = Performance{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		p.Org = tx.Org()
		causes, err := tx.SchedulesSince(ctx, all.Now().Add(-24*time.Hour))
		if err != nil {
			return err
		}

		for _, c := range causes {
			p.Causes = append(p.Causes, CauseCount{causeText[c.Cause], c.Count})
		}

		p.Sample, err = sample(ctx, tx, SampleMax)
		return err
	})

	p.summarise()
	p.Planned, p.Changed = s.Planned()

	return p, err
}

// summarise computes the statistics of the sample.
func (p *Performance) summarise() {
	const penny flex.MicroPounds = 10_000
	durations := make([]time.Duration, 0, len(p.Sample))
	p.Counts = make([]int, len(PerformanceEnds)+1)

	for _, v := range p.Sample {
		durations = append(durations, v.Took)
		i, _ := slices.BinarySearch(PerformanceEnds, v.Took)
		p.Counts[i]++

		if v.Shortfall > 0 {
			p.Short++
		}

		p.GapMost = max(p.GapMost, v.Gap)
		if v.Gap < penny {
			p.Proven++
		}
	}

	slices.Sort(durations)
	p.P50, p.P99 = flex.Quantile(durations, 50), flex.Quantile(durations, 99)

	if len(durations) > 0 {
		p.Most = durations[len(durations)-1]
	}
}

// OrgCaps is an organisation with its caps.
type OrgCaps struct {
	flex.Org
	flex.Caps
}

// AllCaps returns the caps of every organisation.
func (s *Service) AllCaps(ctx context.Context) ([]OrgCaps, error) {
	var list []OrgCaps
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		list = nil
		_, err := all.VisitOrgs(ctx, flex.OrgID{}, func(o flex.Org, tx *store.Tx) error {
			c, _, err := capsWithSites(ctx, tx)
			list = append(list, OrgCaps{o, c})
			return err
		})

		return err
	})

	return list, err
}

// OrgForeseen is the effect of supposed prices on the fleet of an organisation.
type OrgForeseen struct {
	Name string
	Foreseen
}

// ForeseeAll is Foresee for every organisation.
func (s *Service) ForeseeAll(
	ctx context.Context,
	supposed []flex.PricedPeriod,
) ([]OrgForeseen, error) {
	var orgs []flex.Org
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		orgs, err = all.Orgs(ctx)
		return err
	})

	var list []OrgForeseen
	for _, o := range orgs {
		f, ferr := s.Foresee(ctx, o.ID, supposed)
		if ferr != nil {
			return nil, ferr
		}
		list = append(list, OrgForeseen{o.Name, f})
	}

	return list, err
}

// Order is an operator's request to the fleet.
type Order struct {
	flex.Span
	// against the plan, negative to draw less; zero if there is a limit
	Change          flex.Watts
	Limit           *flex.Watts // the most that may be drawn; nil for a change
	Group, GSPGroup string      // the groups of the called assets; empty for any
	Service         string
	Reason          string
	Price           flex.Price // what the service pays; zero if not stated
	// the cheapest assets are called, regardless of earlier calls
	Unfair bool
	Who    string
}

// Instruction returns the order as an instruction.
func (o *Order) Instruction() flex.Instruction {
	return flex.Instruction{
		Span:    o.Span,
		Change:  o.Change,
		Limit:   o.Limit,
		Scope:   flex.Scope{Group: o.Group, GSPGroup: o.GSPGroup},
		Service: o.Service,
		Price:   o.Price,
		Reason:  o.Reason,
		Unfair:  o.Unfair,
		Who:     o.Who,
	}
}

// Goal describes the target in a few words.
func (o *Order) Goal() string {
	in := o.Instruction()
	return in.Goal()
}

// InstructionsView is a page of an organisation's instructions, the newest first.
type InstructionsView struct {
	Orgs   []flex.Org
	Org    flex.OrgID // zero if there is none
	Lines  []InstructionLine
	Active int // active instructions on all pages
	Total  int
	Next   flex.InstructionID // the page that follows; zero after the last
}

// InstructionLine is an instruction in a list, with its state.
type InstructionLine struct {
	ID        flex.InstructionID
	From      time.Time
	To        time.Time
	State     InstructionState
	Goal      string // the target, in a few words
	Group     string // the group of the called assets; empty for any
	GSPGroup  string
	Service   string
	Reason    string
	Who       string
	MadeAt    time.Time
	StoppedAt time.Time // zero if it was not stopped
	StoppedBy string
}

func instructionLine(
	in *flex.Instruction,
	state InstructionState,
) InstructionLine {
	return InstructionLine{
		ID:        in.ID,
		From:      in.From,
		To:        in.To,
		State:     state,
		Goal:      in.Goal(),
		Group:     in.Scope.Group,
		GSPGroup:  in.Scope.GSPGroup,
		Service:   in.Service,
		Reason:    in.Reason,
		Who:       in.Who,
		MadeAt:    in.MadeAt,
		StoppedAt: in.StoppedAt,
		StoppedBy: in.StoppedBy,
	}
}

// Binds reports whether an instruction in this state is active and can be stopped.
func (s InstructionState) Binds() bool {
	return s == InstructionOrdered || s == InstructionRunning
}

// Binds reports whether the instruction can be stopped.
func (l InstructionLine) Binds() bool { return l.State.Binds() }

// InstructionsOf returns a page of the instructions of an organisation, the first of them if
// none is chosen: those made before one, if it is given.
func (s *Service) InstructionsOf(
	ctx context.Context,
	chosen flex.OrgID,
	before flex.InstructionID,
	limit int,
) (InstructionsView, error) {
	var v InstructionsView
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, chosen)
		v = InstructionsView{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		v.Org = tx.Org()
		page, err := instructionPage(ctx, tx, before, limit)
		v.Total, v.Next = page.Total, page.Next

		for _, in := range page.Instructions {
			v.Lines = append(v.Lines, instructionLine(&in, StateOf(&in, page.At)))
		}

		if err != nil {
			return err
		}

		active, err := tx.ActiveInstructions(ctx)
		v.Active = len(active)

		return err
	})

	return v, err
}

// InstructionOrg returns the organisation of an instruction.
func (s *Service) InstructionOrg(
	ctx context.Context,
	id flex.InstructionID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.InstructionOrg(ctx, id)
		return err
	})

	return org, err
}
