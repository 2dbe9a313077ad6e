package api

import (
	"bytes"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/reading"
	"flexd/internal/reward"
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
		CurrentBalancePence:             i.Balance,
		TotalEarningsPence:              i.Earned,
		MinimumWithdrawalThresholdPence: i.Terms.Minimum,
		WithdrawalMinWaitDays:           i.Terms.WaitDays,
		CanWithdraw:                     i.CanWithdraw,
	}), err
}

// transactions answers GET /rewards/{site_id}/transactions.
func (s *Server) transactions(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.TransactionsQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	h, err := s.Reward.Transactions(
		r.Context(),
		r.who.Org,
		p.SiteID,
		q.Limit,
		q.Offset,
	)
	if err != nil {
		return answer{}, err
	}

	out := wire.TransactionDataResponse{
		SiteID:                      p.SiteID,
		Transactions:                make([]wire.TransactionDatumResponse, len(h.Transactions)),
		TotalCount:                  h.Total,
		IsBelowWithdrawalMinimum:    h.Eligibility.BelowMinimum,
		DaysUntilMinimumWaitTimeMet: h.Eligibility.DaysLeft,
	}

	for i, t := range h.Transactions {
		out.Transactions[i] = contract.Transaction(t)
	}

	return ok(out), nil
}

// balanceURL answers GET /rewards/{site_id}/url/balance.
func (s *Server) balanceURL(r *request) (answer, error) {
	p, q := path[wire.SitePath](r), query[wire.BalanceURLQuery](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	link, expires, err := s.Reward.Link(
		r.Context(),
		r.who.Org,
		p.SiteID,
		reward.LinkOptions{
			RedirectURI:      q.RedirectURI,
			TwoFactor:        q.EnforceTwoFactorAuth != nil && *q.EnforceTwoFactorAuth,
			MayPayOut:        r.who.May(flex.Payouts),
			HideTransactions: q.HideTransactions,
			Setup:            q.AutoRedirectToSetup,
		},
	)

	return ok(wire.BalanceWithdrawalURLResponse{
		BalanceWithdrawalURL: link,
		URLExpiryTimestamp:   wire.At(expires),
	}), err
}

// flexEvents answers GET /entities/site/{site_id}/flex-events.
func (s *Server) flexEvents(r *request) (answer, error) {
	p := path[wire.SitePath](r)

	if err := r.bad(); err != nil {
		return answer{}, err
	}

	events, prices, err := s.Reward.FlexEvents(r.Context(), r.who.Org, p.SiteID)
	v := wire.SiteFlexEventsResponse{
		SiteID: p.SiteID,
		Events: make([]wire.FlexEventResponse, len(events)),
	}

	for i, e := range events {
		v.Events[i] = wire.FlexEventResponse{
			StartAt:                  wire.At(e.From),
			EndAt:                    wire.At(e.To),
			EstimatedGrossRevenueGBP: e.Estimated.GBP(),
		}

		if e.Final != nil {
			v.Events[i].FinalGrossRevenueGBP = new(e.Final.GBP())
		}

		for _, q := range prices[e.ID] {
			v.Events[i].Prices = append(v.Events[i].Prices, wire.FlexEventPrice{
				Source:       q.Source,
				Role:         string(q.Role),
				PublishedAt:  wire.At(q.PublishedAt),
				ImportedAt:   wire.At(q.ImportedAt),
				NumHalfHours: q.HalfHours,

				InstructionID: q.Instruction,
			})
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

	gaps, err := s.Reading.Gaps(
		r.Context(),
		r.who.Org,
		q.SiteID,
		dayOf(q.From),
		dayOf(q.To),
	)

	v := wire.GapsResponse{
		SiteID: q.SiteID,
		Gaps:   make([]wire.Gap, len(gaps)),
	}

	for i := range gaps {
		v.Gaps[i] = gap(&gaps[i])
	}

	return ok(v), err
}

func gap(g *reading.Gap) wire.Gap {
	beyond := make([]wire.GapBeyond, len(g.Beyond))
	for i, b := range g.Beyond {
		beyond[i] = wire.GapBeyond{
			StartTimestamp: wire.At(b.Period.Start()),
			Label:          b.Label,
			EnergyKWh:      b.Energy.KWh(),
			LimitKWh:       g.Limit(b).KWh(),
		}
	}

	return wire.Gap{
		AssetID:      g.AssetID,
		Label:        g.Label,
		Day:          wire.Day(g.Day),
		NumExpected:  g.Expected,
		NumMissing:   g.Missing,
		NumHeldBack:  g.HeldBack,
		FirstMissing: wire.At(g.First),
		Beyond:       beyond,
	}
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

	from, to, err := reward.StatementSpan{
		From:    dayOf(q.From),
		To:      dayOf(q.To),
		Month:   q.Month,
		TaxYear: q.TaxYear,
	}.Days()
	if err != nil {
		return answer{}, err
	}

	st, err := s.Reward.Statement(r.Context(), r.who.Org, p.SiteID, from, to)
	if err != nil {
		return answer{}, err
	}

	if q.Format != "csv" {
		return ok(contract.Statement(&st)), nil
	}

	var b bytes.Buffer
	if err := st.WriteCSV(&b); err != nil {
		return answer{}, err
	}

	a := ok(text(b.Bytes()))
	a.set("Content-Type", "text/csv; charset=utf-8")
	a.set(
		"Content-Disposition",
		`attachment; filename="statement-`+st.From.String()+`-`+
			st.To.String()+`.csv"`,
	)

	return a, nil
}
