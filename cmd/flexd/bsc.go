package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"flexd/internal/app"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/market"
)

// bsc is `flexd bsc`.
type bsc struct {
	Register bscRegister `cmd:"" help:"The register of metering points in a month: dates, GSP group, supplier, and what prevents settlement. Example: flexd bsc register Acme --month 2026-10"`
	Pairs    bscPairs    `cmd:"" help:"Import the party's list of pairs of metering points, in place of the one before: import_mpan, export_mpan, bm_unit, gsp_group, supplier_mpid, from_date, to_date, largest_export_kwh. Example: flexd bsc pairs Acme pairs.csv"`
	Volumes  bscVolumes  `cmd:"" help:"Expected, metered and delivered volume of every point and half-hour of a month, as CSV. Example: flexd bsc volumes Acme --month 2026-10 --out volumes.csv"`
	Import   bscImport   `cmd:"" help:"Import a settlement report of a run: mpan, settlement_date, settlement_period, delivered_kwh. Example: flexd bsc import Acme report.csv --run SF"`
	Compare  bscCompare  `cmd:"" help:"What flexd settled against what a run's reports say. Example: flexd bsc compare Acme --month 2026-10 --run SF --out differences.csv"`
}

// ofMonth has the flags of most of the commands.
type ofMonth struct {
	store
	Org   string `arg:"" help:"The organisation's name."`
	Month string `help:"The month, in London." required:"" placeholder:"2026-10"`
	JSON  bool   `help:"Print as JSON." name:"json"`
}

// openMonth opens the store and finds the organisation and the month.
func (o *ofMonth) openMonth(ctx context.Context) (*app.App, flex.OrgID, ledger.Month, error) {
	m, err := ledger.ParseMonth(o.Month)
	if err != nil {
		return nil, flex.OrgID{}, m, err
	}

	h, err := o.open(ctx)
	if err != nil {
		return nil, flex.OrgID{}, m, err
	}

	org, err := orgIDNamed(ctx, h, o.Org)
	if err != nil {
		h.Close()
	}

	return h, org, m, err
}

func orgIDNamed(
	ctx context.Context,
	h *app.App,
	name string,
) (flex.OrgID, error) {
	org, err := namedOrg(ctx, h, name)
	return org.ID, err
}

type bscVolumes struct {
	ofMonth
	Out string `help:"Write to a file." required:"" placeholder:"FILE"`
}

// Run writes the volumes, and prints their sums.
func (o *bscVolumes) Run(ctx context.Context, c console) error {
	h, org, m, err := o.openMonth(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	err = writeAtomically(o.Out, func(w io.Writer) error {
		_, err := h.Market.WriteVolumes(ctx, org, m, w)
		return err
	})
	if err != nil {
		return err
	}

	compared, err := h.Market.Compare(ctx, org, m, "", nil)
	if err != nil {
		return err
	}

	groups, suppliers := volumeRows(compared.Groups), volumeRows(compared.Suppliers)
	if o.JSON {
		return c.json(map[string]any{"groups": groups, "suppliers": suppliers})
	}

	if err := c.volumeTable("GSP GROUP, SUPPLIER", groups); err != nil {
		return err
	}

	return c.volumeTable("SUPPLIER", suppliers)
}

func volumeRows(sums map[string]*market.Sums) []volumeRow {
	rows := make([]volumeRow, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		s := sums[name]
		rows = append(rows, volumeRow{
			name,
			s.HalfHours,
			s.Expected.KWh(),
			s.Own.KWh(),
		})
	}

	return rows
}

func (c console) volumeTable(name string, rows []volumeRow) error {
	return table(
		c,
		rows,
		name+"\tHALF-HOURS\tEXPECTED KWH\tDELIVERED KWH",
		func(r volumeRow) []any {
			return []any{
				r.Group,
				r.HalfHours,
				thousandths(r.Expected),
				thousandths(r.Delivered),
			}
		},
	)
}

// thousandths writes a number to three decimals, as kWh to the watt-hour.
func thousandths(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// volumeRow has the sums of a GSP group and supplier, or of a supplier in all groups.
type volumeRow struct {
	Group     string  `json:"name"`
	HalfHours int     `json:"half_hours"`
	Expected  float64 `json:"expected_kwh"` // of half-hours that were settled
	Delivered float64 `json:"delivered_kwh"`
}

type bscImport struct {
	store
	form
	Org   string `arg:"" help:"The organisation's name."`
	File  string `arg:"" help:"The report, CSV."`
	Named string `help:"The run: II, SF, R1, R2, R3, RF or DF." name:"run" required:"" enum:"II,SF,R1,R2,R3,RF,DF"`
}

// Run imports a report.
func (o *bscImport) Run(ctx context.Context, c console) error {
	h, err := o.open(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	org, err := orgIDNamed(ctx, h, o.Org)
	if err != nil {
		return err
	}

	var rows int
	err = h.Access.Act(
		ctx,
		flex.AuditEntry{
			Who:     commandLine,
			Org:     org,
			Act:     "import settlement report",
			Subject: o.Org,
			Detail:  o.Named,
		},
		func() error {
			rows, err = h.Market.ImportReport(
				ctx,
				org,
				o.Named,
				func() (io.ReadCloser, error) {
					return os.Open(o.File)
				},
			)

			return err
		},
	)

	if err != nil {
		return err
	}

	return o.print(
		c,
		fields{"imported": rows, "run": o.Named},
		"%d half-hours of run %s\n",
		rows,
		o.Named,
	)
}

type bscCompare struct {
	ofMonth
	Named string `help:"The run; of each half-hour the latest report up to it counts." name:"run" default:"DF" enum:"II,SF,R1,R2,R3,RF,DF"`
	Out   string `help:"Write every half-hour to a file." placeholder:"FILE"`
}

// comparedRow is the sums of a comparison.
type comparedRow struct {
	Group      string         `json:"name"`
	HalfHours  int            `json:"half_hours"`
	Matched    int            `json:"matched"`
	Own        float64        `json:"own_kwh"`
	Settled    float64        `json:"settled_kwh"`
	Difference float64        `json:"difference_gbp"`
	Unpriced   int            `json:"unpriced"`
	Unmatched  map[string]int `json:"unmatched"`
}

func comparedRowOf(group string, s *market.Sums) comparedRow {
	return comparedRow{
		group,
		s.HalfHours,
		s.Matched,
		s.Own.KWh(),
		s.Settled.KWh(),
		float64(s.Worth) / 1e12,
		s.Unpriced,
		s.Unmatched,
	}
}

// Run compares.
func (o *bscCompare) Run(ctx context.Context, c console) error {
	h, org, m, err := o.openMonth(ctx)
	if err != nil {
		return err
	}

	defer h.Close()

	var compared market.Comparison

	if o.Out == "" {
		compared, err = h.Market.Compare(ctx, org, m, o.Named, nil)
	} else {
		err = writeAtomically(o.Out, func(w io.Writer) error {
			var err error
			compared, err = h.Market.Compare(ctx, org, m, o.Named, w)
			return err
		})
	}

	if err != nil {
		return err
	}

	groups := append(
		comparedRows(compared.Groups),
		comparedRowOf("all", &compared.All),
	)

	suppliers := comparedRows(compared.Suppliers)

	if o.JSON {
		return c.json(map[string]any{
			"month":     m.String(),
			"run":       o.Named,
			"groups":    groups,
			"suppliers": suppliers,
		})
	}

	if err := c.comparedTable("GSP GROUP, SUPPLIER", groups); err != nil {
		return err
	}

	return c.comparedTable("SUPPLIER", suppliers)
}

func comparedRows(sums map[string]*market.Sums) []comparedRow {
	rows := []comparedRow{} // none is an empty list in JSON, too
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		rows = append(rows, comparedRowOf(name, sums[name]))
	}
	return rows
}

func (c console) comparedTable(name string, rows []comparedRow) error {
	return table(
		c,
		rows,
		name+
			"\tHALF-HOURS\tMATCHED\tOWN KWH\tSETTLED KWH\tDIFFERENCE GBP\tUNMATCHED",
		func(r comparedRow) []any {
			return []any{
				r.Group,
				r.HalfHours,
				r.Matched,
				thousandths(r.Own),
				thousandths(r.Settled),
				fmt.Sprintf("%.2f", r.Difference),
				unmatchedText(r),
			}
		},
	)
}

func unmatchedText(r comparedRow) string {
	var whys []string
	for _, reason := range slices.Sorted(maps.Keys(r.Unmatched)) {
		whys = append(whys, fmt.Sprintf("%d %s", r.Unmatched[reason], reason))
	}

	if r.Unpriced > 0 {
		whys = append(
			whys,
			fmt.Sprintf("%d without a settlement price", r.Unpriced),
		)
	}

	return strings.Join(whys, "; ")
}
