package contract

import (
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/wire"
)

// InstructionOf reads an instruction that is asked for.
func InstructionOf(in *wire.InstructionRequest, who string) flex.Instruction {
	out := flex.Instruction{
		Span: flex.Span{
			From: in.StartTimestamp.Time,
			To:   in.EndTimestamp.Time,
		},
		Scope:   flex.Scope{Group: in.Group, GSPGroup: in.GSPGroup},
		Service: in.Service,
		Price:   flex.FromGBPPerMWh(in.PriceGBPPerMWh),
		Reason:  in.Reason,
		Unfair:  in.Unfair,
		Who:     who,
	}

	if in.ChangeKW != nil {
		out.Change = flex.FromKW(*in.ChangeKW)
	}
	if in.LimitKW != nil {
		out.Limit = new(flex.FromKW(*in.LimitKW))
	}

	return out
}

// Instruction is an instruction as it is at an instant.
func Instruction(in *flex.Instruction, now time.Time) wire.Instruction {
	out := wire.Instruction{
		ID:             in.ID,
		State:          string(control.StateOf(in, now)),
		Group:          in.Scope.Group,
		GSPGroup:       in.Scope.GSPGroup,
		StartTimestamp: wire.At(in.From),
		EndTimestamp:   wire.At(in.To),
		Service:        in.Service,
		PriceGBPPerMWh: in.Price.GBPPerMWh(),
		Reason:         in.Reason,
		Unfair:         in.Unfair,
		Who:            in.Who,
		MadeAt:         wire.At(in.MadeAt),
		StoppedAt:      wire.At(in.StoppedAt),
		StoppedBy:      in.StoppedBy,
	}

	if in.Limit != nil {
		out.LimitKW = new(in.Limit.KW())
	} else {
		out.ChangeKW = new(in.Change.KW())
	}

	return out
}

// InstructionPage is a page of instructions.
func InstructionPage(p *control.InstructionPage) wire.InstructionPage {
	out := wire.InstructionPage{
		Instructions: make([]wire.Instruction, len(p.Instructions)),
		NumTotal:     p.Total,
		Next:         p.Next,
	}

	for i := range p.Instructions {
		out.Instructions[i] = Instruction(&p.Instructions[i], p.At)
	}

	return out
}

// pence is money in pence and parts of them.
func pence(m flex.MicroPounds) float64 { return float64(m) / 1e4 }

// costOf is the cost of an instruction or of an asset in it; nil for a dispatch of named batteries, whose cost is not known.
func costOf(cost flex.MicroPounds, by *flex.Instruction) *float64 {
	if by.Dispatched {
		return nil
	}

	return new(pence(cost))
}

// InstructionPreview is what an instruction does, or would do.
func InstructionPreview(p *control.Preview) wire.InstructionPreview {
	out := wire.InstructionPreview{
		Instruction:    Instruction(&p.Instruction, p.At),
		At:             wire.At(p.At),
		CostPence:      costOf(p.Cost, &p.Instruction),
		Reached:        p.Reached(),
		Why:            p.Why(),
		ReboundKW:      p.Rebound.KW(),
		ReboundLaterKW: p.ReboundLater.KW(),
		NumCalled:      len(p.Assets),
		NumCallable:    p.Callable,
		NumNeeded:      p.NumNeeded,
		NumIdle:        p.NumIdle,
		NumBusy:        p.NumBusy,
		NumSpent:       p.SpentSites,
		Spent:          p.Spent,
		HalfHours:      previewSlots(p.Slots),
		Assets:         make([]wire.InstructionAsset, len(p.Assets)),
	}

	if p.Wear.Given {
		out.WearPence = new(pence(p.Wear.Value))
	}

	for i := range p.Assets {
		out.Assets[i] = instructionAsset(&p.Assets[i], &p.Instruction)
	}

	return out
}

// previewSlots are the half-hours of a preview.
func previewSlots(slots []control.InstructedSlot) []wire.InstructionHalfHour {
	out := make([]wire.InstructionHalfHour, len(slots))
	for t, s := range slots {
		out[t] = wire.InstructionHalfHour{
			StartTimestamp: wire.At(s.From),
			EndTimestamp:   wire.At(s.To),
			PlannedKWh:     s.Planned.KWh(),
			AskedKWh:       s.Asked.KWh(),
			CountedKWh:     s.Counted.KWh(),
			GivenKWh:       s.Given.KWh(),
			ShortKWh:       s.Short().KWh(),
		}
	}

	return out
}

func instructionAsset(
	a *control.InstructedAsset,
	by *flex.Instruction,
) wire.InstructionAsset {
	return wire.InstructionAsset{
		AssetID:        a.AssetID,
		SiteID:         a.SiteID,
		Battery:        a.Battery,
		Heater:         a.Heater,
		QualityPercent: int(a.Quality),
		NumCalls:       a.Calls,
		ChangeKWh:      kwhs(a.Change),
		LessKWh:        a.Less.KWh(),
		CostPence:      costOf(a.Cost, by),
	}
}

func kwhs(all []flex.WattHours) []float64 {
	out := make([]float64, len(all))
	for i, e := range all {
		out[i] = e.KWh()
	}

	return out
}

// InstructionReport is what came of an instruction, with each asset's part if it is asked for.
func InstructionReport(
	r *control.InstructionReport,
	assets bool,
) wire.InstructionReport {
	out := wire.InstructionReport{
		Instruction: Instruction(&r.Instruction, r.At),
		At:          wire.At(r.At),
		CostPence:   costOf(r.Cost, &r.Instruction),
		NumCalled:   len(r.Assets),
		NumSpent:    r.SpentSites,
		Spent:       r.Spent,
		HalfHours:   reportSlots(r, r.Slots),
		Minutes:     reportSlots(r, r.Minutes),
	}

	for i := 0; assets && i < len(r.Assets); i++ {
		out.Assets = append(out.Assets, reportPart(&r.Assets[i], &r.Instruction))
	}

	if r.Price > 0 {
		out.Settled = new(instructionSettled(&r.Settled))
	}

	return out
}

// reportSlots are what came of an instruction in half-hours or minutes; nil for none.
func reportSlots(
	r *control.InstructionReport,
	slots []control.ReportSlot,
) []wire.InstructionReportHalf {
	if slots == nil {
		return nil
	}

	out := make([]wire.InstructionReportHalf, len(slots))
	for t := range slots {
		s := &slots[t]
		out[t] = wire.InstructionReportHalf{
			StartTimestamp: wire.At(s.From),
			EndTimestamp:   wire.At(s.To),
			AskedKWh:       s.Asked.KWh(),
			BaselineKWh:    s.Baseline.KWh(),
			ExpectedKWh:    s.Expected.KWh(),
			ShortKWh:       r.Short(s).KWh(),
			NumMetered:     s.NumMetered,
		}

		if s.NumMetered > 0 {
			out[t].MeteredKWh, out[t].MeteredBaselineKWh = new(s.Metered.KWh()), new(s.MeteredBaseline.KWh())
		}
	}

	return out
}

func instructionSettled(s *flex.InstructedEvents) wire.InstructionSettled {
	return wire.InstructionSettled{
		NumEvents:  s.Found,
		NumWaiting: s.Waiting,
		FlexKWh:    s.Flex.KWh(),
		RevenueGBP: s.Revenue.GBP(),
	}
}

func reportPart(
	a *control.ReportAsset,
	by *flex.Instruction,
) wire.InstructionReportPart {
	p := wire.InstructionReportPart{
		AssetID:     a.AssetID,
		SiteID:      a.SiteID,
		Battery:     a.Kind == control.CalledBattery,
		Heater:      a.Kind == control.CalledHeater,
		Paid:        a.NotPaid == "",
		NotPaid:     a.NotPaid,
		CalledAt:    wire.At(a.CalledAt),
		ReleasedAt:  wire.At(a.ReleasedAt),
		CostPence:   costOf(a.Cost, by),
		BaselineKWh: kwhs(a.Baseline),
		ExpectedKWh: kwhs(a.Expected),
		MeteredKWh:  meteredKWhs(a.Metered),
	}

	if a.Minutes.Baseline != nil {
		p.Minutes = &wire.InstructionReportEnergies{
			BaselineKWh: kwhs(a.Minutes.Baseline),
			ExpectedKWh: kwhs(a.Minutes.Expected),
			MeteredKWh:  meteredKWhs(a.Minutes.Metered),
		}
	}

	return p
}

// meteredKWhs are energies in kWh, nil where there is none.
func meteredKWhs(metered []flex.Optional[flex.WattHours]) []*float64 {
	out := make([]*float64, len(metered))
	for t, m := range metered {
		if m.Given {
			out[t] = new(m.Value.KWh())
		}
	}

	return out
}

// AgreedCalls is how often a site may be called; nil without a limit.
func AgreedCalls(c flex.AgreedCalls) *wire.AgreedCalls {
	if c == (flex.AgreedCalls{}) {
		return nil
	}

	v := &wire.AgreedCalls{}
	if c.PerDay.Given {
		v.PerDay = new(c.PerDay.Value)
	}
	if c.PerMonth.Given {
		v.PerMonth = new(c.PerMonth.Value)
	}

	return v
}
