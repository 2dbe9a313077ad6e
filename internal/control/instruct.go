package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Rules of instructions.
const (
	// InstructionLongest is the longest duration of an instruction, and InstructionAhead how
	// far ahead it may end.
	InstructionLongest = flex.InstructionLongest
	InstructionAhead   = 48 * time.Hour
	// MeteredLately is the greatest age of an asset's newest reading for which its change
	// counts in full.
	MeteredLately = 2 * time.Hour
)

// InstructionServices are the services for which an instruction can be sent.
var InstructionServices = []string{
	"wholesale",
	"cm",
	"dno",
	"dfs",
	"lcm",
	"sffr",
	"other",
}

// Preview is what an instruction does, or would do.
type Preview struct {
	flex.Instruction // without an id if it was not sent
	At               time.Time
	Slots            []InstructedSlot
	Assets           []InstructedAsset // the called assets, by id
	// the cost of the plans with the instruction, less that of those without
	Cost flex.MicroPounds
	// of a dispatch: the wear cost of batteries in its time, less that without it; if wear per
	// kWh is known
	Wear flex.Optional[flex.MicroPounds]
	// the highest power above the plan in the hour after the end
	Rebound      flex.Watts
	ReboundLater flex.Watts // the highest power above the plan later

	Callable int // assets that can contribute
	// assets that contribute less than they draw in the window, because of their need,
	// ready-by or charge-now
	NumNeeded    int
	NumIdle      int  // assets that draw nothing in the window by plan, or all they can
	NumBusy      int  // assets that another instruction calls in the same half-hours
	NumNotCalled int  // assets that could be called in addition
	NumReplaced  int  // assets of which a dispatch replaces earlier dispatches
	Halted       bool // pushes are halted: nothing is sent before that ends
	// sites that could contribute, but have had all the calls they agreed to
	spent map[flex.SiteID]flex.SpentCalls

	calls []called
}

// InstructedSlot is a half-hour of an instruction, or a part of one.
type InstructedSlot struct {
	flex.Span
	// what the scope's assets under control draw by the schedules in force
	Planned flex.WattHours
	Asked   flex.WattHours // the change, without a sign
	Counted flex.WattHours // the part of the change that is relied on
	Given   flex.WattHours // the change if all called assets follow
}

// InstructedAsset is what an asset does for an instruction.
type InstructedAsset struct {
	AssetID flex.AssetID
	SiteID  flex.SiteID
	Battery bool             // it is a home battery
	Heater  bool             // it is a tank or a heat pump; an asset that is neither charges a car
	Quality instruct.Percent // how much of its change is relied on
	Calls   int              // how often its site was called before
	Change  []flex.WattHours // in each slot, without a sign
	Cost    flex.MicroPounds
	Less    flex.WattHours // how much less it charges by ready-by, beyond its need
}

// Moved is the sum of Change over all slots.
func (a *InstructedAsset) Moved() flex.WattHours {
	sum := flex.WattHours(0)
	for _, e := range a.Change {
		sum += e
	}

	return sum
}

// called is an asset that may be called, with everything that calling it takes.
type called struct {
	*store.ScheduledAsset // nil for a device
	*store.Callable
	id      flex.AssetID
	device  *calledDevice    // nil for a car
	from    store.PlanInputs // with the time that is closed for the call
	held    []flex.Span      // the time that is closed for other instructions
	offer   instruct.Offer
	quality instruct.Percent
}

// candidate returns the asset in the form of the choice of assets.
func (c *called) candidate() instruct.Candidate {
	return instruct.Candidate{
		Change:  c.offer.Change,
		Cost:    c.offer.Cost,
		Calls:   c.Calls,
		Quality: c.quality,
	}
}

// PreviewInstruction returns what an instruction would do, and changes nothing. A target, time
// or service that is not permitted is Malformed; an unknown constraint group is NotFound.
func (s *Service) PreviewInstruction(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*Preview, error) {
	var p *Preview
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		p, err = s.previewInstruction(ctx, tx, in, nil)
		return err
	})

	return p, err
}

// SendInstruction carries out an instruction: it is stored, and the schedules of the called
// cars and batteries are replaced in the same transaction, those of heaters right after it. It
// fails as PreviewInstruction does.
func (s *Service) SendInstruction(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*Preview, error) {
	return s.sendBy(ctx, org, in, s.instructWithin)
}

// storeInstruction stores an instruction and calls its assets within a transaction, as
// instructWithin does.
type storeInstruction func(
	context.Context,
	*store.Tx,
	flex.Instruction,
	*offersAhead,
) (*Preview, error)

// sendBy is SendInstruction with the function that stores the instruction.
func (s *Service) sendBy(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
	put storeInstruction,
) (*Preview, error) {
	ahead, err := s.lookAhead(ctx, org, in)
	if err != nil {
		return nil, err
	}

	var p *Preview
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		p, err = put(ctx, tx, in, ahead)
		tx.SetMadeRecord(p)
		return err
	})

	if err == nil {
		s.planMarked(ctx, org, heatersIn(p.calls))
	}

	return p, err
}

// InstructWithin is SendInstruction within a transaction, which plans all devices itself. The
// heaters that it calls are planned by their job.
func (s *Service) InstructWithin(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
) (*Preview, error) {
	return s.instructWithin(ctx, tx, in, nil)
}

// instructWithin is InstructWithin; ahead is what devices would do, if that was computed
// before the transaction.
func (s *Service) instructWithin(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *offersAhead,
) (*Preview, error) {
	if err := LockInstructions(ctx, tx); err != nil {
		return nil, err
	}

	p, err := s.previewInstruction(ctx, tx, in, ahead)
	if err != nil {
		return nil, err
	}

	if err := tx.AddInstruction(ctx, &p.Instruction); err != nil {
		return nil, fmt.Errorf("store the instruction: %w", err)
	}
	if err := acceptOffer(ctx, tx, &p.Instruction); err != nil {
		return nil, err
	}
	if err := s.call(ctx, tx, &p.Instruction, p.calls); err != nil {
		return nil, err
	}

	return p, nil
}

// acceptOffer records that an instruction was made from an offer, if it was.
func acceptOffer(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) error {
	if in.Offer.IsZero() {
		return nil
	}
	return tx.AcceptOffer(ctx, in.Offer, in.ID, max(in.Change, -in.Change))
}

// orderOf returns what an instruction asks of an asset from an instant on. Plans are made in
// whole seconds, so the window begins at a whole second.
func orderOf(in *flex.Instruction, from time.Time) instruct.Order {
	begin := flex.Later(in.From, from.Truncate(time.Second))

	return instruct.Order{
		Window: in.Meet(flex.Span{From: begin, To: in.To}),
		Up:     in.Change > 0,
	}
}

// scoped are the assets of a scope, and the prices that they are planned on.
type scoped struct {
	now       time.Time
	prices    []flex.PricedPeriod
	planned   []store.ScheduledAsset
	callables map[flex.AssetID]*store.Callable
	batteries []device
	heaters   []device
	ahead     *offersAhead
	spent     map[flex.SiteID]flex.SpentCalls // sites whose calls are used up
}

// readScope reads the cars and devices of an instruction's scope.
func readScope(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (scoped, error) {
	var s scoped
	s.now = tx.Now()
	if err := tx.CheckScope(ctx, in.Scope); err != nil {
		return s, err
	}

	var err error
	s.planned, err = tx.PlannedIn(ctx, in.Scope)
	if err != nil {
		return s, fmt.Errorf("read the fleet: %w", err)
	}

	err = s.readDevices(ctx, tx, in)

	return s, err
}

// readCallables reads what the choice of assets needs.
func (s *scoped) readCallables(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) error {
	lately := s.now.Add(-MeteredLately)

	var err error
	s.callables, err = tx.Callables(ctx, in.Scope, in.Span, lately)
	if err != nil {
		return fmt.Errorf("read which assets may be called: %w", err)
	}

	s.spent, err = tx.SpentSites(ctx, in.ID, in.From)
	if err != nil {
		return fmt.Errorf("read which sites have had the calls they agreed to: %w", err)
	}

	s.prices, err = prices(ctx, tx, s.now)

	return err
}

// drawn returns the energy that the assets draw by their schedules in force in each slot.
func (s *scoped) drawn(slots []flex.Span) []charge.Joules {
	sums := make([]charge.Joules, len(slots))
	for i := range s.planned {
		for t, slot := range slots {
			sums[t] += instruct.Drawn(
				s.planned[i].Current.Charging(),
				s.planned[i].Current.From.Power,
				slot,
			)
		}
	}

	for _, d := range s.devices() {
		for t, slot := range slots {
			sums[t] += instruct.Moved(d.steps, d.power, slot)
		}
	}

	return sums
}

// previewInstruction computes an instruction's effect; ahead is what devices would do, if that
// was computed before.
func (s *Service) previewInstruction(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *offersAhead,
) (*Preview, error) {
	if err := checkInstruction(&in, tx.Now()); err != nil {
		return nil, err
	}
	if err := in.Scope.CheckGSPGroup(); err != nil {
		return nil, err
	}

	sc, err := readScope(ctx, tx, &in)
	if err != nil {
		return nil, err
	}

	if err := sc.readCallables(ctx, tx, &in); err != nil {
		return nil, err
	}

	sc.ahead = ahead
	p := &Preview{Instruction: in, At: sc.now}
	target := p.setTarget(&sc)
	back := reboundOf(&in, instruct.Slots(in.Span), target)

	p.Halted, err = tx.Halted(ctx, flex.ScheduleEndpoint)
	if err != nil {
		return nil, err
	}

	return p, s.choose(ctx, tx, p, &sc, target, back)
}

// setTarget sets the planned and the requested energy of each slot, and returns the latter.
func (p *Preview) setTarget(s *scoped) []charge.Joules {
	slots := instruct.Slots(p.Span)
	planned := s.drawn(slots)
	target := targetOf(&p.Instruction, planned)

	for t, slot := range slots {
		p.Target = append(p.Target, int64(target[t]))
		p.Slots = append(p.Slots, InstructedSlot{
			Span:    slot,
			Planned: wattHours(planned[t]),
			Asked:   wattHours(target[t]),
		})
	}

	return target
}

// targetOf returns the energy that an instruction asks the fleet to draw less, or more, in
// each slot of its window; without a sign.
func targetOf(in *flex.Instruction, planned []charge.Joules) []charge.Joules {
	target := make([]charge.Joules, len(planned))
	for t, slot := range instruct.Slots(in.Span) {
		seconds := charge.Joules(slot.Len() / time.Second)
		if in.Limit != nil {
			target[t] = max(0, planned[t]-charge.Joules(*in.Limit)*seconds)
			continue
		}
		target[t] = max(
			charge.Joules(in.Change),
			-charge.Joules(in.Change),
		) * seconds
	}

	return target
}

// wattHours returns an energy rounded to the nearest watt-hour.
func wattHours(e charge.Joules) flex.WattHours {
	if e < 0 {
		return -wattHours(-e)
	}
	return flex.WattHours((e + 1800) / 3600)
}

// choose computes the offer of every asset, chooses the assets to call, and adds up what they
// do. Of equal choices it takes one in which few assets return at the same time as the rebound
// that is expected already.
func (s *Service) choose(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scoped,
	target []charge.Joules,
	back *instruct.Rebound,
) error {
	order := orderOf(&p.Instruction, sc.now)
	all, err := s.offers(ctx, tx, p, sc, order)
	if err != nil {
		return err
	}

	candidates := make([]instruct.Candidate, len(all))
	for i := range all {
		candidates[i] = all[i].candidate()
	}

	order.Rebound = back
	b := returning{
		order:  order,
		from:   sc.now.Truncate(time.Second),
		prices: sc.prices,
	}

	chosen := instruct.ChooseApart(
		target,
		candidates,
		!p.Unfair,
		func(i int) time.Time { return all[i].from.ReadyBy },
		func(i int, over bool) bool { return b.plan(&all[i], over) },
	)
	p.ease(target, all, chosen)
	slices.Sort(chosen)
	p.sum(all, chosen)

	return nil
}

// offers returns the cars and devices that may be called and can contribute, with what each
// would do.
func (s *Service) offers(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scoped,
	order instruct.Order,
) ([]called, error) {
	var all []called
	for i := range sc.planned {
		c, ok := p.offer(sc, &sc.planned[i], order)
		if ok && !p.leaveOut(sc, c.SiteID) {
			all = append(all, c)
		}
	}

	devices, err := s.offerDevices(ctx, tx, p, sc, order)

	return slices.Concat(all, devices), err
}

// sum adds up what the chosen assets do.
func (p *Preview) sum(all []called, chosen []int) {
	p.Callable, p.NumNotCalled = len(all), len(all)-len(chosen)
	for _, i := range chosen {
		p.add(&all[i])
	}

	p.Rebound, p.ReboundLater = rebound(p.calls, p.To)
	p.SpentSites, p.Spent = len(p.spent), p.spentText()
}

// cannotBeCalled reports whether no instruction can call an asset: cars that share a fuse are
// planned as one, and a car that discharges would have to stop.
func cannotBeCalled(at *store.ScheduledAsset, from time.Time) bool {
	return at.Current.HasTail() || len(dischargesAhead(&at.Current, from)) > 0
}

// offer computes what an asset would do; false if it can contribute nothing.
func (p *Preview) offer(
	s *scoped,
	at *store.ScheduledAsset,
	order instruct.Order,
) (called, bool) {
	id := at.Current.AssetID
	known := s.callables[id]
	from := s.now.Truncate(time.Second)
	if known == nil || !at.Current.From.ReadyBy.After(from) || cannotBeCalled(at, from) {
		p.NumIdle++
		return called{}, false
	}
	if known.Called {
		p.NumBusy++
		return called{}, false
	}

	c := called{
		ScheduledAsset: at,
		Callable:       known,
		id:             id,
		from:           inputsAt(at, from),
		quality:        instruct.Quality(at.Followed(), known.Metered),
	}

	leaveUnmeasured(&c.from)
	if order.Up {
		// No other instruction calls the asset in these half-hours: time that is closed in
		// them is for the rebound of one.
		c.from.Closed = instruct.Without(c.from.Closed, []flex.Span{order.Window})
	}

	c.close(order, problemOf(c.from, from, s.prices))
	ok := p.brings(&c, order)

	return c, ok
}

// close closes the time of an order for a car, in addition to the time that is closed already.
func (c *called) close(order instruct.Order, p charge.Problem) {
	c.held = c.from.Closed
	order.Held = c.held
	c.offer = instruct.Call(order, p, c.Current.Steps)
	c.from.Closed = instruct.Union(c.held, c.offer.Closed)
}

// brings reports whether an asset contributes anything, and counts assets that contribute less
// than they draw.
func (p *Preview) brings(c *called, order instruct.Order) bool {
	given, draws := charge.Joules(0), charge.Joules(0)
	for t, slot := range instruct.Slots(order.Window) {
		given += c.offer.Change[t]
		draws += instruct.Drawn(c.Current.Steps, c.from.Power, slot)
	}

	idle := draws == 0
	if order.Up {
		idle = given <= 0
	}

	if idle {
		p.NumIdle++
	} else if given < draws && !order.Up {
		p.NumNeeded++
	}

	return given > 0
}

// add adds a called asset to the preview.
func (p *Preview) add(c *called) {
	a := InstructedAsset{
		AssetID: c.id,
		SiteID:  c.SiteID,
		Battery: c.isBattery(),
		Heater:  c.isHeater(),
		Quality: c.quality,
		Calls:   c.Calls,
		Cost:    c.offer.Cost,
		Less:    c.offer.Less,
	}

	for t, e := range c.offer.Change {
		a.Change = append(a.Change, wattHours(e))
		p.Slots[t].Given += wattHours(e)
		p.Slots[t].Counted += wattHours(e * charge.Joules(c.quality) / 100)
	}

	p.Cost += c.offer.Cost
	p.Assets = append(p.Assets, a)
	p.calls = append(p.calls, *c)
}

// Reached returns the part of the requested change that is relied on, in the slot where it is
// smallest; 1 for all of it.
func (p *Preview) Reached() float64 {
	least := 1.0
	for _, s := range p.Slots {
		if s.Asked > 0 {
			least = min(least, float64(s.Counted)/float64(s.Asked))
		}
	}

	return least
}

// Why describes why a target is not reached, or cannot be because pushes are halted; empty if
// it is reached.
func (p *Preview) Why() string {
	if p.Halted {
		return "pushes are halted: nothing is sent before the halt ends"
	}
	if p.Reached() >= 1 {
		return ""
	}

	who := "no asset can bring anything"
	if n := p.Callable - p.NumNotCalled; n > 0 {
		who = fmt.Sprintf("all %d assets that can bring something are called", n)
	}

	why := fmt.Sprintf("%s; %d of the others draw nothing that could be moved, %d need what they draw by their ready-by or charge now, %d are called by another instruction in these half-hours",
		who, p.NumIdle, p.NumNeeded, p.NumBusy)
	if p.Spent != "" {
		why += "; " + p.Spent
	}

	return why
}

// reboundMinutes is how long after an instruction its rebound is computed.
const reboundMinutes = 24 * 60

// rebound returns the most power that called assets draw above their previous schedules after
// an instant: within an hour, and later.
func rebound(calls []called, end time.Time) (hour, later flex.Watts) {
	var more [reboundMinutes + 1]int64
	add := func(steps []flex.Step, power flex.Watts, sign int64) {
		for _, s := range steps {
			from := max(0, int(s.From.Sub(end)/time.Minute))
			to := min(reboundMinutes, int(s.To.Sub(end)/time.Minute))
			if from < to {
				w := sign * int64(min(s.Limit, power))
				more[from] += w
				more[to] -= w
			}
		}
	}

	for i := range calls {
		before, after, power := calls[i].steps()
		add(after, power, 1)
		add(before, power, -1)
	}

	sum := int64(0)
	for m := range reboundMinutes {
		sum += more[m]
		if m < 60 {
			hour = max(hour, flex.Watts(sum))
		} else {
			later = max(later, flex.Watts(sum))
		}
	}

	return hour, later
}

// closedAhead returns the closed time after an instant.
func closedAhead(closed []flex.Span, from time.Time) []flex.Span {
	var ahead []flex.Span
	for _, s := range closed {
		if s.To.After(from) {
			ahead = append(ahead, s)
		}
	}

	return ahead
}
