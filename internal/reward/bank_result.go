package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// ImportVerdict is the verdict of an import about one result.
type ImportVerdict string

// The verdicts about results.
const (
	VerdictNew     ImportVerdict = "new"       // it changed the withdrawal
	VerdictKnown   ImportVerdict = "known"     // it repeats what is known
	VerdictOpen    ImportVerdict = "under way" // the payment has no result yet
	VerdictUnknown ImportVerdict = "unknown"   // no payment has that reference
	// it contradicts what is known; a person must look
	VerdictRefused ImportVerdict = "refused"
)

// ImportLine is one result and its verdict.
type ImportLine struct {
	bankfile.Result
	Verdict ImportVerdict
	ID      flex.TransactionID // zero if the reference is unknown
	Amount  flex.Pence         // of the withdrawal
	From    ledger.PaymentStatus
	To      ledger.PaymentStatus
	Refusal string // it was refused
}

// BankImport is the outcome of an import of a bank's file.
type BankImport struct {
	Imported
	Lines []ImportLine
}

// Count returns how many results had the verdict.
func (b BankImport) Count(v ImportVerdict) int {
	var n int
	for _, l := range b.Lines {
		if l.Verdict == v {
			n++
		}
	}

	return n
}

// errDryRun rolls back the transaction of a dry run.
var errDryRun = errors.New("dry run")

// ImportBank imports a bank's results, each by itself: one that contradicts what is known is
// refused and listed, and the others count. The same file again changes nothing. A dry run
// returns what would happen, and changes nothing.
func (s *Service) ImportBank(
	ctx context.Context,
	org flex.OrgID,
	by string,
	results []bankfile.Result,
	dry bool,
) (BankImport, error) {
	var b BankImport
	returned := returnedSums(results)
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		b = BankImport{}
		for _, r := range results {
			if err := s.applyBankResult(ctx, tx, r, by, returned, &b); err != nil {
				return fmt.Errorf("%s: %w", r.Where, err)
			}
		}

		b.Results = len(b.Lines)

		if dry {
			return errDryRun
		}

		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}

	return b, err
}

// returnedSums returns the amounts that a bank's file returns, by the references of their
// payments.
func returnedSums(results []bankfile.Result) map[string]flex.Pence {
	returned := map[string]flex.Pence{}
	for _, r := range results {
		if r.Outcome == bankfile.Returned && r.Known && r.Problem == "" {
			returned[r.Reference] = r.Amount
		}
	}

	return returned
}

// applyBankResult applies one result of a bank, about a payment or about all payments of a file. A
// bank that refused a payment may still debit it with its batch and return it in the same
// file: the payment has failed, which is known already.
func (s *Service) applyBankResult(
	ctx context.Context,
	tx *store.Tx,
	r bankfile.Result,
	by string,
	returned map[string]flex.Pence,
	b *BankImport,
) error {
	fixedAccount, reason, err := payees(ctx, tx, r)
	if err != nil {
		return err
	}

	if len(fixedAccount) == 0 {
		b.Lines = append(b.Lines, ImportLine{Result: r, Verdict: VerdictUnknown})
	}

	for _, p := range fixedAccount {
		line := ImportLine{Result: r, ID: p.WithdrawalID}
		line.Reference = p.Reference

		if err := s.applyAttemptResult(ctx, tx, p, reason, by, &line, b); err != nil {
			return err
		}

		paid := r.Outcome == bankfile.Paid && line.From == ledger.Failed
		if paid && reason == "" && returned[p.Reference] == line.Amount {
			line.Verdict, line.Refusal = VerdictKnown, ""
		}

		b.Lines = append(b.Lines, line)
	}

	return nil
}

// payees returns the attempts that a result is about, and the reason if it cannot be applied:
// the bank's amount must equal theirs to the penny.
func payees(
	ctx context.Context,
	tx *store.Tx,
	r bankfile.Result,
) ([]store.Pinned, string, error) {
	var found []store.Pinned
	var err error
	if r.Reference != "" {
		p, err := tx.PinnedByReference(ctx, r.Reference)
		if err != nil || p == nil {
			return nil, "", err
		}

		found = append(found, *p)
	} else if r.Message != "" {
		found, err = tx.PinnedInMessage(ctx, r.Message)
		if err != nil {
			return nil, "", err
		}
	}

	if r.Problem != "" || !r.Known {
		return found, r.Problem, nil
	}

	found, sum, err := paymentVerdict(ctx, tx, found, r.Amount)
	if err != nil {
		return nil, "", err
	}

	if sum != r.Amount && r.Outcome == bankfile.Paid {
		allErased, err := othersErased(ctx, tx, r, len(found))
		if err != nil || allErased {
			return found, "", err
		}
	}

	var reason string
	if sum != r.Amount {
		reason = fmt.Sprintf(
			"the bank says %s, and what was withdrawn is %s",
			r.Amount,
			sum,
		)
	}

	return found, reason, nil
}

// paymentVerdict returns the attempts that an amount of the bank is about, and their sum: all, or
// those that are left if the bank refused some of a batch before and debited it without them.
func paymentVerdict(
	ctx context.Context,
	tx *store.Tx,
	found []store.Pinned,
	amount flex.Pence,
) ([]store.Pinned, flex.Pence, error) {
	var all, remaining flex.Pence
	var rest []store.Pinned
	for _, p := range found {
		w, err := tx.Withdrawal(ctx, p.WithdrawalID)
		if err != nil {
			return nil, 0, err
		}

		all += w.Amount
		if p.Attempt == w.Attempt && w.Status != ledger.Failed {
			rest, remaining = append(rest, p), remaining+w.Amount
		}
	}

	if all != amount && remaining == amount && len(rest) > 0 {
		return rest, remaining, nil
	}

	return found, all, nil
}

// othersErased reports whether an amount of the bank is that of all payments of a file, of which
// some are not known any more because their sites were erased. No site is erased while a
// payment to it is under way, so that the bank's result about these is known already.
func othersErased(
	ctx context.Context,
	tx *store.Tx,
	r bankfile.Result,
	known int,
) (bool, error) {
	if r.Reference != "" || known == 0 {
		return false, nil
	}

	f, err := tx.PaymentFileOf(ctx, r.Message)
	if err != nil || f == nil {
		return false, err
	}

	return f.Total == r.Amount && f.Payments > known, nil
}

// applyAttemptResult applies a result of one attempt at a payment.
func (s *Service) applyAttemptResult(
	ctx context.Context,
	tx *store.Tx,
	p store.Pinned,
	reason, by string,
	line *ImportLine,
	b *BankImport,
) error {
	w, err := tx.LockWithdrawal(ctx, p.WithdrawalID)
	if err != nil {
		return err
	}

	line.Amount = w.Amount
	line.From, line.To = w.Status, w.Status
	moves, err := verdict(ctx, tx, p, w, reason, line)
	if err != nil {
		return err
	}

	note := strings.TrimSpace(line.Reason)
	for _, to := range moves {
		_, t, err := s.move(ctx, tx, w.ID, to, by, note)
		if err != nil {
			return fmt.Errorf("withdrawal %s: %w", w.ID, err)
		}

		line.To = to
		b.Mails += t.sent
		b.WithoutEmail += t.noAddress
	}

	if len(moves) > 0 {
		b.Moved++
	}

	return nil
}

// movesOf returns how a bank's result of an attempt moves the withdrawal, or why the result is
// refused.
func movesOf(
	o bankfile.Outcome,
	w store.Withdrawal,
	attempt int,
) (ImportVerdict, []ledger.PaymentStatus, string) {
	if o == bankfile.UnderWay {
		return VerdictOpen, nil, ""
	}

	// A newer attempt is only made after this one failed.
	if attempt < w.Attempt {
		if o == bankfile.Paid {
			return VerdictRefused, nil, fmt.Sprintf(
				"attempt %d counted as failed and was tried again as attempt %d; if both are paid, ask one back",
				attempt,
				w.Attempt,
			)
		}
		return VerdictKnown, nil, ""
	}

	moves, legal := bankMoves[w.Status][o]
	if !legal {
		return VerdictRefused, nil, fmt.Sprintf(
			"the withdrawal is %s, and the bank says %s",
			w.Status,
			o,
		)
	}

	if len(moves) == 0 {
		return VerdictKnown, nil, ""
	}

	return VerdictNew, moves, ""
}

// bankMoves has the moves of a withdrawal by its status and the outcome that the bank reports;
// no moves means that the outcome is known already. A status that is missing was never given
// to the bank; an outcome that is missing contradicts the status.
var bankMoves = map[ledger.PaymentStatus]map[bankfile.Outcome][]ledger.PaymentStatus{
	ledger.Processing: {
		bankfile.Paid: {ledger.Posted}, bankfile.Failed: {ledger.Failed},
		// it was paid before it came back
		bankfile.Returned: {ledger.Posted, ledger.Returned},
	},
	ledger.Posted:   {bankfile.Paid: nil, bankfile.Returned: {ledger.Returned}},
	ledger.Returned: {bankfile.Paid: nil, bankfile.Returned: nil},
	// the money is back already
	ledger.Failed: {bankfile.Failed: nil, bankfile.Returned: nil},
}
