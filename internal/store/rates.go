package store

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"flexd/internal/flex"
)

// ratesValue writes a site's rates as site.rates has them.
func ratesValue(r flex.TariffRates) string {
	if r == (flex.TariffRates{}) {
		return ""
	}

	words := make([]string, 3)

	for i, rate := range []*float64{r.Import, r.OffPeak, r.Export} {
		if rate != nil {
			words[i] = strconv.FormatFloat(*rate, 'g', -1, 64)
		}
	}

	return strings.Join(words, ",")
}

// ratesText reads what ratesValue wrote.
type ratesText struct{ to *flex.TariffRates }

// Scan reads a column.
func (t ratesText) Scan(column any) error {
	var text sql.NullString
	if err := text.Scan(column); err != nil || text.String == "" {
		return err
	}

	words := strings.Split(text.String, ",")
	rates := []**float64{&t.to.Import, &t.to.OffPeak, &t.to.Export}

	if len(words) != len(rates) {
		return fmt.Errorf("a site's rates: %q", text.String)
	}

	for i, word := range words {
		if word == "" {
			continue
		}

		rate, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return fmt.Errorf("a site's rates: %w", err)
		}

		*rates[i] = &rate
	}

	return nil
}
