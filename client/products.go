package client

import "context"

// ImportProducts takes products in and invites households; with DryRun it says what that would do.
func (c *Client) ImportProducts(
	ctx context.Context,
	in ProductsRequest,
	q ProductImportQuery,
) (ProductsImported, error) {
	return call[ProductsImported](ctx, c, post, "/grid/products", queryOf(q), in)
}

// Products returns a page of products, the newest first.
func (c *Client) Products(
	ctx context.Context,
	q ProductListQuery,
) (ProductPage, error) {
	return call[ProductPage](ctx, c, get, "/grid/products", queryOf(q), nil)
}

// Product returns a product, a page of who was invited to it, and what it earned.
func (c *Client) Product(
	ctx context.Context,
	id ProductID,
	q ProductReportQuery,
) (ProductReport, error) {
	return call[ProductReport](ctx, c, get, "/grid/products/"+id.String(), queryOf(q), nil)
}

// WithdrawProduct has nothing be asked for by a product any more.
func (c *Client) WithdrawProduct(
	ctx context.Context,
	id ProductID,
	in ProductWithdrawRequest,
) (ProductReport, error) {
	return call[ProductReport](ctx, c, post, "/grid/products/"+id.String()+"/withdraw", nil, in)
}

// SiteProducts returns what a site is invited to.
func (c *Client) SiteProducts(
	ctx context.Context,
	site SiteID,
) (Invitations, error) {
	return call[Invitations](ctx, c, get, "/entities/site/"+site.String()+"/products", nil, nil)
}

// AnswerProduct says whether a site takes part in a product.
func (c *Client) AnswerProduct(
	ctx context.Context,
	site SiteID,
	id ProductID,
	in ProductAnswerRequest,
) (Invitation, error) {
	return call[Invitation](
		ctx,
		c,
		put,
		"/entities/site/"+site.String()+"/products/"+id.String(),
		nil,
		in,
	)
}
