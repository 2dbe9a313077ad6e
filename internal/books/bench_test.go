package books_test

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

var journalPostings = flag.Int("postings", 30_000, "postings that BenchmarkExport exports; 1,000,000 need 1 GB of disk")

// BenchmarkExport exports a journal: a year of one organisation's flex events at 1,000 sites,
// each with a posting of what is receivable, what is the user's and what is kept.
func BenchmarkExport(b *testing.B) {
	storetest.EachBench(b, benchExport)
}

func benchExport(b *testing.B, url string) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	db := storetest.Open(b, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
	seed := storetest.NewSeed(b, db, url)
	sites := make([]flex.SiteID, 1000)
	for i := range sites {
		sites[i] = seed.Site()
	}

	first := flex.Day{Year: 2025, Month: 11, Dom: 1}
	transactions := *journalPostings / 3
	id := func(i int) []byte {
		return flex.TransactionID{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i), 0, 0, 0x70, 0, 0x80}.Bytes()
	}
	days := make([]string, 365)
	for d := range days {
		days[d] = first.Add(d).String()
	}

	day := func(i int) string { return days[i*len(days)/transactions] }
	columns := strings.Fields("id org_id site_id key kind credit settled_on decided_by recorded_at booked_on counterparty reference reason for_month vehicle")
	seed.Rows("ledger", columns, transactions, func(i int) []any {
		return []any{id(i), seed.Org.Bytes(), sites[i%len(sites)].Bytes(), fmt.Sprintf("flex event:%08d", i), "flex event", int64(41), day(i), "bench",
			first.Start().UnixMicro() + int64(i), day(i), "market", "", "", "", ""}
	})
	amounts := map[string]int64{"market_receivable": 82, "rewards_payable": -41, "platform_revenue": -41}
	accounts := []string{"market_receivable", "platform_revenue", "rewards_payable"}
	seed.Rows("posting", strings.Fields("ledger_id account org_id site_id amount"), 3*transactions, func(i int) []any {
		account := accounts[i%3]
		return []any{id(i / 3), account, seed.Org.Bytes(), sites[i/3%len(sites)].Bytes(), amounts[account]}
	})

	service := &books.Service{DB: db}
	for _, format := range []books.Format{books.CSV, books.JSON} {
		b.Run(string(format), func(b *testing.B) {
			for b.Loop() {
				sum, err := service.Export(b.Context(), seed.Org, books.Export{From: first, To: first.Add(366), Format: format}, io.Discard)
				if err != nil || sum.Postings != 3*transactions || sum.Debits != sum.Credit || sum.Debits != flex.Pence(82*transactions) {
					b.Fatal(sum, err)
				}
			}
			b.ReportMetric(float64(b.N*3*transactions)/b.Elapsed().Seconds(), "postings/s")
		})
	}
}
