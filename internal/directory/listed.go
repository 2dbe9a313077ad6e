package directory

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"flexd/internal/csvfile"
	"flexd/internal/flex"
)

// Kept is what a list in the store has to answer: the points of a postcode in its normal
// form, and a point by its thirteen digits, flex.NotFound if there is none.
type Kept interface {
	MetersByPostcode(ctx context.Context, postcode string) ([]flex.Meter, error)
	MeterByMPAN(ctx context.Context, mpan string) (flex.Meter, error)
}

// Listed is the source of the points that an operator imported.
type Listed struct{ Kept Kept }

// ByPostcode returns the imported points of a postcode.
func (l Listed) ByPostcode(
	ctx context.Context,
	p Postcode,
) ([]flex.Meter, error) {
	return l.Kept.MetersByPostcode(ctx, string(p))
}

// ByMPAN returns one imported point.
func (l Listed) ByMPAN(ctx context.Context, m MPAN) (flex.Meter, error) {
	return l.Kept.MeterByMPAN(ctx, m.Core())
}

// meterColumns are those that a file of meters must have; the others may be left out.
var meterColumns = []string{
	"mpan",
	"direction",
	"address",
	"postcode",
	"energised",
	"half_hourly_settled",
	"domestic",
}

// ReadMeters reads a CSV file of metering points and hands over each, with MPAN and
// postcode in their normal forms. The first bad row ends it with a flex.Invalid that names
// its line; what was handed over before must then be thrown away.
func ReadMeters(r io.Reader, each func(flex.Meter) error) error {
	seen := map[string]struct{}{}
	for row, err := range csvfile.Read(r, meterColumns...) {
		if err != nil {
			return err
		}

		m, err := readMeter(row)
		if err != nil {
			return err
		}
		if _, twice := seen[m.MPAN]; twice {
			return row.Fault("mpan: this MPAN is in the file twice")
		}

		seen[m.MPAN] = struct{}{}
		if err := each(m); err != nil {
			return err
		}
	}

	return nil
}

// readMeter reads a row of the list of metering points.
func readMeter(row csvfile.Row) (flex.Meter, error) {
	mpan, err := ParseMPAN(row.Get("mpan"))
	if e, ok := errors.AsType[*flex.Error](err); ok {
		return flex.Meter{}, row.Fault(
			"mpan: %s",
			strings.Join(e.Details, "; "),
		)
	}

	p, err := ParsePostcode(row.Get("postcode"))
	if err != nil {
		return flex.Meter{}, row.Fault("postcode: %v", err)
	}

	m := flex.Meter{
		MPAN:         mpan.Core(),
		Postcode:     string(p),
		Address:      row.Get("address"),
		UPRN:         row.Get("uprn"),
		SupplierMPID: row.Get("supplier_mpid"),
		SupplierName: row.Get("supplier_name"),
		GSPGroup:     row.Get("gsp_group"),
	}

	if m.Address == "" || len(m.Address) > MaxAddress {
		return flex.Meter{}, row.Fault(
			"address: it has %d characters, not 1 to %d",
			len(m.Address),
			MaxAddress,
		)
	}

	err = cmp.Or(
		readFlag(row, "direction", "import", "export", &m.Import),
		readFlag(row, "energised", "true", "false", &m.Energised),
		readFlag(row, "half_hourly_settled", "true", "false", &m.HalfHourly),
		readFlag(row, "domestic", "true", "false", &m.Domestic),
	)

	if err != nil {
		return flex.Meter{}, err
	}

	return m, nil
}

// readFlag reads a column that says one of two words.
func readFlag(row csvfile.Row, column, yes, no string, to *bool) error {
	text := row.Get(column)
	*to = text == yes
	if text != yes && text != no {
		return row.Fault("%s: %q is neither %s nor %s", column, text, yes, no)
	}

	return nil
}
