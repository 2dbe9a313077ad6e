package contract_test

import (
	"testing"

	"flexd/internal/contract"
	"flexd/internal/flex"
	"flexd/internal/grid"
)

// TestOfferPage_Delivered says what an offer delivered once something of it is settled, be it nothing.
func TestOfferPage_Delivered(t *testing.T) {
	page := contract.OfferPage(&grid.OfferPage{Offers: []grid.OfferLine{
		{},
		{Settled: flex.InstructedEvents{Found: 2, Waiting: 2}},
		{Settled: flex.InstructedEvents{Found: 2, Waiting: 1, Flex: -7400}},
		{Settled: flex.InstructedEvents{Found: 1}},
	}})

	for i, want := range []*float64{nil, nil, new(-7.4), new(0.0)} {
		got := page.Offers[i].DeliveredKWh
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("offer %d: %v, want %v", i, got, want)
		}
	}
}
