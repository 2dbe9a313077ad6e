package console

import (
	"errors"
	"slices"
	"strings"

	"flexd/internal/access"
	"flexd/internal/contract"
	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/product"
	"flexd/internal/web"
)

const productsPath = "/console/products"

// productsPage lists an organisation's products, with a form to import others.
type productsPage struct {
	product.View
	Service  string
	State    string
	Services []string
	States   []flex.ProductState
	Older    string // the page that follows, if there is one
	Export   Export
}

var productStates = []flex.ProductState{
	flex.ProductOpen,
	flex.ProductSent,
	flex.ProductOver,
	flex.ProductFailed,
	flex.ProductWithdrawn,
}

func (s *Server) products(r *request) (view, error) {
	if err := r.onlyFilters("org", "service", "state"); err != nil {
		return view{}, err
	}

	q := r.URL.Query()
	p := &productsPage{
		Service:  q.Get("service"),
		State:    q.Get("state"),
		Services: control.InstructionServices,
		States:   productStates,
		Export:   r.exports(),
	}

	var org flex.OrgID
	if err := readFilter(&org, q.Get("org"), "organisation"); err != nil {
		return view{}, err
	}

	search := flex.ProductSearch{
		Service: p.Service,
		State:   flex.ProductState(p.State),
		Limit:   r.limit(),
	}

	err := readFilter(&search.Before, q.Get("before"), "product")
	if err == nil {
		err = p.known()
	}
	if err != nil {
		return view{}, err
	}

	p.View, err = s.Products.View(r.Context(), org, search)
	if !p.Next.IsZero() {
		p.Older = r.with("before", p.Next.String())
	}

	return view{
		page:   "products",
		title:  "Products",
		crumbs: []crumb{{"Instructions", instructionsPath}},
		data:   p,
		table:  p.table(),
		next:   p.Older,
	}, err
}

// known refuses filters by values that do not exist.
func (p *productsPage) known() error {
	if p.Service != "" && !slices.Contains(p.Services, p.Service) {
		return flex.Fail(flex.Invalid, "service is one of %v", p.Services)
	}
	if p.State != "" &&
		!slices.Contains(p.States, flex.ProductState(p.State)) {
		return flex.Fail(flex.Invalid, "state is one of %v", p.States)
	}

	return nil
}

func (p *productsPage) table() *table {
	t := &table{
		Name: "products",
		Columns: []string{
			"id",
			"reference",
			"state",
			"service",
			"start",
			"end",
			"change_kw",
			"price_gbp_per_mwh",
			"availability_gbp_per_mw_per_hour",
			"baseline",
			"num_invited",
			"num_take_part",
		},
	}

	for i := range p.Products {
		l := &p.Products[i]
		t.add(
			l.ID.String(),
			l.Reference,
			string(l.State),
			l.Service,
			l.From,
			l.To,
			l.Change.KW(),
			l.Price.GBPPerMWh(),
			l.Availability.GBPPerMWh(),
			l.Baseline,
			l.Answers.Invited,
			l.Answers.TakesPart,
		)
	}

	return t
}

// readProducts reads the form.
func readProducts(r *request) (productPreview, []flex.Product, error) {
	var p productPreview
	p.CSV = r.PostFormValue("csv")
	if err := readID(&p.Org, r.PostFormValue("org"), "organisation"); err != nil {
		return p, nil, err
	}

	products, err := product.Read(strings.NewReader(p.CSV), r.operator.Name)

	return p, products, err
}

// productPreview shows the effect of an import of products.
type productPreview struct {
	Org   flex.OrgID
	CSV   string
	Lines []product.Imported

	Problem string // why there is no preview, "" for none
}

// refusedProducts shows why products cannot be imported, with the input, so that it can be
// corrected.
func refusedProducts(r *request, p *productPreview, err error) (view, error) {
	e, ok := errors.AsType[*flex.Error](err)
	kind := flex.KindOf(err)
	if !ok || kind == flex.Internal {
		return view{}, err
	}
	if p.Org.IsZero() || r.isPlain() {
		return view{}, err
	}

	p.Problem = sentence(e.Error())

	return view{
		status: web.StatusOf(kind),
		page:   "productpreview",
		title:  "Not possible",
		crumbs: []crumb{{"Products", productsPath}},
		data:   p,
	}, nil
}

// previewProducts shows the effect of an import and changes nothing.
func (s *Server) previewProducts(r *request) (view, error) {
	p, products, err := readProducts(r)
	if err == nil {
		p.Lines, err = s.Products.Preview(r.Context(), p.Org, products)
	}
	if err != nil {
		return refusedProducts(r, &p, err)
	}

	return view{
		page:   "productpreview",
		title:  "Preview",
		crumbs: []crumb{{"Products", productsPath}},
		data:   &p,
	}, nil
}

// importProducts imports products, if that was typed.
func (s *Server) importProducts(r *request) (view, error) {
	p, products, err := readProducts(r)
	if err == nil {
		err = checkConfirmation(r, "invite")
	}
	if err != nil {
		return refusedProducts(r, &p, err)
	}

	act := access.Action{Act: "import products", Org: p.Org}
	err = s.act(r, act, func() error {
		_, err := s.Products.Import(r.Context(), p.Org, products)
		return err
	})
	if err != nil {
		return refusedProducts(r, &p, err)
	}

	return view{to: productsPath + "?org=" + p.Org.String() + "&done=imported"}, nil
}

// productPage shows a product with its result.
type productPage struct {
	product.Report
}

// Binds reports whether it can be withdrawn.
func (p productPage) Binds() bool {
	return p.State == flex.ProductOpen || p.State == flex.ProductSent ||
		p.State == flex.ProductFailed
}

// Percent is the delivered part of what was asked for, in percent.
func (p productPage) Percent() float64 { return 100 * p.Delivered() }

func (s *Server) product(r *request) (view, error) {
	id, org, err := pathID(r, "product", s.Products.OrgOf)
	if err != nil {
		return view{}, err
	}

	var after flex.SiteID
	err = readFilter(&after, r.URL.Query().Get("after"), "site")
	if err != nil {
		return view{}, err
	}

	report, err := s.Products.Report(
		r.Context(),
		org,
		id,
		after,
		pageMax,
	)
	if err != nil {
		return view{}, err
	}

	return view{
		page:   "product",
		title:  "Product",
		crumbs: []crumb{{"Products", productsPath}},
		data:   productPage{report},
		record: contract.ProductReport(&report),
	}, nil
}

// withdrawProduct withdraws one, if that was typed.
func (s *Server) withdrawProduct(r *request) (view, error) {
	if err := checkConfirmation(r, "withdraw"); err != nil {
		return view{}, err
	}

	id, org, err := pathID(r, "product", s.Products.OrgOf)
	if err != nil {
		return view{}, err
	}

	act := access.Action{
		Act:     "withdraw product",
		Org:     org,
		Subject: id.String(),
	}
	err = s.act(r, act, func() error {
		_, err := s.Products.Withdraw(r.Context(), org, id, r.operator.Name)
		return err
	})

	return view{to: productsPath + "/" + id.String() + "?done=unasked"}, err
}
