package flex

import "time"

// Product is what a system operator or a distribution operator buys for a window of time, with the terms
// that it is paid by. It becomes an instruction to the sites that take part.
type Product struct {
	ID ProductID
	Span
	Reference string // the buyer's, once in an organisation
	Service   string
	Scope     Scope // whose sites are invited
	Change    Watts // against the plan, negative to draw less
	Price     Price // of what is delivered
	// for each MW of the volume and hour of the window, as far as it is delivered; a price per MW and hour
	Availability Price
	Baseline     string // by which it is settled; empty: the organisation's terms
	OptOut       bool   // takes part who does not refuse; else who accepts
	AnswerBy     time.Time
	Who          string

	MadeAt      time.Time
	SendAt      time.Time // when it becomes an instruction; zero if it did, or will not
	WithdrawnAt time.Time
	WithdrawnBy string
	Instruction InstructionID // that it became
	Problem     string        // why it did not
}

// ProductState says how far a product is.
type ProductState string

// The states of a product.
const (
	ProductOpen      ProductState = "open"      // it is not sent yet
	ProductSent      ProductState = "sent"      // it is an instruction, that is not over
	ProductOver      ProductState = "over"      // its window is
	ProductFailed    ProductState = "failed"    // it could not be sent
	ProductWithdrawn ProductState = "withdrawn" // nothing is asked for any more
)

// State is how far the product is at an instant.
func (p *Product) State(now time.Time) ProductState {
	switch {
	case !p.WithdrawnAt.IsZero():
		return ProductWithdrawn
	case p.Problem != "":
		return ProductFailed
	case !now.Before(p.To):
		return ProductOver
	case !p.Instruction.IsZero():
		return ProductSent
	}

	return ProductOpen
}

// Volume is how much is asked for, whatever the direction.
func (p *Product) Volume() Watts { return max(p.Change, -p.Change) }

// SameTerms reports whether another product asks for the same under the same terms.
func (p *Product) SameTerms(o *Product) bool {
	return p.From.Equal(o.From) && p.To.Equal(o.To) && p.AnswerBy.Equal(o.AnswerBy) &&
		p.terms() == o.terms()
}

// productTerms are what can be compared as it is.
type productTerms struct {
	service, baseline   string
	scope               Scope
	change              Watts
	price, availability Price
	optOut              bool
}

func (p *Product) terms() productTerms {
	return productTerms{
		p.Service,
		p.Baseline,
		p.Scope,
		p.Change,
		p.Price,
		p.Availability,
		p.OptOut,
	}
}

// Participation is a site's part in a product.
type Participation struct {
	For        ProductID
	Site       SiteID
	Event      EventID // of the newest message on it
	InvitedAt  time.Time
	TakesPart  bool
	AnsweredAt time.Time // zero while nobody answered
	AnsweredBy string
}

// ProductAnswers counts who was invited to a product.
type ProductAnswers struct {
	Invited   int
	Answered  int
	TakesPart int
}

// Invitation is a product that a site was invited to, and its part in it.
type Invitation struct {
	Product
	Participation
	ExternalUserID string
}

// ProductSearch says which products are asked for.
type ProductSearch struct {
	Service string       // empty: any
	State   ProductState // empty: any
	Before  ProductID    // made before this one; zero: from the newest on
	Limit   int
}
