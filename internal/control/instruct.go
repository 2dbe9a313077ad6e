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
	// MeteredLately is the greatest age of an asset's newest reading at which its change
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
	// the cost of the plans with the instruction, less that of the plans without it
	Cost flex.MicroPounds
	// of a dispatch: the wear cost of batteries during it, less that without it; if wear per
	// kWh is known
	Wear flex.Optional[flex.MicroPounds]
	// the highest power above the plan in the hour after the end
	Rebound      flex.Watts
	ReboundLater flex.Watts // the highest power above the plan later

	Callable int // assets that can contribute
	// assets that contribute less than they draw in the window, because of their need,
	// ready-by or charge-now
	NumNeeded    int
	NumIdle      int  // assets that already draw nothing in the window by plan, or all that they can
	NumBusy      int  // assets that another instruction calls in the same half-hours
	NumNotCalled int  // assets that could be called in addition
	NumReplaced  int  // assets of which a dispatch replaces earlier dispatches
	Halted       bool // pushes are halted: nothing is sent before that ends
	// sites that could contribute, but have had all the calls that they agreed to
	spentLimits map[flex.SiteID]flex.SpentCalls

	calls []callableAsset
}

// InstructedSlot is a half-hour of an instruction, or a part of one.
type InstructedSlot struct {
	flex.Span
	// what the controlled assets of the scope draw by the schedules in force
	Planned flex.WattHours
	Asked   flex.WattHours // the change, without a sign
	Counted flex.WattHours // the part of the change that may be relied on
	Given   flex.WattHours // the change if all called assets follow
}

// InstructedAsset is what an asset does for an instruction.
type InstructedAsset struct {
	AssetID flex.AssetID
	SiteID  flex.SiteID
	Battery bool             // it is a home battery
	Heater  bool             // it is a tank or a heat pump; an asset that is neither charges a car
	Quality instruct.Percent // how much of its change may be relied on
	Calls   int              // number of earlier calls of its site
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

// callableAsset is an asset that may be called, with everything that is needed to call it.
type callableAsset struct {
	*store.ScheduledAsset // nil for a device
	*store.Callable
	id           flex.AssetID
	device       *callableDevice  // nil for a car
	from         store.PlanInputs // with the time that the call closes
	othersClosed []flex.Span      // the time that other instructions close
	offer        instruct.Offer
	quality      instruct.Percent
}

// candidate returns the asset in the form of the choice of assets.
func (c *callableAsset) candidate() instruct.Candidate {
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

// SendInstruction stores an instruction, and replaces the schedules of the called cars and
// batteries in the same transaction and those of heaters right after it. It fails as
// PreviewInstruction does.
func (s *Service) SendInstruction(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*Preview, error) {
	return s.sendWith(ctx, org, in, s.instructWithin)
}

// storeInstruction stores an instruction and calls its assets within a transaction, as
// instructWithin does.
type storeInstruction func(
	context.Context,
	*store.Tx,
	flex.Instruction,
	*precomputedOffers,
) (*Preview, error)

// sendWith is SendInstruction with put as the function that stores the instruction.
func (s *Service) sendWith(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
	put storeInstruction,
) (*Preview, error) {
	ahead, err := s.computeOffers(ctx, org, in)
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

// InstructWithin is SendInstruction within a transaction. It computes the offers of all
// devices itself. The heaters that it calls are planned by their job.
func (s *Service) InstructWithin(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
) (*Preview, error) {
	return s.instructWithin(ctx, tx, in, nil)
}

// instructWithin is InstructWithin; ahead has the offers of devices, if they were computed
// before the transaction.
func (s *Service) instructWithin(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *precomputedOffers,
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

// orderFrom returns the order of an instruction to an asset from an instant on. Plans are made
// in whole seconds, so the window begins at a whole second.
func orderFrom(in *flex.Instruction, from time.Time) instruct.Order {
	begin := flex.Later(in.From, from.Truncate(time.Second))

	return instruct.Order{
		Window: in.Meet(flex.Span{From: begin, To: in.To}),
		Up:     in.Change > 0,
	}
}

// scopeAssets has the assets of an instruction's scope, and the prices that they are planned
// with.
type scopeAssets struct {
	now         time.Time
	prices      []flex.PricedPeriod
	planned     []store.ScheduledAsset
	callables   map[flex.AssetID]*store.Callable
	batteries   []device
	heaters     []device
	precomputed *precomputedOffers
	spentSites  map[flex.SiteID]flex.SpentCalls // sites whose calls are used up
}

// readScope reads the cars and devices of an instruction's scope.
func readScope(
	ctx context.Context,
	tx *store.Tx,
	in *flex.Instruction,
) (scopeAssets, error) {
	var s scopeAssets
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

// readCallables reads what is needed to choose among the assets.
func (s *scopeAssets) readCallables(
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

	s.spentSites, err = tx.SpentSites(ctx, in.ID, in.From)
	if err != nil {
		return fmt.Errorf("read which sites have had the calls they agreed to: %w", err)
	}

	s.prices, err = prices(ctx, tx, s.now)

	return err
}

// plannedEnergy returns the energy that the assets draw by their schedules in force in each
// slot.
func (s *scopeAssets) plannedEnergy(slots []flex.Span) []charge.Joules {
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

// previewInstruction computes an instruction's effect; ahead has the offers of devices, if
// they were computed before.
func (s *Service) previewInstruction(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *precomputedOffers,
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

	sc.precomputed = ahead
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
func (p *Preview) setTarget(s *scopeAssets) []charge.Joules {
	slots := instruct.Slots(p.Span)
	planned := s.plannedEnergy(slots)
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
// do. Among equal choices it prefers one in which few assets return to their plans at the same
// time as others whose return is already expected.
func (s *Service) choose(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scopeAssets,
	target []charge.Joules,
	back *instruct.Rebound,
) error {
	order := orderFrom(&p.Instruction, sc.now)
	all, err := s.offers(ctx, tx, p, sc, order)
	if err != nil {
		return err
	}

	candidates := make([]instruct.Candidate, len(all))
	for i := range all {
		candidates[i] = all[i].candidate()
	}

	order.Rebound = back
	b := returnPlanner{
		order:  order,
		from:   sc.now.Truncate(time.Second),
		prices: sc.prices,
	}

	chosen := instruct.ChooseApart(
		target,
		candidates,
		!p.Unfair,
		func(i int) time.Time { return all[i].from.ReadyBy },
		func(i int, over bool) bool { return b.planReturn(&all[i], over) },
	)
	p.preferStopOnly(target, all, chosen)
	slices.Sort(chosen)
	p.addChosen(all, chosen)

	return nil
}

// offers returns the cars and devices that may be called and can contribute, with what each
// would do.
func (s *Service) offers(
	ctx context.Context,
	tx *store.Tx,
	p *Preview,
	sc *scopeAssets,
	order instruct.Order,
) ([]callableAsset, error) {
	var all []callableAsset
	for i := range sc.planned {
		c, ok := p.offer(sc, &sc.planned[i], order)
		if ok && !p.excludeSpent(sc, c.SiteID) {
			all = append(all, c)
		}
	}

	devices, err := s.offerDevices(ctx, tx, p, sc, order)

	return slices.Concat(all, devices), err
}

// addChosen adds the chosen assets to the preview.
func (p *Preview) addChosen(all []callableAsset, chosen []int) {
	p.Callable, p.NumNotCalled = len(all), len(all)-len(chosen)
	for _, i := range chosen {
		p.add(&all[i])
	}

	p.Rebound, p.ReboundLater = rebound(p.calls, p.To)
	p.SpentSites, p.Spent = len(p.spentLimits), p.spentText()
}

// notCallable reports whether no instruction can call a car: cars that share a fuse are
// planned as one, and a car that discharges would have to stop.
func notCallable(at *store.ScheduledAsset, from time.Time) bool {
	return at.Current.HasTail() || len(dischargeSteps(&at.Current, from)) > 0
}

// offer computes what an asset would do; false if it can contribute nothing.
func (p *Preview) offer(
	s *scopeAssets,
	at *store.ScheduledAsset,
	order instruct.Order,
) (callableAsset, bool) {
	id := at.Current.AssetID
	known := s.callables[id]
	from := s.now.Truncate(time.Second)
	if known == nil || !at.Current.From.ReadyBy.After(from) || notCallable(at, from) {
		p.NumIdle++
		return callableAsset{}, false
	}
	if known.Called {
		p.NumBusy++
		return callableAsset{}, false
	}

	c := callableAsset{
		ScheduledAsset: at,
		Callable:       known,
		id:             id,
		from:           inputsAt(at, from),
		quality:        instruct.Quality(at.Followed(), known.Metered),
	}

	ignoreUnknownPower(&c.from)
	if order.Up {
		// No other instruction calls the asset in these half-hours: time that is closed in
		// them is for the rebound of one.
		c.from.Closed = instruct.Without(c.from.Closed, []flex.Span{order.Window})
	}

	c.close(order, problemOf(c.from, from, s.prices))
	ok := p.contributes(&c, order)

	return c, ok
}

// close computes a car's offer for an order, and closes the time of the offer in its inputs.
func (c *callableAsset) close(order instruct.Order, p charge.Problem) {
	c.othersClosed = c.from.Closed
	order.Held = c.othersClosed
	c.offer = instruct.Call(order, p, c.Current.Steps)
	c.from.Closed = instruct.Union(c.othersClosed, c.offer.Closed)
}

// contributes reports whether an asset contributes anything, and counts those that contribute
// nothing or less than they draw.
func (p *Preview) contributes(c *callableAsset, order instruct.Order) bool {
	contributed, drawn := charge.Joules(0), charge.Joules(0)
	for t, slot := range instruct.Slots(order.Window) {
		contributed += c.offer.Change[t]
		drawn += instruct.Drawn(c.Current.Steps, c.from.Power, slot)
	}

	idle := drawn == 0
	if order.Up {
		idle = contributed <= 0
	}

	if idle {
		p.NumIdle++
	} else if contributed < drawn && !order.Up {
		p.NumNeeded++
	}

	return contributed > 0
}

// add adds a called asset to the preview.
func (p *Preview) add(c *callableAsset) {
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

// Reached returns the part of the requested change that may be relied on, in the slot in which
// it is smallest; 1 for all of it.
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

// reboundMinutes is for how long after an instruction its rebound is computed, in minutes.
const reboundMinutes = 24 * 60

// rebound returns the most power that called assets draw above their previous schedules after
// an instant: within an hour, and later.
func rebound(calls []callableAsset, end time.Time) (hour, later flex.Watts) {
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

// closedAfter returns the closed time after an instant.
func closedAfter(closed []flex.Span, from time.Time) []flex.Span {
	var ahead []flex.Span
	for _, s := range closed {
		if s.To.After(from) {
			ahead = append(ahead, s)
		}
	}

	return ahead
}
