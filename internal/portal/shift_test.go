package portal

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/ledger"
)

// A household reads how much and when, without a sign to be interpreted.
func TestShift(t *testing.T) {
	t.Parallel()

	span := flex.Span{
		From: time.Date(2026, 12, 3, 18, 0, 0, 0, time.UTC),
		To:   time.Date(2026, 12, 3, 20, 30, 0, 0, time.UTC),
	}

	for _, c := range []struct {
		of     ledger.Transaction
		energy flex.WattHours
		en, de string
	}{
		{of: ledger.Transaction{Kind: ledger.FlexEvent}, energy: -14800,
			en: "14.8 kWh less than usual, 18:00 to 20:30", de: "14,8 kWh weniger als üblich, 18:00 bis 20:30"},
		{of: ledger.Transaction{Kind: ledger.FlexEvent}, energy: 247,
			en: "0.247 kWh more than usual, 18:00 to 20:30", de: "0,247 kWh mehr als üblich, 18:00 bis 20:30"},
		{of: ledger.Transaction{Kind: ledger.FlexPeriodTopUp}, energy: -300,
			en: "0.3 kWh less than was counted before, 18:00 to 20:30", de: "0,3 kWh weniger als zuvor gezählt, 18:00 bis 20:30"},
		{of: ledger.Transaction{Kind: ledger.FlexPeriodTopUp}, energy: 300,
			en: "0.3 kWh more than was counted before, 18:00 to 20:30", de: "0,3 kWh mehr als zuvor gezählt, 18:00 bis 20:30"},
		{of: ledger.Transaction{Kind: ledger.Correction}, energy: 1000,
			en: "1 kWh more than was counted before, 18:00 to 20:30", de: "1 kWh mehr als zuvor gezählt, 18:00 bis 20:30"},
	} {
		booked := ledger.Booked{Transaction: c.of}
		booked.Time, booked.Flex = span, &c.energy

		for i, want := range []string{c.en, c.de} {
			if got := speeches[i].shift(booked); got != want {
				t.Errorf("%s: %q, want %q", speeches[i].tag, got, want)
			}
		}
	}
}
