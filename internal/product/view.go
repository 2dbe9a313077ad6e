package product

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Line is a product with who was invited to it.
type Line struct {
	flex.Product
	State   flex.ProductState
	Answers flex.ProductAnswers
}

// Page is a page of products, the newest first.
type Page struct {
	Products []Line
	Total    int
	Next     flex.ProductID // zero on the last page
}

// List returns the organisation's products that are asked for, a page of them.
func (s *Service) List(
	ctx context.Context,
	org flex.OrgID,
	search flex.ProductSearch,
) (Page, error) {
	var p Page
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		p, err = productPage(ctx, tx, search)
		return err
	})

	return p, err
}

func productPage(
	ctx context.Context,
	tx *store.Tx,
	search flex.ProductSearch,
) (Page, error) {
	limit := search.Limit
	search.Limit++
	found, total, err := tx.Products(ctx, search)
	if err != nil {
		return Page{}, err
	}

	var p Page
	p.Total = total
	if len(found) > limit {
		found = found[:limit]
		p.Next = found[limit-1].ID
	}

	ids := make([]flex.ProductID, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}

	answers, err := tx.ProductAnswers(ctx, ids...)
	if err != nil {
		return p, err
	}

	for _, one := range found {
		p.Products = append(p.Products, Line{
			one,
			one.State(tx.Now()),
			answers[one.ID],
		})
	}

	return p, nil
}

// View is the products of an organisation, for the console.
type View struct {
	Orgs []flex.Org
	Org  flex.OrgID
	Page
}

// View returns the products of an organisation, of the first if none is chosen.
func (s *Service) View(
	ctx context.Context,
	chosen flex.OrgID,
	search flex.ProductSearch,
) (View, error) {
	var v View
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		orgs, tx, err := all.Choose(ctx, chosen)
		v = View{Orgs: orgs}
		if tx == nil || err != nil {
			return err
		}

		v.Org = tx.Org()
		v.Page, err = productPage(ctx, tx, search)
		return err
	})

	return v, err
}

// Report is a product with what came of it.
type Report struct {
	Line
	At      time.Time
	Asked   flex.WattHours // the volume over the window, without a sign
	Settled flex.InstructedEvents
	// what it earned: for what was delivered, before loss factors and the household's share, and for being
	// available, of which a part as large as that of the volume that was delivered
	Utilisation  flex.MicroPounds
	Availability flex.MicroPounds
	Sites        []flex.Participation // a page of those who were invited, by their ids
	Next         flex.SiteID          // zero on the last page
}

// Delivered is what was delivered of what was asked for, 0 to 1, by what is settled.
func (r *Report) Delivered() float64 {
	given := r.Settled.Flex
	if r.Change < 0 {
		given = -given
	}
	if given <= 0 || r.Asked <= 0 {
		return 0
	}

	return min(1, float64(given)/float64(r.Asked))
}

// Report says what a product asked for, who takes part and what it earned, with a page of those who
// were invited: those after a site, if it is given.
func (s *Service) Report(
	ctx context.Context,
	org flex.OrgID,
	id flex.ProductID,
	after flex.SiteID,
	limit int,
) (Report, error) {
	var r Report
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		r = Report{At: tx.Now()}

		var err error
		r.Product, err = tx.Product(ctx, id)
		if err != nil {
			return err
		}

		r.State = r.Product.State(r.At)
		answers, err := tx.ProductAnswers(ctx, id)
		if err != nil {
			return err
		}
		r.Answers = answers[id]

		r.Sites, err = tx.Participations(ctx, id, after, limit+1)
		if err != nil {
			return err
		}
		if len(r.Sites) > limit {
			r.Sites = r.Sites[:limit]
			r.Next = r.Sites[limit-1].Site
		}

		return r.read(ctx, tx)
	})

	return r, err
}

// read reads what came of a product.
func (r *Report) read(ctx context.Context, tx *store.Tx) error {
	seconds := int64(r.Len() / time.Second)
	r.Asked = flex.WattHours(int64(r.Volume()) * seconds / 3600)
	if r.Instruction.IsZero() {
		return nil
	}

	var err error
	r.Settled, err = tx.InstructedEvents(ctx, r.Instruction)
	r.Utilisation = r.Settled.Revenue
	megawattHours := float64(r.Asked) / 1e6
	r.Availability = flex.MicroPounds(
		float64(r.Product.Availability)*megawattHours*r.Delivered() + 0.5,
	)

	return err
}

// OrgOf returns whose a product is.
func (s *Service) OrgOf(
	ctx context.Context,
	id flex.ProductID,
) (flex.OrgID, error) {
	var org flex.OrgID
	err := s.DB.ReadAll(ctx, func(all *store.All) error {
		var err error
		org, err = all.ProductOrg(ctx, id)
		return err
	})

	return org, err
}
