package product_test

import (
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A page of products has with each who was invited to it and what they said, and nobody with one to which nobody was.
func TestList_Answers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		begin := time.Date(2026, 1, 14, 12, 0, 0, 0, time.UTC)
		now := begin
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		s := &product.Service{DB: db, Control: &control.Service{DB: db}}

		var ids []flex.ProductID
		for _, reference := range []string{"DFS-1", "DFS-2", "DFS-3", "DFS-4"} {
			if len(ids) > 0 {
				seed.Asset(seed.Site(flex.FullScheduleMethod), flex.Charger, 7000)
			}

			done, err := s.Import(t.Context(), seed.Org, []flex.Product{{
				Reference: reference, Span: flex.Span{From: begin.Add(5 * time.Hour), To: begin.Add(6 * time.Hour)}, AnswerBy: begin.Add(time.Hour),
				Change: -5000, Service: "dfs", Price: 100_000,
			}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, done[0].ID)
			now = now.Add(time.Second) // so that it is older than the next one
		}

		seed.Exec(`UPDATE product_site SET takes_part = TRUE, answered_at = $2 WHERE product_id = $1`, ids[1].Bytes(), begin.UnixMicro())
		seed.Exec(`UPDATE product_site SET answered_at = $2 WHERE product_id = $1`, ids[2].Bytes(), begin.UnixMicro())
		want := []flex.ProductAnswers{{}, {Invited: 1, Answered: 1, TakesPart: 1}, {Invited: 2, Answered: 2}, {Invited: 3}}

		var search flex.ProductSearch
		search.Limit = 3
		for n := len(ids); n > 0; {
			page, err := s.List(t.Context(), seed.Org, search)
			if err != nil || page.Total != len(ids) || len(page.Products) != min(n, search.Limit) {
				t.Fatalf("%d products are left, and a page is %+v, %v", n, page, err)
			}

			for _, line := range page.Products {
				n--
				if line.ID != ids[n] || line.Answers != want[n] {
					t.Errorf("%s: %+v, want %+v", line.Reference, line.Answers, want[n])
				}
			}
			search.Before = page.Next
		}
	})
}
