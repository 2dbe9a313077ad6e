package control

import (
	"context"
	"io"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/engine/charge"
	"flexd/internal/engine/instruct"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// InstructionState says where an instruction is.
type InstructionState string

// The states of an instruction.
const (
	InstructionPreviewed InstructionState = "previewed" // it was not sent
	// it was sent, and does not bind yet
	InstructionOrdered InstructionState = "ordered"
	InstructionRunning InstructionState = "running"
	InstructionStopped InstructionState = "stopped"
	InstructionEnded   InstructionState = "ended"
)

// StateOf says where an instruction is at an instant.
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

// Instructions returns a page of an organisation's instructions, those made before one, if it is
// given.
func (d *Service) Instructions(
	ctx context.Context,
	org flex.OrgID,
	before flex.InstructionID,
	limit int,
) (InstructionPage, error) {
	var p InstructionPage
	err := d.DB.Read(ctx, org, func(tx *store.Tx) error {
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

// InstructionReport is what an instruction asked for, and what came of it.
type InstructionReport struct {
	flex.Instruction
	At     time.Time
	Slots  []ReportSlot // of its window, and of the hour after
	Assets []ReportAsset
	// of the plans with, less that of those without, as they were sent
	Cost flex.MicroPounds
	// the flex events that it pays for; none if it did not say what it pays
	Settled flex.InstructedEvents
}

// ReportSlot is a half-hour, or a part of one, of all assets that were called.
type ReportSlot struct {
	flex.Span
	// the change against the baseline, negative for less
	Asked    flex.WattHours
	Baseline flex.WattHours // by the schedules that were in force
	Expected flex.WattHours // by those that were sent

	// of the assets whose meter has the whole half-hour
	Metered         flex.WattHours
	MeteredBaseline flex.WattHours // theirs
	NumMetered      int
}

// ReportAsset is what one asset was asked for and did, in each slot.
type ReportAsset struct {
	AssetID    flex.AssetID
	SiteID     flex.SiteID
	CalledAt   time.Time
	ReleasedAt time.Time
	Cost       flex.MicroPounds
	Baseline   []flex.WattHours
	Expected   []flex.WattHours
	Metered    []flex.Optional[flex.WattHours]
}

// ReportInstruction says what an instruction asked for and what came of it, in all and of each
// asset: in half-hours, as meters give no more. What was called is in it, and what was released.
func (d *Service) ReportInstruction(
	ctx context.Context,
	org flex.OrgID,
	id flex.InstructionID,
) (*InstructionReport, error) {
	var r *InstructionReport
	err := d.DB.Read(ctx, org, func(tx *store.Tx) error {
		in, err := tx.Instruction(ctx, id)
		if err != nil {
			return err
		}

		r = newReport(&in, tx.Now())
		was, err := tx.CalledBy(ctx, id)
		if err != nil {
			return err
		}

		metered, err := meteredOf(ctx, tx, was, flex.Span{
			From: in.From,
			To:   in.To.Add(instruct.Guard),
		})
		if err != nil {
			return err
		}

		for i := range was {
			r.add(&was[i], metered[was[i].AssetID])
		}

		r.Settled, err = tx.InstructedEvents(ctx, id)
		return err
	})

	return r, err
}

// newReport is a report without assets.
func newReport(in *flex.Instruction, now time.Time) *InstructionReport {
	r := &InstructionReport{Instruction: *in, At: now}
	for t, slot := range instruct.Slots(in.Span) {
		asked := -wattHours(charge.Joules(in.Target[t]))
		if in.Change > 0 {
			asked = -asked
		}
		r.Slots = append(r.Slots, ReportSlot{Span: slot, Asked: asked})
	}

	for _, slot := range instruct.Slots(flex.Span{
		From: in.To,
		To:   in.To.Add(instruct.Guard),
	}) {
		r.Slots = append(r.Slots, ReportSlot{Span: slot})
	}

	return r
}

// add counts an asset in.
func (r *InstructionReport) add(
	c *store.Called,
	metered map[flex.Period]flex.WattHours,
) {
	a := ReportAsset{
		AssetID:    c.AssetID,
		SiteID:     c.SiteID,
		CalledAt:   c.CalledAt,
		ReleasedAt: c.ReleasedAt,
		Cost:       c.Cost,
	}

	until := r.StoppedAt
	if !c.ReleasedAt.IsZero() {
		until = c.ReleasedAt
	}

	for t := range r.Slots {
		slot := &r.Slots[t]
		baseline := wattHours(instruct.Drawn(c.Baseline, c.Power, slot.Span))
		expected := wattHours(expectedOf(c, slot.Span, until))
		e, ok := metered[flex.PeriodAt(slot.From)]
		m := flex.Optional[flex.WattHours]{
			Value: e,
			Given: ok && slot.Len() == flex.HalfHour,
		}

		a.Baseline = append(a.Baseline, baseline)
		a.Expected = append(a.Expected, expected)
		a.Metered = append(a.Metered, m)
		slot.count(baseline, expected, m)
	}

	r.Cost += c.Cost
	r.Assets = append(r.Assets, a)
}

// expectedOf is what a called asset draws in a span: by what was sent to it, and from an instant
// on, if it is given, as without.
func expectedOf(
	c *store.Called,
	span flex.Span,
	until time.Time,
) charge.Joules {
	if until.IsZero() {
		return instruct.Drawn(c.Expected, c.Power, span)
	}

	before := flex.Span{From: span.From, To: until}.Meet(span)
	after := flex.Span{From: until, To: span.To}.Meet(span)

	return instruct.Drawn(c.Expected, c.Power, before) +
		instruct.Drawn(c.Baseline, c.Power, after)
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

// WriteCSV writes a row for each asset and half-hour, and one for the sum of each half-hour,
// without an asset.
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
	)

	for t, s := range r.Slots {
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
		)

		for _, a := range r.Assets {
			metered = any("")
			if a.Metered[t].Given {
				metered = a.Metered[t].Value.KWh()
			}

			w.Write(
				s.From,
				s.To,
				a.AssetID,
				a.SiteID,
				"",
				a.Baseline[t].KWh(),
				a.Expected[t].KWh(),
				metered,
			)
		}
	}

	return w.Flush()
}
