package reward

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/internal/bankfile"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Payment is a line of a payment file: what a bank, or a payout provider, is to pay.
type Payment struct {
	Withdrawal
	BankAccount
	Reference string // what the user sees on the bank statement
	message   string // the file that it was first in
}

// ExportOptions say which payments are exported, and how.
type ExportOptions struct {
	// export again what was exported before and has no result yet, to replace a lost file
	Repeat  bool
	Message string          // with Again: only the payments of that file
	Format  bankfile.Format // the organisation's setting if blank
	// the day on which the payments are to be made; the earliest possible if zero
	Day flex.Day
}

// PaymentFileRecord is the stored record of a payment file.
type PaymentFileRecord struct {
	Number   int64
	Message  string // names it to the bank
	Serial   int64  // of the message
	Format   string
	Day      flex.Day // on which the payments are to be made
	MadeAt   time.Time
	MadeBy   string
	Payments int
	Total    flex.Pence
	SHA256   []byte
}

// PaymentFile is a file of payments.
type PaymentFile struct {
	PaymentFileRecord
	Content  []byte
	Payments []Payment
	LeftOut  []string // why approved withdrawals are not in it
}

// Name is the suggested name of the file.
func (f PaymentFile) Name() string {
	return fmt.Sprintf(
		"payments-%06d%s",
		f.Number,
		bankfile.Format(f.Format).Extension(),
	)
}

// String describes the file for the audit log.
func (f PaymentFile) String() string {
	return fmt.Sprintf(
		"%s, %s in all, %s for %s, message %s, SHA-256 %x",
		flex.Count(len(f.Payments), "payment"),
		f.Total,
		f.Format,
		f.Day,
		f.Message,
		f.SHA256,
	)
}

// PaymentFiles returns the files that were made, newest first.
func (s *Service) PaymentFiles(
	ctx context.Context,
	org flex.OrgID,
) ([]PaymentFileRecord, error) {
	var files []PaymentFileRecord
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		records, err := tx.PaymentFiles(ctx, payoutsMax)
		files = fileRecords(records)
		return err
	})

	return files, err
}

// Export makes the file of all approved withdrawals and moves them to processing: from then on
// they count as given to the bank. Each is paid to the account that was linked when it was
// requested, whatever was linked since. A withdrawal that another command cancels meanwhile is
// left out. A file that is made again has the name of the first, so that a bank that has the
// first pays nothing twice.
func (s *Service) Export(
	ctx context.Context,
	org flex.OrgID,
	by string,
	o ExportOptions,
) (PaymentFile, error) {
	var f PaymentFile
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		// Exports wait for each other, so that no payment is in the files of both.
		err := tx.LockOrg(ctx)
		if err == nil {
			f, err = s.export(ctx, tx, by, o)
		}

		return err
	})

	return f, err
}

func (s *Service) export(
	ctx context.Context,
	tx *store.Tx,
	by string,
	o ExportOptions,
) (PaymentFile, error) {
	var f PaymentFile
	org, err := tx.OrgRecord(ctx)
	if err != nil {
		return f, err
	}

	format, err := formatOf(o, org)
	if err != nil {
		return f, err
	}

	f.Day, err = paymentDay(format, o.Day, flex.DayAt(tx.Now()))
	if err != nil {
		return f, err
	}

	f.Payments, f.LeftOut, err = payments(
		ctx,
		tx,
		format,
		o,
		payoutTerms(org.Settings.Payout),
	)

	if err != nil {
		return f, err
	}

	if err := f.checkExportable(format, o.Message); err != nil {
		return f, err
	}

	if err := f.name(ctx, tx, format, o.Format, by); err != nil {
		return f, err
	}

	if err := f.write(org); err != nil {
		return f, err
	}

	err = s.exported(ctx, tx, f, by, o)

	return f, err
}

// checkExportable refuses a file without payments where its format does not allow it, or where a
// file of that name is to be written again.
func (f *PaymentFile) checkExportable(format bankfile.Format, repeat string) error {
	if len(f.Payments) > 0 {
		return nil
	}

	if repeat != "" {
		return flex.Fail(
			flex.Conflict,
			"no payment of a file %q waits for its result%s: the names are those of flexd payouts files",
			repeat,
			leftOutText(f.LeftOut),
		)
	}

	if format == bankfile.CSV {
		return nil
	}

	return flex.Fail(
		flex.Conflict,
		"there is nothing to pay: a %s file cannot be empty%s",
		format,
		leftOutText(f.LeftOut),
	)
}

// name sets the file's number and the message's name for the bank.
func (f *PaymentFile) name(
	ctx context.Context,
	tx *store.Tx,
	format, standard bankfile.Format,
	by string,
) error {
	record, err := fileOf(ctx, tx, format, standard, f.Payments)
	if err != nil {
		return err
	}

	record.Day, record.Format = f.Day, string(format)
	record.MadeBy, record.Payments = by, len(f.Payments)
	f.PaymentFileRecord = PaymentFileRecord(record)

	return nil
}

// leftOutText lists the reasons for which withdrawals were left out, if there are any.
func leftOutText(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return "; " + strings.Join(reasons, "; ")
}

func formatOf(o ExportOptions, org flex.Org) (bankfile.Format, error) {
	format := o.Format
	if format == "" {
		format = bankfile.Format(org.Settings.Payout.FileFormat)
	}

	if format == "" {
		format = bankfile.CSV
	}

	if _, err := bankfile.ReadFormat(string(format)); err != nil {
		return format, err
	}

	return format, payerOf(org).Ready(format)
}

// payerOf is who pays the organisation's users.
func payerOf(org flex.Org) bankfile.Payer {
	p, books := org.Settings.Payout.Payer, org.Settings.Books
	name := books.PayerName
	if name == "" {
		name = org.Name
	}

	return bankfile.Payer{
		Name:     name,
		SortCode: p.SortCode,
		Number:   p.Number,
		SUN:      p.SUN,
		IBAN:     p.IBAN,
		BIC:      p.BIC,
	}
}

// payAhead is how many days ahead a payment file may be for.
const payAhead = 30

// paymentDay returns the day on which the file's payments are to be made. Bacs processes a
// file on the working day after it was sent at the earliest; other files are for today, or
// for the next working day.
func paymentDay(
	format bankfile.Format,
	requested, today flex.Day,
) (flex.Day, error) {
	earliest := workingDay(today)
	if format == bankfile.Bacs18 {
		earliest = workingDay(earliest.Add(1))
	}

	if requested == (flex.Day{}) {
		return earliest, nil
	}

	last := today.Add(payAhead)
	if requested.Start().Before(earliest.Start()) ||
		requested.Start().After(last.Start()) {
		return requested, flex.Fail(
			flex.Invalid,
			"a %s file made today is for %s at the earliest and %s at the latest, not %s",
			format,
			earliest,
			last,
			requested,
		)
	}

	if !settle.Working(requested) {
		return requested, flex.Fail(
			flex.Invalid,
			"%s is no working day; the next one is %s",
			requested,
			workingDay(requested),
		)
	}

	return requested, nil
}

// workingDay returns the day, or the first working day after it.
func workingDay(d flex.Day) flex.Day {
	for !settle.Working(d) {
		d = d.Add(1)
	}
	return d
}

// payments returns the payments to export, and the reasons for which others are left out.
func payments(
	ctx context.Context,
	tx *store.Tx,
	format bankfile.Format,
	o ExportOptions,
	terms ledger.PayoutTerms,
) ([]Payment, []string, error) {
	status := ledger.Approved
	if o.Repeat {
		status = ledger.Processing
	}

	ws, err := tx.Withdrawals(ctx, status)
	if err != nil {
		return nil, nil, err
	}

	var ps []Payment
	var leftOut []string
	for _, w := range ws {
		// On PostgreSQL another transaction may have moved it since it was listed.
		w, err := tx.LockWithdrawal(ctx, w.ID)
		if err != nil {
			return nil, nil, err
		}

		if w.Status != status {
			leftOut = append(
				leftOut,
				fmt.Sprintf("%s: it became %s meanwhile", w.ID, w.Status),
			)

			continue
		}

		p, reason, err := payment(ctx, tx, w, terms)
		if err != nil {
			return nil, nil, err
		}

		if o.Message != "" && p.message != o.Message {
			continue
		}

		if reason == "" {
			reason = bankfile.Refusal(format, p.line())
		}

		if reason != "" {
			leftOut = append(leftOut, fmt.Sprintf("%s: %s", w.ID, reason))
			continue
		}

		ps = append(ps, p)
	}

	return ps, leftOut, nil
}

// payment returns the line of a withdrawal, or the reason for which there is none.
func payment(
	ctx context.Context,
	tx *store.Tx,
	w store.Withdrawal,
	terms ledger.PayoutTerms,
) (Payment, string, error) {
	fixedAccount, err := tx.PinnedPayee(ctx, w)
	var p Payment
	if err != nil {
		return p, "", err
	}
	if fixedAccount == nil {
		return p, "no bank account is fixed for it; cancel it, and the user can ask again", nil
	}

	// Withdrawals from before accounts had a waiting time have none.
	from := terms.PaidFrom(fixedAccount.LinkedAt)
	if w.Status == ledger.Approved && tx.Now().Before(from) {
		return p, "its account is paid from " +
			from.UTC().Format(time.RFC3339), nil
	}

	plaintext, err := tx.OpenPinned(*fixedAccount)
	if err != nil {
		return p, "", err
	}

	p = Payment{
		Withdrawal: Withdrawal(w),
		Reference:  fixedAccount.Reference,
		message:    fixedAccount.Message,
	}

	p.BankAccount, err = unpack(plaintext)

	return p, "", err
}

// line is the payment as files have it.
func (p Payment) line() bankfile.Payment {
	return bankfile.Payment{
		ID:        p.ID.String(),
		Attempt:   p.Attempt,
		Name:      p.Name,
		SortCode:  p.SortCode,
		Number:    p.Number,
		Amount:    p.Amount,
		Reference: p.Reference,
	}
}

// fileOf returns the file that contains the payments: a new message, or the one that all of
// them were in before. A CSV file may contain those of several messages, since its reader has
// the ids. The format is the organisation's setting unless one was asked for.
func fileOf(
	ctx context.Context,
	tx *store.Tx,
	format, requested bankfile.Format,
	ps []Payment,
) (store.PaymentFile, error) {
	f, err := tx.NewPaymentFile(ctx)
	if err != nil {
		return f, err
	}

	var before []string
	for _, p := range ps {
		if p.message != "" && !slices.Contains(before, p.message) {
			before = append(before, p.message)
		}
	}

	slices.Sort(before)
	if len(before) > 1 && format != bankfile.CSV {
		return f, flex.Fail(
			flex.Conflict,
			"the payments without a result are of %d files, and each is written again by itself: name one with --message: %s",
			len(before),
			strings.Join(before, ", "),
		)
	}

	for _, message := range before {
		first, err := tx.PaymentFileOf(ctx, message)
		if err != nil {
			return f, err
		}
		if first == nil {
			continue
		}

		// In another format than the first file's, a bank could not recognise payments that it
		// has already.
		if requested == "" && first.Format != string(format) {
			return f, flex.Fail(
				flex.Conflict,
				"the payments of %s were in a %s file, and this would be a %s file, in which a bank does not know them again: name the format with --format, another than the first only if no bank has that",
				message,
				first.Format,
				format,
			)
		}

		if len(before) == 1 {
			f.Message, f.Serial = first.Message, first.Serial
		}
	}

	return f, nil
}

// write fills in the file's content and what tells it from others.
func (f *PaymentFile) write(org flex.Org) error {
	file := bankfile.File{
		Message: f.Message,
		Serial:  int(f.Serial),
		MadeAt:  f.MadeAt,
		Day:     f.Day,
		Payer:   payerOf(org),
	}

	for _, p := range f.Payments {
		file.Payments = append(file.Payments, p.line())
	}

	var content bytes.Buffer
	if err := file.Write(&content, bankfile.Format(f.Format)); err != nil {
		return err
	}

	sum := sha256.Sum256(content.Bytes())
	f.Content, f.SHA256 = content.Bytes(), sum[:]
	f.Total = file.Total()

	return nil
}

// exported records that the payments were given to the bank in the file.
func (s *Service) exported(
	ctx context.Context,
	tx *store.Tx,
	f PaymentFile,
	by string,
	o ExportOptions,
) error {
	if len(f.Payments) == 0 {
		return nil
	}

	for i, p := range f.Payments {
		if !o.Repeat {
			w, _, err := s.move(ctx, tx, p.ID, ledger.Processing, by, "")
			if err != nil {
				return err
			}

			f.Payments[i].Withdrawal = Withdrawal(w)
		}

		err := tx.NoteMessage(
			ctx,
			store.Pinned{WithdrawalID: p.ID, Attempt: p.Attempt},
			f.Message,
		)
		if err != nil {
			return err
		}
	}

	return tx.AddPaymentFile(ctx, store.PaymentFile(f.PaymentFileRecord))
}

func fileRecords(records []store.PaymentFile) []PaymentFileRecord {
	files := make([]PaymentFileRecord, len(records))
	for i, r := range records {
		files[i] = PaymentFileRecord(r)
	}

	return files
}
