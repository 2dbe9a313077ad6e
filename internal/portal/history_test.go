package portal_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// meter has the charger read for each half-hour of the night: full power while it charges.
func (e *evening) meter(t *testing.T, night, charges flex.Span) {
	t.Helper()
	var rs []flex.Reading
	for p := flex.PeriodAt(night.From); p.Start().Before(night.To); p = p.Add(1) {
		r := flex.Reading{AssetID: e.asset, Label: flex.ChargerEnergy, Span: p.Span()}
		if charges.Contains(p.Start()) {
			r.Value = 3_700_000
		}

		rs = append(rs, r)
	}

	err := e.db.Write(t.Context(), e.org, func(tx *store.Tx) error { return tx.PutReadings(t.Context(), rs) })
	if err != nil {
		t.Fatal(err)
	}
}

// unplug has the car leave.
func (e *evening) unplug(t *testing.T) {
	t.Helper()
	if err := e.control.Event(t.Context(), e.org, e.asset, control.Event{Kind: control.PlugOut}); err != nil {
		t.Fatal(err)
	}
}

// A night is shown with what it cost beside charging at once, and what it earned, as the statement says.
func TestHousehold_History(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		_, err := e.service.SetTerms(t.Context(), e.org, map[string]string{"credit_pence_per_kwh": "2", "user_share": "0"}, flex.Day{}, "test")
		if err != nil {
			t.Fatal(err)
		}

		e.Consent(e.now.Add(-time.Hour))
		e.plugIn(t)
		begin := e.now
		e.now = begin.Add(13 * time.Hour)
		night := flex.Span{From: begin, To: e.now}
		e.meter(t, night, flex.Span{From: begin.Add(7 * time.Hour), To: begin.Add(9 * time.Hour)})
		e.unplug(t)

		e.now = e.now.Add(time.Hour)
		if _, err := e.service.SettleSessions(t.Context()); err != nil {
			t.Fatal(err)
		}

		e.page = e.link(t, reward.LinkOptions{})
		status, page := e.get(t, e.page)
		want(t, status, page, 200, "£0.30", `/history">`)
		status, page = e.get(t, e.page+"/history")
		want(t, status, page, 200, "15 January, 18:00 to 16 January, 07:00", "14.8 kWh; earned £0.30.",
			"At market prices that cost £0.74, which is £2.22 less than charging at once.", `statement?month=2026-01">January 2026</a></td><td class="number">14.8 kWh</td><td class="number">£0.30</td>`)
		refuse(t, page, "Earlier sessions", "Later sessions")

		for _, query := range []string{"?page=0", "?page=x", "?page=100001"} {
			status, page = e.get(t, e.page+"/history"+query)
			want(t, status, page, 400, `role="alert"`)
		}

		status, page = e.get(t, e.link(t, reward.LinkOptions{HideTransactions: true})+"/history")
		want(t, status, page, 404)
	})
}

// A night at prices below zero brought money, and no amount is shown with a sign before its reader knows what it means.
func TestHousehold_HistoryBrought(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		e.Consent(e.now.Add(-time.Hour))
		e.now = e.now.Add(time.Minute)
		e.publishNight(t, -6)
		e.plugIn(t)
		begin := flex.PeriodAt(e.now).Start()
		e.now = begin.Add(13 * time.Hour)
		e.meter(t, flex.Span{From: begin, To: e.now}, flex.Span{From: begin.Add(7 * time.Hour), To: begin.Add(9 * time.Hour)})
		e.unplug(t)

		e.now = e.now.Add(time.Hour)
		if _, err := e.service.SettleSessions(t.Context()); err != nil {
			t.Fatal(err)
		}

		e.page = e.link(t, reward.LinkOptions{})
		for language, sentence := range map[string]string{
			"en": "At market prices that brought £0.09. Charged at once it would have cost £2.96.",
			"de": "Zu Marktpreisen brachte das £0.09 ein. Sofort geladen hätte es £2.96 gekostet.",
		} {
			status, page := e.get(t, e.page+"/history?lang="+language)
			want(t, status, page, 200, sentence)
			refuse(t, page, "-£", "−£")
		}
	})
}

// Each session is on one page, the newest on the first.
func TestHousehold_HistoryPages(t *testing.T) {
	eachEvening(t, func(t *testing.T, e *evening) {
		const sessions = reward.ChargesPage + 3
		for range sessions {
			e.plugIn(t)
			e.now = e.now.Add(2 * time.Hour)
			e.unplug(t)
			e.now = e.now.Add(time.Hour)
		}

		e.page = e.link(t, reward.LinkOptions{})
		for number, count := range map[int]int{1: reward.ChargesPage, 2: 3, 3: 0} {
			status, page := e.get(t, e.page+"/history?page="+strconv.Itoa(number))
			want(t, status, page, 200)

			if got := strings.Count(page, "<li>"); got != count {
				t.Errorf("page %d has %d sessions, want %d", number, got, count)
			}
			if got := strings.Contains(page, "Earlier sessions"); got != (number == 1) {
				t.Errorf("page %d leads on: %v", number, got)
			}
		}
	})
}
