package reward_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store/storetest"
)

// A selection is judged by the rules of one approval: what a preview says comes true, and a
// preview changes nothing.
func TestApproveSelection(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		rules := atOnce()
		rules.TwoAbove, rules.DailyCap = flex.Some[flex.Pence](2000), flex.Some[flex.Pence](4500)
		y.pays(t, rules)
		y.earn(t, 70)

		whole, shared, above := y.ask(t, bank, 2000), y.ask(t, bank, 1000), y.ask(
			t,
			bank,
			3000,
		)
		gone := flex.TransactionID{1}
		ids := []flex.TransactionID{whole.ID, shared.ID, above.ID, gone, whole.ID}

		p, err := y.service.PreviewSelection(t.Context(), y.org, ids, "ann")
		if err != nil || p.Possible != 2 || p.Sum != 3000 || len(p.Lines) != 4 {
			t.Fatalf("previewed %+v %v", p, err)
		}
		if p.Lines[0].Status != ledger.Approved || p.Lines[1].Status != ledger.PendingApproval {
			t.Errorf("the first is approved, and the second waits for another operator: %+v", p.Lines)
		}

		if !strings.Contains(p.Lines[2].Fault, "£45.00 a day") || p.Lines[3].Fault == "" {
			t.Errorf("above the day's cap, and gone: %+v", p.Lines)
		}
		if y.status(t, whole) != ledger.PendingApproval {
			t.Error("the preview approved")
		}

		_, err = y.service.ApproveSelection(t.Context(), y.org, ids, 2999, "ann")
		if flex.KindOf(err) != flex.Conflict || y.status(t, whole) != ledger.PendingApproval {
			t.Errorf("another sum than was shown: %v", err)
		}

		done, err := y.service.ApproveSelection(t.Context(), y.org, ids, p.Sum, "ann")
		if err != nil || done.String() == "" || done.Sum != p.Sum || len(done.Lines) != len(p.Lines) {
			t.Fatalf("approved %+v %v", done, err)
		}
		if y.status(t, whole) != ledger.Approved || y.status(t, shared) != ledger.PendingApproval {
			t.Error("the approval did something else than the preview said")
		}

		again, err := y.service.PreviewSelection(t.Context(), y.org, ids, "ann")
		if err != nil || again.Possible != 0 {
			t.Errorf("the same operator again: %+v %v", again, err)
		}
	})
}

func TestApproveSelection_Size(t *testing.T) {
	service := &reward.Service{}
	many := make([]flex.TransactionID, reward.SelectionMax+1)
	for i := range many {
		many[i] = flex.TransactionID{byte(i >> 8), byte(i), 1}
	}

	for _, ids := range [][]flex.TransactionID{nil, many} {
		if _, err := service.PreviewSelection(t.Context(), flex.OrgID{1}, ids, "ann"); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%d at once: %v", len(ids), err)
		}
	}
}

// An organisation that moves to another database refuses no withdrawal: the selection ends,
// for somebody to try again.
func TestApproveSelection_Moves(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 70)
		ids := []flex.TransactionID{y.ask(t, bank, 2000).ID, y.ask(t, bank, 1000).ID}
		p, err := y.service.PreviewSelection(t.Context(), y.org, ids, "ann")
		if err != nil || p.Possible != 2 {
			t.Fatalf("previewed %+v %v", p, err)
		}

		moves := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // it moves while a name is asked for
			if _, err := y.db.Leave(r.Context(), y.org, "new"); err != nil {
				t.Error(err)
			}
			io.WriteString(w, `{"result":"match"}`)
		})
		server := httptest.NewServer(moves)
		t.Cleanup(server.Close)
		y.service.Web, y.service.PlainHTTP = egress.New(egress.Options{Allow: egress.Private}), true
		if err := y.service.SetPayeeHook(t.Context(), y.org, server.URL, hookSecret); err != nil {
			t.Fatal(err)
		}

		done, err := y.service.ApproveSelection(t.Context(), y.org, ids, p.Sum, "ann")
		if flex.KindOf(err) != flex.Unavailable || len(done.Lines) > 0 {
			t.Errorf("while it moves: %+v, %v", done, err)
		}
	})
}
