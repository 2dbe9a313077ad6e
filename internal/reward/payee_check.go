package reward

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"flexd/internal/egress"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// What a check of the name on an account can say.
const (
	NameMatch      = "match"
	NameCloseMatch = "close_match" // with the account's name
	NameNoMatch    = "no_match"
	// nobody could tell: it is never taken for a match
	NameUnavailable = "unavailable"
)

// Limits of asking.
const (
	// for one question, from the first byte to the last
	NameCheckTime      = 10 * time.Second
	NameCheckAnswerMax = 4 << 10 // bytes of an answer
	// withdrawals that one call asks about
	NameChecksAtOnce  = 500
	nameSecretMin     = 16 // characters of the secret
	nameSecretMax     = 256
	overrideReasonMin = 10 // characters of a reason
)

// SetPayeeHook sets whom the organisation asks whether an account is in a user's name: an HTTPS
// endpoint, and the secret that each request carries. A blank address asks nobody any more.
func (s *Service) SetPayeeHook(
	ctx context.Context,
	org flex.OrgID,
	address, secret string,
) error {
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.User != nil {
			return flex.Fail(
				flex.Invalid,
				"the hook is a URL such as https://payee.example.com/check",
			)
		}

		plain := s.PlainHTTP && u.Scheme == "http"
		if u.Scheme != "https" && !plain {
			return flex.Fail(
				flex.Invalid,
				"the hook gets bank accounts: its URL begins with https://",
			)
		}

		printable := strings.IndexFunc(secret, func(r rune) bool {
			return r > unicode.MaxASCII || !unicode.IsGraphic(r) || r == ' '
		}) < 0

		if len(secret) < nameSecretMin || len(secret) > nameSecretMax ||
			!printable {
			return flex.Fail(
				flex.Invalid,
				"the hook's secret has %d to %d printable ASCII characters without blanks",
				nameSecretMin,
				nameSecretMax,
			)
		}
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		return tx.PutPayeeHook(ctx, store.PayeeHook{
			URL:    address,
			Secret: flex.Personal(secret),
		})
	})
}

// nameQuestion is what a hook is asked, and all that it gets.
type nameQuestion struct {
	Name     string `json:"name"`
	SortCode string `json:"sort_code"`
	Number   string `json:"account_number"`
}

// nameAnswer is what a hook answers.
type nameAnswer struct {
	Result string `json:"result"`
	Name   string `json:"name"`
}

// toCheck is a payment of which a hook is to be asked.
type toCheck struct {
	hook    store.PayeeHook
	w       store.Withdrawal
	account BankAccount
}

// CheckName asks the organisation's hook whether the account of a withdrawal that waits to be
// approved is in the name that the user gave, and keeps the answer with its time. It is nil if
// the organisation has no hook.
func (s *Service) CheckName(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
) (*store.PayeeCheck, error) {
	return s.checkName(ctx, org, id, true)
}

// checkName is CheckName; unless again is set, it asks only if the attempt has no answer yet.
func (s *Service) checkName(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
	again bool,
) (*store.PayeeCheck, error) {
	var todo *toCheck
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		todo, err = nameToCheck(ctx, tx, id, again)
		return err
	})
	if err != nil || todo == nil {
		return nil, err
	}

	// No transaction is open while the hook is asked.
	said := s.askName(ctx, todo)
	answered := store.PayeeCheck{
		WithdrawalID: id,
		Attempt:      todo.w.Attempt,
		SiteID:       todo.w.SiteID,
		Verdict:      said.Result,
		Name:         flex.Personal(said.Name),
	}

	var kept store.PayeeCheck
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		kept, err = storeNameCheck(ctx, tx, todo.w, answered)
		return err
	})

	return &kept, err
}

// storeNameCheck keeps what a check found, and returns the check that counts now: that nobody
// could tell does not take a refusal back.
func storeNameCheck(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	c store.PayeeCheck,
) (store.PayeeCheck, error) {
	// Another check of it may have ended in between.
	if _, err := tx.LockWithdrawal(ctx, w.ID); err != nil {
		return c, err
	}

	before, err := tx.PayeeCheck(ctx, w)
	if err != nil {
		return c, err
	}

	refused := before != nil && before.Verdict == NameNoMatch
	if refused && c.Verdict == NameUnavailable {
		return *before, nil
	}

	c.CheckedAt = tx.Now()

	return c, tx.PutPayeeCheck(ctx, c)
}

// nameToCheck reads what is to be asked; nil if nothing is.
func nameToCheck(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	again bool,
) (*toCheck, error) {
	hook, err := tx.PayeeHook(ctx)
	if err != nil || hook == nil {
		return nil, err
	}

	w, err := tx.Withdrawal(ctx, id)
	if err != nil || w.Status != ledger.PendingApproval {
		return nil, err
	}

	before, err := tx.PayeeCheck(ctx, w)
	known := before != nil && !again
	if err != nil || known {
		return nil, err
	}

	pinned, err := tx.PinnedPayee(ctx, w)
	if err != nil || pinned == nil {
		return nil, err
	}

	packed, err := tx.OpenPinned(*pinned)
	if err != nil {
		return nil, err
	}

	account, err := unpack(packed)

	return &toCheck{*hook, w, account}, err
}

// askName asks. Whatever is not a plain answer is unavailable.
func (s *Service) askName(ctx context.Context, todo *toCheck) nameAnswer {
	unavailable := nameAnswer{Result: NameUnavailable}
	if s.Web == nil {
		return unavailable
	}

	body, err := json.Marshal(nameQuestion{
		todo.account.Name.Reveal(),
		todo.account.SortCode.Reveal(),
		todo.account.Number.Reveal(),
	})
	if err != nil {
		return unavailable
	}

	header := map[string]string{
		"Content-Type":  "application/json",
		"Authorization": "Bearer " + todo.hook.Secret.Reveal(),
	}

	a, err := s.Web.Do(ctx, egress.Request{
		Method:    "POST",
		URL:       todo.hook.URL,
		Header:    header,
		Body:      body,
		AnswerMax: NameCheckAnswerMax,
		Time:      NameCheckTime,
	})
	if err != nil || a.Status != 200 {
		return unavailable
	}

	var said nameAnswer
	if err := json.Unmarshal(a.Body, &said); err != nil {
		return unavailable
	}

	return said.plain()
}

// plain is the answer as it counts: one of the four results, and with a close match a name
// that can be shown.
func (a nameAnswer) plain() nameAnswer {
	name := []rune(strings.Join(strings.Fields(a.Name), " "))
	printable := !strings.ContainsFunc(string(name), func(r rune) bool {
		return !unicode.IsPrint(r)
	})

	if a.Result == NameMatch || a.Result == NameNoMatch {
		return nameAnswer{Result: a.Result}
	}

	if a.Result == NameCloseMatch && len(name) > 0 && printable {
		return nameAnswer{
			NameCloseMatch,
			string(name[:min(len(name), nameMax)]),
		}
	}

	return nameAnswer{Result: NameUnavailable}
}

// nameText says for an approver what is known of the name on an account.
func nameText(c *store.PayeeCheck) string {
	if c == nil || c.Verdict == "" {
		return "name not checked"
	}

	at := c.CheckedAt.UTC().Format("2006-01-02 15:04 MST")
	switch {
	case c.Verdict == NameMatch:
		return "the name matches, " + at

	case c.Verdict == NameCloseMatch:
		return fmt.Sprintf(
			"a close match: the account is in the name of %s, %s",
			c.Name.Reveal(),
			at,
		)

	case c.Verdict == NameNoMatch && c.OverriddenBy != "":
		return fmt.Sprintf(
			"the name does not match, %s; %s lets another operator approve it: %s",
			at,
			c.OverriddenBy,
			c.Reason,
		)

	case c.Verdict == NameNoMatch:
		return "the name does not match, " + at
	}

	return "nobody could tell whose name it is, " + at + ": not a match"
}

// nameBeforeApproval asks about the name if there is no answer yet. An answer other than a
// match stops this approval, so that the approver has seen it.
func (s *Service) nameBeforeApproval(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
) error {
	c, err := s.checkName(ctx, org, id, false)
	if err != nil || c == nil {
		return err
	}

	// A match needs no second look; no match is refused where the approval is judged.
	if c.Verdict == NameMatch || c.Verdict == NameNoMatch {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"the name on the account was asked for just now: %s. Approve again if it is right all the same",
		nameText(c),
	)
}

// checkNameApproval fails if the name does not match and no other operator overrode that.
func checkNameApproval(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	by string,
) error {
	c, err := tx.PayeeCheck(ctx, w)
	if err != nil || c == nil || c.Verdict != NameNoMatch {
		return err
	}

	switch c.OverriddenBy {
	case "":
		return flex.Fail(
			flex.Conflict,
			"the name on the account does not match: reject the withdrawal, or have a second operator override it with a reason (flexd payouts override)",
		)

	case by:
		return flex.Fail(
			flex.Conflict,
			"%s overrode the check of the name: another operator has to approve",
			by,
		)
	}

	return nil
}

// OverrideName lets another operator approve a withdrawal though the name on its account does
// not match.
func (s *Service) OverrideName(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
	by, reason string,
) error {
	reason = strings.Join(strings.Fields(reason), " ")
	if len([]rune(reason)) < overrideReasonMin {
		return flex.Fail(
			flex.Invalid,
			"an override needs a reason of %d characters at least: it is kept and shown",
			overrideReasonMin,
		)
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		w, err := tx.LockWithdrawal(ctx, id)
		if err != nil {
			return err
		}

		c, err := tx.PayeeCheck(ctx, w)
		if err != nil {
			return err
		}

		blocked := c != nil && c.Verdict == NameNoMatch
		if w.Status != ledger.PendingApproval || !blocked {
			return flex.Fail(
				flex.Conflict,
				"there is nothing to override: the withdrawal is %s, and %s",
				w.Status,
				nameText(c),
			)
		}

		return tx.OverridePayeeCheck(ctx, w, by, reason)
	})
}
