package reward

import (
	"context"
	"errors"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/store"
)

// PaymentResult is what became of a payment: posted, failed or returned.
type PaymentResult struct {
	ID     flex.TransactionID
	Status ledger.PaymentStatus
	// as in the payment file; 0 if it is not given, which means the latest. That a payment
	// which was tried again failed needs it
	Attempt int
	Note    string
}

// known reports whether the result says again what is known: of the withdrawal as it stands,
// on its way to there, or of an attempt before it was tried again.
func (r PaymentResult) known(w store.Withdrawal) bool {
	return r.Status == w.Status ||
		r.Status == ledger.Posted && w.Status == ledger.Returned ||
		r.Attempt > 0 && r.Attempt < w.Attempt
}

// check fails if the result contradicts the attempts at the withdrawal.
func (r PaymentResult) check(w store.Withdrawal) error {
	if r.Attempt > w.Attempt {
		return flex.Fail(
			flex.Conflict,
			"of withdrawal %s there was no attempt %d, the latest is %d",
			r.ID,
			r.Attempt,
			w.Attempt,
		)
	}

	// What failed and was tried again must not have been paid as well.
	if r.Status == ledger.Posted && r.Attempt > 0 && r.Attempt < w.Attempt {
		return flex.Fail(
			flex.Conflict,
			"attempt %d of withdrawal %s counted as failed and was tried again as attempt %d; if both are paid, ask one back, and take this line out of the file",
			r.Attempt,
			r.ID,
			w.Attempt,
		)
	}

	// The file of the first attempt, read again, would give the money back while the bank pays
	// the second.
	noAttempt := r.Attempt == 0 && w.Attempt > 1
	if noAttempt && r.Status == ledger.Failed && w.Status != ledger.Failed {
		return flex.Fail(
			flex.Conflict,
			"withdrawal %s was tried again, and is at attempt %d: say in the column attempt which one failed",
			r.ID,
			w.Attempt,
		)
	}

	return nil
}

// Imported is what an import of results did.
type Imported struct {
	Results      int
	Moved        int // withdrawals that are elsewhere now
	Mails        int // queued to users whose payment came back
	WithoutEmail int // users of those that have no e-mail address, and were not informed
}

// Import takes what became of payments. One that says again what is known changes nothing.
// It fails at the first result that cannot be; none of them then counts.
func (s *Service) Import(
	ctx context.Context,
	org flex.OrgID,
	by string,
	results []PaymentResult,
) (Imported, error) {
	return s.importResults(ctx, org, by, results, false)
}

// TryImport returns what Import would do, and does nothing.
func (s *Service) TryImport(
	ctx context.Context,
	org flex.OrgID,
	by string,
	results []PaymentResult,
) (Imported, error) {
	return s.importResults(ctx, org, by, results, true)
}

func (s *Service) importResults(
	ctx context.Context,
	org flex.OrgID,
	by string,
	results []PaymentResult,
	dry bool,
) (Imported, error) {
	var outcome Imported
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		outcome = Imported{Results: len(results)}
		for i, r := range results {
			if err := s.applyResult(ctx, tx, r, by, &outcome); err != nil {
				return fmt.Errorf("result %d: %w", i+1, err)
			}
		}

		if dry {
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	}

	return outcome, err
}

// applyResult counts one result.
func (s *Service) applyResult(
	ctx context.Context,
	tx *store.Tx,
	r PaymentResult,
	by string,
	outcome *Imported,
) error {
	switch r.Status {
	case ledger.Posted, ledger.Failed, ledger.Returned:
	default:
		return flex.Fail(
			flex.Malformed,
			"a payment is %s, %s or %s, not %q",
			ledger.Posted,
			ledger.Failed,
			ledger.Returned,
			r.Status,
		)
	}

	// The same result may be taken by another process at the same time.
	w, err := tx.LockWithdrawal(ctx, r.ID)
	if err != nil {
		return err
	}

	if err := r.check(w); err != nil || r.known(w) {
		return err
	}

	_, t, err := s.move(ctx, tx, r.ID, r.Status, by, r.Note)
	if err != nil {
		return fmt.Errorf("withdrawal %s: %w", r.ID, err)
	}

	outcome.Moved++
	outcome.Mails += t.sent
	outcome.WithoutEmail += t.noAddress

	return nil
}
