package api

import (
	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/wire"
)

// balance answers GET /rewards/{site_id}/info.
func (s *Server) balance(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	i, err := s.Reward.Info(r.Context(), r.who.Org, p.SiteID)
	return ok(wire.BalanceInfoResponse{
		CurrentBalancePence: i.Balance, TotalEarningsPence: i.Earned, MinimumWithdrawalThresholdPence: i.Terms.Minimum,
		WithdrawalMinWaitDays: i.Terms.WaitDays, CanWithdraw: i.CanWithdraw,
	}), err
}

// transactions answers GET /rewards/{site_id}/transactions.
func (s *Server) transactions(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.TransactionsQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	h, err := s.Reward.Transactions(r.Context(), r.who.Org, p.SiteID, q.Limit, q.Offset)
	if err != nil {
		return answer{}, err
	}

	out := wire.TransactionDataResponse{
		SiteID: p.SiteID, Transactions: make([]wire.TransactionDatumResponse, len(h.Transactions)), TotalCount: h.Total,
		IsBelowWithdrawalMinimum: h.Standing.BelowMinimum, DaysUntilMinimumWaitTimeMet: h.Standing.DaysLeft,
	}

	for i, t := range h.Transactions {
		out.Transactions[i] = transaction(t)
	}

	return ok(out), nil
}

// transaction writes a transaction as the interface shows it.
func transaction(t store.Transaction) wire.TransactionDatumResponse {
	w := wire.TransactionDatumResponse{
		TransactionID: t.ID, TransactionType: string(t.Kind), CreditPence: t.Amount,
		StartTime: wire.At(t.Time.From), EndTime: wire.At(t.Time.To),
		FlexKWh: kwh(t.Flex), CreditableKWh: kwh(t.Creditable), PaymentStatus: string(t.Status), PlugSessionID: t.Cause.Session,
	}

	if t.Settled != (flex.Day{}) {
		w.SettlementDate = new(wire.Day(t.Settled))
	}

	if t.Rate != nil {
		w.CreditRatePencePerKWh = new(float64(*t.Rate) / 1e6)
	}

	if t.Vehicle != "" {
		w.Vehicle = &wire.TransactionVehicle{ModelName: t.Vehicle}
	}

	return w
}

func kwh(e *flex.WattHours) *float64 {
	if e == nil {
		return nil
	}
	return new(e.KWh())
}

// balanceURL answers GET /rewards/{site_id}/url/balance.
func (s *Server) balanceURL(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.BalanceURLQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	link, expires, err := s.Reward.Link(r.Context(), r.who.Org, p.SiteID, reward.LinkOptions{
		RedirectURI: q.RedirectURI, TwoFactor: q.EnforceTwoFactorAuth != nil && *q.EnforceTwoFactorAuth,
		MayPayOut: r.who.May(flex.Payouts), HideTransactions: q.HideTransactions, Setup: q.AutoRedirectToSetup,
	})
	return ok(wire.BalanceWithdrawalURLResponse{BalanceWithdrawalURL: link, URLExpiryTimestamp: wire.At(expires)}), err
}

// flexEvents answers GET /entities/site/{site_id}/flex-events.
func (s *Server) flexEvents(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	events, err := s.Reward.FlexEvents(r.Context(), r.who.Org, p.SiteID)
	v := wire.SiteFlexEventsResponse{SiteID: p.SiteID, Events: make([]wire.FlexEventResponse, len(events))}

	for i, e := range events {
		v.Events[i] = wire.FlexEventResponse{StartAt: wire.At(e.From), EndAt: wire.At(e.To), EstimatedGrossRevenueGBP: e.Estimated.GBP()}
		if e.Final != nil {
			v.Events[i].FinalGrossRevenueGBP = new(e.Final.GBP())
		}
	}

	return ok(v), err
}

// gaps answers GET /data/gaps.
func (s *Server) gaps(r *request) (answer, error) {
	q := query[wire.GapsQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	gaps, err := s.Reading.Gaps(r.Context(), r.who.Org, q.SiteID, dayOf(q.From), dayOf(q.To))
	v := wire.GapsResponse{SiteID: q.SiteID, Gaps: make([]wire.Gap, len(gaps))}

	for i, g := range gaps {
		v.Gaps[i] = wire.Gap{
			AssetID: g.AssetID, Label: g.Label, Day: wire.Day(g.Day), NumExpected: g.Expected, NumMissing: g.Missing, NumHeldBack: g.Held, FirstMissing: wire.At(g.First),
		}
	}

	return ok(v), err
}

func dayOf(d *wire.Day) flex.Day {
	if d == nil {
		return flex.Day{}
	}
	return flex.Day(*d)
}

// statement answers GET /rewards/{site_id}/statement.
func (s *Server) statement(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.StatementQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	st, err := s.Reward.Statement(r.Context(), r.who.Org, p.SiteID, dayOf(q.From), dayOf(q.To))
	if err != nil {
		return answer{}, err
	}

	v := wire.StatementResponse{
		SiteID: p.SiteID, From: wire.Day(st.From), To: wire.Day(st.To), OpeningBalancePence: st.Opening, ClosingBalancePence: st.Closing,
		Number: st.Number, Payer: wire.StatementPayer(st.Payer), RoundingRule: reward.RoundingRule,
		Lines: make([]wire.StatementLine, len(st.Lines)),
	}

	for i, l := range st.Lines {
		v.Lines[i] = statementLine(l)
	}

	return ok(v), nil
}

// statementLine writes a line with what it rests on.
func statementLine(l reward.Line) wire.StatementLine {
	line := wire.StatementLine{
		TransactionDatumResponse: transaction(l.Transaction), BalancePence: l.Balance, Cause: l.Cause, Provisional: l.Provisional,
		Periods: make([]wire.StatementPeriod, len(l.Periods)),
	}

	for j, period := range l.Periods {
		p := wire.StatementPeriod{
			StartTimestamp: wire.At(period.Start), BaselineKWh: kwh(period.Baseline), MeteredKWh: kwh(period.Metered), FlexKWh: kwh(period.Flex),
		}

		if period.Price != nil {
			p.PricePencePerKWh = new(period.Price.GBPPerMWh() / 10)
		}

		line.Periods[j] = p
	}

	if c := l.Calculation; c != nil {
		line.Calculation = &wire.StatementCalculation{
			UserShare: float64(c.Share) / 1e6, LossFactor: float64(c.LossFactor) / 1e6, PaidPart: float64(c.PaidEarly) / 1e6,
			CarriedPence: float64(c.Carried) / 1e10, EarlierPence: c.Earlier, Rounding: c.Rounding.String(), LossesPassed: c.ClawBack,
		}
	}

	return line
}
