package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// duplicateWithin is within what time two equal instructions of a person count as one form
// that was sent twice.
const duplicateWithin = time.Minute

// SendInstructionOnce is SendInstruction for a form, which a browser may send twice. It
// returns a Conflict if the same person has just sent an equal instruction that is active.
func (s *Service) SendInstructionOnce(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*Preview, error) {
	return s.sendWith(ctx, org, in, s.instructOnce)
}

// instructOnce is instructWithin, rolled back if an equal instruction was stored just before.
// The organisation is locked by then, so of two forms that arrive at once the second finds the
// instruction of the first.
func (s *Service) instructOnce(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *precomputedOffers,
) (*Preview, error) {
	p, err := s.instructWithin(ctx, tx, in, ahead)
	if err != nil {
		return nil, err
	}

	known, err := tx.ActiveInstructions(ctx)
	if err != nil {
		return nil, err
	}

	requested := instructionKeyOf(&p.Instruction)
	for i := range known {
		k := &known[i]
		if k.ID == p.ID || p.MadeAt.Sub(k.MadeAt) >= duplicateWithin {
			continue
		}

		if instructionKeyOf(k) == requested {
			return nil, flex.Fail(
				flex.Conflict,
				"you sent the same instruction a moment ago, and it binds: the page Instructions lists it; to send another one like it, change the reason",
			)
		}
	}

	return p, nil
}

// instructionKey has the fields in which two equal instructions agree. Their beginning is not
// among them: a form that begins now has another one each time.
type instructionKey struct {
	goal    string
	to      int64
	scope   flex.Scope
	service string
	reason  string
	who     string
	price   flex.Price
	unfair  bool
}

func instructionKeyOf(in *flex.Instruction) instructionKey {
	return instructionKey{
		goal:    in.Goal(),
		to:      in.To.UnixMicro(),
		scope:   in.Scope,
		service: in.Service,
		reason:  in.Reason,
		who:     in.Who,
		price:   in.Price,
		unfair:  in.Unfair,
	}
}
