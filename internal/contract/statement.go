package contract

import (
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/settle"
	"flexd/internal/wire"
)

// Statement is a customer's statement.
func Statement(s *reward.Statement) wire.StatementResponse {
	v := wire.StatementResponse{
		SiteID: s.Customer.SiteID,
		From:   wire.Day(s.From),
		To:     wire.Day(s.To),
		MadeAt: wire.At(s.MadeAt),
		Number: s.Number,
		Payer:  wire.StatementPayer(s.Payer),
		Customer: wire.StatementCustomer{
			Address:  s.Customer.Address.Reveal(),
			Postcode: s.Customer.Postcode.Reveal(),
		},
		RoundingRule:        reward.RoundingRule,
		OpeningBalancePence: s.Opening,
		ClosingBalancePence: s.Closing,
		Totals:              statementTotals(&s.Totals),
		Lines:               make([]wire.StatementLine, len(s.Lines)),
		Months:              make([]wire.StatementMonth, len(s.Months)),
	}

	for i := range s.Lines {
		v.Lines[i] = statementLine(&s.Lines[i])
	}

	for i := range s.Months {
		v.Months[i] = statementMonth(&s.Months[i])
	}

	return v
}

// statementTotals are the sums of a statement.
func statementTotals(t *reward.Totals) wire.StatementTotals {
	return wire.StatementTotals{
		EarnedPence:    t.Earned,
		OtherPence:     t.Other,
		WithdrawnPence: t.Withdrawn,
		FlexKWh:        t.Flex.KWh(),
		LessKWh:        t.Less.KWh(),
		MoreKWh:        t.More.KWh(),
		CreditableKWh:  t.Charged.KWh(),
	}
}

// statementLine is a line of a statement with what it rests on.
func statementLine(l *reward.Line) wire.StatementLine {
	line := wire.StatementLine{
		TransactionDatumResponse: Transaction(l.Booked),
		RecordedAt:               wire.At(l.At),
		FlexEventID:              l.Transaction.Cause.FlexEvent,
		BalancePence:             l.Balance,
		Cause:                    l.Cause,
		Working:                  l.Working,
		Note:                     l.Note,
		Provisional:              l.Provisional,
		Label:                    l.Label,
		Periods:                  make([]wire.StatementPeriod, len(l.Periods)),
	}

	if line.Working == nil {
		line.Working = []string{}
	}

	for i, p := range l.Periods {
		line.Periods[i] = statementPeriod(p)
	}

	if c := l.Calculation; c != nil {
		line.Calculation = statementCalculation(c)
	}

	return line
}

// statementPeriod is a half-hour that a line rests on.
func statementPeriod(p reward.Period) wire.StatementPeriod {
	v := wire.StatementPeriod{
		StartTimestamp:   wire.At(p.Start),
		BaselineKWh:      kilowattHours(p.Baseline),
		MeteredKWh:       kilowattHours(p.Metered),
		FlexKWh:          kilowattHours(p.Flex),
		ChangeKWh:        p.Change.KWh(),
		StandardErrorKWh: kilowattHours(p.Error),
		AssetID:          p.Device,
		PriceSource:      p.Source,
		PriceRole:        string(p.Role),
		PriceImportedAt:  wire.At(p.Imported),
		PublicationID:    p.Publication,
	}

	if p.Price != nil {
		v.PricePencePerKWh = new(float64(*p.Price) / 1e7)
	}

	return v
}

// statementCalculation is how the amount of a line was worked out.
func statementCalculation(c *reward.Calculation) *wire.StatementCalculation {
	part := func(p settle.Parts) float64 {
		return float64(p) / float64(settle.Whole)
	}

	v := &wire.StatementCalculation{
		UserShare:          part(c.Share),
		LossFactor:         part(c.LossFactor),
		PaidPart:           part(c.PaidEarly),
		CarriedPence:       float64(c.Carried) / 1e10,
		DuePence:           c.Due,
		EarlierPence:       c.Earlier,
		EarlierKWh:         c.Counted.KWh(),
		Rounding:           c.Rounding.String(),
		LossesPassed:       c.ClawBack,
		StandardErrorPence: c.Error.Pence(),
	}

	if c.Others != nil {
		v.Month = &wire.StatementNetting{
			Month:               c.Month.String(),
			OthersPence:         c.Others.Share,
			OthersCreditedPence: c.Others.Credited,
			CarriedInPence:      c.Others.Carried,
			SumPence:            c.Sum(),
			StandardErrorPence:  c.Others.Error.Pence(),
			Certainty:           part(c.Others.Certainty),
			ThresholdPence:      c.Threshold().Pence(),
			CreditPence:         c.MonthCredit(),
			LaterPence:          c.Others.Later,
		}
	}

	return v
}

// statementMonth is how the events of a month were netted.
func statementMonth(m *reward.Month) wire.StatementMonth {
	v := wire.StatementMonth{
		Month:              m.String(),
		SharesPence:        m.Early,
		FlooredPence:       m.Dropped,
		CreditPence:        m.Credited,
		Events:             make([]wire.StatementMonthEvent, len(m.Events)),
		CarriedInPence:     m.CarriedIn,
		LapsedPence:        m.Lapsed,
		SumPence:           m.Sum(),
		StandardErrorPence: m.Error.Pence(),
		Certainty:          float64(m.Certainty.Errors) / float64(settle.Whole),
		CarryMonths:        m.Certainty.Months,
		ThresholdPence:     m.Threshold.Pence(),
		CarriedOutPence:    m.CarriedOut,
		Note:               m.Note(),
	}

	for i, e := range m.Events {
		v.Events[i] = wire.StatementMonthEvent{
			FlexEventID:        e.ID,
			StartTime:          wire.At(e.Span.From),
			EndTime:            wire.At(e.Span.To),
			FlexKWh:            e.Flex.KWh(),
			GrossPence:         float64(e.Gross) / 1e4,
			SharePence:         e.Share,
			CreditedPence:      e.Credited,
			StandardErrorPence: e.Error.Pence(),
		}
	}

	return v
}

// Transaction is a transaction of a site.
func Transaction(t ledger.Booked) wire.TransactionDatumResponse {
	w := wire.TransactionDatumResponse{
		TransactionID:   t.ID,
		TransactionType: string(t.Kind),
		CreditPence:     t.Amount,
		StartTime:       wire.At(t.Time.From),
		EndTime:         wire.At(t.Time.To),
		FlexKWh:         kilowattHours(t.Flex),
		CreditableKWh:   kilowattHours(t.Creditable),
		PaymentStatus:   string(t.Status),
		PlugSessionID:   t.Cause.Session,
	}

	if t.Settled != (flex.Day{}) {
		w.SettlementDate = new(wire.Day(t.Settled))
	}

	if t.Rate != nil {
		w.CreditRatePencePerKWh = new(settle.Rate(*t.Rate).PencePerKWh())
	}

	if t.Vehicle != "" {
		w.Vehicle = &wire.TransactionVehicle{ModelName: t.Vehicle}
	}

	return w
}

func kilowattHours(e *flex.WattHours) *float64 {
	if e == nil {
		return nil
	}
	return new(e.KWh())
}
