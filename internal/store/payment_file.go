package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"flexd/internal/flex"
)

// PaymentFile is a payment file that was made.
type PaymentFile struct {
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

const paymentFileColumns = `number, message, serial, format, day, made_at, made_by, payments, total, sha256`

func scanPaymentFile(s scanner) (PaymentFile, error) {
	var day string
	var f PaymentFile
	err := s.Scan(
		&f.Number,
		&f.Message,
		&f.Serial,
		&f.Format,
		&day,
		instant{&f.MadeAt},
		&f.MadeBy,
		&f.Payments,
		&f.Total,
		&f.SHA256,
	)

	if err != nil {
		return f, err
	}

	f.Day, err = flex.ParseDay(day)

	return f, err
}

// NewPaymentFile returns a file with the next number, and with the name and serial of a new
// message. The organisation must be locked.
func (tx *Tx) NewPaymentFile(ctx context.Context) (PaymentFile, error) {
	var f PaymentFile
	err := tx.row(
		ctx,
		`SELECT coalesce(max(number), 0) + 1, coalesce(max(serial), 0) + 1 FROM payment_file WHERE org_id = $1`,
		tx.org.Bytes(),
	).
		Scan(&f.Number, &f.Serial)
	if err != nil {
		return f, err
	}

	// The organisation's id keeps apart those that pay from one account.
	id := tx.org.String()
	f.Message = fmt.Sprintf(
		"FLEXD-%s-%06d-%s",
		tx.now.In(flex.London).Format("20060102"),
		f.Serial,
		id[len(id)-messageDigits:],
	)

	f.MadeAt = tx.now

	return f, nil
}

// messageDigits is how many digits of its organisation's id a message's name has.
const messageDigits = 8

// AddPaymentFile records that the file was made.
func (tx *Tx) AddPaymentFile(ctx context.Context, f PaymentFile) error {
	row := []value{
		{"org_id", tx.org.Bytes()},
		{"number", f.Number},
		{"message", f.Message},
		{"serial", f.Serial},
		{"format", f.Format},
		{"day", f.Day.String()},
		{"made_at", micros(f.MadeAt)},
		{"made_by", f.MadeBy},
		{"payments", f.Payments},
		{"total", int64(f.Total)},
		{"sha256", f.SHA256},
	}

	return tx.insert(ctx, "payment_file", row)
}

// PaymentFiles returns the organisation's payment files, newest first, at most limit.
func (tx *Tx) PaymentFiles(
	ctx context.Context,
	limit int,
) ([]PaymentFile, error) {
	return tx.PaymentFilesBefore(ctx, math.MaxInt64, limit)
}

// PaymentFilesBefore returns the files with a number below the one given, newest first.
func (tx *Tx) PaymentFilesBefore(
	ctx context.Context,
	number int64,
	limit int,
) ([]PaymentFile, error) {
	return rows(
		ctx,
		tx.conn,
		scanPaymentFile,
		`SELECT `+paymentFileColumns+
			` FROM payment_file WHERE org_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3`,
		tx.org.Bytes(),
		number,
		limit,
	)
}

// PaymentFileOf returns the first file of the message, or nil.
func (tx *Tx) PaymentFileOf(
	ctx context.Context,
	message string,
) (*PaymentFile, error) {
	f, err := scanPaymentFile(tx.row(
		ctx,
		`SELECT `+paymentFileColumns+
			` FROM payment_file WHERE org_id = $1 AND message = $2 ORDER BY number LIMIT 1`,
		tx.org.Bytes(),
		message,
	))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}

	return &f, err
}
