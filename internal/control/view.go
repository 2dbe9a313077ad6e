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

// CauseText says in words why a schedule was made.
func CauseText(c store.Cause) string { return causeText[c] }

// AssetWhy explains a schedule that was ever committed, by the id of its push, of whosever
// asset. One of another organisation than the asset's is NotFound.
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

// Performance is how planning does for an organisation.
type Performance struct {
	Orgs           []flex.Org
	Org            flex.OrgID // zero if there is none
	Sample         []Sampled
	P50, P99, Most time.Duration // of the sample's times
	// of the sample, by PerformanceEnds; the last has no end
	Counts  []int
	Short   int
	GapMost flex.MicroPounds
	Proven  int // plans whose cost is the proven least, to the penny
	Causes  []CauseCount
	Planned int64
	Changed int64
}

// CauseCount is how many schedules a cause has made within a day.
type CauseCount struct {
	Text  string
	Count int
}

// PerformanceEnds cut the histogram of solve times.
var PerformanceEnds = []time.Duration{
	10 * time.Microsecond,
	20 * time.Microsecond,
	50 * time.Microsecond,
	100 * time.Microsecond,
	200 * time.Microsecond,
	500 * time.Microsecond,
	time.Millisecond,
}

// Performance says how planning does for an organisation, the first of them if none is chosen.
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

	p.sum()
	p.Planned, p.Changed = s.Planned()

	return p, err
}

// sum sums the sample up.
func (p *Performance) sum() {
	const penny flex.MicroPounds = 10_000
	took := make([]time.Duration, 0, len(p.Sample))
	p.Counts = make([]int, len(PerformanceEnds)+1)

	for _, v := range p.Sample {
		took = append(took, v.Took)
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

	slices.Sort(took)
	p.P50, p.P99 = flex.Quantile(took, 50), flex.Quantile(took, 99)

	if len(took) > 0 {
		p.Most = took[len(took)-1]
	}
}

// OrgCaps is an organisation with what binds its assets to each other.
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

// OrgForeseen is what prices would do to the fleet of an organisation.
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

// Order is what somebody asks of the fleet.
type Order struct {
	flex.Span
	// against the plan, negative to draw less; zero if there is a limit
	Change          flex.Watts
	Limit           *flex.Watts // the most that may be drawn; nil for a change
	Group, GSPGroup string      // of whom; empty for any
	Service         string
	Reason          string
	Price           flex.Price // that the service pays; zero if it was not said
	// the cheapest are called, whoever was called before
	Unfair bool
	Who    string
}

// Instruction is the order as it is previewed and sent.
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

// Goal says what is asked for, in a few words.
func (o *Order) Goal() string {
	in := o.Instruction()
	return in.Goal()
}

// InstructionsView is a page of an organisation's instructions, the newest first.
type InstructionsView struct {
	Orgs   []flex.Org
	Org    flex.OrgID // zero if there is none
	Lines  []InstructionLine
	Active int // that bind, on whatever page they stand
	Total  int
	Next   flex.InstructionID // the page that follows; zero after the last
}

// InstructionLine is an instruction, and where it is.
type InstructionLine struct {
	ID        flex.InstructionID
	From      time.Time
	To        time.Time
	State     InstructionState
	Goal      string // what is asked for, in a few words
	Group     string // of whom; empty for any
	GSPGroup  string
	Service   string
	Reason    string
	Who       string
	MadeAt    time.Time
	StoppedAt time.Time // zero if nobody stopped it
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

// Binds reports whether an instruction of the state can be stopped.
func (s InstructionState) Binds() bool {
	return s == InstructionOrdered || s == InstructionRunning
}

// Binds reports whether it can be stopped.
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

// InstructionOrg returns whose an instruction is.
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
