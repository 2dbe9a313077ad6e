package main

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/grid"
	"flexd/internal/wire"
)

// offerCommand is `flexd offer`.
type offerCommand struct {
	Stack  offerStack  `cmd:"" help:"Print what can be offered in a window: for each confidence a power and its price. Example: flexd offer stack --direction down --from 2026-01-16T17:00:00Z --to 2026-01-16T19:00:00Z --service dfs --format csv"`
	Make   offerMake   `cmd:"" help:"Make an offer for a window with a confidence."`
	List   offerList   `cmd:"" help:"The newest offers, with the accepted part and the outturn."`
	Accept offerAccept `cmd:"" help:"Record that an offer was accepted: it becomes an instruction. With --dry-run, show what the instruction would do."`
}

// offerWindow has the flags of an offer's window.
type offerWindow struct {
	ofOrg
	Direction string    `help:"To draw less or more: ${enum}." enum:"down,up" default:"down"`
	Service   string    `help:"What it is for: ${enum}." enum:"wholesale,cm,dno,dfs,lcm,sffr,other" default:"other"`
	Group     string    `help:"Only sites of this constraint group." placeholder:"NAME"`
	GSPGroup  string    `name:"gsp-group" help:"Only sites of this GSP group, such as _C." placeholder:"GROUP"`
	From      time.Time `help:"When it begins, as in 2026-01-16T17:00:00Z: a half-hour of today or tomorrow." required:""`
	To        time.Time `help:"When it ends, on the same day in London." required:""`
	Format    string    `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON      bool      `help:"The same as --format json." name:"json"`
}

// offer returns the flags' offer.
func (o *offerWindow) offer(confidence int) flex.Offer {
	return contract.OfferOf(&wire.OfferRequest{
		Service:        o.Service,
		Direction:      o.Direction,
		StartTimestamp: wire.At(o.From),
		EndTimestamp:   wire.At(o.To),
		Group:          o.Group,
		GSPGroup:       o.GSPGroup,
		Confidence:     confidence,
	}, commandLine)
}

func (o *offerWindow) print(c console, k *grid.Stack) error {
	if o.JSON || o.Format == "json" {
		return c.json(contract.OfferStack(k))
	}

	if o.Format == "csv" {
		return k.WriteCSV(c.out)
	}

	if !k.ID.IsZero() {
		fmt.Fprintf(
			c.out,
			"offered %s: %g kW with a confidence of %d %%, at £%.2f/MWh\n",
			k.ID,
			k.Power.KW(),
			k.Confidence,
			k.Price.GBPPerMWh(),
		)
	}

	if reason := k.TooFew(); reason != "" {
		fmt.Fprintf(c.out, "nothing can be offered: %s\n", reason)
		return nil
	}

	fmt.Fprintf(c.out, "learned from %d days\n", k.Days)
	reached := k.Reliability().Kept

	return table(
		c,
		k.Rungs,
		"CONFIDENCE %\tMW\tGBP/MWH\tKEPT %",
		func(r grid.Rung) []any {
			share := 0.0
			for i, rung := range k.Rungs {
				if rung.Confidence == r.Confidence {
					share = 100 * reached[i]
				}
			}

			return []any{
				r.Confidence,
				fmt.Sprintf("%.3f", r.Power.KW()/1000),
				fmt.Sprintf("%.2f", r.Price.GBPPerMWh()),
				fmt.Sprintf("%.1f", share),
			}
		},
	)
}

// offerStack is `flexd offer stack`.
type offerStack struct{ offerWindow }

// Run prints the possible offers. Nothing is stored.
func (o *offerStack) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	k, err := h.Grid.Stack(ctx, org.ID, o.offer(0))
	if err != nil {
		return err
	}

	return o.print(c, k)
}

// offerMake is `flexd offer make`.
type offerMake struct {
	offerWindow
	Confidence int `help:"The confidence in percent: how often the fleet should deliver at least the offer. 50, 80, 90, 95 or 99." default:"90"`
}

// Run stores an offer.
func (o *offerMake) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	var k *grid.Stack
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:    commandLine,
			Act:    "make offer",
			Org:    org.ID,
			Detail: o.Service,
		},
		func() error {
			k, err = h.Grid.MakeOffer(ctx, org.ID, o.offer(o.Confidence))
			return err
		},
	)

	if err != nil {
		return err
	}

	return o.print(c, k)
}

// offerList is `flexd offer list`.
type offerList struct {
	ofOrg
	Limit  listLimit `help:"How many at most." default:"20"`
	Format string    `help:"As text, csv or json." enum:"text,csv,json" default:"text"`
	JSON   bool      `help:"The same as --format json." name:"json"`
}

// Run prints offers.
func (o *offerList) Run(ctx context.Context, c console) error {
	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()
	p, err := h.Grid.Offers(ctx, org.ID, flex.OfferID{}, int(o.Limit))
	if err != nil {
		return err
	}

	if o.JSON || o.Format == "json" {
		return c.json(contract.OfferPage(p))
	}

	if o.Format == "csv" {
		return p.WriteCSV(c.out)
	}

	fmt.Fprintf(
		c.out,
		"%d of %d offers; of %d whose day is over %d were kept\n",
		len(p.Offers),
		p.Total,
		p.Judged,
		p.Met,
	)

	return table(
		c,
		p.Offers,
		"ID\tFROM\tTO\tSERVICE\tDIRECTION\tCONFIDENCE %\tKW\tACCEPTED KW\tCAME KW",
		func(l grid.OfferLine) []any {
			accepted, actual := "-", "-"
			if !l.AcceptedAt.IsZero() {
				accepted = fmt.Sprint(l.Accepted.KW())
			}

			if l.Over {
				actual = fmt.Sprint(l.Actual.KW())
			}

			return []any{
				l.ID,
				l.From,
				l.To,
				l.Service,
				grid.Direction(l.Up),
				l.Confidence,
				l.Power.KW(),
				accepted,
				actual,
			}
		},
	)
}

// offerAccept is `flexd offer accept`.
type offerAccept struct {
	ofOrg
	ID      flex.OfferID `arg:"" help:"The offer's id."`
	PowerKW *float64     `name:"power-kw" help:"The accepted power in kW, above 0; the whole offer if not given." placeholder:"KW"`
	Reason  string       `help:"The reason, for other operators." default:"an offer was accepted"`
	DryRun  bool         `name:"dry-run" help:"Say what the instruction would do, and send nothing."`
	JSON    bool         `help:"Print JSON." name:"json"`
}

// part returns how much of the offer was accepted; 0, without the flag, means all of it. A
// flag that says 0 is refused.
func (o *offerAccept) part() (flex.Watts, error) {
	if o.PowerKW == nil {
		return 0, nil
	}

	power := flex.FromKW(*o.PowerKW)
	if power <= 0 {
		return 0, flex.Fail(
			flex.Invalid,
			"--power-kw is %g: it should be above 0; an offer of which nothing was accepted is left alone",
			*o.PowerKW,
		)
	}

	return power, nil
}

// Run makes an instruction of an offer.
func (o *offerAccept) Run(ctx context.Context, c console) error {
	part, err := o.part()
	if err != nil {
		return err
	}

	h, org, err := o.openOrg(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	offer, err := h.Grid.Offer(ctx, org.ID, o.ID)
	if err != nil {
		return err
	}

	power, err := grid.Accepted(
		&offer,
		part,
		o.Reason,
		commandLine,
	)

	if err != nil {
		return err
	}

	var p *control.Preview
	if o.DryRun {
		p, err = h.Control.PreviewInstruction(ctx, org.ID, power)
	} else {
		err = h.Access.Act(
			ctx,
			flex.AuditEntry{
				Who:     commandLine,
				Act:     "accept offer",
				Org:     org.ID,
				Subject: o.ID.String(),
				Detail:  o.Reason,
			},
			func() error {
				p, err = h.Control.SendInstruction(ctx, org.ID, power)
				return err
			},
		)
	}

	if err != nil {
		return err
	}

	if o.JSON {
		return c.json(contract.InstructionPreview(p))
	}

	return printPreview(c, p)
}
