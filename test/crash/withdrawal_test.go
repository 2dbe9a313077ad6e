package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/internal/keyring"
	"flexd/internal/ledger"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// A household withdraws money from several pages at once, each with forms of its own, which are sent again
// until they are answered, while processes are killed. Some order of the calls must explain every
// answer and every balance that was read: no form may pay twice, and none may be answered and not be
// paid.

// balance is a balance in pence: a withdrawal is taken if the balance has it.
var balance = porcupine.Model{
	Init: func() any { return int64(balanceCredit) },
	Step: func(state, input, output any) (bool, any) {
		balance, in, out := state.(int64), input.(call), output.(answer)
		if in.verb == read {
			return out.value == balance, balance
		}

		taken := int64(0)
		after := balance
		if in.value <= balance {
			taken, after = 1, balance-in.value
		}

		return out.value == taken, after
	},
	DescribeOperation: describe,
}

const (
	balanceCredit = 60_000 // pence
	balanceLeast  = 1000   // pence, of each withdrawal
	balanceCalls  = 300
)

// credit gives the household money to withdraw, while no process runs.
func (s *service) credit(site client.SiteID) {
	s.Helper()
	text, err := os.ReadFile(s.keys)
	if err != nil {
		s.Fatal(err)
	}

	keys, err := keyring.ReadRing(text)
	if err != nil {
		s.Fatal(err)
	}
	db, err := store.Open(s.Context(), s.database, store.Options{Keys: keys, Environment: flex.Sandbox})
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()

	var org flex.OrgID
	err = db.ReadAll(s.Context(), func(all *store.All) (err error) {
		org, err = all.SiteOrg(s.Context(), flex.SiteID(site))
		return err
	})
	if err != nil {
		s.Fatal(err)
	}

	err = db.Write(s.Context(), org, func(tx *store.Tx) error {
		_, err := tx.Post(s.Context(), &ledger.Booked{Transaction: ledger.Transaction{
			Key:    "gift",
			Kind:   ledger.GoodwillCredit,
			SiteID: flex.SiteID(site),
			Time:   flex.Span{From: tx.Now()},
			Cause:  ledger.Cause{By: "ann"},
			Postings: []ledger.Posting{
				{Account: ledger.PromotionsExpense, Amount: balanceCredit},
				{Account: ledger.RewardsPayable, Amount: -balanceCredit},
			},
		}})

		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// visitor withdraws on the page of the balance.
type visitor struct {
	*service
	path string // of the page
	site client.SiteID
	http *http.Client
}

// visitor opens the page of a site's balance as the credential that was made for it, and names a bank account.
func (s *service) visitor(site client.SiteID, made []byte) *visitor {
	s.Helper()
	var payer map[string]string
	if err := json.Unmarshal(made, &payer); err != nil {
		s.Fatal(err)
	}

	api := client.New("http://"+s.listen, "payer", payer["password"])
	link, err := api.BalanceURL(s.Context(), site, "https://app.example/")
	if err != nil {
		s.Fatal(err)
	}
	u, err := url.Parse(link.BalanceWithdrawalURL)
	if err != nil {
		s.Fatal(err)
	}

	v := &visitor{
		service: s,
		path:    u.Path,
		site:    site,
		http: &http.Client{
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{DisableKeepAlives: true},
		},
	}
	account := url.Values{"name": {"A User"}, "sort_code": {"123456"}, "account_number": {"00001234"}}
	if status, err := v.post(s.listen, "account", account); err != nil || status != http.StatusSeeOther {
		s.Fatalf("name a bank account: %d %v", status, err)
	}

	return v
}

func (v *visitor) post(address, act string, form url.Values) (int, error) {
	resp, err := v.http.PostForm("http://"+address+v.path+"/"+act, form)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)

	return resp.StatusCode, err
}

// withdraw sends a form until it is answered: 1 if it is taken, 0 if the balance has too little.
func (v *visitor) withdraw(ctx context.Context, addresses []string, pence int64, form string) (int64, error) {
	for {
		status, err := v.post(addresses[rand.IntN(len(addresses))], "withdraw", url.Values{
			"amount": {fmt.Sprintf("%d.%02d", pence/100, pence%100)},
			"form":   {form},
		})

		switch {
		case err == nil && status == http.StatusSeeOther:
			return 1, nil
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			return 0, nil
		case ctx.Err() != nil:
			return 0, errors.Join(ctx.Err(), err)
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	}
}

// play has several pages withdraw and read the balance at once while faults happen, and returns the history.
func (v *visitor) play(addresses []string, fault func(again func() bool)) *recorder {
	r := &recorder{began: time.Now()}
	ctx, stop := context.WithCancel(v.Context())
	var made atomic.Int64
	var pages, faults sync.WaitGroup

	for w := range historyWorkers {
		pages.Go(func() {
			for n := made.Add(1); n <= balanceCalls; n = made.Add(1) {
				if err := v.step(r, w, n, addresses); err != nil {
					v.Error(err)
				}
			}
		})
	}
	faults.Go(func() { fault(func() bool { return ctx.Err() == nil }) })

	pages.Wait()
	stop()
	faults.Wait()

	return r
}

func (v *visitor) step(r *recorder, worker int, n int64, addresses []string) error {
	if rand.IntN(2) == 0 {
		api := v.caller(addresses[rand.IntN(len(addresses))]).patient
		return r.do(worker, call{object: "balance"}, func() (int64, error) {
			b, err := api.Balance(v.Context(), v.site)
			return int64(b.CurrentBalancePence), err
		})
	}

	pence := balanceLeast + rand.Int64N(1000)

	return r.do(worker, call{"balance", write, pence}, func() (int64, error) {
		return v.withdraw(v.Context(), addresses, pence, fmt.Sprintf("form %d", n))
	})
}

// explained reports whether some order of the calls explains the answers.
func (r *recorder) explained(t *testing.T) bool {
	taken, refused := 0, 0
	for _, o := range r.history {
		if o.Input.(call).verb == write {
			taken += int(o.Output.(answer).value)
			refused += 1 - int(o.Output.(answer).value)
		}
	}
	t.Logf("%d calls recorded: %d withdrawals taken, %d refused", len(r.history), taken, refused)
	if taken == 0 || refused == 0 {
		t.Errorf("%d withdrawals were taken and %d refused: the history shows too little", taken, refused)
	}

	return porcupine.CheckOperations(balance, r.history)
}

// household is a service with one household that has money.
func (s *service) household(t *testing.T) *visitor {
	t.Helper()
	o := s.objects(newEndpoint(t))
	s.kill(sigTerm)
	s.credit(o.site)
	s.run("org", "set", "Acme", "two_factor=false")
	made := s.run("credential", "add", "Acme", "payer", "--role", "rewards", "--role", "payouts", "--json")
	s.start()

	return s.visitor(o.site, made)
}

func TestHistory_Withdrawals(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		a := newService(t, url)
		v := a.household(t)
		addresses := []string{a.listen}

		both := []*service{a}
		if strings.HasPrefix(url, "postgres") {
			b := a.second()
			b.start()
			addresses, both = append(addresses, b.listen), append(both, b)
		}

		kills := 0
		r := v.play(addresses, func(again func() bool) {
			for ; again(); kills++ {
				time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
				one := both[kills%len(both)]
				one.kill(sigKill)
				one.start()
			}
		})
		if !r.explained(t) {
			t.Error("no order of the withdrawals explains the answers and the balances that were read")
		}
		t.Logf("%d kills", kills)

		for _, s := range both {
			s.kill(sigTerm)
		}
		a.run("verify")
	})
}

// A proxy that has one withdrawal in ten paid twice is found.
func TestHistory_WithdrawalsPlantedFault(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	v := s.household(t)
	defer s.kill(syscall.SIGTERM)
	to, err := url.Parse("http://" + s.listen)
	if err != nil {
		t.Fatal(err)
	}

	var asked atomic.Int64
	pass := httputil.NewSingleHostReverseProxy(to)

	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/withdraw") && asked.Add(1)%10 == 0 {
			body, _ := io.ReadAll(r.Body)
			form, _ := url.ParseQuery(string(body))
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			form.Set("form", "another "+form.Get("form"))
			if _, err := v.post(s.listen, "withdraw", form); err != nil {
				t.Error(err)
			}
		}
		pass.ServeHTTP(w, r)
	}))
	defer proxy.Close()

	r := v.play([]string{strings.TrimPrefix(proxy.URL, "http://")}, func(func() bool) {})
	if r.explained(t) {
		t.Error("withdrawals were paid twice, and the search found an order for that")
	}
}
