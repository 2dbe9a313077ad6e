package store

import (
	"context"
	"time"

	"flexd/internal/flex"
)

var (
	_ = law("a product ends after it begins, asks for something and pays for it",
		`SELECT id AS what FROM grid_product WHERE to_at <= from_at OR change_w = 0 OR price <= 0 OR availability < 0 OR answer_by > from_at`)
	_ = law("a product that was sent became an instruction of its organisation to those who take part",
		`SELECT p.id AS what FROM grid_product p LEFT JOIN instruction i ON i.id = p.instruction_id AND i.org_id = p.org_id AND i.product_id = p.id
		 WHERE p.instruction_id IS NOT NULL AND (i.id IS NULL OR p.send_at IS NOT NULL)`)
	_ = law("who is invited is invited to a product of their organisation",
		`SELECT s.site_id AS what FROM product_site s LEFT JOIN grid_product p ON p.id = s.product_id AND p.org_id = s.org_id WHERE p.id IS NULL`)
)

const productColumns = `p.id, p.reference, p.service, p.group_name, p.gsp_group, p.from_at, p.to_at, p.change_w, p.price, p.availability,
	p.baseline, p.opt_out, p.answer_by, p.who, p.made_at, p.send_at, p.withdrawn_at, p.withdrawn_by, p.instruction_id, p.problem`

func scanProduct(s scanner) (flex.Product, error) {
	var p flex.Product
	err := s.Scan(
		&p.ID,
		&p.Reference,
		&p.Service,
		&p.Scope.Group,
		&p.Scope.GSPGroup,
		instant{&p.From},
		instant{&p.To},
		&p.Change,
		&p.Price,
		&p.Availability,
		&p.Baseline,
		&p.OptOut,
		instant{&p.AnswerBy},
		&p.Who,
		instant{&p.MadeAt},
		instant{&p.SendAt},
		instant{&p.WithdrawnAt},
		&p.WithdrawnBy,
		&p.Instruction,
		&p.Problem,
	)

	return p, err
}

// PutProduct stores a product. One without an id is new and gets its id and instant; else the
// terms of the product with that id are replaced, if it was not sent yet.
func (tx *Tx) PutProduct(ctx context.Context, p *flex.Product) error {
	if p.ID.IsZero() {
		p.ID = flex.ProductID(tx.newID())
	}

	p.MadeAt = tx.now
	row := []value{
		{"org_id", tx.org.Bytes()},
		{"id", p.ID.Bytes()},
		{"reference", p.Reference},
		{"service", p.Service},
		{"group_name", p.Scope.Group},
		{"gsp_group", p.Scope.GSPGroup},
		{"from_at", micros(p.From)},
		{"to_at", micros(p.To)},
		{"change_w", int64(p.Change)},
		{"price", int64(p.Price)},
		{"availability", int64(p.Availability)},
		{"baseline", p.Baseline},
		{"opt_out", p.OptOut},
		{"answer_by", micros(p.AnswerBy)},
		{"who", p.Who},
		{"made_at", micros(tx.now)},
		{"send_at", micros(p.SendAt)},
	}

	_, err := tx.upsert(ctx, "grid_product", row, rewrite{
		key:  []string{"id"},
		keep: []string{"org_id", "reference", "made_at"},
		only: `grid_product.org_id = excluded.org_id AND grid_product.send_at IS NOT NULL`,
	})

	return err
}

// ProductMissing says that a product is not the organisation's.
const ProductMissing = "product not found or not authorized"

// Product returns one of the organisation's products.
func (tx *Tx) Product(
	ctx context.Context,
	id flex.ProductID,
) (flex.Product, error) {
	return one(
		ctx,
		tx.conn,
		ProductMissing,
		scanProduct,
		`SELECT `+productColumns+` FROM grid_product p WHERE p.org_id = $1 AND p.id = $2`,
		tx.org.Bytes(),
		id.Bytes(),
	)
}

// ProductBy returns the organisation's product of a buyer's reference, or a NotFound failure.
func (tx *Tx) ProductBy(
	ctx context.Context,
	reference string,
) (flex.Product, error) {
	return one(
		ctx,
		tx.conn,
		ProductMissing,
		scanProduct,
		`SELECT `+productColumns+` FROM grid_product p WHERE p.org_id = $1 AND p.reference = $2`,
		tx.org.Bytes(),
		reference,
	)
}

// where each state is, by the instant $2.
var productStates = map[flex.ProductState]string{
	flex.ProductWithdrawn: `p.withdrawn_at IS NOT NULL`,
	flex.ProductFailed:    `p.withdrawn_at IS NULL AND p.problem <> ''`,
	flex.ProductOver:      `p.withdrawn_at IS NULL AND p.problem = '' AND p.to_at <= $2`,
	flex.ProductSent:      `p.withdrawn_at IS NULL AND p.problem = '' AND p.to_at > $2 AND p.instruction_id IS NOT NULL`,
	flex.ProductOpen:      `p.withdrawn_at IS NULL AND p.problem = '' AND p.to_at > $2 AND p.instruction_id IS NULL`,
}

// Products returns the organisation's products that are asked for, the newest first, and how many
// there are on all pages.
func (tx *Tx) Products(
	ctx context.Context,
	search flex.ProductSearch,
) ([]flex.Product, int, error) {
	where := `p.org_id = $1 AND p.made_at <= $2 AND (p.service = $3 OR $3 = '')`
	if state := productStates[search.State]; state != "" {
		where += ` AND ` + state
	}

	args := []any{tx.org.Bytes(), micros(tx.now), search.Service}

	var total int
	if err := tx.row(
		ctx,
		`SELECT count(*) FROM grid_product p WHERE `+where,
		args...,
	).Scan(&total); err != nil {
		return nil, 0, err
	}

	before := search.Before
	if before.IsZero() {
		before = flex.ProductID(lastAsset)
	}

	found, err := rows(
		ctx,
		tx.conn,
		scanProduct,
		`SELECT `+productColumns+` FROM grid_product p WHERE `+where+` AND p.id < $4 ORDER BY p.id DESC LIMIT $5`,
		append(args, before.Bytes(), search.Limit)...,
	)

	return found, total, err
}

// DueProducts returns the organisation's products that are to be sent now.
func (tx *Tx) DueProducts(ctx context.Context) ([]flex.Product, error) {
	return rows(
		ctx,
		tx.conn,
		scanProduct,
		`SELECT `+productColumns+` FROM grid_product p WHERE p.org_id = $1 AND p.send_at <= $2 ORDER BY p.send_at, p.id`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// AskedProducts returns the organisation's products that households may still accept, in their
// order.
func (tx *Tx) AskedProducts(ctx context.Context) ([]flex.Product, error) {
	if tx.knownEmpty(productWaits) {
		return nil, nil
	}

	return rows(
		ctx,
		tx.conn,
		scanProduct,
		`SELECT `+productColumns+` FROM grid_product p WHERE p.org_id = $1 AND p.send_at IS NOT NULL AND p.answer_by > $2 ORDER BY p.id`,
		tx.org.Bytes(),
		micros(tx.now),
	)
}

// ProductDone records the result of sending a product, and reports whether nobody had recorded
// one before.
func (tx *Tx) ProductDone(
	ctx context.Context,
	id flex.ProductID,
	became flex.InstructionID,
	problem string,
) (mine bool, err error) {
	var instruction any
	if !became.IsZero() {
		instruction = became.Bytes()
	}

	n, err := tx.exec(
		ctx,
		`UPDATE grid_product SET send_at = NULL, instruction_id = $3, problem = $4 WHERE org_id = $1 AND id = $2 AND send_at IS NOT NULL`,
		tx.org.Bytes(),
		id.Bytes(),
		instruction,
		problem,
	)

	return n > 0, err
}

// WithdrawProduct notes that nothing is asked for any more, and reports whether nobody did before.
func (tx *Tx) WithdrawProduct(
	ctx context.Context,
	id flex.ProductID,
	who string,
) (mine bool, err error) {
	n, err := tx.exec(
		ctx,
		`UPDATE grid_product SET send_at = NULL, withdrawn_at = $3, withdrawn_by = $4 WHERE org_id = $1 AND id = $2 AND withdrawn_at IS NULL`,
		tx.org.Bytes(),
		id.Bytes(),
		micros(tx.now),
		who,
	)

	return n > 0, err
}

// NextProduct returns the first instant after one at which a product is to be sent, or the
// zero time.
func (tx *Tx) NextProduct(
	ctx context.Context,
	after time.Time,
) (time.Time, error) {
	return tx.next(ctx, productDue, after)
}

// OrgsWithProducts returns the organisations with products that are to be sent, now or later.
func (all *All) OrgsWithProducts(ctx context.Context) ([]flex.OrgID, error) {
	return rows(
		ctx,
		all.conn,
		scalar[flex.OrgID],
		`SELECT DISTINCT org_id FROM grid_product WHERE send_at IS NOT NULL ORDER BY org_id`,
	)
}
