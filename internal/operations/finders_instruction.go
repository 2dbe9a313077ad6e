package operations

import (
	"context"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// findUncalled finds instructions of which nothing comes. One that is to begin may still call assets that are plugged in until then.
func findUncalled(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, err := all.UncalledInstructions(ctx, org)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	e := Exception{
		Kind:  InstructionUncalled,
		Level: Warning,
		Count: len(found),
		Org:   found[0].Org,
		Title: fmt.Sprintf(
			"%s of the grid that nothing comes of: nobody is called, or all have refused; the first begins at %s",
			count(len(found), "instruction"),
			instantText(found[0].From),
		),
		Text: "The first calls nobody. A preview of the same says why; assets that come later are called until it ends. Inform the network operator, or stop it under Instructions, or with flexd instruct stop.",
	}

	if found[0].Refused {
		e.Text = "Of the first, every asset that is called has refused what it was sent: see the exceptions refused and dispatch_refused. Inform the network operator, or stop it under Instructions, or with flexd instruct stop."
	}

	if found[0].Begun {
		e.Level = Critical
	}

	return []Exception{e}, nil
}

// findUnanswered finds products that become an instruction to nobody.
func findUnanswered(
	ctx context.Context,
	all *store.All,
	_ *Fleet,
	org flex.OrgID,
) ([]Exception, error) {
	found, err := all.UnansweredProducts(ctx, org, AnswersSoon)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	first, ends := &found[0], "answers end"
	if first.Ended {
		ends = "answers ended"
	}

	return []Exception{{
		Kind:  ProductUnanswered,
		Level: Warning,
		Count: len(found),
		Org:   first.Org,
		Title: fmt.Sprintf(
			"%s in which no household takes part: to %q %s at %s",
			count(len(found), "product"),
			first.Reference,
			ends,
			instantText(first.AnswerBy),
		),
		Text: "It becomes an instruction that calls nobody. Ask the households again, record an answer with flexd product answer before answers end, or withdraw it under Products.",
	}}, nil
}
