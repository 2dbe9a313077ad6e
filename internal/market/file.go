package market

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// MaxPrice bounds what is believed of a price, either way: no half-hour in Great Britain
// has been settled beyond it, so what is beyond is a fault of the source.
const MaxPrice = 6000 * 1_000_000 * flex.Price(1)

// MaxRows is the number of half-hours in one file: some forty years.
const MaxRows = 700_000

// ReadPrices reads a CSV file of prices, one half-hour a row, with the columns start, an
// instant with its offset, and price_gbp_per_mwh, where an empty field is a price that is
// known to be missing. It returns them in order of time. What is wrong is a flex.Invalid
// that names the line, and then nothing is returned.
func ReadPrices(r io.Reader) ([]flex.PricedPeriod, error) {
	var prices []flex.PricedPeriod
	lines := map[flex.Period]int{}

	for row, err := range csvfile.Read(r, "start", "price_gbp_per_mwh") {
		if err != nil {
			return nil, err
		}

		p, err := readPrice(row)
		if err != nil {
			return nil, err
		}

		if line, twice := lines[p.Period]; twice {
			return nil, row.Fault("start: line %d has the same half-hour", line)
		}

		if len(prices) == MaxRows {
			return nil, row.Fault(
				"the file has more than %d half-hours; cut it in two",
				MaxRows,
			)
		}

		lines[p.Period] = row.Line
		prices = append(prices, p)
	}

	if len(prices) == 0 {
		return nil, flex.Fail(flex.Invalid, "the file holds no prices")
	}

	slices.SortFunc(prices, func(a, b flex.PricedPeriod) int {
		return cmp.Compare(a.Period.Sub(b.Period), 0)
	})

	return prices, nil
}

func readPrice(row csvfile.Row) (flex.PricedPeriod, error) {
	start, err := time.Parse(time.RFC3339, row.Get("start"))
	if err != nil {
		return flex.PricedPeriod{}, row.Fault(
			"start: %q is not an instant of the form 2026-04-14T22:00:00Z",
			row.Get("start"),
		)
	}

	var p flex.PricedPeriod
	p.Period = flex.PeriodAt(start)
	if !p.Period.Start().Equal(start) {
		return p, row.Fault(
			"start: %q is not the start of a half-hour",
			row.Get("start"),
		)
	}

	text := row.Get("price_gbp_per_mwh")
	if text == "" {
		return p, nil
	}

	price, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(price) {
		return p, row.Fault("price_gbp_per_mwh: %q is not a number", text)
	}
	if !believable(price) {
		return p, row.Fault(
			"price_gbp_per_mwh: %s is beyond ±%.0f, which no half-hour has cost",
			text,
			MaxPrice.GBPPerMWh(),
		)
	}

	p.Price, p.Known = flex.FromGBPPerMWh(price), true

	return p, nil
}

// believable reports whether a price in pounds per megawatt-hour is within MaxPrice.
func believable(price float64) bool {
	return math.Abs(price) <= MaxPrice.GBPPerMWh()
}
