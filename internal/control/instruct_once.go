package control

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// sentTwice is how long after an instruction the same of the same person is taken for a form that was sent twice.
const sentTwice = time.Minute

// SendInstructionOnce is SendInstruction of a form, which a browser may send twice: it fails if the same person has just
// sent the same, and that binds.
func (s *Service) SendInstructionOnce(
	ctx context.Context,
	org flex.OrgID,
	in flex.Instruction,
) (*Preview, error) {
	return s.sendBy(ctx, org, in, s.instructOnce)
}

// instructOnce is instructWithin, undone if the same was kept just before. The organisation is locked by then: of two
// forms that come at once the second finds what the first has kept.
func (s *Service) instructOnce(
	ctx context.Context,
	tx *store.Tx,
	in flex.Instruction,
	ahead *lookedAhead,
) (*Preview, error) {
	p, err := s.instructWithin(ctx, tx, in, ahead)
	if err != nil {
		return nil, err
	}

	known, err := tx.ActiveInstructions(ctx)
	if err != nil {
		return nil, err
	}

	asked := orderKeyOf(&p.Instruction)
	for i := range known {
		k := &known[i]
		if k.ID == p.ID || p.MadeAt.Sub(k.MadeAt) >= sentTwice {
			continue
		}

		if orderKeyOf(k) == asked {
			return nil, flex.Fail(
				flex.Conflict,
				"you sent the same instruction a moment ago, and it binds: the page Instructions lists it; to send another one like it, change the reason",
			)
		}
	}

	return p, nil
}

// orderKey is what a person asks for by an instruction. Its beginning is no part: it is now, where it was before.
type orderKey struct {
	goal    string
	to      int64
	scope   flex.Scope
	service string
	reason  string
	who     string
	price   flex.Price
	unfair  bool
}

func orderKeyOf(in *flex.Instruction) orderKey {
	return orderKey{
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
