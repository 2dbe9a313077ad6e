package reward

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// Limits of links to the balance page, and of e-mailed codes.
const (
	// LinkLife is how long a link to the balance page is valid. It may be opened several
	// times.
	LinkLife = time.Hour
	// MailLinkLife is how long a link in an e-mail is valid.
	MailLinkLife = 48 * time.Hour
	// CodeLife is how long an e-mailed code can be entered.
	CodeLife = 10 * time.Minute
	// CodeTries is how often a code can be entered wrongly.
	CodeTries = 5
	// CodePause is the least time between two requests for a code.
	CodePause = time.Minute

	codeDigits = 6
)

// Root is the path under which the balance page answers.
const Root = "/balance/"

// LinkOptions are the options of a link that a client may choose.
type LinkOptions struct {
	// where the page leads back to; flexd appends nothing to it
	RedirectURI string
	// ask for an e-mailed code before bank account and withdrawal, even if the organisation
	// asks for none
	TwoFactor bool
	// the credential may make a link that needs no code, if the organisation asks for none
	MayPayOut        bool
	HideTransactions bool
	Setup            bool // begin with the bank account if there is none
}

// Link makes a link to the site's balance page.
func (s *Service) Link(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	o LinkOptions,
) (string, time.Time, error) {
	if err := checkRedirect(o.RedirectURI); err != nil {
		return "", time.Time{}, err
	}

	token, err := s.token()
	if err != nil {
		return "", time.Time{}, err
	}

	var expires time.Time
	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		record, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		expires = tx.Now().Add(LinkLife)
		l := store.BalanceLink{
			Hash:             hashOf(token),
			SiteID:           site,
			ExpiresAt:        expires,
			RedirectURI:      o.RedirectURI,
			HideTransactions: o.HideTransactions,
			Setup:            o.Setup,
			TwoFactor:        o.TwoFactor || !o.MayPayOut || !record.Settings.Payout.WithoutCode,
		}

		return tx.AddBalanceLink(ctx, l)
	})

	return s.BaseURL + Root + token, expires, err
}

// checkRedirect refuses an address that a browser would execute, such as javascript:.
func checkRedirect(uri string) error {
	wrong := func(format string, args ...any) error {
		return &flex.Error{
			Kind: flex.Invalid,
			Faults: []flex.Fault{
				{
					Loc:  []string{"query", "redirect_uri"},
					Msg:  fmt.Sprintf(format, args...),
					Type: "value_error.url",
				},
			},
		}
	}

	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return wrong("not an absolute URL, such as https://app.example.com/rewards")
	}

	if (u.Scheme == "http" || u.Scheme == "https") && u.Host == "" {
		return wrong("the URL names no host")
	}

	switch u.Scheme {
	case "javascript", "data", "vbscript", "file", "blob", "about":
		return wrong(
			"the URL must lead to a page or an app, not to %s:",
			u.Scheme,
		)
	}

	return nil
}

// token returns 256 random bits as text that a URL carries without escapes.
func (s *Service) token() (string, error) {
	var b [32]byte
	if _, err := io.ReadFull(s.DB.Random(), b[:]); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}

	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

func hashOf(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// Visit is a link opened in one browser.
type Visit struct {
	store.BalanceLink
	Page flex.PageSettings // of the organisation, with its name
	// the browser's secret, from its cookie; empty if it has none
	Browser string
}

// Confirmed reports whether the code was entered in this browser.
func (v Visit) Confirmed() bool {
	return v.Browser != "" &&
		subtle.ConstantTimeCompare(hashOf(v.Browser), v.ConfirmedBy) == 1
}

// NewBrowser makes the secret of a browser's cookie. A confirmation counts only in the browser
// with that secret.
func (s *Service) NewBrowser() (string, error) { return s.token() }

// Open returns the visit of a link's token by a browser. A token that is unknown, and one that
// has expired, are both NotFound.
func (s *Service) Open(
	ctx context.Context,
	token, browser string,
) (Visit, error) {
	var v Visit
	v.Browser = browser
	var err error
	err = s.DB.ReadAll(ctx, func(all *store.All) error {
		v.BalanceLink, err = all.BalanceLink(ctx, hashOf(token))
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, v.OrgID)
		if err != nil {
			return err
		}

		if !tx.Now().Before(v.ExpiresAt) {
			return flex.Fail(flex.NotFound, "this link is not known")
		}

		if _, err := tx.Site(ctx, v.SiteID); err != nil {
			return err
		}

		org, err := tx.OrgRecord(ctx)
		v.Page = pageOf(org)
		return err
	})

	return v, err
}

// pageOf returns the page settings of an organisation. Without a name in them, it is the one
// on its statements.
func pageOf(org flex.Org) flex.PageSettings {
	p := org.Settings.Page
	if p.Name == "" {
		p.Name = payerFor(org).Name
	}

	return p
}

// WayBack is where a page can lead whose link has expired.
type WayBack struct {
	Page        flex.PageSettings // of the organisation, with its name
	RedirectURI string            // where the link led back to
}

// WayBack returns the way back of a link, also of one whose time was over within the last day.
// Any other is NotFound.
func (s *Service) WayBack(
	ctx context.Context,
	token string,
) (WayBack, error) {
	var w WayBack
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		link, err := all.BalanceLink(ctx, hashOf(token))
		if err != nil {
			return err
		}

		tx, err := all.For(ctx, link.OrgID)
		if err != nil {
			return err
		}

		// It may be stored for longer, as only a new link clears old ones away.
		if tx.Now().After(link.ExpiresAt.AddDate(0, 0, 1)) {
			return flex.Fail(flex.NotFound, "this link is not known")
		}

		org, err := tx.OrgRecord(ctx)
		w = WayBack{
			Page:        pageOf(org),
			RedirectURI: link.RedirectURI,
		}

		return err
	})

	return w, err
}

// Account is what a visitor sees of the bank account.
type Account struct {
	Linked bool
	Ending string // the last digits of its number
	// PaidFrom is when something can be paid to it, if that is still to come.
	PaidFrom time.Time
}

// BalancePage is what the balance page shows.
type BalancePage struct {
	Info
	Progress
	Account Account
	// newest first, the latest hundred; none if the link hides them
	Transactions []ledger.Booked
	// an e-mailed code is needed for bank account and withdrawal
	NeedsCode   bool
	CodeSent    bool
	CanSendCode bool // there is an e-mail address and a way to send to it
}

const balanceTransactions = 100

// BalancePage returns what the visitor's balance page shows.
func (s *Service) BalancePage(
	ctx context.Context,
	v Visit,
) (BalancePage, error) {
	var p BalancePage
	err := s.DB.Read(ctx, v.OrgID, func(tx *store.Tx) error {
		site, err := tx.Site(ctx, v.SiteID)
		if err != nil {
			return err
		}

		record, err := tx.OrgRecord(ctx)
		if err != nil {
			return err
		}

		err = p.addMoney(ctx, tx, v.SiteID, record.Settings.Payout)
		if err != nil {
			return err
		}

		payee, err := tx.Payee(ctx, v.SiteID)
		if err != nil {
			return err
		}

		p.Account = accountOf(
			payee,
			payoutTerms(record.Settings.Payout),
			tx.Now(),
		)

		p.NeedsCode = v.TwoFactor && !v.Confirmed()
		p.CodeSent = v.CodeUntil.After(tx.Now())
		p.CanSendCode = s.Mail != nil && site.Email.Reveal() != ""

		if !v.HideTransactions {
			p.Transactions, _, err = tx.Transactions(
				ctx,
				v.SiteID,
				balanceTransactions,
				0,
			)
		}

		return err
	})

	return p, err
}

// addMoney fills in the site's balance and progress.
func (p *BalancePage) addMoney(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	settings flex.PayoutSettings,
) error {
	var err error
	p.Info, err = withdrawalInfo(ctx, tx, site)
	if err != nil {
		return err
	}

	p.Progress, err = progress(ctx, tx, site, p.Info, settings)

	return err
}

// accountOf is what a visitor sees of a payee, nil if there is none.
func accountOf(
	p *store.Payee,
	terms ledger.PayoutTerms,
	now time.Time,
) Account {
	var a Account
	if p == nil {
		return a
	}

	a = Account{Linked: true, Ending: p.Ending}
	if from := terms.PaidFrom(p.ChangedAt); from.After(now) {
		a.PaidFrom = from
	}

	return a
}

// newCode makes a code of random digits.
func (s *Service) newCode() (string, error) {
	var random [8]byte
	if _, err := io.ReadFull(s.DB.Random(), random[:]); err != nil {
		return "", fmt.Errorf("make a code: %w", err)
	}

	return codeOf(random), nil
}

// SendCode sends a code to the site's e-mail address, to be entered in the visitor's browser.
// The previous code is void.
func (s *Service) SendCode(ctx context.Context, v Visit) error {
	if s.Mail == nil {
		return flex.Fail(
			flex.Unavailable,
			"no code can be sent: this service has no way to send e-mail",
		)
	}
	if v.Browser == "" {
		return errNoCookie
	}

	code, err := s.newCode()
	if err != nil {
		return err
	}

	return s.DB.Write(ctx, v.OrgID, func(tx *store.Tx) error {
		site, err := tx.Site(ctx, v.SiteID)
		if err != nil {
			return err
		}

		// another code may have been sent since the link was opened
		locked, err := tx.LockBalanceLink(ctx, v.Hash)
		if err != nil {
			return err
		}

		v.BalanceLink = locked
		if err := checkSendLimits(ctx, tx, &v, site); err != nil {
			return err
		}

		v.CodeHash, v.CodeTries = codeHash(v, code), 0
		v.CodeUntil = tx.Now().Add(CodeLife)
		if err := tx.PutCode(ctx, v.BalanceLink); err != nil {
			return err
		}

		return tx.AddMail(ctx, store.Mail{
			SiteID: v.SiteID, To: site.Email, Subject: "Your code",
			Text: fmt.Sprintf(
				"Your code is %s.\n\nIt can be entered for %d minutes. If you did not ask for it, there is nothing to do.\n",
				code,
				CodeLife/time.Minute,
			),
		})
	})
}

// checkSendLimits fails if no code can be sent to the site's e-mail address now.
func checkSendLimits(
	ctx context.Context,
	tx *store.Tx,
	v *Visit,
	site flex.Site,
) error {
	if site.Email.Reveal() == "" {
		return flex.Fail(
			flex.Conflict,
			"no code can be sent: the site has no e-mail address",
		)
	}
	if v.CodeUntil.Sub(tx.Now()) > CodeLife-CodePause {
		return flex.Fail(
			flex.TooMany,
			"a code was sent a moment ago; another can be sent in a minute",
		)
	}

	return checkEmailSettled(ctx, tx, v.SiteID)
}

// codeOf makes decimal digits of random bits. Eight bytes leave no digit noticeably likelier.
func codeOf(random [8]byte) string {
	var n uint64
	for _, b := range random {
		n = n<<8 | uint64(b)
	}

	return fmt.Sprintf("%0*d", codeDigits, n%1_000_000)
}

// errNoCookie is the answer to a browser that keeps no cookies.
var errNoCookie = flex.Fail(
	flex.Conflict,
	"your browser keeps no cookies; allow them for this page, so that the code holds for this browser alone",
)

// checkEmailSettled fails if the address was replaced so recently that the code might go to whoever
// replaced it.
func checkEmailSettled(ctx context.Context, tx *store.Tx, site flex.SiteID) error {
	record, err := tx.OrgRecord(ctx)
	if err != nil {
		return err
	}

	cooling := payoutTerms(record.Settings.Payout).Cooling
	changes, err := tx.FormerEmails(ctx, site, tx.Now().Add(-cooling))
	if err != nil || len(changes) == 0 {
		return err
	}

	return flex.Fail(
		flex.Conflict,
		"your e-mail address was changed a short time ago; for your safety a code can be sent to it from %s",
		flex.Clock(
			changes[0].ChangedAt.Add(cooling),
			flex.London,
			"2 January, 15:04",
		),
	)
}

// codeHash binds the code to its link and to the browser for which it was requested.
func codeHash(v Visit, code string) []byte {
	text := append(append([]byte{}, v.Hash...), hashOf(v.Browser)...)
	h := sha256.Sum256(append(text, code...))
	return h[:]
}

// EnterCode confirms the visitor if the code is the one that was sent last. A wrong code is
// counted; after CodeTries of them only a new code is accepted. A visitor who is confirmed
// already stays so.
func (s *Service) EnterCode(ctx context.Context, v Visit, code string) error {
	if v.Browser == "" {
		return errNoCookie
	}

	var wrong error
	err := s.DB.Write(ctx, v.OrgID, func(tx *store.Tx) error {
		wrong = nil

		locked, err := tx.LockBalanceLink(ctx, v.Hash)
		if err != nil {
			return err
		}

		v.BalanceLink = locked
		switch {
		case v.Confirmed(): // the form was sent twice
			return nil

		case len(v.CodeHash) == 0 || !tx.Now().Before(v.CodeUntil):
			return flex.Fail(
				flex.Conflict,
				"there is no code to be entered, or its time is over; ask for a new one",
			)

		case v.CodeTries >= CodeTries:
			return flex.Fail(
				flex.TooMany,
				"the code was entered wrongly %d times; ask for a new one",
				CodeTries,
			)

		case subtle.ConstantTimeCompare(codeHash(v, code), v.CodeHash) == 1:
			v.CodeHash, v.ConfirmedBy = nil, hashOf(v.Browser)

		default:
			v.CodeTries++
			wrong = flex.Fail(
				flex.Malformed,
				"that is not the code; %d more tries",
				CodeTries-v.CodeTries,
			)
		}

		return tx.PutCode(ctx, v.BalanceLink) // a wrong attempt is stored too
	})

	if err != nil {
		return err
	}

	return wrong
}

// checkConfirmed fails if the visitor must enter a code and has not.
func (v Visit) checkConfirmed() error {
	if v.TwoFactor && !v.Confirmed() {
		return flex.Fail(
			flex.Forbidden,
			"enter the code that was sent to your e-mail address first",
		)
	}

	return nil
}
