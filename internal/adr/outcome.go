package adr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Reporter is the client of flexd's own reports, about events of bound programs.
const Reporter = "flexd"

// The payloads of flexd's reports that the specification has no name for.
const (
	// what became of it: waiting, sent, short, refused, outranked, withdrawn
	stateReport = "FLEXD_STATE"
	// why it was not carried out, or not in full
	problemReport = "FLEXD_PROBLEM"
	askedReport   = "FLEXD_ASKED" // the change that was asked for, in kWh
)

// shortBelow is the part of the power that was asked for, below which an order is short.
const shortBelow = 0.95

// reportDelays is how long after its end an order is reported again: when most meters were
// read, and when late ones were.
var reportDelays = []time.Duration{time.Hour, 6 * time.Hour, 26 * time.Hour}

// Outcome is the result of an instruction.
type Outcome struct {
	Asked    flex.WattHours // against the baseline, negative for less
	Baseline flex.WattHours // by the schedules that were in force
	Expected flex.WattHours // by those that were sent

	// of the half-hours and assets that a meter was read of
	Metered         flex.WattHours
	MeteredBaseline flex.WattHours // theirs
	NumMetered      int            // half-hours of assets
	// half-hours of assets, or parts of them, in which something was planned or expected and
	// no meter was read
	NumUnmetered int
}

// ReportOrders reports the results of the orders of bound programs. It is safe to run twice.
func (s *Service) ReportOrders(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgsWithADROrders), s.ReportOrdersOf)
}

// ReportOrdersOf is ReportOrders for one organisation.
func (s *Service) ReportOrdersOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var due []flex.ADRObjectID
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		due, err = tx.DueADRReports(ctx)
		return err
	})

	var r worker.Report
	errs := err
	for i := 0; i < len(due) && ctx.Err() == nil; i++ {
		// it is tried again, and holds up no other
		if err := s.reportEvent(ctx, org, due[i]); err != nil {
			errs = errors.Join(errs, fmt.Errorf("report on the event %s: %w", due[i], err))
			continue
		}
		r.Count++
	}

	return r, errs
}

// reportEvent reports the results of one event's orders.
func (s *Service) reportEvent(
	ctx context.Context,
	org flex.OrgID,
	event flex.ADRObjectID,
) error {
	var orders []store.ADROrder
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		orders, err = tx.ADROrdersOf(ctx, event)
		return err
	})

	if err != nil {
		return err
	}

	outcomes, err := s.outcomes(ctx, org, orders)
	if err != nil {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		now, err := tx.ADROrdersOf(ctx, event)
		if err != nil {
			return err
		}

		if !sameOrders(now, orders) {
			return nil // something happened meanwhile: the next run reports it
		}

		for i := range now { // and not those that were read before: this may run again
			setOutcome(&now[i], outcomes[i], tx.Now())
			err := tx.ADROrderReported(
				ctx,
				&now[i],
				reportNext(&now[i], tx.Now()),
			)

			if err != nil {
				return err
			}
		}

		return s.storeReport(ctx, tx, org, event, now, outcomes)
	})
}

// outcomes returns the results of orders, nil for those that were not sent.
func (s *Service) outcomes(
	ctx context.Context,
	org flex.OrgID,
	orders []store.ADROrder,
) ([]*Outcome, error) {
	found := make([]*Outcome, len(orders))

	var err error
	for i := range orders {
		id := orders[i].Instruction
		if id.IsZero() {
			continue
		}

		found[i], err = s.Outcome(ctx, org, id)
		if err != nil {
			return nil, fmt.Errorf(
				"what became of the instruction %s: %w",
				id,
				err,
			)
		}
	}

	return found, nil
}

// sameOrders reports whether the states of an event's orders are unchanged since they were
// read.
func sameOrders(a, b []store.ADROrder) bool {
	if len(a) != len(b) {
		return false
	}

	for i := range a {
		same := a[i].ID == b[i].ID && a[i].State == b[i].State
		if !same || a[i].Problem != b[i].Problem {
			return false
		}
	}

	return true
}

// setOutcome records whether an order that is over brought the power that was asked for.
func setOutcome(o *store.ADROrder, previous *Outcome, now time.Time) {
	wasSent := o.State == store.ADRSent || o.State == store.ADRShort
	if previous == nil || !wasSent || now.Before(o.To) {
		return
	}

	o.State, o.Problem = store.ADRSent, ""
	change, basis := previous.Expected-previous.Baseline, "expected"
	if previous.NumMetered > 0 && previous.NumUnmetered == 0 { // all of it was metered
		change, basis = previous.Metered-previous.MeteredBaseline, "metered"
	}

	requested := previous.Asked
	if requested < 0 {
		requested, change = -requested, -change
	}

	if float64(change) < shortBelow*float64(requested) {
		o.State = store.ADRShort
		o.Problem = fmt.Sprintf(
			"%.3f of %.3f kWh were brought, as %s",
			change.KWh(),
			requested.KWh(),
			basis,
		)
	}
}

// reportNext is when to report an order again; zero is never.
func reportNext(o *store.ADROrder, now time.Time) time.Time {
	if o.State != store.ADRSent && o.State != store.ADRShort {
		return time.Time{}
	}
	if now.Before(o.To) {
		return o.To
	}

	for _, after := range reportDelays {
		if at := o.To.Add(after); at.After(now) {
			return at
		}
	}

	return time.Time{}
}

// storeReport stores flexd's report about an event, in place of the earlier one. An event that
// was deleted has none.
func (s *Service) storeReport(
	ctx context.Context,
	tx *store.Tx,
	org flex.OrgID,
	event flex.ADRObjectID,
	orders []store.ADROrder,
	outcomes []*Outcome,
) error {
	source, err := tx.ADRObject(ctx, flex.ADRSearch{
		Kind: flex.ADREvent,
		ID:   event,
	})
	if flex.KindOf(err) == flex.NotFound {
		return nil
	}
	if err == nil {
		orders, err = outcomesByInterval(orders, &source)
	}
	if err != nil {
		return err
	}

	before, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind:   flex.ADRReport,
		Event:  event,
		Client: Reporter,
		Limit:  1,
	})
	if err != nil {
		return err
	}

	var previous *flex.ADRObject
	if len(before) > 0 {
		previous = &before[0]
	}

	o, err := s.save(
		ctx,
		tx,
		Client{
			Org:      org,
			ID:       Reporter,
			Business: true,
		},
		previous,
		flex.ADRReport,
		reportDocument(reportableOrders(event, orders, outcomes)),
	)

	if flex.KindOf(err) == flex.Conflict { // the organisation has as many reports as it may
		return nil
	}

	if err != nil {
		return err
	}

	return s.notify(ctx, tx, &o, operationOf(previous))
}

// outcomesByInterval returns orders with the interval ids of their event in place of the indexes,
// because the author of the event knows the ids. Intervals that the event no longer has, or
// only repeats, get ids after the highest.
func outcomesByInterval(
	orders []store.ADROrder,
	event *flex.ADRObject,
) ([]store.ADROrder, error) {
	var d eventDocument
	if err := json.Unmarshal([]byte(event.Document), &d); err != nil {
		return nil, err
	}

	highest := -1
	for _, i := range d.Intervals {
		highest = max(highest, i.ID)
	}

	found := slices.Clone(orders)
	for i := range found {
		o := &found[i]
		if o.Interval < len(d.Intervals) {
			o.Interval = d.Intervals[o.Interval].ID
		} else {
			o.Interval = min(o.Interval+highest+1-len(d.Intervals), int32Max)
		}
	}

	return found, nil
}

// reportableOrders returns the orders that an event's report contains: all, or as many as a report may
// have. Withdrawn ones are left out first, then the earliest.
func reportableOrders(
	event flex.ADRObjectID,
	orders []store.ADROrder,
	outcomes []*Outcome,
) (flex.ADRObjectID, []store.ADROrder, []*Outcome) {
	if len(orders) <= IntervalsMax {
		return event, orders, outcomes
	}

	var stored []store.ADROrder
	var matching []*Outcome
	for i := range orders {
		if orders[i].State != store.ADRWithdrawn {
			stored, matching = append(stored, orders[i]), append(matching, outcomes[i])
		}
	}

	from := max(0, len(stored)-IntervalsMax)

	return event, stored[from:], matching[from:]
}

// reportDocument returns the report about an event, with an interval for each order.
func reportDocument(
	event flex.ADRObjectID,
	orders []store.ADROrder,
	outcomes []*Outcome,
) map[string]any {
	intervals := []any{}
	for i := range orders {
		o := &orders[i]
		payloads := []any{payload(stateReport, string(o.State))}
		if o.Problem != "" {
			payloads = append(payloads, payload(problemReport, o.Problem))
		}

		if previous := outcomes[i]; previous != nil {
			payloads = append(payloads, previous.payloads()...)
		}

		intervals = append(intervals, map[string]any{
			"id": float64(o.Interval), "payloads": payloads,
			"intervalPeriod": map[string]any{
				"start":    Instant(o.From),
				"duration": fmt.Sprintf("PT%dM", o.Len()/time.Minute),
			},
		})
	}

	var descriptors []any
	for _, kind := range []string{
		askedReport,
		"BASELINE",
		"USAGE_FORECAST",
		"USAGE",
		"DELTA_USAGE",
	} {
		descriptors = append(descriptors, map[string]any{
			"objectType":  "REPORT_PAYLOAD_DESCRIPTOR",
			"payloadType": kind,
			"units":       "KWH",
		})
	}

	return map[string]any{
		"eventID":            event.String(),
		"clientName":         Reporter,
		"reportName":         "what became of it",
		"payloadDescriptors": descriptors,
		"resources": []any{map[string]any{
			"resourceName": "AGGREGATED_REPORT",
			"intervals":    intervals,
		}},
	}
}

// payloads returns the result of an instruction as payloads. USAGE and DELTA_USAGE are only of
// metered energy.
func (o *Outcome) payloads() []any {
	found := []any{
		payload(askedReport, o.Asked.KWh()),
		payload("BASELINE", o.Baseline.KWh()),
		payload("USAGE_FORECAST", o.Expected.KWh()),
	}

	if o.NumMetered > 0 {
		found = append(
			found,
			payload("USAGE", o.Metered.KWh()),
			payload("DELTA_USAGE", (o.Metered-o.MeteredBaseline).KWh()),
		)
	}

	return found
}

func payload(kind string, value any) map[string]any {
	return map[string]any{"type": kind, "values": []any{value}}
}
