package product

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// Columns are the columns that a file of products has; the others are optional.
var Columns = []string{
	"reference",
	"service",
	"start_timestamp",
	"end_timestamp",
	"volume_kw",
	"price_gbp_per_mwh",
}

// productOptions are the columns that it may have.
var productOptions = []string{
	"direction",
	"availability_gbp_per_mw_per_hour",
	"baseline",
	"participation",
	"answer_by",
	"group",
	"gsp_group",
}

// Read reads products from CSV with Columns and, if they are given, direction (down, up),
// availability_gbp_per_mw_per_hour, baseline, participation (opt_in, opt_out), answer_by, group and
// gsp_group. Other columns are refused: one that is misspelt would have a product be settled by
// another baseline. A file that cannot be read is flex.Invalid, and so are products that can never be:
// each is said with its line, wrongRowsMax at most.
func Read(f io.Reader, who string) ([]flex.Product, error) {
	var wrong []string

	var products []flex.Product
	for row, err := range csvfile.ReadKnown(f, Columns, productOptions) {
		if err != nil && flex.KindOf(err) != flex.Invalid { // the file could not be read
			return nil, err
		}
		if err != nil {
			return nil, wrongRows(append(wrong, err.Error()))
		}

		p, err := productOf(row)
		if err == nil {
			if e := checkProduct(&p); e != nil {
				err = row.Fault("%v", e)
			}
		}

		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}

		p.Who = who
		products = append(products, p)
		if len(products) > Max {
			return nil, row.Fault("there are more than %d products", Max)
		}
	}

	return products, wrongRows(wrong)
}

// wrongRowsMax is how many wrong rows of a file are named.
const wrongRowsMax = 20

// wrongRows is the failure of a file with wrong rows; nil if there is none.
func wrongRows(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}

	named := strings.Join(wrong[:min(len(wrong), wrongRowsMax)], "; ")
	if more := len(wrong) - wrongRowsMax; more > 0 {
		named += fmt.Sprintf("; and %d more rows", more)
	}

	return flex.Fail(flex.Invalid, "%s", named)
}

// productOf reads a row.
func productOf(row csvfile.Row) (flex.Product, error) {
	p := flex.Product{
		Reference: row.Get("reference"),
		Service:   row.Get("service"),
		Baseline:  row.Get("baseline"),
		Scope: flex.Scope{
			Group:    row.Get("group"),
			GSPGroup: row.Get("gsp_group"),
		},
	}

	var err error
	p.From, err = row.Instant("start_timestamp")
	if err == nil {
		p.To, err = row.Instant("end_timestamp")
	}
	if err == nil && row.Get("answer_by") != "" {
		p.AnswerBy, err = row.Instant("answer_by")
	}
	if err != nil {
		return p, err
	}

	if err := readWays(row, &p); err != nil {
		return p, err
	}

	err = readAmounts(row, &p)

	return p, err
}

// readWays reads what a row has words for.
func readWays(row csvfile.Row, p *flex.Product) error {
	switch word := cmp.Or(row.Get("participation"), "opt_in"); word {
	case "opt_in":
	case "opt_out":
		p.OptOut = true
	default:
		return row.Fault("participation is %q: it should be opt_in or opt_out", word)
	}

	switch word := cmp.Or(row.Get("direction"), "down"); word {
	case "down":
		p.Change = -1
	case "up":
		p.Change = 1
	default:
		return row.Fault("direction is %q: it should be down or up", word)
	}

	return nil
}

// readAmounts reads a row's numbers. The product has its direction.
func readAmounts(row csvfile.Row, p *flex.Product) error {
	amount := func(column string, most float64) (float64, error) {
		v, err := strconv.ParseFloat(cmp.Or(row.Get(column), "0"), 64)
		if err != nil || !(math.Abs(v) <= most) {
			return 0, row.Fault(
				"%s is %q: it should be a number",
				column,
				row.Get(column),
			)
		}
		return v, nil
	}

	kw, err := amount("volume_kw", flex.CapMax.KW())
	if err != nil {
		return err
	}

	price, err := amount("price_gbp_per_mwh", 1e6)
	if err != nil {
		return err
	}

	availability, err := amount("availability_gbp_per_mw_per_hour", 1e6)
	if err != nil {
		return err
	}

	if kw < 0 {
		return row.Fault("volume_kw is %q: it should be above 0, with a direction", row.Get("volume_kw"))
	}

	p.Change *= flex.FromKW(kw)
	p.Price = flex.FromGBPPerMWh(price)
	p.Availability = flex.FromGBPPerMWh(availability)

	return nil
}
