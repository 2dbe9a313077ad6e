package api

import (
	"strings"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/wire"
)

// importProducts answers POST /grid/products. Who imports products is kept in the audit log.
func (s *Server) importProducts(r *request) (answer, error) {
	in, q := body[wire.ProductsRequest](r), query[wire.ProductImportQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	products, err := productsOf(&in, "credential "+r.who.Username)
	if err != nil {
		return answer{}, err
	}

	answered := answersWith(r, func(done []product.Imported) answer {
		return ok(contract.ProductsImported(done))
	})

	var done []product.Imported
	if q.DryRun {
		done, err = s.Products.Preview(r.Context(), r.who.Org, products)
	} else {
		act := r.auditEntry("import products", "", "")
		err = s.Access.Act(r.Context(), act, func() error {
			var err error
			done, err = s.Products.Import(
				r.Context(),
				r.who.Org,
				products,
			)
			return err
		})
	}

	if err != nil {
		return answer{}, err
	}

	return answered(done), nil
}

// productsOf are the products of a request.
func productsOf(
	in *wire.ProductsRequest,
	who string,
) ([]flex.Product, error) {
	if in.CSV != "" && len(in.Products) > 0 {
		return nil, flex.Fail(
			flex.Malformed,
			"products are given as a list or as CSV, not as both",
		)
	}

	var (
		products []flex.Product
		err      error
	)

	if in.CSV != "" {
		products, err = product.Read(strings.NewReader(in.CSV), who)
		if flex.KindOf(err) == flex.Invalid {
			err = flex.Fail(flex.Malformed, "csv: %v", err)
		}
		return products, err
	}

	for i := range in.Products {
		products = append(products, contract.ProductOf(&in.Products[i], who))
	}

	return products, nil
}

// products answers GET /grid/products.
func (s *Server) products(r *request) (answer, error) {
	q := query[wire.ProductListQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	p, err := s.Products.List(r.Context(), r.who.Org, flex.ProductSearch{
		Service: q.Service,
		State:   flex.ProductState(q.State),
		Before:  q.Before,
		Limit:   q.Limit,
	})
	if err != nil {
		return answer{}, err
	}

	return ok(contract.ProductPage(&p)), nil
}

// product answers GET /grid/products/{id}.
func (s *Server) product(r *request) (answer, error) {
	p, q := path[wire.ProductPath](r), query[wire.ProductReportQuery](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	return s.productFor(r, p.ID, q.After, q.Limit)
}

func (s *Server) productFor(
	r *request,
	id flex.ProductID,
	after flex.SiteID,
	limit int,
) (answer, error) {
	report, err := s.Products.Report(
		r.Context(),
		r.who.Org,
		id,
		after,
		limit,
	)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.ProductReport(&report)), nil
}

// withdrawProduct answers POST /grid/products/{id}/withdraw.
func (s *Server) withdrawProduct(r *request) (answer, error) {
	p, in := path[wire.ProductPath](r), body[wire.ProductWithdrawRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	act := r.auditEntry("withdraw product", p.ID.String(), in.Reason)
	err := s.Access.Act(r.Context(), act, func() error {
		_, err := s.Products.Withdraw(
			r.Context(),
			r.who.Org,
			p.ID,
			act.Who,
		)
		return err
	})
	if err != nil {
		return answer{}, err
	}

	return s.productFor(r, p.ID, flex.SiteID{}, 1)
}

// siteProducts answers GET /entities/site/{site_id}/products.
func (s *Server) siteProducts(r *request) (answer, error) {
	p := path[wire.SitePath](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	found, now, err := s.Products.Invitations(
		r.Context(),
		r.who.Org,
		p.SiteID,
	)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.Invitations(found, now)), nil
}

// answerProduct answers PUT /entities/site/{site_id}/products/{id}.
func (s *Server) answerProduct(r *request) (answer, error) {
	p, in := path[wire.SiteProductPath](r), body[wire.ProductAnswerRequest](r)
	if err := r.bad(); err != nil {
		return answer{}, err
	}

	who := "credential " + r.who.Username
	if r.who.Component() {
		who = "household"
	}

	v, now, err := s.Products.Answer(
		r.Context(),
		r.who.Org,
		p.ID,
		p.SiteID,
		*in.TakesPart,
		who,
	)
	if err != nil {
		return answer{}, err
	}

	return ok(contract.Invitation(&v, now)), nil
}
