package reward

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/bankfile"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// verdict decides about a result of one attempt, and returns the moves of its withdrawal. With
// a reason in why, the result is refused.
func verdict(
	ctx context.Context,
	tx *store.Tx,
	p store.Pinned,
	w store.Withdrawal,
	reason string,
	line *ImportLine,
) ([]ledger.PaymentStatus, error) {
	var moves []ledger.PaymentStatus
	line.Verdict, moves, line.Refusal = movesOf(line.Outcome, w, p.Attempt)
	if reason != "" && line.Verdict != VerdictOpen {
		line.Verdict, line.Refusal = VerdictRefused, reason
	}

	if err := debitVerdict(ctx, tx, p, w, line); err != nil {
		return nil, err
	}

	if line.Verdict == VerdictRefused {
		return nil, nil
	}

	return moves, nil
}

// debitVerdict looks up which entry of the bank took a payment from the payer's account. The same
// entry again is known. Another entry is refused, because the bank has then paid twice. So is
// a return after that, which may undo the second payment: the user was paid by the first.
func debitVerdict(
	ctx context.Context,
	tx *store.Tx,
	p store.Pinned,
	w store.Withdrawal,
	line *ImportLine,
) error {
	counts := line.Verdict == VerdictNew || line.Verdict == VerdictKnown
	if !counts || p.Attempt != w.Attempt {
		return nil
	}

	debits, err := tx.Debits(ctx, p)
	if err != nil {
		return err
	}

	if line.Outcome != bankfile.Paid {
		if line.Verdict == VerdictNew && len(debits) > 1 {
			line.Verdict = VerdictRefused
			line.Refusal = "the bank booked the payment twice, and this may give either back; if both came back, import it as returned with flexd's own CSV"
		}

		return nil
	}

	if line.Entry == "" || slices.Index(debits, line.Entry) == 0 {
		return nil
	}

	if len(debits) > 0 {
		line.Verdict = VerdictRefused
		line.Refusal = fmt.Sprintf(
			"the bank booked the payment as entry %s, and again as entry %s; if both left the account, ask one back",
			debits[0],
			line.Entry,
		)
	}

	if len(debits) > 1 { // the second debit was reported already
		return nil
	}

	return tx.NoteDebits(ctx, p, append(debits, line.Entry))
}
