package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"flexd/internal/app"
	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/product"
)

// productCommand is `flexd product`.
type productCommand struct {
	Import   productImport   `cmd:"" help:"Import products of DFS or of a distribution operator, and invite the households of their scope: CSV with the columns reference, service, start_timestamp, end_timestamp, volume_kw and price_gbp_per_mwh and, if they are needed, direction (down, up), availability_gbp_per_mw_per_hour, baseline (mean, mid_8_of_10, nominated), participation (opt_in, opt_out), answer_by, group and gsp_group."`
	List     productList     `cmd:"" help:"Products, the newest first."`
	Show     productShow     `cmd:"" help:"Show a product, who takes part, and what it earned."`
	Answer   productAnswer   `cmd:"" help:"Record for a site whether its household takes part."`
	Withdraw productWithdraw `cmd:"" help:"Withdraw a product: nothing is requested for it any more, and invited households are informed."`
}

type productImport struct {
	ofOrg
	form
	File   string `arg:"" help:"The CSV file; - for standard input." placeholder:"FILE"`
	DryRun bool   `help:"Say what it would do, and change nothing." name:"dry-run"`
}

// Run imports products.
func (o *productImport) Run(ctx context.Context, c console) error {
	products, err := readFile(o.File, func(in io.Reader) ([]flex.Product, error) {
		return product.Read(in, commandLine)
	})
	if err != nil {
		return err
	}

	if o.DryRun {
		h, org, err := o.openOrg(ctx)
		if err != nil {
			return err
		}

		defer h.Close()
		preview, err := h.Products.Preview(ctx, org.ID, products)
		if err != nil {
			return err
		}

		return o.printImported(c, preview)
	}

	return o.actOn(ctx, "import products", "", func(h *app.App, org flex.Org) error {
		preview, err := h.Products.Import(ctx, org.ID, products)
		if err != nil {
			return err
		}

		return o.printImported(c, preview)
	})
}

// importedRow is the effect of an import on a product.
type importedRow struct {
	ID        string    `json:"product_id"`
	Reference string    `json:"reference"`
	Act       string    `json:"act"`
	Invited   int       `json:"num_invited"`
	AnswerBy  time.Time `json:"answer_by"`
}

func (f form) printImported(c console, imported []product.Imported) error {
	rows := []importedRow{}
	for _, p := range imported {
		rows = append(rows, importedRow{
			ID:        p.ID.String(),
			Reference: p.Reference,
			Act:       p.Act,
			Invited:   p.Invited,
			AnswerBy:  p.AnswerBy,
		})
	}

	return list(
		c,
		f.JSON,
		rows,
		"REFERENCE\tIT IS\tINVITED\tANSWERS UNTIL",
		func(p importedRow) []any {
			return []any{p.Reference, p.Act, p.Invited, p.AnswerBy}
		},
	)
}

type productList struct {
	ofOrg
	Service string    `help:"Only products of this service." enum:",wholesale,cm,dno,dfs,lcm,sffr,other" default:""`
	State   string    `help:"Only products in this state." enum:",open,sent,over,failed,withdrawn" default:""`
	Limit   listLimit `help:"How many at most." default:"20"`
	JSON    bool      `help:"Print as JSON." name:"json"`
}

// Run lists products.
func (o *productList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	p, err := h.Products.List(ctx, org.ID, flex.ProductSearch{
		Service: o.Service,
		State:   flex.ProductState(o.State),
		Limit:   int(o.Limit),
	})
	if err != nil {
		return err
	}
	if o.JSON {
		return c.json(contract.ProductPage(&p))
	}

	fmt.Fprintf(c.out, "%d of %d products\n", len(p.Products), p.Total)

	return table(
		c,
		p.Products,
		"ID\tREFERENCE\tSTATE\tFROM\tTO\tSERVICE\tKW\tGBP/MWH\tINVITED\tTAKE PART",
		func(l product.Line) []any {
			return []any{
				l.ID,
				l.Reference,
				l.State,
				l.From,
				l.To,
				l.Service,
				l.Change.KW(),
				l.Price.GBPPerMWh(),
				l.Answers.Invited,
				l.Answers.TakesPart,
			}
		},
	)
}

// productNamed is a product that a command names.
type productNamed struct {
	ofOrg
	ID string `arg:"" help:"The product's id." placeholder:"ID"`
}

// id reads the id.
func (o *productNamed) id() (flex.ProductID, error) {
	var id flex.ProductID
	err := id.UnmarshalText([]byte(o.ID))
	return id, err
}

type productShow struct {
	productNamed
	always
}

// Run prints a product's report as JSON.
func (o *productShow) Run(ctx context.Context, c console) error {
	id, err := o.id()
	if err != nil {
		return err
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	r, err := h.Products.Report(
		ctx,
		org.ID,
		id,
		flex.SiteID{},
		1000,
	)
	if err != nil {
		return err
	}

	return c.json(contract.ProductReport(&r))
}

type productAnswer struct {
	productNamed
	Site string `arg:"" help:"The site's id." placeholder:"SITE"`
	Out  bool   `help:"The household does not take part; without this flag it does."`
}

// Run notes an answer.
func (o *productAnswer) Run(ctx context.Context) error {
	id, err := o.id()
	if err != nil {
		return err
	}

	var site flex.SiteID
	if err := site.UnmarshalText([]byte(o.Site)); err != nil {
		return err
	}

	return o.actOn(ctx, "answer product", o.ID, func(h *app.App, org flex.Org) error {
		_, _, err := h.Products.Answer(
			ctx,
			org.ID,
			id,
			site,
			!o.Out,
			commandLine,
		)
		return err
	})
}

type productWithdraw struct{ productNamed }

// Run withdraws a product.
func (o *productWithdraw) Run(ctx context.Context, c console) error {
	id, err := o.id()
	if err != nil {
		return err
	}

	return o.actOn(ctx, "withdraw product", o.ID, func(h *app.App, org flex.Org) error {
		before, err := h.Products.Report(ctx, org.ID, id, flex.SiteID{}, 1)
		if err != nil {
			return err
		}

		p, err := h.Products.Withdraw(ctx, org.ID, id, commandLine)
		if err != nil {
			return err
		}

		printWithdrawn(c.out, &p, &before)

		return nil
	})
}

// printWithdrawn prints the effect of a withdrawal on a product.
func printWithdrawn(out io.Writer, p *flex.Product, before *product.Report) {
	if before.State == flex.ProductWithdrawn {
		fmt.Fprintf(
			out,
			"product %s was withdrawn at %s by %s; nothing changed\n",
			p.Reference,
			p.WithdrawnAt.Format(time.RFC3339),
			p.WithdrawnBy,
		)

		return
	}

	notice := "it is not sent"
	if !p.Instruction.IsZero() {
		notice = "its instruction " + p.Instruction.String() + " is stopped"
	}

	fmt.Fprintf(
		out,
		"product %s is withdrawn: %s; sites that were invited, and are informed: %d\n",
		p.Reference,
		notice,
		before.Answers.Invited,
	)
}
