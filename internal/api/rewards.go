package api

import (
	"flexd/internal/flex"
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

func (s *Server) balanceURL(r *request) (answer, error) { return s.pending(r) }
func (s *Server) flexEvents(r *request) (answer, error) { return s.pending(r) }
