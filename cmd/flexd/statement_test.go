package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/reward"
)

// A withdrawal that is not paid does not read as if it were.
func TestStatement_WithdrawalStatus(t *testing.T) {
	t.Parallel()

	line := func(status ledger.PaymentStatus, cause string) reward.Line {
		l := reward.Line{Cause: cause}
		l.At, l.Status = time.Date(2026, 11, 30, 10, 1, 0, 0, time.UTC), status
		return l
	}

	st := reward.Statement{
		From: flex.Day{Year: 2026, Month: 11, Dom: 1},
		To:   flex.Day{Year: 2026, Month: 11, Dom: 30},
		Lines: []reward.Line{
			line(ledger.PendingApproval, "withdrawn to the bank account"),
			line(ledger.Failed, "withdrawn to the bank account"),
			line("", "a withdrawal was not paid, and is back in the balance"),
		},
	}

	var out bytes.Buffer
	if err := printStatement(&out, &st); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{
		"withdrawn to the bank account (pending approval)\n",
		"withdrawn to the bank account (failed)\n",
		"a withdrawal was not paid, and is back in the balance\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
