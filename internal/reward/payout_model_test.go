package reward_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// The model of the payout chain: users link accounts and ask for money, operators decide, files
// are made, the bank answers, time passes. It is compared with the service over every sequence
// of steps up to a depth; sequences that lead to the same state of the model go on as one.
const (
	modelCredit  = 5000 // what each user has earned, in pence
	modelTwo     = 1500 // more to one account on one day needs two operators
	modelCooling = 24 * time.Hour
	modelWait    = 25 * time.Hour // the step of time: cooling is over, and it is another day
)

// modelAmounts are what the users ask for: the first needs two operators each time.
var modelAmounts = []flex.Pence{2000, 1000}

type modelWithdrawal struct {
	status    ledger.PaymentStatus
	account   int // that it goes to
	linked    int // the step of time at which that was linked
	attempt   int
	approvals string // the initials of who approved this attempt
	approved  []int  // the steps of time at which attempts were approved
}

type modelUser struct {
	account, linked int // 0 is none
	balance         flex.Pence
	asked           []modelWithdrawal
}

type model struct {
	users []modelUser
	time  int // steps of time that have passed
	fault string
}

func (m model) clone() model {
	m.users = slices.Clone(m.users)
	for i := range m.users {
		m.users[i].asked = slices.Clone(m.users[i].asked)
		for k := range m.users[i].asked {
			m.users[i].asked[k].approved = slices.Clone(m.users[i].asked[k].approved)
		}
	}
	return m
}

// String names the state: what is past is named only as far as it still matters.
func (m model) String() string {
	var b strings.Builder
	for _, u := range m.users {
		fmt.Fprintf(&b, "|%d %t %d", u.account, m.time > u.linked, u.balance)

		for _, w := range u.asked {
			today := 0
			for _, at := range w.approved {
				if at == m.time {
					today++
				}
			}
			fmt.Fprintf(&b, ";%s %d %t %d %s %d", w.status, w.account, m.time > w.linked, w.attempt, w.approvals, today)
		}
	}
	return b.String()
}

// toAccount is what was approved today to the account.
func (m model) toAccount(u modelUser, amount flex.Pence, account int) (sum flex.Pence) {
	for _, w := range u.asked {
		for _, at := range w.approved {
			if at == m.time && w.account == account && w.status != ledger.Cancelled {
				sum += amount
			}
		}
	}
	return sum
}

// step is one thing that somebody does.
type step struct {
	user int // -1 for the organisation's
	do   string
}

func (s step) String() string {
	if s.user < 0 {
		return s.do
	}
	return fmt.Sprintf("%d:%s", s.user, s.do)
}

func modelSteps(users int) (steps []step) {
	for u := range users {
		for _, do := range []string{"link A", "link B", "ask", "approve ann", "approve bob", "reject", "cancel", "again", "paid", "failed", "returned"} {
			steps = append(steps, step{u, do})
		}
	}
	return append(steps, step{-1, "export"}, step{-1, "export again"}, step{-1, "wait"})
}

// apply takes the step. It returns whether it is allowed, and the file that it makes: payments
// as "user account".
func (m *model) apply(s step) (ok bool, file []string) {
	switch s.do {
	case "wait":
		m.time++
		return true, nil
	case "export":
		return true, m.export(ledger.Approved)
	case "export again":
		return true, m.export(ledger.Processing)
	}

	u := &m.users[s.user]
	amount := modelAmounts[s.user]
	if account, ok := map[string]int{"link A": 1, "link B": 2}[s.do]; ok {
		m.link(u, account, amount)
		return true, nil
	}

	if s.do == "ask" {
		if u.account == 0 || u.balance < amount {
			return false, nil
		}
		u.balance -= amount
		u.asked = append(u.asked, modelWithdrawal{status: ledger.PendingApproval, account: u.account, linked: u.linked, attempt: 1})
		return true, nil
	}

	if len(u.asked) == 0 {
		return false, nil
	}
	w := &u.asked[len(u.asked)-1]
	return m.applyTo(u, w, amount, s.do), nil
}

func (m *model) link(u *modelUser, account int, amount flex.Pence) {
	if u.account == account {
		return
	}
	u.account, u.linked = account, m.time
	m.cancelUnexported(u, amount)
}

func (m *model) cancelUnexported(u *modelUser, amount flex.Pence) {
	for i := range u.asked {
		w := &u.asked[i]
		if w.status == ledger.PendingApproval || w.status == ledger.Approved && m.fault != "a relink leaves what is approved" {
			w.status = ledger.Cancelled
			u.balance += amount
		}
	}
}

func (m *model) applyTo(u *modelUser, w *modelWithdrawal, amount flex.Pence, do string) bool {
	back := func(to ledger.PaymentStatus) bool {
		w.status = to
		u.balance += amount
		if to != ledger.Rejected && to != ledger.Cancelled && u.account == w.account {
			u.account = 0 // it may be the wrong one
			m.cancelUnexported(u, amount)
		}
		return true
	}

	switch {
	case strings.HasPrefix(do, "approve ") && w.status == ledger.PendingApproval:
		return m.approve(u, w, amount, do[len("approve "):][:1])
	case do == "reject" && w.status == ledger.PendingApproval:
		return back(ledger.Rejected)
	case do == "cancel" && (w.status == ledger.PendingApproval || w.status == ledger.Approved):
		return back(ledger.Cancelled)
	case do == "again" && w.status == ledger.Failed && u.account != 0 && u.balance >= amount:
		u.balance -= amount
		w.status, w.account, w.linked, w.attempt, w.approvals = ledger.PendingApproval, u.account, u.linked, w.attempt+1, ""

		return true
	case do == "paid" && w.status == ledger.Processing:
		w.status = ledger.Posted
		return true
	case do == "failed" && w.status == ledger.Processing:
		return back(ledger.Failed)
	case do == "returned" && (w.status == ledger.Processing || w.status == ledger.Posted):
		return back(ledger.Returned)
	case do == "returned" && w.status == ledger.Returned && m.fault == "money comes back twice":
		return back(ledger.Returned)
	}
	return false
}

func (m *model) approve(u *modelUser, w *modelWithdrawal, amount flex.Pence, by string) bool {
	if m.time == w.linked && m.fault != "no cooling" {
		return false
	}
	two := m.toAccount(*u, amount, w.account)+amount > modelTwo && m.fault != "one operator is enough"
	if two && strings.Contains(w.approvals, by) {
		return false
	}

	complete := !two || w.approvals != ""
	if !strings.Contains(w.approvals, by) {
		w.approvals += by
	}
	if complete {
		w.status = ledger.Approved
		w.approved = append(w.approved, m.time)
	}
	return true
}

func (m *model) export(status ledger.PaymentStatus) (file []string) {
	for i := range m.users {
		for k := range m.users[i].asked {
			w := &m.users[i].asked[k]
			if w.status != status {
				continue
			}

			account := w.account
			if m.fault == "the account of now is paid" {
				account = m.users[i].account
			}
			file = append(file, fmt.Sprintf("%d %d", i, account))
			w.status = ledger.Processing
		}
	}

	slices.Sort(file)
	return file
}

// chain is the service under test, with one organisation of its own.
type chain struct {
	y      *fixture
	seed   *storetest.Seed
	start  time.Time
	prefix string

	org      flex.OrgID
	sites    []flex.SiteID
	newest   []flex.TransactionID
	approved map[string]string // withdrawal and attempt, to the ending that its approvers saw
	paid     map[string]int    // withdrawal and attempt, in how many first files
}

// begin makes an organisation whose users have their money.
func (c *chain) begin(t *testing.T, n, users int) {
	t.Helper()
	c.y.now = c.start
	org, err := c.y.db.AddOrg(t.Context(), fmt.Sprintf("%s %d", c.prefix, n))
	if err != nil {
		t.Fatal(err)
	}
	c.org, c.sites, c.newest = org.ID, nil, make([]flex.TransactionID, users)
	c.approved, c.paid = map[string]string{}, map[string]int{}
	for range users {
		c.sites = append(c.sites, c.seed.As(org.ID).Site(flex.FullScheduleMethod))
	}

	err = c.y.db.Write(t.Context(), org.ID, func(tx *store.Tx) error {
		rules := flex.PayoutSettings{WithoutCode: true, TwoAbove: flex.Some[flex.Pence](modelTwo)}
		if err := tx.SetSettings(t.Context(), flex.OrgSettings{Payout: rules}); err != nil {
			return err
		}

		for i, site := range c.sites {
			_, err := tx.Post(t.Context(), &ledger.Booked{Transaction: ledger.Transaction{
				Key: fmt.Sprintf("gift %d", i), Kind: ledger.GoodwillCredit, SiteID: site, Time: flex.Span{From: tx.Now()}, Cause: ledger.Cause{By: "ann"},
				Postings: []ledger.Posting{{Account: ledger.PromotionsExpense, Amount: modelCredit}, {Account: ledger.RewardsPayable, Amount: -modelCredit}},
			}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c *chain) account(user, account int) reward.BankAccount {
	return reward.BankAccount{Name: "A User", SortCode: "123456", Number: flex.Personal(fmt.Sprintf("0000%d%03d", user, account))}
}

// apply takes the step. It returns whether the service allowed it, and the file.
func (c *chain) apply(t *testing.T, s step) (ok bool, file []string, err error) {
	switch s.do {
	case "wait":
		c.y.now = c.y.now.Add(modelWait)
		return true, nil, nil
	case "export", "export again":
		return c.export(t, s.do == "export again")
	}

	v := reward.Visit{BalanceLink: store.BalanceLink{OrgID: c.org, SiteID: c.sites[s.user]}}
	service, id := c.y.service, c.newest[s.user]

	switch s.do {
	case "link A", "link B":
		err = service.LinkAccount(t.Context(), v, c.account(s.user, strings.Index("-AB", s.do[5:])))
	case "ask":
		var w store.Withdrawal

		w, err = service.Withdraw(t.Context(), v, modelAmounts[s.user], c.y.form(t))
		if err == nil {
			c.newest[s.user] = w.ID
		}
	case "paid", "failed", "returned":
		return c.result(t, id, bankfile.Outcome(s.do))
	default:
		err = c.decide(t, id, s.do)
	}

	if k := flex.KindOf(err); k == flex.Conflict || k == flex.NotFound {
		return false, nil, nil
	}
	return err == nil, nil, err
}

func (c *chain) decide(t *testing.T, id flex.TransactionID, do string) error {
	by, to := "ann", map[string]ledger.PaymentStatus{"reject": ledger.Rejected, "cancel": ledger.Cancelled, "again": ledger.PendingApproval}[do]
	if name, ok := strings.CutPrefix(do, "approve "); ok {
		by, to = name, ledger.Approved
	}
	w, err := c.y.service.Decide(t.Context(), c.org, id, to, by, "")
	if err != nil || w.Status != ledger.Approved {
		return err
	}

	ps, err := c.y.service.Payouts(t.Context(), c.org, ledger.Approved)
	for _, p := range ps {
		if p.ID == id {
			c.approved[fmt.Sprint(id, w.Attempt)] = p.Ending
		}
	}
	return err
}

func (c *chain) result(t *testing.T, id flex.TransactionID, o bankfile.Outcome) (bool, []string, error) {
	reference := "FLEXD0000000000-1"
	if !id.IsZero() {
		w, err := c.withdrawal(t, id)
		if err != nil {
			return false, nil, err
		}
		reference = ledger.Reference(id, w.Attempt)
	}
	done, err := c.y.service.ImportBank(t.Context(), c.org, "ann", []bankfile.Result{{Where: "entry 1", Reference: reference, Outcome: o}}, false)
	return done.Count(reward.VerdictNew) == 1, nil, err
}

func (c *chain) withdrawal(t *testing.T, id flex.TransactionID) (w store.Withdrawal, err error) {
	err = c.y.db.Read(t.Context(), c.org, func(tx *store.Tx) error {
		w, err = tx.Withdrawal(t.Context(), id)
		return err
	})
	return w, err
}

// export makes a file, and holds it against what was approved.
func (c *chain) export(t *testing.T, again bool) (bool, []string, error) {
	f, err := c.y.service.Export(t.Context(), c.org, "ann", reward.ExportOptions{Repeat: again})
	var file []string
	for _, p := range f.Payments {
		key := fmt.Sprint(p.ID, p.Attempt)
		number := p.Number.Reveal()
		if c.approved[key] != number[4:] {
			return false, nil, fmt.Errorf("paid to %s, approved was %s", number, c.approved[key])
		}

		if !again {
			c.paid[key]++
		}
		if c.paid[key] != 1 {
			return false, nil, fmt.Errorf("in %d first files", c.paid[key])
		}
		user := slices.Index(c.sites, p.SiteID)
		file = append(file, fmt.Sprintf("%d %d", user, int(number[7]-'0')))
	}

	slices.Sort(file)
	return err == nil, file, err
}

// compare holds the service's state against the model's, and adds up: what is paid, under way
// and in the balance is what was credited.
func (c *chain) compare(t *testing.T, m model) error {
	return c.y.db.Read(t.Context(), c.org, func(tx *store.Tx) error {
		ws, err := tx.Withdrawals(t.Context(), "")
		if err != nil {
			return err
		}

		for i, u := range m.users {
			balance, err := tx.Balance(t.Context(), c.sites[i])
			if err != nil {
				return err
			}
			var got, want []string
			sum := balance

			for _, w := range ws {
				if w.SiteID == c.sites[i] {
					got = append(got, fmt.Sprint(w.Status, " ", w.Attempt))
					if w.Status.Holds() {
						sum += w.Amount
					}
				}
			}

			for _, w := range u.asked {
				want = append(want, fmt.Sprint(w.status, " ", w.attempt))
			}
			if !slices.Equal(got, want) || balance != u.balance {
				return fmt.Errorf("user %d has %v and %s, want %v and %s", i, got, balance, want, u.balance)
			}
			if sum != modelCredit {
				return fmt.Errorf("user %d: paid, under way and balance come to %s", i, sum)
			}
		}
		return nil
	})
}

// take takes the step with both, and compares.
func (c *chain) take(t *testing.T, m *model, s step) error {
	wantOK, wantFile := m.apply(s)
	ok, file, err := c.apply(t, s)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if ok != wantOK || !slices.Equal(file, wantFile) {
		return fmt.Errorf("%s: %t %v, want %t %v", s, ok, file, wantOK, wantFile)
	}
	if err := c.compare(t, *m); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

// explore takes every step in every state that can be reached in so many steps from the end of
// a sequence. It returns how many steps it took, and the first sequence at which service and
// model differ.
func explore(t *testing.T, c *chain, users, depth int, fault string, from []step) (taken int, err error) {
	first := model{users: make([]modelUser, users), fault: fault}
	for i := range first.users {
		first.users[i].balance = modelCredit
	}
	reached := first.clone()
	for _, s := range from {
		reached.apply(s)
	}

	paths := map[string][]step{reached.String(): from}
	level := []string{reached.String()}
	steps := modelSteps(users)

	replay := func(path []step) (model, error) {
		c.begin(t, taken, users)
		m := first.clone()
		for i, s := range path {
			taken++
			if err := c.take(t, &m, s); err != nil {
				return m, fmt.Errorf("%v: %w", path[:i+1], err)
			}
		}
		return m, nil
	}

	for range depth {
		var next []string

		for _, state := range level {
			path := paths[state]
			fresh := false
			var m model
			for _, s := range steps {
				if !fresh {
					if m, err = replay(path); err != nil {
						return taken, err
					}
					fresh = true
				}

				before := m.String()
				taken++
				if err := c.take(t, &m, s); err != nil {
					return taken, fmt.Errorf("%v: %w", append(slices.Clone(path), s), err)
				}
				after := m.String()
				if after == before {
					continue // nothing changed: the next step begins from here
				}

				fresh = false
				if _, known := paths[after]; !known {
					paths[after] = append(slices.Clone(path), s)
					next = append(next, after)
				}
			}
		}

		level = next
	}
	return taken, nil
}

func newChain(t *testing.T, url string) *chain {
	y := open(t, url)
	return &chain{y: y, seed: storetest.At(t, y.db, url), start: clock("2026-01-14 08:00")}
}

// exported is the sequence by which the users' first withdrawals come into a file.
func exported(users int) (from []step) {
	for _, do := range []string{"link A", "ask", "wait", "approve ann", "approve bob", "export"} {
		for u := range users {
			switch {
			case do == "wait" || do == "export":
				if u == 0 {
					from = append(from, step{-1, do})
				}

			case u == 0 || do != "approve bob": // the others' amount needs one operator
				from = append(from, step{u, do})
			}
		}
	}
	return from
}

// The account paid is the one that was approved, once, and no penny comes or goes, whatever
// users, operators and the bank do in whatever order: from the beginning, and from where the
// payments are in a file.
func TestPayouts_Model(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newChain(t, url)
		deeper := 0
		if c.y.db.Engine() == "postgres" {
			deeper = -2
		}
		if os.Getenv("FLEXD_LONG") != "" {
			deeper += 3
		}

		for _, run := range []struct {
			users, depth int
			from         []step
		}{{1, 6, nil}, {2, 3, nil}, {1, 4, exported(1)}, {2, 2, exported(2)}} {
			c.prefix = fmt.Sprintf("%d users after %v", run.users, run.from)
			taken, err := explore(t, c, run.users, run.depth+deeper, "", run.from)
			if err != nil {
				t.Errorf("%s: %v", c.prefix, err)
			}
			t.Logf("%s, %d deep: %d steps taken", c.prefix, run.depth+deeper, taken)
		}
	})
}

// A model that is wrong is found out: the comparison can see what it is to see.
func TestPayouts_ModelFindsFaults(t *testing.T) {
	for fault, from := range map[string][]step{
		"a relink leaves what is approved": exported(1)[:5], "money comes back twice": exported(1), "no cooling": nil,
		"one operator is enough": nil, "the account of now is paid": exported(1),
	} {
		t.Run(fault, func(t *testing.T) {
			c := newChain(t, storetest.SQLite(t))
			if _, err := explore(t, c, 1, 4, fault, from); err == nil {
				t.Error("not found")
			} else {
				t.Log(err)
			}
		})
	}
}
