package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// SelectionMax is how many withdrawals are approved as one selection.
const SelectionMax = 500

// Selection is withdrawals that are approved together, in the order that was asked for.
type Selection struct {
	Lines    []SelectionLine
	Possible int        // lines without a fault
	Sum      flex.Pence // of those
}

// SelectionLine is what becomes of one withdrawal of a selection.
type SelectionLine struct {
	ID     flex.TransactionID
	SiteID flex.SiteID // zero if there is no such withdrawal
	Amount flex.Pence  // zero if there is no such withdrawal
	// pending_approval if a second operator is needed
	Status ledger.PaymentStatus
	Fault  string // why it is not approved; "" if it is
}

// errPreviewed undoes what a preview tried.
var errPreviewed = errors.New("a preview changes nothing")

// PreviewSelection says what an approval of the withdrawals by this operator would do now, by the
// rules of the approval itself, the day's cap among them. It changes nothing, and asks nobody for
// the name on an account. It fails with flex.Invalid for no withdrawal or more than SelectionMax.
func (s *Service) PreviewSelection(
	ctx context.Context,
	org flex.OrgID,
	ids []flex.TransactionID,
	by string,
) (Selection, error) {
	var err error
	ids, err = uniqueIDs(ids)
	var sel Selection
	if err != nil {
		return sel, err
	}

	err = s.DB.Write(ctx, org, func(tx *store.Tx) error {
		sel = Selection{}
		for _, id := range ids {
			w, err := s.approve(ctx, tx, id, by, "")
			if err := sel.add(id, w, err); err != nil {
				return err
			}
		}

		return errPreviewed
	})
	if errors.Is(err, errPreviewed) {
		err = nil
	}

	return sel, err
}

// ApproveSelection approves each withdrawal for itself: one that is refused stops no other. The
// sum is what the operator was shown; flex.Conflict, and nothing is approved, if what is possible
// comes to another sum by now.
func (s *Service) ApproveSelection(
	ctx context.Context,
	org flex.OrgID,
	ids []flex.TransactionID,
	sum flex.Pence,
	by string,
) (Selection, error) {
	var err error
	ids, err = uniqueIDs(ids)
	var sel Selection
	if err != nil {
		return sel, err
	}

	now, err := s.PreviewSelection(ctx, org, ids, by)
	if err != nil {
		return sel, err
	}
	if now.Sum != sum {
		return sel, flex.Fail(
			flex.Conflict,
			"the selection came to %s when it was shown and comes to %s now: nothing is approved; look at it again",
			sum,
			now.Sum,
		)
	}

	for _, line := range now.Lines {
		if line.Fault != "" {
			sel.Lines = append(sel.Lines, line)
			continue
		}

		w, err := s.Decide(ctx, org, line.ID, ledger.Approved, by, "")
		if w.ID.IsZero() {
			w = store.Withdrawal{
				ID:     line.ID,
				SiteID: line.SiteID,
				Amount: line.Amount,
				Status: ledger.PendingApproval,
			}
		}

		if err := sel.add(line.ID, w, err); err != nil {
			return sel, err
		}
	}

	return sel, nil
}

// uniqueIDs checks a selection's size, and takes out what is in it twice.
func uniqueIDs(ids []flex.TransactionID) ([]flex.TransactionID, error) {
	known := make(map[flex.TransactionID]bool, len(ids))
	var unique []flex.TransactionID
	for _, id := range ids {
		if !known[id] {
			unique = append(unique, id)
		}

		known[id] = true
	}

	if len(unique) == 0 {
		return nil, flex.Fail(flex.Invalid, "no withdrawal is selected")
	}
	if len(unique) > SelectionMax {
		return nil, flex.Fail(
			flex.Invalid,
			"%d withdrawals are selected, and %d are approved at once",
			len(unique),
			SelectionMax,
		)
	}

	return unique, nil
}

// add counts an approval, or why there is none. A failure that no rule made ends the selection.
func (sel *Selection) add(
	id flex.TransactionID,
	w store.Withdrawal,
	err error,
) error {
	line := SelectionLine{
		ID:     id,
		SiteID: w.SiteID,
		Amount: w.Amount,
		Status: w.Status,
	}

	reason, isRefused := flex.Refusal(err)

	switch {
	case err == nil:
		sel.Possible++
		sel.Sum += w.Amount
	case !isRefused, reason.Kind == flex.Internal:
		return err
	default:
		line.Fault = err.Error()
	}

	sel.Lines = append(sel.Lines, line)

	return nil
}

// String is the selection for the audit log: the count, the sum, and each withdrawal with what
// became of it.
func (sel Selection) String() string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%d of %d, %s in all",
		sel.Possible,
		len(sel.Lines),
		sel.Sum,
	)

	for _, l := range sel.Lines {
		outcome := string(l.Status)
		if l.Fault != "" {
			outcome = l.Fault
		}

		fmt.Fprintf(&b, "; %s %s: %s", l.ID, l.Amount, outcome)
	}

	return b.String()
}
