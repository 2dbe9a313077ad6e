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

// Bind binds a program to a part of the organisation's own fleet: the orders of its events are
// carried out from now on. It replaces the program's earlier binding. An unknown program or
// constraint group is NotFound. A preview returns what would change, and stores nothing.
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

// checkBinding refuses an invalid binding.
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

// endFormerBinding ends the earlier binding if it is a different one: its orders are
// withdrawn.
func endFormerBinding(ctx context.Context, tx *store.Tx, b *flex.ADRBinding) error {
	before, err := tx.ADRBindings(ctx, b.Program)
	if err != nil || len(before) == 0 {
		return err
	}

	previous := before[0]
	same := previous.Scope == b.Scope && previous.Service == b.Service &&
		previous.Kind == b.Kind && previous.Price == b.Price
	if same && slices.Equal(previous.Simple, b.Simple) {
		return nil
	}

	if _, err := tx.UnbindADRProgram(ctx, b.Program); err != nil {
		return err
	}

	return reconcileOrders(ctx, tx, b.Program, flex.ADRObjectID{})
}

// Unbind ends the binding of a program and withdraws its orders. It is NotFound if there is
// none. A preview stores nothing.
func (s *Service) Unbind(
	ctx context.Context,
	org flex.OrgID,
	program flex.ADRObjectID,
	keep bool,
) (Bound, error) {
	return s.change(ctx, org, program, keep, func(tx *store.Tx) error {
		previous, err := tx.UnbindADRProgram(ctx, program)
		if err == nil && !previous {
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

// BoundProgram is a program with its binding, if it has one.
type BoundProgram struct {
	Object
	Binding *flex.ADRBinding
}

// Programs returns the organisation's programs with their bindings.
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

// ProgramsOf returns the programs of an organisation, the first one if none is chosen.
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
	stored, err := tx.ADRObjects(ctx, flex.ADRSearch{Kind: flex.ADRProgram})
	if err != nil {
		return nil, err
	}

	bindings, err := tx.ADRBindings(ctx, flex.ADRObjectID{})
	if err != nil {
		return nil, err
	}

	var found []BoundProgram
	for i := range stored {
		p := BoundProgram{}
		p.Object, err = objectOf(&stored[i])
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

// Orders returns at most limit orders of events with their states, the newest first.
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

// Traffic has the orders of events, the newest first, and the other parties' servers.
type Traffic struct {
	Orders  []OrderView
	Servers []ServerView
}

// OrderView is an order of an event with its state.
type OrderView struct {
	flex.Span
	Change      flex.Watts  // against the plan, negative for less; zero with a limit, and where it could not be read
	Limit       *flex.Watts // the most that may be drawn, or given
	State       string
	Problem     string             // why it was not carried out, or not in full
	Instruction flex.InstructionID // zero until it was sent
}

// ServerView is a server of another party that is polled for events.
type ServerView struct {
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
		t.Orders = append(t.Orders, OrderView{
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
		t.Servers = append(t.Servers, ServerView{
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

// reorder updates the orders after a program or an event was written, in place of the previous
// one if there is one, or while it is being deleted.
func reorder(ctx context.Context, tx *store.Tx, previous, o *flex.ADRObject) error {
	if previous != nil && previous.Program != o.Program { // it was another program's event
		err := reconcileOrders(ctx, tx, previous.Program, flex.ADRObjectID{})
		if err != nil {
			return err
		}
	}

	switch o.Kind {
	case flex.ADREvent:
		if err := noteLinkAlive(ctx, tx, o.Program); err != nil {
			return err
		}
		return reconcileOrders(ctx, tx, o.Program, o.ID)
	case flex.ADRProgram:
		return reconcileOrders(ctx, tx, o.ID, flex.ADRObjectID{})
	}

	return nil
}

// noteLinkAlive records that the party that limits a constraint group by a program's events was
// heard.
func noteLinkAlive(ctx context.Context, tx *store.Tx, program flex.ADRObjectID) error {
	bindings, err := tx.ADRBindings(ctx, program)
	if err != nil || len(bindings) == 0 || !bindings[0].Kind.Limits() {
		return err
	}

	recovered, err := tx.CapLinkAlive(ctx, bindings[0].Scope.Group)
	if err == nil && recovered {
		err = tx.CapsChanged(ctx)
	}

	return err
}

// reconcileOrders compares the orders of a program's events with the stored ones: those that
// are no longer wanted are withdrawn, new ones are queued. It is idempotent. One event is
// included even if it is over, so that an event that came too late is refused, and not
// ignored.
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
	required, err := requiredOrders(ctx, tx, program, eventsToRead(event, current, now))
	if err != nil {
		return err
	}

	stored, requested := map[string]bool{}, map[string]bool{}
	for _, o := range current {
		stored[keyOf(&o, now)] = true
	}

	for _, w := range required {
		o := w.record(program)
		key := keyOf(&o, now)
		duplicate := stored[key] || requested[key]
		alreadyOver := w.Problem == problemOver && hadOrder(current, &o)
		requested[key] = true

		// before the program was bound
		expired := o.State == store.ADRWaiting && !o.To.After(now)
		if duplicate || expired || alreadyOver {
			continue
		}
		if err := tx.AddADROrder(ctx, &o); err != nil {
			return err
		}
	}

	for _, o := range current {
		if !requested[keyOf(&o, now)] && o.To.After(now) {
			if err := tx.WithdrawADROrder(ctx, o.ID); err != nil {
				return err
			}
		}
	}

	return nil
}

// eventsToRead returns the events that are included even if they are over: the given one, and
// those with an order that is still carried out, because its start was randomised.
func eventsToRead(
	event flex.ADRObjectID,
	current []store.ADROrder,
	now time.Time,
) []flex.ADRObjectID {
	var ids []flex.ADRObjectID
	if !event.IsZero() {
		ids = append(ids, event)
	}

	for i := range current {
		if current[i].To.After(now) {
			ids = append(ids, current[i].Event)
		}
	}

	return ids
}

// hadOrder reports whether there was an order for an interval of an event before, in some of
// its time.
func hadOrder(current []store.ADROrder, o *store.ADROrder) bool {
	return slices.ContainsFunc(current, func(k store.ADROrder) bool {
		same := k.Event == o.Event && k.Interval == o.Interval
		return same && !k.Meet(o.Span).Empty()
	})
}

// keyOf returns the key by which orders are equal in the time that is to come. For an order
// under way the beginning is not part of it: the event that had the time before may be over by
// now.
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

// record returns the order's database record.
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

// requiredOrders returns the orders of a program's events that are not over, and of the given
// events; none if the program is not bound.
func requiredOrders(
	ctx context.Context,
	tx *store.Tx,
	program flex.ADRObjectID,
	others []flex.ADRObjectID,
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

	checked := map[flex.ADRObjectID]bool{}
	for i := range events {
		checked[events[i].ID] = true
	}

	for _, id := range others {
		if checked[id] {
			continue
		}

		checked[id] = true
		eventsFound, err := tx.ADRObjects(ctx, flex.ADRSearch{
			Kind:    flex.ADREvent,
			Program: program,
			ID:      id,
		})
		if err != nil {
			return nil, err
		}

		events = append(events, eventsFound...)
	}

	orders, err := ordersOfEvents(ctx, tx, &bindings[0], events)

	return byPriority(orders), err
}

// byPriority gives each instant to the event of the highest priority, and among equals to the
// newest. The orders of others get the rest of their time; an order without any is outranked.
// Orders of one event are carried out together, and so are limits of different directions. An
// order that cannot be carried out has no time.
func byPriority(orders []Order) []Order {
	slices.SortStableFunc(orders, func(a, b Order) int {
		return cmp.Or(
			cmp.Compare(a.Priority, b.Priority),
			b.Event.CreatedAt.Compare(a.Event.CreatedAt),
			slices.Compare(b.Event.ID[:], a.Event.ID[:]),
		)
	})

	var ordered []Order
	busy := map[flex.Direction]timeline{}
	first := 0 // of the event's orders, and of what of them was ranked
	firstRanked := 0
	for i, o := range orders {
		if o.Event != orders[first].Event {
			occupyFreeTime(busy, ordered[firstRanked:])
			first, firstRanked = i, len(ordered)
		}

		if o.Problem != "" || o.Unfit {
			ordered = append(ordered, o)
			continue
		}

		free, by := busy[o.Direction].free(o.Span)
		if len(free) == 0 {
			o.Outrank = by
			ordered = append(ordered, o)
			continue
		}

		for _, span := range free {
			part := o
			part.Span = span
			part.Unfit = part.tooLong()
			ordered = append(ordered, part)
		}
	}

	return ordered
}

// occupyFreeTime assigns an event the free time of its orders, in each direction.
func occupyFreeTime(busy map[flex.Direction]timeline, orders []Order) {
	for i := range orders {
		if o := &orders[i]; o.Problem == "" && !o.Unfit && o.Outrank == "" {
			busy[o.Direction] = busy[o.Direction].occupy(o)
		}
	}
}

// timeline is the time that is assigned to events, in order and without overlaps.
type timeline []occupied

// occupied is a time that is assigned to an event.
type occupied struct {
	flex.Span
	by string // the event
}

// after returns the index of the first part that ends after an instant.
func (t timeline) after(at time.Time) int {
	i, _ := slices.BinarySearchFunc(t, at, func(part occupied, at time.Time) int {
		if part.To.After(at) {
			return 1
		}
		return -1
	})

	return i
}

// free returns the free parts of a span, and the last event that has some of its time.
func (t timeline) free(s flex.Span) ([]flex.Span, string) {
	var remaining []flex.Span
	at, by := s.From, ""
	for _, part := range t[t.after(s.From):] {
		if !part.From.Before(s.To) {
			break
		}
		if at.Before(part.From) {
			remaining = append(remaining, flex.Span{From: at, To: part.From})
		}

		at, by = part.To, part.by
	}

	if at.Before(s.To) {
		remaining = append(remaining, flex.Span{From: at, To: s.To})
	}

	return remaining, by
}

// occupy returns the timeline with the free time of a span assigned to an order.
func (t timeline) occupy(o *Order) timeline {
	remaining, _ := t.free(o.Span)
	for _, span := range remaining {
		t = slices.Insert(t, t.after(span.From), occupied{span, o.Event.ID.String()})
	}

	return t
}
