package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"flexd/internal/flex"
)

// Attribution must accompany the prices of this package.
const Attribution = "Contains BMRS data © Elexon Limited copyright and database right 2018"

//go:embed data/gb_system_price_2018.csv.gz
var prices2018 []byte

// Prices2018 returns the real GB system prices of 2018, half-hour by half-hour.
func Prices2018() ([]flex.PricedPeriod, error) {
	zr, err := gzip.NewReader(bytes.NewReader(prices2018))
	if err != nil {
		return nil, err
	}

	r := csv.NewReader(bufio.NewReader(zr))
	var out []flex.PricedPeriod

	for line := 1; ; line++ {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 1 {
			continue // the header
		}

		at, err := time.Parse(time.RFC3339, rec[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}

		p, err := strconv.ParseFloat(rec[1], 64)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}

		out = append(out, flex.PricedPeriod{
			Period: flex.PeriodAt(at),
			Price:  flex.FromGBPPerMWh(p),
			Known:  true,
		})
	}
}

// PricesAround returns prices for the London days from first to last, taken from the same
// season and weekdays of 2018: each day gets the prices of the day a whole number of weeks
// earlier, settlement period by settlement period. Where the 2018 day is shorter, as on a
// clock change, the period before stands in.
func PricesAround(first, last flex.Day) ([]flex.PricedPeriod, error) {
	all, err := Prices2018()
	if err != nil {
		return nil, err
	}

	by := make(map[flex.Period]flex.Price, len(all))
	for _, p := range all {
		by[p.Period] = p.Price
	}

	var out []flex.PricedPeriod
	for d := first; !d.Start().After(last.Start()); d = d.Add(1) {
		twin := twin2018(d)
		for n := range d.Periods() {
			p, known := by[twin.Period(min(n, twin.Periods()-1)+1)]
			out = append(out, flex.PricedPeriod{
				Period: d.Period(n + 1),
				Price:  p,
				Known:  known,
			})
		}
	}

	return out, nil
}

// twin2018 returns the day of 2018 that lies a whole number of weeks from d and nearest to
// its date.
func twin2018(d flex.Day) flex.Day {
	target := time.Date(2018, d.Month, d.Dom, 12, 0, 0, 0, time.UTC)
	noon := time.Date(d.Year, d.Month, d.Dom, 12, 0, 0, 0, time.UTC)
	weeks := int(noon.Sub(target).Round(7*24*time.Hour) / (7 * 24 * time.Hour))
	twin := d.Add(-7 * weeks)
	for twin.Year < 2018 {
		twin = twin.Add(7)
	}

	for twin.Year > 2018 {
		twin = twin.Add(-7)
	}

	return twin
}

// PricesCSV writes prices in the form that `flexd prices import` reads.
func PricesCSV(w io.Writer, prices []flex.PricedPeriod) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, "start,price_gbp_per_mwh")

	for _, p := range prices {
		text := ""
		if p.Known {
			text = strconv.FormatFloat(p.Price.GBPPerMWh(), 'f', 2, 64)
		}
		fmt.Fprintf(b, "%s,%s\n", p.Period.Start().Format(time.RFC3339), text)
	}

	return b.Flush()
}
