package adr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// telemetry sends the reports that the server's events ask for, when they are due, and again
// as late readings arrive.
func (r *remote) telemetry(ctx context.Context) error {
	t := telemetryRun{remote: r, lastSent: map[string]store.ADRTelemetry{}}
	if err := r.DB.Read(ctx, r.upstream.Org, func(tx *store.Tx) error {
		return t.read(ctx, tx)
	}); err != nil || r.Fleet == nil {
		return err
	}

	var errs error
	for i := range t.due {
		if err := t.send(ctx, &t.due[i]); err != nil {
			errs = err
		}
	}

	return errs
}

// telemetryRun has the reports that are due to a server.
type telemetryRun struct {
	*remote
	now      time.Time // by the organisation's clock
	scope    flex.Scope
	lastSent map[string]store.ADRTelemetry
	due      []dueReport
}

// dueReport is a report to be made now.
type dueReport struct {
	requestedReport
	mirror    store.ADRMirror
	intervals []timedInterval // of the event
	orders    []store.ADROrder
	before    store.ADRTelemetry
}

// place is the key of a report.
func place(remote string, n int) string { return fmt.Sprintf("%s %d", remote, n) }

// read finds the reports that are due. A program that is not bound has no fleet to report on.
func (t *telemetryRun) read(ctx context.Context, tx *store.Tx) error {
	t.now = tx.Now()
	bindings, err := tx.ADRBindings(ctx, t.upstream.Program)
	if err != nil || len(bindings) == 0 {
		return err
	}

	t.scope = bindings[0].Scope
	lastSent, err := tx.ADRTelemetry(ctx, t.upstream.Program)
	if err != nil {
		return err
	}
	for _, one := range lastSent {
		t.noteSent(one)
	}

	events, err := tx.ADRObjects(ctx, flex.ADRSearch{
		Kind:    flex.ADREvent,
		Program: t.upstream.Program,
	})
	if err != nil {
		return err
	}

	byID := map[flex.ADRObjectID]*flex.ADRObject{}
	for i := range events {
		byID[events[i].ID] = &events[i]
	}

	mirrors, err := tx.ADRMirrors(ctx, t.upstream.Program)
	for i := range mirrors {
		e := byID[mirrors[i].Event]
		if e == nil || err != nil {
			continue
		}
		err = t.event(ctx, tx, mirrors[i], e)
	}

	return err
}

// event finds the reports of one event that are due.
func (t *telemetryRun) event(
	ctx context.Context,
	tx *store.Tx,
	m store.ADRMirror,
	e *flex.ADRObject,
) error {
	latest := reportDelays[len(reportDelays)-1]
	if !e.EndsAt.IsZero() && e.EndsAt.Add(2*latest).Before(tx.Now()) {
		return nil
	}

	var d eventDocument
	err := json.Unmarshal([]byte(e.Document), &d)
	if err != nil || len(d.ReportRequests) == 0 {
		return err
	}

	orders, err := tx.ADROrdersOf(ctx, e.ID)
	intervals := d.timedIntervals(e.ModifiedAt)

	for _, w := range d.requestedReports(intervals) {
		before, known := t.lastSent[place(m.Remote, w.place)]
		rests := known && before.Modified == m.Modified &&
			(before.AgainAt.IsZero() || before.AgainAt.After(tx.Now()))

		if w.at.After(tx.Now()) || rests {
			continue
		}

		t.due = append(t.due, dueReport{
			requestedReport: w,
			mirror:          m,
			intervals:       intervals,
			orders:          orders,
			before:          before,
		})
	}

	return err
}

// send makes a report and sends it, unless the server has the same already.
func (t *telemetryRun) send(ctx context.Context, d *dueReport) error {
	document, err := t.document(ctx, d)
	if err != nil {
		return err
	}

	text, err := json.Marshal(document)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(text)
	next := d.before
	next.Program, next.Remote = t.upstream.Program, d.mirror.Remote
	next.Place, next.Modified = d.place, d.mirror.Modified
	next.Sent = hex.EncodeToString(sum[:])
	next.AgainAt = d.nextDue(t.now)
	if next.Sent != d.before.Sent || next.Report == "" {
		next.Report, err = t.sendReport(ctx, next.Report, t.others(d), document)
		if err != nil && !isRefused(err) {
			return err
		}
	}

	wrong := t.DB.Write(ctx, t.upstream.Org, func(tx *store.Tx) error {
		if err := checkStillPolled(ctx, tx, t.upstream); err != nil {
			return err
		}
		return tx.SetADRTelemetry(ctx, &next)
	})
	if wrong != nil {
		return wrong
	}

	t.noteSent(next)

	return err
}

// noteSent stores which report the server has.
func (t *telemetryRun) noteSent(one store.ADRTelemetry) {
	t.lastSent[place(one.Remote, one.Place)] = one
}

// others returns the ids of the event's other reports on the server. Several requests may give
// their reports the same name.
func (t *telemetryRun) others(d *dueReport) []string {
	var ids []string
	for _, one := range t.lastSent {
		if one.Remote == d.mirror.Remote && one.Place != d.place {
			ids = append(ids, one.Report)
		}
	}

	return ids
}

// nextDue returns when a report about a time that is over is made once more; zero for never.
func (d *dueReport) nextDue(now time.Time) time.Time {
	if !d.Historical {
		return time.Time{}
	}

	for _, after := range reportDelays {
		if at := d.at.Add(after); at.After(now) {
			return at
		}
	}

	return time.Time{}
}

// document is a report as OpenADR has it.
func (t *telemetryRun) document(
	ctx context.Context,
	d *dueReport,
) (map[string]any, error) {
	var spans []flex.Span
	for _, i := range d.requestedReport.intervals {
		one := d.intervals[i]
		spans = append(spans, flex.Span{From: one.From, To: one.To})
	}

	resources, err := t.assets(ctx, d, spans)
	if err == nil && len(resources) == 0 {
		resources, err = t.completeReport(ctx, d, spans)
	}

	return t.reportOf(d, resources), err
}

// completeReport returns the one resource of a report about the program's scope as a whole.
func (t *telemetryRun) completeReport(
	ctx context.Context,
	d *dueReport,
	spans []flex.Span,
) ([]any, error) {
	uses, err := t.Fleet(ctx, t.upstream.Org, t.scope, spans)
	if err != nil {
		return nil, fmt.Errorf("what the fleet used: %w", err)
	}

	outcomes, err := t.outcomes(ctx, t.upstream.Org, d.orders)
	if err != nil {
		return nil, err
	}

	intervals := []any{}
	for n, i := range d.requestedReport.intervals {
		previous := together(d.orders, outcomes, i)
		intervals = append(intervals, d.interval(i, spans[n], &uses[n], previous))
	}

	resource := "AGGREGATED_REPORT"
	if !d.Aggregate {
		resource = t.upstream.Name
	}

	return []any{map[string]any{
		"resourceName": resource,
		"intervals":    intervals,
	}}, nil
}

// reportedAssetsMax is the most assets that a report lists; with more it is about the scope as
// a whole.
const reportedAssetsMax = 500

// assets returns the resources of a report that lists each asset, by their ids; none if it is
// about the scope as a whole.
func (t *telemetryRun) assets(
	ctx context.Context,
	d *dueReport,
	spans []flex.Span,
) ([]any, error) {
	if !t.upstream.PerAsset || !d.ofAssets() || t.Assets == nil {
		return nil, nil
	}

	all, err := t.Assets(ctx, t.upstream.Org, t.scope, spans)
	if err != nil {
		return nil, fmt.Errorf("what each asset used: %w", err)
	}
	if len(all) > reportedAssetsMax {
		return nil, nil
	}

	resources := make([]any, len(all))
	for i, a := range all {
		intervals := []any{}
		for n, k := range d.requestedReport.intervals {
			intervals = append(intervals, d.interval(k, spans[n], &a.Uses[n], nil))
		}

		resources[i] = map[string]any{
			"resourceName": a.Asset.String(),
			"intervals":    intervals,
		}
	}

	return resources, nil
}

// reportOf is a report of some resources.
func (t *telemetryRun) reportOf(d *dueReport, resources []any) map[string]any {
	return map[string]any{
		"eventID":    d.mirror.Remote,
		"clientName": t.upstream.Name,
		"reportName": fmt.Sprintf("%s %d", d.Type, d.place%reportRequestsMax+1),
		"payloadDescriptors": []any{map[string]any{
			"objectType":  "REPORT_PAYLOAD_DESCRIPTOR",
			"payloadType": d.Type,
			"units":       d.unit(),
			"readingType": d.readingType(),
		}},
		"resources": resources,
	}
}

// interval returns one interval of a report.
func (d *dueReport) interval(
	i int,
	span flex.Span,
	u *FleetUse,
	previous *Outcome,
) map[string]any {
	return map[string]any{
		"id": float64(d.intervals[i].ID),
		"intervalPeriod": map[string]any{
			"start":    Instant(span.From),
			"duration": fmt.Sprintf("PT%dS", span.Len()/time.Second),
		},
		"payloads": d.payloads(u, previous),
	}
}

// together returns the combined results of the orders of one interval; nil if none was carried
// out.
func together(
	orders []store.ADROrder,
	outcomes []*Outcome,
	interval int,
) *Outcome {
	var sum *Outcome
	for i, o := range outcomes {
		if o == nil || orders[i].Interval != interval {
			continue
		}
		if sum == nil {
			sum = &Outcome{}
		}

		sum.Metered += o.Metered
		sum.MeteredBaseline += o.MeteredBaseline
		sum.NumMetered += o.NumMetered
	}

	return sum
}
