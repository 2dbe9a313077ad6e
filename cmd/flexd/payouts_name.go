package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
	records "flexd/internal/store"
)

type payoutsHook struct {
	ofOrg
	form
	URL        string `arg:"" optional:"" help:"The endpoint. Without it and without --none the hook is shown."`
	SecretFile string `help:"A file with the secret that each request carries as a bearer token." placeholder:"FILE"`
	None       bool   `help:"Remove the hook: account names are no longer checked."`
}

// hookView is an organisation's hook as it is printed, without its secret.
type hookView struct {
	URL   string    `json:"url"` // empty if there is none
	SetAt time.Time `json:"set_at,omitzero"`
}

// show prints the hook.
func (p *payoutsHook) show(ctx context.Context, c console) error {
	h, org, err := p.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	var view hookView
	err = h.DB.Read(ctx, org.ID, func(tx *records.Tx) error {
		hook, err := tx.PayeeHook(ctx)
		if hook != nil {
			view = hookView{
				URL:   hook.URL,
				SetAt: hook.SetAt,
			}
		}

		return err
	})
	if err != nil {
		return err
	}

	if view.URL == "" {
		return p.print(c, view, "no hook: account names are not checked\n")
	}

	return p.print(
		c,
		view,
		"%s, set at %s\n",
		view.URL,
		view.SetAt.Format(time.RFC3339),
	)
}

// Run shows or sets the hook.
func (p *payoutsHook) Run(ctx context.Context, c console) error {
	removes := p.URL != "" && p.None
	lacksURL := p.URL == "" && p.SecretFile != ""
	if removes || lacksURL {
		return flex.Fail(flex.Invalid, "name the endpoint's URL with --secret-file, or --none")
	}

	if p.URL == "" && !p.None {
		return p.show(ctx, c)
	}

	secret := ""
	if p.URL != "" {
		content, err := os.ReadFile(p.SecretFile)
		if err != nil {
			return flex.Fail(flex.Invalid, "--secret-file: %v", err)
		}
		secret = strings.TrimSpace(string(content))
	}

	return p.actOn(
		ctx,
		"set the payee hook",
		p.URL,
		func(h *app.App, org flex.Org) error {
			if err := h.Reward.SetPayeeHook(ctx, org.ID, p.URL, secret); err != nil {
				return err
			}

			return p.print(c, hookView{URL: p.URL}, "kept\n")
		},
	)
}

type payoutsCheck struct {
	ofOrg
	form
	IDs []flex.TransactionID `arg:"" optional:"" name:"withdrawal" help:"Withdrawals, by their id."`
}

// Run checks the names one by one.
func (p *payoutsCheck) Run(ctx context.Context, c console) error {
	return p.actOn(
		ctx,
		"check names on accounts",
		"",
		func(h *app.App, org flex.Org) error {
			ids, err := p.withdrawals(ctx, h, org.ID)
			if err != nil {
				return err
			}

			var all error
			verdicts, message := []fields{}, ""

			for _, id := range ids[:min(len(ids), reward.NameChecksAtOnce)] {
				check, err := h.Reward.CheckName(ctx, org.ID, id)
				all = errors.Join(all, err)

				verdict := "not checked: there is no hook, or it does not wait to be approved"
				if check != nil {
					verdict = check.Verdict
				}

				verdicts = append(verdicts, fields{
					"transaction_id": id,
					"verdict":        verdict,
				})

				message += fmt.Sprintf("%s  %s\n", id, verdict)
			}

			if more := len(ids) - reward.NameChecksAtOnce; more > 0 {
				fmt.Fprintf(c.err, "%d more are not asked about yet: run it again\n", more)
			}

			return errors.Join(all, p.print(c, verdicts, "%s", message))
		},
	)
}

// withdrawals returns the withdrawals to check: those that are named, or all that wait and
// were not checked.
func (p *payoutsCheck) withdrawals(
	ctx context.Context,
	h *app.App,
	org flex.OrgID,
) ([]flex.TransactionID, error) {
	if len(p.IDs) > 0 {
		return p.IDs, nil
	}

	var ids []flex.TransactionID
	waiting, err := h.Reward.Payouts(ctx, org, ledger.PendingApproval)

	for _, w := range waiting {
		if !w.NameKnown {
			ids = append(ids, w.ID)
		}
	}

	return ids, err
}

type payoutsOverride struct {
	ofOrg
	ID     flex.TransactionID `arg:"" name:"withdrawal" help:"The withdrawal."`
	Reason string             `help:"Why it may be paid nevertheless; stored, and shown to the operator who approves it." required:"" placeholder:"TEXT"`
}

// Run overrides.
func (p *payoutsOverride) Run(ctx context.Context, c console) error {
	return p.actOn(
		ctx,
		"override the check of a name",
		p.ID.String(),
		func(h *app.App, org flex.Org) error {
			if err := h.Reward.OverrideName(
				ctx,
				org.ID,
				p.ID,
				commandLine,
				p.Reason,
			); err != nil {
				return err
			}

			_, err := fmt.Fprintln(c.out, "another operator may approve it")

			return err
		},
	)
}
