package control

import (
	"context"
	"errors"
	"reflect"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/tariff"
	"flexd/internal/trace"
)

// Kind is the kind of an event.
type Kind string

// The kinds of event, as they are named in the interface.
const (
	PlugIn           Kind = "plug_in"
	PlugOut          Kind = "plug_out"
	IntentUpdate     Kind = "intent_update"
	TariffUpdate     Kind = "tariff_update"
	ChargeNow        Kind = "charge_now"
	ChargeNowDeleted Kind = "charge_now_deleted"
)

// Limits of events.
const (
	// FlickerMax is the longest interruption of a plug-in after which the session continues.
	FlickerMax = store.ReopenMax
	// ChargeNowMax is how far ahead charge-now may end.
	ChargeNowMax = 7 * 24 * time.Hour
)

// Event is something that happened at an asset, or that its user wants.
type Event struct {
	Kind        Kind
	Intent      *flex.Intent // with PlugIn and IntentUpdate
	Tariff      *flex.Tariff // with PlugIn, IntentUpdate and TariffUpdate
	VehicleRate flex.Watts   // with PlugIn and IntentUpdate; zero if not given
	EndAt       time.Time    // with ChargeNow
}

// check returns Malformed for an event that lacks a required field, or has one that does not
// belong to its kind.
func (ev Event) check() error {
	if ev.Tariff != nil {
		_, err := tariff.Parse(
			ev.Tariff.OffPeak,
			ev.Tariff.Zone,
			ev.Tariff.Type,
		)
		if err != nil {
			return err
		}
	}

	carriesIntent := ev.Kind == PlugIn || ev.Kind == IntentUpdate

	switch {
	case ev.Kind == IntentUpdate && ev.Intent == nil:
		return flex.Fail(
			flex.Malformed,
			"an %s event must carry intent",
			ev.Kind,
		)

	case ev.Kind == TariffUpdate && ev.Tariff == nil:
		return flex.Fail(
			flex.Malformed,
			"a %s event must carry tariff",
			ev.Kind,
		)

	case ev.Kind == ChargeNow && ev.EndAt.IsZero():
		return flex.Fail(
			flex.Malformed,
			"a %s event must carry end_at",
			ev.Kind,
		)

	case !carriesIntent && (ev.Intent != nil || ev.VehicleRate != 0), !carriesIntent && ev.Kind != TariffUpdate && ev.Tariff != nil:
		return flex.Fail(
			flex.Malformed,
			"a %s event carries no intent, vehicle or tariff: send them with %s or %s",
			ev.Kind,
			PlugIn,
			IntentUpdate,
		)

	case ev.Kind != ChargeNow && !ev.EndAt.IsZero():
		return flex.Fail(
			flex.Malformed,
			"a %s event carries no end_at: only %s does",
			ev.Kind,
			ChargeNow,
		)
	}

	return nil
}

// Event stores and applies an event. It plans the asset again if the event changed what its
// schedule depends on. The error is NotFound for an asset of another organisation; it is
// Malformed for an asset that does not charge, a tariff that cannot be parsed, and an end that
// is past. A battery accepts only a new tariff.
func (s *Service) Event(
	ctx context.Context,
	org flex.OrgID,
	asset flex.AssetID,
	ev Event,
) error {
	if err := ev.check(); err != nil {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return s.event(ctx, tx, asset, ev)
	})
}

// event is Event within a transaction.
func (s *Service) event(
	ctx context.Context,
	tx *store.Tx,
	asset flex.AssetID,
	ev Event,
) error {
	if err := tx.LockToPlan(ctx, asset); err != nil {
		return err
	}

	c, err := tx.PlanningState(ctx, asset)
	if err != nil {
		return err
	}

	// A battery's new tariff is only stored here: PlanBatteries plans the battery again.
	batteryTariff := c.Asset.Type == flex.Battery && ev.Kind == TariffUpdate
	if !c.Asset.Type.Charges() && !batteryTariff {
		return flex.Fail(
			flex.Malformed,
			"asset %v is a %s: events are for assets of the types %s and %s, and a tariff is for a %s too",
			asset,
			c.Asset.Type,
			flex.Charger,
			flex.ElectricVehicle,
			flex.Battery,
		)
	}

	err = tx.AddEvent(ctx, asset, string(ev.Kind), eventRecord(ev))
	if err != nil {
		return err
	}

	h := eventHandler{tx, &c, ev, &outcome{}}
	if err := h.handle(ctx); err != nil {
		return err
	}

	if batteryTariff {
		tx.Wake(store.WakeControl)
	}

	return s.planAfter(ctx, tx, &c, h)
}

// planAfter plans an asset again after an event, if the event changed something that its
// schedule depends on. An asset that was never planned, or whose ready-by is past, is planned
// after any event.
func (s *Service) planAfter(
	ctx context.Context,
	tx *store.Tx,
	c *store.PlanningState,
	h eventHandler,
) error {
	if h.ev.Kind == PlugIn && c.Open() && !c.Controlled { // flexd does not limit it: others must leave it room
		return h.replanAroundUncontrolled(ctx)
	}
	if h.ev.Kind == PlugOut { // the site's batteries need not leave it room any more
		err := s.planAround(ctx, tx, c)
		if errors.Is(err, store.ErrUnreadable) { // another car of the site; PlanBatteries reports it
			err = nil
		}

		return err
	}

	due := c.Current.Generation == 0 || !c.Session.ReadyBy.After(tx.Now())
	plannable := c.Open() && c.Controlled
	if !plannable || !h.changed && !due {
		return nil
	}

	ctx, span := trace.Within(ctx, "plan")
	err := s.replan(ctx, tx, c, h.replanReason)
	span.End(err)

	return err
}

// eventRecord returns the part of an event that is stored.
func eventRecord(ev Event) store.AssetEvent {
	return store.AssetEvent{
		Intent:      ev.Intent,
		Tariff:      ev.Tariff,
		VehicleRate: ev.VehicleRate,
		EndAt:       ev.EndAt,
	}
}

// eventHandler applies one event of an asset, in its transaction.
type eventHandler struct {
	tx *store.Tx
	c  *store.PlanningState // of the event's asset
	ev Event
	*outcome
}

// outcome is what follows from an event: whether the asset is to be planned again, and why.
type outcome struct {
	changed bool // something that the schedule depends on has changed
	replanReason
}

// handle applies the event: it stores what came with it, and opens or closes the session.
func (h eventHandler) handle(ctx context.Context) error {
	if h.ev.Kind == PlugOut {
		return h.plugOut(ctx)
	}
	if h.ev.Kind != PlugIn {
		if err := h.resume(ctx); err != nil {
			return err
		}
	}

	switch h.ev.Kind {
	case ChargeNow:
		return h.chargeNow(ctx)
	case ChargeNowDeleted:
		h.changed, h.cause = !h.c.ChargeNow.Empty(), store.CauseChargeNow
		h.c.ChargeNow = flex.Span{}
		return h.tx.PutChargeNow(ctx, h.c.Asset.ID, flex.Span{})
	}

	h.cause = map[Kind]store.Cause{
		PlugIn:       store.CausePlugIn,
		IntentUpdate: store.CauseIntent,
		TariffUpdate: store.CauseTariff,
	}[h.ev.Kind]

	if err := h.apply(ctx); err != nil {
		return err
	}
	if h.ev.Kind == PlugIn {
		return h.plugIn(ctx)
	}

	return h.learnVehicle(ctx)
}

// apply stores the intent and the tariff that came with the event. A change of either is sent
// to a car that is plugged in, as the interface requires, even if its schedule stays the same.
func (h eventHandler) apply(ctx context.Context) error {
	if in := h.ev.Intent; in != nil {
		t, _ := tariffOf(h.c)
		if h.c.Intent == nil || !sameIntent(*h.c.Intent, *in, zoneOf(t)) {
			h.changed = true
			h.must = true
			h.replanReason.intent = true
		}

		h.c.Intent = in
		if err := h.tx.PutIntent(ctx, h.c.Asset.ID, *in); err != nil {
			return err
		}
	}

	if t := h.ev.Tariff; t != nil {
		if h.c.Tariff == nil || *h.c.Tariff != *t {
			h.changed, h.must = true, true
		}
		h.c.Tariff = t
		return h.tx.PutTariff(ctx, h.c.Asset.ID, *t)
	}

	return nil
}

// sameIntent reports whether two intents ask for the same, whenever they were received. Of
// ready_by only the time of day in the zone counts, and only if there is no local time: a
// client that gives a local time must send ready_by too, and may write any instant there.
func sameIntent(a, b flex.Intent, zone *time.Location) bool {
	for _, in := range []*flex.Intent{&a, &b} {
		in.ReadyByLocal = new(wallOf(*in, zone))
		in.ReadyBy, in.ReadyByOffset = time.Time{}, 0
		in.ReceivedAt = time.Time{}
	}

	return reflect.DeepEqual(a, b)
}

// plugIn opens a session. If the same car's session is still open, it continues; if it was
// closed at most FlickerMax ago, it is opened again. A different vehicle rate means a
// different car.
func (h eventHandler) plugIn(ctx context.Context) error {
	s := &h.c.Session
	rate := h.ev.VehicleRate
	now := h.tx.Now()

	same := s.Number > 0 &&
		(rate == 0 || s.VehicleRate == 0 || rate == s.VehicleRate)
	// The car is plugged in already: at most its rate is new.
	if h.c.Open() && same {
		return h.learnVehicle(ctx)
	}

	h.changed, h.must = true, true
	flickered := same && !h.c.Open() && now.Sub(s.PluggedOutAt) <= FlickerMax
	// A session that was closed because control of the asset ended is not opened again.
	controlEnded := !h.c.Controlled && h.c.Current.Generation > 0
	if flickered && !controlEnded {
		if err := h.tx.ReopenSession(ctx, s); err != nil {
			return err
		}
		return h.learnVehicle(ctx)
	}

	if h.c.Open() {
		if err := h.tx.CloseSession(ctx, s); err != nil {
			return err
		}
		h.tx.Wake(store.WakeSettle)
	}

	// From here on it is a new session.
	if err := h.endChargeNow(ctx, s); err != nil {
		return err
	}

	return h.tx.OpenSession(ctx, h.c, rate)
}

// resume opens a session for a car that was plugged in when control of its site ended, if the
// site has been enrolled since. An asset that an operator released stays uncontrolled until
// its next plug-in.
func (h eventHandler) resume(ctx context.Context) error {
	last := h.c.Session
	if h.c.Open() || !h.c.Controlled || last.Number == 0 {
		return nil
	}

	since, err := h.tx.EnrolledSince(
		ctx,
		h.c.Asset.SiteID,
		flex.FullAssetSchedule,
	)
	if err != nil || since.Before(last.PluggedOutAt) {
		return err
	}

	controlEnded, err := endedByControl(ctx, h.tx, h.c.Asset.ID, last)
	if err != nil || !controlEnded {
		return err
	}

	h.changed, h.must = true, true

	return h.tx.OpenSession(ctx, h.c, last.VehicleRate)
}

// endChargeNow deletes a charge-now that was requested for the previous car.
func (h eventHandler) endChargeNow(ctx context.Context, s *store.Session) error {
	requested := h.c.ChargeNow
	if s.Number == 0 || requested.Empty() || !requested.From.Before(s.PluggedOutAt) {
		return nil
	}

	h.c.ChargeNow = flex.Span{}

	return h.tx.PutChargeNow(ctx, h.c.Asset.ID, flex.Span{})
}

// learnVehicle stores a car's rate that came after the plug-in, or has changed.
func (h eventHandler) learnVehicle(ctx context.Context) error {
	rate := h.ev.VehicleRate
	if rate == 0 || !h.c.Open() || rate == h.c.Session.VehicleRate {
		return nil
	}
	h.changed = true

	return h.tx.SetVehicle(ctx, &h.c.Session, rate)
}

// plugOut closes the open session and retracts its pushes that were not sent yet. If the
// session was closed before, because control ended, it records that the car has left.
func (h eventHandler) plugOut(ctx context.Context) error {
	if !h.c.Open() {
		controlEnded, err := h.tx.EndFreed(ctx, h.c.Asset.ID)
		if err != nil || !controlEnded {
			return err
		}
		if err := h.releaseHeadroom(ctx); err != nil {
			return err
		}

		return h.tx.Retract(ctx, h.c.Asset.ID)
	}

	if err := h.tx.CloseSession(ctx, &h.c.Session); err != nil {
		return err
	}

	h.tx.Wake(store.WakeSettle)
	if err := h.releaseHeadroom(ctx); err != nil {
		return err
	}

	return h.tx.Retract(ctx, h.c.Asset.ID)
}

// releaseHeadroom marks the assets that can use the headroom of an asset that has left: the
// fleet under caps, and the other assets behind the main fuse.
func (h eventHandler) releaseHeadroom(ctx context.Context) error {
	err := h.tx.RecordCapsUsed(ctx, h.tx.Now().Add(MarketInterval))
	if err != nil {
		return err
	}

	return h.releaseFuse(ctx)
}

// replanAroundUncontrolled marks the assets that share caps or a main fuse with an
// uncontrolled asset that was plugged in. They are planned again at once, and leave it room.
func (h eventHandler) replanAroundUncontrolled(ctx context.Context) error {
	if err := h.tx.RecordCapsUsed(ctx, h.tx.Now()); err != nil {
		return err
	}
	if h.c.Fuse == 0 || !h.changed {
		return nil
	}

	found, err := h.tx.EachPlannedAt(ctx, h.c.Asset.SiteID)
	if err != nil {
		return err
	}

	var cars []flex.AssetID
	for i := range found {
		cars = append(cars, found[i].Current.AssetID)
	}

	return h.tx.MarkDue(ctx, cars...)
}

// releaseFuse marks the other assets behind the main fuse, to be planned again without the
// asset that has left. Heaters that ask for more power are planned at once. Cars whose
// schedule goes on after their need is met (HasTail) are planned after FlickerMax, as the
// asset may return by then. So are cars that cannot be read; the job that plans them reports
// the error.
func (h eventHandler) releaseFuse(ctx context.Context) error {
	if h.c.Fuse == 0 {
		return nil
	}

	if err := h.tx.ReplanFuseLimitedHeaters(ctx, h.c.Asset.SiteID); err != nil {
		return err
	}

	found, err := h.tx.EachPlannedAt(ctx, h.c.Asset.SiteID)
	for i := 0; i < len(found) && err == nil; i++ {
		if found[i].Unread != nil || found[i].Current.HasTail() {
			err = h.tx.MarkAt(
				ctx,
				h.tx.Now().Add(FlickerMax),
				found[i].Current.AssetID,
			)
		}
	}

	return err
}

// chargeNow has the asset charge at full power until the event's end.
func (h eventHandler) chargeNow(ctx context.Context) error {
	now := h.tx.Now()
	switch end := h.ev.EndAt; {
	case !end.After(now):
		return flex.Fail(
			flex.Malformed,
			"end_at %s is past: it must be after now, %s",
			end.UTC().Format(time.RFC3339),
			now.Format(time.RFC3339),
		)

	case end.Sub(now) > ChargeNowMax:
		return flex.Fail(
			flex.Malformed,
			"end_at %s is more than %d days ahead",
			end.UTC().Format(time.RFC3339),
			ChargeNowMax/(24*time.Hour),
		)
	}

	h.changed, h.cause = true, store.CauseChargeNow
	h.c.ChargeNow = flex.Span{From: now, To: h.ev.EndAt.UTC()}

	return h.tx.PutChargeNow(ctx, h.c.Asset.ID, h.c.ChargeNow)
}
