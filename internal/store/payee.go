package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// Payee is a user's bank account as it is stored.
type Payee struct {
	SiteID    flex.SiteID
	Account   []byte    // keyed hash of sort code and account number
	Ending    string    // the last digits of the account number
	ChangedAt time.Time // when it was linked

	sealed []byte // sort code, account number and name
}

// Payee returns the bank account of the site's user, or nil if there is none.
func (tx *Tx) Payee(ctx context.Context, site flex.SiteID) (*Payee, error) {
	p := Payee{SiteID: site}
	err := tx.row(
		ctx,
		`SELECT sealed, account, ending, changed_at FROM payee WHERE org_id = $1 AND site_id = $2`,
		tx.org.Bytes(),
		site.Bytes(),
	).
		Scan(
			&p.sealed,
			&p.Account,
			&p.Ending,
			instant{&p.ChangedAt},
		)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &p, err
}

// OpenPayee returns the account that PutPayee was given.
func (tx *Tx) OpenPayee(p Payee) ([]byte, error) {
	return tx.unseal(sealedPayee, tx.org, p.SiteID.Bytes(), p.sealed)
}

// PutPayee stores the bank account of a site's user under seal, in the place of any other.
// The number is what names the account, whoever it belongs to.
func (tx *Tx) PutPayee(
	ctx context.Context,
	p *Payee,
	account []byte,
	number string,
) error {
	var err error
	p.sealed, err = tx.seal(sealedPayee, tx.org, p.SiteID.Bytes(), account)
	if err != nil {
		return err
	}

	p.Account, err = tx.accountHash(ctx, tx.org, number)
	if err != nil {
		return err
	}

	p.ChangedAt = tx.now
	_, err = tx.exec(
		ctx,
		`INSERT INTO payee (site_id, org_id, sealed, account, ending, changed_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (site_id) DO UPDATE SET sealed = excluded.sealed, account = excluded.account, ending = excluded.ending, changed_at = excluded.changed_at
		WHERE payee.org_id = excluded.org_id`,
		p.SiteID.Bytes(),
		tx.org.Bytes(),
		p.sealed,
		p.Account,
		p.Ending,
		micros(tx.now),
	)

	return err
}

// DropPayee deletes the bank account of a site's user, if it is the one of that hash still.
func (tx *Tx) DropPayee(
	ctx context.Context,
	site flex.SiteID,
	account []byte,
) (bool, error) {
	n, err := tx.exec(
		ctx,
		`DELETE FROM payee WHERE org_id = $1 AND site_id = $2 AND account = $3`,
		tx.org.Bytes(),
		site.Bytes(),
		account,
	)

	return n > 0, err
}

// accountKeyRow is what the key is bound to within its organisation.
var accountKeyRow = []byte("accounts")

// accountHash returns the hash by which an organisation's accounts are compared. Its key is
// made when it is first needed.
func (c conn) accountHash(
	ctx context.Context,
	org flex.OrgID,
	number string,
) ([]byte, error) {
	key, err := c.accountKey(ctx, org)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(number))

	return h.Sum(nil), nil
}

func (c conn) accountKey(ctx context.Context, org flex.OrgID) ([]byte, error) {
	var sealed []byte
	read := func() error {
		return c.row(
			ctx,
			`SELECT sealed FROM account_key WHERE org_id = $1`,
			org.Bytes(),
		).Scan(&sealed)
	}

	err := read()
	if errors.Is(err, sql.ErrNoRows) {
		if err := c.newAccountKey(ctx, org); err != nil {
			return nil, err
		}

		err = read() // another transaction may have made it first
	}

	if err != nil {
		return nil, fmt.Errorf("read the key of accounts: %w", err)
	}

	return c.unseal(sealedAccounts, org, accountKeyRow, sealed)
}

func (c conn) newAccountKey(ctx context.Context, org flex.OrgID) error {
	var key [32]byte
	if _, err := io.ReadFull(c.db.Random(), key[:]); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}

	sealed, err := c.seal(sealedAccounts, org, accountKeyRow, key[:])
	if err != nil {
		return err
	}

	_, err = c.exec(
		ctx,
		`INSERT INTO account_key (org_id, sealed) VALUES ($1, $2) ON CONFLICT (org_id) DO NOTHING`,
		org.Bytes(),
		sealed,
	)

	return err
}

// Pinned is the account that one attempt at a payment goes to. It never changes.
type Pinned struct {
	WithdrawalID flex.TransactionID
	Attempt      int
	SiteID       flex.SiteID
	Account      []byte
	Ending       string
	LinkedAt     time.Time
	Reference    string // what the bank statement calls the payment
	Message      string // the payment file that it was first in

	sealed []byte
}

const pinnedColumns = `p.withdrawal_id, p.attempt, p.site_id, p.sealed, p.account, p.ending, p.linked_at, p.reference, p.message`

func scanPinned(s scanner) (Pinned, error) {
	var p Pinned
	err := s.Scan(
		&p.WithdrawalID,
		&p.Attempt,
		&p.SiteID,
		&p.sealed,
		&p.Account,
		&p.Ending,
		instant{&p.LinkedAt},
		&p.Reference,
		&p.Message,
	)

	return p, err
}

func pinnedRow(id flex.TransactionID, attempt int) []byte {
	return fmt.Appendf(id.Bytes(), ":%d", attempt)
}

// PinPayee fixes the account of the withdrawal's attempt.
func (tx *Tx) PinPayee(
	ctx context.Context,
	w Withdrawal,
	payee Payee,
	reference string,
) error {
	account, err := tx.OpenPayee(payee)
	if err != nil {
		return err
	}

	return tx.pin(ctx, Pinned{
		WithdrawalID: w.ID,
		Attempt:      w.Attempt,
		SiteID:       w.SiteID,
		Account:      payee.Account,
		Ending:       payee.Ending,
		LinkedAt:     payee.ChangedAt,
		Reference:    reference,
	}, tx.org, account)
}

func (c conn) pin(
	ctx context.Context,
	p Pinned,
	org flex.OrgID,
	account []byte,
) error {
	sealed, err := c.seal(
		sealedPinned,
		org,
		pinnedRow(p.WithdrawalID, p.Attempt),
		account,
	)

	if err != nil {
		return err
	}

	row := []value{
		{"withdrawal_id", p.WithdrawalID.Bytes()},
		{"attempt", p.Attempt},
		{"org_id", org.Bytes()},
		{"site_id", p.SiteID.Bytes()},
		{"sealed", sealed},
		{"account", p.Account},
		{"ending", p.Ending},
		{"linked_at", micros(p.LinkedAt)},
		{"reference", p.Reference},
		{"message", p.Message},
	}

	return c.insert(ctx, "withdrawal_payee", row)
}

// PinnedPayee returns the account of the withdrawal's attempt, or nil if it was asked for
// before accounts were fixed and none was linked since.
func (tx *Tx) PinnedPayee(ctx context.Context, w Withdrawal) (*Pinned, error) {
	p, err := scanPinned(tx.row(
		ctx,
		`SELECT `+pinnedColumns+
			` FROM withdrawal_payee p WHERE p.org_id = $1 AND p.withdrawal_id = $2 AND p.attempt = $3`,
		tx.org.Bytes(),
		w.ID.Bytes(),
		w.Attempt,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &p, err
}

// OpenPinned returns the account as it was when it was fixed.
func (tx *Tx) OpenPinned(p Pinned) ([]byte, error) {
	return tx.unseal(
		sealedPinned,
		tx.org,
		pinnedRow(p.WithdrawalID, p.Attempt),
		p.sealed,
	)
}

// PinnedByReference returns the attempt that a bank statement names, or nil. Of one whose
// account was erased with its site there is no account.
func (tx *Tx) PinnedByReference(
	ctx context.Context,
	reference string,
) (*Pinned, error) {
	p, err := scanPinned(tx.row(
		ctx,
		`SELECT `+pinnedColumns+
			` FROM withdrawal_payee p WHERE p.org_id = $1 AND p.reference = $2`,
		tx.org.Bytes(),
		reference,
	))
	if errors.Is(err, sql.ErrNoRows) {
		// To find an erased one, all are read of which no account is stored: not for what the
		// bank calls other payments.
		if !ledger.IsReference(reference) {
			return nil, nil
		}

		return tx.erasedByReference(ctx, reference)
	}

	return &p, err
}

// erasedByReference is PinnedByReference of payments of which no account is stored. Their
// references are worked out again from their ids.
func (tx *Tx) erasedByReference(
	ctx context.Context,
	reference string,
) (*Pinned, error) {
	ws, err := rows(
		ctx,
		tx.conn,
		scanWithdrawal,
		`SELECT `+withdrawalColumns+` FROM withdrawal w WHERE org_id = $1
		AND NOT EXISTS (SELECT 1 FROM withdrawal_payee p WHERE p.withdrawal_id = w.id) ORDER BY id`,
		tx.org.Bytes(),
	)
	if err != nil {
		return nil, err
	}

	for _, w := range ws {
		for n := 1; n <= w.Attempt; n++ {
			if ledger.Reference(w.ID, n) == reference {
				return &Pinned{
					WithdrawalID: w.ID,
					Attempt:      n,
					SiteID:       w.SiteID,
					Reference:    reference,
				}, nil
			}
		}
	}

	return nil, nil
}

// PinnedInMessage returns the attempts that a payment file held.
func (tx *Tx) PinnedInMessage(
	ctx context.Context,
	message string,
) ([]Pinned, error) {
	return rows(
		ctx,
		tx.conn,
		scanPinned,
		`SELECT `+pinnedColumns+
			` FROM withdrawal_payee p WHERE p.org_id = $1 AND p.message = $2 AND p.message <> '' ORDER BY p.withdrawal_id, p.attempt`,
		tx.org.Bytes(),
		message,
	)
}

// NoteMessage stores the payment file that an attempt was first in.
func (tx *Tx) NoteMessage(ctx context.Context, p Pinned, message string) error {
	_, err := tx.exec(
		ctx,
		`UPDATE withdrawal_payee SET message = $4 WHERE org_id = $1 AND withdrawal_id = $2 AND attempt = $3 AND message = ''`,
		tx.org.Bytes(),
		p.WithdrawalID.Bytes(),
		p.Attempt,
		message,
	)

	return err
}

// pinBatch is how many accounts fillAccountHashes updates in one transaction.
const pinBatch = 500

// fillAccountHashes stores the hash of bank accounts that an earlier release linked without
// one, and pins the accounts of payments under way. It needs the keys, so a migration cannot
// do it.
func (db *DB) fillAccountHashes(ctx context.Context) error {
	if db.keys == nil {
		return nil
	}

	for {
		n := 0
		err := db.WriteAll(ctx, func(all *All) error {
			var err error
			n, err = all.fillAccountHashBatch(ctx)
			return err
		})

		if err != nil || n < pinBatch {
			return err
		}
	}
}

// fillAccountHashBatch does so for up to pinBatch accounts, and returns how many.
func (all *All) fillAccountHashBatch(ctx context.Context) (int, error) {
	type older struct {
		Payee
		org flex.OrgID
	}

	scan := func(s scanner) (older, error) {
		var p older
		err := s.Scan(
			&p.SiteID,
			&p.org,
			&p.sealed,
			&p.Ending,
			instant{&p.ChangedAt},
		)

		return p, err
	}

	found, err := rows(
		ctx,
		all.conn,
		scan,
		`SELECT site_id, org_id, sealed, ending, changed_at FROM payee WHERE account IS NULL LIMIT $1`+
			all.db.d.forUpdate,
		pinBatch,
	)
	if err != nil {
		return 0, err
	}

	for _, p := range found {
		if err := all.fillAccountHash(ctx, p.Payee, p.org); err != nil {
			return 0, err
		}
	}

	return len(found), nil
}

// fillAccountHash does so for one account.
func (all *All) fillAccountHash(ctx context.Context, p Payee, org flex.OrgID) error {
	account, err := all.unseal(sealedPayee, org, p.SiteID.Bytes(), p.sealed)
	if err != nil {
		return err
	}

	// The first two lines are sort code and account number.
	parts := strings.SplitN(string(account), "\n", 3)
	if len(parts) != 3 {
		return errors.New("stored bank account: it has not three parts")
	}

	number := parts[1]
	p.Ending = number[max(0, len(number)-endingDigits):]
	p.Account, err = all.accountHash(ctx, org, parts[0]+number)
	if err != nil {
		return err
	}

	_, err = all.exec(
		ctx,
		`UPDATE payee SET account = $2, ending = $3 WHERE site_id = $1`,
		p.SiteID.Bytes(),
		p.Account,
		p.Ending,
	)
	if err != nil {
		return err
	}

	return all.pinPaymentsUnderWay(ctx, p, org, account)
}

// endingDigits is how many digits of an account number a page may show.
const endingDigits = 4

// pinPaymentsUnderWay pins the account of those of a site's payments under way that have none
// pinned.
func (all *All) pinPaymentsUnderWay(
	ctx context.Context,
	payee Payee,
	org flex.OrgID,
	account []byte,
) error {
	ws, err := rows(
		ctx,
		all.conn,
		scanWithdrawal,
		`SELECT `+withdrawalColumns+
			` FROM withdrawal w WHERE org_id = $1 AND site_id = $2 AND status IN ($3, $4, $5)
		AND NOT EXISTS (SELECT 1 FROM withdrawal_payee p WHERE p.withdrawal_id = w.id AND p.attempt = w.attempt)`,
		org.Bytes(),
		payee.SiteID.Bytes(),
		string(ledger.PendingApproval),
		string(ledger.Approved),
		string(ledger.Processing),
	)

	if err != nil {
		return err
	}

	for _, w := range ws {
		p := Pinned{
			WithdrawalID: w.ID,
			Attempt:      w.Attempt,
			SiteID:       w.SiteID,
			Account:      payee.Account,
			Ending:       payee.Ending,
			LinkedAt:     payee.ChangedAt,
		}

		p.Reference = ledger.Reference(w.ID, w.Attempt)
		if err := all.pin(ctx, p, org, account); err != nil {
			return err
		}
	}

	return nil
}

// formerEmailsKept is how long notices of changes still go to an address that was replaced.
const formerEmailsKept = 90 * 24 * time.Hour

// noteEmail stores the address that the site's user had, if it is to be another.
func (tx *Tx) noteEmail(ctx context.Context, s flex.Site, before string) error {
	if before == "" || before == s.Email.Reveal() {
		return nil
	}

	_, err := tx.exec(
		ctx,
		`DELETE FROM former_email WHERE org_id = $1 AND site_id = $2 AND changed_at < $3`,
		tx.org.Bytes(),
		s.ID.Bytes(),
		micros(tx.now.Add(-formerEmailsKept)),
	)
	if err != nil {
		return err
	}

	_, err = tx.exec(
		ctx,
		`INSERT INTO former_email (site_id, org_id, email, changed_at) VALUES ($1, $2, $3, $4) ON CONFLICT (site_id, changed_at) DO NOTHING`,
		s.ID.Bytes(),
		tx.org.Bytes(),
		tx.hide(personEmail, before),
		micros(tx.now),
	)

	return err
}

// FormerEmail is an address that a site's user had until an instant.
type FormerEmail struct {
	Email     flex.Personal
	ChangedAt time.Time
}

// FormerEmails returns the addresses that a site's user had until after an instant, newest
// first.
func (tx *Tx) FormerEmails(
	ctx context.Context,
	site flex.SiteID,
	after time.Time,
) ([]FormerEmail, error) {
	scan := func(s scanner) (FormerEmail, error) {
		var f FormerEmail
		err := s.Scan(opened(tx.conn, personEmail, &f.Email), instant{&f.ChangedAt})
		return f, err
	}

	return rows(
		ctx,
		tx.conn,
		scan,
		`SELECT email, changed_at FROM former_email WHERE org_id = $1 AND site_id = $2 AND changed_at > $3 ORDER BY changed_at DESC`,
		tx.org.Bytes(),
		site.Bytes(),
		micros(after),
	)
}
