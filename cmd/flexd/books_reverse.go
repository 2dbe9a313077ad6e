package main

import (
	"context"
	"fmt"

	"flexd/internal/app"
	"flexd/internal/books"
	"flexd/internal/flex"
)

type booksReverse struct {
	store
	form
	Name        string             `arg:"" name:"org" help:"The organisation's name."`
	Transaction flex.TransactionID `arg:"" help:"The transaction, by its id in flexd books export."`
	Reason      string             `help:"Why; of a goodwill or bonus the user reads it." required:"" placeholder:"TEXT"`
}

// Run reverses the transaction.
func (b *booksReverse) Run(ctx context.Context, c console) error {
	r := books.Reversal{
		Of:     b.Transaction,
		Reason: b.Reason,
		By:     commandLine,
	}

	return ofOrg{store: b.store, Org: b.Name}.actOn(
		ctx,
		"reverse a transaction",
		fmt.Sprintf("%s: %s", r.Of, r.Reason),
		func(h *app.App, org flex.Org) error {
			t, posted, err := h.Books.Reverse(ctx, org.ID, r)
			if err != nil {
				return err
			}

			verb := "reversed"
			if !posted {
				verb = "reversed before, nothing changed"
			}

			return b.print(
				c,
				fields{
					"transaction_id": t.ID,
					"reverses":       r.Of,
					"booked":         posted,
				},
				"%s  %s\n",
				t.ID,
				verb,
			)
		},
	)
}
