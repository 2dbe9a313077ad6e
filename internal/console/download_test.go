package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// file is the rows of a download by column, of its JSON; its CSV has as many.
func (d *service) file(path string) (rows []map[string]any) {
	d.Helper()
	format := func(of string) string { return d.page(strings.Replace(path, ".*", of, 1)) }
	if err := json.Unmarshal([]byte(format(".json")), &rows); err != nil {
		d.Fatal(path, err)
	}
	if n := strings.Count(format(".csv"), "\n") - 1; n != len(rows) {
		d.Errorf("%s: %d rows as CSV, %d as JSON", path, n, len(rows))
	}
	return rows
}

// eachOnce reports whether each row has another value of a column.
func eachOnce(rows []map[string]any, column string) bool {
	found := map[any]bool{}
	for _, row := range rows {
		found[row[column]] = true
	}
	return len(found) == len(rows)
}

// TestDownload_Money downloads the other lists of the settlement page. There are more runs and
// payment files than are read at once.
func TestDownload_Money(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		site := d.Site()
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			gift := ledger.Booked{}
			gift.Key, gift.Kind, gift.SiteID, gift.Time = "a bonus", ledger.SignupBonus, site, flex.Span{From: at("2026-01-13T11:00:00Z")}
			gift.Cause, gift.Postings = ledger.Cause{By: "test"}, ledger.Given(1234)
			if _, err := tx.Post(t.Context(), &gift); err != nil {
				return err
			}

			paid := ledger.Booked{ForMonth: ledger.Month{Year: 2025, Month: time.November}}
			paid.Key, paid.Kind, paid.Settled, paid.Counterparty, paid.Reference = "a receipt", ledger.InvoicePaid, flex.DayAt(tx.Now()), "Elexon", "R1"
			paid.Cause, paid.Postings = ledger.Cause{By: "test"}, ledger.Received(5678)
			_, err := tx.Post(t.Context(), &paid)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		const n = 5003
		d.Rows("settlement_run", []string{"id", "org_id", "kind", "known_at", "started_at", "events", "hash"}, n, func(i int) []any {
			return []any{fmt.Appendf(nil, "%016d", i), d.Org.Bytes(), "round", 0, 1, i, make([]byte, 32)}
		})
		d.Rows("payment_file", []string{"org_id", "number", "message", "serial", "format", "day", "made_at", "made_by", "payments", "total", "sha256"}, n, func(i int) []any {
			return []any{d.Org.Bytes(), i + 1, fmt.Sprint("M", i), i, "bacs", "2026-01-12", 0, "ada", 2, i, []byte{1, 2}}
		})

		const path = "/console/settlement/"
		for list, column := range map[string]string{"runs": "run_id", "payment-files": "number"} {
			rows := d.file(path + list + ".*")
			if len(rows) != n || !eachOnce(rows, column) {
				t.Errorf("%s: %d rows", list, len(rows))
			}
		}
		if files := d.file(path + "payment-files.*?limit=2&before=4"); len(files) != 2 || files[0]["number"] != 3.0 || files[0]["total_gbp"] != 0.02 || files[0]["sha256"] != "0102" {
			t.Error(files)
		}

		books := map[any][2]any{}
		for _, row := range d.file(path + "books.*?org=" + d.Org.String()) {
			books[row["account"]] = [2]any{row["debit_gbp"], row["credit_gbp"]}
		}
		if books["rewards_payable"] != [2]any{0.0, 12.34} || books["bank"] != [2]any{56.78, 0.0} || len(books) != 4 {
			t.Error(books)
		}
		market := d.file(path + "market-money.*")
		if len(market) != 1 || market[0]["month"] != "2025-11" || market[0]["counterparty"] != "Elexon" || market[0]["received_gbp"] != 56.78 || market[0]["difference_gbp"] != -56.78 {
			t.Error(market)
		}

		page := d.page("/console/settlement")
		for _, list := range []string{"runs", "payment-files", "books", "market-money"} {
			d.wants(page, path+list+".csv?org="+d.Org.String())
			if a := d.get(path + list + ".csv?colour=red"); a.status != 422 {
				t.Errorf("%s: %d", list, a.status)
			}
		}
	})
}

// TestDownload_Search downloads everything that a search finds; the page shows only the first
// results. The audit log has the sites of each part.
func TestDownload_Search(t *testing.T) {
	each(t, "2026-01-13T12:00:00Z", func(d *service) {
		d.login()
		home, other := d.Site(), d.Site()
		d.many(home, 0, 1203)
		d.many(other, 5000, 5002)

		const n = 501
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			for range n {
				if err := tx.AddSite(t.Context(), &flex.Site{Postcode: "ZE1 0AA"}, ""); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		assets := d.file("/console/search/assets.*?q=0")
		want := 2 // 5000, 5001
		for i := range 1203 {
			if strings.Contains(fmt.Sprint(i), "0") {
				want++
			}
		}

		if len(assets) != want || !eachOnce(assets, "asset_id") {
			t.Errorf("%d assets of %d", len(assets), want)
		}
		if sites := d.file("/console/search/sites.*?q=ze1+0aa"); len(sites) != n || !eachOnce(sites, "site_id") {
			t.Errorf("%d sites", len(sites))
		}

		// one of each file of assets, two of each of sites
		if found := d.Strings(`SELECT detail FROM audit WHERE act = 'see what a search finds'`); len(found) != 6 {
			t.Errorf("%d entries of the audit log", len(found))
		}
		d.wants(d.page("/console/search?q=ze1+0aa"), "/console/search/sites.csv?q=ze1&#43;0aa", "the files have all")
		for _, path := range []string{"assets.csv", "sites.json?q=", "assets.csv?q=0&limit=5", "sites.csv?q=x&state=broken"} {
			if a := d.get("/console/search/" + path); a.status != 422 {
				t.Errorf("%s: %d", path, a.status)
			}
		}

		if rows := d.file("/console/assets.*?site=" + other.String()); len(rows) != 2 || rows[0]["site_id"] != other.String() {
			t.Error(rows)
		}
		d.wants(d.page("/console/sites/"+other.String()), "/console/assets.csv?site="+other.String())
		d.wants(d.page("/console/assets?site="+other.String()), ">2 assets<")
	})
}

// TestDownload_Jobs downloads how the background jobs ran, and the saved views with their
// links.
func TestDownload_Jobs(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.login()
	ctx, stop := context.WithCancel(t.Context())
	ran := &worker.Worker{Name: "control", Every: time.Minute, Job: func(context.Context) (worker.Report, error) {
		stop()
		return worker.Report{Count: 3}, errors.New("the disk is full")
	}}
	ran.Run(ctx)
	d.server.Jobs = func() []*worker.Worker { return []*worker.Worker{ran, {Name: "settle", Every: time.Hour}} }

	jobs := d.file("/console/engine/jobs.*")
	if len(jobs) != 2 || jobs[0]["job"] != "control" || jobs[0]["last_error"] != "the disk is full" || jobs[0]["runs"] != 1.0 || jobs[1]["every_s"] != 3600.0 || jobs[1]["last_run_at"] != nil {
		t.Error(jobs)
	}
	d.wants(d.page("/console/engine"), "/console/engine/jobs.csv")

	d.server.PublicURL = "http://flexd.example"
	form := url.Values{"view_name": {"Slow"}, "view": {"/console/deliveries?sort=-took"}}
	if a := d.do("POST", "/console/views", form); a.status != 303 {
		t.Fatal(a.status, a.body)
	}
	views := d.file("/console/views.*")
	if len(views) != 1 || views[0]["name"] != "Slow" || views[0]["link"] != "http://flexd.example/console/deliveries?sort=-took" {
		t.Error(views)
	}

	d.server.PublicURL = "" // not stated: as the operator reached it
	link, _ := d.file("/console/views.*")[0]["link"].(string)
	if u, err := url.Parse(link); err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "/console/deliveries" {
		t.Error(link, err)
	}
	d.wants(d.page("/console/deliveries"), "/console/views.csv")
}
