package reward

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Limits of sending e-mails.
const (
	mailsMax  = 3 // sent one after the other within their lease, however slow the relay is
	mailLease = 2 * time.Minute
	mailTries = 6
	mailPause = time.Minute // doubled with every try
)

// baseMark is a placeholder in a queued mail for the address of the service, which the process that
// sends it knows. The one that queues it may be a command that does not.
const baseMark = "{base-url}"

// SendMail sends the e-mails that are due. A relay that is down is tried again for about an hour.
// Without a relay, mails wait for a process that has one, as long as the links in them live.
func (s *Service) SendMail(ctx context.Context) (worker.Report, error) {
	if s.Mail == nil {
		return s.dropMails(ctx)
	}

	var mails []store.Mail
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		mails, err = all.TakeMail(ctx, mailsMax, mailLease)
		return err
	})

	if err != nil {
		return worker.Report{}, err
	}

	for _, m := range mails {
		problem := s.Mail(
			ctx,
			m.To,
			m.Subject,
			strings.ReplaceAll(m.Text, baseMark, s.BaseURL),
		)

		err := s.DB.WriteAll(ctx, func(all *store.All) error {
			if problem == nil {
				return all.MailDone(ctx, m, "")
			}

			if m.Tries >= mailTries {
				return all.MailDone(ctx, m, withoutAddress(problem, m.To))
			}

			return all.MailAgain(
				ctx,
				m,
				all.Now().Add(mailPause<<(m.Tries-1)),
				withoutAddress(problem, m.To),
			)
		})
		if err != nil {
			return worker.Report{}, err
		}
	}

	return worker.Report{
		Count: len(mails),
		More:  len(mails) == mailsMax,
	}, nil
}

// withoutAddress is a relay's error, which is kept for good, without the address that relays
// like to repeat.
func withoutAddress(problem error, to flex.Personal) string {
	if to.Reveal() == "" {
		return problem.Error()
	}
	return strings.ReplaceAll(problem.Error(), to.Reveal(), "the recipient")
}

// dropMails gives up mails that no process could send as long as the links in them lived.
func (s *Service) dropMails(ctx context.Context) (worker.Report, error) {
	var n int64
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		n, err = all.DropMails(
			ctx,
			all.Now().Add(-MailLinkLife),
			"no process with a mail relay ran while it waited",
		)

		return err
	})

	return worker.Report{Count: int(n)}, err
}

// notice is a mail that tells a site's user something of their money.
type notice struct {
	subject string
	text    string
	// goes to addresses too that the user had a short time ago
	former bool
}

// notify queues the notice. It returns to how many addresses; none is not a failure, and the
// caller says so.
func notify(
	ctx context.Context,
	tx *store.Tx,
	site flex.Site,
	n notice,
) (int, error) {
	var to []flex.Personal
	if site.Email.Reveal() != "" {
		to = append(to, site.Email)
	}

	if n.former {
		former, err := tx.FormerEmails(ctx, site.ID, tx.Now().Add(-formerFor))
		if err != nil {
			return 0, err
		}

		for _, f := range former {
			if !slices.Contains(to, f.Email) {
				to = append(to, f.Email)
			}
		}
	}

	var sent int
	for _, address := range to {
		if err := tx.AddMail(ctx, store.Mail{
			SiteID:  site.ID,
			To:      address,
			Subject: n.subject,
			Text:    n.text,
		}); err != nil {
			return sent, err
		}

		sent++
	}

	return sent, nil
}

// formerFor is how long notices of changes still go to an address that was replaced.
const formerFor = 30 * 24 * time.Hour

// when writes an instant for a user.
func when(t time.Time) string {
	return flex.Clock(t, flex.London, "2 January 2006, 15:04")
}

// linkIn makes a link to the balance page that goes into a mail.
func (s *Service) linkIn(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (string, error) {
	token, err := s.token()
	if err != nil {
		return "", err
	}

	l := store.BalanceLink{
		Hash:      hashOf(token),
		SiteID:    site,
		ExpiresAt: tx.Now().Add(MailLinkLife),
		Setup:     true,
		TwoFactor: true,
	}

	if err := tx.AddBalanceLink(ctx, l); err != nil {
		return "", fmt.Errorf("keep the link of a mail: %w", err)
	}

	return baseMark + Root + token, nil
}
