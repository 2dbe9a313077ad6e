package reward_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// earn has the site's user earn so many pounds.
func (y *fixture) earn(t *testing.T, pounds float64) {
	t.Helper()
	y.charge(t, "2026-01-14 22:00", "2026-01-14 22:30")
	y.read(t, "2026-01-14 22:00", pounds*50) // at 2 p
	y.round(t)
}

// visit opens a new link.
func (y *fixture) visit(t *testing.T, o reward.LinkOptions) reward.Visit {
	t.Helper()
	if o.RedirectURI == "" {
		o.RedirectURI = "https://app.example.com/rewards"
	}
	o.MayPayOut = true
	link, expires, err := y.service.Link(t.Context(), y.org, y.site, o)
	if err != nil {
		t.Fatal(err)
	}

	if want := y.now.Add(time.Hour); !expires.Equal(want) {
		t.Errorf("the link lives to %s, want %s", expires, want)
	}
	v, err := y.service.Open(t.Context(), link[strings.LastIndex(link, "/")+1:], "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// form names a new form of the balance page.
func (y *fixture) form(t *testing.T) string {
	t.Helper()
	form, err := y.service.NewForm()
	if err != nil {
		t.Fatal(err)
	}
	return form
}

var bank = reward.BankAccount{Name: "Ann Other", SortCode: "123456", Number: "01234567"}

func (y *fixture) link(t *testing.T, v reward.Visit) {
	t.Helper()
	if err := y.service.LinkAccount(t.Context(), v, bank); err != nil {
		t.Fatal(err)
	}
}

func (y *fixture) balance(t *testing.T) flex.Pence {
	t.Helper()
	info, err := y.service.Info(t.Context(), y.org, y.site)
	if err != nil {
		t.Fatal(err)
	}
	return info.Balance
}

// A link lives an hour, may be used again meanwhile, and then is as one that never was.
func TestLink_Life(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.service.BaseURL = "https://flexd.example.com"
		link, _, err := y.service.Link(
			t.Context(),
			y.org,
			y.site,
			reward.LinkOptions{RedirectURI: "app://rewards"},
		)
		if err != nil || !strings.HasPrefix(link, "https://flexd.example.com/balance/") {
			t.Fatal(link, err)
		}
		token := link[strings.LastIndex(link, "/")+1:]
		start := y.now

		for _, tt := range []struct {
			after time.Duration
			kind  flex.Kind
		}{{59 * time.Minute, 0}, {59 * time.Minute, 0}, {60 * time.Minute, flex.NotFound}, {61 * time.Minute, flex.NotFound}} {
			y.now = start.Add(tt.after)
			if _, err := y.service.Open(t.Context(), token, ""); (err != nil) != (tt.kind != 0) || err != nil && flex.KindOf(err) != tt.kind {
				t.Errorf("after %s: %v", tt.after, err)
			}
		}

		if _, err := y.service.Open(t.Context(), token[1:]+"A", ""); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another token: %v", err)
		}
		if _, _, err := y.service.Link(t.Context(), y.org, flex.SiteID{7}, reward.LinkOptions{RedirectURI: "https://a.example"}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("another site: %v", err)
		}
		for _, uri := range []string{"", "/rewards", "javascript:alert(1)", "data:text/html,x", "https://", "\x7f"} {
			if _, _, err := y.service.Link(t.Context(), y.org, y.site, reward.LinkOptions{RedirectURI: uri}); flex.KindOf(err) != flex.Invalid {
				t.Errorf("leading back to %q: %v", uri, err)
			}
		}
	})
}

// From plug-in to paid: earned, withdrawn, approved, exported, posted.
func TestWithdraw_ToTheBank(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		v := y.visit(t, reward.LinkOptions{})
		if _, err := y.service.Withdraw(t.Context(), v, 2500, y.form(t)); flex.KindOf(err) != flex.Conflict {
			t.Errorf("without a bank account: %v", err)
		}

		y.link(t, v)
		for _, amount := range []flex.Pence{0, -1, 999, 2501} {
			if _, err := y.service.Withdraw(t.Context(), v, amount, y.form(t)); err == nil {
				t.Errorf("withdrew %d of 2500", amount)
			}
		}

		w, err := y.service.Withdraw(t.Context(), v, 1000, y.form(t))
		if err != nil || y.balance(t) != 1500 {
			t.Fatal(w, err, y.balance(t))
		}
		if ps, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{}); err != nil || len(ps.Payments) != 0 {
			t.Errorf("exported before approval: %v %v", ps, err)
		}
		if _, err := y.service.Decide(t.Context(), y.org, w.ID, ledger.Approved, "ann", ""); err != nil {
			t.Fatal(err)
		}

		ps, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{})
		if err != nil || len(ps.Payments) != 1 {
			t.Fatal(ps, err)
		}
		if p := ps.Payments[0]; p.BankAccount != bank || p.Amount != 1000 || p.Status != ledger.Processing || !regexp.MustCompile(`^FLEXD[0-9A-Z]{10}-1$`).MatchString(p.Reference) {
			t.Errorf("payment %+v of %s", p, p.Reference)
		}

		if ps, _ := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{}); len(ps.Payments) != 0 {
			t.Error("exported twice")
		}
		if ps, _ := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{Repeat: true}); len(ps.Payments) != 1 {
			t.Error("not exported again when asked to")
		}

		posted := []reward.PaymentResult{{ID: w.ID, Status: ledger.Posted}}
		for i, want := range []int{1, 0} { // the same result again changes nothing
			if moved, err := y.service.Import(t.Context(), y.org, "ann", posted); err != nil || moved.Moved != want {
				t.Errorf("import %d: %+v %v", i, moved, err)
			}
		}
		if got := y.history(t); got != "flex event 2500p for 1250000 Wh, withdrawal -1000p posted" {
			t.Errorf("got %s", got)
		}

		for _, bad := range []reward.PaymentResult{{ID: w.ID, Status: ledger.Failed}, {ID: w.ID, Status: ledger.Approved}, {ID: flex.TransactionID{1}, Status: ledger.Posted}} {
			if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{bad}); err == nil {
				t.Errorf("imported %+v", bad)
			}
		}
	})
}

// What could not be paid is back in the balance, the account is forgotten, and the user is
// told.
func TestWithdraw_Failed(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	var mails []string
	y.service.Mail = func(_ context.Context, to flex.Personal, subject, text string) error {
		mails = append(mails, to.Reveal()+": "+subject+"\n"+text)
		return nil
	}

	y.service.BaseURL = "https://flexd.example.com"
	y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
	y.earn(t, 25)
	v := y.visit(t, reward.LinkOptions{})
	y.link(t, v)
	w, err := y.service.Withdraw(t.Context(), v, 2500, y.form(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, to := range []ledger.PaymentStatus{ledger.Processing, ledger.Posted, ledger.Failed, ledger.Returned} {
		if _, err := y.service.Decide(t.Context(), y.org, w.ID, to, "ann", ""); flex.KindOf(err) != flex.Malformed {
			t.Errorf("%s by an operator: %v", to, err)
		}
	}
	if _, err := y.service.Decide(t.Context(), y.org, w.ID, ledger.Approved, "ann", ""); err != nil {
		t.Fatal(err)
	}

	y.export(t, false)
	if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{{ID: w.ID, Status: ledger.Failed}}); err != nil {
		t.Fatal(err)
	}
	if y.balance(t) != 2500 {
		t.Errorf("balance %d", y.balance(t))
	}
	if r, err := y.service.SendMail(t.Context()); err != nil || r.Count != 2 || len(mails) != 2 || !strings.Contains(mails[1], "ann@example.com: Your withdrawal could not be paid\nYour withdrawal of £25.00") {
		t.Fatalf("mails %q %v", mails, err)
	}

	token := mails[1][strings.Index(mails[1], reward.Root)+len(reward.Root):]
	y.now = y.now.Add(47 * time.Hour)
	again, err := y.service.Open(t.Context(), strings.TrimSpace(token), "")
	if err != nil {
		t.Fatal(err)
	}

	p, err := y.service.BalancePage(t.Context(), again)
	if err != nil || p.Account.Linked || p.Balance != 2500 || !p.NeedsCode {
		t.Errorf("balance %+v %v", p, err)
	}
	if r, err := y.service.SendMail(t.Context()); err != nil || r.Count != 0 {
		t.Errorf("sent again: %+v %v", r, err)
	}
}

// A file of results that is read again, after what came later, changes nothing; nor does an old
// one whose payment was tried again meanwhile.
func TestImport_Again(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.earn(t, 25)
	y.link(t, y.visit(t, reward.LinkOptions{}))
	w, err := y.service.Withdraw(
		t.Context(),
		y.visit(t, reward.LinkOptions{}),
		2500,
		y.form(t),
	)
	if err != nil {
		t.Fatal(err)
	}

	send := func() {
		t.Helper()
		if _, err := y.service.Decide(t.Context(), y.org, w.ID, ledger.PendingApproval, "ann", ""); err != nil && flex.KindOf(err) != flex.Conflict {
			t.Fatal(err)
		}
		if _, err := y.service.Decide(t.Context(), y.org, w.ID, ledger.Approved, "ann", ""); err != nil {
			t.Fatal(err)
		}
		if ps, err := y.service.Export(t.Context(), y.org, "ann", reward.ExportOptions{}); err != nil || len(ps.Payments) != 1 {
			t.Fatal(ps, err)
		}
	}

	result := func(attempt int, status ledger.PaymentStatus) reward.PaymentResult {
		return reward.PaymentResult{ID: w.ID, Attempt: attempt, Status: status}
	}
	take := func(moved int, balance flex.Pence, results ...reward.PaymentResult) {
		t.Helper()
		if n, err := y.service.Import(t.Context(), y.org, "ann", results); err != nil || n.Moved != moved || y.balance(t) != balance {
			t.Errorf(
				"%d results moved, %v, and %s are left; want %d and %s",
				n.Moved,
				err,
				y.balance(t),
				moved,
				balance,
			)
		}
	}

	send()
	take(1, 2500, result(1, ledger.Failed))
	y.link(t, y.visit(t, reward.LinkOptions{}))
	send()
	take(0, 0, result(1, ledger.Failed)) // the bank has the second attempt
	if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{result(3, ledger.Posted)}); flex.KindOf(err) != flex.Conflict {
		t.Errorf("an attempt that never was: %v", err)
	}
	if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{result(0, ledger.Failed)}); flex.KindOf(err) != flex.Conflict || y.balance(t) != 0 {
		t.Errorf(
			"the first file again, which names no attempt: %v, and %s are back",
			err,
			y.balance(t),
		)
	}

	if _, err := y.service.Import(t.Context(), y.org, "ann", []reward.PaymentResult{result(1, ledger.Posted)}); flex.KindOf(err) != flex.Conflict {
		t.Errorf("the first attempt was paid as well: %v", err)
	}
	take(1, 0, result(2, ledger.Posted), result(1, ledger.Failed))
	take(1, 2500, result(2, ledger.Posted), result(2, ledger.Returned))
	take(0, 2500, result(2, ledger.Posted), result(2, ledger.Returned))
	take(0, 2500, result(0, ledger.Posted))
}

func TestMail_RelayDown(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	tries := 0
	y.service.Mail = func(context.Context, flex.Personal, string, string) error { tries++; return errors.New("down") }
	y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
	v := y.visit(t, reward.LinkOptions{TwoFactor: true})
	v.Browser = "a browser"
	if err := y.service.SendCode(t.Context(), v); err != nil {
		t.Fatal(err)
	}

	for range 200 {
		if _, err := y.service.SendMail(t.Context()); err != nil {
			t.Fatal(err)
		}
		y.now = y.now.Add(time.Minute)
	}
	if tries != 6 {
		t.Errorf("tried %d times, want 6", tries)
	}
}

// The e-mailed code stands before bank account and withdrawal, not before looking.
func TestCode(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		var letter string
		y.service.Mail = func(_ context.Context, _ flex.Personal, _, text string) error { letter = text; return nil }
		y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
		y.pays(t, flex.PayoutSettings{CoolingHours: flex.Some(0)})
		y.earn(t, 25)
		link, _, err := y.service.Link(
			t.Context(),
			y.org,
			y.site,
			reward.LinkOptions{RedirectURI: "https://a.example"},
		)
		if err != nil {
			t.Fatal(err)
		}

		visit := func() reward.Visit {
			t.Helper()
			v, err := y.service.Open(
				t.Context(),
				link[strings.LastIndex(link, "/")+1:],
				"a browser",
			)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}

		send := func() string {
			t.Helper()
			y.now = y.now.Add(2 * time.Minute)
			if err := y.service.SendCode(t.Context(), visit()); err != nil {
				t.Fatal(err)
			}
			if _, err := y.service.SendMail(t.Context()); err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(`\d{6}`).FindString(letter)
		}

		if err := y.service.LinkAccount(t.Context(), visit(), bank); flex.KindOf(err) != flex.Forbidden {
			t.Errorf("bank account without the code: %v", err)
		}
		if _, err := y.service.Withdraw(t.Context(), visit(), 2500, y.form(t)); flex.KindOf(err) != flex.Forbidden {
			t.Errorf("withdrawal without the code: %v", err)
		}

		if err := y.service.EnterCode(t.Context(), visit(), ""); flex.KindOf(err) != flex.Conflict {
			t.Errorf("a code that was never sent: %v", err)
		}
		before := visit()
		first := send()
		if err := y.service.SendCode(t.Context(), visit()); flex.KindOf(err) != flex.TooMany {
			t.Errorf("another code at once: %v", err)
		}

		if err := y.service.SendCode(t.Context(), before); flex.KindOf(err) != flex.TooMany {
			t.Errorf("another code at once, by who had opened the page before: %v", err)
		}
		second := send()
		if err := y.service.EnterCode(t.Context(), visit(), first); first != second && flex.KindOf(err) != flex.Malformed {
			t.Errorf("the code before: %v", err)
		}

		for range reward.CodeTries {
			if err := y.service.EnterCode(t.Context(), visit(), "x"); err == nil {
				t.Error("a wrong code was taken")
			}
		}
		if err := y.service.EnterCode(t.Context(), visit(), second); flex.KindOf(err) != flex.TooMany {
			t.Errorf("the right code after too many wrong ones: %v", err)
		}

		third := send()
		y.now = y.now.Add(reward.CodeLife)
		if err := y.service.EnterCode(t.Context(), visit(), third); flex.KindOf(err) != flex.Conflict {
			t.Errorf("after its time: %v", err)
		}
		if err := y.service.EnterCode(t.Context(), visit(), send()); err != nil {
			t.Fatal(err)
		}
		y.link(t, visit())
		if _, err := y.service.Withdraw(t.Context(), visit(), 2500, y.form(t)); err != nil {
			t.Error(err)
		}
	})
}

// A form with the right code that is sent twice is no failure the second time. It confirms the
// browser that sent it alone.
func TestCode_SentTwice(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		var code string
		y.service.Mail = func(_ context.Context, _ flex.Personal, _, text string) error {
			code = regexp.MustCompile(`\d{6}`).FindString(text)
			return nil
		}

		y.exec(t, `UPDATE site SET email = 'ann@example.com'`)
		v := y.visit(t, reward.LinkOptions{TwoFactor: true})
		v.Browser = "a browser"
		if err := y.service.SendCode(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if _, err := y.service.SendMail(t.Context()); err != nil {
			t.Fatal(err)
		}

		for range 2 {
			if err := y.service.EnterCode(t.Context(), v, code); err != nil {
				t.Errorf("the right code: %v", err)
			}
		}

		v.Browser = "another browser"
		if err := y.service.EnterCode(t.Context(), v, code); flex.KindOf(err) != flex.Conflict {
			t.Errorf("the same code in another browser: %v", err)
		}
	})
}

// Sixty-four tries at once withdraw once.
func TestWithdraw_Once(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y := open(t, url)
		y.earn(t, 25)
		v := y.visit(t, reward.LinkOptions{})
		y.link(t, v)
		var done atomic.Int64
		var wg sync.WaitGroup

		for range 64 {
			wg.Go(func() {
				switch _, err := y.service.Withdraw(t.Context(), v, 2500, y.form(t)); {
				case err == nil:
					done.Add(1)
				case flex.KindOf(err) != flex.Conflict:
					t.Error(err)
				}
			})
		}

		wg.Wait()
		if done.Load() != 1 || y.balance(t) != 0 {
			t.Errorf("withdrew %d times, %d left", done.Load(), y.balance(t))
		}
	})
}

// Bank accounts cannot be read where they are kept, nor taken from one site to another.
func TestBankAccount_Sealed(t *testing.T) {
	y := open(t, storetest.SQLite(t))
	y.earn(t, 25)
	v := y.visit(t, reward.LinkOptions{})
	y.link(t, v)
	err := y.db.Read(t.Context(), y.org, func(tx *store.Tx) error {
		p, err := tx.Payee(t.Context(), y.site)
		if err != nil {
			return err
		}

		if p.Ending != "4567" {
			t.Errorf("it ends in %s", p.Ending)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	other := flex.SiteID{8}
	y.exec(
		t,
		`INSERT INTO site (id, org_id, consent_at, created_at) VALUES ($1, $2, NULL, 0)`,
		other.Bytes(),
		y.org.Bytes(),
	)
	y.consent(t)
	y.exec(
		t,
		`INSERT INTO payee (site_id, org_id, sealed, ending, changed_at) SELECT $1, org_id, sealed, ending, 0 FROM payee`,
		other.Bytes(),
	)
	y.exec(t, `UPDATE asset SET site_id = $1`, other.Bytes())
	y.site = other
	y.supply(t, 10_000_000)

	y.charge(t, "2026-01-15 22:00", "2026-01-15 22:30")
	y.read(t, "2026-01-15 22:00", 2000)
	y.round(t)
	_, err = y.service.Withdraw(
		t.Context(),
		y.visit(t, reward.LinkOptions{}),
		2000,
		y.form(t),
	)
	if err == nil || strings.Contains(err.Error(), "Ann") {
		t.Errorf("an account that was copied to another site: %v", err)
	}
}

// The bank account goes with its site; what was earned stays in the books, and an event that is
// not final yet takes nothing back.
func TestBankAccount_GoesWithTheSite(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		y, _ := settledMonday(t, url)
		visit := y.visit(t, reward.LinkOptions{})
		y.link(t, visit)
		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.DropAsset(ctx, y.asset), tx.DropSite(ctx, y.site))
		})

		for _, now := range []string{"2025-04-01 00:00", "2025-06-01 00:00"} {
			y.now = clock(now)
			if _, err := y.service.SettleEvents(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		y.write(t, func(ctx context.Context, tx *store.Tx) error {
			payee, err := tx.Payee(ctx, y.site)
			balance, failed := tx.Balance(ctx, y.site)
			if payee != nil || balance != 20 {
				t.Errorf("account %v, balance %d", payee, balance)
			}
			return errors.Join(err, failed)
		})
	})
}

func TestReadBankAccount(t *testing.T) {
	for _, tt := range []struct {
		name, sort, number string
		faults             int
	}{
		{" Ann  Other ", "12-34-56", "0123 4567", 0},
		{"", "12345", "1234567", 3},
		{strings.Repeat("é", 70), "123456", "12345678", 0},
		{strings.Repeat("é", 71), "123456", "12345678", 1},
		{"Ann\x00", "12345a", "123456789", 3},
		{"Ann", "１２３４５６", "12345678", 1},
	} {
		a, err := reward.ReadBankAccount(tt.name, tt.sort, tt.number)
		faults := 0
		if e, ok := errors.AsType[*flex.Error](err); ok {
			faults = len(e.Faults)
		}

		if faults != tt.faults {
			t.Errorf("%q %q %q: %v", tt.name, tt.sort, tt.number, err)
		}
		if tt.name == " Ann  Other " && a != bank {
			t.Errorf("read %s %s %s", a.Name.Reveal(), a.SortCode.Reveal(), a.Number.Reveal())
		}
	}
}
