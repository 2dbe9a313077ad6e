package control

import (
	"context"
	"maps"
	"slices"
	"time"

	"flexd/internal/engine/tank"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// Level is the state of an asset's store: the state of charge of a battery or a car in %, or
// the temperature of a tank's water or of a heat pump's rooms in °C.
type Level struct {
	Unit     string
	Read     []LevelAt
	Expected []LevelAt // by the plan in force, from when it was last made
}

// LevelAt is a level at an instant.
type LevelAt struct {
	At    time.Time
	Value float64
}

// levelLabels returns the labels of readings that give an asset's level.
func levelLabels(t flex.AssetType) []flex.Label {
	switch t {
	case flex.HeatPump:
		return []flex.Label{flex.RoomTemperature}
	case flex.HotWaterTank:
		return []flex.Label{flex.TankTemperature, flex.BatteryStateOfCharge}
	}

	return []flex.Label{flex.BatteryStateOfCharge, flex.BatteryStoredEnergy}
}

// explainLevel adds the asset's levels, as they were read and as they are expected.
func (p *Past) explainLevel() {
	p.Level.Unit = "%"
	if p.Asset.Type.Heats() {
		p.Level.Unit = "°C"
	}

	var capacity flex.WattHours
	if p.Asset.Capacity != nil {
		capacity = *p.Asset.Capacity
	}
	if p.Battery != nil {
		capacity = p.Battery.Capacity
		p.Level.Expected = p.Battery.levels()
	}

	for _, r := range p.Readings {
		if slices.Contains(powerLabels, r.Label) {
			continue
		}

		value, known := levelOf(&r, &p.Asset, capacity)
		if known {
			p.Level.Read = append(p.Level.Read, LevelAt{r.To, value})
		}
	}
}

// levelOf returns the level that a reading gives. Energy is converted into a percentage of the
// capacity, if that is known, and a tank's state of charge into a temperature within its
// comfort band.
func levelOf(
	r *flex.Reading,
	a *flex.Asset,
	capacity flex.WattHours,
) (float64, bool) {
	value := float64(r.Value) / 1e6
	switch {
	case r.Label == flex.BatteryStoredEnergy && capacity <= 0:
		return 0, false

	case r.Label == flex.BatteryStoredEnergy:
		return 100 * value / capacity.KWh(), true

	case r.Label == flex.BatteryStateOfCharge && a.Type == flex.HotWaterTank:
		low, high := tankBand(a)
		return low + value/100*(high-low), true
	}

	return value, true
}

// levels returns the expected states of charge of a battery by its plan, in %.
func (w *BatteryWhy) levels() []LevelAt {
	if len(w.Periods) == 0 || w.Capacity <= 0 {
		return nil
	}

	var levels []LevelAt
	add := func(at time.Time, stored flex.WattHours) {
		part := 100 * float64(stored) / float64(w.Capacity)
		levels = append(levels, LevelAt{at, part})
	}

	add(w.Periods[0].Start(), w.Stored)
	for _, p := range w.Periods {
		add(p.End(), p.Stored)
	}

	return levels
}

// explainTank describes the plan of a tank or a heat pump, or why there is none.
func (p *Past) explainTank(ctx context.Context, tx *store.Tx) error {
	t, err := tankOf(ctx, tx, p.Charging)
	if err != nil {
		return err
	}

	p.Known = new(t.heat())
	x, err := t.explanation(ctx, tx)
	p.Tank = x.Summary
	if flex.KindOf(err) == flex.NotFound {
		p.Tank = err.Error()
		return nil
	}
	if err != nil {
		return err
	}

	for _, d := range t.plan.Draws() {
		p.Heat = append(p.Heat, Draw{d.Span, d.Power.KW()})
	}

	p.HeatMade = x.MadeAt
	p.HeatPlan = x.Generation
	p.Level.Expected = t.expectedLevels()

	return nil
}

// expectedLevels returns the temperatures of a tank's water or a heat pump's rooms that the
// plan in force leads to.
func (t *heatedTank) expectedLevels() []LevelAt {
	var levels []LevelAt
	add := func(at time.Time, value float64) {
		levels = append(levels, LevelAt{at, value})
	}

	if room := t.plan.Room; room != nil {
		add(t.plan.StoredAt, room.Temp)
		for i := range room.Course {
			add(room.Course[i].End(), room.Course[i].Temp)
		}

		return levels
	}

	degrees := func(stored flex.WattHours) float64 {
		return t.low + float64(stored)/float64(t.capacity)*(t.high-t.low)
	}

	add(t.plan.StoredAt, degrees(t.plan.Stored))
	spans, stored := t.course(
		t.plan.Stored,
		t.plan.StoredAt,
		t.plan.End(),
	)
	for i, s := range spans {
		add(s.To, degrees(stored[i]))
	}

	return levels
}

// course simulates the tank from a level at an instant, if it follows its plan. It returns the
// half-hours of the time, and the level at the end of each.
func (t *heatedTank) course(
	level flex.WattHours,
	from, to time.Time,
) ([]flex.Span, []flex.WattHours) {
	p := &tank.Problem{
		Top:   int(t.capacity),
		Floor: t.floor(),
		Init:  int(level),
	}

	var on []bool
	spans := spansTo(from.Truncate(time.Second), to)
	if len(spans) == 0 {
		return nil, nil
	}

	known := t.pattern()
	for _, s := range spans {
		p.Slots = append(p.Slots, t.slot(s, known))
		on = append(on, onAt(t.plan.Steps, s.From))
	}

	var levels []flex.WattHours
	for _, l := range tank.Run(p, on).Level {
		levels = append(levels, flex.WattHours(l))
	}

	return spans, levels
}

// tankBand returns a tank's comfort band, in degrees.
func tankBand(a *flex.Asset) (low, high float64) {
	return float64(a.Heat.Low.Or(TankLow)), float64(a.Heat.High.Or(TankHigh))
}

// queuedByClock returns when pushes were queued by the organisation's clock; attempts are
// recorded with the true time. If a sandbox clock was changed, that is not known for plans
// that were replaced since, and these are left out.
func queuedByClock(
	ctx context.Context,
	tx *store.Tx,
	pushes []store.Delivery,
) (map[flex.EventID]time.Time, error) {
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return nil, err
	}

	queued := map[flex.EventID]time.Time{}
	var ids []flex.EventID
	for _, d := range pushes {
		ids = append(ids, d.ID)
		if org.ClockOffset == 0 {
			queued[d.ID] = d.QueuedAt
		}
	}

	made, err := tx.MadeAt(ctx, ids)
	maps.Copy(queued, made)

	return queued, err
}

// readSent reads the dispatches and pushes of an asset that is not plugged in, with their
// results.
func (p *Past) readSent(
	ctx context.Context,
	tx *store.Tx,
	pushes []store.Delivery,
) error {
	made, err := queuedByClock(ctx, tx, pushes)
	if err != nil {
		return err
	}

	for _, d := range pushes {
		queued, known := made[d.ID]
		if !known || !p.Span.Contains(queued) {
			continue
		}

		late := max(0, d.Last.At.Sub(d.QueuedAt))
		p.Sent = append(p.Sent, PastPush{
			ID:         d.ID,
			OfDispatch: d.Kind == store.DispatchPush,
			Generation: d.Generation,
			State:      d.State,
			At:         queued.Add(late),
		})
	}

	orders, err := tx.DispatchesOf(ctx, p.Asset.ID, p.Span)
	for _, o := range orders {
		p.Dispatches = append(p.Dispatches, PastDispatch{
			IssuedAt:    o.IssuedAt,
			Span:        o.Span,
			Power:       o.Power,
			NotFollowed: o.NotFollowed,
		})
	}

	return err
}

// Asked returns the dispatch that applied to the asset at each time, in order: of several for
// the same time, the newest that was followed.
func (p *Past) Asked() []PastDispatch {
	dispatches := slices.Clone(p.Dispatches)
	slices.SortStableFunc(dispatches, func(a, b PastDispatch) int { return a.IssuedAt.Compare(b.IssuedAt) })
	orders := make([]store.BatteryOrder, len(dispatches))
	for i, d := range dispatches {
		orders[i] = store.BatteryOrder{
			IssuedAt:    d.IssuedAt,
			Span:        d.Span,
			Power:       d.Power,
			NotFollowed: d.NotFollowed,
		}
	}

	orders = store.OrdersInForce(orders)
	slices.SortFunc(orders, func(a, b store.BatteryOrder) int { return a.From.Compare(b.From) })

	inForce := make([]PastDispatch, len(orders))
	for i, o := range orders {
		inForce[i] = PastDispatch{IssuedAt: o.IssuedAt, Span: o.Span, Power: o.Power}
	}

	return inForce
}
