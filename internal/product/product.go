package product

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// Service takes products in, asks households for them, and has control carry them out.
type Service struct {
	DB      *store.DB
	Control *control.Service
}

// Limits of products.
const (
	// Max is how many are imported at once.
	Max = 1000
	// Ahead is how far ahead a product may begin.
	Ahead = 400 * 24 * time.Hour
	// AnswerUsual is how long before its window answers to a product end, if it does not say.
	AnswerUsual = 30 * time.Minute
)

// Baselines are the baselines that a product may be settled by; empty: that of the terms.
var Baselines = []string{
	"",
	string(settle.Mean),
	string(settle.MiddleEight),
	string(settle.Nominated),
}

// Imported is what the import of a product does, or would do.
type Imported struct {
	flex.Product // without an id if it is new and nothing was changed
	// new, changed or unchanged
	Act     string
	Invited int
}

// What the import of a product does.
const (
	New       = "new"
	Changed   = "changed"
	Unchanged = "unchanged"
)

// Preview says what the import of products would do; nothing is changed by it.
func (s *Service) Preview(
	ctx context.Context,
	org flex.OrgID,
	products []flex.Product,
) ([]Imported, error) {
	var done []Imported
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		done, err = importProducts(ctx, tx, products, false)
		return err
	})

	return done, err
}

// Import takes products in, all or none, and has the sites that they are for invited. The same
// reference again with the same terms changes nothing; with others it replaces what was not
// sent yet, and everybody is asked again. One that was withdrawn, or
// failed, is refused, with the same terms too.
func (s *Service) Import(
	ctx context.Context,
	org flex.OrgID,
	products []flex.Product,
) ([]Imported, error) {
	var done []Imported
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := tx.LockOrg(ctx); err != nil {
			return err
		}

		var err error
		done, err = importProducts(ctx, tx, products, true)
		tx.SetMadeRecord(done)
		return err
	})

	return done, err
}

// importProducts looks at products, and keeps them if that is to be.
func importProducts(
	ctx context.Context,
	tx *store.Tx,
	products []flex.Product,
	keep bool,
) ([]Imported, error) {
	if len(products) == 0 || len(products) > Max {
		return nil, flex.Fail(
			flex.Malformed,
			"an import has 1 to %d products, not %d",
			Max,
			len(products),
		)
	}

	named := map[string]bool{}

	var done []Imported
	for i := range products {
		p := products[i]
		if named[p.Reference] {
			return nil, flex.Fail(
				flex.Malformed,
				"product %q is given twice",
				p.Reference,
			)
		}

		named[p.Reference] = true
		one, err := importProduct(ctx, tx, p, keep)
		if err != nil {
			return nil, err
		}

		done = append(done, one)
	}

	return done, nil
}

// importProduct looks at one product, and keeps it if that is to be.
func importProduct(
	ctx context.Context,
	tx *store.Tx,
	p flex.Product,
	keep bool,
) (Imported, error) {
	before, err := tx.ProductBy(ctx, p.Reference)
	isNew := flex.KindOf(err) == flex.NotFound
	if err != nil && !isNew {
		return Imported{}, err
	}

	// with the same terms too: who imports it expects that it is asked for
	if !before.WithdrawnAt.IsZero() {
		return Imported{}, flex.Fail(
			flex.Conflict,
			"product %q was withdrawn at %s, and stays so: give another reference",
			p.Reference,
			before.WithdrawnAt.Format(time.RFC3339),
		)
	}

	if before.Problem != "" {
		return Imported{}, flex.Fail(
			flex.Conflict,
			"product %q failed (%s), and stays so: give another reference",
			p.Reference,
			before.Problem,
		)
	}

	completeProduct(&p, &before, tx.Now())
	if !isNew && before.SameTerms(&p) {
		n, err := tx.ProductAnswers(ctx, before.ID)
		return Imported{before, Unchanged, n[before.ID].Invited}, err
	}

	if !isNew && before.SendAt.IsZero() {
		return Imported{}, flex.Fail(
			flex.Conflict,
			"product %q was sent before, and cannot change: give another reference",
			p.Reference,
		)
	}

	done := Imported{p, New, 0}
	if !isNew {
		done.ID, done.Act = before.ID, Changed
	}

	err = done.invite(ctx, tx, keep)

	return done, err
}

// invite refuses a product that cannot be, finds whose sites are invited to it, and invites them if that
// is to be.
func (o *Imported) invite(ctx context.Context, tx *store.Tx, keep bool) error {
	if err := checkProduct(&o.Product); err != nil {
		return err
	}
	if err := checkProductAhead(&o.Product, tx.Now()); err != nil {
		return err
	}
	if err := tx.CheckScope(ctx, o.Scope); err != nil {
		return err
	}

	sites, err := tx.Invitable(ctx, o.Scope)
	o.Invited = len(sites)
	if err != nil || !keep {
		return err
	}

	if err := tx.PutProduct(ctx, &o.Product); err != nil {
		return err
	}

	return tx.Invite(ctx, &o.Product, sites)
}

// completeProduct fills in what a product does not say, and when it is sent.
func completeProduct(p, before *flex.Product, now time.Time) {
	p.From, p.To = p.From.UTC(), p.To.UTC()
	switch {
	case !p.AnswerBy.IsZero():
		p.AnswerBy = p.AnswerBy.UTC()
	case before.From.Equal(p.From): // it was filled in then
		p.AnswerBy = before.AnswerBy
	default:
		p.AnswerBy = slices.MaxFunc(
			[]time.Time{p.From.Add(-AnswerUsual), now.Truncate(time.Minute)},
			time.Time.Compare,
		)
	}

	p.SendAt = slices.MaxFunc(
		[]time.Time{p.AnswerBy, p.To.Add(-control.InstructionAhead)},
		time.Time.Compare,
	)
}

// checkProduct refuses a product that cannot be, whatever the time.
func checkProduct(p *flex.Product) error {
	fail := func(why string) error {
		return flex.Fail(flex.Malformed, "product %q: %s", p.Reference, why)
	}

	priced := p.Price > 0 && p.Price <= settle.MaxPrice &&
		p.Availability >= 0 && p.Availability <= settle.MaxPrice
	switch {
	case p.Reference == "" || len(p.Reference) > 128:
		return fail("the buyer's reference has 1 to 128 characters")
	case !slices.Contains(control.InstructionServices, p.Service):
		return flex.Fail(
			flex.Malformed,
			"product %q: service is one of %v",
			p.Reference,
			control.InstructionServices,
		)

	case p.Scope.GSPGroup != "" && !flex.IsGSPGroup(p.Scope.GSPGroup):
		return fail("a GSP group is one of _A to _P")
	case p.Change == 0 || p.Volume() > flex.CapMax:
		return fail("the volume is a power above 0, up to 1,000,000 kW")
	case !priced:
		return fail("the utilisation price is above 0 and the availability price not below, both up to £6,000")
	case !slices.Contains(Baselines, p.Baseline):
		return fail("the baseline is mean, mid_8_of_10 or nominated, or is left out: that of the terms")
	}

	return checkProductTimes(p, fail)
}

func checkProductTimes(
	p *flex.Product,
	fail func(string) error,
) error {
	whole := p.From.Equal(p.From.Truncate(time.Minute)) &&
		p.To.Equal(p.To.Truncate(time.Minute))
	switch {
	case !whole:
		return fail("its window begins and ends at whole minutes")
	case !p.From.Before(p.To) || p.Len() > control.InstructionLongest:
		return fail("its window ends after it begins, 24 hours later at most")
	case p.AnswerBy.After(p.From):
		return fail("answers end before its window begins")
	}

	return nil
}

// checkProductAhead refuses a product whose window has begun, or is too far off, and one that nobody could accept any more.
func checkProductAhead(p *flex.Product, now time.Time) error {
	if !p.From.After(now) || p.From.Sub(now) > Ahead {
		return flex.Fail(
			flex.Malformed,
			"product %q: its window begins later than now, 400 days ahead at most",
			p.Reference,
		)
	}

	ended := p.AnswerBy.Before(now.Truncate(time.Minute))
	if ended && !p.OptOut {
		return flex.Fail(
			flex.Malformed,
			"product %q: answers ended at %s, so that nobody could accept it: give a later answer_by",
			p.Reference,
			p.AnswerBy.Format(time.RFC3339),
		)
	}

	return nil
}

// Withdraw has nothing be asked for by a product any more: it is not sent, or its instruction is
// stopped. Everybody who was invited is informed. A second time it changes nothing; one that is over stays.
func (s *Service) Withdraw(
	ctx context.Context,
	org flex.OrgID,
	id flex.ProductID,
	who string,
) (flex.Product, error) {
	var p flex.Product
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := control.LockInstructions(ctx, tx); err != nil {
			return err
		}

		var err error
		p, err = tx.Product(ctx, id)
		if err != nil || !p.WithdrawnAt.IsZero() {
			return err
		}
		if !tx.Now().Before(p.To) {
			return flex.Fail(flex.Conflict, "the product's window is over")
		}

		if _, err := tx.WithdrawProduct(ctx, id, who); err != nil {
			return err
		}
		if !p.Instruction.IsZero() {
			if err := s.Control.StopWithin(ctx, tx, p.Instruction, who); err != nil {
				return err
			}
		}

		p, err = tx.Product(ctx, id)
		if err != nil {
			return err
		}

		return tx.TellInvited(ctx, &p)
	})

	return p, err
}

// Invitations returns what a site was invited to that is not over, by when it begins.
func (s *Service) Invitations(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) ([]flex.Invitation, time.Time, error) {
	var (
		found []flex.Invitation
		now   time.Time
	)

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		now = tx.Now()

		var err error
		found, err = tx.Invitations(ctx, site, now)
		return err
	})

	return found, now, err
}

// Answer says whether a site takes part in a product. It may accept until answers end, and refuse
// until the window does: its cars are released then.
func (s *Service) Answer(
	ctx context.Context,
	org flex.OrgID,
	id flex.ProductID,
	site flex.SiteID,
	takesPart bool,
	who string,
) (flex.Invitation, time.Time, error) {
	var (
		v   flex.Invitation
		now time.Time
	)

	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if err := control.LockInstructions(ctx, tx); err != nil {
			return err
		}

		now = tx.Now()

		var err error
		v, err = tx.Invitation(ctx, id, site)
		if err != nil {
			return err
		}
		if err := answerable(&v, takesPart, now); err != nil {
			return err
		}

		err = tx.AnswerProduct(ctx, id, site, takesPart, who)
		if err == nil && !takesPart && !v.Instruction.IsZero() {
			err = s.releaseSite(ctx, tx, v.Instruction, site)
		}
		if err != nil {
			return err
		}

		v, err = tx.Invitation(ctx, id, site)
		return err
	})

	return v, now, err
}

// answerable refuses an answer that comes too late.
func answerable(v *flex.Invitation, takesPart bool, now time.Time) error {
	switch state := v.State(now); {
	case state != flex.ProductOpen && state != flex.ProductSent:
		return flex.Fail(flex.Conflict, "the product is %s", state)
	case takesPart && !v.TakesPart && !now.Before(v.AnswerBy):
		return flex.Fail(
			flex.Conflict,
			"answers ended at %s: one can only refuse now",
			v.AnswerBy.Format(time.RFC3339),
		)
	}

	return nil
}

// releaseSite has an instruction call the assets of a site no more.
func (s *Service) releaseSite(
	ctx context.Context,
	tx *store.Tx,
	id flex.InstructionID,
	site flex.SiteID,
) error {
	called, err := tx.CalledBy(ctx, id)
	if err != nil {
		return err
	}

	var assets []flex.AssetID
	for _, c := range called {
		if c.SiteID == site && c.ReleasedAt.IsZero() {
			assets = append(assets, c.AssetID)
		}
	}

	if len(assets) == 0 {
		return nil
	}
	if err := tx.ReleaseCalled(ctx, id, assets); err != nil {
		return err
	}

	return s.Control.ReleaseWithin(ctx, tx, assets)
}

// Dispatcher is who sent an instruction that a product became.
const Dispatcher = "product"

// Send makes instructions of the products to which answers have ended. It is safe to run twice and
// on several machines at once.
func (s *Service) Send(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgsWithProducts), s.SendOf)
}

// SendOf is Send for one organisation.
func (s *Service) SendOf(
	ctx context.Context,
	org flex.OrgID,
) (worker.Report, error) {
	var due []flex.Product
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		var err error
		due, err = tx.DueProducts(ctx)
		return err
	})

	var r worker.Report
	failed := err
	for i := 0; i < len(due) && ctx.Err() == nil; i++ {
		// it waits, and holds up no other
		if err := s.sendProduct(ctx, org, due[i].ID); err != nil {
			failed = errors.Join(failed, fmt.Errorf("send the product %q: %w", due[i].Reference, err))
			continue
		}
		r.Count++
	}

	return r, failed
}

// errProductGone ends a transaction that would send what is not asked for any more.
var errProductGone = errors.New("the product does not wait any more")

// sendProduct makes an instruction of a product, or notes why it cannot be.
func (s *Service) sendProduct(
	ctx context.Context,
	org flex.OrgID,
	id flex.ProductID,
) error {
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		p, isDue, err := lockDue(ctx, tx, id)
		if err != nil || !isDue {
			return err
		}

		in := instructionOf(&p)
		sent, err := s.Control.InstructWithin(ctx, tx, in)
		if err != nil {
			return err
		}

		mine, err := tx.ProductDone(ctx, id, sent.ID, "")
		if err == nil && !mine {
			err = errProductGone
		}
		return err
	})

	why, isRefused := flex.Refusal(err)
	if errors.Is(err, errProductGone) {
		return nil
	}

	if !isRefused {
		return err
	}

	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		_, isDue, err := lockDue(ctx, tx, id)
		if err != nil || !isDue {
			return err
		}

		_, err = tx.ProductDone(ctx, id, flex.InstructionID{}, why.Error())
		return err
	})
}

// lockDue reads a product and reports whether it is to be sent now. An import that gives it other terms, or asks everybody again,
// waits for the end of the transaction, or was waited for.
func lockDue(
	ctx context.Context,
	tx *store.Tx,
	id flex.ProductID,
) (flex.Product, bool, error) {
	if err := control.LockInstructions(ctx, tx); err != nil {
		return flex.Product{}, false, err
	}

	p, err := tx.Product(ctx, id)
	isDue := !p.SendAt.IsZero() && !tx.Now().Before(p.SendAt)

	return p, isDue, err
}

// instructionOf is the instruction that a product becomes, to those who take part.
func instructionOf(p *flex.Product) flex.Instruction {
	scope := p.Scope
	scope.Product = p.ID

	return flex.Instruction{
		Span:    p.Span,
		Change:  p.Change,
		Scope:   scope,
		Service: p.Service,
		Price:   p.Price,
		Who:     Dispatcher,
		Reason:  "product " + p.Reference,
	}
}
