package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
)

// withdraw has the site's user ask for some of what they earned.
func (s *scene) withdraw(site int, amount flex.Pence) {
	s.Helper()
	ctx := s.Context()
	err := s.db.Write(ctx, s.Org, func(tx *store.Tx) error {
		payout := flex.PayoutSettings{WithoutCode: true, CoolingHours: flex.Some(0)}
		if err := tx.SetSettings(ctx, flex.OrgSettings{Payout: payout}); err != nil {
			return err
		}
		return tx.PutTerm(ctx, flex.Term{Name: "min_withdrawal_pence", Value: "10"})
	})
	if err != nil {
		s.Fatal(err)
	}

	link, _, err := s.reward.Link(ctx, s.Org, s.sites[site], reward.LinkOptions{RedirectURI: "https://app.example/rewards", MayPayOut: true})
	if err != nil {
		s.Fatal(err)
	}
	visit, err := s.reward.Open(ctx, link[strings.LastIndex(link, "/")+1:], "")
	if err != nil {
		s.Fatal(err)
	}

	if err := s.reward.LinkAccount(ctx, visit, reward.BankAccount{Name: "A Driver", SortCode: "200000", Number: "55779911"}); err != nil {
		s.Fatal(err)
	}
	if _, err := s.reward.Withdraw(ctx, visit, amount, "form"); err != nil {
		s.Fatal(err)
	}
}

// night advances to the next morning: the car has charged and was metered, and what it shifted
// is settled.
func (s *scene) night() {
	s.Helper()
	s.nightAfter(13)
}

// nightAfter is night after so many days of readings.
func (s *scene) nightAfter(days int) {
	s.Helper()
	s.serve()
	s.meterPoint(plain)
	for day := 14 - days; day <= 13; day++ { // until now the car charged from half past eleven on
		s.meter(plain, fmt.Sprintf("2026-01-%02dT23:30:00Z", day), 3.6, 3.7, 3.7, 3.5, 3.6, 2.1, 0, 0, 0, 0, 0, 0)
	}

	s.earn(plain)
	for range 3 {
		if _, err := s.reward.SettleEvents(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.wait(time.Hour)
	}
}

func TestSettlement(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		d.wants(d.page("/console/settlement"), "No withdrawals match these filters.", "No flexibility was found yet.", "Nothing was settled yet.", "Nothing is posted yet.", "No market money is expected yet.", "No month is closed.")
		s.night()
		s.withdraw(plain, 40)
		d.login() // the one from the evening is over

		page := d.page("/console/settlement")
		d.wants(page, "<dt>Awaiting approval</dt><dd>1</dd>", "£0.40 in all", "4 Elm Row", "rewards payable", "Market money", ">CP-2041</a>", "round")
		base := "/console/settlement/" + d.Org.String()
		_, id, _ := strings.Cut(page, base+"/withdrawals/")
		id = id[:36]
		if a := d.do("POST", base+"/withdrawals/"+id+"/posted", url.Values{}); a.status != 404 {
			t.Errorf("the bank's move, by an operator: %d", a.status)
		}

		d.wants(page, "name not checked")
		for to, word := range map[string]string{"approved": "", "rejected": "approve"} {
			a := d.do("POST", base+"/withdrawals/"+id+"/"+to, url.Values{"typed": {word}})
			if a.status != 400 {
				t.Errorf("%s with %q typed: %d", to, word, a.status)
			}
		}

		d.wants(page, "Type “approve”", "Type “reject”")
		approve := url.Values{"typed": {"approve"}, "status": {""}}
		d.wants(d.post(base+"/withdrawals/"+id+"/approved", approve), "The decision is taken.", "<dt>Approved, not yet exported</dt><dd>1</dd>", `<h2>Withdrawals</h2>`, "Type “cancel”")
		if a := d.do("POST", base+"/withdrawals/"+id+"/rejected", url.Values{"typed": {"reject"}}); a.status != 409 {
			t.Errorf("rejected after it was approved: %d", a.status)
		}
		if a := d.do("POST", base+"/payments", url.Values{"format": {"csv"}}); a.status != 400 {
			t.Errorf("a payment file that nobody typed for: %d", a.status)
		}

		if a := d.do("POST", base+"/payments", url.Values{"format": {"bacs18"}, "typed": {"export"}}); a.status != 409 || !strings.Contains(a.body, "payer_sun and payer_sort_code and payer_account") {
			t.Errorf("payment file without a payer: %d %s", a.status, a.body)
		}
		a := d.do("POST", base+"/payments", url.Values{"format": {"csv"}, "typed": {"export"}})
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") || !strings.Contains(a.body, id+",1,A Driver,200000,55779911,0.40,FLEXD") {
			t.Errorf("payment file: %d %s", a.status, a.body)
		}

		d.wants(d.page("/console/settlement?status=processing"), "4 Elm Row", `<span class="tag ">processing</span>`)
		d.wants(d.page("/console/audit"), "withdrawal approved", "export payments", "cannot become rejected", "1 payment, £0.40 in all, csv for 20", "SHA-256 ")
		page = d.page("/console/settlement")
		d.wants(page, "Payment files", "FLEXD-2026", "Write again")
		_, message, _ := strings.Cut(page, `name="message" value="`)
		message, _, _ = strings.Cut(message, `"`)

		lost := url.Values{"format": {"csv"}, "again": {"on"}, "message": {message}, "typed": {"export"}}
		if b := d.do("POST", base+"/payments", lost); b.status != 200 || b.body != a.body {
			t.Errorf("the lost file: %d %s", b.status, b.body)
		}

		lost.Set("message", "FLEXD-none")
		if b := d.do("POST", base+"/payments", lost); b.status != 409 || !strings.Contains(b.body, "waits for its result") {
			t.Errorf("a file that there is not: %d %s", b.status, b.body)
		}

		event := d.page(d.link(page, "/console/flex-events/"))
		d.wants(event, "Flex event, ", "Baseline against metered", "CP-2041", "Where its prices are from", "settlement price", "Imported")
		var lines []map[string]any
		if err := json.Unmarshal([]byte(d.page(d.link(page, "/console/flex-events/")+"/periods.json")), &lines); err != nil || len(lines) == 0 || lines[0]["metered_kwh"] == nil {
			t.Errorf("%v: %v", lines, err)
		}

		d.wants(d.post(base+"/again", url.Values{"from": {"2026-01-01"}, "to": {"2026-01-31"}}), "nothing was posted", "repeat, not posted")
		var runs []store.Run
		err := d.db.Read(t.Context(), d.Org, func(tx *store.Tx) (err error) {
			runs, err = tx.Runs(t.Context(), 10)
			return err
		})
		if err != nil || len(runs) < 2 {
			t.Fatalf("%d runs: %v", len(runs), err)
		}

		compare := "/console/settlement/compare?org=" + d.Org.String() + "&run_before=" + runs[1].ID.String() + "&run_after="
		d.wants(d.page(compare+runs[1].ID.String()), "The two runs say the same.")
		if a := d.get(compare + runs[0].ID.String()); a.status != 200 {
			t.Errorf("compare: %d", a.status)
		}
		if a := d.get(compare); a.status != 404 {
			t.Errorf("compare with no run: %d", a.status)
		}
		if n := strings.Count(d.page("/console/settlement.csv"), "\n"); n < 2 {
			t.Errorf("%d lines of flex events", n)
		}
	})
}

// An event without a baseline has no figures that look like findings.
func TestFlexEvent_NoBaseline(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.nightAfter(0)
		d.login()

		list := d.page("/console/settlement")
		d.wants(list, "no baseline yet")
		if strings.Contains(list, "0.0 kWh") || strings.Contains(list, ">0 kWh") {
			t.Error("the list has a flex that was not measured")
		}
		if rows := d.file("/console/settlement.*"); len(rows) == 0 || rows[0]["flex_wh"] != nil || rows[0]["estimated_gbp"] != nil {
			t.Error(rows)
		}

		path := d.link(list, "/console/flex-events/")
		page := d.page(path)
		d.wants(page, "none yet", "0 days to compare with, too few", "nothing is paid without a baseline")
		for _, bad := range []string{"than usual", "kept"} {
			if strings.Contains(page, bad) {
				t.Errorf("%q is on the page", bad)
			}
		}

		var lines []map[string]any
		err := json.Unmarshal([]byte(d.page(path+"/periods.json")), &lines)
		if err != nil || len(lines) == 0 || lines[0]["baseline_kwh"] != nil || lines[0]["flex_kwh"] != nil {
			t.Errorf("%v: %v", err, lines)
		}
	})
}

// Withdrawals are approved as a selection: previewed with their sum, confirmed, and recorded
// as one act that lists each.
func TestSettlement_Selection(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		s.night()
		s.withdraw(plain, 40)
		d.login()

		page := d.page("/console/settlement")
		d.wants(page, "All awaiting approval, the oldest 500 at most", `form="selection"`)
		base := "/console/settlement/" + d.Org.String()
		_, id, _ := strings.Cut(page, base+"/withdrawals/")
		id = id[:36]

		preview := d.do("POST", base+"/selection/preview", url.Values{"all": {"on"}})
		d.wants(preview.body, "To approve 1 withdrawal, £0.40 in all", `name="id" value="`+id+`"`, `name="sum_pence" value="40"`)
		if a := d.do("POST", base+"/selection/preview", nil); a.status != 422 && a.status != 400 {
			t.Errorf("nothing is selected: %d", a.status)
		}

		for _, bad := range []url.Values{{"id": {id}, "sum_pence": {"40"}}, {"id": {id}, "sum_pence": {"39"}, "typed": {"approve"}}, {"id": {id}, "typed": {"approve"}}} {
			if a := d.do("POST", base+"/selection", bad); a.status/100 != 4 {
				t.Errorf("%v: %d", bad, a.status)
			}
		}

		d.wants(d.page("/console/settlement"), "<dt>Awaiting approval</dt><dd>1</dd>")
		a := d.do("POST", base+"/selection", url.Values{"id": {id, id}, "sum_pence": {"40"}, "typed": {"approve"}})
		if a.status != 200 {
			t.Errorf("the selection: %d", a.status)
		}

		d.wants(a.body, "Approved as a selection", `<span class="tag good">approved</span>`)
		d.wants(d.page("/console/audit"), "approve withdrawals", "1 of 1, £0.40 in all; "+id+" £0.40: approved")
		d.wants(d.do("POST", base+"/selection/preview", url.Values{"id": {id}}).body, "None of them can be approved now.")
	})
}

func TestBrowser_Settlement(t *testing.T) {
	s := testScene(t)
	d := s.service
	s.night()
	s.withdraw(plain, 40)
	if _, err := d.reward.Resettle(t.Context(), d.Org, reward.Resettlement{From: flex.Day{Year: 2026, Month: 1, Dom: 1}, To: flex.Day{Year: 2026, Month: 1, Dom: 31}}); err != nil {
		t.Fatal(err)
	}
	d.login()
	b := browse(d)
	b.screen("settlement", "/console/settlement")

	// at a phone's width, which the page has now, an event's time takes three lines at most
	lines := evaluate[[]int](b, `Array.from(document.querySelectorAll("th a[href^='/console/flex-events/']"), a => Math.round(a.getBoundingClientRect().height / parseFloat(getComputedStyle(a).lineHeight)))`)
	if len(lines) == 0 || slices.Max(lines) > 3 {
		t.Errorf("the times of flex events stand in %v lines", lines)
	}
	b.screen("flex-event", d.link(d.page("/console/settlement"), "/console/flex-events/"))
}

// TestWithdrawals_Download: there are more withdrawals than a page lists. The files have each
// once, the oldest first, across several parts.
func TestWithdrawals_Download(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		site := d.Site()
		const n = 507
		gift := ledger.Booked{}
		gift.Key, gift.Kind, gift.SiteID, gift.Time = "a bonus", ledger.SignupBonus, site, flex.Span{From: at("2026-01-13T11:00:00Z")}
		gift.Cause, gift.Postings = ledger.Cause{By: "test"}, ledger.Given(1000*n)
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			if _, err := tx.Post(t.Context(), &gift); err != nil {
				return err
			}

			for i := range n {
				if _, err := tx.Withdraw(t.Context(), site, flex.Pence(100+i), "a user"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		const path = "/console/settlement/withdrawals"
		lines := strings.Split(strings.TrimSpace(d.page(path+".csv")), "\n")
		if len(lines) != n+1 || !strings.Contains(lines[1], ",1,pending_approval,") || !strings.Contains(lines[n], ",6.06,pending_approval,") {
			t.Errorf("%d lines, %q to %q", len(lines), lines[1], lines[len(lines)-1])
		}

		var rows []map[string]any
		for _, c := range []struct {
			query string
			rows  int
			last  any
		}{
			{"?status=pending_approval", n, 6.06},
			{"?limit=200", 200, 2.99},
			{"?limit=200&before=" + strings.Split(lines[200], ",")[0], 200, 4.99},
		} {
			err := json.Unmarshal([]byte(d.page(path+".json"+c.query)), &rows)
			if err != nil || len(rows) != c.rows || rows[c.rows-1]["amount_gbp"] != c.last {
				t.Errorf("%s: %v, %d rows", c.query, err, len(rows))
			}
		}

		if text := d.page(path + ".json?status=posted"); text != "[]\n" {
			t.Errorf("none is posted: %q", text)
		}

		d.wants(d.page("/console/settlement"), path+".csv?org="+d.Org.String()+"&amp;status=pending_approval", "The oldest 500 are listed; the files have all.")
		for _, bad := range []string{"?status=broken", "?state=posted", "?org=x"} {
			if a := d.get(path + ".csv" + bad); a.status < 400 || a.status >= 500 {
				t.Errorf("%s: %d", bad, a.status)
			}
		}
	})
}
