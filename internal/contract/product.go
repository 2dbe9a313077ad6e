package contract

import (
	"time"

	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/wire"
)

// The ways to take part in a product.
const (
	optIn  = "opt_in"
	optOut = "opt_out"
)

// ProductOf reads a product.
func ProductOf(in *wire.ProductRequest, who string) flex.Product {
	p := flex.Product{
		Reference: in.Reference,
		Service:   in.Service,
		Baseline:  in.Baseline,
		Scope:     flex.Scope{Group: in.Group, GSPGroup: in.GSPGroup},
		Span: flex.Span{
			From: in.StartTimestamp.UTC(),
			To:   in.EndTimestamp.UTC(),
		},
		Change:       -flex.FromKW(in.VolumeKW),
		Price:        flex.FromGBPPerMWh(in.PriceGBPPerMWh),
		Availability: flex.FromGBPPerMWh(in.AvailabilityGBPPerMWPerHour),
		OptOut:       in.Participation == optOut,
		AnswerBy:     in.AnswerBy.Time,
		Who:          who,
	}

	if in.Direction == "up" {
		p.Change = -p.Change
	}

	return p
}

// ProductsImported is what an import did, or would do.
func ProductsImported(done []product.Imported) wire.ProductsImported {
	d := wire.ProductsImported{Products: []wire.ProductImported{}}
	for i := range done {
		p := &done[i]
		d.Products = append(d.Products, wire.ProductImported{
			ID:         p.ID,
			Reference:  p.Reference,
			Act:        p.Act,
			NumInvited: p.Invited,
			AnswerBy:   wire.At(p.AnswerBy),
		})
	}

	return d
}

// ProductPage is a page of products.
func ProductPage(p *product.Page) wire.ProductPage {
	d := wire.ProductPage{
		Products: []wire.Product{},
		NumTotal: p.Total,
		Next:     p.Next,
	}

	for i := range p.Products {
		d.Products = append(d.Products, productLine(&p.Products[i]))
	}

	return d
}

func productLine(p *product.Line) wire.Product {
	d := wire.Product{
		ID:             p.ID,
		Reference:      p.Reference,
		State:          string(p.State),
		Service:        p.Service,
		Direction:      directionOf(&p.Product),
		StartTimestamp: wire.At(p.From),
		EndTimestamp:   wire.At(p.To),
		VolumeKW:       p.Volume().KW(),
		PriceGBPPerMWh: p.Price.GBPPerMWh(),
		Baseline:       p.Baseline,
		Participation:  participationOf(&p.Product),
		AnswerBy:       wire.At(p.AnswerBy),
		Group:          p.Scope.Group,
		GSPGroup:       p.Scope.GSPGroup,
		Who:            p.Who,
		MadeAt:         wire.At(p.MadeAt),
		WithdrawnAt:    wire.At(p.WithdrawnAt),
		WithdrawnBy:    p.WithdrawnBy,
		InstructionID:  p.Instruction,
		Problem:        p.Problem,
		NumInvited:     p.Answers.Invited,
		NumAnswered:    p.Answers.Answered,
		NumTakePart:    p.Answers.TakesPart,
	}

	d.AvailabilityGBPPerMWPerHour = p.Availability.GBPPerMWh()

	return d
}

func directionOf(p *flex.Product) string {
	if p.Change > 0 {
		return "up"
	}
	return "down"
}

func participationOf(p *flex.Product) string {
	if p.OptOut {
		return optOut
	}
	return optIn
}

// ProductReport is a product with what came of it.
func ProductReport(r *product.Report) wire.ProductReport {
	d := wire.ProductReport{
		Product:         productLine(&r.Line),
		AskedKWh:        r.Asked.KWh(),
		FlexKWh:         r.Settled.Flex.KWh(),
		NumEvents:       r.Settled.Found,
		NumWaiting:      r.Settled.Waiting,
		Delivered:       r.Delivered(),
		UtilisationGBP:  r.Utilisation.GBP(),
		AvailabilityGBP: r.Availability.GBP(),
		Sites:           []wire.ProductSite{},
		Next:            r.Next,
	}

	for _, s := range r.Sites {
		d.Sites = append(d.Sites, wire.ProductSite{
			SiteID:     s.Site,
			InvitedAt:  wire.At(s.InvitedAt),
			TakesPart:  s.TakesPart,
			AnsweredAt: wire.At(s.AnsweredAt),
			AnsweredBy: s.AnsweredBy,
		})
	}

	return d
}

// Invitations are what a site was invited to.
func Invitations(found []flex.Invitation, now time.Time) wire.Invitations {
	d := wire.Invitations{Products: []wire.Invitation{}}
	for i := range found {
		d.Products = append(d.Products, Invitation(&found[i], now))
	}

	return d
}

// Invitation is a product that a site was invited to, and its part in it.
func Invitation(v *flex.Invitation, now time.Time) wire.Invitation {
	return wire.Invitation{
		ID:             v.ID,
		Reference:      v.Reference,
		State:          string(v.State(now)),
		Service:        v.Service,
		Direction:      directionOf(&v.Product),
		StartTimestamp: wire.At(v.From),
		EndTimestamp:   wire.At(v.To),
		PriceGBPPerMWh: v.Price.GBPPerMWh(),
		Participation:  participationOf(&v.Product),
		AnswerBy:       wire.At(v.AnswerBy),
		TakesPart:      v.TakesPart,
		AnsweredAt:     wire.At(v.AnsweredAt),
	}
}
