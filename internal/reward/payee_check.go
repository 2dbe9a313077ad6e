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

// The results of a check of the name on an account.
const (
	NameMatch      = "match"
	NameCloseMatch = "close_match" // with the account's name
	NameNoMatch    = "no_match"
	// the hook gave no valid answer; this never counts as a match
	NameUnavailable = "unavailable"
)

// Limits of name checks.
const (
	// for one request, from its first byte to the last one of the answer
	NameCheckTime      = 10 * time.Second
	NameCheckAnswerMax = 4 << 10 // bytes of an answer
	// withdrawals that one call checks
	NameChecksAtOnce  = 500
	nameSecretMin     = 16 // characters of the secret
	nameSecretMax     = 256
	overrideReasonMin = 10 // characters of a reason
)

// SetPayeeHook sets the HTTPS endpoint that checks whether an account is in a user's name, and
// the secret that each request to it carries. An empty address ends the checks.
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

// nameQuestion is the body of a request to a hook: all that it receives.
type nameQuestion struct {
	Name     string `json:"name"`
	SortCode string `json:"sort_code"`
	Number   string `json:"account_number"`
}

// nameAnswer is the body of a hook's answer.
type nameAnswer struct {
	Result string `json:"result"`
	Name   string `json:"name"`
}

// nameCheckRequest is a withdrawal whose account name a hook is to check.
type nameCheckRequest struct {
	hook    store.PayeeHook
	w       store.Withdrawal
	account BankAccount
}

// CheckName asks the organisation's hook whether the account of a withdrawal is in the name that
// the user gave, and stores the answer with its time. The withdrawal must wait for approval. The
// result is nil if the organisation has no hook.
func (s *Service) CheckName(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
) (*store.PayeeCheck, error) {
	return s.checkName(ctx, org, id, true)
}

// checkName is CheckName. Without repeat it asks only if the attempt has no answer yet.
func (s *Service) checkName(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
	repeat bool,
) (*store.PayeeCheck, error) {
	var request *nameCheckRequest
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		request, err = nameCheckRequestFor(ctx, tx, id, repeat)
		return err
	})
	if err != nil || request == nil {
		return nil, err
	}

	// No transaction is open while the hook is asked.
	answer := s.queryNameHook(ctx, request)
	check := store.PayeeCheck{
		WithdrawalID: id,
		Attempt:      request.w.Attempt,
		SiteID:       request.w.SiteID,
		Verdict:      answer.Result,
		Name:         flex.Personal(answer.Name),
	}

	var current store.PayeeCheck
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		var err error
		current, err = storeNameCheck(ctx, tx, request.w, check)
		return err
	})

	return &current, err
}

// storeNameCheck stores the result of a check, and returns the check that is in force. An
// unavailable hook does not replace an earlier mismatch.
func storeNameCheck(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	c store.PayeeCheck,
) (store.PayeeCheck, error) {
	// Another check of the same withdrawal may have ended while the hook was asked.
	if _, err := tx.LockWithdrawal(ctx, w.ID); err != nil {
		return c, err
	}

	before, err := tx.PayeeCheck(ctx, w)
	if err != nil {
		return c, err
	}

	mismatched := before != nil && before.Verdict == NameNoMatch
	if mismatched && c.Verdict == NameUnavailable {
		return *before, nil
	}

	c.CheckedAt = tx.Now()

	return c, tx.PutPayeeCheck(ctx, c)
}

// nameCheckRequestFor reads what the hook is to be asked; nil if nothing needs a check.
func nameCheckRequestFor(
	ctx context.Context,
	tx *store.Tx,
	id flex.TransactionID,
	repeat bool,
) (*nameCheckRequest, error) {
	hook, err := tx.PayeeHook(ctx)
	if err != nil || hook == nil {
		return nil, err
	}

	w, err := tx.Withdrawal(ctx, id)
	if err != nil || w.Status != ledger.PendingApproval {
		return nil, err
	}

	before, err := tx.PayeeCheck(ctx, w)
	answered := before != nil && !repeat
	if err != nil || answered {
		return nil, err
	}

	fixedAccount, err := tx.PinnedPayee(ctx, w)
	if err != nil || fixedAccount == nil {
		return nil, err
	}

	plaintext, err := tx.OpenPinned(*fixedAccount)
	if err != nil {
		return nil, err
	}

	account, err := unpack(plaintext)

	return &nameCheckRequest{*hook, w, account}, err
}

// queryNameHook sends the request to the hook. Anything but a valid answer is unavailable.
func (s *Service) queryNameHook(ctx context.Context, request *nameCheckRequest) nameAnswer {
	unavailable := nameAnswer{Result: NameUnavailable}
	if s.Web == nil {
		return unavailable
	}

	body, err := json.Marshal(nameQuestion{
		request.account.Name.Reveal(),
		request.account.SortCode.Reveal(),
		request.account.Number.Reveal(),
	})
	if err != nil {
		return unavailable
	}

	header := map[string]string{
		"Content-Type":  "application/json",
		"Authorization": "Bearer " + request.hook.Secret.Reveal(),
	}

	a, err := s.Web.Do(ctx, egress.Request{
		Method:    "POST",
		URL:       request.hook.URL,
		Header:    header,
		Body:      body,
		AnswerMax: NameCheckAnswerMax,
		Time:      NameCheckTime,
	})
	if err != nil || a.Status != 200 {
		return unavailable
	}

	var answer nameAnswer
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return unavailable
	}

	return answer.normalised()
}

// normalised returns one of the four results. A close match must come with a printable name;
// otherwise it is unavailable.
func (a nameAnswer) normalised() nameAnswer {
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

// nameText describes the state of the name check for an approver.
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

// nameBeforeApproval checks the name if there is no answer yet. An uncertain answer stops this
// approval, so that the approver reads it before approving again.
func (s *Service) nameBeforeApproval(
	ctx context.Context,
	org flex.OrgID,
	id flex.TransactionID,
) error {
	c, err := s.checkName(ctx, org, id, false)
	if err != nil || c == nil {
		return err
	}

	// A match needs no second approval. A mismatch is refused later, by checkNameApproval.
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
