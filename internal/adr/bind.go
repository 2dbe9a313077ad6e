package adr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Bind has a program's events be for a part of the organisation's own fleet: what they ask for is
// carried out, now and from now on. It replaces how the program was bound before. A program or
// constraint group that there is not is NotFound. Nothing is kept unless that is to be: what it would do is
// returned then.
func (s *Service) Bind(
	ctx context.Context,
	org flex.OrgID,
	b *flex.ADRBinding,
	keep bool,
) (Bound, error) {
	if b.Kind == "" {
		b.Kind = flex.ADRInstruction
	}

	if err := checkBinding(b); err != nil {
		return Bound{}, err
	}

	return s.change(ctx, org, b.Program, keep, func(tx *store.Tx) error {
		if err := tx.CheckScope(ctx, b.Scope); err != nil {
			return err
		}

		if err := endFormerBinding(ctx, tx, b); err != nil {
			return err
		}

		if err := tx.BindADRProgram(ctx, b); err != nil {
			return err
		}

		return reconcileOrders(ctx, tx, b.Program, flex.ADRObjectID{})
	})
}

// checkBinding refuses a binding that cannot be.
func checkBinding(b *flex.ADRBinding) error {
	if !b.Kind.Limits() && b.Kind != flex.ADRInstruction {
		return flex.Fail(
			flex.Malformed,
			"a program is bound as instruction, limit or import_limit, not %q",
			b.Kind,
		)
	}

	if err := b.Scope.CheckGSPGroup(); err != nil {
		return err
	}

	tooMuch := func(w flex.Watts) bool {
		return w > flex.CapMax || w < -flex.CapMax
	}
	if slices.ContainsFunc(b.Simple, tooMuch) {
		return flex.Fail(
			flex.Malformed,
			"a change at a level is 1,000,000 kW at most",
		)
	}

	if b.Kind.Limits() &&
		(b.Scope.Group == "" || b.Scope.GSPGroup != "") {
		return flex.Fail(
			flex.Malformed,
			"a limit is of one constraint group: name it (group), without a GSP group",
		)
	}

	if b.Price < 0 || b.Price > settle.MaxPrice {
		return flex.Fail(
			flex.Malformed,
			"a price of %g £/MWh is out of range: give 0 to %g",
			b.Price.GBPPerMWh(),
			settle.MaxPrice.GBPPerMWh(),
		)
	}

	return nil
}

// endFormerBinding ends the binding that another replaces, if it is not the same: what was asked for by it
// is withdrawn.
func endFormerBinding(ctx context.Context, tx *store.Tx, b *flex.ADRBinding) error {
	before, err := tx.ADRBindings(ctx, b.Program)
	if err != nil || len(before) == 0 {
		return err
	}

	was := before[0]
	same := was.Scope == b.Scope && was.Service == b.Service &&
		was.Kind == b.Kind && was.Price == b.Price
	if same && slices.Equal(was.Simple, b.Simple) {
		return nil
	}

	if _, err := tx.UnbindADRProgram(ctx, b.Program); err != nil {
		return err
	}

	return reconcileOrders(ctx, tx, b.Program, flex.ADRObjectID{})
}

// Unbind ends the binding of a program: what its events asked for is withdrawn. It is NotFound if there
// is none. Nothing is kept unless that is to be.
func (s *Service) Unbind(
	ctx context.Context,
	org flex.OrgID,
	program flex.ADRObjectID,
	keep bool,
) (Bound, error) {
	return s.change(ctx, org, program, keep, func(tx *store.Tx) error {
		was, err := tx.UnbindADRProgram(ctx, program)
		if err == nil && !was {
			err = flex.Fail(
				flex.NotFound,
				"the program %s is not bound",
				program,
			)
		}

		if err != nil {
			return err
		}

		return reconcileOrders(ctx, tx, program, flex.ADRObjectID{})
	})
}

// BoundProgram is a program and how it is bound, if it is.
type BoundProgram struct {
	Object
	Binding *flex.ADRBinding
}

// Programs returns the organisation's programs and how each is bound.
func (s *Service) Programs(
	ctx context.Context,
	org flex.OrgID,
) ([]BoundProgram, error) {
	var found []BoundProgram
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		found, err = programs(ctx, tx)
		return err
	})

	return found, err
}

// ProgramsOf returns the programs of an organisation, of the first if none is chosen.
func (s *Service) ProgramsOf(
	ctx context.Context,
	chosen flex.OrgID,
) ([]flex.Org, flex.OrgID, []BoundProgram, error) {
	var (
		orgs  []flex.Org
		org   flex.OrgID
		found []BoundProgram
	)

	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var tx *store.Tx
		var err error
		orgs, tx, err = all.Choose(ctx, chosen)
		if tx == nil || err != nil {
			return err
		}

		org = tx.Org()
		found, err = programs(ctx, tx)
		return err
	})

	return orgs, org, found, err
}

func programs(ctx context.Context, tx *store.Tx) ([]BoundProgram, error) {
	kept, err := tx.ADRObjects(ctx, flex.ADRSearch{Kind: flex.ADRProgram})
	if err != nil {
		return nil, err
	}

	bindings, err := tx.ADRBindings(ctx, flex.ADRObjectID{})
	if err != nil {
		return nil, err
	}

	var found []BoundProgram
	for i := range kept {
		p := BoundProgram{}
		p.Object, err = objectOf(&kept[i])
		if err != nil {
			return nil, err
		}

		at := slices.IndexFunc(bindings, func(b flex.ADRBinding) bool {
			return b.Program == p.ID
		})
		if at >= 0 {
			p.Binding = &bindings[at]
		}

		found = append(found, p)
	}

	return found, nil
}

// Orders returns what events asked of the fleet and what became of it, at most limit, the newest first.
func (s *Service) Orders(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) ([]store.ADROrder, error) {
	var found []store.ADROrder
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		found, err = tx.ADROrders(ctx, limit)
		return err
	})

	return found, err
}

// Traffic is what events asked of the fleet, the newest first, and the servers that are asked for events.
type Traffic struct {
	Orders  []AskedOrder
	Servers []AskedServer
}

// AskedOrder is what an event asked of the fleet, and what became of it.
type AskedOrder struct {
	flex.Span
	Change      flex.Watts  // against the plan, negative for less; zero with a limit, and where it could not be read
	Limit       *flex.Watts // the most that may be drawn, or given
	State       string
	Problem     string             // why it was not carried out, or not in full
	Instruction flex.InstructionID // zero until it was sent
}

// AskedServer is a server of another party that is asked for events.
type AskedServer struct {
	Name      string
	URL       string
	HeardAt   time.Time     // zero if it never answered
	Silence   time.Duration // how long it may not be heard before it is an exception
	Error     string        // of the latest attempt
	NumEvents int           // that are kept of it
}

// TrafficOf returns an organisation's servers, and at most limit of its orders.
func (s *Service) TrafficOf(
	ctx context.Context,
	org flex.OrgID,
	limit int,
) (Traffic, error) {
	orders, err := s.Orders(ctx, org, limit)
	var t Traffic
	if err != nil {
		return t, err
	}

	for _, o := range orders {
		t.Orders = append(t.Orders, AskedOrder{
			Span:        o.Span,
			Change:      o.Change,
			Limit:       o.Limit,
			State:       string(o.State),
			Problem:     o.Problem,
			Instruction: o.Instruction,
		})
	}

	servers, err := s.Upstreams(ctx, org)
	for _, u := range servers {
		t.Servers = append(t.Servers, AskedServer{
			Name:      u.Name,
			URL:       u.URL,
			HeardAt:   u.AnsweredAt(),
			Silence:   u.Silence,
			Error:     u.Error,
			NumEvents: u.NumEvents,
		})
	}

	return t, err
}

// reorder has what a program or an event that was just written, in the place of the one that was, if any,
// or that is being deleted asks for be what is carried out.
func reorder(ctx context.Context, tx *store.Tx, was, o *flex.ADRObject) error {
	if was != nil && was.Program != o.Program { // it was another program's event
		err := reconcileOrders(ctx, tx, was.Program, flex.ADRObjectID{})
		if err != nil {
			return err
		}
	}

	switch o.Kind {
	case flex.ADREvent:
		if err := linkAlive(ctx, tx, o.Program); err != nil {
			return err
		}
		return reconcileOrders(ctx, tx, o.Program, o.ID)
	case flex.ADRProgram:
		return reconcileOrders(ctx, tx, o.ID, flex.ADRObjectID{})
	}

	return nil
}

// linkAlive says that whoever limits a constraint group by a program's events was heard.
func linkAlive(ctx context.Context, tx *store.Tx, program flex.ADRObjectID) error {
	bindings, err := tx.ADRBindings(ctx, program)
	if err != nil || len(bindings) == 0 || !bindings[0].Kind.Limits() {
		return err
	}

	back, err := tx.CapLinkAlive(ctx, bindings[0].Scope.Group)
	if err == nil && back {
		err = tx.CapsChanged(ctx)
	}

	return err
}

// reconcileOrders compares what a program's events ask for with what is kept: what is not asked for any more is
// withdrawn, what is new waits to be sent. The same twice changes nothing. One event is looked at even if
// it is over, so that one that came too late is refused and not forgotten.
func reconcileOrders(
	ctx context.Context,
	tx *store.Tx,
	program, event flex.ADRObjectID,
) error {
	current, err := tx.CurrentADROrders(ctx, program, event)
	if err != nil {
		return err
	}

	now := tx.Now()
	wanted, err := wantedOf(ctx, tx, program, lookedAt(event, current, now))
	if err != nil {
		return err
	}

	kept, asked := map[string]bool{}, map[string]bool{}
	for _, o := range current {
		kept[keyOf(&o, now)] = true
	}

	for _, w := range wanted {
		o := w.record(program)
		key := keyOf(&o, now)
		twice := kept[key] || asked[key]
		done := w.Problem == wasOver && hadOrder(current, &o)
		asked[key] = true

		// before the program was bound
		missed := o.State == store.ADRWaiting && !o.To.After(now)
		if twice || missed || done {
			continue
		}
		if err := tx.AddADROrder(ctx, &o); err != nil {
			return err
		}
	}

	for _, o := range current {
		if !asked[keyOf(&o, now)] && o.To.After(now) {
			if err := tx.WithdrawADROrder(ctx, o.ID); err != nil {
				return err
			}
		}
	}

	return nil
}

// lookedAt are the events that are looked at even if they are over: the one that is given, if any, and those of which
// something is still carried out, as their start was moved at random.
func lookedAt(
	event flex.ADRObjectID,
	current []store.ADROrder,
	now time.Time,
) []flex.ADRObjectID {
	var also []flex.ADRObjectID
	if !event.IsZero() {
		also = append(also, event)
	}

	for i := range current {
		if current[i].To.After(now) {
			also = append(also, current[i].Event)
		}
	}

	return also
}

// hadOrder reports whether an interval of an event was asked for before in some of its time.
func hadOrder(current []store.ADROrder, o *store.ADROrder) bool {
	return slices.ContainsFunc(current, func(k store.ADROrder) bool {
		same := k.Event == o.Event && k.Interval == o.Interval
		return same && !k.Meet(o.Span).Empty()
	})
}

// keyOf is what makes two orders the same, as far as they are still to come. When what is under way began makes no difference:
// the event that had the time before may be over by now.
func keyOf(o *store.ADROrder, now time.Time) string {
	from := o.From
	if o.To.After(now) {
		from = flex.Later(from, now)
	}

	limit := flex.Watts(-1)
	if o.Limit != nil {
		limit = *o.Limit
	}

	problem := ""
	unread := o.Change == 0 && o.Limit == nil
	if unread || o.State == store.ADROutranked {
		problem = o.Problem
	}

	return fmt.Sprint(
		o.Event,
		o.Interval,
		from.Unix(),
		o.To.Unix(),
		int64(o.Change),
		int64(limit),
		cmp.Or(o.Direction, flex.Import),
		problem,
	)
}

// record is the order as it is kept.
func (o *Order) record(program flex.ADRObjectID) store.ADROrder {
	r := store.ADROrder{
		Program:  program,
		Event:    o.Event.ID,
		Interval: o.Interval,
		Span:     o.Span,
		Change:   o.Change,
		Limit:    o.Limit,
		State:    store.ADRWaiting,

		Direction: o.Direction,
	}

	if o.Problem != "" {
		r.State, r.Problem = store.ADRRefused, o.Problem
	} else if o.Outrank != "" {
		r.State, r.Problem = store.ADROutranked, "the event "+o.Outrank+" has its time"
	}

	return r
}

// wantedOf are what a program's events ask for that are not over, and some events more; none if it is not bound.
func wantedOf(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
	also []flex.ADRObjectID,
) ([]Order, error) {
	bindings, err := tx.ADRBindings(ctx, program)
	if err != nil || len(bindings) == 0 {
		return nil, err
	}

	events, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind:    flex.ADREvent,
		Program: program,
		Active:  true,
	})

	if err != nil {
		return nil, err
	}

	looked := map[flex.ADRObjectID]bool{}
	for i := range events {
		looked[events[i].ID] = true
	}

	for _, id := range also {
		if looked[id] {
			continue
		}

		looked[id] = true
		over, err := tx.ADRObjects(ctx, flex.ADRSearch{
			Kind:    flex.ADREvent,
			Program: program,
			ID:      id,
		})
		if err != nil {
			return nil, err
		}

		events = append(events, over...)
	}

	wanted, err := ordersOfAll(ctx, tx, &bindings[0], events)

	return byPriority(wanted), err
}

// byPriority gives each instant to the event of the highest priority, and of the same to the newest: of the
// others' orders there remains what is left of their time. What is left without time is outranked. Those of one event are
// carried out beside each other, and so are limits of two directions. What cannot be carried out has no time.
func byPriority(orders []Order) []Order {
	slices.SortStableFunc(orders, func(a, b Order) int {
		return cmp.Or(
			cmp.Compare(a.Priority, b.Priority),
			b.Event.CreatedAt.Compare(a.Event.CreatedAt),
			slices.Compare(b.Event.ID[:], a.Event.ID[:]),
		)
	})

	var ranked []Order
	taken := map[flex.Direction]timeline{}
	first := 0 // of the event's orders, and of what of them was ranked
	firstRanked := 0
	for i, o := range orders {
		if o.Event != orders[first].Event {
			takeFreeTime(taken, ranked[firstRanked:])
			first, firstRanked = i, len(ranked)
		}

		if o.Problem != "" || o.Unfit {
			ranked = append(ranked, o)
			continue
		}

		left, by := taken[o.Direction].free(o.Span)
		if len(left) == 0 {
			o.Outrank = by
			ranked = append(ranked, o)
			continue
		}

		for _, span := range left {
			part := o
			part.Span = span
			part.Unfit = part.tooLong()
			ranked = append(ranked, part)
		}
	}

	return ranked
}

// takeFreeTime gives an event what its orders have of the free time, in each direction.
func takeFreeTime(taken map[flex.Direction]timeline, ranked []Order) {
	for i := range ranked {
		if o := &ranked[i]; o.Problem == "" && !o.Unfit && o.Outrank == "" {
			taken[o.Direction] = taken[o.Direction].with(o)
		}
	}
}

// timeline is the time that events have, in its order: no two parts overlap.
type timeline []takenTime

// takenTime is time that an event has.
type takenTime struct {
	flex.Span
	by string // the event
}

// after is the place of the first part that ends after an instant.
func (t timeline) after(at time.Time) int {
	i, _ := slices.BinarySearchFunc(t, at, func(part takenTime, at time.Time) int {
		if part.To.After(at) {
			return 1
		}
		return -1
	})

	return i
}

// free is what is left of a span, and the last event that has some of its time.
func (t timeline) free(s flex.Span) ([]flex.Span, string) {
	var left []flex.Span
	at, by := s.From, ""
	for _, part := range t[t.after(s.From):] {
		if !part.From.Before(s.To) {
			break
		}
		if at.Before(part.From) {
			left = append(left, flex.Span{From: at, To: part.From})
		}

		at, by = part.To, part.by
	}

	if at.Before(s.To) {
		left = append(left, flex.Span{From: at, To: s.To})
	}

	return left, by
}

// with is the timeline on which an order has what is free of its time.
func (t timeline) with(o *Order) timeline {
	left, _ := t.free(o.Span)
	for _, span := range left {
		t = slices.Insert(t, t.after(span.From), takenTime{span, o.Event.ID.String()})
	}

	return t
}
