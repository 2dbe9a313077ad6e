package control

import (
	"context"
	"io"
	"math"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// InstructionState is the state of an instruction.
type InstructionState string

// The states of an instruction.
const (
	InstructionPreviewed InstructionState = "previewed" // it was not sent
	// it was sent, and its window has not begun
	InstructionOrdered InstructionState = "ordered"
	InstructionRunning InstructionState = "running"
	InstructionStopped InstructionState = "stopped"
	InstructionEnded   InstructionState = "ended"
)

// StateOf returns the state of an instruction at an instant.
func StateOf(in *flex.Instruction, now time.Time) InstructionState {
	switch {
	case in.ID.IsZero():
		return InstructionPreviewed
	case !in.StoppedAt.IsZero():
		return InstructionStopped
	case now.Before(in.From):
		return InstructionOrdered
	case now.Before(in.To):
		return InstructionRunning
	}

	return InstructionEnded
}

// InstructionPage is a page of instructions, the newest first.
type InstructionPage struct {
	At           time.Time
	Instructions []flex.Instruction
	Total        int
	// the page that follows; zero after the last
	Next flex.InstructionID
}

// Instructions returns a page of an organisation's instructions; if before is given, those
// made before that one.
func (s *Service) Instructions(
	ctx context.Context,
	org flex.OrgID,
	before flex.InstructionID,
	limit int,
) (InstructionPage, error) {
	var p InstructionPage
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		p, err = instructionPage(ctx, tx, before, limit)
		return err
	})

	return p, err
}

// instructionPage is Instructions within a transaction.
func instructionPage(
	ctx context.Context,
	tx *store.Tx,
	before flex.InstructionID,
	limit int,
) (InstructionPage, error) {
	var p InstructionPage
	p.At = tx.Now()

	var err error
	p.Instructions, p.Total, err = tx.Instructions(ctx, before, limit+1)
	if len(p.Instructions) > limit {
		p.Instructions = p.Instructions[:limit]
		p.Next = p.Instructions[limit-1].ID
	}

	return p, err
}

// InstructionReport is the target of an instruction and its result.
type InstructionReport struct {
	flex.Instruction
	At     time.Time
	Slots  []ReportSlot // of its window, and of the hour after
	Assets []ReportAsset
	// by minutes, if these were requested: metered by the chargers' registers
	Minutes []ReportSlot
	// the cost of the plans with the instruction as they were sent, less that of the plans
	// without it
	Cost flex.MicroPounds
	// the flex events that it pays for; none if it has no price
	Settled flex.InstructedEvents
}

// ReportSlot is a half-hour, or a part of one, of all assets that were called.
type ReportSlot struct {
	flex.Span
	// the change against the baseline, negative for less
	Asked    flex.WattHours
	Baseline flex.WattHours // by the schedules before the calls
	Expected flex.WattHours // by the schedules that were sent

	// not rounded, with the sign of Asked; the energies above are sums of rounded values
	exactTarget, exactChange charge.Joules

	// of the assets that are metered in the whole slot
	Metered         flex.WattHours
	MeteredBaseline flex.WattHours // Baseline of these
	NumMetered      int
}

// ReportAsset is what one asset was to do and did, in each slot.
type ReportAsset struct {
	AssetID    flex.AssetID
	SiteID     flex.SiteID
	Kind       CalledKind
	NotPaid    string // why nothing is paid for its change; empty if something is
	CalledAt   time.Time
	ReleasedAt time.Time
	Cost       flex.MicroPounds
	ReportEnergies
	// in each minute
	Minutes ReportEnergies
}

// ReportEnergies are energies of one asset.
type ReportEnergies struct {
	Baseline []flex.WattHours
	Expected []flex.WattHours
	Metered  []flex.Optional[flex.WattHours]
}

// reportLimit limits a report: the number of its assets times its minutes, and the number of
// readings that are used for it.
const reportLimit = 1_000_000

// ReportInstructionMinutes is ReportInstruction with each minute in addition. It is Malformed
// if there are more than a million minutes of assets.
func (s *Service) ReportInstructionMinutes(
	ctx context.Context,
	org flex.OrgID,
	id flex.InstructionID,
) (*InstructionReport, error) {
	var r *InstructionReport
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var called []store.Called
		var err error
		r, called, err = reportOf(ctx, tx, id)
		if err != nil {
			return err
		}

		return r.addMinutes(ctx, tx, called)
	})

	return r, err
}

// ReportInstruction returns the target of an instruction and its result, in total and for each
// asset, by half-hours. It includes assets that were released.
func (s *Service) ReportInstruction(
	ctx context.Context,
	org flex.OrgID,
	id flex.InstructionID,
) (*InstructionReport, error) {
	var r *InstructionReport
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		r, _, err = reportOf(ctx, tx, id)
		return err
	})

	return r, err
}

// reportOf returns an instruction's report by half-hours, and the called assets.
func reportOf(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
) (*InstructionReport, []store.Called, error) {
	in, err := tx.Instruction(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	r := newReport(&in, tx.Now())
	called, err := tx.CalledBy(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	span := reportSpan(&in)
	metered, err := meteredOf(ctx, tx, called, span)
	if err == nil {
		err = addRegistered(ctx, tx, called, span, metered)
	}
	if err != nil {
		return nil, nil, err
	}

	for i := range called {
		r.add(&called[i], metered[called[i].AssetID])
	}

	r.Settled, err = tx.InstructedEvents(ctx, id)

	return r, called, err
}

// reportSpan returns the time of a report: the instruction's window and the hour after.
func reportSpan(in *flex.Instruction) flex.Span {
	return flex.Span{From: in.From, To: in.To.Add(instruct.Guard)}
}

// addMinutes adds the target and the expected and metered energies of each minute.
func (r *InstructionReport) addMinutes(
	ctx context.Context,
	tx *store.Tx,
	called []store.Called,
) error {
	span := reportSpan(&r.Instruction)
	n := int(span.Len() / time.Minute)
	if n*len(called) > reportLimit {
		return flex.Fail(
			flex.Malformed,
			"%d minutes of %d assets are more than %d: ask for the half-hours",
			n,
			len(called),
			reportLimit,
		)
	}

	marks, err := tx.CalledMarks(ctx, r.ID, flex.Span{
		From: span.From.Add(-instruct.MarkGap),
		To:   span.To.Add(instruct.MarkGap),
	}, reportLimit)
	if err != nil {
		return err
	}

	powers, err := calledPowers(ctx, tx, called, span)
	if err != nil {
		return err
	}

	r.Minutes = r.emptyMinutes(span.From, n)

	for i := range called {
		c := &called[i]
		id := c.AssetID
		if c.Battery || c.Heater {
			r.addMinutesOf(&r.Assets[i], c, inverterEnergy(powers[id]))
		} else {
			r.addMinutesOf(&r.Assets[i], c, registerEnergy(marks[id]))
		}
	}

	return nil
}

// emptyMinutes returns n minutes from an instant on, with the target and without assets.
func (r *InstructionReport) emptyMinutes(from time.Time, n int) []ReportSlot {
	minutes := make([]ReportSlot, n)
	for m := range minutes {
		minutes[m] = ReportSlot{Span: flex.Span{From: from, To: from.Add(time.Minute)}}
		minutes[m].Asked, minutes[m].exactTarget = r.targetIn(from)
		from = from.Add(time.Minute)
	}

	return minutes
}

// targetIn returns the target in the minute from an instant on, rounded and exact.
func (r *InstructionReport) targetIn(from time.Time) (flex.WattHours, charge.Joules) {
	for _, s := range r.Slots {
		if s.Contains(from) {
			part := time.Minute.Seconds() / s.Len().Seconds()
			return flex.WattHours(math.Round(float64(s.Asked) * part)), charge.Joules(math.Round(float64(s.exactTarget) * part))
		}
	}

	return 0, 0
}

// addMinutesOf adds an asset to each minute, with its metered energy if there is one.
func (r *InstructionReport) addMinutesOf(
	a *ReportAsset,
	c *store.Called,
	meteredIn func(minute flex.Span) (charge.Joules, bool),
) {
	until := r.releasedAt(c)
	for m := range r.Minutes {
		slot := &r.Minutes[m]
		e, ok := meteredIn(slot.Span)
		if !calledBefore(c, slot.Span) {
			e, ok = 0, false
		}

		metered := flex.Optional[flex.WattHours]{
			Value: wattHours(e),
			Given: ok,
		}

		baseline, expected := slot.plan(c, until)
		a.Minutes.Baseline = append(a.Minutes.Baseline, baseline)
		a.Minutes.Expected = append(a.Minutes.Expected, expected)
		a.Minutes.Metered = append(a.Minutes.Metered, metered)
		slot.count(baseline, expected, metered)
	}
}

// registerEnergy returns a function for the energy in consecutive spans by a charger's
// register.
func registerEnergy(marks []flex.RegisterMark) func(flex.Span) (charge.Joules, bool) {
	return func(span flex.Span) (charge.Joules, bool) {
		for len(marks) > 1 && !marks[1].At.After(span.From) {
			marks = marks[1:]
		}

		return instruct.Metered(marks, span)
	}
}

// releasedAt returns the instant from which an asset is expected to draw as without the
// instruction; zero for never.
func (r *InstructionReport) releasedAt(c *store.Called) time.Time {
	if !c.ReleasedAt.IsZero() {
		return c.ReleasedAt
	}

	return r.StoppedAt
}

// newReport returns a report without assets.
func newReport(in *flex.Instruction, now time.Time) *InstructionReport {
	r := &InstructionReport{Instruction: *in, At: now}
	for t, slot := range instruct.Slots(in.Span) {
		requested := -charge.Joules(in.Target[t])
		if in.Change > 0 {
			requested = -requested
		}

		r.Slots = append(r.Slots, ReportSlot{
			Span:        slot,
			Asked:       wattHours(requested),
			exactTarget: requested,
		})
	}

	for _, slot := range instruct.Slots(flex.Span{
		From: in.To,
		To:   in.To.Add(instruct.Guard),
	}) {
		r.Slots = append(r.Slots, ReportSlot{Span: slot})
	}

	return r
}

// add adds an asset to the report.
func (r *InstructionReport) add(
	c *store.Called,
	metered map[flex.Period]flex.WattHours,
) {
	a := ReportAsset{
		AssetID:    c.AssetID,
		SiteID:     c.SiteID,
		Kind:       kindOfCalled(c),
		CalledAt:   c.CalledAt,
		ReleasedAt: c.ReleasedAt,
		Cost:       c.Cost,
	}

	until := r.releasedAt(c)
	a.NotPaid = notPaid(&r.Instruction, a.Kind)
	if !until.IsZero() && !until.After(r.From) {
		a.NotPaid = "it was let go before the instruction began"
	}

	for t := range r.Slots {
		slot := &r.Slots[t]
		baseline, expected := slot.plan(c, until)
		m := flex.Optional[flex.WattHours]{}
		m.Value, m.Given = metered[flex.PeriodAt(slot.From)]
		m.Given = m.Given && countsMetered(c, slot.Span)

		a.Baseline = append(a.Baseline, baseline)
		a.Expected = append(a.Expected, expected)
		a.Metered = append(a.Metered, m)
		slot.count(baseline, expected, m)
	}

	r.Cost += c.Cost
	r.Assets = append(r.Assets, a)
}

// Unmetered returns the number of assets without a metered energy in a slot, given by its
// index, among those that were planned or expected to draw or discharge something.
func (r *InstructionReport) Unmetered(slot int) int {
	n := 0
	for i := range r.Assets {
		a := &r.Assets[i]
		counts := a.Baseline[slot] != 0 || a.Expected[slot] != 0
		if counts && !a.Metered[slot].Given {
			n++
		}
	}

	return n
}

// countsMetered reports whether the metered energy of a slot counts for a called asset: the
// slot is a whole half-hour and begins after the call.
func countsMetered(c *store.Called, slot flex.Span) bool {
	return slot.Len() == flex.HalfHour && calledBefore(c, slot)
}

// calledBefore reports whether an asset was called before a span began. For an earlier span
// there is no baseline, as that begins with the call. A dispatch lists its batteries from its
// beginning on.
func calledBefore(c *store.Called, span flex.Span) bool {
	return c.Dispatched || !span.From.Before(c.CalledAt.Truncate(time.Second))
}

// expectedOf returns the energy of a called asset in a span by the schedule that was sent, and
// from until on, unless it is zero, by its baseline.
func expectedOf(
	c *store.Called,
	span flex.Span,
	until time.Time,
) charge.Joules {
	if until.IsZero() {
		return drawnOf(c, c.Expected, span)
	}

	before := flex.Span{From: span.From, To: until}.Meet(span)
	after := flex.Span{From: until, To: span.To}.Meet(span)

	return drawnOf(c, c.Expected, before) +
		drawnOf(c, c.Baseline, after)
}

// plan returns the baseline and the expected energy of a called asset in the slot. Their
// difference counts as its contribution.
func (s *ReportSlot) plan(c *store.Called, until time.Time) (baseline, expected flex.WattHours) {
	before := drawnOf(c, c.Baseline, s.Span)
	after := expectedOf(c, s.Span, until)
	s.exactChange += after - before

	return wattHours(before), wattHours(after)
}

// count adds an asset's energies.
func (s *ReportSlot) count(
	baseline, expected flex.WattHours,
	metered flex.Optional[flex.WattHours],
) {
	s.Baseline += baseline
	s.Expected += expected
	if metered.Given {
		s.Metered += metered.Value
		s.MeteredBaseline += baseline
		s.NumMetered++
	}
}

// WriteCSV writes a row for each asset and half-hour, or minute if there are minutes, and a
// row without an asset for the sum of each.
func (r *InstructionReport) WriteCSV(out io.Writer) error {
	w := csvfile.NewWriter(
		out,
		"start_timestamp",
		"end_timestamp",
		"asset_id",
		"site_id",
		"asked_kwh",
		"baseline_kwh",
		"expected_kwh",
		"metered_kwh",
		"short_kwh",
		"kind",
		"not_paid",
	)

	slots := r.Slots
	if r.Minutes != nil {
		slots = r.Minutes
	}

	for t, s := range slots {
		metered := any("")
		if s.NumMetered > 0 {
			metered = s.Metered.KWh()
		}

		w.Write(
			s.From,
			s.To,
			"",
			"",
			s.Asked.KWh(),
			s.Baseline.KWh(),
			s.Expected.KWh(),
			metered,
			r.Short(&s).KWh(),
			"",
			"",
		)

		for i := range r.Assets {
			r.Assets[i].writeCSV(w, s.Span, t, r.Minutes != nil)
		}
	}

	return w.Flush()
}

// writeCSV writes an asset's row of a slot.
func (a *ReportAsset) writeCSV(
	w *csvfile.Writer,
	slot flex.Span,
	t int,
	minutes bool,
) {
	e := &a.ReportEnergies
	if minutes {
		e = &a.Minutes
	}

	metered := any("")
	if e.Metered[t].Given {
		metered = e.Metered[t].Value.KWh()
	}

	w.Write(
		slot.From,
		slot.To,
		a.AssetID,
		a.SiteID,
		"",
		e.Baseline[t].KWh(),
		e.Expected[t].KWh(),
		metered,
		"",
		string(a.Kind),
		a.NotPaid,
	)
}
