package reward_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

const hookSecret = "a-secret-of-20-chars"

// payeeHook is an endpoint that answers as it is told, and keeps what it was asked.
type payeeHook struct {
	answer atomic.Value // string; empty: 500
	asked  atomic.Int64
	wrong  atomic.Value // what was wrong with a question
}

func (p *payeeHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked.Add(1)
	body, _ := io.ReadAll(r.Body)
	var got map[string]string
	if err := json.Unmarshal(body, &got); err != nil || r.Method != "POST" || r.Header.Get("Authorization") != "Bearer "+hookSecret ||
		len(got) != 3 || got["name"] != bank.Name.Reveal() || got["sort_code"] != bank.SortCode.Reveal() || got["account_number"] != bank.Number.Reveal() {
		p.wrong.Store(fmt.Sprintf("%s %v %s", r.Method, r.Header, body))
	}
	if p.answer.Load() == "" {
		w.WriteHeader(500)
		return
	}
	io.WriteString(w, p.answer.Load().(string))
}

// hooked gives the fixture a hook.
func (y *fixture) hooked(t *testing.T, answer string) *payeeHook {
	t.Helper()
	p := &payeeHook{}
	p.answer.Store(answer)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	y.service.Web, y.service.PlainHTTP = egress.New(egress.Options{Allow: egress.Private}), true
	if err := y.service.SetPayeeHook(t.Context(), y.org, server.URL, hookSecret); err != nil {
		t.Fatal(err)
	}
	return p
}

// nameOf tells what the approver reads of a withdrawal's name.
func (y *fixture) nameOf(t *testing.T, w store.Withdrawal) string {
	t.Helper()
	ps, err := y.service.Payouts(t.Context(), y.org, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ps {
		if p.ID == w.ID {
			return p.Name
		}
	}
	return "not listed"
}

// What a hook answers is shown to the approver and decides: a match is approved at once, what
// nobody could tell or is close only after the approver has seen it, no match never.
func TestNameCheck_Answers(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 60)
		w := y.ask(t, bank, 1000)
		if got := y.nameOf(t, w); got != "name not checked" {
			t.Errorf("without a hook: %q", got)
		}
		if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Errorf("without a hook: %v", err)
		}

		p := y.hooked(t, "")
		for _, tt := range []struct{ answer, text, first string }{
			{`{"result":"match","name":"x"}`, "the name matches, ", ""},
			{`{"result":"close_match","name":"Ann  B Driver"}`, "a close match: the account is in the name of Ann B Driver, ", "Ann B Driver"},
			{`{"result":"close_match"}`, "nobody could tell", "nobody could tell"},
			{`{"result":"unavailable"}`, "nobody could tell", "not a match"},
			{`{"result":"MATCH"}`, "nobody could tell", "not a match"},
			{`{}`, "nobody could tell", "not a match"},
			{`match`, "nobody could tell", "not a match"},
			{``, "nobody could tell", "not a match"},
			{`{"result":"match","x":"` + strings.Repeat("x", reward.NameCheckAnswerMax) + `"}`, "nobody could tell", "not a match"},
		} {
			p.answer.Store(tt.answer)
			before := p.asked.Load()
			w := y.ask(t, bank, 1000)
			_, err := y.decide(t, w, ledger.Approved, "ann")
			if (err == nil) != (tt.first == "") || err != nil && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), tt.first)) {
				t.Errorf("%.40s: %v, want %q", tt.answer, err, tt.first)
			}

			if got := y.nameOf(t, w); !strings.HasPrefix(got, tt.text) || !strings.Contains(got, "UTC") {
				t.Errorf("%.40s: the approver reads %q, want %q", tt.answer, got, tt.text)
			}
			if tt.first != "" {
				if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
					t.Errorf("%.40s, seen: %v", tt.answer, err)
				}
			}

			if _, err := y.decide(t, w, ledger.Cancelled, "ann"); err != nil { // its money is back, for the next
				t.Fatal(err)
			}
			if got := p.asked.Load() - before; got != 1 {
				t.Errorf("%.40s: asked %d times", tt.answer, got)
			}
		}

		if wrong := p.wrong.Load(); wrong != nil {
			t.Errorf("asked wrongly: %v", wrong)
		}
		if findings, err := y.db.Verify(t.Context()); err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
	})
}

// No match blocks until another operator than the one who approves has overridden it with a
// reason; asked again, the override is gone.
func TestNameCheck_NoMatch(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 60)
		y.hooked(t, `{"result":"no_match"}`)
		w := y.ask(t, bank, 1000)
		approve := func(by, want string) {
			t.Helper()
			_, err := y.decide(t, w, ledger.Approved, by)
			if (err == nil) != (want == "") || err != nil && (flex.KindOf(err) != flex.Conflict || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s approves: %v, want %q", by, err, want)
			}
		}

		override := func(by, reason string) error { return y.service.OverrideName(t.Context(), y.org, w.ID, by, reason) }
		if err := override("bob", "the account is her partner's"); flex.KindOf(err) != flex.Conflict {
			t.Errorf("an override before the check: %v", err)
		}
		approve("ann", "does not match")
		approve("ann", "does not match")
		if err := override("bob", "  ok  "); flex.KindOf(err) != flex.Invalid {
			t.Errorf("an override without a reason: %v", err)
		}

		if err := override("bob", "the account is her partner's"); err != nil {
			t.Fatal(err)
		}
		if got := y.nameOf(t, w); !strings.Contains(got, "bob lets another operator approve it: the account is her partner's") {
			t.Errorf("the approver reads %q", got)
		}
		if _, err := y.service.CheckName(t.Context(), y.org, w.ID); err != nil {
			t.Fatal(err)
		}

		approve("ann", "does not match")
		if err := override("bob", "the account is her partner's"); err != nil {
			t.Fatal(err)
		}
		approve("bob", "another operator has to approve")
		approve("ann", "")
		if y.status(t, w) != ledger.Approved {
			t.Error("not approved")
		}
	})
}

// No match stays if a later check finds out nothing: nobody gets past it by asking while the
// hook is away. Another answer counts.
func TestNameCheck_NoMatchStays(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 60)
		p := y.hooked(t, `{"result":"no_match"}`)
		w := y.ask(t, bank, 1000)

		for _, answer := range []string{`{"result":"no_match"}`, "", `{"result":"unavailable"}`} {
			p.answer.Store(answer)
			c, err := y.service.CheckName(t.Context(), y.org, w.ID)
			if err != nil || c.Verdict != reward.NameNoMatch {
				t.Errorf("%q: %+v, %v", answer, c, err)
			}
			if _, err := y.decide(t, w, ledger.Approved, "ann"); flex.KindOf(err) != flex.Conflict {
				t.Errorf("%q: approved: %v", answer, err)
			}
		}

		p.answer.Store(`{"result":"match"}`)
		if c, err := y.service.CheckName(t.Context(), y.org, w.ID); err != nil || c.Verdict != reward.NameMatch {
			t.Errorf("a match: %+v, %v", c, err)
		}
		if _, err := y.decide(t, w, ledger.Approved, "ann"); err != nil {
			t.Error(err)
		}
	})
}

// A hook that nobody can reach, or that is gone, never stands for a match; its address and
// secret are judged when they are set.
func TestNameCheck_Hook(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.earn(t, 60)
	for name, tt := range map[string]struct{ url, secret string }{
		"plain HTTP": {"http://payee.example.com", hookSecret}, "no URL": {"payee", hookSecret}, "a user in it": {"https://a:b@payee.example.com", hookSecret},
		"a short secret": {"https://payee.example.com", "short"}, "a secret with a line": {"https://payee.example.com", hookSecret + "\n"},
	} {
		if err := y.service.SetPayeeHook(t.Context(), y.org, tt.url, tt.secret); flex.KindOf(err) != flex.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}

	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	y.service.Web, y.service.PlainHTTP = egress.New(egress.Options{Allow: egress.Private}), true
	if err := y.service.SetPayeeHook(t.Context(), y.org, gone.URL, hookSecret); err != nil {
		t.Fatal(err)
	}

	w := y.ask(t, bank, 1000)
	c, err := y.service.CheckName(t.Context(), y.org, w.ID)
	if err != nil || c.Verdict != reward.NameUnavailable {
		t.Errorf("%+v, %v", c, err)
	}
	if err := y.service.SetPayeeHook(t.Context(), y.org, "", ""); err != nil {
		t.Fatal(err)
	}
	if c, err := y.service.CheckName(t.Context(), y.org, w.ID); err != nil || c != nil {
		t.Errorf("without a hook: %+v, %v", c, err)
	}
}
