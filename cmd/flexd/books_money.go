package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"flexd/internal/app"
	"flexd/internal/books"
	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// amountForm is an amount such as 123.45 or 12, of at most a billion pounds.
var amountForm = regexp.MustCompile(`^[0-9]{1,10}(\.[0-9]{2})?$`)

// poundsFlag is an amount on the command line, in pounds and pence.
type poundsFlag flex.Pence

// UnmarshalText reads an amount such as 123.45 or 12. A comma is refused, because its meaning
// differs between countries.
func (p *poundsFlag) UnmarshalText(text []byte) error {
	if !amountForm.Match(text) {
		return fmt.Errorf(
			"an amount is written in pounds and pence, as in 123.45, not %q",
			text,
		)
	}
	integer, fraction, _ := strings.Cut(string(text), ".")
	pence, err := strconv.ParseInt(integer+(fraction + "00")[:2], 10, 64)
	*p = poundsFlag(pence)

	return err
}

type booksReceive struct {
	booksOrg
	form
	Counterparty string     `help:"The counterparty that paid." required:"" placeholder:"NAME"`
	Month        string     `help:"The month that it is for." required:"" placeholder:"YYYY-MM"`
	Amount       poundsFlag `help:"How much, in pounds and pence." required:"" placeholder:"123.45"`
	Reference    string     `help:"The payment's own reference: with counterparty and month it counts once." required:"" placeholder:"R"`
	On           string     `help:"The day on which it came; today if left out." placeholder:"YYYY-MM-DD"`
}

// receipt reads the flags.
func (b *booksReceive) receipt() (books.Receipt, error) {
	r := books.Receipt{
		Counterparty: b.Counterparty,
		Amount:       flex.Pence(b.Amount),
		Reference:    b.Reference,
		By:           commandLine,
	}

	var err error
	r.Month, err = ledger.ParseMonth(b.Month)
	if err != nil {
		return r, err
	}
	r.On, err = optionalDay("--on", b.On)

	return r, err
}

// Run books the receipt.
func (b *booksReceive) Run(ctx context.Context, c console) error {
	r, err := b.receipt()
	if err != nil {
		return err
	}

	subject := fmt.Sprintf(
		"%s %s %s %s",
		b.Counterparty,
		b.Month,
		b.Reference,
		r.Amount,
	)

	return b.of().actOn(
		ctx,
		"receive market money",
		subject,
		func(h *app.App, org flex.Org) error {
			posted, err := h.Books.Receive(ctx, org.ID, r)
			if err != nil {
				return err
			}

			return b.printPosted(c, posted, r.Amount)
		},
	)
}

func (f form) printPosted(c console, posted bool, amount flex.Pence) error {
	verb := "booked"
	if !posted {
		verb = "booked before, nothing changed"
	}

	return f.print(
		c,
		fields{"amount_pence": amount, "booked": posted},
		"%s  %s\n",
		amount,
		verb,
	)
}

type booksMarket struct {
	booksOrg
	JSON bool `help:"Print as JSON." name:"json"`
}

type marketRow struct {
	Counterparty string     `json:"counterparty"`
	Month        string     `json:"month"`
	Expected     flex.Pence `json:"expected_pence"`
	Received     flex.Pence `json:"received_pence"`
	WrittenOff   flex.Pence `json:"written_off_pence"`
	Difference   flex.Pence `json:"difference_pence"`
}

// Run prints the reconciliation.
func (b *booksMarket) Run(ctx context.Context, c console) error {
	return b.read(ctx, func(h *app.App, org flex.Org) error {
		money, err := h.Books.Reconciliation(ctx, org.ID)
		if err != nil {
			return err
		}

		rows := make([]marketRow, len(money))
		for i, m := range money {
			rows[i] = marketRow{
				m.Counterparty,
				m.Month.String(),
				m.Expected,
				m.Received,
				m.WrittenOff,
				m.Difference(),
			}
		}

		return list(
			c,
			b.JSON,
			rows,
			"COUNTERPARTY\tMONTH\tEXPECTED\tRECEIVED\tWRITTEN OFF\tDIFFERENCE",
			func(r marketRow) []any {
				return []any{
					r.Counterparty,
					r.Month,
					r.Expected,
					r.Received,
					r.WrittenOff,
					r.Difference,
				}
			},
		)
	})
}

type booksOwed struct {
	booksOrg
	AsOf string `help:"The last day that counts; today if left out." name:"as-of" placeholder:"YYYY-MM-DD"`
	JSON bool   `help:"Print as JSON." name:"json"`
}

// Run prints the amounts owed.
func (b *booksOwed) Run(ctx context.Context, c console) error {
	day, err := optionalDay("--as-of", b.AsOf)
	if err != nil {
		return err
	}

	return b.read(ctx, func(h *app.App, org flex.Org) error {
		o, err := h.Books.Owed(ctx, org.ID, day)
		if err != nil {
			return err
		}

		if b.JSON {
			return c.json(map[string]any{
				"as_of":             o.AsOf.String(),
				"sites":             o.Sites,
				"owed_pence":        o.Total,
				"age_days":          books.Ages,
				"owed_by_age_pence": o.ByAge,
				"in_flight_pence":   o.InFlight,
				"overdrawn_pence":   o.Overdraw,
			})
		}

		t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(
			t,
			"owed on %s\t%s\tto users of %d sites\n",
			o.AsOf,
			o.Total,
			o.Sites,
		)

		from := 0

		for i, sum := range o.ByAge {
			label := fmt.Sprintf("older than %d days", from-1)
			if i < len(books.Ages) {
				label = fmt.Sprintf("%d to %d days old", from, books.Ages[i])
				from = books.Ages[i] + 1
			}

			fmt.Fprintf(t, "  %s\t%s\t\n", label, sum)
		}

		fmt.Fprintf(
			t,
			"in flight to banks\t%s\t\nbalances below nothing\t%s\t\n",
			o.InFlight,
			o.Overdraw,
		)

		return t.Flush()
	})
}

type booksUnclaimed struct {
	booksOrg
	Move   bool   `help:"Move what is due to the account of unclaimed balances."`
	Reason string `help:"Why; needed to move." placeholder:"TEXT"`
	JSON   bool   `help:"Print as JSON." name:"json"`
}

type unclaimedRow struct {
	SiteID    flex.SiteID `json:"site_id"`
	Balance   flex.Pence  `json:"balance_pence"`
	LastMoved time.Time   `json:"last_moved_at"`
	Due       bool        `json:"due"`
}

// Run lists the unclaimed balances, or moves those that are due.
func (b *booksUnclaimed) Run(ctx context.Context, c console) error {
	if b.Move {
		return b.of().actOn(
			ctx,
			"move unclaimed balances",
			b.Reason,
			func(h *app.App, org flex.Org) error {
				moved, err := h.Books.MoveUnclaimed(
					ctx,
					org.ID,
					commandLine,
					b.Reason,
				)

				if err != nil {
					return err
				}

				return b.print(c, moved)
			},
		)
	}

	return b.read(ctx, func(h *app.App, org flex.Org) error {
		us, err := h.Books.Unclaimed(ctx, org.ID)
		if err != nil {
			return err
		}

		return b.print(c, us)
	})
}

func (b *booksUnclaimed) print(c console, us []books.Unclaimed) error {
	rows := make([]unclaimedRow, len(us))
	for i, u := range us {
		rows[i] = unclaimedRow{u.SiteID, u.Balance, u.LastMoved, u.Due}
	}

	return list(
		c,
		b.JSON,
		rows,
		"SITE\tBALANCE\tLAST MOVED\tDUE",
		func(r unclaimedRow) []any {
			return []any{r.SiteID, r.Balance, r.LastMoved, r.Due}
		},
	)
}

// giftFlags are the flags that every decision about money needs.
type giftFlags struct {
	form
	Amount    poundsFlag `help:"How much, in pounds and pence; at most the setting gift_limit_pence." required:"" placeholder:"5.00"`
	Reason    string     `help:"Why, as the user reads it." required:"" placeholder:"TEXT"`
	Reference string     `help:"With site and kind it counts once; without, each time." placeholder:"R"`
}

type booksGoodwill struct {
	store
	Name string      `arg:"" name:"org" help:"The organisation's name."`
	Site flex.SiteID `arg:"" help:"The site, by its id."`
	giftFlags
}

// Run gives goodwill.
func (b *booksGoodwill) Run(ctx context.Context, c console) error {
	return b.bookGift(
		ctx,
		c,
		ofOrg{store: b.store, Org: b.Name},
		b.giftFlags.gift(b.Site, books.Goodwill),
	)
}

func (f giftFlags) gift(site flex.SiteID, kind ledger.Kind) books.ManualPosting {
	return books.ManualPosting{
		SiteID:    site,
		Kind:      kind,
		Amount:    flex.Pence(f.Amount),
		Reason:    f.Reason,
		Reference: f.Reference,
		By:        commandLine,
	}
}

func (f form) bookGift(
	ctx context.Context,
	c console,
	orgStore ofOrg,
	g books.ManualPosting,
) error {
	return orgStore.actOn(
		ctx,
		string(g.Kind),
		fmt.Sprintf("%s %s: %s", g.SiteID, g.Amount, g.Reason),
		func(h *app.App, org flex.Org) error {
			t, err := h.Books.Give(ctx, org.ID, g)
			return f.printTransaction(c, t, err)
		},
	)
}

func (f form) printTransaction(c console, t ledger.Booked, err error) error {
	if err != nil {
		return err
	}

	return f.print(
		c,
		fields{
			"transaction_id": t.ID,
			"amount_pence":   t.Credit(),
			"kind":           t.Kind,
		},
		"%s  %s  %s\n",
		t.ID,
		t.Credit(),
		t.Kind,
	)
}

type booksBonus struct {
	store
	Name string      `arg:"" name:"org" help:"The organisation's name."`
	Site flex.SiteID `arg:"" help:"The site, by its id."`
	Kind string      `help:"signup, referred or referrer." enum:"signup,referred,referrer" required:""`
	giftFlags
}

// bonuses are the kinds of bonus by their word on the command line.
var bonuses = map[string]ledger.Kind{
	"signup":   books.Signup,
	"referred": books.Referred,
	"referrer": books.Referrer,
}

// Run gives a bonus.
func (b *booksBonus) Run(ctx context.Context, c console) error {
	return b.bookGift(
		ctx,
		c,
		ofOrg{store: b.store, Org: b.Name},
		b.giftFlags.gift(b.Site, bonuses[b.Kind]),
	)
}

type booksWriteOff struct {
	store
	Name         string       `arg:"" name:"org" help:"The organisation's name."`
	Site         *flex.SiteID `help:"The site whose balance is below zero." placeholder:"SITE" xor:"whose"`
	Counterparty string       `help:"The counterparty that does not pay; with --month and --reference." placeholder:"NAME" xor:"whose"`
	Month        string       `help:"The month that is not paid for." placeholder:"YYYY-MM"`
	giftFlags
}

// Run writes off.
func (b *booksWriteOff) Run(ctx context.Context, c console) error {
	orgStore := ofOrg{store: b.store, Org: b.Name}
	if b.Site != nil {
		return orgStore.actOn(
			ctx,
			"write off",
			fmt.Sprintf("%s %s: %s", b.Site, flex.Pence(b.Amount), b.Reason),
			func(h *app.App, org flex.Org) error {
				t, err := h.Books.WriteOff(
					ctx,
					org.ID,
					b.gift(*b.Site, ledger.Correction),
				)

				return b.printTransaction(c, t, err)
			},
		)
	}

	return b.receivable(ctx, c, orgStore)
}

// receivable writes off an amount that a counterparty does not pay.
func (b *booksWriteOff) receivable(
	ctx context.Context,
	c console,
	orgStore ofOrg,
) error {
	r := books.Receipt{
		Counterparty: b.Counterparty,
		Amount:       flex.Pence(b.Amount),
		Reference:    b.Reference,
		By:           commandLine,
	}

	var err error
	r.Month, err = ledger.ParseMonth(b.Month)
	if err != nil {
		return err
	}

	return orgStore.actOn(
		ctx,
		"write off",
		fmt.Sprintf(
			"%s %s %s: %s",
			b.Counterparty,
			b.Month,
			r.Amount,
			b.Reason,
		),
		func(h *app.App, org flex.Org) error {
			posted, err := h.Books.WriteOffReceivable(ctx, org.ID, r, b.Reason)
			if err != nil {
				return err
			}

			return b.printPosted(c, posted, r.Amount)
		},
	)
}
