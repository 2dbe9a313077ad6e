package pricing_test

import (
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
)

// TestInventedPrice holds the shape of a year of made-up prices.
func TestInventedPrice(t *testing.T) {
	var sum, evening, night float64
	var n, evenings, nights, below int
	year := flex.Span{From: flex.Day{Year: 2026, Month: 1, Dom: 1}.Start(), To: flex.Day{Year: 2027, Month: 1, Dom: 1}.Start()}
	for p := flex.PeriodAt(year.From); p.Start().Before(year.To); p = p.Add(1) {
		price := pricing.InventedPrice(p)
		if price != pricing.InventedPrice(p) || price%10_000 != 0 {
			t.Fatalf("%s: %d is not the same twice, or has more than two decimals", p.Start(), price)
		}
		v := price.GBPPerMWh()
		if v < -60 || v > 220 {
			t.Fatalf("%s: %.2f", p.Start(), v)
		}

		sum, n = sum+v, n+1
		if v < 0 {
			below++
		}
		switch p.Start().In(flex.London).Hour() {
		case 18:
			evening, evenings = evening+v, evenings+1
		case 3:
			night, nights = night+v, nights+1
		}
	}

	if mean := sum / float64(n); mean < 60 || mean > 110 {
		t.Errorf("the year's mean is %.2f", mean)
	}
	if e, d := evening/float64(evenings), night/float64(nights); e < d+60 {
		t.Errorf("evenings cost %.2f, nights %.2f", e, d)
	}

	if below < 50 || below > n/20 {
		t.Errorf("%d of %d half-hours are below zero", below, n)
	}
	first := flex.PeriodAt(time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC))
	if got, want := pricing.InventedPrice(first).GBPPerMWh(), inventedSample; got != want {
		t.Errorf("the price of %s is %.2f, and was %.2f: stored curves would change", first.Start(), got, want)
	}
}

const inventedSample = 148.72
