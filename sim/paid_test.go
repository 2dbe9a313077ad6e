package sim_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/wire"
	"flexd/sim"
)

// From plug-in to paid: a car is charged by the profile that was pushed, its readings are
// told, the session is credited, and the money goes from the hosted page through approval
// and payment file to the bank.
func TestLine_FromPlugInToPaid(t *testing.T) {
	each(t, func(l *line) {
		ctx := l.Context()
		l.must(l.app.DB.Write(ctx, l.org.ID, func(tx *store.Tx) error {
			if err := tx.SetSettings(ctx, flex.OrgSettings{Payout: flex.PayoutSettings{WithoutCode: true}}); err != nil {
				return err
			}
			return tx.PutTerm(ctx, flex.Term{Name: "credit_pence_per_kwh", Value: "40"})
		}))

		site, asset := l.onboard(mpanHalfHourly, client.PropositionFullAssetSchedule)
		l.must(l.client.UpdateTariff(ctx, asset, tariffUTC()))
		l.must(l.client.SetIntent(ctx, asset, intent(30, client.ChargingMinimise)))
		l.until(evening)
		l.charger.Plug(&sim.Car{Name: "leaf", Rate: 7400, Room: 30_000}, l.Now())
		l.must(l.client.PlugIn(ctx, asset, client.PlugInEventRequest{}))
		l.pushed()

		// Five minutes early, so that the stay ends in the last half-hour that is told.
		l.until(evening.Add(9*time.Hour - 5*time.Minute))
		l.must(l.client.PlugOut(ctx, asset))
		l.until(evening.Add(9 * time.Hour))
		l.charger.RunTo(l.Now(), func(flex.Period) flex.Price { return 0 })
		l.runUntilIdle()
		if h, err := l.client.Transactions(ctx, site, client.Page{}); err != nil || h.TotalCount != 0 {
			l.Fatalf("credited before a reading came: %+v %v", h, err)
		}

		l.report(asset, evening, evening.Add(9*time.Hour))
		h := l.credited(site)
		if len(h.Transactions) != 1 || h.TotalCount != 1 || h.IsBelowWithdrawalMinimum {
			l.Fatalf("transactions %+v", h)
		}
		if tr := h.Transactions[0]; tr.CreditPence != 1200 || *tr.CreditableKWh != 30 || *tr.CreditRatePencePerKWh != 40 || tr.PlugSessionID.IsZero() {
			l.Errorf("the session is credited as %+v", tr)
		}

		l.explained(site, asset)
		l.withdraw(site)
		h, err := l.client.Transactions(ctx, site, client.Page{})
		l.must(err)
		if tr := h.Transactions[0]; tr.CreditPence != -1200 || tr.TransactionType != "withdrawal" || tr.PaymentStatus != "posted" {
			l.Errorf("the withdrawal stands as %+v", tr)
		}
		if b, err := l.client.Balance(ctx, site); err != nil || b.CurrentBalancePence != 0 || b.TotalEarningsPence != 1200 {
			l.Errorf("balance %+v %v", b, err)
		}
	})
}

// explained checks what is told of the session's credit, of its readings and of events.
func (l *line) explained(site client.SiteID, asset client.AssetID) {
	l.Helper()
	var st wire.StatementResponse
	l.must(l.client.Do(l.Context(), "GET", "/rewards/"+site.String()+"/statement", nil, nil, &st))
	if len(st.Lines) != 1 || st.ClosingBalancePence != 1200 || st.Lines[0].BalancePence != 1200 || len(st.Lines[0].Periods) != 18 ||
		st.Lines[0].Provisional || st.Lines[0].Cause != "charged 30 kWh, which earns you 40 p a kWh, 14 April 23:00 to 15 April 07:55" {
		l.Errorf("statement %+v", st)
	}

	var gaps wire.GapsResponse
	days := url.Values{"site_id": {site.String()}, "from": {"2026-04-15"}, "to": {"2026-04-15"}}
	l.must(l.client.Do(l.Context(), "GET", "/data/gaps", days, nil, &gaps))
	if len(gaps.Gaps) != 0 {
		l.Errorf("gaps %+v", gaps)
	}

	days.Set("from", "2026-04-14")
	l.must(l.client.Do(l.Context(), "GET", "/data/gaps", days, nil, &gaps))
	// Registered at ten to eleven in London: the last two half-hours are expected, and read.
	if len(gaps.Gaps) != 0 {
		l.Errorf("gaps %+v of asset %s", gaps, asset)
	}
	events, err := l.client.FlexEvents(l.Context(), site)
	if err != nil || len(events.Events) != 0 {
		l.Errorf("without prices nothing was moved, but there are events: %+v %v", events, err)
	}
}

// report tells every half-hour from one instant to another as the charger metered it.
func (l *line) report(asset client.AssetID, from, to time.Time) {
	l.Helper()
	drawn := map[flex.Period]float64{}
	for _, m := range l.charger.Meter(to) {
		drawn[m.Period] = m.Energy / 1000
	}
	var readings []client.ReadingDataPoint
	for p := flex.PeriodAt(from); p.Start().Before(to); p = p.Add(1) {
		readings = append(readings, client.ReadingDataPoint{
			AssetID: asset, StartTimestamp: client.At(p.Start()), EndTimestamp: client.At(p.End()), Label: client.LabelChargerEnergy, Value: drawn[p],
		})
	}

	answer, err := l.client.PostReadings(l.Context(), readings)
	l.must(err)
	for i, r := range answer.Responses {
		if !r.Accepted {
			l.Errorf("reading %d: %s", i, r.Error)
		}
	}
}

// withdraw takes the whole balance out through the hosted page, as a browser without a
// script would, and sees the payment through.
func (l *line) withdraw(site client.SiteID) {
	l.Helper()
	ctx := l.Context()

	// The client's own link asks for the code that is sent to the user; this one does without.
	asks, err := l.client.BalanceURL(ctx, site, "https://app.example.com/")
	l.must(err)
	link, _, err := l.app.Reward.Link(ctx, l.org.ID, flex.SiteID(site), reward.LinkOptions{RedirectURI: "https://app.example.com/", MayPayOut: true})
	l.must(err)
	thief := url.Values{"name": {"A Thief"}, "sort_code": {"66-66-66"}, "account_number": {"66666666"}}
	a, err := http.PostForm(l.base+asks.BalanceWithdrawalURL[strings.Index(asks.BalanceWithdrawalURL, reward.Root):]+"/account", thief)
	l.must(err)
	a.Body.Close()
	if a.StatusCode != 422 {
		l.Fatalf("an account linked without the code: %s", a.Status)
	}

	page := l.base + link[strings.Index(link, reward.Root):]
	for _, form := range []struct {
		path   string
		values url.Values
		want   string
	}{
		{"/account", url.Values{"name": {"Ann Other"}, "sort_code": {"12-34-56"}, "account_number": {"12345678"}}, "Your bank account is linked."},
		{"/withdraw", url.Values{"amount": {"12.00"}, "form": {"a form"}}, "Withdrawal requested."},
	} {
		a, err := http.PostForm(page+form.path, form.values)

		l.must(err)
		body, err := io.ReadAll(a.Body)
		l.must(err)
		a.Body.Close()
		if a.StatusCode != 200 || !strings.Contains(string(body), form.want) {
			l.Fatalf("%s: %s\n%s", form.path, a.Status, body)
		}
	}

	service := l.app.Reward
	asked, err := service.Payouts(ctx, l.org.ID, ledger.PendingApproval)
	l.must(err)
	if _, err = service.Decide(ctx, l.org.ID, asked[0].ID, ledger.Approved, "operator", ""); flex.KindOf(err) != flex.Conflict {
		l.Fatalf("approved at once after the account was linked: %v", err)
	}

	l.until(l.Now().Add(24 * time.Hour))
	_, err = service.Decide(ctx, l.org.ID, asked[0].ID, ledger.Approved, "operator", "")
	l.must(err)
	file, err := service.Export(ctx, l.org.ID, "operator", reward.ExportOptions{})
	l.must(err)
	if len(file.Payments) != 1 || file.Payments[0].Amount != 1200 || file.Payments[0].Number.Reveal() != "12345678" {
		l.Fatalf("payment file %+v", file)
	}
	_, err = service.Import(ctx, l.org.ID, "operator", []reward.PaymentResult{{ID: file.Payments[0].ID, Status: ledger.Posted}})
	l.must(err)
}
