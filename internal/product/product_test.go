package product_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A product is given another price and another end of answers while another process sends it: it is not sent as it was.
func TestSend_ChangedBeside(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		begin := time.Date(2026, 1, 14, 12, 0, 0, 0, time.UTC)
		var hours atomic.Int64
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return begin.Add(time.Duration(hours.Load()) * time.Hour) }})
		seed := storetest.NewSeed(t, db, url)
		s := &product.Service{DB: db, Control: &control.Service{DB: db}}
		done, err := s.Import(t.Context(), seed.Org, []flex.Product{{
			Reference: "DFS-1", Span: flex.Span{From: begin.Add(5 * time.Hour), To: begin.Add(6 * time.Hour)}, AnswerBy: begin.Add(time.Hour),
			Change: -5000, Service: "dfs", Price: 100_000,
		}})
		if err != nil {
			t.Fatal(err)
		}
		hours.Store(2)

		ended := make(chan error, 1)
		locks := storetest.At(t, db, url)
		err = db.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
			if err := tx.LockOrg(t.Context()); err != nil {
				return err
			}
			go func() {
				_, err := s.SendOf(context.Background(), seed.Org)
				ended <- err
			}()

			for db.Engine() == "postgres" && len(ended) == 0 {
				if locks.Count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0 {
					break
				}
				runtime.Gosched()
			}
			p, err := tx.Product(t.Context(), done[0].ID)
			if err != nil {
				return err
			}
			p.Price, p.AnswerBy, p.SendAt = 300_000, begin.Add(4*time.Hour), begin.Add(4*time.Hour)
			return tx.PutProduct(t.Context(), &p)
		})

		if err = errors.Join(err, <-ended); err != nil {
			t.Fatal(err)
		}
		err = db.Read(t.Context(), seed.Org, func(tx *store.Tx) error {
			p, err := tx.Product(t.Context(), done[0].ID)
			if err == nil && (p.SendAt.IsZero() || !p.Instruction.IsZero() || p.Problem != "") {
				t.Errorf("it was sent: %+v", p)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A product that could be accepted by nobody any more is refused, also in the place of one that was: what households said of that stays.
func TestImport_AnswersEnded(t *testing.T) {
	begin := time.Date(2026, 1, 14, 12, 0, 0, 0, time.UTC)
	now := begin
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return now }})
	seed := storetest.NewSeed(t, db, url)
	s := &product.Service{DB: db, Control: &control.Service{DB: db}}
	far := begin.Add(10 * 24 * time.Hour) // it is sent two days before
	p := flex.Product{
		Reference: "DFS-1", Span: flex.Span{From: far, To: far.Add(time.Hour)}, AnswerBy: begin.Add(time.Hour),
		Change: -5000, Service: "dfs", Price: 100_000,
	}

	imports := func() error {
		_, err := s.Import(t.Context(), seed.Org, []flex.Product{p})
		return err
	}
	if err := imports(); err != nil {
		t.Fatal(err)
	}

	now = begin.Add(2 * time.Hour)
	if err := imports(); err != nil {
		t.Errorf("the same again: %v", err)
	}
	p.Change = -4000
	if err := imports(); flex.KindOf(err) != flex.Malformed || !strings.Contains(err.Error(), "answers ended at 2026-01-14T13:00:00Z") {
		t.Errorf("other terms: %v", err)
	}
	p.AnswerBy = now
	if err := imports(); err != nil {
		t.Errorf("until now: %v", err)
	}
}
